"""How the hot loops are compiled, and the one function that all of them need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from lustrum.numeric.arithmetic_loops import log_gamma
from lustrum.numeric.compiled import Loop
from lustrum.numeric.compiled import compiled as keep_compiled

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile with the arithmetic of numpy, where a division by zero is not an exception."""
    return keep_compiled(function, error_model="numpy")


def inlined(function: F) -> F:
    """Compile into the caller: passing arrays to a function costs more than these few lines."""
    loop = Loop(function, {"inline": "always", "error_model": "numpy"})
    loop.keep = False
    return cast(F, loop)


@inlined
def log_factorial(count: int, logs: Any) -> float:  # pragma: no cover
    """``log n!``, from a list if it is long enough."""
    return logs[count] if count < logs.size else log_gamma(count + 1.0)
