"""Flows through networks, compiled: the cheapest by the primal network simplex, the largest by shortest paths.

The basis is a spanning tree hung from an extra root, to which every node has an arc of its own that costs
more than any path. The tree is kept strongly feasible (Cunningham 1976): from every node some flow could
still be sent to the root, so that no sequence of pivots without progress can run in circles. Arcs are
priced block by block, going on from where the last search ended (Ahuja, Magnanti and Orlin 1993,
chapter 11). Everything is whole numbers, so that nothing is ever nearly optimal.

Largest flows take the shortest paths first, all of one length at once (Dinic 1970). The arc ends at a node are
stored side by side: slot k of a node leads to node ``to[k]``, can carry ``room[k]`` more, and ``mate[k]`` is
the slot at the other end of its arc. ``slot[a]`` is the slot at the tail of arc a.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Whole
from lustrum.numeric.compiled import compiled, compiled_if_large

LOWER, TREE, UPPER = 1, 0, -1


@compiled
def _entering(  # pragma: no cover
    tail: Array,
    head: Array,
    cost: Array,
    state: Array,
    price: Array,
    arcs: int,
    block: int,
    cursor: Array,
) -> int:
    """The arc that is furthest from optimal in the first block that holds one, or -1 without any."""
    best, entering, left = 0, -1, block
    at = cursor[0]
    for _ in range(arcs):
        reduced = state[at] * (cost[at] + price[tail[at]] - price[head[at]])
        if reduced < best:
            best, entering = reduced, at
        at += 1
        if at == arcs:
            at = 0
        left -= 1
        if left == 0:
            if entering >= 0:
                break
            left = block
    cursor[0] = at
    return entering


@compiled
def _link(  # pragma: no cover
    node: int, above: int, parent: Array, first: Array, after: Array, before: Array
) -> None:
    parent[node] = above
    nearest = first[above]
    after[node] = nearest
    before[node] = -1
    if nearest >= 0:
        before[nearest] = node
    first[above] = node


@compiled
def _unlink(  # pragma: no cover
    node: int, parent: Array, first: Array, after: Array, before: Array
) -> None:
    if before[node] >= 0:
        after[before[node]] = after[node]
    else:
        first[parent[node]] = after[node]
    if after[node] >= 0:
        before[after[node]] = before[node]


@compiled
def _rehang(  # pragma: no cover
    inside: int,
    outside: int,
    top: int,
    arc: int,
    shift: int,
    parent: Array,
    above: Array,
    depth: Array,
    price: Array,
    first: Array,
    after: Array,
    before: Array,
) -> None:
    """Turn the part of the tree below ``top`` upside down, so that it hangs from ``outside`` by ``arc``."""
    node, new_parent, new_arc = inside, outside, arc
    while True:
        old_parent, old_arc = parent[node], above[node]
        _unlink(node, parent, first, after, before)
        _link(node, new_parent, parent, first, after, before)
        above[node] = new_arc
        if node == top:
            break
        node, new_parent, new_arc = old_parent, node, old_arc
    node = inside
    while True:
        depth[node] = depth[parent[node]] + 1
        price[node] += shift
        if first[node] >= 0:
            node = first[node]
            continue
        while node != inside and after[node] < 0:
            node = parent[node]
        if node == inside:
            break
        node = after[node]


@compiled
def network_simplex(  # pragma: no cover
    tail: Array, head: Array, capacity: Array, cost: Array, supply: Array, dear: int, endless: int
) -> Any:
    """The cheapest flow with its prices: ``(flow, price, pivots)``, with the root's arcs at the end.

    What is left on the arcs to the root, which cost ``dear`` and hold ``endless``, could not be sent.
    """
    nodes, arcs = supply.size, tail.size
    root = nodes
    state = np.full(arcs + nodes, LOWER, dtype=np.int8)
    flow = np.zeros(arcs + nodes, dtype=np.int64)
    parent = np.full(nodes + 1, root, dtype=np.int64)
    above = np.full(nodes + 1, -1, dtype=np.int64)
    depth = np.ones(nodes + 1, dtype=np.int64)
    price = np.zeros(nodes + 1, dtype=np.int64)
    first = np.full(nodes + 1, -1, dtype=np.int64)
    after = np.full(nodes + 1, -1, dtype=np.int64)
    before = np.full(nodes + 1, -1, dtype=np.int64)
    parent[root] = -1
    depth[root] = 0

    # Arcs worth their price on their own start full; the root's arcs take what is then left over.
    excess = supply.copy()
    for arc in range(arcs):
        if cost[arc] < 0:
            state[arc] = UPPER
            flow[arc] = capacity[arc]
            excess[tail[arc]] -= capacity[arc]
            excess[head[arc]] += capacity[arc]
    source = np.empty(arcs + nodes, dtype=np.int64)
    source[:arcs] = tail
    limit = np.full(arcs + nodes, endless, dtype=np.int64)
    limit[:arcs] = capacity
    for node in range(nodes):
        arc = arcs + node
        state[arc] = TREE
        above[node] = arc
        _link(node, root, parent, first, after, before)
        if excess[node] >= 0:
            source[arc], flow[arc], price[node] = node, excess[node], -dear
        else:
            source[arc], flow[arc], price[node] = root, -excess[node], dear

    block = max(int(np.sqrt(arcs)), 20)
    cursor = np.zeros(1, dtype=np.int64)
    pivots = 0
    while arcs:
        entering = _entering(tail, head, cost, state, price, arcs, block, cursor)
        if entering < 0:
            break
        pivots += 1
        # Flow is to go round: down from where the two ends meet to ``start``, over the arc, and from
        # ``end`` back up. Of the arcs that stop it, the last one on that way leaves.
        side = np.int64(state[entering])
        if side == LOWER:
            start, end = tail[entering], head[entering]
        else:
            start, end = head[entering], tail[entering]
        u, v = start, end
        room, room_up, leaving, leaving_up = capacity[entering], np.int64(endless), -1, -1
        while u != v:
            if depth[u] >= depth[v]:
                arc = above[u]
                free = flow[arc] if source[arc] == u else limit[arc] - flow[arc]
                if free < room:
                    room, leaving = free, u
                u = parent[u]
            else:
                arc = above[v]
                free = limit[arc] - flow[arc] if source[arc] == v else flow[arc]
                if free <= room_up:
                    room_up, leaving_up = free, v
                v = parent[v]
        meeting = u
        on_way_up = leaving_up >= 0 and room_up <= room
        if on_way_up:
            room, leaving = room_up, leaving_up
        if room > 0:
            flow[entering] += side * room
            u = start
            while u != meeting:
                arc = above[u]
                flow[arc] += -room if source[arc] == u else room
                u = parent[u]
            v = end
            while v != meeting:
                arc = above[v]
                flow[arc] += room if source[arc] == v else -room
                v = parent[v]
        if leaving < 0:
            state[entering] = -side
            continue
        out = above[leaving]
        state[out] = LOWER if flow[out] == 0 else UPPER
        state[entering] = TREE
        inside, outside = (end, start) if on_way_up else (start, end)
        reduced = cost[entering] + price[tail[entering]] - price[head[entering]]
        shift = -reduced if inside == tail[entering] else reduced
        _rehang(
            inside, outside, leaving, entering, shift,
            parent, above, depth, price, first, after, before,
        )  # fmt: skip
    return flow, price, pivots


@compiled_if_large
def _layers(  # pragma: no cover
    source: int, sink: int, indptr: Array, to: Array, room: Array, layer: Array, queue: Array
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
def _send(k: int, amount: Whole, mate: Array, room: Array) -> None:  # pragma: no cover
    """Use room in one direction, which adds room in the other."""
    room[k] -= amount
    room[mate[k]] += amount


@compiled_if_large
def push(  # pragma: no cover
    source: int,
    sink: int,
    limit: Whole,
    indptr: Array,
    to: Array,
    mate: Array,
    arc: Array,
    room: Array,
    flow: Array,
    work: Array,
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
    questions: Array,
    tail: Array,
    head: Array,
    slot: Array,
    indptr: Array,
    to: Array,
    mate: Array,
    arc: Array,
    room: Array,
    flow: Array,
    low: Array,
    high: Array,
    least: Array,
    most: Array,
    work: Array,
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
def reachable(source: int, indptr: Array, to: Array, room: Array) -> Any:  # pragma: no cover
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
def spanning(indptr: Array, to: Array) -> Any:  # pragma: no cover
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
