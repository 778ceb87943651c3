"""How somebody reads a published file: what its notes say about symbols, letters, digits and layout.

A file that an agency keeps for itself is read strictly: whatever is unclear is a mistake. A published file is
read like a reader would, and what stays unclear becomes a doubt, so that nobody calls the file safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from lustrum.model import InputError

Bound = tuple[Decimal | None, Decimal | None]
"""The least and the greatest value that a symbol stands for; None where it says nothing."""

Letter = Literal["shown", "hidden"] | Bound
"""What a status letter or a mark behind a number means."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})?\.\.({_NUMBER})?")
_BOUND = re.compile(r"(<=|>=|<|>|≤|≥)\s*(\d+(?:\.\d+)?)")
_CLASS = re.compile(r"(\d+)\s*(?:-|–|\bto\b)\s*(\d+)")
UNKNOWN: Bound = (None, None)


@dataclass(frozen=True)
class Reading:
    """What a reader knows about a file beside its bytes.

    ``published`` files are read leniently. ``symbols`` say what stands in place of a value, ``letters``
    what status letters and marks behind numbers mean. ``threshold`` is the least count that is published
    for its own sake, which is known where the letters state reasons. ``wide`` names the variable whose
    codes are the names of columns.
    """

    published: bool = False
    symbols: Mapping[str, Bound] = field(default_factory=dict)
    letters: Mapping[str, Letter] = field(default_factory=dict)
    status: str | None = None
    thousands: str | None = None
    decimals: int | None = None
    notes_read: bool = False
    wide: str | None = None
    formulas: tuple[str, ...] = ()
    threshold: int | None = None
    zeros_shown: bool = False
    signed: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)


STRICT = Reading()


def bound_of_words(text: str, *, whole: bool = True, signed: bool = False) -> Bound | None:
    """The values that a symbol names itself, if it does.

    >>> bound_of_words("<5"), bound_of_words("10-19"), bound_of_words("x")
    ((Decimal('0'), Decimal('4')), (Decimal('10'), Decimal('19')), None)
    >>> bound_of_words("<5", whole=False, signed=True)
    (None, Decimal('5'))
    """
    match = _BOUND.fullmatch(text)
    if match:
        end, least = Decimal(match[2]), None if signed else Decimal(0)
        # The next whole number; where values have decimals the end itself is kept, which is wider.
        step = 1 if whole and end == end.to_integral_value() else 0
        return {
            "<": (least, end - step),
            "<=": (least, end),
            "≤": (least, end),
            ">": (end + step, None),
            ">=": (end, None),
            "≥": (end, None),
        }[match[1]]
    match = _CLASS.fullmatch(text)
    if match and int(match[1]) <= int(match[2]):
        return Decimal(match[1]), Decimal(match[2])
    return None


def both(first: Bound, second: Bound) -> Bound | None:
    """What two statements about one value leave, or None if both cannot be true."""
    lows = [low for low, _ in (first, second) if low is not None]
    highs = [high for _, high in (first, second) if high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    return None if low is not None and high is not None and low > high else (low, high)


def said_symbols(statements: Iterable[str]) -> dict[str, Bound]:
    """Symbols for hidden values, such as ``x``, ``<5=1..4`` or, for a symbol that is 0, ``-=0``.

    >>> said_symbols(["X", "[low]=1..4", "-=0", "=0"])["[low]"]
    (Decimal('1'), Decimal('4'))
    """
    bounds: dict[str, Bound] = {}
    for word in statements:
        stated_bound = bound_of_words(word.strip())
        symbol, equals, meaning = word.rpartition("=")
        bound = _bound(meaning) if equals and stated_bound is None else None
        if bound is None:
            bounds[word.strip().lower()] = UNKNOWN if stated_bound is None else stated_bound
        else:
            bounds[symbol.strip().lower()] = bound
    return bounds


def said_letters(statements: Iterable[str]) -> dict[str, Letter]:
    """What status letters mean: ``A=shown``, ``N=hidden``, ``z=0`` or ``a=0..19``."""
    letters: dict[str, Letter] = {}
    for word in statements:
        letter, _, meaning = word.rpartition("=")
        bound = _bound(meaning)
        if not letter or (meaning not in ("shown", "hidden") and bound is None):
            raise InputError(
                f"--status is LETTER=shown, LETTER=hidden, LETTER=0 or LETTER=1..4, not {word!r}."
            )
        if meaning == "shown":
            letters[letter] = "shown"
        else:
            letters[letter] = "hidden" if bound is None else bound
    return letters


def _bound(text: str) -> Bound | None:
    match = _RANGE.fullmatch(text.strip())
    if match:
        low, high = (None if end is None else Decimal(end) for end in match.groups())
        if low is not None and high is not None and low > high:
            raise InputError(f"The range {text!r} has its lower end above its upper end.")
        return (low, high) if (low, high) != UNKNOWN else None
    if re.fullmatch(_NUMBER, text.strip()):
        return Decimal(text.strip()), Decimal(text.strip())
    return None
