"""Moves of a lane that are made again where other lanes have moved cells meanwhile, and told to all lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled
from lustrum.protect.population.search.exchanges import allowed, move
from lustrum.protect.population.search.forces import add_move
from lustrum.protect.population.search.kernels import flip_cost, places
from lustrum.protect.population.search.moves import (
    apart,
    exchange_cells,
    exchange_cost,
    moved_places,
    swap_cells,
    swap_cost,
)


@compiled
def replay(
    layout: Any, cells: Any, first: Any, lane: Any, step: Any, costs: Any
) -> None:  # pragma: no cover
    """Make the moves of ``lane`` again, one by one, in the errors of ``first``.

    A move is left out if one of its cells does not stand as it stood for the lane, because an earlier move was
    left out, if the rule of empty cells forbids it, or if it costs more than it was allowed to.
    """
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    move_count = lane.written[0]
    # How the first cell of every move stood for the lane is found from the last move to the first.
    stood = np.empty(move_count, dtype=np.uint8)
    for x in range(move_count - 1, -1, -1):
        for column in range(4):
            c = lane.cells[x, column]
            if c >= 0:
                lane.up[c] = 1 - lane.up[c]
        stood[x] = lane.up[lane.cells[x, 0]]
    for x in range(move_count):
        i, j = np.int64(lane.cells[x, 0]), np.int64(lane.cells[x, 1])
        k, m = np.int64(lane.cells[x, 2]), np.int64(lane.cells[x, 3])
        if not _stands(cells, stood[x], i, j, k, m):
            continue
        if not allowed(cells, first.tally, i, j, k, m):
            continue
        sign = np.int64(-1 if stood[x] else 1)
        places(layout, cells.codes[i], p, inner, base)
        if j < 0:
            cost = flip_cost(layout, first.errors, inner, base, sign, costs.rise)
            if cost > lane.limits[x]:
                continue
            add_move(layout, first.errors, first.forces, inner, base, step * sign, costs)
        elif k < 0:
            v = apart(cells, i, j)
            cost = swap_cost(layout, cells, first.errors, inner, base, i, j, v, sign, costs.rise)
            if cost > lane.limits[x]:
                continue
            swap_cells(
                layout,
                cells,
                first.errors,
                first.forces,
                inner,
                base,
                i,
                j,
                v,
                step * sign,
                costs.force,
            )
        else:
            u, v = apart(cells, i, j), apart(cells, i, k)
            cost = exchange_cost(
                layout,
                cells,
                first.errors,
                inner,
                base,
                i,
                j,
                k,
                u,
                v,
                sign,
                costs.rise,
                np.inf,
            )
            if cost > lane.limits[x]:
                continue
            exchange_cells(
                layout,
                cells,
                first.errors,
                first.forces,
                inner,
                base,
                i,
                j,
                k,
                u,
                v,
                step * sign,
                costs.force,
            )
        for c in (i, j, k, m):
            if c >= 0:
                move(cells, first.tally, c)


@compiled
def _stands(cells: Any, stood: Any, i: Any, j: Any, k: Any, m: Any) -> bool:  # pragma: no cover
    """Whether the cells of a move stand as they did: the first and the fourth alike, the others opposite."""
    if cells.up[i] != stood or (m >= 0 and cells.up[m] != stood):
        return False
    return not ((j >= 0 and cells.up[j] == stood) or (k >= 0 and cells.up[k] == stood))


@compiled
def follow(
    layout: Any, cells: Any, first: Any, lane: Any, source: Any, tables: Any
) -> None:  # pragma: no cover
    """Give the first lane's errors, forces and cells to ``lane``, wherever a move of ``source`` changes them.

    It does not matter whether a move was made again. ``tables`` is how many there are.
    """
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    into = np.empty(4 * tables, dtype=np.uint64)
    for x in range(source.written[0]):
        i, j = np.int64(source.cells[x, 0]), np.int64(source.cells[x, 1])
        k = np.int64(source.cells[x, 2])
        for column in range(4):
            c = source.cells[x, column]
            if c >= 0:
                lane.up[c] = first.up[c]
        places(layout, cells.codes[i], p, inner, base)
        for y in range(moved_places(layout, cells, inner, base, i, j, k, into)):
            at = into[y]
            lane.errors[at] = first.errors[at]
            lane.forces[at, 0] = first.forces[at, 0]
            lane.forces[at, 1] = first.forces[at, 1]
