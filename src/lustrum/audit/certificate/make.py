"""Make a certificate: for every bound, a table that reaches it and a proof that no table goes beyond."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

import numpy as np

from lustrum.audit.certificate.document import Certificate, Claim, End
from lustrum.audit.certificate.exact import Boxes, FactSystem, Leaf, Split, WitnessTable
from lustrum.audit.certificate.linear import (
    Linear,
    LinearOptimum,
    bound_leaf,
    empty_leaf,
    tables_near,
    whole_table,
)
from lustrum.audit.knowledge.facts import CellRef, ContradictionError, Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Floats
from lustrum.model.errors import kind_of

# Sharp bounds of whole cells: branch until every leaf proves that no table goes beyond the best one.


_NEAR = 1e-6
_DEEPEST = 500


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
    point: Floats | None = None
    split: Split | None = None
    sides: list[_Node] = field(default_factory=list)


def grow(
    linear: Linear,
    cell: int,
    sign: int,
    root: tuple[Leaf, Fraction, LinearOptimum],
    meet: Callable[[LinearOptimum], Fraction | int | None],
    best: Fraction | int | None,
    most: int,
) -> Grown:
    """Branch on the side with the weakest bound, until it proves what the best table reaches.

    ``meet`` looks at a point that the solver found and returns ``sign`` times the cell in the best table
    known by then. A tree of ``most`` nodes proves a weaker bound.
    """
    system = linear.system
    leaf, shown, optimum = root
    top = _Node({}, 0, leaf, shown, optimum.point)
    order = itertools.count()
    waiting: list[tuple[Fraction, int, _Node]] = [(shown, next(order), top)]
    nodes = 1
    while waiting and nodes < most:
        least, _, node = heapq.heappop(waiting)
        if best is not None and least >= best:
            break
        node.split = _where(system, node)
        if node.split is None:
            break  # the weakest leaf cannot be improved further
        for box in _halves(system, node, node.split):
            boxes = {**node.boxes, node.split.cell: box}
            side, optimum = _side(linear, cell, sign, node, boxes, best)
            nodes += 1
            node.sides.append(side)
            if optimum.ended == "optimal":
                value = meet(optimum)
                best = value if best is None or (value is not None and value < best) else best
            if side.shown is not None and (best is None or side.shown < best):
                heapq.heappush(waiting, (side.shown, next(order), side))
    return _flat(top)


def _side(
    linear: Linear, cell: int, sign: int, parent: _Node, boxes: Boxes, best: Fraction | int | None
) -> tuple[_Node, LinearOptimum]:
    """One side of a split with the bound proven for it, which is at least as strong as its parent's."""
    system = linear.system
    optimum = linear.minimise(cell, sign, boxes)
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


_NOTHING = Leaf(1, ())  # no multipliers: the cell's own bound


