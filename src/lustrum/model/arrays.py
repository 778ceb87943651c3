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
