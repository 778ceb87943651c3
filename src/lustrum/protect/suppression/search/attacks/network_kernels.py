"""Compiled loops for attacks on tables that are networks: flows that move a cell, cuts that stop them.

Cells are arcs. Raising cell p by its level sends that much along p, and all of it must flow back from the head
of p to its tail through suppressed cells: forwards as far as a cell can rise, backwards as far as it can
fall. Where less flows back, the nodes that can be reached give a cut. Capacities are whole numbers: a level
is :data:`UNIT`, so that no rounding error decides.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.compiled import compiled, compiled_if_large
from lustrum.numeric.solve.network_kernels import push, reachable

UNIT = 2**30


@compiled_if_large
def _open_slots(
    cell: int, level: float, x: Array, up: Array, down: Array, arcs: Array, room: Array
) -> None:  # pragma: no cover
    """Room of every slot for an attack on one cell, in units of its level; the cell itself is closed."""
    for k in range(arcs.size):
        arc = arcs[k]
        forth = arc >= 0
        a = arc if forth else ~arc
        if a == cell or x[a] <= 0.0:
            room[k] = 0
            continue
        part = (up[a] if forth else down[a]) / level
        if part > 1.0:
            part = 1.0
        room[k] = np.int64(part * x[a] * UNIT + 0.5)


@compiled_if_large
def flows_back(
    cells: Array,
    signs: Array,
    levels: Array,
    x: Array,
    up: Array,
    down: Array,
    tail: Array,
    head: Array,
    indptr: Array,
    to: Array,
    mate: Array,
    arcs: Array,
    witness: Array,
) -> Any:  # pragma: no cover
    """How much of its level each cell can move, in units; ``witness`` takes the cells that moved."""
    out = np.zeros(cells.size, np.int64)
    room = np.zeros(to.size, np.int64)
    start = np.zeros(to.size, np.int64)
    flow = np.zeros(tail.size, np.int64)
    work = np.zeros((4, indptr.size - 1), np.int64)
    for t in range(cells.size):
        cell = cells[t]
        if signs[t] > 0:
            source, sink = head[cell], tail[cell]
        else:
            source, sink = tail[cell], head[cell]
        if source == sink:
            share = (up[cell] if signs[t] > 0 else down[cell]) / levels[t]
            out[t] = np.int64(min(share, 1.0) * UNIT)
            continue
        _open_slots(cell, levels[t], x, up, down, arcs, room)
        start[:] = room
        share = (up[cell] if signs[t] > 0 else down[cell]) / levels[t]
        limit = np.int64(min(share, 1.0) * UNIT)
        out[t] = push(source, sink, limit, indptr, to, mate, arcs, room, flow, work)
        if witness.shape[0] > 0:
            for k in range(arcs.size):
                if room[k] != start[k]:
                    witness[t, arcs[k] if arcs[k] >= 0 else ~arcs[k]] = True
    return out


@compiled_if_large
def separating_sides(
    cells: Array,
    signs: Array,
    levels: Array,
    x: Array,
    up: Array,
    down: Array,
    tail: Array,
    head: Array,
    indptr: Array,
    to: Array,
    mate: Array,
    arcs: Array,
    nested: int,
    tolerance: int,
) -> Any:  # pragma: no cover
    """Cuts that too little flows across: the attack of each, and on which side every node is.

    After a cut is found, its cells are opened as if they were suppressed, and another cut is looked for
    behind it; cells that occur in several cuts of one attack are what the master can use best.
    """
    nodes = indptr.size - 1
    most = cells.size * nested * 2
    which = np.zeros(most, np.int64)
    sides = np.zeros((most, nodes), np.bool_)
    reach = np.zeros(cells.size, np.int64)
    count = 0
    room = np.zeros(to.size, np.int64)
    flow = np.zeros(tail.size, np.int64)
    work = np.zeros((4, nodes), np.int64)
    back = np.zeros(to.size, np.int64)
    for t in range(cells.size):
        cell = cells[t]
        if signs[t] > 0:
            source, sink = head[cell], tail[cell]
        else:
            source, sink = tail[cell], head[cell]
        if source == sink:
            share = (up[cell] if signs[t] > 0 else down[cell]) / levels[t]
            reach[t] = np.int64(min(share, 1.0) * UNIT)
            continue
        _open_slots(cell, levels[t], x, up, down, arcs, room)
        share = (up[cell] if signs[t] > 0 else down[cell]) / levels[t]
        limit = np.int64(min(share, 1.0) * UNIT)
        sent = push(source, sink, limit, indptr, to, mate, arcs, room, flow, work)
        reach[t] = sent
        for turn in range(nested):
            if sent >= limit - tolerance:
                break
            near = reachable(source, indptr, to, room)
            which[count] = t
            sides[count, :] = near
            count += 1
            # The cut nearest to the sink: all that cannot reach it.
            for k in range(to.size):
                back[k] = room[mate[k]]
            far = reachable(sink, indptr, to, back)
            same = True
            for node in range(nodes):
                if far[node] == near[node]:
                    same = False
                    break
            if not same:
                which[count] = t
                for node in range(nodes):
                    sides[count, node] = not far[node]
                count += 1
            if turn + 1 == nested:
                break
            for k in range(to.size):
                arc = arcs[k]
                a = arc if arc >= 0 else ~arc
                if a == cell:
                    continue
                node = to[mate[k]]
                if near[node] and not near[to[k]]:
                    part = (up[a] if arc >= 0 else down[a]) / levels[t]
                    full = np.int64(min(part, 1.0) * UNIT + 0.5)
                    if full > room[k]:
                        room[k] = full
            sent += push(source, sink, limit - sent, indptr, to, mate, arcs, room, flow, work)
    return reach, which[:count], sides[:count]


@compiled_if_large
def cheapest_return(
    cell: int,
    sign: int,
    level: float,
    cost: Array,
    allowed: Array,
    up: Array,
    down: Array,
    tail: Array,
    head: Array,
    indptr: Array,
    to: Array,
    mate: Array,
    arcs: Array,
    used: Array,
) -> bool:  # pragma: no cover
    """Send the level of a cell back along cheapest paths; ``used`` takes the cells. False where it fails.

    A cell costs its cost once, and nothing when it is used again; one that can carry only a part of the level
    counts as if that part were all, so that a full one is preferred.
    """
    room = np.zeros(to.size, np.int64)
    nodes = indptr.size - 1
    if sign > 0:
        source, sink = head[cell], tail[cell]
    else:
        source, sink = tail[cell], head[cell]
    used[:] = False
    if source == sink:
        return bool((up[cell] if sign > 0 else down[cell]) >= level)
    if (up[cell] if sign > 0 else down[cell]) < level:
        return False
    one = np.ones(tail.size, np.float64)
    for a in range(tail.size):
        if not allowed[a]:
            one[a] = 0.0
    _open_slots(cell, level, one, up, down, arcs, room)
    left = np.int64(UNIT)
    far = np.empty(nodes, np.float64)
    by = np.empty(nodes, np.int64)
    done = np.empty(nodes, np.bool_)
    while left > 0:
        far[:] = np.inf
        done[:] = False
        by[:] = -1
        far[source] = 0.0
        heap = [(0.0, np.int64(source))]
        while len(heap) > 0:
            d, node = heapq.heappop(heap)
            if done[node]:
                continue
            done[node] = True
            if node == sink:
                break
            for k in range(indptr[node], indptr[node + 1]):
                if room[k] <= 0 or done[to[k]]:
                    continue
                a = arcs[k] if arcs[k] >= 0 else ~arcs[k]
                step = 0.0
                if not used[a] and cost[a] > 0.0:
                    share = room[k] / left
                    step = cost[a] if share >= 1.0 else cost[a] / share
                # A hair for each step prefers short ways among equals.
                step += 1e-6
                if d + step < far[to[k]]:
                    far[to[k]] = d + step
                    by[to[k]] = k
                    heapq.heappush(heap, (d + step, np.int64(to[k])))
        if by[sink] < 0:
            return False
        amount = left
        node = sink
        while node != source:
            k = by[node]
            amount = min(amount, room[k])
            node = to[mate[k]]
        node = sink
        while node != source:
            k = by[node]
            room[k] -= amount
            room[mate[k]] += amount
            a = arcs[k] if arcs[k] >= 0 else ~arcs[k]
            used[a] = True
            node = to[mate[k]]
        left -= amount
    return True


@compiled
def _root(parent: Array, node: int) -> int:  # pragma: no cover
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return int(node)


@compiled
def forests(
    tail: Array, head: Array, order: Array, nodes: int, most: int
) -> Any:  # pragma: no cover
    """Put arcs in order into the first of ``most`` forests in which they close no cycle; gives its number.

    An arc that closes a cycle in all of them gets ``most``.
    """
    parent = np.empty((most, nodes), np.int64)
    for layer in range(most):
        for node in range(nodes):
            parent[layer, node] = node
    out = np.full(order.size, most, np.int64)
    for rank in range(order.size):
        a, b = tail[order[rank]], head[order[rank]]
        for layer in range(most):
            one, other = _root(parent[layer], a), _root(parent[layer], b)
            if one != other:
                parent[layer, one] = other
                out[rank] = layer
                break
    return out
