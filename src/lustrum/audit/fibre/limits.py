"""How far a search or a chain may go, as its caller says."""

from __future__ import annotations

import numpy as np

from lustrum.model import InputError


def check_limit(name: str, value: object, least: int = 1) -> None:
    """A limit is a whole number of at least so much, of Python's own or of numpy.

    >>> check_limit("nodes", 2.5)
    Traceback (most recent call last):
    lustrum.model.errors.InputError: 'nodes' must be a whole number of 1 or more.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"'{name}' must be a whole number of {least} or more.")
    if value >= 2**62:
        raise InputError(f"'{name}' must be below 2**62.")
