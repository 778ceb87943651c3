"""Covering programs that grow: least cost over 0 and 1 subject to inequalities that are found one by one.

Minimise ``cost @ x`` over ``0 <= x <= 1`` with ``row @ x >= side`` for every row so far. The linear program
goes on from its last basis when rows are added; the integer program searches a stated number of nodes, so that
the same rows always give the same answer. Lower bounds are computed again from the multipliers alone. What the
solver says is rounded far above its noise before anything depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import highspy
import numpy as np
from scipy import sparse

from lustrum.arrays import Floats, Indices, Mask
from lustrum.solve.highs_model import highs_model
from lustrum.solve.products import cleared, dot, floored, sparse_product

__all__ = ["Cut", "CuttingProgram", "Relaxed", "Searched", "stacked"]


# The caller has patterns of its own; searches within searches take most of the time otherwise.
_NO_HEURISTICS: dict[str, object] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_feasibility_jump": False,
    # Few of the cuts that HiGHS finds itself are worth their place among ours.
    "mip_pool_soft_limit": 200,
}
_OLD = 12  # rounds that a row may be slack before it is set aside
_PIVOTS = 10  # of a light program that take as long as one question
_HEAVY = 50_000  # weights with which a pivot takes twice as long
_AT_ONCE = 200  # kept rows that begin to take part together, those violated most first
_BITS = 26  # of a column between 0 and 1
_DUAL_BITS = 40  # of a multiplier, in units of the largest
_RANK_BITS = 30  # of what rows are ranked by


@dataclass(frozen=True, eq=False)
class Cut:
    """The inequality ``sum weights * x[columns] >= side``."""

    columns: Indices
    weights: Floats
    side: float

    def key(self) -> bytes:
        """The same for the same inequality."""
        shares = np.round(self.weights / (self.side or 1.0), 9)
        # Inequalities can be long and many, so a digest stands for each.
        return blake2b(self.columns.tobytes() + shares.tobytes(), digest_size=16).digest()

    def lacks(self, x: Floats) -> float:
        """By how much a point violates it."""
        return self.side - dot(self.weights, x[self.columns])


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The optimum of the linear program: no x in 0 to 1 that satisfies the rows costs less than ``bound``."""

    x: Floats
    bound: float
    reduced: Floats
    steps: int


@dataclass(frozen=True, eq=False)
class Searched:
    """The outcome of a search among whole x: the best found, and what none is below."""

    x: Floats | None
    bound: float
    steps: int
    finished: bool


