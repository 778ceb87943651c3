"""How hot loops are compiled, in every room: without the interpreter's lock, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

__all__ = ["compiled"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, **options: Any) -> F:
    """Compile when first called, and keep the result on disk where there is a place to write.

    A result that was kept is used again only while the files of the loop and of all loops that it calls, and
    the constants that they name, are what they were.
    """
    try:
        made: Any = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # nowhere to keep it: an installation that may only be read
        made = numba.njit(nogil=True, **options)(function)
    else:
        kept = getattr(getattr(made, "_cache", None), "_cache_file", None)
        if kept is not None:
            # Numba looks at the loop's own file only, and reads types by name before it looks, so a type that
            # moved is an error. A version that differs sends it to the compiler before it reads anything.
            kept._version = f"{numba.__version__} {_made_of(made, {})!r}"
    kernel: F = made
    return kernel


def _made_of(loop: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Add to what is known the files of a loop and of all it calls, and the constants that they name."""
    function = loop.py_func
    name = f"{function.__module__}.{function.__qualname__}"
    if name not in known:
        file = Path(function.__code__.co_filename).stat()
        known[name] = (file.st_mtime_ns, file.st_size)
        for word in function.__code__.co_names:
            value = function.__globals__.get(word)
            if hasattr(value, "py_func"):
                _made_of(value, known)
            elif isinstance(value, int | float | str | tuple):
                known[f"{name}.{word}"] = repr(value)
    return known
