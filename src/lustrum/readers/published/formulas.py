"""Columns beside the values that were computed from them: shares, means, rates, growth, bounds, running sums.

A printed figure is exact to half a unit of its last digit. With ``p = f * v / w + c`` it gives two linear
facts, ``(p - h - c) w <= f v <= (p + h - c) w``, also where v or w is hidden; the other way round where w is
negative.

======================================  ================================================================
``share = 100 * value / value[Total]``  per cent of the cell whose code of the only variable is ``Total``
``pct = 100 * value / value[sex=T]``    per cent of the cell with another code of one variable
``mean = turnover / firms``             a mean or a rate: ``firms`` is a column of numbers
``change = 100 * now / before - 100``   growth in per cent
``thousand = euro / 1000``              the same figures in another unit; ``copy = value`` in the same
``lower <= value <= upper``             bounds; either may be left out
``value in class``                      a column of classes such as ``10-19``
``total = running value``               the sum of this row and the rows above it
======================================  ================================================================

A name with blanks or signs, or of digits, stands in single quotes or backquotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError, choices
from lustrum.readers.published.reading import bound_of_words

Key = tuple[str, ...]
Number = Decimal | None

_NAME = r"(?:'[^']+'|`[^`]+`|[^\W\d][\w.%]*)"
_NUM = r"\d+(?:\.\d+)?"
_EQUAL = re.compile(
    rf"\s*(?P<column>{_NAME})\s*=\s*(?:(?P<factor>{_NUM})\s*\*\s*)?(?P<value>{_NAME})"
    rf"(?:\s*/\s*(?:(?P<divisor>{_NUM})|(?P<base>{_NAME})(?:\[(?P<code>[^\]]*)\])?))?"
    rf"(?:\s*(?P<sign>[+-])\s*(?P<constant>{_NUM}))?\s*"
)
_RUNNING = re.compile(rf"\s*(?P<column>{_NAME})\s*=\s*running\s+(?P<value>{_NAME})\s*")
_BETWEEN = re.compile(
    rf"\s*(?:(?P<lower>{_NAME})\s*<=\s*)?(?P<value>{_NAME})\s*(?:<=\s*(?P<upper>{_NAME}))?\s*"
)
_CLASSES = re.compile(rf"\s*(?P<value>{_NAME})\s+in\s+(?P<column>{_NAME})\s*")


@dataclass(frozen=True)
class CellFact:
    """A weighted sum of cells of one file lies between two ends, in the units of the values."""

    terms: tuple[tuple[str, Key, Fraction], ...]
    low: Fraction | None
    high: Fraction | None


@dataclass(frozen=True, eq=False)
class Sheet:
    """What formulas speak about: the cells of a file, its values, and its other columns."""

    source: str
    dimensions: tuple[str, ...]
    cells: Sequence[Key]
    values: Mapping[str, Sequence[Number]]
    texts: Mapping[str, Sequence[str]]
    numbers: Callable[[str], Sequence[Number]]
    signed: bool = False


@dataclass(frozen=True)
class Formula:
    """One formula in words, and the columns that it explains."""

    text: str
    kind: str
    parts: Mapping[str, str]

    @classmethod
    def of(cls, text: str) -> Formula:
        """Read a formula.

        >>> Formula.of("share = 100 * value / value[Total]").explains
        ('share',)
        """
        for kind, pattern in (
            ("running", _RUNNING),
            ("classes", _CLASSES),
            ("equal", _EQUAL),
            ("between", _BETWEEN),
        ):
            match = pattern.fullmatch(text)
            if match:
                parts = {k: _bare(v) for k, v in match.groupdict().items() if v is not None}
                if kind != "between" or {"lower", "upper"} & parts.keys():
                    return cls(text, kind, parts)
        raise InputError(
            f"The formula {text!r} cannot be read; write it like 'share = 100 * value / value[Total]' or "
            "'lower <= value <= upper'."
        )

    def about(self, values: Collection[str]) -> Formula:
        """The formula for a file with these values: ``value <= upper`` reads like ``lower <= value``.

        >>> Formula.of("value <= upper").about(["value"]).explains
        ('upper',)
        """
        first, second = self.parts.get("lower"), self.parts["value"]
        if first is None or "upper" in self.parts or first not in values or second in values:
            return self
        return replace(self, parts={"value": first, "upper": second})

    @property
    def explains(self) -> tuple[str, ...]:
        """The columns that it explains."""
        names = [self.parts[k] for k in ("column", "lower", "upper") if k in self.parts]
        base = self.parts.get("base")
        return tuple([*names, base] if base and "code" not in self.parts else names)

    def facts(self, sheet: Sheet) -> list[CellFact]:
        """What the formula says about the cells of a file."""
        value = self.parts["value"]
        if value not in sheet.values:
            raise InputError(
                f"The formula {self.text!r} speaks of the values {value!r}; {choices(value, sheet.values)}."
            )
        for name in self.explains:
            if name not in sheet.texts and name not in sheet.values:
                raise InputError(
                    f"The formula {self.text!r} speaks of the column {name!r}; "
                    f"{choices(name, [*sheet.texts, *sheet.values])}."
                )
        methods = {"running": self._running, "classes": self._classes, "between": self._between}
        return methods.get(self.kind, self._equal)(sheet, value)

    def _equal(self, sheet: Sheet, value: str) -> list[CellFact]:
        column = self.parts["column"]
        figures = sheet.numbers(column)
        half = _half(figures)
        factor = Fraction(self.parts.get("factor", "1")) / Fraction(self.parts.get("divisor", "1"))
        constant = Fraction(self.parts.get("constant", "0"))
        constant = -constant if self.parts.get("sign") == "-" else constant
        base, code = self.parts.get("base"), self.parts.get("code")
        others = None if base is None or code is not None else sheet.numbers(base)
        facts = []
        for row, figure in enumerate(figures):
            if figure is None:
                continue
            middle = Fraction(figure) - constant
            term = (value, sheet.cells[row], factor)
            ends = [middle - half, middle + half]
            if base is None:
                facts.append(CellFact((term,), ends[0], ends[1]))
            elif others is not None:
                known = others[row]
                if known:
                    low, high = sorted(end * Fraction(known) for end in ends)
                    facts.append(CellFact((term,), low, high))
            else:
                whole = self._whole(sheet, sheet.cells[row], str(code))
                if whole == sheet.cells[row] or whole not in sheet.cells:
                    continue
                sign = self._sign(sheet, base, whole)
                if not sign:
                    continue
                low, high = ends[::sign]
                facts.append(CellFact((term, (base, whole, -low)), Fraction(0), None))
                facts.append(CellFact((term, (base, whole, -high)), None, Fraction(0)))
        return facts

    def _sign(self, sheet: Sheet, base: str, whole: Key) -> int:
        """The sign of a total: a share of a negative one bounds the part from the other side."""
        totals = sheet.values.get(base, ())
        total = next((v for v, c in zip(totals, sheet.cells, strict=False) if c == whole), None)
        if total is not None:
            return (total > 0) - (total < 0)
        if sheet.signed or any(v is not None and v < 0 for v in totals):
            raise NotJudgedError(
                f"{sheet.source}: the formula {self.text!r} speaks of shares of a total that is not shown and "
                "could be negative, and such shares are not judged; leave their column out."
            )
        return 1

    def _whole(self, sheet: Sheet, cell: Key, code: str) -> Key:
        name, equals, bare_code = code.partition("=")
        if equals and name.strip() in sheet.dimensions:
            axis, wanted = sheet.dimensions.index(name.strip()), bare_code.strip()
        elif len(sheet.dimensions) == 1:
            axis, wanted = 0, code
        else:
            raise InputError(
                f"The formula {self.text!r} needs a variable and its code in brackets, such as "
                f"[{sheet.dimensions[-1]}=Total]."
            )
        return (*cell[:axis], wanted, *cell[axis + 1 :])

    def _running(self, sheet: Sheet, value: str) -> list[CellFact]:
        figures = sheet.numbers(self.parts["column"])
        half = _half(figures)
        facts: list[CellFact] = []
        exact = all(v is None or v == v.to_integral_value() for v in sheet.values[value])
        for row, figure in enumerate(figures):
            if figure is not None:
                room = Fraction(0) if exact and half == Fraction(1, 2) else half
                terms = tuple((value, cell, Fraction(1)) for cell in sheet.cells[: row + 1])
                facts.append(CellFact(terms, Fraction(figure) - room, Fraction(figure) + room))
        return facts

    def _between(self, sheet: Sheet, value: str) -> list[CellFact]:
        ends = {k: sheet.numbers(self.parts[k]) for k in ("lower", "upper") if k in self.parts}
        facts = []
        for row, cell in enumerate(sheet.cells):
            low, high = (ends[k][row] if k in ends else None for k in ("lower", "upper"))
            if low is not None or high is not None:
                facts.append(
                    CellFact(((value, cell, Fraction(1)),), _fraction(low), _fraction(high))
                )
        return facts

    def _classes(self, sheet: Sheet, value: str) -> list[CellFact]:
        facts = []
        known = [v for v in sheet.values[value] if v is not None]
        whole = all(v == v.to_integral_value() for v in known)
        signed = sheet.signed or any(v < 0 for v in known)
        for row, text in enumerate(sheet.texts[self.parts["column"]]):
            bound = bound_of_words(text, whole=whole, signed=signed)
            if bound is not None:
                ends = [_fraction(end) for end in bound]
                facts.append(CellFact(((value, sheet.cells[row], Fraction(1)),), ends[0], ends[1]))
            elif text:
                raise InputError(
                    f"{sheet.source}: the column {self.parts['column']!r} holds a field that is no "
                    f"class such as "
                    "10-19 or <5."
                )
        return facts


def _half(figures: Sequence[Number]) -> Fraction:
    """Half a unit of the last digit that a column is printed with."""
    places = 0
    for figure in figures:
        exponent = 0 if figure is None else figure.as_tuple().exponent
        places = max(places, -exponent if isinstance(exponent, int) else 0)
    return Fraction(1, 2 * 10**places)


def _fraction(value: Number) -> Fraction | None:
    return None if value is None else Fraction(value)


def _bare(name: str) -> str:
    return name[1:-1] if name[:1] in "'`" and len(name) > 1 else name
