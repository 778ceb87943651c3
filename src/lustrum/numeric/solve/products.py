"""Products and small helpers whose results have the same bytes on every machine.

Libraries for linear algebra choose the order of a sum by processor and by the number of threads, and compilers
join a product and a sum into one step where the processor can. Here every product is rounded and every
sum has one order. Whole numbers need none of this: their sums are exact in any order.

Factors of dense matrices (:func:`cholesky`) are several times slower than those of a library, so they are for
matrices of a few hundred rows, up to some thousand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from lustrum.model.arrays import Array, Floats, Sparse
from lustrum.numeric.compiled import compiled, compiled_if_large

# scipy ships no types; this stands for scipy.sparse.csr_array and csc_array.

# Numbers that come of sums and differences of cells are nearly always multiples of 1 over this.
_COMMON = 840.0
_BOUND_BITS = 32
_TOGETHER = 64  # columns of a right side that stay near the processor while all rows pass over them


@contextmanager
def one_thread() -> Iterator[None]:
    """Code that runs inside factors its matrices in one thread.

    On matrices of a thousand rows several threads gain little, and wait for each other for long where
    somebody else uses a processor. Sums taken in another order would also differ in the last digits.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def dot(one: Floats, other: npt.NDArray[Any]) -> float:
    """The sum of the products of two vectors.

    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float((one * other).sum())


def sparse_product(matrix: Sparse, x: Floats) -> Floats:
    """A sparse matrix, by rows or by columns, times a vector.

    >>> from scipy import sparse
    >>> sparse_product(sparse.csr_array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 0.5])).tolist()
    [2.0, 1.5]
    """
    if matrix.format not in ("csr", "csc"):
        matrix = matrix.tocsr()
    out = np.zeros(matrix.shape[0])
    loop = _by_rows if matrix.format == "csr" else _by_columns
    data = np.asarray(matrix.data, dtype=np.float64)
    x = np.ascontiguousarray(x, dtype=np.float64)
    loop(matrix.indptr, matrix.indices, data, x, out)
    return out


def power_of_two(value: float) -> float:
    """The least power of two that is not below a positive number.

    >>> power_of_two(1.0), power_of_two(5.0), power_of_two(0.3)
    (1.0, 8.0, 0.5)
    """
    part, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - 1 if part == 0.5 else exponent)


def cleared(x: Floats, bits: int, size: float = 1.0) -> Floats:
    """Numbers without a solver's noise: rounded to multiples of ``2**-bits``, in units of about a size.

    Halves, quarters and so on stay what they are, and no simple fraction lies halfway between two multiples.

    >>> cleared(np.array([0.5 + 1e-12, 1.0 - 1e-12]), 26).tolist()
    [0.5, 1.0]
    """
    grid = math.ldexp(power_of_two(size), -bits)
    return np.asarray(np.rint(x / grid) * grid) + 0.0  # no minus 0


def floored(bound: float) -> float:
    """A bound without a solver's noise, and never higher.

    >>> floored(0.75), floored(0.75 - 1e-14) == floored(0.75 - 2e-14)
    (0.75, True)
    """
    if bound == 0.0 or not math.isfinite(bound):
        return bound
    grid = math.ldexp(power_of_two(abs(bound)), -_BOUND_BITS)
    return math.floor(bound / grid) * grid


def snapped(x: Floats, near: float) -> Floats:
    """Numbers that are nearly multiples of 1/840 as the nearest floats to these; others as they are."""
    multiple = np.rint(x * _COMMON) / _COMMON
    return np.asarray(np.where(np.abs(multiple - x) < near, multiple, x)) + 0.0  # no minus 0


def uniform(luck: np.random.Generator, low: float, high: float, count: int) -> Floats:
    """Numbers drawn between two ends; the generator's own way rounds once or twice, by processor."""
    return np.asarray(low + (high - low) * luck.random(count))


@compiled_if_large
def _by_rows(
    indptr: Array, indices: Array, data: Array, x: Array, out: Array
) -> None:  # pragma: no cover
    for row in range(out.size):
        total = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            total += data[k] * x[indices[k]]
        out[row] = total


@compiled_if_large
def _by_columns(
    indptr: Array, indices: Array, data: Array, x: Array, out: Array
) -> None:  # pragma: no cover
    for column in range(x.size):
        for k in range(indptr[column], indptr[column + 1]):
            out[indices[k]] += data[k] * x[column]


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
        return self.solve(np.eye(self.lower.shape[0]))


def cholesky(matrix: Floats) -> Cholesky | None:
    """The factors, or None where the matrix is not positive definite, as far as rounding lets see.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).solve(np.array([8.0, 12.0])).tolist()
    [1.0, 2.0]
    """
    lower = np.array(matrix, dtype=np.float64, order="C")
    return Cholesky(lower) if _factor(lower) else None


@compiled
def inner_product(one: Array, other: Array) -> float:  # pragma: no cover
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
def _factor(a: Array) -> bool:  # pragma: no cover
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
def _take_off(a: Array, begin: int, end: int) -> None:  # pragma: no cover
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
def _forward(lower: Array, right: Array) -> None:  # pragma: no cover
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
def _backward(lower: Array, right: Array) -> None:  # pragma: no cover
    size, width = right.shape
    for row in range(size - 1, -1, -1):
        for k in range(width):
            right[row, k] /= lower[row, row]
        for other in range(row):
            times = lower[row, other]
            if times != 0.0:
                for k in range(width):
                    right[other, k] -= times * right[row, k]
