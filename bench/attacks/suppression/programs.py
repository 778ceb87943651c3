"""Ranges of cells by linear and integer programs over the unseen table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import highspy
import numpy as np
import numpy.typing as npt

from attacks.suppression.cells import Leaves

INFINITY = highspy.kHighsInf
MANY = 10_000
"""More than any drawn count."""


STILL = 1e-7
"""A cell that moves less than this does not move: solvers keep bounds no closer."""

Numbers = npt.NDArray[np.float64]


class ContradictionError(Exception):
    """No table fits what the files say."""


@dataclass(frozen=True)
class Fact:
    """The sum of some cells of the unseen table lies between two numbers."""

    leaves: Leaves
    low: float = -INFINITY
    high: float = INFINITY
    unless_empty: int = 0
    """If it is not 0, it is at least this."""


@dataclass
class Facts:
    """What an attacker knows: for each cell the closest bounds that anything said about it gives."""

    bounds: dict[Leaves, tuple[float, float]] = field(default_factory=dict)
    gaps: dict[Leaves, int] = field(default_factory=dict)

    def add(self, fact: Fact) -> None:
        """Take a fact in."""
        low, high = self.bounds.get(fact.leaves, (-INFINITY, INFINITY))
        self.bounds[fact.leaves] = max(low, fact.low), min(high, fact.high)
        if fact.unless_empty > 1:
            self.gaps[fact.leaves] = max(fact.unless_empty, self.gaps.get(fact.leaves, 0))

    def __iter__(self) -> Iterator[Fact]:
        for leaves, (low, high) in self.bounds.items():
            yield Fact(leaves, low, high, self.gaps.get(leaves, 0))

    def broken(self, truth: Iterable[int], slack: float = 1e-6) -> list[Leaves]:
        """The facts that the truth contradicts: what a file says must be true."""
        values = np.asarray(list(truth), float)
        found = []
        for leaves, (low, high) in self.bounds.items():
            true = float(values[sorted(leaves)].sum())
            if not low - slack <= true <= high + slack or 0 < true < self.gaps.get(leaves, 0):
                found.append(leaves)
        return found


class Witnesses:
    """Values that cells have in tables that fit: a cell that reaches far enough in one needs no program.

    Every table on the way from the truth to a table that fits, fits too. So a table that breaks what an
    insider knows still shows how far one can go towards it. Whole numbers allow no such steps.
    """

    def __init__(
        self, program: Program, truth: Sequence[int], known: Mapping[Leaves, tuple[float, float]]
    ) -> None:
        self._program, self._done = program, 0
        self._true = program._sums @ np.asarray(truth, float)
        self._least = self._true.copy()
        self._most = self._true.copy()
        self._known = [(program._rows[leaves], bounds) for leaves, bounds in known.items()]

    def seen(self, leaves: Leaves) -> tuple[float, float]:
        """The least and the largest value of a cell in any table so far."""
        fresh = self._program._tables[self._done :]
        self._done += len(fresh)
        if fresh:
            moved = np.asarray(fresh) @ self._program._sums.T - self._true
            steps = np.ones(len(fresh))
            for row, (low, high) in self._known:
                move, at = moved[:, row], self._true[row]
                with np.errstate(divide="ignore"):
                    up = np.where(move > STILL, (high - at) / np.maximum(move, STILL), INFINITY)
                    down = np.where(move < -STILL, (low - at) / np.minimum(move, -STILL), INFINITY)
                steps = np.minimum(steps, np.maximum(np.minimum(up, down), 0.0))
            if self._program.whole:
                steps = np.where(steps < 1.0, 0.0, 1.0)
            moved *= steps[:, None]
            self._least = np.minimum(self._least, self._true + moved.min(axis=0))
            self._most = np.maximum(self._most, self._true + moved.max(axis=0))
        row = self._program._rows[leaves]
        return float(self._least[row]), float(self._most[row])


class Program:
    """All tables that fit what is known: a column for each cell of the unseen table, a row for each fact."""

    def __init__(
        self, size: int, facts: Facts, *, whole: bool, free: bool, also: Iterable[Leaves] = ()
    ) -> None:
        self.size, self.whole = size, whole
        rows = dict(facts.bounds)
        for leaves in also:
            rows.setdefault(leaves, (-INFINITY, INFINITY))
        self._rows = {leaves: i for i, leaves in enumerate(rows)}
        self._bounds = list(rows.values())
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = size, len(rows)
        lp.col_cost_ = np.zeros(size)
        lp.col_lower_ = np.full(size, -INFINITY if free else 0.0)
        lp.col_upper_ = np.full(size, INFINITY)
        lp.row_lower_ = np.array([low for low, _ in self._bounds], float)
        lp.row_upper_ = np.array([high for _, high in self._bounds], float)
        indices = [sorted(leaves) for leaves in rows]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum([len(i) for i in indices])]).astype(
            np.int32
        )
        lp.a_matrix_.index_ = np.array([i for row in indices for i in row], np.int32)
        lp.a_matrix_.value_ = np.ones(len(lp.a_matrix_.index_))
        if whole:
            lp.integrality_ = [highspy.HighsVarType.kInteger] * size
        self._sums = np.zeros((len(rows), size))
        for i, row in enumerate(indices):
            self._sums[i, row] = 1.0
        self._tables: list[Numbers] = []
        self._solver = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 0.0),
        ):
            self._solver.setOptionValue(option, value)
        self._solver.passModel(lp)
        if whole:
            for leaves, least in facts.gaps.items():
                self._gap(sorted(leaves), least)

    def _gap(self, leaves: list[int], least: int) -> None:
        """A count that is 0 or at least this: one more column says which."""
        column = self._solver.getNumCol()
        self._solver.addCol(0.0, 0.0, 1.0, 0, np.empty(0, np.int32), np.empty(0))
        self._solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        index = np.array([*leaves, column], np.int32)
        ones = np.ones(len(leaves))
        self._solver.addRow(0.0, INFINITY, len(index), index, np.append(ones, -least))
        self._solver.addRow(-INFINITY, 0.0, len(index), index, np.append(ones, -MANY))

    def range(
        self, leaves: Leaves, known: Mapping[Leaves, tuple[float, float]] | None = None
    ) -> tuple[float, float]:
        """The least and the largest value of a cell, for somebody who also knows some bounds."""
        changed = []
        for cell, (low, high) in (known or {}).items():
            row = self._rows[cell]
            before = self._bounds[row]
            self._solver.changeRowBounds(row, max(low, before[0]), min(high, before[1]))
            changed.append(row)
        try:
            return self._end(leaves, 1), self._end(leaves, -1)
        finally:
            for row in changed:
                self._solver.changeRowBounds(row, *self._bounds[row])

    def witnesses(
        self, truth: Sequence[int], known: Mapping[Leaves, tuple[float, float]] | None = None
    ) -> Witnesses:
        """What tables that were found along the way already show to somebody with these bounds."""
        return Witnesses(self, truth, known or {})

    def knows_row(self, leaves: Leaves) -> bool:
        """Whether bounds of this cell can be changed."""
        return leaves in self._rows

    def _end(self, leaves: Leaves, sign: int) -> float:
        cost = np.zeros(self.size)
        cost[sorted(leaves)] = sign
        self._solver.changeColsCost(self.size, np.arange(self.size, dtype=np.int32), cost)
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kUnknown:
            # A basis of an earlier question can lead nowhere; ask again without it.
            self._solver.clearSolver()
            self._solver.run()
            status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            self._tables.append(np.array(self._solver.getSolution().col_value[: self.size]))
            return sign * float(self._solver.getInfo().objective_function_value)
        if status == highspy.HighsModelStatus.kInfeasible:
            raise ContradictionError
        if status == highspy.HighsModelStatus.kUnboundedOrInfeasible:
            self._solver.changeColsCost(
                self.size, np.arange(self.size, dtype=np.int32), np.zeros(self.size)
            )
            self._solver.run()
            if self._solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
                raise ContradictionError
            return -sign * INFINITY
        if status == highspy.HighsModelStatus.kUnbounded:
            return -sign * INFINITY
        raise RuntimeError(f"the solver ended with {status}")
