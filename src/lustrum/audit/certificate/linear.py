"""The solver that proposes proofs; other modules check its proposals in exact arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from lustrum.arrays import Floats
from lustrum.audit.certificate.exact import Boxes, Ends, System
from lustrum.solve.highs import Limits
from lustrum.solve.highs_model import highs_model

__all__ = ["Found", "Linear", "elastic", "whole_table"]

_STATUS = highspy.HighsModelStatus
_DUAL, _PRIMAL = 1, 4  # HiGHS's numbers for the variants of the simplex method
_LOOKS = 20  # how often a search may look at its limits for each node that it is allowed
_EXACT = 2.0**53  # floats cannot hold every whole number beyond this
_BASIC = highspy.HighsBasisStatus.kBasic
_UPPER = highspy.HighsBasisStatus.kUpper
_LOWER = highspy.HighsBasisStatus.kLower


@dataclass(frozen=True, eq=False)
class Found:
    """An optimum as floats, with its basis; ``ended`` says how the solver ended."""

    ended: str  # optimal, infeasible, unbounded or unknown
    value: float = 0.0
    point: Floats | None = None
    multipliers: Floats | None = None
    cells: tuple[int, ...] = ()
    cell_status: tuple[Any, ...] = ()
    fact_status: tuple[Any, ...] = ()

    @property
    def basic_cells(self) -> list[int]:
        """The cells that are at none of their bounds."""
        return [c for c, s in zip(self.cells, self.cell_status, strict=True) if s == _BASIC]

    @property
    def upper_cells(self) -> frozenset[int]:
        """The cells that are at their upper bound."""
        pairs = zip(self.cells, self.cell_status, strict=True)
        return frozenset(c for c, s in pairs if s == _UPPER)

    @property
    def tight_facts(self) -> list[tuple[int, int]]:
        """The facts that are at an end, and at which one: 0 or 1."""
        at_end = (_LOWER, _UPPER)
        return [(i, int(s == _UPPER)) for i, s in enumerate(self.fact_status) if s in at_end]


class Linear:
    """One model of the open cells for all questions; each starts from the previous answer."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._column = {cell: number for number, cell in enumerate(system.open)}
        self._model = _model(system.reduced)
        self._cost: int | None = None
        self._boxes: Boxes = {}

    def minimise(self, cell: int, sign: int, boxes: Boxes, seconds: float | None = None) -> Found:
        """The minimum of ``sign`` times one cell, within the boxes of a branch."""
        if not self._column:
            return self._given(cell, sign)
        if self._cost is not None:
            self._model.changeColCost(self._cost, 0.0)
        self._cost = self._column.get(cell)
        if self._cost is not None:
            self._model.changeColCost(self._cost, float(sign))
        for place in self._boxes.keys() - boxes.keys():
            self._bound(place, self.system.boxes[place])
        for place, box in boxes.items():
            self._bound(place, box)
        # After a new objective the last point is still feasible; after new bounds its prices still are.
        self._model.setOptionValue("simplex_strategy", _DUAL if boxes else _PRIMAL)
        self._boxes = dict(boxes)
        return self._run(cell, sign, seconds)

    def _bound(self, cell: int, box: Ends) -> None:
        self._model.changeColBounds(self._column[cell], *_floats(box))

    def _given(self, cell: int, sign: int) -> Found:
        """If every cell is fixed, there is one table or none."""
        for low, high in self.system.reduced.ends:
            if (low is not None and low > 0) or (high is not None and high < 0):
                return Found("infeasible")
        point = self.system.expanded(())
        return Found("optimal", sign * float(point[cell]), point, np.zeros(len(self.system.facts)))

    def _run(self, cell: int, sign: int, seconds: float | None) -> Found:
        if seconds is not None:
            # HiGHS counts its time limit from the first run of a model.
            limit = self._model.getRunTime() + max(seconds, 0.001)
            self._model.setOptionValue("time_limit", limit)
        self._model.run()
        status = self._model.getModelStatus()
        if status == _STATUS.kInfeasible:
            return Found("infeasible")
        if status in (_STATUS.kUnbounded, _STATUS.kUnboundedOrInfeasible):
            return Found("unbounded")
        if status != _STATUS.kOptimal:
            self._model.clearSolver()
            return Found("unknown")
        solution, basis = self._model.getSolution(), self._model.getBasis()
        point = self.system.expanded(solution.col_value)
        return Found(
            "optimal",
            sign * float(point[cell]),
            point,
            np.array(solution.row_dual),
            self.system.open,
            tuple(basis.col_status),
            tuple(basis.row_status),
        )


def elastic(system: System, boxes: Boxes) -> Floats | None:
    """Multipliers that prove that no table fits: the prices of violating the facts as little as possible.

    Every fact may be violated in either direction at a cost of 1 a unit. If the cheapest violation costs
    anything, its dual prices are the multipliers of Farkas' lemma, and none exceeds 1.
    """
    place = {cell: number for number, cell in enumerate(system.open)}
    model = _model(system.reduced, {place[cell]: box for cell, box in boxes.items()})
    facts = len(system.facts)
    one = np.ones(1)
    for number in range(facts):
        for way in (1.0, -1.0):
            model.addCol(1.0, 0.0, highspy.kHighsInf, 1, np.array([number], np.int32), one * way)
    model.run()
    if model.getModelStatus() != _STATUS.kOptimal:
        return None
    return np.array(model.getSolution().row_dual)


def whole_table(
    system: System, cell: int, sign: int, nodes: int, seconds: float | None = None
) -> tuple[int, ...] | None:
    """A table of whole numbers that minimises ``sign`` times one cell, up to floating-point error.

    The search stops after this many nodes, or after it has looked at its limits several times as often: without
    bounds on the cells it might never end, and some searches never reach their second node.
    """
    count = len(system.open)
    if count == 0:
        return None
    model = _model(system.reduced)
    if cell in system.open:
        model.changeColCost(system.open.index(cell), float(sign))
    kinds = np.full(count, int(highspy.HighsVarType.kInteger.value), dtype=np.uint8)
    model.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
    model.setOptionValue("presolve", "choose")
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_max_nodes", nodes)
    limits = Limits(seconds, _LOOKS * nodes, None)
    limits.set(model)
    with limits.watching(model):
        model.run()
    if model.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    values = np.round(system.expanded(model.getSolution().col_value))
    if bool((np.abs(values) > _EXACT).any()):
        return None
    return tuple(values.astype(np.int64).tolist())


def _floats(ends: Ends) -> tuple[float, float]:
    low, high = ends
    return (
        -highspy.kHighsInf if low is None else float(low),
        highspy.kHighsInf if high is None else float(high),
    )


def _model(system: System, boxes: Boxes | None = None) -> Any:
    """The system for HiGHS. Without presolve, so that the multipliers belong to the given facts."""
    changed = boxes or {}
    cells, facts = len(system.names), len(system.facts)
    starts = np.concatenate([[0], np.cumsum([len(f) for f in system.facts])]).astype(np.int64)
    places = np.array([c for f in system.facts for c, _ in f], dtype=np.int64)
    weights = np.array([w for f in system.facts for _, w in f], dtype=np.float64)
    matrix = sparse.csr_array((weights, places, starts), shape=(facts, cells))
    columns = [_floats(changed.get(j, box)) for j, box in enumerate(system.boxes)]
    rows = [_floats(ends) for ends in system.ends]
    return highs_model(matrix, _pair(rows), _pair(columns), presolve="off")


def _pair(ends: list[tuple[float, float]]) -> tuple[Floats, Floats]:
    return np.array([low for low, _ in ends], float), np.array([high for _, high in ends], float)
