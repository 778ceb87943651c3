"""The different numbers of an array, and where each of its numbers stands among them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Array, Ints

_CLOSE = 8
"""How many times as far apart as there are numbers the least and the greatest may be for counting."""


def distinct(numbers: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """As :func:`numpy.unique` with its inverse, but without sorting where whole numbers lie close together.

    >>> values, place = distinct(np.array([7, 5, 7, 9]))
    >>> values.tolist(), place.tolist()
    ([5, 7, 9], [1, 0, 1, 2])
    """
    flat = numbers.ravel()
    if flat.size and flat.dtype == np.int64:
        least, greatest = int(flat.min()), int(flat.max())
        if greatest - least < _CLOSE * flat.size:
            above = flat - least
            met = np.zeros(greatest - least + 1, dtype=np.bool_)
            met[above] = True
            rank = np.cumsum(met, dtype=np.intp) - 1
            return np.flatnonzero(met) + least, rank[above].reshape(numbers.shape)
    values, inverse = np.unique(flat, return_inverse=True)
    return values, inverse.reshape(numbers.shape)


def distinct_columns(columns: Ints) -> tuple[Ints, npt.NDArray[np.intp]]:
    """The different columns of a matrix, sorted by their first number, then by the next, and where each stands.

    >>> values, place = distinct_columns(np.array([[2, 1, 2], [0, 5, 0]]))
    >>> values.tolist(), place.tolist()
    ([[1, 2], [5, 0]], [1, 0, 1])
    """
    order = np.lexsort(columns[::-1])
    ranked = columns[:, order]
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (ranked[:, 1:] != ranked[:, :-1]).any(axis=0)
    inverse = np.empty(order.size, dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return ranked[:, new], inverse
