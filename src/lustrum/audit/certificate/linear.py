"""The solver that proposes proofs; other modules check its proposals in exact arithmetic.

Several proofs are usually as good, and which of them a solver meets depends on its way, which differs between
processors. So a program with small irregular costs and slightly wider ends, which has one optimum, chooses the
basis, and the answer is what this basis gives for the facts themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from scipy import sparse

from lustrum.audit.certificate.exact import (
    Boxes,
    Ends,
    FactSystem,
    Leaf,
    WitnessTable,
    as_leaf,
    table_of,
)
from lustrum.model.arrays import Floats
from lustrum.numeric.solve.highs import DUAL, FINE, PRIMAL, Limits, Program, single_optimum

_LOOKS = 20  # how often a search may look at its limits for each node that it is allowed
_COST, _WIDER = 2.0**-14, 2.0**-10  # of small costs, and of how much wider ends are
_EXACT = 2.0**53  # floats cannot hold every whole number beyond this


@dataclass(frozen=True, eq=False)
class LinearOptimum:
    """An optimum as floats, with its basis; ``ended`` says how the solver ended."""

    ended: str  # optimal, infeasible, unbounded or unknown
    value: float = 0.0
    point: Floats | None = None
    multipliers: Floats | None = None
    cells: tuple[int, ...] = ()
    cell_status: tuple[str, ...] = ()
    fact_status: tuple[str, ...] = ()

    @property
    def basic_cells(self) -> list[int]:
        return [c for c, s in zip(self.cells, self.cell_status, strict=True) if s == "basic"]

    @property
    def upper_cells(self) -> frozenset[int]:
        pairs = zip(self.cells, self.cell_status, strict=True)
        return frozenset(c for c, s in pairs if s == "upper")

    @property
    def tight_facts(self) -> list[tuple[int, int]]:
        at_end = ("lower", "upper")
        return [(i, int(s == "upper")) for i, s in enumerate(self.fact_status) if s in at_end]


class Linear:
    """One model of the open cells for all questions; each starts from the previous answer."""

    def __init__(self, system: FactSystem) -> None:
        self.system = system
        self._column = {cell: number for number, cell in enumerate(system.open)}
        self._program = _program(system.reduced)
        self._single = _program(system.reduced, wider=_WIDER)
        self._single.set(dual_feasibility_tolerance=FINE, primal_feasibility_tolerance=FINE)
        self._irregular = _irregular(system.reduced)[0]
        self._ends = self._program.low, self._program.high

    def minimise(self, cell: int, sign: int, boxes: Boxes) -> LinearOptimum:
        """The minimum of ``sign`` times one cell, within the boxes of a branch."""
        if not self._column:
            return self._given(cell, sign)
        cost, (low, high) = np.zeros(self._irregular.size), (end.copy() for end in self._ends)
        if cell in self._column:
            cost[self._column[cell]] = float(sign)
        for boxed_cell, box in boxes.items():
            column = self._column[boxed_cell]
            low[column], high[column] = _floats(box)
        self._program.price(cost)
        self._program.bound(low, high)
        self._single.price(cost + _COST * self._irregular)
        self._single.bound(low - _WIDER * self._irregular, high + _WIDER * self._irregular)
        # After a new objective the last point is still feasible; after new bounds its prices still are.
        for program in (self._single, self._program):
            program.set(simplex_strategy=DUAL if boxes else PRIMAL)
        return self._run(cell, sign)

    def _given(self, cell: int, sign: int) -> LinearOptimum:
        """If every cell is fixed, there is one table or none."""
        for low, high in self.system.reduced.ends:
            if (low is not None and low > 0) or (high is not None and high < 0):
                return LinearOptimum("infeasible")
        point = self.system.expanded(())
        return LinearOptimum(
            "optimal", sign * float(point[cell]), point, np.zeros(len(self.system.facts))
        )

    def _run(self, cell: int, sign: int) -> LinearOptimum:
        for program in (self._single, self._program):
            if program.run() == "optimal" and program is self._single:
                self._program.basis = program.basis
        ended = self._program.ended
        if ended == "infeasible":
            return LinearOptimum("infeasible")
        if ended in ("unbounded", "unbounded or infeasible"):
            return LinearOptimum("unbounded")
        if ended != "optimal":
            self._program.forget()
            return LinearOptimum("unknown")
        point = self.system.expanded(self._program.point)
        return LinearOptimum(
            "optimal",
            sign * float(point[cell]),
            point,
            self._program.prices,
            self.system.open,
            *self._program.standing(),
        )


def elastic(system: FactSystem, boxes: Boxes) -> Floats | None:
    """Multipliers that prove that no table fits: the prices of violating the facts as little as possible.

    Every fact may be violated in either direction at a cost of 1 a unit. If the cheapest violation costs
    anything, its dual prices are the multipliers of Farkas' lemma, and none exceeds 1.
    """
    index = {cell: number for number, cell in enumerate(system.open)}
    # Only ends are wider: the prices are those of facts themselves, and single ones.
    program = _program(system.reduced, {index[cell]: box for cell, box in boxes.items()}, _WIDER)
    program.set(primal_feasibility_tolerance=FINE)
    for number in range(len(system.facts)):
        for way in (1.0, -1.0):
            program.add_column(1.0, number, way)
    return program.prices if program.run() == "optimal" else None


def whole_table(system: FactSystem, cell: int, sign: int, nodes: int) -> tuple[int, ...] | None:
    """A table of whole numbers that minimises ``sign`` times one cell, up to floating-point error.

    The search stops after this many nodes, or after it has looked at its limits several times as often: without
    bounds on the cells it might never end, and some searches never reach their second node.
    """
    count = len(system.open)
    if count == 0:
        return None
    cost = np.zeros(count)
    if cell in system.open:
        cost[system.open.index(cell)] = float(sign)
    for priced in (single_optimum(cost), cost):
        # Where cells have no end, the small costs may lead nowhere.
        values = _whole_point(system, priced, nodes)
        if values is not None:
            break
    if values is None or bool((np.abs(values) > _EXACT).any()):
        return None
    return tuple(values.astype(np.int64).tolist())


def _whole_point(system: FactSystem, cost: Floats, nodes: int) -> Floats | None:
    program = _program(system.reduced, whole=np.arange(cost.size), presolve="choose")
    program.price(cost)
    program.set(mip_rel_gap=0.0, mip_max_nodes=nodes)
    limits = Limits(_LOOKS * nodes)
    limits.set(program)
    with limits.watching(program):
        program.run()
    return np.round(system.expanded(program.point)) if program.has_point else None


def _floats(ends: Ends) -> tuple[float, float]:
    low, high = ends
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)


def _irregular(system: FactSystem) -> tuple[Floats, Floats]:
    """Numbers between 1 and 2 for cells and facts, the same for the same system."""
    cells, facts = len(system.names), len(system.facts)
    every = 1.0 + np.random.default_rng(cells).random(cells + facts)
    return every[:cells], every[cells:]


def _program(
    system: FactSystem, boxes: Boxes | None = None, wider: float = 0.0, **options: Any
) -> Program:
    """The system for HiGHS. Without presolve, so that the multipliers belong to the given facts."""
    changed = boxes or {}
    cells, facts = len(system.names), len(system.facts)
    starts = np.concatenate([[0], np.cumsum([len(f) for f in system.facts])]).astype(np.int64)
    places = np.array([c for f in system.facts for c, _ in f], dtype=np.int64)
    weights = np.array([w for f in system.facts for _, w in f], dtype=np.float64)
    matrix = sparse.csr_array((weights, places, starts), shape=(facts, cells))
    columns = [_floats(changed.get(j, box)) for j, box in enumerate(system.boxes)]
    rows = [_floats(ends) for ends in system.ends]
    beyond, above = _irregular(system)
    wide = _pair(rows, wider * above), _pair(columns, wider * beyond)
    return Program(matrix, *wide, **({"presolve": "off"} | options))


def _pair(ends: list[tuple[float, float]], wider: Floats) -> tuple[Floats, Floats]:
    low, high = (np.array([end[k] for end in ends], float) for k in (0, 1))
    return low - wider, high + wider


MOST_UNKNOWNS = 600  # beyond this, fractions take longer than branching
Row = dict[int, Fraction]


def solve(
    rows: Sequence[Mapping[int, int]], right: Sequence[Fraction | int], most: int = 10**7
) -> dict[int, Fraction] | None:
    """The only solution of a square system; None if there is not exactly one, or after ``most`` steps.

    The shortest equation goes first: those of tables have few terms and weights of 1, so that hardly
    any new terms come up and the fractions stay small.

    >>> solve([{0: 1, 1: 1}, {0: 1, 1: -1}], [3, 0])
    {1: Fraction(3, 2), 0: Fraction(3, 2)}
    """
    left: dict[int, Row] = {
        i: {j: Fraction(w) for j, w in row.items() if w} for i, row in enumerate(rows)
    }
    ends = {i: Fraction(b) for i, b in enumerate(right)}
    holders: dict[int, set[int]] = {}
    for i, row in left.items():
        for j in row:
            holders.setdefault(j, set()).add(i)
    done: list[tuple[int, Row, Fraction]] = []
    steps = 0
    while left:
        pick = min(left, key=lambda i: (len(left[i]), i))
        row, end = left.pop(pick), ends.pop(pick)
        if not row:
            return None
        pivot = min(row, key=lambda j: (len(holders[j]), j))
        factor = row.pop(pivot)
        row = {j: w / factor for j, w in row.items()}
        end /= factor
        for j in row:
            holders[j].discard(pick)
        for i in holders.pop(pivot) - {pick}:
            other = left[i]
            times = other.pop(pivot)
            ends[i] -= times * end
            steps += len(row) + 1
            for j, w in row.items():
                value = other.get(j, Fraction(0)) - times * w
                if value:
                    other[j] = value
                    holders[j].add(i)
                elif j in other:
                    del other[j]
                    holders[j].discard(i)
        if steps > most:
            return None
        done.append((pivot, row, end))
    solution: dict[int, Fraction] = {}
    for pivot, row, end in reversed(done):
        if any(j not in solution for j in row):
            return None
        solution[pivot] = end - sum((w * solution[j] for j, w in row.items()), Fraction(0))
    return solution


def basic_multipliers(
    system: FactSystem, optimum: LinearOptimum, cell: int, sign: int
) -> dict[int, Fraction] | None:
    """The multipliers that make every basic cell's reduced cost zero."""
    facts, basic = {fact for fact, _ in optimum.tight_facts}, optimum.basic_cells
    if len(facts) != len(basic) or len(facts) > MOST_UNKNOWNS:
        return None
    rows = [{i: w for i, w in system.columns[j] if i in facts} for j in basic]
    return solve(rows, [sign if j == cell else 0 for j in basic])


