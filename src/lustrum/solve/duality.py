"""Bounds that hold whatever a solver did: weak duality with its rounding errors counted in.

For any multipliers ``y`` of the rows, with ``d = c - A' y``,

    ``c x  =  y A x + d x  >=  sum_i min(y_i b_i) + sum_j min(d_j x_j)``

where each minimum is taken over the interval of its row or column. A solver only proposes ``y``; good
ones make the right side equal to the minimum (Neumaier and Shcherbina 2004).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.solve.problem import LinearProblem, Sparse

__all__ = ["lower_bound"]

Floats = npt.NDArray[np.float64]

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
    y = _settled(problem, multipliers)
    matrix = problem.matrix
    reduced = cost - matrix.T @ y
    blur = np.zeros_like(reduced) if _adds_up(matrix, cost, y) else _blur(matrix, cost, y)
    by_row = _least(y, y, problem.row_low, problem.row_high)
    by_column = _least(reduced - blur, reduced + blur, problem.low, problem.high)
    if not (np.isfinite(by_row).all() and np.isfinite(by_column).all()):
        return -np.inf
    size = float(np.abs(by_row).sum() + np.abs(by_column).sum())
    count = by_row.size + by_column.size
    return float(by_row.sum() + by_column.sum()) - _EPS * count * size


def _settled(problem: LinearProblem, multipliers: Floats) -> Floats:
    """Multipliers without the solver's noise, and none that leans on an infinite end of its row."""
    near = np.round(multipliers * _GRID) / _GRID
    y = np.where(np.abs(near - multipliers) < _NOISE, near, multipliers)
    end = np.where(y > 0, problem.row_low, problem.row_high)
    return np.where(np.isfinite(end), y, 0.0)


def _adds_up(matrix: Sparse, cost: Floats, y: Floats) -> bool:
    """Whether the reduced costs come out without any rounding error."""
    parts = (y * _GRID, cost, matrix.data)
    return all(bool(np.all((p == np.round(p)) & (np.abs(p) < 2**20))) for p in parts)


def _blur(matrix: Sparse, cost: Floats, y: Floats) -> Floats:
    """How far each reduced cost may be off: a sum's error is at most its terms times its size."""
    columns = abs(matrix).tocsc()
    terms = np.diff(columns.indptr) + 2.0
    return np.asarray(2.0 * _EPS * terms * (np.abs(cost) + columns.T @ np.abs(y)))


def _least(factor_low: Floats, factor_high: Floats, low: Floats, high: Floats) -> Floats:
    """The least product of a factor and a value, each from its interval; zero times infinity is 0."""
    corners = [_product(f, x) for f in (factor_low, factor_high) for x in (low, high)]
    return np.asarray(np.minimum.reduce(corners))


def _product(factor: Floats, value: Floats) -> Floats:
    return factor * np.where(factor == 0, 0.0, value)
