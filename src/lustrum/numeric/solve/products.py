"""Products and small helpers whose results have the same bytes on every machine.

Libraries for linear algebra choose the order of a sum by processor and by the number of threads, and compilers
join a product and a sum into one step where the processor can. Here every product is rounded and every
sum has one order. Whole numbers need none of this: their sums are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from lustrum.model.arrays import Floats
from lustrum.numeric.compiled import compiled_if_large

# scipy ships no types; this stands for scipy.sparse.csr_array and csc_array.
Sparse: TypeAlias = Any

# Numbers that come of sums and differences of cells are nearly always multiples of 1 over this.
_COMMON = 840.0
_BOUND_BITS = 32


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
def _by_rows(indptr: Any, indices: Any, data: Any, x: Any, out: Any) -> None:  # pragma: no cover
    for row in range(out.size):
        total = 0.0
        for k in range(indptr[row], indptr[row + 1]):
            total += data[k] * x[indices[k]]
        out[row] = total


@compiled_if_large
def _by_columns(indptr: Any, indices: Any, data: Any, x: Any, out: Any) -> None:  # pragma: no cover
    for column in range(x.size):
        for k in range(indptr[column], indptr[column + 1]):
            out[indices[k]] += data[k] * x[column]
