"""Percentages of rules, kept as given and computed with exactly."""

from __future__ import annotations

from fractions import Fraction

from lustrum.model import InputError

Percent = int | float


def exact(percent: Percent) -> Fraction:
    """The number that was written, not its nearest binary fraction: 0.1 is one tenth.

    >>> exact(12.5), exact(0.1)
    (Fraction(25, 2), Fraction(1, 10))
    """
    return Fraction(str(percent))


def check_whole(value: object, what: str, least: int) -> None:
    """A whole number of at least so much."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{what} must be a whole number of {least} or more.")
    if value < least:
        raise InputError(f"{what} is {value}; it must be {least} or more.")
