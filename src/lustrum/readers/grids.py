"""What a file consists of: grids of fields, and parts that are no fields of a table."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from lustrum.formats.sdmx import ATTRIBUTES, sdmx_text
from lustrum.model import InputError

MOST_CELLS = 2_000_000
"""Combinations of codes beyond which files are not judged."""


@dataclass(frozen=True)
class Unread:
    """A part of a file that is no field of a table: what it is, and where it stands."""

    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.what} ({self.where})"


@dataclass(frozen=True)
class OwnStructure:
    """What a file's own machine-readable description says: its variables, and the names of its other columns.

    ``labels`` are columns of labels by variable, ``values`` and ``status`` the columns of numbers and letters;
    ``parts`` are the codes that it puts under a code, by variable.
    """

    variables: tuple[str, ...]
    values: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)
    status: str | None = None
    parts: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class FieldGrid:
    """One sheet: lines of fields as they are written, each with its number and its place for messages."""

    name: str
    lines: tuple[tuple[str, ...], ...]
    numbers: Sequence[int]
    places: Sequence[str]
    structure: OwnStructure | None = None

    def __repr__(self) -> str:
        return f"FieldGrid({self.name!r}, {len(self.lines)} lines)"


@dataclass(frozen=True, eq=False)
class Container:
    """All grids of a file, what was not read, and the digest of its bytes."""

    source: str
    grids: tuple[FieldGrid, ...]
    digest: str
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Container({self.source!r}, {len(self.grids)} grids)"


def text_of(value: Any) -> str:
    """A value as text; a number that is none is an empty field."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value).rstrip()


def decoded(content: bytes, source: str) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and a sentence if it is not UTF-8."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16"), ("read as UTF-16.",)
        except UnicodeDecodeError:
            raise InputError(f"{source} begins as UTF-16 and is not; save it as UTF-8.") from None
    if b"\0" in content:
        raise InputError(
            f"{source} holds zero bytes, so its encoding is not clear; save it as UTF-8."
        )
    try:
        return content.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        pass
    try:
        return content.decode("cp1252"), ("read as Windows-1252, because it is not UTF-8.",)
    except UnicodeDecodeError:
        return content.decode("latin-1"), ("read as Latin-1, because it is not UTF-8.",)


_FIRST = ("STRUCTURE", "STRUCTURE_ID")
_ABOUT = ("STRUCTURE", "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "SERIES_KEY", "OBS_KEY")
_MORE = ("DECIMALS", "UNIT_MULT", "UNIT", "OBS_PRE_BREAK", "COMMENT_OBS", "COMMENT_DSET")
VALUE, NOT_A_NUMBER = "OBS_VALUE", "NaN"


def is_sdmx(text: str) -> bool:
    """Whether a text is SDMX-CSV 2.0, by the names that it must begin with."""
    return text.startswith(f"{','.join(_FIRST)},")


def sdmx_grid(text: str, source: str) -> FieldGrid:
    """The observations, one a line; columns that say the same of every one of them are left out.

    >>> text = "STRUCTURE,STRUCTURE_ID,ACTION,sex,OBS_VALUE\\ndataflow,A:B(1),I,a$2E$b,NaN\\n"
    >>> grid = sdmx_grid(text, "a.csv")
    >>> grid.lines
    (('sex', 'OBS_VALUE'), ('a.b', ''))
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    head = next(reader)
    if head.count(VALUE) != 1:
        raise InputError(f"{source}, line 1: SDMX-CSV needs one column {VALUE}.")
    variables = [n for n in head if n not in (*_ABOUT, *ATTRIBUTES, *_MORE, VALUE)]
    kept = [place for place, name in enumerate(head) if name not in _ABOUT]
    first: list[str] = []
    lines = [tuple(head[place] for place in kept)]
    numbers = [1]
    for row in reader:
        if not row:
            continue
        if len(row) != len(head):
            raise InputError(
                f"{source}, line {reader.line_num}: there are {len(row)} fields, but {len(head)} columns."
            )
        about = [row[place] for place, name in enumerate(head) if name in _ABOUT[:4]]
        first = first or about
        if about != first:
            raise InputError(
                f"{source}, line {reader.line_num}: the file holds a second structure or action; keep one in a "
                "file."
            )
        fields = []
        for place in kept:
            field = sdmx_text(row[place]) if head[place] in variables else row[place]
            fields.append("" if head[place] == VALUE and field == NOT_A_NUMBER else field)
        lines.append(tuple(fields))
        numbers.append(reader.line_num)
    status = "CONF_STATUS" if "CONF_STATUS" in head else None
    structure = OwnStructure(tuple(variables), (VALUE,), {}, status)
    return FieldGrid("", tuple(lines), numbers, [f"line {n}" for n in numbers], structure)
