"""Moves of finest cells: which are allowed, what they cost exactly, and what they change.

A finest cell stands at the lower or the upper of two adjacent numbers, one step apart. A *flip* moves one
cell. A *swap* moves two cells that differ in one variable in opposite directions, which leaves every table
without that variable as it is. An *exchange* moves four cells at the corners of a rectangle of two variables,
two up and two down, which leaves every table without one of the two as it is.

``rise[kind, e + reach]`` says what the cost of a controlled cell changes by when its error ``e`` grows by one
step; costs are symmetric, so that ``rise[kind, reach - e]`` belongs to a step down. All costs are whole
numbers, and sums of them are the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Whole
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import mixed
from lustrum.protect.population.search.forces import Places, change
from lustrum.protect.population.search.layout import SearchCells, SearchLayout, TablesOf

UP_COUNTS = 3
"""From this place on a tally holds how many cells of each class stand at their upper number."""
_FARTHEST = 4
"""For every neighbour that is looked for along a variable, so many cells are passed at most."""


@compiled
def allowed(
    cells: SearchCells, tally: Array, i: Whole, j: Whole, k: Whole, m: Whole
) -> bool:  # pragma: no cover
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
def _beyond_bounds(cells: SearchCells, tally: Array, c: Whole) -> Any:  # pragma: no cover
    """How many cells of the class of a cell stand at their upper number beyond what is allowed."""
    kind = np.int64(cells.kind[c]) if c >= 0 else np.int64(-1)
    if kind < 0:
        return np.int64(0)
    up = tally[UP_COUNTS + kind]
    return max(up - cells.most_up[kind], cells.least_up[kind] - up, np.int64(0))


@compiled
def _count_up(cells: SearchCells, tally: Array, c: Whole, by: Whole) -> None:  # pragma: no cover
    """Count that a cell moves, or with ``by`` -1 that it does not."""
    if c >= 0 and cells.kind[c] >= 0:
        tally[UP_COUNTS + np.int64(cells.kind[c])] += -by if cells.up[c] else by


@compiled
def _lack_by(cells: SearchCells, tally: Array, c: Whole) -> Any:  # pragma: no cover
    """What a move of a cell adds to the lack of empty cells among those that show the smallest number.

    The lack is ``tally[1]`` for every cell that shows that number, less ``tally[2]`` for every empty one.
    """
    smallest = np.int64(cells.high_smallest[c]) - np.int64(cells.low_smallest[c])
    lack = tally[1] * smallest - tally[2] * np.int64(cells.is_empty[c])
    return -lack if cells.up[c] else lack


@compiled
def move(cells: SearchCells, tally: Array, c: Whole) -> None:  # pragma: no cover
    """Note that a cell has moved."""
    tally[0] += _lack_by(cells, tally, c)
    _count_up(cells, tally, c, np.int64(1))
    cells.up[c] = 1 - cells.up[c]


@compiled
def fill_slots(numbers: Array, slot: Array) -> None:  # pragma: no cover
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
def find(slot: Array, word: Whole, look: Whole) -> Any:  # pragma: no cover
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
def is_fourth(
    cells: SearchCells, i: Whole, j: Whole, k: Whole, m: Whole, u: Whole, v: Whole
) -> bool:  # pragma: no cover
    """Whether ``m`` is like ``i`` with the code of ``j`` along ``u`` and that of ``k`` along ``v``."""
    for w in range(cells.codes.shape[1]):
        if cells.codes[m, w] != cells.codes[j if w == u else k if w == v else i, w]:
            return False
    return True


@compiled
def fourth_cell(
    cells: SearchCells, i: Whole, j: Whole, k: Whole, u: Whole, v: Whole
) -> Any:  # pragma: no cover
    """The cell like ``i`` with the code of ``j`` along ``u`` and that of ``k`` along ``v``, or -1."""
    word = mixed(cells.number[j] - cells.number[i] + cells.number[k])
    m = find(cells.slot, word, cells.slot[word & np.uint64(cells.slot.size - 1)])
    return m if m >= 0 and is_fourth(cells, i, j, k, m, u, v) else np.int64(-1)


@compiled
def neighbours(cells: SearchCells, i: Whole, near: Array) -> None:  # pragma: no cover
    """Find neighbours of a cell along every variable that stand at their other number and may move."""
    partner, up, group, tied = cells.partner, cells.up, cells.group, cells.tied
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
def apart(cells: SearchCells, i: Whole, j: Whole) -> Any:  # pragma: no cover
    """The only variable along which two cells differ."""
    v = 0
    while cells.codes[i, v] == cells.codes[j, v]:
        v += 1
    return v


@compiled
def shift(
    layout: SearchLayout, codes: Array, a: Whole, i: Whole, j: Whole, v: Whole
) -> Any:  # pragma: no cover
    """By how many categories of a node ``j`` lies behind ``i`` along a variable."""
    behind = np.int64(layout.position[a, codes[j, v]])
    return behind - np.int64(layout.position[a, codes[i, v]])


@compiled
def flip_cost(
    layout: SearchLayout, errors: Array, lies: Places, sign: Whole, rise: Array
) -> Any:  # pragma: no cover
    """What the cost changes by if one finest cell moves by ``sign`` steps."""
    reach = np.int64(rise.shape[1] // 2)
    total = np.int64(0)
    for r in range(lies.base.size):
        b = lies.base[r]
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            e = min(max(sign * np.int64(errors[b + lies.inner[t]]), -reach), reach)
            total += rise[layout.kind[r, t], np.uint64(reach + e)]
    return total


@compiled
def swap_cost(
    layout: SearchLayout,
    cells: SearchCells,
    errors: Array,
    lies: Places,
    i: Whole,
    j: Whole,
    v: Whole,
    sign: Whole,
    rise: Array,
) -> Any:  # pragma: no cover
    """What it costs to move a cell by ``sign`` steps and its partner along ``v`` back."""
    cost = np.int64(0)
    for a in range(layout.first_node[v], layout.first_node[v + 1]):
        behind = shift(layout, cells.codes, a, i, j, v)
        if behind != 0:
            cost += _node_cost(layout.nodes, a, errors, lies, behind, sign, rise)
    return cost


@compiled
def _node_cost(
    tables: TablesOf, a: Whole, errors: Array, lies: Places, behind: Whole, sign: Whole, rise: Array
) -> Any:  # pragma: no cover
    """What the tables with one node cost if a cell moves by ``sign`` steps and its partner back.

    Few arrays are handed over: a call with a whole layout takes longer than the work of a short list.
    """
    reach = np.int64(rise.shape[1] // 2)
    total = np.int64(0)
    for q in range(np.uint64(tables.first[a]), np.uint64(tables.first[a + 1])):
        at = lies.base[tables.run[q]] + lies.inner[tables.table[q]]
        x = sign * np.int64(errors[at])
        y = sign * np.int64(errors[at + np.uint64(behind * tables.stride[q])])
        x = min(max(x, -reach), reach)
        y = min(max(y, -reach), reach)
        k = tables.kind[q]
        total += rise[k, np.uint64(reach + x)] + rise[k, np.uint64(reach - y)]
    return total


@compiled
def exchange_cost(
    layout: SearchLayout,
    cells: SearchCells,
    errors: Array,
    lies: Places,
    i: Whole,
    j: Whole,
    k: Whole,
    u: Whole,
    v: Whole,
    sign: Whole,
    rise: Array,
    bound: float,
    least: float,
) -> Any:  # pragma: no cover
    """What an exchange costs, where ``u`` is the earlier variable.

    It is given up, and the cost is only about right, where some tables cost more than ``bound``, or those of
    some nodes at least ``least``.
    """
    nodes = layout.variable_of.size - 1
    cost = np.int64(0)
    for a in range(layout.first_node[u], layout.first_node[u + 1]):
        across = shift(layout, cells.codes, a, i, j, u)
        if across == 0 or cost >= least:
            continue
        for b in range(layout.first_node[v], layout.first_node[v + 1]):
            down = shift(layout, cells.codes, b, i, k, v)
            if down != 0 and cost <= bound:
                cost += _pair_cost(
                    layout.pairs,
                    a * nodes + b,
                    errors,
                    lies,
                    across,
                    down,
                    sign,
                    rise,
                    bound - cost,
                )
    return cost


@compiled
def _pair_cost(
    tables: TablesOf,
    pair: Whole,
    errors: Array,
    lies: Places,
    across: Whole,
    down: Whole,
    sign: Whole,
    rise: Array,
    bound: float,
) -> Any:  # pragma: no cover
    """What the tables with two nodes cost if four cells move, two of them by ``sign`` steps and two back.

    Where the cost of some tables is beyond ``bound``, the rest is left out: they are sorted by weight, and
    hardly ever make up for it.
    """
    reach = np.int64(rise.shape[1] // 2)
    total = np.int64(0)
    first = np.uint64(tables.first[pair])
    for q in range(first, np.uint64(tables.first[pair + 1])):
        at = lies.base[tables.run[q]] + lies.inner[tables.table[q]]
        one = np.uint64(across * tables.stride[q, 0])
        two = np.uint64(down * tables.stride[q, 1])
        a = min(max(sign * np.int64(errors[at]), -reach), reach)
        b = min(max(sign * np.int64(errors[at + one]), -reach), reach)
        c = min(max(sign * np.int64(errors[at + two]), -reach), reach)
        d = min(max(sign * np.int64(errors[at + one + two]), -reach), reach)
        k = tables.kind[q]
        total += rise[k, np.uint64(reach + a)] + rise[k, np.uint64(reach - b)]
        total += rise[k, np.uint64(reach - c)] + rise[k, np.uint64(reach + d)]
        if (q - first) & np.uint64(15) == np.uint64(15) and total > bound:
            break
    return total


@compiled
def move_cost(
    layout: SearchLayout,
    cells: SearchCells,
    errors: Array,
    lies: Places,
    i: Whole,
    j: Whole,
    k: Whole,
    rise: Array,
) -> Any:  # pragma: no cover
    """What a flip, a swap or an exchange costs; ``j`` and ``k`` are the other cells beside the first, or -1."""
    sign = np.int64(-1 if cells.up[i] else 1)
    if j < 0:
        return flip_cost(layout, errors, lies, sign, rise)
    u = apart(cells, i, j)
    if k < 0:
        return swap_cost(layout, cells, errors, lies, i, j, u, sign, rise)
    v = apart(cells, i, k)
    return exchange_cost(layout, cells, errors, lies, i, j, k, u, v, sign, rise, np.inf, np.inf)


@compiled
def make(
    layout: SearchLayout,
    cells: SearchCells,
    errors: Array,
    forces: Array,
    tally: Array,
    lies: Places,
    i: Whole,
    j: Whole,
    k: Whole,
    m: Whole,
    step: Whole,
    force: Array,
) -> Any:  # pragma: no cover
    """Make a flip, a swap or an exchange; says how many controlled cells changed, which are listed."""
    by = -step if cells.up[i] else step
    count = moved_places(layout, cells, lies, i, j, k)
    for y in range(count):
        at = lies.changed[y]
        back = j >= 0 and (y & 1 == 1 if k < 0 else y & 3 == 1 or y & 3 == 2)
        change(errors, forces, at, -by if back else by, layout.cell_kind[at], force)
    for c in (i, j, k, m):
        if c >= 0:
            move(cells, tally, c)
    return count


@compiled
def moved_places(
    layout: SearchLayout, cells: SearchCells, lies: Places, i: Whole, j: Whole, k: Whole
) -> Any:  # pragma: no cover
    """List the controlled cells that a move changes, and say how many there are.

    ``j`` and ``k`` are the other cells beside the first one, or -1, ``j`` along the earlier variable. Of a swap
    the cells of ``i`` and of ``j`` take turns; of an exchange those of ``i``, ``j``, ``k`` and the fourth.
    """
    into = lies.changed
    count = 0
    if j < 0:
        for r in range(lies.base.size):
            for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                into[count] = lies.base[r] + lies.inner[t]
                count += 1
        return count
    u = apart(cells, i, j)
    v = -1 if k < 0 else apart(cells, i, k)
    tables, nodes = layout.pairs, layout.variable_of.size - 1
    for a in range(layout.first_node[u], layout.first_node[u + 1]):
        across = shift(layout, cells.codes, a, i, j, u)
        if across == 0:
            continue
        if k < 0:
            for q in range(layout.nodes.first[a], layout.nodes.first[a + 1]):
                at = lies.base[layout.nodes.run[q]] + lies.inner[layout.nodes.table[q]]
                into[count] = at
                into[count + 1] = at + np.uint64(across * layout.nodes.stride[q])
                count += 2
            continue
        for b in range(layout.first_node[v], layout.first_node[v + 1]):
            down = shift(layout, cells.codes, b, i, k, v)
            if down == 0:
                continue
            for q in range(tables.first[a * nodes + b], tables.first[a * nodes + b + 1]):
                at = lies.base[tables.run[q]] + lies.inner[tables.table[q]]
                one = np.uint64(across * tables.stride[q, 0])
                two = np.uint64(down * tables.stride[q, 1])
                into[count] = at
                into[count + 1] = at + one
                into[count + 2] = at + two
                into[count + 3] = at + one + two
                count += 4
    return count
