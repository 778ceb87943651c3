"""A linear problem, what a solver promises about it, and bounds that hold whatever the solver did.

Weak duality, with rounding errors counted in: for any multipliers ``y`` of the rows, with ``d = c - A' y``,

    ``c x  =  y A x + d x  >=  sum_i min(y_i b_i) + sum_j min(d_j x_j)``

where each minimum is taken over the interval of its row or column. A solver only proposes ``y``; good
ones make the right side equal to the minimum (Neumaier and Shcherbina 2004).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Protocol

import numpy as np

from lustrum.model.arrays import Floats, Sparse
from lustrum.numeric.solve.products import sparse_product

_EPS = float(np.finfo(np.float64).eps)
_GRID = 64.0  # multiples of 1/64 add up without rounding error
_NOISE = 1e-7  # as far as a solver's multipliers may be off what it meant


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """All x with ``row_low <= matrix @ x <= row_high`` and ``low <= x <= high``.

    A row whose two ends are equal is an equation. Infinite ends bound nothing.
    """

    matrix: Sparse
    row_low: Floats
    row_high: Floats
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        for name, size in {
            "row_low": rows,
            "row_high": rows,
            "low": columns,
            "high": columns,
        }.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (size,):
                raise ValueError(f"{name} has shape {array.shape}; it must be ({size},).")
            if np.isnan(array).any():
                raise ValueError(f"{name} holds a NaN; use an infinity where there is no bound.")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"LinearProblem({rows} rows, {columns} columns)"

    @cached_property
    def is_crossed(self) -> bool:
        """Whether some ends cross, or a row without entries asks for more than nothing."""
        empty = np.asarray(abs(self.matrix).sum(axis=1)).ravel() == 0
        return bool(
            (self.low > self.high).any()
            or (self.row_low > self.row_high).any()
            or (empty & ((self.row_low > 0) | (self.row_high < 0))).any()
        )


class Outcome(StrEnum):
    """How a minimisation ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    CUT_SHORT = "cut short"


@dataclass(frozen=True, eq=False)
class Optimum:
    """The end of a minimisation.

    No feasible x is below ``bound``, however the search ended; it is minus infinity where nothing
    is proven. ``point`` is the best x found, within the solver's tolerances, or None. The
    ``multipliers`` of the rows, where there are any, are the solver's reason for the bound; where
    nothing is feasible, they are its reason for that. ``steps`` is how many vertices it went through, or how
    often a search for whole ones looked at its limits, where these are counted.
    """

    outcome: Outcome
    bound: float
    point: Floats | None = None
    multipliers: Floats | None = None
    steps: int = 0


class Loaded(Protocol):
    """A problem inside a solver, which may keep what it learnt from one question to the next."""

    def minimise(
        self,
        cost: Floats,
        *,
        whole: bool = False,
        target: float | None = None,
        steps: int | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Optimum:
        """The least ``cost @ x``, over all x or over whole ones.

        A search for whole ones may end at the first that costs no more than the ``target``. So many ``steps``
        end the work at the same place on every machine: vertices of a linear program, looks at its
        limits of a search for whole ones. ``stop`` ends it wherever it is, so what was found by then
        must not be published.
        """
        ...

    def again(self) -> Loaded:
        """The same problem once more, to be asked at the same time, with what was learnt so far."""
        ...


class Solver(Protocol):
    """Loads a linear problem."""

    def load(self, problem: LinearProblem) -> Loaded:
        """Take in a problem, to be asked about many times."""
        ...


def lower_bound(problem: LinearProblem, cost: Floats, multipliers: Floats) -> float:
    """A number that ``cost @ x`` is never below, for every feasible x.

    Minus infinity where the multipliers prove nothing, which happens only with infinite bounds.

    >>> from scipy import sparse
    >>> one_row = sparse.csr_array([[1.0, 1.0]])
    >>> problem = LinearProblem(one_row, [3.0], [3.0], [0.0, 0.0], [2.0, np.inf])
    >>> round(lower_bound(problem, np.array([0.0, 1.0]), np.array([1.0])), 9)
    1.0
    """
    return Prover(problem)(cost, multipliers)


class Prover:
    """:func:`lower_bound` for one problem and many costs; what they share is computed once."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        self._columns = problem.matrix.T.tocsr().astype(np.float64)
        self._terms = np.diff(self._columns.indptr) + 2.0
        self._whole = _countable(self._columns.data)
        self._sizes: Sparse = None

    def __call__(self, cost: Floats, multipliers: Floats) -> float:
        """A number that ``cost @ x`` is never below."""
        problem = self.problem
        y = _settled(problem, multipliers)
        reduced = cost - sparse_product(self._columns, y)
        by_row = y * np.where(y > 0, problem.row_low, np.where(y < 0, problem.row_high, 0.0))
        if self._whole and _countable(y * _GRID) and _countable(cost):
            # The reduced costs come out without any rounding error.
            rising, falling = reduced > 0, reduced < 0
            by_column = reduced * np.where(
                rising, problem.low, np.where(falling, problem.high, 0.0)
            )
        else:
            blur = self._blur(cost, y)
            by_column = _least(reduced - blur, reduced + blur, problem.low, problem.high)
        if not (np.isfinite(by_row).all() and np.isfinite(by_column).all()):
            return -np.inf
        size = float(np.abs(by_row).sum() + np.abs(by_column).sum())
        count = by_row.size + by_column.size
        return float(by_row.sum() + by_column.sum() - _EPS * count * size)

    def _blur(self, cost: Floats, y: Floats) -> Floats:
        """How far each reduced cost may be off: a sum's error is at most its terms times its size."""
        if self._sizes is None:
            self._sizes = abs(self._columns)
        return np.asarray(
            2.0 * _EPS * self._terms * (np.abs(cost) + sparse_product(self._sizes, np.abs(y)))
        )


def drawn_back(value: float) -> float:
    """A bound that only a search in floating point vouches for, a little lower."""
    return value - 1e-6 - 1e-9 * abs(value) if np.isfinite(value) else value


def _countable(numbers: Floats) -> bool:
    """Whether all are whole and small, so that their products add up exactly."""
    return bool(np.all((numbers == np.round(numbers)) & (np.abs(numbers) < 2**20)))


def _settled(problem: LinearProblem, multipliers: Floats) -> Floats:
    """Multipliers without the solver's noise, and none that leans on an infinite end of its row."""
    near = np.round(multipliers * _GRID) / _GRID
    y = np.where(np.abs(near - multipliers) < _NOISE, near, multipliers)
    end = np.where(y > 0, problem.row_low, problem.row_high)
    return np.where(np.isfinite(end), y, 0.0)


def _least(factor_low: Floats, factor_high: Floats, low: Floats, high: Floats) -> Floats:
    """The least product of a factor and a value, each from its interval; zero times infinity is 0."""
    corners = [_product(f, x) for f in (factor_low, factor_high) for x in (low, high)]
    return np.asarray(np.minimum.reduce(corners))


def _product(factor: Floats, value: Floats) -> Floats:
    return factor * np.where(factor == 0, 0.0, value)
