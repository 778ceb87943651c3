"""Bounds that hold whatever a solver did: weak duality with its rounding errors counted in.

For any multipliers ``y`` of the rows, with ``d = c - A' y``,

    ``c x  =  y A x + d x  >=  sum_i min(y_i b_i) + sum_j min(d_j x_j)``

where each minimum is taken over the interval of its row or column. A solver only proposes ``y``; good
ones make the right side equal to the minimum (Neumaier and Shcherbina 2004).
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Floats
from lustrum.numeric.solve.problem import LinearProblem, Sparse
from lustrum.numeric.solve.products import sparse_product

_EPS = float(np.finfo(np.float64).eps)
_GRID = 64.0  # multiples of 1/64 add up without rounding error
_NOISE = 1e-7  # as far as a solver's multipliers may be off what it meant


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
