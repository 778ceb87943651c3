"""Sharp bounds of whole cells: branch until every leaf proves that no table goes beyond the best one."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from lustrum.audit.certificate.exact import Boxes, FactSystem, Leaf, Split
from lustrum.audit.certificate.linear import Linear, LinearOptimum
from lustrum.audit.certificate.propose import bound_leaf, empty_leaf

_NEAR = 1e-6
_DEEPEST = 500


@dataclass(frozen=True)
class BranchBudget:
    """How many branches one bound may have, and when all work must end."""

    nodes: int
    deadline: float | None = None

    @classmethod
    def of(cls, nodes: int, seconds: float | None) -> BranchBudget:
        """A budget that starts now."""
        return cls(nodes, None if seconds is None else time.monotonic() + seconds)

    @property
    def left(self) -> float | None:
        """The seconds that are left."""
        return None if self.deadline is None else self.deadline - time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        left = self.left
        return left is not None and left <= 0


@dataclass(frozen=True)
class Grown:
    """A branch tree, node after node, and the bound that all its leaves prove; None if all are empty."""

    proof: tuple[Leaf | Split, ...]
    shown: Fraction | None


@dataclass(eq=False)
class _Node:
    boxes: Boxes
    depth: int
    leaf: Leaf
    shown: Fraction | None
    point: npt.NDArray[np.float64] | None = None
    split: Split | None = None
    sides: list[_Node] = field(default_factory=list)


def grow(
    linear: Linear,
    cell: int,
    sign: int,
    root: tuple[Leaf, Fraction, LinearOptimum],
    meet: Callable[[LinearOptimum], Fraction | int | None],
    best: Fraction | int | None,
    budget: BranchBudget,
) -> Grown:
    """Branch on the side with the weakest bound, until it proves what the best table reaches.

    ``meet`` looks at a point that the solver found and returns ``sign`` times the cell in the best table
    known by then. When the budget is spent, the tree proves a weaker bound.
    """
    system = linear.system
    leaf, shown, optimum = root
    top = _Node({}, 0, leaf, shown, optimum.point)
    order = itertools.count()
    waiting: list[tuple[Fraction, int, _Node]] = [(shown, next(order), top)]
    nodes = 1
    while waiting and nodes < budget.nodes and not budget.over:
        least, _, node = heapq.heappop(waiting)
        if best is not None and least >= best:
            break
        node.split = _where(system, node)
        if node.split is None:
            break  # the weakest leaf cannot be improved further
        for box in _halves(system, node, node.split):
            boxes = {**node.boxes, node.split.cell: box}
            side, optimum = _side(linear, cell, sign, node, boxes, best, budget)
            nodes += 1
            node.sides.append(side)
            if optimum.ended == "optimal":
                value = meet(optimum)
                best = value if best is None or (value is not None and value < best) else best
            if side.shown is not None and (best is None or side.shown < best):
                heapq.heappush(waiting, (side.shown, next(order), side))
    return _flat(top)


def _side(
    linear: Linear,
    cell: int,
    sign: int,
    parent: _Node,
    boxes: Boxes,
    best: Fraction | int | None,
    budget: BranchBudget,
) -> tuple[_Node, LinearOptimum]:
    """One side of a split with the bound proven for it, which is at least as strong as its parent's."""
    system = linear.system
    optimum = linear.minimise(cell, sign, boxes, budget.left)
    if optimum.ended == "infeasible":
        empty = empty_leaf(system, boxes)
        if empty is not None:
            return _Node(boxes, parent.depth + 1, empty, None), optimum
    leaf, shown = bound_leaf(system, optimum, cell, sign, boxes, best, parent.leaf)
    return _Node(boxes, parent.depth + 1, leaf, shown, optimum.point), optimum


def _where(system: FactSystem, node: _Node) -> Split | None:
    """The cell that is furthest from a whole number, if one is."""
    if node.point is None or node.depth >= _DEEPEST:
        return None
    away = np.abs(node.point - np.round(node.point))
    cell = int(np.argmax(away))
    if away[cell] <= _NEAR:
        return None
    split = Split(cell, int(np.floor(node.point[cell])))
    low, high = node.boxes.get(cell, system.boxes[cell])
    inside = (low is None or split.at >= low) and (high is None or split.at < high)
    return split if inside else None


def _halves(
    system: FactSystem, node: _Node, split: Split
) -> tuple[tuple[int | None, int], tuple[int, int | None]]:
    low, high = node.boxes.get(split.cell, system.boxes[split.cell])
    return (low, split.at), (split.at + 1, high)


def _flat(top: _Node) -> Grown:
    proof: list[Leaf | Split] = []
    least: Fraction | None = None
    stack = [top]
    while stack:
        node = stack.pop()
        if node.split is not None and node.sides:
            proof.append(node.split)
            stack += reversed(node.sides)
            continue
        proof.append(node.leaf)
        if node.shown is not None:
            least = node.shown if least is None else min(least, node.shown)
    return Grown(tuple(proof), least)
