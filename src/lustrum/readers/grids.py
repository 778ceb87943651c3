"""What a file consists of: grids of fields, and parts that are no fields of a table."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

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

    ``labels`` are columns of labels by variable, ``values`` and ``status`` the columns of numbers and letters.
    """

    variables: tuple[str, ...]
    values: tuple[str, ...]
    labels: dict[str, str] = field(default_factory=dict)
    status: str | None = None


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