def basic_point(system: FactSystem, optimum: LinearOptimum, boxes: Boxes) -> list[Fraction] | None:
    """The table in which every nonbasic cell is at its bound and every nonbasic fact at its end."""
    basic, upper, tight = set(optimum.basic_cells), optimum.upper_cells, optimum.tight_facts
    if len(tight) != len(basic) or len(basic) > MOST_UNKNOWNS:
        return None
    point: list[Fraction] = []
    for j, box in enumerate(system.boxes):
        low, high = boxes.get(j, box)
        rest = high if j in upper or low is None else low
        point.append(Fraction(rest or 0))
    rows, right = [], []
    for fact, which in tight:
        end = system.ends[fact][which]
        if end is None:
            return None
        weights = dict(system.facts[fact])
        rows.append({j: w for j, w in weights.items() if j in basic})
        right.append(
            end - sum((w * point[j] for j, w in weights.items() if j not in basic), Fraction(0))
        )
    solved = solve(rows, right)
    if solved is None:
        return None
    for j, value in solved.items():
        point[j] = value
    return point


# Exact proofs from a solver's floats: multipliers and tables become fractions, which are then checked.


# Multipliers of tables are small fractions; each larger denominator includes the smaller ones.
_LADDER = (1, 12, 1000, 10**6)
_NEAR = 1e-6  # the largest error that a solver may make
_NOISE = 1e-9  # a solver's values below this are zeros


