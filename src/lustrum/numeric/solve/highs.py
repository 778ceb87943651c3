"""HiGHS kept warm: one model, and each question goes on from where the last one ended.

Only the costs differ between questions, so the vertex reached last is feasible for the next one, and
the primal simplex method needs a handful of steps from there. Nothing is presolved in between, which
would forget that vertex. One thread and a fixed order of questions always give the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

from lustrum.model.arrays import Floats
from lustrum.numeric.solve.duality import Prover, drawn_back
from lustrum.numeric.solve.highs_model import FINE, highs_model, set_options
from lustrum.numeric.solve.problem import LinearProblem, Optimum, Outcome
from lustrum.numeric.solve.products import cleared, dot, power_of_two
from lustrum.numeric.solve.running import run

_ROOM = 26  # solvers tell 1e-7 from nothing, so numbers are brought below 2**26
_BITS = (
    30  # of a point, in scaled units: far below what the solver tells apart, and above its noise
)
_LOOSE = 1e-6  # a proof that falls short of the point by more is tried again
_PRIMAL, _DUAL = 4, 1
_MOST_STEPS = 2**31 - 1  # what the solver takes for no limit
# Small problems are asked by the hundred; these heuristics take longer than the search itself.
_PLAIN = {
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
_STATUS = highspy.HighsModelStatus
_CUT_SHORT = (_STATUS.kTimeLimit, _STATUS.kIterationLimit, _STATUS.kInterrupt)
_OUTCOMES = {
    _STATUS.kOptimal: Outcome.OPTIMAL,
    _STATUS.kInfeasible: Outcome.INFEASIBLE,
    _STATUS.kUnbounded: Outcome.UNBOUNDED,
    _STATUS.kObjectiveTarget: Outcome.OPTIMAL,
}


@dataclass(frozen=True)
class Highs:
    """Linear and integer programs by HiGHS, hot-started from one question to the next.

    Every linear bound is proven again by weak duality from the multipliers alone, so an error of
    the solver can make a bound weaker but never wrong.

    >>> from scipy import sparse
    >>> problem = LinearProblem(sparse.csr_array([[1.0, 1.0]]), [3.0], [3.0], [0.0] * 2, [2.0] * 2)
    >>> loaded = Highs().load(problem)
    >>> [round(loaded.minimise(np.array(cost)).bound, 9) for cost in ([1.0, 0.0], [-1.0, 0.0])]
    [1.0, -2.0]
    """

    fine: bool = False
    """Whether costs that differ hardly are told apart."""

    def load(self, problem: LinearProblem) -> _Loaded:
        """Hand over the problem once, with numbers scaled to what the solver can tell apart."""
        return _Loaded(problem, fine=self.fine)


class _Loaded:
    def __init__(self, problem: LinearProblem, *, fine: bool = False) -> None:
        self.problem = problem
        self._fine = {"dual_feasibility_tolerance": FINE} if fine else {}
        self._crossed = _crossed(problem)
        self._scale = _scale(problem)
        self._prove = Prover(problem)
        self._cost = np.zeros(problem.low.size)
        self._linear: Any = None
        self._integer: Any = None

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
        """The least ``cost @ x``; for whole x by branch and bound, down to the target if there is one."""
        if self._crossed:
            return Optimum(Outcome.INFEASIBLE, np.inf)
        if cost.size == 0:
            return Optimum(Outcome.OPTIMAL, 0.0, np.zeros(0))
        limits = Limits(seconds, steps, stop)
        return self._branch(cost, limits, target) if whole else self._slide(cost, limits)

    def again(self) -> _Loaded:
        """The same problem at the same vertex."""
        twin = _Loaded(self.problem, fine=bool(self._fine))
        if self._linear is not None:
            twin._open()
            twin._linear.setBasis(self._linear.getBasis())
        return twin

    def _open(self) -> None:
        self._linear = _model(self.problem, self._scale)
        set_options(self._linear, presolve="off", solver="simplex", **self._fine)

    def _slide(self, cost: Floats, limits: Limits) -> Optimum:
        """From the last vertex to the best one; from scratch where that leads nowhere."""
        fresh = self._linear is None
        if fresh:
            self._open()
        model = self._linear
        changed = np.flatnonzero(self._cost != cost).astype(np.int32)
        model.changeColsCost(changed.size, changed, cost[changed])
        self._cost = cost.copy()
        # Without a vertex to start from the dual method is quicker, and says why nothing is feasible.
        optimum = self._run(cost, _DUAL if fresh else _PRIMAL, limits)
        if optimum.outcome is Outcome.UNBOUNDED or self._good(cost, optimum):
            return optimum
        if model.getModelStatus() in _CUT_SHORT:
            return optimum
        if fresh and optimum.outcome is Outcome.INFEASIBLE:
            return optimum
        model.clearSolver()
        again = self._run(cost, _DUAL, limits)
        if again.outcome is Outcome.INFEASIBLE or again.bound > optimum.bound:
            return again
        return optimum

    def _run(self, cost: Floats, strategy: int, limits: Limits) -> Optimum:
        set_options(self._linear, simplex_strategy=strategy)
        limits.set(self._linear)
        run(self._linear, limits.stop)
        return self._read(cost)

    def _good(self, cost: Floats, optimum: Optimum) -> bool:
        """Whether the proof reaches the point, as it does but for numerical trouble."""
        if optimum.outcome is not Outcome.OPTIMAL or optimum.point is None:
            return False
        value = dot(cost, optimum.point)
        return value - optimum.bound <= _LOOSE * (1.0 + 1e-3 * abs(value))

    def _read(self, cost: Floats) -> Optimum:
        model = self._linear
        outcome = _OUTCOMES.get(model.getModelStatus(), Outcome.CUT_SHORT)
        steps = max(int(model.getInfo().simplex_iteration_count), 0)
        if outcome is Outcome.INFEASIBLE:
            return Optimum(outcome, np.inf, None, self._ray(), steps)
        solution = model.getSolution()
        if outcome is Outcome.UNBOUNDED or not solution.dual_valid:
            return Optimum(outcome, -np.inf, None, None, steps)
        y = np.array(solution.row_dual)
        proven = self._prove(cost, y)
        point = None
        if outcome is Outcome.OPTIMAL:
            point = cleared(np.array(solution.col_value), _BITS) * self._scale
            if proven == -np.inf:
                proven = drawn_back(dot(cost, point))
        return Optimum(outcome, proven, point, y, steps)

    def _ray(self) -> Floats | None:
        """Multipliers that prove that nothing is feasible (Farkas), if the solver has them."""
        _, has, ray = self._linear.getDualRay()
        if not has:
            return None
        zero = np.zeros(self._cost.size)
        signed = [np.array(ray), -np.array(ray)]
        proofs = [self._prove(zero, y) for y in signed]
        best = int(np.argmax(proofs))
        return signed[best] if proofs[best] > 0 else None

    def _branch(self, cost: Floats, limits: Limits, target: float | None) -> Optimum:
        if self._integer is None:
            self._integer = _model(self.problem, 1.0)
            every = np.arange(cost.size, dtype=np.int32)
            kinds = np.full(cost.size, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
            self._integer.changeColsIntegrality(cost.size, every, kinds)
            set_options(self._integer, **_PLAIN)
        model = self._integer
        model.changeColsCost(cost.size, np.arange(cost.size, dtype=np.int32), cost)
        set_options(model, objective_target=-highspy.kHighsInf if target is None else target + 1e-6)
        limits.set(model)
        with limits.watching(model) as looks:
            run(model)
        outcome = _OUTCOMES.get(model.getModelStatus(), Outcome.CUT_SHORT)
        if outcome is Outcome.INFEASIBLE:
            return Optimum(outcome, np.inf)
        info, solution = model.getInfo(), model.getSolution()
        point = np.array(solution.col_value) if solution.value_valid else None
        bound = float(info.mip_dual_bound)
        proven = drawn_back(bound) if np.isfinite(bound) else -np.inf
        return Optimum(outcome, proven, point, None, len(looks))


def _crossed(problem: LinearProblem) -> bool:
    """Whether some ends cross, or a row without entries asks for more than nothing."""
    empty = np.asarray(abs(problem.matrix).sum(axis=1)).ravel() == 0
    return bool(
        (problem.low > problem.high).any()
        or (problem.row_low > problem.row_high).any()
        or (empty & ((problem.row_low > 0) | (problem.row_high < 0))).any()
    )


def _scale(problem: LinearProblem) -> float:
    """A power of two, so that scaling by it is exact."""
    ends = np.concatenate([problem.row_low, problem.row_high, problem.low, problem.high])
    largest = float(np.abs(ends[np.isfinite(ends)]).max(initial=1.0))
    return max(1.0, math.ldexp(power_of_two(largest), -_ROOM))


def _model(problem: LinearProblem, scale: float) -> Any:
    rows = problem.row_low / scale, problem.row_high / scale
    return highs_model(problem.matrix, rows, (problem.low / scale, problem.high / scale))


@dataclass(frozen=True)
class Limits:
    """When to end: after this many steps, which are counted, or by the clock, or when somebody says so."""

    seconds: float | None
    steps: int | None
    stop: Callable[[], bool] | None

    def set(self, model: Any) -> None:
        """Tell a model, before it runs."""
        # The solver's clock goes on from one question to the next.
        end = model.getRunTime() + max(self.seconds, 1e-3) if self.seconds is not None else None
        most = _MOST_STEPS if self.steps is None else min(max(self.steps, 0), _MOST_STEPS)
        set_options(
            model,
            time_limit=highspy.kHighsInf if end is None else end,
            simplex_iteration_limit=most,
        )

    @contextmanager
    def watching(self, model: Any) -> Iterator[list[None]]:
        """Count how often a search looks at its limits, which is the same on every machine."""
        looks: list[None] = []
        if self.steps is None and self.stop is None:
            yield looks
            return
        # Inside a search for whole numbers, single programs must not be cut: that would prove nothing.
        set_options(model, simplex_iteration_limit=_MOST_STEPS)

        def look(event: Any) -> None:
            looks.append(None)
            late = self.steps is not None and len(looks) > self.steps
            if late or (self.stop is not None and self.stop()):
                event.data_in.user_interrupt = True

        model.cbMipInterrupt.subscribe(look)
        try:
            yield looks
        finally:
            model.cbMipInterrupt.unsubscribe(look)
