"""Convex quadratic programs with equations and bounds, by Clarabel's interior point method.

The least ``sum_i (p_i x_i^2 / 2 + c_i x_i)`` over all x with ``A x = b`` and ``low <= x <= high``. Where
all solutions of the equations are known as ``x = S t``, the span S may be handed over; with few t that is
much quicker. Rows may depend on each other. Every answer comes with how far it is from the optimality
conditions, so that nobody has to trust the solver (Goulart and Chen 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Sparse
from lustrum.numeric.solve.problem import Outcome
from lustrum.numeric.solve.products import dot, sparse_product

_GOOD = 1e-7  # what is closer than this to the conditions counts as an optimum
_ENDS = {"PrimalInfeasible": Outcome.INFEASIBLE, "DualInfeasible": Outcome.UNBOUNDED}


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
    problem: QuadraticProblem, *, tolerance: float = 1e-9, steps: int = 200
) -> QuadraticOptimum:
    """The optimum of a convex quadratic program, or what prevents it.

    >>> row = sparse.csr_array([[1.0, 1.0]])
    >>> problem = QuadraticProblem([1.0, 1.0], [0.0, -1.0], row, [3.0], [0.0] * 2, [1.5, np.inf])
    >>> found = minimise_quadratic(problem)
    >>> found.outcome.value, np.round(found.point, 6).tolist()
    ('optimal', [1.0, 2.0])
    """
    import clarabel

    if bool((problem.low > problem.high).any()):
        return QuadraticOptimum(Outcome.INFEASIBLE, np.inf)
    rows, width = problem.matrix.shape
    span = sparse.eye_array(width, format="csr") if problem.span is None else problem.span
    span = span.tocsr().astype(np.float64)
    # Columns whose bounds meet become equations of their own.
    held = np.flatnonzero(problem.low == problem.high)
    below = np.flatnonzero(np.isfinite(problem.low) & (problem.low < problem.high))
    above = np.flatnonzero(np.isfinite(problem.high) & (problem.low < problem.high))
    # Movements in a unit of their own size, and no end far from 1: the solver judges both by the same measure.
    unit, price = _units(problem)
    ends = np.concatenate(
        [problem.target, problem.low[held], -problem.low[below], problem.high[above]]
    )
    shrunk = _powers(np.maximum(np.abs(ends / unit), 1.0))
    matrix = problem.matrix.tocsr().astype(np.float64)
    conditions = sparse.vstack([matrix, span[held], -span[below], span[above]])
    # any last bit: powers of two, so exact
    conditions = sparse.diags_array(1.0 / shrunk) @ conditions
    # any last bit: who asks rounds the answer to 20 bits
    curved = span.T @ sparse.diags_array(problem.curvature) @ span
    cones = [
        clarabel.ZeroConeT(rows + held.size),
        clarabel.NonnegativeConeT(below.size + above.size),
    ]
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(sparse.triu(curved)) / price,
        sparse_product(span.T, problem.cost) / (unit * price),
        sparse.csc_matrix(conditions),
        ends / (unit * shrunk),
        cones,
        _settings(clarabel, tolerance, steps),
    ).solve()
    t, z = unit * np.array(solution.x), unit * price * np.array(solution.z) / shrunk
    cuts = np.cumsum([rows, held.size, below.size])
    y, of_held, of_below, of_above = np.split(z, cuts)
    pressure = np.zeros(problem.cost.size)
    pressure[held] = -of_held
    pressure[below] += of_below
    pressure[above] -= of_above
    best = _seen(problem, t, -y, pressure, held, solution.iterations)
    if best.residual <= max(tolerance, _GOOD):
        return best
    outcome = _ENDS.get(str(solution.status).rsplit(".", 1)[-1], Outcome.CUT_SHORT)
    value = np.inf if outcome is Outcome.INFEASIBLE else -np.inf
    return QuadraticOptimum(outcome, value, steps=solution.iterations)


def _units(problem: QuadraticProblem) -> tuple[float, float]:
    """How far the conditions move something at least, or 1 where that is less, and what it costs in that unit.

    The solver stops at a gap that is small beside 1, however little everything costs.
    """
    needed = np.maximum(np.maximum(problem.low, -problem.high), 0.0)
    reach = max(1.0, float(needed.max(initial=0.0)), float(np.abs(problem.target).max(initial=0.0)))
    unit = float(_powers(np.array([reach]))[0])
    least = dot(0.5 * problem.curvature * (needed / unit), needed / unit)
    price = max(least, float(np.abs(problem.cost).max(initial=0.0)) / unit)
    return unit, float(_powers(np.array([price]))[0]) if price > 0 else 1.0


def _powers(sizes: Floats) -> Floats:
    """The largest powers of two that are not above these; to divide by them changes no digit."""
    return np.asarray(np.ldexp(1.0, np.frexp(sizes)[1] - 1))


def _settings(clarabel: Any, tolerance: float, steps: int) -> Any:
    """One thread and the solver's own factors, so that the same program has the same answer everywhere."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.direct_solve_method = "qdldl"
    settings.max_iter = steps
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, tolerance)
    return settings


def _seen(
    problem: QuadraticProblem,
    t: Floats,
    multipliers: Floats,
    pressure: Floats,
    held: Any,
    steps: int,
) -> QuadraticOptimum:
    """A point, and how far it is from the optimality conditions."""
    span = problem.span
    point = t if span is None else sparse_product(span, t)
    slope = problem.curvature * point + problem.cost
    left = slope - pressure
    left = left if span is None else sparse_product(span.T, left)
    off = float(np.abs(left - sparse_product(problem.matrix.T, multipliers)).max(initial=0.0))
    # What cancels in a slope of 0 has a size all the same, that of a movement by 1 at least.
    sizes = (problem.curvature * (1.0 + np.abs(point)), problem.cost, pressure, multipliers)
    size = max(float(np.abs(part).max(initial=0.0)) for part in sizes)
    short = float(np.abs(sparse_product(problem.matrix, t) - problem.target).max(initial=0.0))
    outside = np.maximum(problem.low - point, point - problem.high).max(initial=0.0)
    reach = 1.0 + float(np.abs(point).max(initial=0.0))
    pushed = np.setdiff1d(np.flatnonzero(pressure), held)
    gaps = np.where(pressure > 0, point - problem.low, problem.high - point)[pushed]
    idle = float(np.abs(pressure[pushed] * gaps).sum())
    value = problem.value(point)
    residual = max(
        off / max(size, 1e-9),
        max(short, float(outside)) / reach,
        idle / max(abs(value), 1e-9 + size),
    )
    return QuadraticOptimum(Outcome.OPTIMAL, value, point, multipliers, pressure, residual, steps)