def bound_leaf(
    system: FactSystem,
    optimum: LinearOptimum,
    cell: int,
    sign: int,
    boxes: Boxes,
    target: Fraction | int | None,
    given: Leaf,
) -> tuple[Leaf, Fraction | None]:
    """The first multipliers that prove the target, or the best ones; ``given`` is one candidate.

    Without a target, the target is the solver's own value, rounded to a whole number.
    """
    best, shown = given, system.shown(given, cell, sign, boxes)
    if target is None and system.whole:
        target = ceil(optimum.value - _NEAR)
    for leaf in _leaves(system, optimum, cell, sign):
        if shown is not None and target is not None and shown >= target:
            break
        bound = system.shown(leaf, cell, sign, boxes)
        if bound is not None and (shown is None or bound > shown):
            best, shown = leaf, bound
    return best, shown


def empty_leaf(system: FactSystem, boxes: Boxes) -> Leaf | None:
    """Multipliers that prove, by Farkas' lemma, that no table fits within the boxes."""
    prices = elastic(system, boxes)
    if prices is None:
        return None
    for rung in _LADDER:
        leaf = _leaf(system, _rational(prices, rung), empty=True)
        bound = system.shown(leaf, 0, 1, boxes)
        if bound is not None and bound > 0:
            return leaf
    return None


