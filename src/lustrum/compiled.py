"""How hot loops are compiled, in every room: without the interpreter's lock, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

__all__ = ["compiled"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, **options: Any) -> F:
    """Compile when first called, and keep the result on disk where there is a place to write."""
    try:
        made: Any = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # nowhere to keep it: an installation that may only be read
        made = numba.njit(nogil=True, **options)(function)
    kernel: F = made
    return kernel
