"""Exchanges: four finest cells at the corners of a rectangle of two variables move, two up and two down.

All tables without one of the two variables stay as they are, so that far fewer errors change than with a
flip or a swap. Where errors are small already, such moves are the ones that still help.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import mixed, next_word
from lustrum.protect.population.search.forces import change, place_inner

UP_COUNTS = 3
"""From this place on a tally holds how many cells of each class stand at their upper number."""
_FARTHEST = 4
"""For every neighbour that is looked for along a variable, so many cells are passed at most."""


@compiled
def allowed(cells: Any, tally: Any, i: Any, j: Any, k: Any, m: Any) -> bool:  # pragma: no cover
    """Whether a move leaves enough empty cells among those that show the smallest number, and as many cells of
    every residue at their upper number as may stand there.

    The cells that move are given, or -1. The rules never stand in the way of a move that mends them.
    """
    lack = tally[0]
    for c in (i, j, k, m):
        if c >= 0:
            lack += _lack_by(cells, tally, c)
    if lack > 0 and lack > tally[0]:
        return False
    before, after = np.int64(0), np.int64(0)
    for c in (i, j, k, m):
        before += _beyond_bounds(cells, tally, c)
    # Two cells of one move may have the same residue, so all are counted before one is judged.
    for c in (i, j, k, m):
        _count_up(cells, tally, c, np.int64(1))
    for c in (i, j, k, m):
        after += _beyond_bounds(cells, tally, c)
    for c in (i, j, k, m):
        _count_up(cells, tally, c, np.int64(-1))
    return bool(after <= before)


@compiled
def _beyond_bounds(cells: Any, tally: Any, c: Any) -> Any:  # pragma: no cover
    """How many cells of the class of a cell stand at their upper number beyond what is allowed."""
    kind = np.int64(cells.kind[c]) if c >= 0 else np.int64(-1)
    if kind < 0:
        return np.int64(0)
    up = tally[UP_COUNTS + kind]
    return max(up - cells.most_up[kind], cells.least_up[kind] - up, np.int64(0))


@compiled
def _count_up(cells: Any, tally: Any, c: Any, by: Any) -> None:  # pragma: no cover
    """Count that a cell moves, or with ``by`` -1 that it does not."""
    if c >= 0 and cells.kind[c] >= 0:
        tally[UP_COUNTS + np.int64(cells.kind[c])] += -by if cells.up[c] else by


@compiled
def _lack_by(cells: Any, tally: Any, c: Any) -> Any:  # pragma: no cover
    """What a move of a cell adds to the lack of empty cells among those that show the smallest number.

    The lack is ``tally[1]`` for every cell that shows that number, less ``tally[2]`` for every empty one.
    """
    smallest = np.int64(cells.high_smallest[c]) - np.int64(cells.low_smallest[c])
    lack = tally[1] * smallest - tally[2] * np.int64(cells.is_empty[c])
    return -lack if cells.up[c] else lack


@compiled
def move(cells: Any, tally: Any, c: Any) -> None:  # pragma: no cover
    """Note that a cell has moved."""
    tally[0] += _lack_by(cells, tally, c)
    _count_up(cells, tally, c, np.int64(1))
    cells.up[c] = 1 - cells.up[c]


@compiled
def note(lane: Any, limit: float, i: Any, j: Any, k: Any, m: Any) -> None:  # pragma: no cover
    """Write a move down: its cells, or -1, and what it was allowed to cost."""
    at = lane.written[0]
    for column, c in enumerate((i, j, k, m)):
        lane.cells[at, column] = c
    lane.limits[at] = limit
    lane.written[0] = at + 1


@compiled
def _found(slot: Any, word: Any, look: Any) -> Any:  # pragma: no cover
    """The cell of a scrambled number, or -1, where ``look`` is what stands in its first slot.

    In very rare cases it is another cell, so that codes must be compared.
    """
    mask = np.uint64(slot.size - 1)
    at = word & mask
    while look != np.uint64(0):
        if (look ^ word) >> np.uint64(32) == np.uint64(0):
            return np.int64(look & np.uint64(0xFFFFFFFF)) - 1
        at = (at + np.uint64(1)) & mask
        look = slot[at]
    return np.int64(-1)


@compiled
def fill_slots(numbers: Any, slot: Any) -> None:  # pragma: no cover
    """Lay out cells by their numbers, so that a number finds its cell.

    A slot holds half of the scrambled number beside the cell, so that one look is enough.
    """
    mask = np.uint64(slot.size - 1)
    for i in range(numbers.size):
        word = mixed(numbers[i])
        at = word & mask
        while slot[at] != np.uint64(0):
            at = (at + np.uint64(1)) & mask
        slot[at] = (word & np.uint64(0xFFFFFFFF00000000)) | np.uint64(i + 1)


@compiled
def _is_fourth(
    cells: Any, i: Any, j: Any, k: Any, m: Any, u: Any, v: Any
) -> bool:  # pragma: no cover
    """Whether ``m`` is like ``i`` with the code of ``j`` along ``u`` and that of ``k`` along ``v``."""
    for w in range(cells.codes.shape[1]):
        if cells.codes[m, w] != cells.codes[j if w == u else k if w == v else i, w]:
            return False
    return True


@compiled
def fourth_cell(cells: Any, i: Any, j: Any, k: Any, u: Any, v: Any) -> Any:  # pragma: no cover
    """The cell like ``i`` with the code of ``j`` along ``u`` and that of ``k`` along ``v``, or -1."""
    word = mixed(cells.number[j] - cells.number[i] + cells.number[k])
    m = _found(cells.slot, word, cells.slot[word & np.uint64(cells.slot.size - 1)])
    return m if m >= 0 and _is_fourth(cells, i, j, k, m, u, v) else np.int64(-1)


@compiled
def pair_cost(
    run: Any,
    table: Any,
    stride: Any,
    kind: Any,
    errors: Any,
    inner: Any,
    base: Any,
    apart_u: Any,
    apart_v: Any,
    sign: Any,
    rise: Any,
    bound: float,
) -> Any:  # pragma: no cover
    """What the tables with two nodes cost if four cells move, two of them by ``sign`` steps and two back.

    The first four are the entries of the two nodes. Few arrays are handed over: a call with a whole layout
    takes longer than the work of a short list. Where the cost of some tables is beyond ``bound``, the rest is
    left out: they are sorted by weight, and hardly ever make up for it.
    """
    reach = np.int64(rise.shape[1] // 2)
    total = np.int64(0)
    for q in range(np.uint64(run.size)):
        at = base[run[q]] + inner[table[q]]
        one = np.uint64(apart_u * stride[q, 0])
        two = np.uint64(apart_v * stride[q, 1])
        a = min(max(sign * np.int64(errors[at]), -reach), reach)
        b = min(max(sign * np.int64(errors[at + one]), -reach), reach)
        c = min(max(sign * np.int64(errors[at + two]), -reach), reach)
        d = min(max(sign * np.int64(errors[at + one + two]), -reach), reach)
        k = kind[q]
        total += rise[k, np.uint64(reach + a)] + rise[k, np.uint64(reach - b)]
        total += rise[k, np.uint64(reach - c)] + rise[k, np.uint64(reach + d)]
        if q & np.uint64(15) == np.uint64(15) and total > bound:
            break
    return total


@compiled
def change_pair(
    run: Any,
    table: Any,
    stride: Any,
    kind: Any,
    errors: Any,
    forces: Any,
    inner: Any,
    base: Any,
    apart_u: Any,
    apart_v: Any,
    by: Any,
    force: Any,
) -> None:  # pragma: no cover
    """Change the errors of the tables with two nodes by an exchange."""
    for q in range(np.uint64(run.size)):
        at = base[run[q]] + inner[table[q]]
        one = np.uint64(apart_u * stride[q, 0])
        two = np.uint64(apart_v * stride[q, 1])
        change(errors, forces, at, by, kind[q], force)
        change(errors, forces, at + one, -by, kind[q], force)
        change(errors, forces, at + two, -by, kind[q], force)
        change(errors, forces, at + one + two, by, kind[q], force)


@compiled
def neighbours(
    partner: Any, up: Any, group: Any, tied: bool, i: Any, near: Any
) -> None:  # pragma: no cover
    """Find neighbours of a cell along every variable that stand at their other number and may move."""
    for c in range(near.shape[0]):
        count = 0
        o = np.int64(partner[i, c])
        for _ in range(_FARTHEST * near.shape[1]):
            if o < 0 or o == i or count == near.shape[1]:
                break
            if up[o] != up[i] and (not tied or group[o] == group[i]):
                near[c, count] = o
                count += 1
            o = np.int64(partner[o, c])
        for x in range(count, near.shape[1]):
            near[c, x] = -1


@compiled
def exchange(
    layout: Any,
    cells: Any,
    i: Any,
    near: Any,
    fourth_cells: Any,
    p: Any,
    inner: Any,
    placed: bool,
    base: Any,
    lane: Any,
    step: Any,
    costs: Any,
    temperature: float,
    slack: float,
    lost: float,
) -> None:  # pragma: no cover
    """Try exchanges of a cell: two cells up and two down, at the corners of a rectangle of two variables.

    They leave every table without one of the two variables as it is. One whose first tables cost more by
    ``lost`` than they may is given up. ``near`` and ``fourth_cells`` are room for
    neighbours of the cell along every variable, and for the fourth cells of all rectangles.
    """
    nodes = layout.variable_of.size - 1
    variables = near.shape[0]
    fields = lane.fields
    errors, forces, tally, tried = lane.errors, lane.forces, lane.tally, lane.tried
    neighbours(cells.partner, cells.up, cells.group, cells.tied, i, near)
    # All first looks for fourth cells are made before any is used, so that they need not wait for each other.
    slot = cells.slot
    mask = np.uint64(slot.size - 1)
    looks = 0
    for u in range(variables):
        for x in range(near.shape[1]):
            j = near[u, x]
            if j < 0:
                break
            beside = cells.number[j] - cells.number[i]
            for v in range(u + 1, variables):
                for y in range(near.shape[1]):
                    k = near[v, y]
                    if k < 0:
                        break
                    word = mixed(beside + cells.number[k])
                    fourth_cells[looks, 0] = word
                    fourth_cells[looks, 1] = slot[word & mask]
                    looks += 1
    sign = np.int64(-1 if cells.up[i] else 1)
    looks = 0
    for u in range(variables):
        for x in range(near.shape[1]):
            j = near[u, x]
            if j < 0:
                break
            for v in range(u + 1, variables):
                for y in range(near.shape[1]):
                    k = near[v, y]
                    if k < 0:
                        break
                    m = _found(slot, fourth_cells[looks, 0], fourth_cells[looks, 1])
                    looks += 1
                    if m < 0 or cells.up[m] != cells.up[i]:
                        continue
                    if cells.tied and cells.group[m] != cells.group[i]:
                        continue
                    about = np.float64(fields[i, 0]) + np.float64(fields[m, 0])
                    about -= np.float64(fields[j, 0]) + np.float64(fields[k, 0])
                    bend = np.float64(fields[i, 1]) + np.float64(fields[m, 1])
                    bend += np.float64(fields[j, 1]) + np.float64(fields[k, 1])
                    limit = temperature * costs.quantiles[next_word(lane.word) >> np.uint64(52)]
                    if sign * about > limit + slack:
                        continue
                    share = 0.0
                    for a in range(layout.first_node[u], layout.first_node[u + 1]):
                        if (
                            layout.position[a, cells.codes[j, u]]
                            == layout.position[a, cells.codes[i, u]]
                        ):
                            continue
                        for b in range(layout.first_node[v], layout.first_node[v + 1]):
                            if (
                                layout.position[b, cells.codes[k, v]]
                                != layout.position[b, cells.codes[i, v]]
                            ):
                                share += costs.pair_shares[a * nodes + b]
                    if sign * about + share * bend > limit + slack:
                        continue
                    if not _is_fourth(cells, i, j, k, m, u, v):
                        continue
                    tried[2, 0] += 1
                    if not placed:
                        place_inner(layout, cells.codes[i], p, inner)
                        placed = True
                    cost = np.int64(0)
                    for change_now in range(2):
                        for a in range(layout.first_node[u], layout.first_node[u + 1]):
                            apart_u = np.int64(layout.position[a, cells.codes[j, u]])
                            apart_u -= np.int64(layout.position[a, cells.codes[i, u]])
                            if apart_u == 0:
                                continue
                            for b in range(layout.first_node[v], layout.first_node[v + 1]):
                                apart_v = np.int64(layout.position[b, cells.codes[k, v]])
                                apart_v -= np.int64(layout.position[b, cells.codes[i, v]])
                                if apart_v == 0:
                                    continue
                                q = layout.pair_first[a * nodes + b]
                                r = layout.pair_first[a * nodes + b + 1]
                                if change_now == 0:
                                    if cost > limit + lost:
                                        continue
                                    cost += pair_cost(
                                        layout.pair_run[q:r],
                                        layout.pair_table[q:r],
                                        layout.pair_stride[q:r],
                                        layout.pair_kind[q:r],
                                        errors,
                                        inner,
                                        base,
                                        apart_u,
                                        apart_v,
                                        sign,
                                        costs.rise,
                                        limit + lost - cost,
                                    )
                                else:
                                    change_pair(
                                        layout.pair_run[q:r],
                                        layout.pair_table[q:r],
                                        layout.pair_stride[q:r],
                                        layout.pair_kind[q:r],
                                        errors,
                                        forces,
                                        inner,
                                        base,
                                        apart_u,
                                        apart_v,
                                        step * sign,
                                        costs.force,
                                    )
                        if change_now == 0 and (
                            cost > limit or not allowed(cells, tally, i, j, k, m)
                        ):
                            break
                        if change_now == 1:
                            tried[2, 1] += 1
                            for c in (i, j, k, m):
                                moved = 1.0 if cells.up[c] == 0 else -1.0
                                fields[c, 0] += np.float32(
                                    moved * 2.0 * share * np.float64(fields[c, 1])
                                )
                                move(cells, tally, c)
                            note(lane, limit, i, j, k, m)
                            return
