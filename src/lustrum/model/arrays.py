"""Array types by the name of what they hold, for every room."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Words: TypeAlias = npt.NDArray[np.uint64]
"""64-bit words: record keys, cell keys and other output of a keyed function."""
Indices: TypeAlias = npt.NDArray[np.intp]
"""Positions in another array."""
Array: TypeAlias = npt.NDArray[Any]
"""An array of any type, where the caller decides it."""
Sparse: TypeAlias = Any
"""A ``scipy.sparse.csr_array``; scipy ships no types."""
Whole: TypeAlias = int | np.integer[Any]
"""A whole number of Python or of numpy: loops that numba compiles get either."""


def narrow(values: Array) -> Array:
    """Whole numbers in as few bytes as hold all of them, and numbers that are all alike as a single one.

    >>> narrow(np.array([-3, 300])).dtype.name, narrow(np.array([1.0, 1.0])).strides
    ('int16', (0,))
    """
    if values.dtype.kind == "f":
        alike = values.size > 0 and bool((values == values[0]).all())
        return np.broadcast_to(values[:1], values.shape) if alike else values
    ends = int(values.min(initial=0)), int(values.max(initial=0))
    kinds = (np.int8, np.int16, np.int32, np.int64)
    return values.astype(
        next(k for k in kinds if np.iinfo(k).min <= ends[0] and ends[1] <= np.iinfo(k).max)
    )
