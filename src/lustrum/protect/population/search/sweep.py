"""The sweep: visit finest cells slice by slice, and try flips, swaps and exchanges that seem worth it.

Exchanges change far fewer errors than flips and swaps. Where errors are small already, they are the moves that
still help.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lustrum.model.arrays import Array, Whole
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import below, mixed, next_word
from lustrum.protect.population.search.forces import Costs, Places, place_inner, room, slice_fields
from lustrum.protect.population.search.lanes import Lane
from lustrum.protect.population.search.layout import SearchCells, SearchLayout
from lustrum.protect.population.search.moves import (
    allowed,
    exchange_cost,
    find,
    flip_cost,
    is_fourth,
    make,
    neighbours,
    swap_cost,
)


class Pace(NamedTuple):
    """How a sweep tries moves, in units of costs."""

    step: np.int32
    temperature: float
    slack: float  # a move is worked out if it seems to cost at most so much too much
    lost: float  # an exchange is given up if its first tables cost so much too much
    rings: int  # how many neighbours are tried along a variable for swaps,
    near: int  # and for exchanges


_FRESH = 16
"""After so many moves within a slice the forces on its cells are added up anew."""


@compiled
def shuffle(items: Array, state: Array) -> None:  # pragma: no cover
    """Put items in an order drawn from the stream."""
    for j in range(items.size - 1, 0, -1):
        other = below(state, j + 1)
        items[j], items[other] = items[other], items[j]


@compiled
def all_fields(
    layout: SearchLayout,
    codes: Array,
    slice_first: Array,
    slices: Array,
    forces: Array,
    fields: Array,
) -> None:  # pragma: no cover
    """Add up the forces on all finest cells of some slices."""
    lies = room(layout)
    sums = np.empty((layout.table_end[-1], 2), dtype=np.int32)
    for g in slices:
        low, high = slice_first[g], slice_first[g + 1]
        slice_fields(layout, codes, low, high, forces, lies, sums, fields)


@compiled
def sweep_slices(
    layout: SearchLayout,
    cells: SearchCells,
    slices: Array,
    lane: Lane,
    costs: Costs,
    pace: Pace,
    visited: Array,
) -> None:  # pragma: no cover
    """Try a flip of every cell of some slices, swaps with next neighbours along every variable, and exchanges.

    ``fields`` keeps, for every cell, half the difference and half the sum of what a step up and a step down
    cost when its slice was last visited. From those of two cells follows about what a swap would cost, with
    the weight of the tables with a node among all; only promising moves are worked out. Cells that are not
    ``visited`` move as partners only.
    """
    none = np.int64(-1)
    variables = layout.first_node.size - 1
    near = np.empty((variables, pace.near), dtype=np.int64)
    fourth_cells = np.empty(((variables * pace.near) ** 2, 2), dtype=np.uint64)
    lies = room(layout)
    sums = np.empty((layout.table_end[-1], 2), dtype=np.int32)
    fields, tally, word, tried = lane.fields, lane.tally, lane.word, lane.tried
    for g in slices:
        low = cells.slice_first[g]
        count = cells.slice_first[g + 1] - low
        order = np.arange(count)
        shuffle(order, word)
        moved = _FRESH
        for j in range(count):
            i = np.int64(low + order[j])
            if visited[i] == 0:
                continue
            if moved >= _FRESH:
                slice_fields(layout, cells.codes, low, low + count, lane.forces, lies, sums, fields)
                moved = 0
            placed = False
            before = tried[0, 1] + tried[1, 1] + tried[2, 1]
            if cells.group[i] < 0:
                sign = np.int64(-1 if cells.up[i] else 1)
                alone = sign * np.float64(fields[i, 0]) + np.float64(fields[i, 1])
                limit = pace.temperature * costs.quantiles[next_word(word) >> np.uint64(52)]
                if alone <= limit + pace.slack:
                    place_inner(layout, cells.codes[i], lies)
                    placed = True
                    tried[0, 0] += 1
                    cost = flip_cost(layout, lane.errors, lies, sign, costs.rise)
                    if cost <= limit and allowed(cells, tally, i, none, none, none):
                        _make(layout, cells, lane, lies, i, none, none, none, costs, pace, limit)
                        fields[i, 0] += np.float32(sign * 2.0 * np.float64(fields[i, 1]))
                        tried[0, 1] += 1
            for v in range(variables):
                code = cells.codes[i, v]
                o = np.int64(cells.partner[i, v])
                for _ in range(pace.rings):
                    if o < 0 or o == i:
                        break
                    if cells.up[o] != cells.up[i] and (
                        not cells.tied or cells.group[o] == cells.group[i]
                    ):
                        sign = np.int64(-1 if cells.up[i] else 1)
                        other = cells.codes[o, v]
                        share = 0.0
                        for a in range(layout.first_node[v], layout.first_node[v + 1]):
                            if layout.position[a, other] != layout.position[a, code]:
                                share += costs.shares[a]
                        limit = pace.temperature * costs.quantiles[next_word(word) >> np.uint64(52)]
                        if _about(fields, i, o, sign, share) <= limit + pace.slack:
                            if not placed:
                                place_inner(layout, cells.codes[i], lies)
                                placed = True
                            tried[1, 0] += 1
                            cost = swap_cost(
                                layout, cells, lane.errors, lies, i, o, v, sign, costs.rise
                            )
                            if cost <= limit and allowed(cells, tally, i, o, none, none):
                                _make(
                                    layout, cells, lane, lies, i, o, none, none, costs, pace, limit
                                )
                                tried[1, 1] += 1
                                # Moving back would cost about as much as it gained.
                                back = np.float32(sign * 2.0 * share * np.float64(fields[i, 1]))
                                fields[i, 0] += back
                                fields[o, 0] -= back
                    o = np.int64(cells.partner[o, v])
            _exchange(layout, cells, i, near, fourth_cells, lies, placed, lane, costs, pace)
            moved += tried[0, 1] + tried[1, 1] + tried[2, 1] - before


@compiled
def _about(
    fields: Array, i: Whole, o: Whole, sign: Whole, share: float
) -> float:  # pragma: no cover
    """About what a swap costs."""
    about = sign * (np.float64(fields[i, 0]) - np.float64(fields[o, 0]))
    return float(about + share * (np.float64(fields[i, 1]) + np.float64(fields[o, 1])))


@compiled
def _make(
    layout: SearchLayout,
    cells: SearchCells,
    lane: Lane,
    lies: Places,
    i: Whole,
    j: Whole,
    k: Whole,
    m: Whole,
    costs: Costs,
    pace: Pace,
    limit: float,
) -> None:  # pragma: no cover
    """Make a move, and write it down: its cells, or -1, and what it was allowed to cost."""
    step, force = pace.step, costs.force
    make(layout, cells, lane.errors, lane.forces, lane.tally, lies, i, j, k, m, step, force)
    at = lane.written[0]
    for column, c in enumerate((i, j, k, m)):
        lane.cells[at, column] = c
    lane.limits[at] = limit
    lane.written[0] = at + 1


@compiled
def _exchange(
    layout: SearchLayout,
    cells: SearchCells,
    i: Whole,
    near: Array,
    fourth_cells: Array,
    lies: Places,
    placed: bool,
    lane: Lane,
    costs: Costs,
    pace: Pace,
) -> None:  # pragma: no cover
    """Try exchanges of a cell.

    ``near`` and ``fourth_cells`` are room for neighbours of the cell along every variable, and for the fourth
    cells of all rectangles.
    """
    nodes = layout.variable_of.size - 1
    variables = near.shape[0]
    fields = lane.fields
    neighbours(cells, i, near)
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
                    m = find(slot, fourth_cells[looks, 0], fourth_cells[looks, 1])
                    looks += 1
                    if m < 0 or cells.up[m] != cells.up[i]:
                        continue
                    if cells.tied and cells.group[m] != cells.group[i]:
                        continue
                    about = np.float64(fields[i, 0]) + np.float64(fields[m, 0])
                    about -= np.float64(fields[j, 0]) + np.float64(fields[k, 0])
                    bend = np.float64(fields[i, 1]) + np.float64(fields[m, 1])
                    bend += np.float64(fields[j, 1]) + np.float64(fields[k, 1])
                    limit = (
                        pace.temperature * costs.quantiles[next_word(lane.word) >> np.uint64(52)]
                    )
                    if sign * about > limit + pace.slack:
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
                    if sign * about + share * bend > limit + pace.slack:
                        continue
                    if not is_fourth(cells, i, j, k, m, u, v):
                        continue
                    lane.tried[2, 0] += 1
                    if not placed:
                        place_inner(layout, cells.codes[i], lies)
                        placed = True
                    cost = exchange_cost(
                        layout,
                        cells,
                        lane.errors,
                        lies,
                        i,
                        j,
                        k,
                        u,
                        v,
                        sign,
                        costs.rise,
                        limit + pace.lost,
                        np.inf,
                    )
                    if cost > limit or not allowed(cells, lane.tally, i, j, k, m):
                        continue
                    _make(layout, cells, lane, lies, i, j, k, m, costs, pace, limit)
                    lane.tried[2, 1] += 1
                    for c in (i, j, k, m):
                        moved = 1.0 if cells.up[c] else -1.0
                        fields[c, 0] += np.float32(moved * 2.0 * share * np.float64(fields[c, 1]))
                    return
