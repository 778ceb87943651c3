"""Maximum flows, compiled: the shortest paths first, all of one length at once (Dinic 1970).

The arc ends at a node are stored side by side: slot k of a node leads to node ``to[k]``, can carry
``room[k]`` more, and ``mate[k]`` is the slot at the other end of its arc. ``slot[a]`` is the slot at the
tail of arc a.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled_if_large


@compiled_if_large
def _layers(  # pragma: no cover
    source: int, sink: int, indptr: Any, to: Any, room: Any, layer: Any, queue: Any
) -> bool:
    """The distance of every node from the source, up to the sink; returns whether the sink can be reached."""
    layer[:] = -1
    layer[source] = 0
    queue[0] = source
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        beyond = layer[node] + 1
        for k in range(indptr[node], indptr[node + 1]):
            other = to[k]
            if room[k] > 0 and layer[other] < 0:
                layer[other] = beyond
                if other == sink:
                    return True
                queue[last] = other
                last += 1
    return False


@compiled_if_large
def _send(k: int, amount: Any, mate: Any, room: Any) -> None:  # pragma: no cover
    """Use room in one direction, which adds room in the other."""
    room[k] -= amount
    room[mate[k]] += amount


@compiled_if_large
def push(  # pragma: no cover
    source: int,
    sink: int,
    limit: Any,
    indptr: Any,
    to: Any,
    mate: Any,
    arc: Any,
    room: Any,
    flow: Any,
    work: Any,
) -> Any:
    """Send as much as possible, up to a limit. Every room is finite: see ``_LARGEST`` of the network.

    ``arc[k]`` is the arc of a slot, and its complement at the arc's head.
    """
    layer, queue, turn, path = work[0], work[1], work[2], work[3]
    sent = np.int64(0)
    while sent < limit and _layers(source, sink, indptr, to, room, layer, queue):
        depth = layer[sink]
        for node in range(turn.size):
            turn[node] = indptr[node]
        node, length = source, 0
        while True:
            if node == sink:
                amount = limit - sent
                for step in range(length):
                    amount = min(amount, room[path[step]])
                sent += amount
                back = length
                for step in range(length - 1, -1, -1):
                    k = path[step]
                    _send(k, amount, mate, room)
                    if arc[k] >= 0:
                        flow[arc[k]] += amount
                    else:
                        flow[~arc[k]] -= amount
                    if room[k] == 0:
                        back = step
                if sent >= limit:
                    return sent
                # Go on from where the first arc is full.
                length = back
                node = to[mate[path[back]]]
                continue
            can_advance = False
            if length < depth:
                beyond, end = layer[node] + 1, indptr[node + 1]
                k = turn[node]
                while k < end:
                    if room[k] > 0 and layer[to[k]] == beyond:
                        can_advance = True
                        break
                    k += 1
                turn[node] = k
            if can_advance:
                path[length] = k
                length += 1
                node = to[k]
                continue
            if length == 0:
                break
            layer[node] = -1
            length -= 1
            node = to[mate[path[length]]]
            turn[node] += 1
    return sent


@compiled_if_large
def settle(  # pragma: no cover
    questions: Any,
    tail: Any,
    head: Any,
    slot: Any,
    indptr: Any,
    to: Any,
    mate: Any,
    arc: Any,
    room: Any,
    flow: Any,
    low: Any,
    high: Any,
    least: Any,
    most: Any,
    work: Any,
) -> int:
    """Move every cell that is asked for to its bound; each flow on the way counts for all cells.

    Afterwards ``low`` or ``high`` is that end, and ``least`` or ``most`` has reached it.
    """
    flows = 0
    for question in questions:
        cell, upper = question >> 1, question & 1
        if (upper and most[cell] >= high[cell]) or (not upper and least[cell] <= low[cell]):
            continue
        # The cell's own arc is closed while the rest of the network carries its flow back.
        forth = slot[cell]
        back = mate[forth]
        up, down = room[forth], room[back]
        room[forth], room[back] = 0, 0
        if upper:
            sent = push(head[cell], tail[cell], up, indptr, to, mate, arc, room, flow, work)
            flow[cell] += sent
            high[cell] = flow[cell]
            up, down = 0, down + sent
        else:
            sent = push(tail[cell], head[cell], down, indptr, to, mate, arc, room, flow, work)
            flow[cell] -= sent
            low[cell] = flow[cell]
            up, down = up + sent, 0
        room[forth], room[back] = up, down
        flows += 1
        for c in range(least.size):
            least[c] = min(least[c], flow[c])
            most[c] = max(most[c], flow[c])
    return flows


@compiled_if_large
def reachable(source: int, indptr: Any, to: Any, room: Any) -> Any:  # pragma: no cover
    """The nodes that flow from the source can reach."""
    seen = np.zeros(indptr.size - 1, np.bool_)
    queue = np.empty(indptr.size - 1, np.int64)
    seen[source] = True
    queue[0] = source
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        for k in range(indptr[node], indptr[node + 1]):
            if not seen[to[k]] and room[k] > 0:
                seen[to[k]] = True
                queue[last] = to[k]
                last += 1
    return seen


@compiled_if_large
def spanning(indptr: Any, to: Any) -> Any:  # pragma: no cover
    """Nodes in search order, part by part, and the slot that led to each; -1 for the first of a part."""
    nodes = indptr.size - 1
    order, by = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    seen = np.zeros(nodes, np.bool_)
    last = 0
    for root in range(nodes):
        if seen[root]:
            continue
        seen[root] = True
        order[last], by[last] = root, -1
        first = last
        last += 1
        while first < last:
            node = order[first]
            first += 1
            for k in range(indptr[node], indptr[node + 1]):
                if not seen[to[k]]:
                    seen[to[k]] = True
                    order[last], by[last] = to[k], k
                    last += 1
    return order, by
