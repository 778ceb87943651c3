"""A misspelt argument is one sentence that names the right one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from lustrum.model.errors import InputError, choices

P = ParamSpec("P")
T = TypeVar("T")


def known_words(function: Callable[P, T]) -> Callable[P, T]:
    """Check the names of keyword arguments before a call; type checkers see the signature as it is.

    >>> @known_words
    ... def count(totals: bool = False) -> bool:
    ...     return totals
    >>> count(toatls=True)
    Traceback (most recent call last):
    ...
    lustrum.model.errors.InputError: 'count' has no argument 'toatls'; did you mean 'totals'? There are: totals.
    """
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        for word in kwargs:
            if word not in names:
                raise InputError(
                    f"{function.__name__!r} has no argument {word!r}; {choices(word, names)}."
                )
        return function(*args, **kwargs)

    return checked
