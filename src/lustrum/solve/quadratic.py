"""Convex quadratic programs with equations and bounds, by an interior point method.

The least ``sum_i (p_i x_i^2 / 2 + c_i x_i)`` over all x with ``A x = b`` and ``low <= x <= high``. Where
all solutions of the equations are known as ``x = S t``, the span S may be handed over; with few t that is
much quicker. Steps follow Mehrotra (1992): one straight at the optimum tells how far to aim for the
middle in the one that is taken. Rows may depend on each other. Every answer comes with how far it is from
the optimality conditions, so that nobody has to trust the method.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from lustrum.arrays import Floats
from lustrum.solve.highs import Highs
from lustrum.solve.problem import LinearProblem, Outcome
from lustrum.solve.products import dot, sparse_product
from lustrum.solve.quadratic_system import System
from lustrum.solve.threads import one_thread

__all__ = ["QuadraticOptimum", "QuadraticProblem", "minimise_quadratic"]

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

_SHORT_OF_THE_WALL = 0.995
_GOOD = 1e-7  # what is closer than this to the conditions counts as an optimum
_PATIENCE = 15  # this many steps without getting closer, and no more are taken


@dataclass(frozen=True, eq=False)
class QuadraticProblem:
    """``sum_i (p_i x_i^2 / 2 + c_i x_i)`` over ``x = S t``, ``A t = b`` and ``low <= x <= high``.

    Without a ``span`` S, t is x itself. ``curvature`` holds the p, none below 0. Infinite ends bound
    nothing.
    """

    curvature: Floats
    cost: Floats
    matrix: Sparse
    target: Floats
    low: Floats
    high: Floats
    span: Sparse = None

    def __post_init__(self) -> None:
        rows, width = self.matrix.shape
        columns = width if self.span is None else self.span.shape[0]
        if self.span is not None and self.span.shape[1] != width:
            raise ValueError(f"The span has {self.span.shape[1]} columns; it must have {width}.")
        for name in ("curvature", "cost", "target", "low", "high"):
            array = np.array(getattr(self, name), dtype=np.float64)
            size = rows if name == "target" else columns
            if array.shape != (size,):
                raise ValueError(f"{name} has shape {array.shape}; it must be ({size},).")
            if np.isnan(array).any():
                raise ValueError(f"{name} holds a NaN.")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.curvature.size and float(self.curvature.min()) < 0:
            raise ValueError("The curvature is below 0 somewhere; then there may be no optimum.")

    def __repr__(self) -> str:
        return f"QuadraticProblem({self.matrix.shape[0]} rows, {self.cost.size} columns)"

    def value(self, point: Floats) -> float:
        """What a point costs."""
        return dot(point, 0.5 * self.curvature * point + self.cost)


@dataclass(frozen=True, eq=False)
class QuadraticOptimum:
    """The end of a minimisation, with what proves it.

    ``slope`` is ``p x + c``, ``multipliers`` are those of the rows, and ``pressure`` is that of the bounds:
    above 0 where the lower one pushes, below 0 where the upper one does. At an optimum
    ``S'(slope - pressure) = A' multipliers``. ``residual`` is the largest of how far that fails, how far
    the rows are missed (each relative to its size) and the cost of pressure away from the bounds
    relative to all cost.
    """

    outcome: Outcome
    value: float
    point: Floats | None = None
    multipliers: Floats | None = None
    pressure: Floats | None = None
    residual: float = np.inf
    steps: int = 0


def minimise_quadratic(
    problem: QuadraticProblem,
    *,
    tolerance: float = 1e-9,
    steps: int = 100,
    seconds: float | None = None,
) -> QuadraticOptimum:
    """The optimum of a convex quadratic program, or what prevents it.

    >>> row = sparse.csr_array([[1.0, 1.0]])
    >>> problem = QuadraticProblem([1.0, 1.0], [0.0, -1.0], row, [3.0], [0.0] * 2, [1.5, np.inf])
    >>> found = minimise_quadratic(problem)
    >>> found.outcome.value, np.round(found.point, 6).tolist()
    ('optimal', [1.0, 2.0])
    """
    if bool((problem.low > problem.high).any()):
        return QuadraticOptimum(Outcome.INFEASIBLE, np.inf)
    with one_thread():
        return _followed(problem, tolerance, steps, seconds)


def _followed(
    problem: QuadraticProblem, tolerance: float, steps: int, seconds: float | None
) -> QuadraticOptimum:
    """Follow the central path until the optimum is near enough, or nothing gets better."""
    end = np.inf if seconds is None else time.perf_counter() + seconds
    path = _Path(problem)
    best = path.seen()
    taken = stalled = 0
    late = False
    while best.residual > tolerance and taken < steps and not late:
        patience = 2 if best.residual <= _GOOD else _PATIENCE
        if stalled >= patience or not path.step():
            break
        taken += 1
        seen = path.seen()
        stalled = 0 if seen.residual < 0.9 * best.residual else stalled + 1
        best = seen if seen.residual < best.residual else best
        late = time.perf_counter() > end
    if best.residual > max(tolerance, _GOOD):
        outcome = Outcome.CUT_SHORT if late else _why(problem)
        value = np.inf if outcome is Outcome.INFEASIBLE else -np.inf
        return QuadraticOptimum(outcome, value, steps=taken)
    return QuadraticOptimum(
        Outcome.OPTIMAL,
        best.value,
        best.point,
        best.multipliers,
        best.pressure,
        best.residual,
        taken,
    )


def _why(problem: QuadraticProblem) -> Outcome:
    """Whether a linear solver finds the problem infeasible or unbounded."""
    matrix = problem.matrix.tocsr().astype(np.float64)
    rows, width = matrix.shape
    span = sparse.eye_array(width, format="csr") if problem.span is None else problem.span
    both = sparse.vstack([matrix, span.astype(np.float64)], format="csr")
    low = np.concatenate([problem.target, problem.low])
    high = np.concatenate([problem.target, problem.high])
    free = np.full(width, np.inf)
    feasible = Highs().load(LinearProblem(both, low, high, -free, free))
    if feasible.minimise(np.zeros(width)).outcome is Outcome.INFEASIBLE:
        return Outcome.INFEASIBLE
    # A direction along which no bound stops, nothing curves and the cost falls.
    open_low = np.where(np.isfinite(low[rows:]) | (problem.curvature > 0), 0.0, -1.0)
    open_high = np.where(np.isfinite(high[rows:]) | (problem.curvature > 0), 0.0, 1.0)
    cone = LinearProblem(
        both,
        np.concatenate([np.zeros(rows), open_low]),
        np.concatenate([np.zeros(rows), open_high]),
        -free,
        free,
    )
    falling = sparse_product(span.T, problem.cost)
    point = Highs().load(cone).minimise(falling).point
    if point is not None and dot(falling, point) < -1e-7:
        return Outcome.UNBOUNDED
    return Outcome.CUT_SHORT


class _Path:
    """A point inside the bounds with its multipliers, and the steps it takes to the optimum.

    Columns whose bounds meet become equations of their own.
    """

    def __init__(self, problem: QuadraticProblem) -> None:
        self.problem = problem
        rows, width = problem.matrix.shape
        held = problem.low == problem.high
        keep = np.flatnonzero(~held)
        every = sparse.eye_array(width, format="csr") if problem.span is None else problem.span
        every = every.tocsr().astype(np.float64)
        self.keep, self.held, self.rows = keep, np.flatnonzero(held), rows
        # What is held still costs; the equations pin it, and the curvature of t stays as it is.
        self.p, self.c = problem.curvature[keep], problem.cost[keep]
        self.low, self.high = problem.low[keep], problem.high[keep]
        self.below, self.above = np.isfinite(self.low), np.isfinite(self.high)
        self.A = sparse.vstack(
            [problem.matrix.tocsr().astype(np.float64), every[self.held]], format="csr"
        )
        self.b = np.concatenate([problem.target, problem.low[self.held]])
        self.system = System(every[keep], self.A, self.held.size)
        self._begin(width)

    def _begin(self, width: int) -> None:
        """Inside all bounds, and at a distance from them that fits their size."""
        ends = np.concatenate([self.low[self.below], self.high[self.above], self.b])
        reach = max(1.0, float(np.abs(ends).mean())) if ends.size else 1.0
        room = np.where(self.below & self.above, 0.5 * (self.high - self.low), np.inf)
        distance = np.minimum(room, reach)
        low = np.where(self.below, self.low + distance, -np.inf)
        high = np.where(self.above, self.high - distance, np.inf)
        self.x = np.clip(np.zeros(self.p.size), np.minimum(low, high), np.maximum(low, high))
        self.t, self.y = np.zeros(width), np.zeros(self.b.size)
        slope = np.abs(self.p * self.x + self.c)
        push = max(1e-8, float(slope.mean()) if slope.size else 0.0)
        self.zl, self.zu = np.where(self.below, push, 0.0), np.where(self.above, push, 0.0)
        self.v = self.p * self.x + self.c - self.zl + self.zu

    def seen(self) -> QuadraticOptimum:
        """Where the path is, and how far that is from the optimality conditions."""
        problem, span = self.problem, self.problem.span
        point = self.t if span is None else sparse_product(span, self.t)
        slope = problem.curvature * point + problem.cost
        pressure = np.zeros(point.size)
        pressure[self.keep] = self.zl - self.zu
        pressure[self.held] = slope[self.held] + self.y[self.rows :]
        y = self.y[: self.rows]
        left = slope - pressure
        left = left if span is None else sparse_product(span.T, left)
        off = float(np.abs(left - sparse_product(problem.matrix.T, y)).max(initial=0.0))
        size = max(float(np.abs(part).max(initial=0.0)) for part in (slope, pressure, y))
        short = float(
            np.abs(sparse_product(problem.matrix, self.t) - problem.target).max(initial=0.0)
        )
        outside = np.maximum(problem.low - point, point - problem.high).max(initial=0.0)
        reach = 1.0 + float(np.abs(point).max(initial=0.0))
        pushed = self.keep[pressure[self.keep] != 0]
        gaps = np.where(pressure > 0, point - problem.low, problem.high - point)[pushed]
        idle = float(np.abs(pressure[pushed] * gaps).sum())
        value = problem.value(point)
        residual = max(
            off / max(size, 1e-9),
            max(short, float(outside)) / reach,
            idle / max(abs(value), 1e-9 + size),
        )
        return QuadraticOptimum(
            Outcome.CUT_SHORT, value, point.copy(), y.copy(), pressure, residual
        )

    def step(self) -> bool:
        """One step of predictor and corrector; False where the arithmetic breaks down."""
        below, above, count = self.below, self.above, int(self.below.sum() + self.above.sum())
        near = np.where(below, self.x - np.where(below, self.low, 0.0), 1.0)
        far = np.where(above, np.where(above, self.high, 0.0) - self.x, 1.0)
        # A gap that rounding has closed is still open.
        smallest = 1e-15 * (1.0 + np.abs(self.x))
        near, far = np.maximum(near, smallest), np.maximum(far, smallest)
        slope = self.p * self.x + self.c - self.v - self.zl + self.zu
        pull = -(self.system.back(self.v) - sparse_product(self.A.T, self.y))
        apart = self.system.out(self.t) - self.x
        short = self.b - sparse_product(self.A, self.t)
        stiff = self.p + self.zl / near + self.zu / far
        if not self.system.factor(stiff):
            return False

        def towards(aim_low: Floats, aim_high: Floats) -> tuple[Floats, ...]:
            right = -slope + aim_low / near - aim_high / far
            dt, dy = self.system.solve(pull + self.system.back(right - stiff * apart), short)
            dx = self.system.out(dt) + apart
            dv = stiff * dx - right
            return (
                dx,
                dt,
                dy,
                dv,
                (aim_low - self.zl * dx) / near,
                (aim_high + self.zu * dx) / far,
            )

        low_gap, high_gap = self.zl * near, self.zu * far
        move = towards(-low_gap, -high_gap)
        if count:
            mean = float(low_gap.sum() + high_gap.sum()) / count
            dx, dzl, dzu = move[0], move[4], move[5]
            reach = self._reach(dx, dzl, dzu, near, far, 1.0)
            after = (near + reach * dx) * (self.zl + reach * dzl) * below
            after += (far - reach * dx) * (self.zu + reach * dzu) * above
            share = min(1.0, max(0.0, float(after.sum()) / count / max(mean, 1e-300)))
            centre = share * share * share * mean
            move = towards(
                np.where(below, centre - low_gap - dx * dzl, 0.0),
                np.where(above, centre - high_gap + dx * dzu, 0.0),
            )
        if not all(np.isfinite(part).all() for part in move):
            return False
        dx, dt, dy, dv, dzl, dzu = move
        reach = self._reach(dx, dzl, dzu, near, far, _SHORT_OF_THE_WALL)
        self.x, self.t = self.x + reach * dx, self.t + reach * dt
        self.y, self.v = self.y + reach * dy, self.v + reach * dv
        self.zl, self.zu = self.zl + reach * dzl, self.zu + reach * dzu
        return True

    def _reach(
        self, dx: Floats, dzl: Floats, dzu: Floats, near: Floats, far: Floats, share: float
    ) -> float:
        below, above = self.below, self.above
        return min(
            _furthest(near[below], dx[below], share),
            _furthest(far[above], -dx[above], share),
            _furthest(self.zl[below], dzl[below], share),
            _furthest(self.zu[above], dzu[above], share),
        )


def _furthest(gap: Floats, speed: Floats, share: float) -> float:
    """How much of a step can be taken before the first gap closes."""
    closing = speed < 0
    if not closing.any():
        return 1.0
    return float(min(1.0, share * (gap[closing] / -speed[closing]).min()))
