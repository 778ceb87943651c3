"""Factors of dense matrices whose results have the same bytes on every machine.

Libraries choose the order of their sums by processor. These loops take every sum in one order, and round every
product; they are several times slower, so they are for matrices of a few hundred rows, up to some thousand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Floats
from lustrum.numeric.compiled import compiled

_TOGETHER = 64  # columns of a right side that stay near the processor while all rows pass over them


class Cholesky:
    """Lower factors of a matrix that is symmetric and positive definite."""

    def __init__(self, lower: Floats) -> None:
        self.lower = lower  # only the lower half counts

    def solve(self, right: Floats) -> Floats:
        """The x with ``A x = right``, for one right side or several as columns."""
        solution = np.array(right, dtype=np.float64, order="C")
        wide = solution[:, None] if solution.ndim == 1 else solution
        for begin in range(0, wide.shape[1], _TOGETHER):
            part = np.ascontiguousarray(wide[:, begin : begin + _TOGETHER])
            _forward(self.lower, part)
            _backward(self.lower, part)
            wide[:, begin : begin + _TOGETHER] = part
        return solution

    def forward(self, right: Floats) -> Floats:
        """The x with ``L x = right``."""
        part = np.array(right, dtype=np.float64)[:, None]
        _forward(self.lower, part)
        return part[:, 0]

    def inverse(self) -> Floats:
        """The inverse of the matrix."""
        return self.solve(np.eye(self.lower.shape[0]))


def cholesky(matrix: Floats) -> Cholesky | None:
    """The factors, or None where the matrix is not positive definite, as far as rounding lets see.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).solve(np.array([8.0, 12.0])).tolist()
    [1.0, 2.0]
    """
    lower = np.array(matrix, dtype=np.float64, order="C")
    return Cholesky(lower) if _factor(lower) else None


@compiled
def inner_product(one: Any, other: Any) -> float:  # pragma: no cover
    """The sum of products of two vectors, for compiled loops."""
    # Eight sums at once, which a processor can add side by side; their order is always the same.
    a = b = c = d = e = f = g = h = 0.0
    even = one.size - one.size % 8
    for k in range(0, even, 8):
        a += one[k] * other[k]
        b += one[k + 1] * other[k + 1]
        c += one[k + 2] * other[k + 2]
        d += one[k + 3] * other[k + 3]
        e += one[k + 4] * other[k + 4]
        f += one[k + 5] * other[k + 5]
        g += one[k + 6] * other[k + 6]
        h += one[k + 7] * other[k + 7]
    rest = 0.0
    for k in range(even, one.size):
        rest += one[k] * other[k]
    return ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest


@compiled
def _factor(a: Any) -> bool:  # pragma: no cover
    """Turn the lower half into factors, in place, some columns at a time."""
    size = a.shape[0]
    for begin in range(0, size, _TOGETHER):
        end = min(begin + _TOGETHER, size)
        for row in range(begin, size):
            for column in range(begin, min(row + 1, end)):
                left = a[row, column] - inner_product(a[row, begin:column], a[column, begin:column])
                if column < row:
                    a[row, column] = left / a[column, column]
                elif left > 0.0:
                    a[row, row] = np.sqrt(left)
                else:
                    return False
        if end < size:
            _take_off(a, begin, end)
    return True


@compiled
def _take_off(a: Any, begin: int, end: int) -> None:  # pragma: no cover
    """Take off what the columns between two ends account for in the rows and columns after them."""
    size = a.shape[0]
    across = np.ascontiguousarray(a[end:, begin:end].T)
    for first in range(end, size, 2 * _TOGETHER):
        for row in range(first, size):
            last = min(first + 2 * _TOGETHER, row + 1)
            for k in range(0, end - begin, 4):
                p, q = a[row, begin + k], a[row, begin + k + 1]
                r, s = a[row, begin + k + 2], a[row, begin + k + 3]
                for column in range(first, last):
                    j = column - end
                    done = p * across[k, j] + q * across[k + 1, j]
                    done += r * across[k + 2, j] + s * across[k + 3, j]
                    a[row, column] -= done


@compiled
def _forward(lower: Any, right: Any) -> None:  # pragma: no cover
    size, width = right.shape
    for row in range(size):
        for other in range(row):
            times = lower[row, other]
            if times != 0.0:
                for k in range(width):
                    right[row, k] -= times * right[other, k]
        for k in range(width):
            right[row, k] /= lower[row, row]


@compiled
def _backward(lower: Any, right: Any) -> None:  # pragma: no cover
    size, width = right.shape
    for row in range(size - 1, -1, -1):
        for k in range(width):
            right[row, k] /= lower[row, row]
        for other in range(row):
            times = lower[row, other]
            if times != 0.0:
                for k in range(width):
                    right[other, k] -= times * right[row, k]
