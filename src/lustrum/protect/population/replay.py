"""Moves of a lane that are made again where other lanes have moved cells meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.compiled import compiled
from lustrum.protect.population.exchanges import allowed, change_pair, move, pair_cost
from lustrum.protect.population.forces import add_move
from lustrum.protect.population.kernels import flip_cost, node_cost, places, swap

__all__ = ["apart", "exchanged", "replay", "swapped"]


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
    made = lane.made[0]
    # How the first cell of every move stood for the lane is found from the last move to the first.
    stood = np.empty(made, dtype=np.uint8)
    for x in range(made - 1, -1, -1):
        for place in range(4):
            c = lane.cells[x, place]
            if c >= 0:
                lane.up[c] = 1 - lane.up[c]
        stood[x] = lane.up[lane.cells[x, 0]]
    for x in range(made):
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
            if not swapped(
                layout,
                cells,
                first.errors,
                first.forces,
                inner,
                base,
                i,
                j,
                apart(cells, i, j),
                step,
                sign,
                costs,
                lane.limits[x],
            ):
                continue
        elif not exchanged(
            layout,
            cells,
            first.errors,
            first.forces,
            inner,
            base,
            i,
            j,
            k,
            step,
            sign,
            costs,
            lane.limits[x],
        ):
            continue
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
def apart(cells: Any, i: Any, j: Any) -> Any:  # pragma: no cover
    """The only variable along which two cells differ."""
    v = 0
    while cells.codes[i, v] == cells.codes[j, v]:
        v += 1
    return v


@compiled
def swapped(
    layout: Any,
    cells: Any,
    errors: Any,
    forces: Any,
    inner: Any,
    base: Any,
    i: Any,
    j: Any,
    v: Any,
    step: Any,
    sign: Any,
    costs: Any,
    limit: float,
) -> bool:  # pragma: no cover
    """Swap two cells if that costs no more than ``limit``."""
    cost = np.int64(0)
    for now in range(2):
        for a in range(layout.first_node[v], layout.first_node[v + 1]):
            apart = np.int64(layout.position[a, cells.codes[j, v]])
            apart -= np.int64(layout.position[a, cells.codes[i, v]])
            if apart == 0:
                continue
            q, r = layout.entry_first[a], layout.entry_first[a + 1]
            run, table = layout.entry_run[q:r], layout.entry_table[q:r]
            stride, kind = layout.entry_stride[q:r], layout.entry_kind[q:r]
            if now == 0:
                cost += node_cost(
                    run, table, stride, kind, errors, inner, base, apart, sign, costs.rise
                )
            else:
                swap(
                    run,
                    table,
                    stride,
                    kind,
                    errors,
                    forces,
                    inner,
                    base,
                    apart,
                    step * sign,
                    costs.force,
                )
        if cost > limit:
            return False
    return True


@compiled
def exchanged(
    layout: Any,
    cells: Any,
    errors: Any,
    forces: Any,
    inner: Any,
    base: Any,
    i: Any,
    j: Any,
    k: Any,
    step: Any,
    sign: Any,
    costs: Any,
    limit: float,
) -> bool:  # pragma: no cover
    """Exchange four cells if that costs no more than ``limit``."""
    nodes = layout.variable_of.size - 1
    u, v = apart(cells, i, j), apart(cells, i, k)
    cost = np.int64(0)
    for now in range(2):
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
                run, table = layout.pair_run[q:r], layout.pair_table[q:r]
                stride, kind = layout.pair_stride[q:r], layout.pair_kind[q:r]
                if now == 0:
                    cost += pair_cost(
                        run,
                        table,
                        stride,
                        kind,
                        errors,
                        inner,
                        base,
                        apart_u,
                        apart_v,
                        sign,
                        costs.rise,
                        np.inf,
                    )
                else:
                    change_pair(
                        run,
                        table,
                        stride,
                        kind,
                        errors,
                        forces,
                        inner,
                        base,
                        apart_u,
                        apart_v,
                        step * sign,
                        costs.force,
                    )
        if cost > limit:
            return False
    return True
