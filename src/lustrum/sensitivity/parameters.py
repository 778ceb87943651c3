"""Parameters of rules: checked once, kept as given, computed with exactly."""

from __future__ import annotations

import math
from fractions import Fraction

from lustrum.model import InputError

Percent = int | float


def exact(percent: Percent) -> Fraction:
    """The number that was written, not its nearest binary fraction: 0.1 is one tenth.

    >>> exact(12.5), exact(0.1)
    (Fraction(25, 2), Fraction(1, 10))
    """
    return Fraction(str(percent))


def check_percent(value: object, what: str, below: Percent | None = 100) -> None:
    """A number above 0 and, if there is a limit, below it."""
    right = "above 0" if below is None else f"above 0 and below {below}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{what} must be a number {right}.")
    if value <= 0 or (below is not None and value >= below):
        raise InputError(f"{what} is {value}; it must be {right}.")


def check_share(value: object, what: str) -> None:
    """A part of a whole: from 0 to below 1."""
    right = "a number from 0 to below 1, such as 0.5"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{what} must be {right}.")
    if not 0 <= value < 1:
        raise InputError(f"{what} is {value}; it must be {right}.")


def check_whole(value: object, what: str, least: int) -> None:
    """A whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number of {least} or more.")
    if value < least:
        raise InputError(f"{what} is {value}; it must be {least} or more.")


def check_choice(value: object, what: str, valid: tuple[str, ...]) -> None:
    """One of a few words."""
    if value not in valid:
        raise InputError(f"{what} is {value!r}; it must be one of {', '.join(valid)}.")
