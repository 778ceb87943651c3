"""Numbers as agencies print them: separators, signs, currencies, marks behind them, tails of binary floats.

A comma or a point can separate decimals or thousands. The whole column decides; where it does not,
the reader says so, and the file is not judged until somebody does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

_BLANKS = "\u0020\u00a0\u202f\u2009"
_MINUS = "\u2212\u2013\u2012\uff0d"
_APOSTROPHES = "'\u2019\u02bc"
_CURRENCY = "€$£¥"
_DIGITS = re.compile(
    rf"(?P<sign>[+-]?)(?P<digits>\d[\d.,{_BLANKS}{_APOSTROPHES}]*\d|\d|[.,]\d+)"
    r"(?P<power>[eE][+-]?\d{1,2})?"
)
_MARK = re.compile(r"(?:\[\w{1,4}\]|\([A-Za-z]\)|[A-Za-z]{1,2}|[*§†‡#!°¹²³]{1,3})")
_GROUPED = {
    s: re.compile(rf"\d{{1,3}}(?:{re.escape(s)}\d{{2,3}})*{re.escape(s)}\d{{3}}") for s in ",."
}
_SPACED = re.compile(rf"\d*|\d{{1,3}}(?:[{_BLANKS}]\d{{3}})+|\d{{1,3}}(?:[{_APOSTROPHES}]\d{{3}})+")
_TAIL = 10  # decimals that no table prints on purpose
_EXACTLY = Context(prec=1000)


@dataclass(frozen=True)
class Style:
    """Which sign separates decimals; the other ones separate thousands."""

    decimal: str = "."
    doubt: str = ""


@dataclass(frozen=True)
class Printed:
    """A number, and the mark that stands behind it."""

    value: Decimal
    mark: str = ""


def style_of(texts: Iterable[str]) -> Style:
    """Which sign separates decimals in a column.

    >>> style_of(["1.234,5", "17"]).decimal, style_of(["1,234", "17"]).doubt
    (',', 'commas')
    """
    digits = [_core(text) for text in texts]
    both = [d for d in digits if "," in d and "." in d]
    if both:
        last = {max(",.", key=d.rfind) for d in both}
        return Style(last.pop()) if len(last) == 1 else Style(".", "points and commas")
    commas = [d for d in digits if "," in d]
    points = [d for d in digits if "." in d]
    if commas and points:
        # Either sign stands alone in some numbers: one of them separates thousands throughout.
        grouped = {s: all(_GROUPED[s].fullmatch(d) for d in numbers) for s, numbers in
                   ((",", commas), (".", points))}  # fmt: skip
        if grouped[","] != grouped["."]:
            return Style("." if grouped[","] else ",")
        return Style(".", "points and commas")
    if commas:
        return _one_sign(",", commas, [d for d in digits if "," not in d])
    return _one_sign(".", points, [d for d in digits if "." not in d])


def _one_sign(sign: str, with_it: Sequence[str], without: Sequence[str]) -> Style:
    """A column in which only one of the two signs occurs."""
    other = "," if sign == "." else "."
    if any(d.count(sign) > 1 for d in with_it):
        return Style(other)
    if not all(_GROUPED[sign].fullmatch(d) and d[0] != "0" for d in with_it):
        return Style(sign)
    if any(len(d) > 3 for d in without):
        return Style(sign)  # a thousand without a separator
    if sign == "." and len(with_it) < 2:
        return Style(sign)
    return Style(other, "points" if sign == "." else "commas")


def printed(text: str, style: Style) -> Printed | None:
    """A number as it is printed, or None if the text is none.

    >>> printed("(1,234)", Style()).value, printed("12,5 p", Style(","))
    (Decimal('-1234'), Printed(value=Decimal('12.5'), mark='p'))
    """
    if text.isascii() and text.isdigit():
        return Printed(Decimal(text))  # most numbers are
    plain, negative = _plain(text)
    match = _DIGITS.match(plain)
    if match is None:
        return None
    mark = plain[match.end() :].strip(_BLANKS)
    if mark and not _MARK.fullmatch(mark):
        return None
    whole, _, fraction = match["digits"].partition(style.decimal)
    grouped = _GROUPED["," if style.decimal == "." else "."]
    # A digit behind a blank that no group of three is, as of a footnote, is not part of the number.
    if not (_SPACED.fullmatch(whole) or grouped.fullmatch(whole)) or re.search(r"\D", fraction):
        return None
    whole = re.sub(r"\D", "", whole)
    value = Decimal(f"{match['sign']}{whole}.{fraction}{match['power'] or ''}")
    return Printed(-value if negative else value, mark)


def _plain(text: str) -> tuple[str, bool]:
    """The text without currency, formula and brackets, and whether it is negative by its brackets or end."""
    plain = text.strip(_BLANKS + "\t")
    if plain.startswith('="') and plain.endswith('"'):
        plain = plain[2:-1]
    plain = plain.strip(_CURRENCY + _BLANKS)
    for minus in _MINUS:
        plain = plain.replace(minus, "-")
    if re.fullmatch(r"\([\d.,\s'\u2019\u00a0\u202f\u2009]+\)", plain):
        return plain[1:-1].strip(_BLANKS), True
    if re.fullmatch(r"\d[\d.,\s'\u2019]*-", plain):
        return plain[:-1].strip(_BLANKS), True
    if re.match(r"-\s*\d", plain):
        return "-" + plain[1:].lstrip(_BLANKS), False
    return plain, False


def _core(text: str) -> str:
    if text.isascii() and text.isdigit():
        return text
    match = _DIGITS.match(_plain(text)[0])
    if match is None:
        return ""
    return re.sub(f"[{_BLANKS}{_APOSTROPHES}]", "", match["digits"])


def without_tails(values: Sequence[Decimal | None]) -> tuple[list[Decimal | None], int | None]:
    """Numbers without the tails of binary floats, and the decimals that they were rounded to, if any were.

    A tail is a number of ten decimals and more, beside numbers with few, that is all but one of those.

    >>> without_tails([Decimal("0.1"), Decimal("0.30000000000000004")])
    ([Decimal('0.1'), Decimal('0.3')], 1)
    """
    size = [decimals_of(v) for v in values]
    long = [i for i, n in enumerate(size) if n >= _TAIL]
    short = [n for n, v in zip(size, values, strict=True) if n < _TAIL and v is not None]
    if not long or not short:
        return list(values), None
    places = max(short)
    step = Decimal(1).scaleb(-places)
    # Sums of binary floats are off by the last bits of the largest number in them, and far less than a unit.
    largest = max(abs(v) for v in values if v is not None)
    most = min(max(largest, Decimal(1)) * Decimal("1e-14"), step / 1000)
    out = list(values)
    for i in long:
        value = values[i]
        assert value is not None
        near = value.quantize(step, ROUND_HALF_EVEN)
        if abs(value - near) > most:
            return list(values), None
        out[i] = near
    return out, places


def decimals_of(value: Decimal | None) -> int:
    """How many digits a number has after its point, without zeros at its end."""
    exponent = 0 if value is None else _EXACTLY.normalize(value).as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


Bound = tuple[Decimal | None, Decimal | None]
"""The least and the greatest value that a symbol stands for; None where it says nothing."""

_BOUND = re.compile(r"(<=|>=|<|>|≤|≥)\s*(\d+(?:\.\d+)?)")
_CLASS = re.compile(r"(\d+)\s*(?:-|–|\bto\b)\s*(\d+)")


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