def certify(
    known: Knowledge,
    cells: Iterable[CellRef] | slice | None = None,
    *,
    nodes: int = 500,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """Prove the range of the given cells, or of all.

    The proofs of whole cells are sharp in whole numbers. A proof may have this many ``nodes`` of branching,
    after which a claim states the bound that has been proven, and that it is not sharp. ``progress`` receives
    the number of cells done and the number of all.

    >>> known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 7, 7).bound("y", high=5)
    >>> made = certify(known, ["x"])
    >>> made.claims[0].low.value, made.claims[0].low.proof
    (Fraction(2, 1), (Leaf(over=1, facts=((0, 1),), empty=False),))
    """
    if not isinstance(known, Knowledge):
        raise InputError(
            f"A certificate is of Knowledge, not of {kind_of(known)}; 'from_tables' and 'from_release' make it."
        )
    picks = _picked(known, cells)
    maker = _Maker(FactSystem.of(known), picks, nodes)
    claims = []
    for done, cell in enumerate(picks):
        claims.append(Claim(cell, maker.end(cell, 1), maker.end(cell, -1)))
        if progress is not None:
            progress(done + 1, len(picks))
    return _tidy(maker.system, claims, maker.tables, maker.rays)


def _picked(known: Knowledge, cells: Iterable[CellRef] | slice | None) -> list[int]:
    if cells is None or isinstance(cells, slice):
        return list(range(len(known))[cells if cells is not None else slice(None)])
    return list(dict.fromkeys(known.cell(c) for c in cells))


class _Maker:
    """The solver, and the tables and rays found so far."""

    def __init__(self, system: FactSystem, cells: list[int], nodes: int) -> None:
        self.system, self.cells, self.most = system, cells, nodes
        self.linear = Linear(system)
        self.cone: Linear | None = None
        self._nodes = 5 * nodes  # nodes of the solver are cheaper than nodes of a proof
        self._tried = False
        self.tables: list[WitnessTable] = []
        self.rays: list[tuple[int, ...]] = []
        self._holder: dict[tuple[int, Fraction | int], int] = {}
        self._best: dict[tuple[int, int], Fraction | int] = {}

    def end(self, cell: int, sign: int) -> End:
        box_bound = self.system.shown(_NOTHING, cell, sign, {})
        if box_bound is not None and self._reached(cell, sign, box_bound) is not None:
            return self._made(cell, sign, box_bound, (_NOTHING,))
        optimum = self.linear.minimise(cell, sign, {})
        if optimum.ended == "infeasible" and empty_leaf(self.system, {}) is not None:
            self._contradicted(cell)
        if optimum.ended == "unbounded" and box_bound is None:
            return self._endless(cell, sign)
        if not self._settled(cell, sign, optimum):
            self._meet(optimum)
        target = None if self.system.whole else self._best.get((cell, sign))
        leaf, shown = bound_leaf(self.system, optimum, cell, sign, {}, target, _NOTHING)
        proof: tuple[Leaf | Split, ...] = (leaf,)
        if shown is not None and self.system.whole and self._reached(cell, sign, shown) is None:
            proof, shown = self._branched(cell, sign, (leaf, shown, optimum))
        return self._made(cell, sign, shown, proof)

    def _settled(self, cell: int, sign: int, optimum: LinearOptimum) -> bool:
        """Whether a table found before reaches the solver's optimum, so that no other is needed."""
        best = self._best.get((cell, sign))
        return self.system.whole and best is not None and best <= ceil(optimum.value - _NEAR)

    def _branched(
        self, cell: int, sign: int, root: tuple[Leaf, Fraction, LinearOptimum]
    ) -> tuple[tuple[Leaf | Split, ...], Fraction]:
        values = whole_table(self.system, cell, sign, self._nodes)
        if values is not None:
            self._add(WitnessTable(1, values))
        best = self._best.get((cell, sign))
        leaf, shown, optimum = root
        if optimum.ended != "optimal" or best == shown:
            return (leaf,), shown

        def meet(optimum: LinearOptimum) -> Fraction | int | None:
            self._meet(optimum)
            return self._best.get((cell, sign))

        grown = grow(self.linear, cell, sign, root, meet, best, self.most)
        if grown.shown is None:
            self._contradicted(cell)
        elif grown.shown > shown:
            return grown.proof, grown.shown
        return (leaf,), shown

    def _endless(self, cell: int, sign: int) -> End:
        """An infinite end: a table, and a direction in which it can be changed without limit."""
        self.cone = self.cone or Linear(self.system.cone)
        cone = self.system.cone
        optimum = self.cone.minimise(cell, sign, {})
        for table in tables_near(cone, optimum, {}):
            if sign * table.values[cell] < 0 and cone.fits(table):
                if not self.tables:
                    self._any_table(cell, sign)
                if not self.tables:
                    break
                if table.values not in self.rays:
                    self.rays.append(table.values)
                return End(None, True, 0, self.rays.index(table.values))
        return End(None, False)

    def _any_table(self, cell: int, sign: int) -> None:
        """Some table: the one that reaches the other end of the cell, or any that the solver finds."""
        self._meet(self.linear.minimise(cell, -sign, {}))
        if not self.tables and self.system.whole and not self._tried:
            self._tried = True
            bounded = replace(self.system, boxes=_near_zero(self.system))
            values = whole_table(bounded, cell, sign, self._nodes)
            if values is not None:
                self._add(WitnessTable(1, values))

    def _meet(self, optimum: LinearOptimum) -> None:
        """Keep the solver's point if it is a feasible table."""
        for table in tables_near(self.system, optimum, {}):
            if self._add(table):
                return

    def _add(self, table: WitnessTable) -> bool:
        if not self.system.fits(table):
            return False
        number = len(self.tables)
        self.tables.append(table)
        for cell in self.cells:
            value = table.value(cell)
            self._holder.setdefault((cell, value), number)
            for sign in (1, -1):
                if sign * value < self._best.get((cell, sign), sign * value + 1):
                    self._best[cell, sign] = sign * value
        return True

    def _reached(self, cell: int, sign: int, shown: Fraction) -> int | None:
        return self._holder.get((cell, sign * shown))

    def _made(
        self, cell: int, sign: int, shown: Fraction | None, proof: tuple[Leaf | Split, ...]
    ) -> End:
        if shown is None:
            return End(None, False)
        table = self._reached(cell, sign, shown)
        return End(sign * shown, table is not None, table, None, proof)

    def _contradicted(self, cell: int) -> None:
        raise ContradictionError(
            "The published cells contradict each other: no table fits all that is known about "
            f"{self.system.names[cell]}."
        )


def _near_zero(system: FactSystem, reach: int = 10**6) -> tuple[tuple[int | None, int | None], ...]:
    """Boxes that keep an unbounded search near zero."""
    return tuple(
        (-reach if low is None else low, max(reach, low or 0) if high is None else high)
        for low, high in system.boxes
    )


def _tidy(
    system: FactSystem, claims: list[Claim], tables: list[WitnessTable], rays: list[tuple[int, ...]]
) -> Certificate:
    """Keep the tables that a claim needs, and at least one, which proves that a table exists."""
    ends = [end for claim in claims for end in (claim.low, claim.high)]
    used = sorted({end.table for end in ends if end.table is not None}) or [0][: len(tables)]
    number = {old: new for new, old in enumerate(used)}

    def moved(end: End) -> End:
        return end if end.table is None else replace(end, table=number[end.table])

    return Certificate(
        system,
        tuple(Claim(c.cell, moved(c.low), moved(c.high)) for c in claims),
        tuple(tables[old] for old in used),
        tuple(rays),
    )
