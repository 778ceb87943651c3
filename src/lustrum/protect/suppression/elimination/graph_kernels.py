"""Compiled loops for tables that are networks: cells are arcs, and an arc is disclosed where it is a bridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled


@compiled
def _root(parent: Any, node: int) -> int:  # pragma: no cover
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return int(node)


@compiled
def forests(tail: Any, head: Any, order: Any, nodes: int, most: int) -> Any:  # pragma: no cover
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


@compiled
def _path(  # pragma: no cover
    source: int,
    sink: int,
    indptr: Any,
    to: Any,
    arcs: Any,
    shown: Any,
    target: Any,
    sent: Any,
    by: Any,
    queue: Any,
) -> int:
    """Look for a path along arcs that are not shown; ``by`` takes the slots. Gives how many nodes were seen.

    A target that the first path uses can only be used back again. The number is negative if there is no path.
    """
    queue[0] = source
    by[source] = -2
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        for k in range(indptr[node], indptr[node + 1]):
            other = to[k]
            if by[other] != -1:
                continue
            arc = arcs[k] if arcs[k] >= 0 else ~arcs[k]
            if shown[arc]:
                continue
            way = 1 if arcs[k] >= 0 else -1
            if target[arc] and sent[arc] == way:
                continue
            by[other] = k
            queue[last] = other
            last += 1
            if other == sink:
                return last
    return -last


@compiled
def needed_arcs(  # pragma: no cover
    order: Any,
    target: Any,
    tail: Any,
    head: Any,
    indptr: Any,
    to: Any,
    mate: Any,
    arcs: Any,
) -> Any:
    """Show arcs in order unless a target would become a bridge; gives which are shown, and the steps taken.

    An arc must stay where every way around it leads through one and the same target. So two paths between its
    ends are looked for that share no target; all other arcs may be in both of them.
    """
    nodes = indptr.size - 1
    shown = np.zeros(tail.size, np.bool_)
    sent = np.zeros(tail.size, np.int64)
    by = np.full(nodes, -1, np.int64)
    queue = np.empty(nodes, np.int64)
    used = np.empty(nodes, np.int64)
    steps = 0
    for rank in range(order.size):
        arc = order[rank]
        source, sink = tail[arc], head[arc]
        shown[arc] = True
        if source == sink:
            continue
        count = 0
        for turn in range(2):
            seen = _path(source, sink, indptr, to, arcs, shown, target, sent, by, queue)
            has_path = seen > 0
            seen = abs(seen)
            steps += seen
            if has_path:
                node = sink
                while node != source and turn == 0:
                    k = by[node]
                    other = arcs[k] if arcs[k] >= 0 else ~arcs[k]
                    sent[other] = 1 if arcs[k] >= 0 else -1
                    used[count] = other
                    count += 1
                    node = to[mate[k]]
            for k in range(seen):
                by[queue[k]] = -1
            if not has_path:
                # No way at all: the arc is a bridge itself and protects nothing.
                shown[arc] = turn == 0
                break
        for k in range(count):
            sent[used[k]] = 0
    return shown, steps
