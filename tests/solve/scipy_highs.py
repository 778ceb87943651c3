"""HiGHS as scipy ships it: every question is solved from scratch, the plain reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from lustrum.model.arrays import Floats
from lustrum.numeric.solve.problem import LinearProblem, Optimum, Outcome, drawn_back, lower_bound

# What scipy's status numbers mean; 4 is a numerical difficulty, which proves nothing.
_OUTCOMES = {
    0: Outcome.OPTIMAL,
    1: Outcome.CUT_SHORT,
    2: Outcome.INFEASIBLE,
    3: Outcome.UNBOUNDED,
    4: Outcome.CUT_SHORT,
}


@dataclass(frozen=True)
class ScipyHighs:
    """Linear and integer programs by the HiGHS inside scipy.

    >>> problem = LinearProblem(sparse.csr_array([[1.0, 1.0]]), [3.0], [3.0], [0.0] * 2, [2.0] * 2)
    >>> least = ScipyHighs().load(problem).minimise(np.array([1.0, 0.0]))
    >>> least.outcome.value, round(least.bound, 9), least.point.tolist()
    ('optimal', 1.0, [1.0, 2.0])
    """

    def load(self, problem: LinearProblem) -> _Loaded:
        """Sort the rows once into equations and inequalities."""
        matrix = problem.matrix.tocsr().astype(np.float64)
        equal = problem.row_low == problem.row_high
        below = np.flatnonzero(~equal & np.isfinite(problem.row_high))
        above = np.flatnonzero(~equal & np.isfinite(problem.row_low))
        return _Loaded(problem, matrix, np.flatnonzero(equal), below, above)


@dataclass(frozen=True, eq=False)
class _Loaded:
    problem: LinearProblem
    matrix: Any
    equal: npt.NDArray[np.intp]
    below: npt.NDArray[np.intp]
    above: npt.NDArray[np.intp]

    def minimise(
        self,
        cost: Floats,
        *,
        whole: bool = False,
        seconds: float | None = None,
        target: float | None = None,
        steps: int | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Optimum:
        """The least ``cost @ x``; for whole x by branch and bound, which never ends early."""
        if bool((self.problem.low > self.problem.high).any()):
            return Optimum(Outcome.INFEASIBLE, np.inf)
        return self._whole(cost, seconds) if whole else self._linear(cost, seconds)

    def again(self) -> _Loaded:
        """Itself, since it keeps nothing."""
        return self

    def _linear(self, cost: Floats, seconds: float | None) -> Optimum:
        problem, matrix = self.problem, self.matrix
        sides = sparse.vstack([matrix[self.below], -matrix[self.above]], format="csr")
        ends = np.concatenate([problem.row_high[self.below], -problem.row_low[self.above]])
        found = linprog(
            cost,
            A_ub=sides if ends.size else None,
            b_ub=ends if ends.size else None,
            A_eq=matrix[self.equal] if self.equal.size else None,
            b_eq=problem.row_low[self.equal] if self.equal.size else None,
            bounds=np.column_stack([problem.low, problem.high]),
            method="highs",
            options={} if seconds is None else {"time_limit": max(seconds, 1e-3)},
        )
        outcome = _OUTCOMES[found.status]
        if outcome is not Outcome.OPTIMAL:
            return Optimum(outcome, np.inf if outcome is Outcome.INFEASIBLE else -np.inf)
        y = np.zeros(matrix.shape[0])
        if self.equal.size:
            y[self.equal] = found.eqlin.marginals
        if ends.size:
            marginals = found.ineqlin.marginals
            y[self.below] += marginals[: self.below.size]
            y[self.above] -= marginals[self.below.size :]
        proven = lower_bound(problem, cost, y)
        if proven == -np.inf:
            proven = drawn_back(float(found.fun))
        return Optimum(outcome, proven, np.asarray(found.x), y, int(found.nit))

    def _whole(self, cost: Floats, seconds: float | None) -> Optimum:
        problem = self.problem
        rows = LinearConstraint(self.matrix, problem.row_low, problem.row_high)
        options: dict[str, Any] = {"mip_rel_gap": 0.0}
        if seconds is not None:
            options["time_limit"] = max(seconds, 1e-3)
        found = milp(
            cost,
            integrality=np.ones(cost.size),
            bounds=Bounds(problem.low, problem.high),
            constraints=[rows] if self.matrix.shape[0] else [],
            options=options,
        )
        outcome = _OUTCOMES[found.status]
        if outcome is Outcome.INFEASIBLE:
            return Optimum(outcome, np.inf)
        reported = found.mip_dual_bound
        proven = -np.inf if reported is None or np.isnan(reported) else float(reported)
        point = None if found.x is None else np.asarray(found.x)
        return Optimum(outcome, drawn_back(proven), point)
