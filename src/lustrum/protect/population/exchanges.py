"""Exchanges: four finest cells at the corners of a rectangle of two variables move, two up and two down.

All tables without one of the two variables stay as they are, so that far fewer errors change than with a
flip or a swap. Where errors are small already, such moves are the ones that still help.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.compiled import compiled
from lustrum.stream import mixed, next_word

__all__ = ["NEAR", "allowed", "exchange", "fill_slots", "move"]

NEAR = 2
"""Neighbours of a cell along each variable that are tried."""
_NEAR_RINGS = 8


@compiled
def allowed(cells: Any, tally: Any, i: Any, j: Any, k: Any, m: Any) -> bool:  # pragma: no cover
    """Whether enough of the cells that show the smallest number stay empty in truth after a move.

    The cells that move are given, or -1. The rule never stands in the way of a move that mends it.
    """
    empty = tally[0]
    smallest = tally[1]
    for c in (i, j, k, m):
        if c >= 0:
            sign = -1 if cells.up[c] else 1
            empty += sign * cells.is_empty[c]
            smallest += sign * (cells.high_smallest[c] - cells.low_smallest[c])
    lack_now = tally[2] * tally[1] - tally[3] * tally[0]
    lack_then = tally[2] * smallest - tally[3] * empty
    return bool(lack_then <= 0 or lack_then <= lack_now)


@compiled
def move(cells: Any, tally: Any, c: Any) -> None:  # pragma: no cover
    """Note that a cell has moved."""
    sign = -1 if cells.up[c] else 1
    tally[0] += sign * cells.is_empty[c]
    tally[1] += sign * (cells.high_smallest[c] - cells.low_smallest[c])
    cells.up[c] = 1 - cells.up[c]


@compiled
def _find(cells: Any, number: Any) -> Any:  # pragma: no cover
    """The cell of a number, or -1. In very rare cases it is another cell, so that codes must be compared."""
    mask = np.uint64(cells.slot.size - 1)
    word = mixed(number)
    at = word & mask
    while cells.slot[at] != np.uint64(0):
        if (cells.slot[at] ^ word) >> np.uint64(32) == np.uint64(0):
            return np.int64(cells.slot[at] & np.uint64(0xFFFFFFFF)) - 1
        at = (at + np.uint64(1)) & mask
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
def _fourth(cells: Any, i: Any, j: Any, k: Any, u: Any, v: Any) -> Any:  # pragma: no cover
    """The cell like ``i`` with the code of ``j`` along ``u`` and that of ``k`` along ``v``; or -1."""
    m = _find(cells, cells.number[j] + cells.number[k] - cells.number[i])
    if m >= 0:
        for w in range(cells.codes.shape[1]):
            wanted = cells.codes[j if w == u else k if w == v else i, w]
            if cells.codes[m, w] != wanted:
                return np.int64(-1)
    return m


@compiled
def _pair_cost(
    layout: Any,
    errors: Any,
    inner: Any,
    base: Any,
    pair: Any,
    apart_u: Any,
    apart_v: Any,
    sign: Any,
    rise: Any,
    reach: Any,
) -> Any:  # pragma: no cover
    """What the tables with two nodes cost if four cells move, two of them by ``sign`` steps and two back."""
    total = np.int64(0)
    for q in range(np.uint64(layout.pair_first[pair]), np.uint64(layout.pair_first[pair + 1])):
        at = base[layout.pair_run[q]] + inner[layout.pair_table[q]]
        one = np.uint64(apart_u * layout.pair_stride[q, 0])
        two = np.uint64(apart_v * layout.pair_stride[q, 1])
        a = min(max(sign * np.int64(errors[at]), -reach), reach)
        b = min(max(sign * np.int64(errors[at + one]), -reach), reach)
        c = min(max(sign * np.int64(errors[at + two]), -reach), reach)
        d = min(max(sign * np.int64(errors[at + one + two]), -reach), reach)
        kind = layout.pair_kind[q]
        total += rise[kind, np.uint64(reach + a)] + rise[kind, np.uint64(reach - b)]
        total += rise[kind, np.uint64(reach - c)] + rise[kind, np.uint64(reach + d)]
    return total


@compiled
def _change_pair(
    layout: Any,
    errors: Any,
    inner: Any,
    base: Any,
    pair: Any,
    apart_u: Any,
    apart_v: Any,
    change: Any,
) -> None:  # pragma: no cover
    """Change the errors of the tables with two nodes by an exchange."""
    for q in range(layout.pair_first[pair], layout.pair_first[pair + 1]):
        at = base[layout.pair_run[q]] + inner[layout.pair_table[q]]
        one = np.uint64(apart_u * layout.pair_stride[q, 0])
        two = np.uint64(apart_v * layout.pair_stride[q, 1])
        errors[at] += change
        errors[at + one] -= change
        errors[at + two] -= change
        errors[at + one + two] += change


@compiled
def exchange(
    layout: Any,
    cells: Any,
    i: Any,
    near: Any,
    inner: Any,
    base: Any,
    errors: Any,
    fields: Any,
    tally: Any,
    state: Any,
    step: Any,
    rise: Any,
    pair_shares: Any,
    temperature: float,
    slack: float,
    quantiles: Any,
    tried: Any,
) -> None:  # pragma: no cover
    """Try exchanges of a cell: two cells up and two down, at the corners of a rectangle of two variables.

    They leave every table without one of the two variables as it is. ``near`` is room for neighbours of the
    cell along every variable.
    """
    reach = np.int64(rise.shape[1] // 2)
    nodes = layout.variable_of.size - 1
    variables = near.shape[0]
    for c in range(variables):
        count = 0
        o = np.int64(cells.partner[c, i])
        for _ in range(_NEAR_RINGS):
            if o < 0 or o == i or count == near.shape[1]:
                break
            if cells.up[o] != cells.up[i] and cells.group[o] == cells.group[i]:
                near[c, count] = o
                count += 1
            o = np.int64(cells.partner[c, o])
        near[c, count:] = -1
    sign = np.int64(-1 if cells.up[i] else 1)
    for u in range(variables):
        for v in range(u + 1, variables):
            for x in range(near.shape[1]):
                j = near[u, x]
                if j < 0:
                    break
                for y in range(near.shape[1]):
                    k = near[v, y]
                    if k < 0:
                        break
                    m = _find(cells, cells.number[j] + cells.number[k] - cells.number[i])
                    if m < 0 or cells.up[m] != cells.up[i] or cells.group[m] != cells.group[i]:
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
                                share += pair_shares[a * nodes + b]
                    about = np.float64(fields[i, 0]) + np.float64(fields[m, 0])
                    about -= np.float64(fields[j, 0]) + np.float64(fields[k, 0])
                    bend = np.float64(fields[i, 1]) + np.float64(fields[m, 1])
                    bend += np.float64(fields[j, 1]) + np.float64(fields[k, 1])
                    limit = temperature * quantiles[next_word(state) >> np.uint64(52)]
                    if not sign * about + share * bend <= limit + slack:
                        continue
                    if _fourth(cells, i, j, k, u, v) != m:
                        continue
                    tried[2, 0] += 1
                    cost = np.int64(0)
                    for change in range(2):
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
                                pair = a * nodes + b
                                if change == 0:
                                    cost += _pair_cost(
                                        layout,
                                        errors,
                                        inner,
                                        base,
                                        pair,
                                        apart_u,
                                        apart_v,
                                        sign,
                                        rise,
                                        reach,
                                    )
                                else:
                                    _change_pair(
                                        layout,
                                        errors,
                                        inner,
                                        base,
                                        pair,
                                        apart_u,
                                        apart_v,
                                        step * sign,
                                    )
                        if change == 0 and (cost > limit or not allowed(cells, tally, i, j, k, m)):
                            break
                        if change == 1:
                            tried[2, 1] += 1
                            for c in (i, j, k, m):
                                moved = 1.0 if cells.up[c] == 0 else -1.0
                                fields[c, 0] += np.float32(
                                    moved * 2.0 * share * np.float64(fields[c, 1])
                                )
                                move(cells, tally, c)
                            return
