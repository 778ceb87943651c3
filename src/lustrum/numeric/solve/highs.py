"""The one place that talks to HiGHS: programs that change from question to question, and proven optima.

Every program runs quietly in one thread with a fixed seed, so the same questions in the same order get the same
answers on one kind of processor. On another kind the solver may stop at another of several optima, or after
another number of steps. So what is published depends on optima that are the only ones and on no count of steps:
small irregular costs (:func:`single_optimum`) choose among the best.

One program may take many seconds. The solver asks after every step of the simplex method, and between the
steps of a search for whole numbers, whether to go on. Asking changes nothing about its way, so a run that
nobody stops gives what it gives without the question.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats, Indices, Sparse
from lustrum.numeric.solve.problem import LinearProblem, Optimum, Outcome, Prover, drawn_back
from lustrum.numeric.solve.products import cleared, dot, power_of_two
from lustrum.runtime.stop import Stopped, stop_asked

FINE = 1e-10  # what a solver is asked to tell apart where one optimum must be the only one
SIMPLEX: dict[str, object] = {"presolve": "off", "solver": "simplex", "simplex_strategy": 1}
"""Options of linear programs that go on from each other by the dual method."""
DUAL, PRIMAL = 1, 4  # HiGHS's numbers for the variants of the simplex method
NO_LIMIT = 2**31 - 1  # what the solver takes for no limit of steps or nodes
_QUIET = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0}
_LARGEST = 2.0**12  # the largest cost in a program with small costs added
_SMALL = 2.0**-9  # these: far above what a solver tells apart
_PAUSE = 0.1  # seconds between two questions to the caller
_ROOM = 26  # solvers tell 1e-7 from nothing, so numbers are brought below 2**26
_BITS = (
    30  # of a point, in scaled units: far below what the solver tells apart, and above its noise
)
_LOOSE = 1e-6  # a proof that falls short of the point by more is tried again
# Small problems are asked by the hundred; these heuristics take longer than the search itself.
_PLAIN = {
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
_STATUS = highspy.HighsModelStatus
_ENDED = {
    _STATUS.kOptimal: "optimal",
    _STATUS.kInfeasible: "infeasible",
    _STATUS.kUnbounded: "unbounded",
    _STATUS.kUnboundedOrInfeasible: "unbounded or infeasible",
    _STATUS.kModelEmpty: "empty",
    _STATUS.kObjectiveTarget: "target",
    _STATUS.kObjectiveBound: "bound",
    _STATUS.kTimeLimit: "cut short",
    _STATUS.kIterationLimit: "cut short",
    _STATUS.kInterrupt: "cut short",
}
_STANDING = {
    highspy.HighsBasisStatus.kBasic: "basic",
    highspy.HighsBasisStatus.kLower: "lower",
    highspy.HighsBasisStatus.kUpper: "upper",
}
_OUTCOMES = {
    "optimal": Outcome.OPTIMAL,
    "infeasible": Outcome.INFEASIBLE,
    "unbounded": Outcome.UNBOUNDED,
    "target": Outcome.OPTIMAL,
}


class Program:
    """``rows[0] <= matrix @ x <= rows[1]``, ``columns[0] <= x <= columns[1]``, at the least ``cost @ x``.

    ``cost`` is 0 if left out; the columns in ``whole`` take whole numbers only. Options go by HiGHS's own
    names. Ends, costs and rows may change between runs, and a run goes on from the last basis.
    """

    def __init__(
        self,
        matrix: Sparse,
        rows: tuple[npt.ArrayLike, npt.ArrayLike],
        columns: tuple[npt.ArrayLike, npt.ArrayLike],
        cost: npt.ArrayLike | None = None,
        whole: Indices | None = None,
        **options: Any,
    ) -> None:
        csc = matrix.tocsc().astype(np.float64)
        lp = highspy.HighsLp()
        lp.num_row_, lp.num_col_ = csc.shape
        self.cost = np.zeros(csc.shape[1]) if cost is None else np.array(cost, np.float64)
        self.low, self.high = (np.array(end, np.float64) for end in columns)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = self.cost, self.low, self.high
        lp.row_lower_, lp.row_upper_ = (np.asarray(end, np.float64) for end in rows)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = csc.indptr.astype(np.int32)
        lp.a_matrix_.index_ = csc.indices.astype(np.int32)
        lp.a_matrix_.value_ = csc.data
        if whole is not None:
            kinds = np.full(csc.shape[1], highspy.HighsVarType.kContinuous)
            kinds[whole] = highspy.HighsVarType.kInteger
            lp.integrality_ = kinds.tolist()
        self.model = highspy.Highs()  # type: ignore[no-untyped-call]
        self.set(**(_QUIET | options))
        if self.model.passModel(lp) == highspy.HighsStatus.kError:
            raise RuntimeError(
                "HiGHS did not take the program; a bound or an entry is not a number."
            )

    def set(self, **options: Any) -> None:
        """Set options of HiGHS by their own names."""
        for name, value in options.items():
            self.model.setOptionValue(name, value)

    def bound(self, low: Floats, high: Floats) -> None:
        """Other ends for the columns."""
        changed = np.flatnonzero((low != self.low) | (high != self.high)).astype(np.int32)
        if changed.size:
            self.model.changeColsBounds(changed.size, changed, low[changed], high[changed])
        self.low, self.high = low.copy(), high.copy()

    def bound_rows(self, rows: npt.NDArray[Any], low: Floats, high: Floats) -> None:
        """Other ends for some rows."""
        for row, least, most in zip(rows.tolist(), low.tolist(), high.tolist(), strict=True):
            self.model.changeRowBounds(row, least, most)

    def price(self, cost: Floats) -> None:
        changed = np.flatnonzero(cost != self.cost).astype(np.int32)
        if changed.size:
            self.model.changeColsCost(changed.size, changed, cost[changed])
        self.cost = cost.copy()

    def add_rows(self, matrix: Sparse, low: Floats) -> None:
        """More rows ``matrix @ x >= low``."""
        self.model.addRows(
            low.size,
            low,
            np.full(low.size, highspy.kHighsInf),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )

    def drop_rows(self, rows: npt.NDArray[Any]) -> None:
        self.model.deleteRows(rows.size, rows.astype(np.int32))

    def add_column(self, cost: float, row: int, weight: float) -> None:
        """One more column from 0 upwards, with one entry."""
        entry = np.array([row], np.int32), np.array([weight])
        self.model.addCol(cost, 0.0, highspy.kHighsInf, 1, *entry)

    def start(self, point: Floats) -> None:
        """A first point for a search."""
        known = highspy.HighsSolution()
        known.col_value = point.tolist()
        self.model.setSolution(known)

    def forget(self) -> None:
        self.model.clearSolver()

    @property
    def basis(self) -> Any:
        return self.model.getBasis()

    @basis.setter
    def basis(self, basis: Any) -> None:
        self.model.setBasis(basis)

    def standing(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Where columns and rows stand in the basis: basic, or at their lower or upper end."""
        basis = self.model.getBasis()
        columns, rows = (
            tuple(_STANDING.get(status, "free") for status in every)
            for every in (basis.col_status, basis.row_status)
        )
        return columns, rows

    def run(self, stop: Callable[[], bool] | None = None) -> str:
        """Run unless the caller asks to stop; gives how it ended.

        Where the caller of all this work asks (:mod:`lustrum.runtime.stop`), :class:`Stopped` is raised; an
        interrupt from the keyboard raises what its handler raises. Where ``stop`` returns True, the program
        ends without an optimum.
        """
        gone, errors = stop_asked(), list[BaseException]()
        stopped = ended = False
        again = 0.0

        def look(event: Any) -> None:
            nonlocal stopped, ended, again
            now = time.monotonic()
            if now >= again:
                again = now + _PAUSE
                stopped = stopped or gone()
                ended = ended or (stop is not None and stop())
            if stopped or ended or errors:
                event.data_in.user_interrupt = True

        model = self.model
        places = (model.cbSimplexInterrupt, model.cbIpmInterrupt, model.cbMipInterrupt)
        with _keeping_interrupts(errors):
            for callback in places:
                callback.subscribe(look)
            try:
                model.run()
            finally:
                for callback in places:
                    callback.unsubscribe(look)
        if model.getModelStatus() == _STATUS.kInterrupt:
            model.enableCallbacks()  # type: ignore[no-untyped-call] # otherwise HiGHS keeps the interrupt for the next run
        if errors or stopped:
            model.clearSolver()  # another question to this model begins from scratch
            raise errors[0] if errors else Stopped
        return self.ended

    def finds(self) -> bool:
        """Run, from scratch where going on leads nowhere; gives whether there is an optimum."""
        if self.run() != "optimal":
            self.forget()
            self.run()
        return self.ended == "optimal"

    @property
    def ended(self) -> str:
        return _ENDED.get(self.model.getModelStatus(), "unknown")

    @property
    def outcome(self) -> Outcome:
        """The same in fewer words."""
        return _OUTCOMES.get(self.ended, Outcome.CUT_SHORT)

    @property
    def point(self) -> Floats:
        return np.array(self.model.getSolution().col_value)

    @property
    def has_point(self) -> bool:
        """Whether the last run, however it ended, found a point that satisfies everything."""
        feasible = highspy.SolutionStatus.kSolutionStatusFeasible
        return bool(self.model.getInfo().primal_solution_status == feasible)

    @property
    def prices(self) -> Floats:
        return np.array(self.model.getSolution().row_dual)

    @property
    def value(self) -> float:
        return float(self.model.getInfo().objective_function_value)

    @property
    def whole_bound(self) -> float:
        """What no whole point costs less than, as far as a search got."""
        return float(self.model.getInfo().mip_dual_bound)


