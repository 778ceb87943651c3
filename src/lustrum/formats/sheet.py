"""Published tables read back from CSV, as a snooper would: one row per cell, gaps are not known.

The file has a column for each variable with its codes, ``value``, and if it likes ``status`` and
``<variable>_label``; that is what :class:`~lustrum.formats.csv.Csv` writes. The code ``_T`` is a total.
An empty value, a status other than F and a row that is not there are all the same: not published.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from lustrum.model import Category, CellStatus, InputError, Release, TableAxis
from lustrum.model.variable import TOTAL_CODE

__all__ = ["Sheet", "read_sheet", "releases_of"]


@dataclass(frozen=True)
class Sheet:
    """The rows of a published table: values by codes, in the order of its variables."""

    source: str
    variables: tuple[str, ...]
    values: dict[tuple[str, ...], Decimal]
    codes: tuple[tuple[str, ...], ...]
    labels: dict[tuple[str, str], str]

    @property
    def decimals(self) -> int:
        """The most decimals that a value is written with."""
        exponents = (value.as_tuple().exponent for value in self.values.values())
        return max((-e for e in exponents if isinstance(e, int) and e < 0), default=0)


def read_sheet(text: str, source: str) -> Sheet:
    """Read a published table; every mistake is one sentence with its line.

    >>> read_sheet("sex,value\\n1,12\\n2,\\n_T,20\\n", "x.csv").codes
    (('1', '2', '_T'),)
    """
    rows = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    head = next(rows, [])
    if "value" not in head:
        raise InputError(f"{source}: there is no column 'value' in the first line; it needs one.")
    twice = next((name for name in head if head.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{source}: the column {twice!r} stands twice; once is right.")
    variables = [
        name
        for name in head
        if name not in ("value", "status") and name.removesuffix("_label") not in set(head) - {name}
    ]
    if not variables:
        raise InputError(f"{source}: there is no column of codes; a table needs a variable.")
    place = {name: head.index(name) for name in head}
    values: dict[tuple[str, ...], Decimal] = {}
    seen: dict[tuple[str, ...], int] = {}
    codes: list[dict[str, None]] = [{} for _ in variables]
    labels: dict[tuple[str, str], str] = {}
    for row in rows:
        line = rows.line_num
        if not row:
            continue
        if len(row) != len(head):
            raise InputError(
                f"{source}, line {line}: there are {len(row)} fields, but the first line names "
                f"{len(head)}."
            )
        key = tuple(row[place[name]].removeprefix("'") for name in variables)
        if key in seen:
            raise InputError(f"{source}, line {line}: the cell stands in line {seen[key]} already.")
        seen[key] = line
        for name, code, known in zip(variables, key, codes, strict=True):
            known[code] = None
            if f"{name}_label" in place:
                labels[name, code] = row[place[f"{name}_label"]].removeprefix("'")
        hidden = "status" in place and row[place["status"]] not in ("", CellStatus.FREE.value)
        if row[place["value"]] and not hidden:
            values[key] = _number(row[place["value"]], f"{source}, line {line}")
    if not seen:
        raise InputError(f"{source}: there is no cell; a table needs at least one.")
    return Sheet(source, tuple(variables), values, tuple(tuple(known) for known in codes), labels)


def releases_of(sheets: Sequence[Sheet]) -> list[Release]:
    """The tables over one population: a code stands for the same people wherever it stands."""
    decimals = max((sheet.decimals for sheet in sheets), default=0)
    positions: dict[str, dict[str, int]] = {}
    for sheet in sheets:
        for name, codes in zip(sheet.variables, sheet.codes, strict=True):
            known = positions.setdefault(name, {})
            for code in codes:
                if code != TOTAL_CODE:
                    known.setdefault(code, len(known))
    return [_release(sheet, positions, decimals) for sheet in sheets]


def _release(sheet: Sheet, positions: dict[str, dict[str, int]], decimals: int) -> Release:
    axes = []
    for name, codes in zip(sheet.variables, sheet.codes, strict=True):
        known = positions[name]
        categories = []
        for code in codes:
            members = tuple(range(len(known))) if code == TOTAL_CODE else (known[code],)
            categories.append(Category(code, sheet.labels.get((name, code), code), members))
        axes.append(TableAxis(name, name, tuple(categories)))
    shape = tuple(len(axis) for axis in axes)
    published = np.zeros(shape, dtype=np.int64)
    status = np.full(shape, CellStatus.NOT_FOR_PUBLICATION.value)
    places = [{code: i for i, code in enumerate(axis.codes)} for axis in axes]
    for key, value in sheet.values.items():
        where = tuple(place[code] for place, code in zip(places, key, strict=True))
        published[where] = int(value.scaleb(decimals))
        status[where] = CellStatus.FREE.value
    return Release(tuple(axes), published, status, {"method": "unknown"}, decimals=decimals)


def _number(text: str, where: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or abs(value) >= 10**15:
        raise InputError(
            f"{where}: the value is not a number below 10**15; leave it empty if hidden."
        )
    return value