class CuttingProgram:
    """A covering program with its rows so far. Columns can be fixed at 0 or 1 for good."""

    def __init__(self, cost: Floats) -> None:
        self.cost = np.asarray(cost, dtype=np.float64)
        self.cuts: list[Cut] = []
        self._seen: set[bytes] = set()
        self._idle: list[Cut] = []
        self._kept: list[Cut] = []
        self.low, self.high = np.zeros(self.cost.size), np.ones(self.cost.size)
        self._ends = self.low, self.high
        self._stack: tuple[Any, Floats] | None = None
        self._age = np.zeros(0, dtype=np.int64)
        none = np.zeros(0)
        self._model = highs_model(
            sparse.csr_array((0, self.cost.size)),
            (none, none),
            (self.low, self.high),
            self.cost,
            presolve="off",
            solver="simplex",
            simplex_strategy=1,
        )

    def __len__(self) -> int:
        return len(self.cuts)

    @property
    def entries(self) -> int:
        """How many weights of all rows stand at columns that are still open."""
        open_columns = self.low < self.high
        return sum(int(open_columns[cut.columns].sum()) for cut in (*self.cuts, *self._idle))

    def work(self, pivots: int) -> int:
        """How many questions of a usual size take as long as a number of pivots."""
        weights = sum(cut.columns.size for cut in self.cuts)
        return 1 + pivots * (1 + weights // _HEAVY) // _PIVOTS

    def add(self, cuts: Sequence[Cut]) -> int:
        """Add rows that are new; gives how many were."""
        fresh = []
        for cut in cuts:
            key = cut.key()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(cut)
        self._append(fresh)
        return len(fresh)

    def keep(self, cuts: Sequence[Cut]) -> None:
        """Keep rows that are new for later: each takes part from when an optimum violates it."""
        for cut in cuts:
            key = cut.key()
            if key not in self._seen:
                self._seen.add(key)
                self._kept.append(cut)

    def fix(self, at_zero: Mask, at_one: Mask) -> None:
        """Close columns for good: at 0, or at 1."""
        self.low, self.high = np.where(at_one, 1.0, self.low), np.where(at_zero, 0.0, self.high)

    def relax(self, low: Floats | None = None, high: Floats | None = None) -> Relaxed | None:
        """Solve the linear program; None where no x satisfies all rows within the fixed columns.

        ``low`` and ``high`` may fix further columns for this time; the bound is then one for such x.
        """
        self._recall()
        ends = self.low if low is None else low, self.high if high is None else high
        changed = np.flatnonzero((ends[0] != self._ends[0]) | (ends[1] != self._ends[1]))
        if changed.size:
            self._model.changeColsBounds(
                changed.size, changed.astype(np.int32), ends[0][changed], ends[1][changed]
            )
        self._ends = ends
        while True:
            self._model.run()
            if self._model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                self._model.clearSolver()
                self._model.run()
                if self._model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                    return None
            solution = self._model.getSolution()
            x = cleared(np.clip(np.array(solution.col_value), 0.0, 1.0), _BITS)
            y = np.maximum(np.array(solution.row_dual), 0.0)
            y = cleared(y, _DUAL_BITS, float(y.max(initial=1.0)))
            reduced, bound = self._proven(y)
            again = [c for c in self._idle if c.lacks(x) > 1e-6]
            self._idle = [c for c in self._idle if c.lacks(x) <= 1e-6]
            again += self._violated(x)
            if not again:
                break
            self._append(again)
        self._grow_old(y)
        steps = max(int(self._model.getInfo().simplex_iteration_count), 0)
        return Relaxed(x, bound, reduced, steps)

    def search(
        self,
        nodes: int,
        start: Floats | None = None,
        *,
        low: Floats | None = None,
        high: Floats | None = None,
        below: float | None = None,
    ) -> Searched:
        """Search among whole x within a number of nodes, from a first solution if one is known.

        ``low`` and ``high`` may fix further columns for this time; the bound is then one for such x. With
        ``below`` only x that cost no more than this are looked for.
        """
        every = [*self.cuts, *self._idle]
        low = self.low if low is None else low
        high = self.high if high is None else high
        free = np.flatnonzero(low < high)
        matrix, side = stacked(every, self.cost.size)
        side = side - sparse_product(matrix, low)
        base = dot(self.cost, low)
        part = matrix[:, free].tocsr()
        least = np.asarray(part.minimum(0.0).sum(axis=1)).ravel()
        needed = np.flatnonzero(side > least + 1e-9)
        part, side = part[needed], side[needed]
        model = highs_model(
            part,
            (side, np.full(side.size, highspy.kHighsInf)),
            (np.zeros(free.size), np.ones(free.size)),
            self.cost[free],
            np.arange(free.size),
            mip_rel_gap=0.0,
            mip_abs_gap=1e-6,
            mip_max_nodes=nodes,
            **_NO_HEURISTICS,
        )
        if below is not None:
            model.setOptionValue("objective_bound", below - base + 1e-6)
        if start is not None:
            known = highspy.HighsSolution()
            known.col_value = list(np.asarray(start, dtype=np.float64)[free])
            model.setSolution(known)
        model.run()
        status, info = model.getModelStatus(), model.getInfo()
        steps = max(int(info.simplex_iteration_count), 0)
        if status == highspy.HighsModelStatus.kInfeasible:
            return Searched(None, np.inf, steps, True)
        solution = model.getSolution()
        x = None
        if solution.value_valid:
            x = low.copy()
            x[free] = np.round(np.array(solution.col_value))
            # Without the kept rows the bound is lower, and the next search knows those that x violates.
            self._append(self._violated(x))
        bound = float(info.mip_dual_bound)
        finished = status == highspy.HighsModelStatus.kOptimal
        bound = base + bound - 1e-7 * (1 + abs(bound)) if np.isfinite(bound) else -np.inf
        return Searched(x, floored(bound), steps, finished)

    def _append(self, cuts: Sequence[Cut]) -> None:
        if not cuts:
            return
        matrix, side = stacked(cuts, self.cost.size)
        self._model.addRows(
            len(cuts),
            side,
            np.full(side.size, highspy.kHighsInf),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        self.cuts.extend(cuts)
        self._stack = None
        self._age = np.append(self._age, np.zeros(len(cuts), dtype=np.int64))

    def _violated(self, x: Floats) -> list[Cut]:
        """Take those of the kept rows out that a point violates most, for how long they are."""
        lack = np.array([cut.lacks(x) for cut in self._kept])
        size = np.array(
            [float(np.sqrt(dot(cut.weights, cut.weights))) or 1.0 for cut in self._kept]
        )
        worst = np.argsort(-cleared(lack / size, _RANK_BITS), kind="stable")
        out = set(worst[lack[worst] > 1e-6][:_AT_ONCE].tolist())
        found = [self._kept[number] for number in sorted(out)]
        self._kept = [cut for number, cut in enumerate(self._kept) if number not in out]
        return found

    def _recall(self) -> None:
        """Set aside rows that have been slack for long; they are looked at again after each optimum."""
        old = np.flatnonzero(self._age > _OLD)
        if old.size <= len(self.cuts) // 4:
            return
        mask = np.zeros(len(self.cuts), dtype=np.bool_)
        mask[old] = True
        self._model.deleteRows(old.size, old.astype(np.int32))
        self._idle.extend(c for c, gone in zip(self.cuts, mask, strict=True) if gone)
        self.cuts = [c for c, gone in zip(self.cuts, mask, strict=True) if not gone]
        self._age = self._age[~mask]
        self._stack = None

    def _grow_old(self, y: Floats) -> None:
        self._age = np.where(y > 1e-9, 0, self._age + 1)

    def _proven(self, y: Floats) -> tuple[Floats, float]:
        """Reduced costs and the bound that follows from multipliers that are 0 or more."""
        if self._stack is None:
            matrix, side = stacked(self.cuts, self.cost.size)
            self._stack = matrix.T.tocsr(), side
        turned, side = self._stack
        mixed = sparse_product(turned, y)
        reduced = self.cost - mixed
        by_column = np.where(reduced > 0, reduced * self._ends[0], reduced * self._ends[1])
        bound = dot(y, side) + float(by_column.sum())
        scale = dot(y, np.abs(side)) + float(np.abs(by_column).sum() + np.abs(mixed).sum())
        return reduced, floored(bound - 1e-12 * (1.0 + scale))


def stacked(cuts: Sequence[Cut], width: int) -> tuple[Any, Floats]:
    """Inequalities as a sparse matrix and their sides."""
    sizes = [c.columns.size for c in cuts]
    indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    columns = np.concatenate([c.columns for c in cuts]) if cuts else np.zeros(0, dtype=np.intp)
    weights = np.concatenate([c.weights for c in cuts]) if cuts else np.zeros(0)
    matrix = sparse.csr_array((weights, columns, indptr), shape=(len(cuts), width))
    return matrix, np.array([c.side for c in cuts], dtype=np.float64)