@contextmanager
def _keeping_interrupts(errors: list[BaseException]) -> Iterator[None]:
    """Keep what the handler of Ctrl-C raises: it must not pass through the compiled solver."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def keep(number: int, frame: Any) -> None:
        try:
            before(number, frame)
        except BaseException as error:
            errors.append(error)

    signal.signal(signal.SIGINT, keep)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is keep:
            signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Limits:
    """When to end: after this many steps, which are counted, or when somebody says so."""

    steps: int | None
    stop: Callable[[], bool] | None = None

    def set(self, program: Program) -> None:
        """Tell a program, before it runs."""
        most = NO_LIMIT if self.steps is None else min(max(self.steps, 0), NO_LIMIT)
        program.set(simplex_iteration_limit=most)

    @contextmanager
    def watching(self, program: Program) -> Iterator[list[None]]:
        """Count how often a search looks at its limits, which is the same on every machine."""
        looks: list[None] = []
        if self.steps is None and self.stop is None:
            yield looks
            return
        # Inside a search for whole numbers, single programs must not be cut: that would prove nothing.
        program.set(simplex_iteration_limit=NO_LIMIT)

        def look(event: Any) -> None:
            looks.append(None)
            late = self.steps is not None and len(looks) > self.steps
            if late or (self.stop is not None and self.stop()):
                event.data_in.user_interrupt = True

        program.model.cbMipInterrupt.subscribe(look)
        try:
            yield looks
        finally:
            program.model.cbMipInterrupt.unsubscribe(look)


def single_optimum(cost: Floats) -> Floats:
    """Costs in another unit with small ones added, so that no two vertices cost the same."""
    largest = float(np.abs(cost).max(initial=1.0)) or 1.0
    chance = 1.0 + np.random.default_rng(cost.size).random(cost.size)
    return np.asarray(cost * (_LARGEST / power_of_two(largest)) + chance * _SMALL)


def solved(program: Program) -> Floats | None:
    """Run a program: its point, or None where it has none or the solver did not end by itself."""
    return program.point if program.run() == "optimal" else None


@dataclass(frozen=True)
class Highs:
    """Linear and integer programs by HiGHS, hot-started from one question to the next.

    Only the costs differ between questions, so the vertex reached last is feasible for the next one, and the
    primal simplex method needs a handful of steps from there. Nothing is presolved in between, which would
    forget that vertex. Every linear bound is proven again by weak duality from the multipliers alone, so an
    error of the solver can make a bound weaker but never wrong.

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
        self._scale = _scale(problem)
        self._prove = Prover(problem)
        self._linear: Program | None = None
        self._integer: Program | None = None

    def minimise(
        self,
        cost: Floats,
        *,
        whole: bool = False,
        target: float | None = None,
        steps: int | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Optimum:
        """The least ``cost @ x``; for whole x by branch and bound, down to the target if there is one."""
        if self.problem.is_crossed:
            return Optimum(Outcome.INFEASIBLE, np.inf)
        if cost.size == 0:
            return Optimum(Outcome.OPTIMAL, 0.0, np.zeros(0))
        limits = Limits(steps, stop)
        return self._branch(cost, limits, target) if whole else self._slide(cost, limits)

    def again(self) -> _Loaded:
        """The same problem at the same vertex."""
        twin = _Loaded(self.problem, fine=bool(self._fine))
        if self._linear is not None:
            twin._linear = twin._opened()
            twin._linear.basis = self._linear.basis
        return twin

    def _opened(self) -> Program:
        options: dict[str, Any] = {"presolve": "off", "solver": "simplex", **self._fine}
        return _program(self.problem, self._scale, **options)

    def _slide(self, cost: Floats, limits: Limits) -> Optimum:
        """From the last vertex to the best one; from scratch where that leads nowhere."""
        fresh = self._linear is None
        program = self._linear = self._opened() if self._linear is None else self._linear
        program.price(cost)
        # Without a vertex to start from the dual method is quicker, and says why nothing is feasible.
        optimum = self._run(program, DUAL if fresh else PRIMAL, limits)
        if optimum.outcome is Outcome.UNBOUNDED or self._good(cost, optimum):
            return optimum
        if program.ended == "cut short" or (fresh and optimum.outcome is Outcome.INFEASIBLE):
            return optimum
        program.forget()
        again = self._run(program, DUAL, limits)
        if again.outcome is Outcome.INFEASIBLE or again.bound > optimum.bound:
            return again
        return optimum

    def _run(self, program: Program, strategy: int, limits: Limits) -> Optimum:
        program.set(simplex_strategy=strategy)
        limits.set(program)
        program.run(limits.stop)
        outcome, cost = program.outcome, program.cost
        steps = max(int(program.model.getInfo().simplex_iteration_count), 0)
        if outcome is Outcome.INFEASIBLE:
            return Optimum(outcome, np.inf, None, self._ray(program), steps)
        if outcome is Outcome.UNBOUNDED or not program.model.getSolution().dual_valid:
            return Optimum(outcome, -np.inf, None, None, steps)
        y = program.prices
        proven = self._prove(cost, y)
        point = None
        if outcome is Outcome.OPTIMAL:
            point = cleared(program.point, _BITS) * self._scale
            if proven == -np.inf:
                proven = drawn_back(dot(cost, point))
        return Optimum(outcome, proven, point, y, steps)

    def _good(self, cost: Floats, optimum: Optimum) -> bool:
        """Whether the proof reaches the point, as it does but for numerical trouble."""
        if optimum.outcome is not Outcome.OPTIMAL or optimum.point is None:
            return False
        value = dot(cost, optimum.point)
        return value - optimum.bound <= _LOOSE * (1.0 + 1e-3 * abs(value))

    def _ray(self, program: Program) -> Floats | None:
        """Multipliers that prove that nothing is feasible (Farkas), if the solver has them."""
        _, has, ray = program.model.getDualRay()  # type: ignore[attr-defined]
        if not has:
            return None
        signed = [np.array(ray), -np.array(ray)]
        proofs = [self._prove(np.zeros(program.cost.size), y) for y in signed]
        best = int(np.argmax(proofs))
        return signed[best] if proofs[best] > 0 else None

    def _branch(self, cost: Floats, limits: Limits, target: float | None) -> Optimum:
        if self._integer is None:
            self._integer = _program(self.problem, 1.0, np.arange(cost.size), **_PLAIN)
        program = self._integer
        program.price(cost)
        program.set(objective_target=-highspy.kHighsInf if target is None else target + 1e-6)
        limits.set(program)
        with limits.watching(program) as looks:
            program.run()
        outcome = program.outcome
        if outcome is Outcome.INFEASIBLE:
            return Optimum(outcome, np.inf)
        point = program.point if program.model.getSolution().value_valid else None
        bound = program.whole_bound
        proven = drawn_back(bound) if np.isfinite(bound) else -np.inf
        return Optimum(outcome, proven, point, None, len(looks))


def _scale(problem: LinearProblem) -> float:
    """A power of two, so that scaling by it is exact."""
    ends = np.concatenate([problem.row_low, problem.row_high, problem.low, problem.high])
    largest = float(np.abs(ends[np.isfinite(ends)]).max(initial=1.0))
    return max(1.0, math.ldexp(power_of_two(largest), -_ROOM))


def _program(
    problem: LinearProblem, scale: float, whole: Indices | None = None, **options: Any
) -> Program:
    rows = problem.row_low / scale, problem.row_high / scale
    columns = problem.low / scale, problem.high / scale
    return Program(problem.matrix, rows, columns, None, whole, **options)