def tables_near(system: FactSystem, optimum: LinearOptimum, boxes: Boxes) -> Iterator[WitnessTable]:
    """Exact tables near the solver's point, the likely ones first; they are not checked here."""
    if optimum.point is None:
        return
    near = np.round(optimum.point)
    if bool(((np.abs(optimum.point - near) <= _NEAR) & (np.abs(near) < _EXACT)).all()):
        yield WitnessTable(1, tuple(near.astype(np.int64).tolist()))
    if not system.whole:
        exact = basic_point(system, optimum, boxes)
        if exact is not None:
            yield table_of(exact)
        for rung in _LADDER[1:]:
            rational = _rational(optimum.point, rung)
            yield table_of([rational.get(i, 0) for i in range(near.size)])


def _leaves(system: FactSystem, optimum: LinearOptimum, cell: int, sign: int) -> Iterator[Leaf]:
    if optimum.multipliers is None:
        return
    for rung in _LADDER:
        yield _leaf(system, _rational(optimum.multipliers, rung))
    exact = basic_multipliers(system, optimum, cell, sign)
    if exact is not None:
        yield _leaf(system, exact)


def _rational(values: Floats, most: int) -> dict[int, Fraction]:
    """The nearest fractions with denominators up to ``most``, without zeros."""
    used = np.flatnonzero(np.abs(values) > _NOISE)
    if most == 1:
        return {int(i): Fraction(int(np.round(values[i]))) for i in used}
    return {int(i): Fraction(float(values[i])).limit_denominator(most) for i in used}


def _leaf(system: FactSystem, multipliers: dict[int, Fraction], *, empty: bool = False) -> Leaf:
    """A leaf without the multipliers that use an end which their fact does not have."""
    sound = {
        i: y for i, y in multipliers.items() if y and system.ends[i][0 if y > 0 else 1] is not None
    }
    return as_leaf(sound, empty=empty)
