"""Flows of least cost through a network: whole numbers in, whole numbers out, and a proof.

Minimise the sum of ``cost * flow`` over all flows with ``0 <= flow <= capacity`` on every arc, where what
leaves a node less what enters it is the node's supply. With whole supplies and capacities some cheapest
flow is whole (Hoffman and Kruskal 1956); the network simplex finds such a one without any rounding error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.numeric.solve.network_kernels import network_simplex
from lustrum.numeric.solve.problem import Outcome

# The largest number that may turn up on the way: prices and flows are sums of a few such.
_LARGEST = 2**60


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs from ``tail`` to ``head`` with whole capacities and costs, and the supply of every node.

    Arcs may be parallel, run in circles or begin where they end. A negative supply is a demand. What
    flows is bounded by the capacities, so that no cost, however negative, makes the minimum endless.
    """

    tail: Ints
    head: Ints
    capacity: Ints
    cost: Ints
    supply: Ints

    def __post_init__(self) -> None:
        for name in ("tail", "head", "capacity", "cost", "supply"):
            given = np.asarray(getattr(self, name))
            if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
                raise ValueError(f"{name} must be a vector of whole numbers.")
            array = given.astype(np.int64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        sizes = {name: getattr(self, name).size for name in ("tail", "head", "capacity", "cost")}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"Every arc needs a tail, a head, a capacity and a cost, not {sizes}.")
        if not self.tail.size:
            return
        ends = np.concatenate((self.tail, self.head))
        if int(ends.min()) < 0 or int(ends.max()) >= self.supply.size:
            raise ValueError(f"The ends of arcs are nodes from 0 to {self.supply.size - 1}.")
        if int(self.capacity.min()) < 0:
            raise ValueError("A capacity is 0 or more.")

    def __repr__(self) -> str:
        return f"Network({self.supply.size} nodes, {self.tail.size} arcs)"

    def reduced_costs(self, potentials: Ints) -> Ints:
        """What each arc costs beyond the difference of the potentials at its ends."""
        return self.cost + potentials[self.tail] - potentials[self.head]

    def balanced(self, flow: Ints) -> bool:
        """Does the flow keep to the capacities, and does every node send on what it must?"""
        sent = np.zeros(self.supply.size, dtype=np.int64)
        np.add.at(sent, self.tail, flow)
        np.subtract.at(sent, self.head, flow)
        inside = (flow >= 0) & (flow <= self.capacity)
        return bool(inside.all() and np.array_equal(sent, self.supply))

    def proven(self, flow: Ints, potentials: Ints) -> bool:
        """Do the potentials prove that no flow costs less?

        They do where every arc that costs too much is empty and every one that costs too little is full.
        """
        reduced = self.reduced_costs(potentials)
        empty_or_cheap = (reduced <= 0) | (flow == 0)
        full_or_dear = (reduced >= 0) | (flow == self.capacity)
        return self.balanced(flow) and bool((empty_or_cheap & full_or_dear).all())


@dataclass(frozen=True, eq=False)
class NetworkFlow:
    """The end of a search: a flow of least cost with the potentials that prove it, or none at all."""

    outcome: Outcome
    flow: Ints | None = None
    potentials: Ints | None = None
    cost: int = 0
    steps: int = 0


def cheapest_flow(network: Network) -> NetworkFlow:
    """The flow of least cost, always the same one for the same network, or that there is no flow.

    >>> ways = Network(tail=[0, 0, 1], head=[1, 2, 2], capacity=[2, 2, 2], cost=[1, 5, 1], supply=[3, 0, -3])
    >>> found = cheapest_flow(ways)
    >>> found.flow.tolist(), found.cost, ways.proven(found.flow, found.potentials)
    ([2, 1, 2], 9, True)
    """
    nodes = network.supply.size
    steepest = max((abs(int(c)) for c in _ends(network.cost)), default=0)
    dear = (nodes + 1) * steepest + 1
    moved = _total(network.capacity) + _total(np.abs(network.supply))
    if 4 * dear > _LARGEST or moved > _LARGEST:
        raise ValueError(
            "The costs times the nodes, or the capacities in all, are above 2**58 or 2**60: "
            "too large to be added up in 64 bits."
        )
    if _total(network.supply):
        return NetworkFlow(Outcome.INFEASIBLE)
    flow, price, steps = network_simplex(
        network.tail,
        network.head,
        network.capacity,
        network.cost,
        network.supply,
        dear,
        2 * _LARGEST,
    )
    arcs = network.tail.size
    if bool(flow[arcs:].any()):
        return NetworkFlow(Outcome.INFEASIBLE, steps=int(steps))
    flow = flow[:arcs]
    return NetworkFlow(
        Outcome.OPTIMAL, flow, price[:nodes], _product(network.cost, flow), int(steps)
    )


def _ends(values: Ints) -> tuple[int, ...]:
    return (int(values.min()), int(values.max())) if values.size else ()


def _total(values: Ints) -> int:
    """The sum, however large."""
    high, low = values >> 32, values & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())


def _product(cost: Ints, flow: Ints) -> int:
    """The sum of the products, however large."""
    most = float((np.abs(cost).astype(np.float64) * flow).sum())
    if most < _LARGEST:
        return int(cost @ flow)
    return sum(int(c) * int(f) for c, f in zip(cost, flow, strict=True))


def slots(tail: Ints, head: Ints, nodes: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """The arc ends, node by node: where they lead, their mates, their arcs, and the slot of each arc."""
    arcs = np.arange(tail.size, dtype=np.int64)
    near, far = np.concatenate([tail, head]), np.concatenate([head, tail])
    order = np.argsort(near, kind="stable")
    slot = np.empty(order.size, dtype=np.int64)
    slot[order] = np.arange(order.size)
    mate = np.concatenate([slot[tail.size :], slot[: tail.size]])
    arc = np.concatenate([arcs, ~arcs])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(near, minlength=nodes))]).astype(np.int64)
    return indptr, far[order], mate[order], arc[order], slot[: tail.size]


def adjacency(tail: Ints, head: Ints, arcs: Ints, nodes: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The ends of some arcs, node by node: where they lead, their mates, and their arcs."""
    indptr, to, mate, end_index, _ = slots(tail[arcs], head[arcs], nodes)
    signed_arcs = np.concatenate([arcs, ~arcs[::-1]])  # ~k counts from the end
    return indptr, to, mate, signed_arcs[end_index]
