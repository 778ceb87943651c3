"""``.asc`` and ``.tab``: records and tables, as their metadata say."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Mask
from lustrum.model.release import check_publishable
from lustrum.model.variable import TOTAL_CODE
from lustrum.readers.argus.metadata import (
    ArgusVariable,
    Metadata,
    Tag,
    exact_text,
    read_metadata,
    text_of_file,
)
from lustrum.readers.grids import FieldGrid

_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_NUMERIC = ("NUMERIC", "FREQUENCY", "MAXSCORE", "WEIGHT", "LOWERPL", "UPPERPL", "COSTVAR", "SHADOW")
_OURS = {"FREQUENCY": "n", "STATUS": "status", "LOWERPL": "lower", "UPPERPL": "upper"}
"""How our own files of confidential tables call what tau-ARGUS calls otherwise."""


def read_records(path: Path | str, metadata: Metadata | None = None) -> dict[str, list[str]]:
    """Records as columns of texts without blanks around them; the metadata stand beside the file."""
    path = Path(path)
    metadata = metadata or read_metadata(path.with_suffix(".rda"))
    columns: dict[str, list[str]] = {variable.name: [] for variable in metadata.variables}
    for number, fields in _rows(text_of_file(path), metadata, str(path)):
        for variable, text in zip(metadata.variables, fields, strict=True):
            _check_number(variable, text, f"{path}, line {number}")
            columns[variable.name].append(text.strip())
    return columns


@dataclass(frozen=True)
class ArgusTable:
    """A table: a row of texts for each cell, in the order of the metadata's variables."""

    metadata: Metadata
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...] = ()

    @classmethod
    def of_table(
        cls,
        table: Table | Release,
        primary: Mask,
        lower: Sequence[int] = (),
        upper: Sequence[int] = (),
    ) -> ArgusTable:
        """A table with its primary cells (``U``) and the levels that these need.

        Its ``.rda`` is ``metadata.text``. A number that a release does not show is empty.

        >>> counts = Table.from_counts([4, 9])
        >>> ArgusTable.of_table(counts, counts.values < 5).text.splitlines()
        ['"1";4;4;U', '"2";9;9;S']
        """
        named: dict[str, ArgusVariable] = {}
        columns: list[list[str]] = []

        def add(name: str, texts: Sequence[str], *tags: Tag) -> None:
            plain = re.sub(r"\W+", "_", name) or "_"
            while plain in named:
                plain += "_"
            named[plain] = ArgusVariable(plain, tags=tags)
            columns.append(list(texts))

        def numbers(name: str, tag: str, values: Any, there: Any = None, places: int = 0) -> None:
            seen = np.ones(np.size(values), np.bool_) if there is None else np.ravel(there)
            pairs = zip(np.ravel(values).tolist(), seen.tolist(), strict=True)
            texts = [exact_text(value, places) if known else "" for value, known in pairs]
            add(name, texts, (tag, ()), *([("DECIMALS", (str(places),))] if places else []))

        every = zip(*product(*(axis.codes for axis in table.axes)), strict=True)
        for axis, codes in zip(table.axes, every, strict=True):
            total = [("TOTCODE", (TOTAL_CODE,))] if TOTAL_CODE in axis.codes else []
            add(axis.name, codes, ("RECODEABLE", ()), *total)
        if isinstance(table, Release):
            check_publishable(table, "A .tab file")
            numbers("value", "NUMERIC", table.numbers, table.known, table.decimals)
        else:
            numbers("value", "NUMERIC", table.values, None, table.decimals)
            if table.contributors is not None:
                numbers("n", "FREQUENCY", table.contributors)
            if (top := table.contributions) is not None:
                for rank in range(top.value.shape[-1]):
                    there = top.present[..., rank]
                    numbers(f"x{rank + 1}", "MAXSCORE", top.value[..., rank], there, table.decimals)
        add("status", np.where(np.ravel(primary), "U", "S").tolist(), ("STATUS", ()))
        for name, tag, levels in (("lower", "LOWERPL", lower), ("upper", "UPPERPL", upper)):
            if len(levels):
                numbers(name, tag, levels, None, table.decimals)
        whole = (("SEPARATOR", (";",)), ("SAFE", ("S",)), ("UNSAFE", ("U",)))
        return cls(Metadata(tuple(named.values()), whole), tuple(zip(*columns, strict=True)))

    @property
    def text(self) -> str:
        """The file; codes stand in quotation marks, since blanks belong to them."""
        out = io.StringIO()
        separator = self.metadata.separator or ";"
        quoted = [not _is_number(v) and not v.has("STATUS") for v in self.metadata.variables]
        for row in self.rows:
            fields = (
                '"' + text.replace('"', '""') + '"' if code else text
                for text, code in zip(row, quoted, strict=True)
            )
            out.write(f"{separator.join(fields)}\n")
        return out.getvalue()

    def column(self, name: str) -> list[str]:
        """The texts of a variable."""
        place = [variable.name for variable in self.metadata.variables].index(name)
        return [row[place] for row in self.rows]

    def numbers(self, name: str) -> list[Decimal]:
        """The numbers of a variable, exact."""
        return [Decimal(text.strip().replace(",", ".")) for text in self.column(name)]

    @property
    def grid(self) -> FieldGrid:
        """The cells with the names of our own files: ``value``, ``n``, ``x1`` ..., ``status``, ``lower`` ..."""
        head, ranked = [], 0
        named = [(v, {name for name, _ in v.tags}) for v in self.metadata.variables]
        numeric = [v for v, tags in named if "NUMERIC" in tags and tags <= {"NUMERIC", "DECIMALS"}]
        for variable in self.metadata.variables:
            called = next((ours for tag, ours in _OURS.items() if variable.has(tag)), variable.name)
            if variable.has("MAXSCORE"):
                ranked += 1
                called = f"x{ranked}"
            elif numeric and variable is numeric[0]:
                called = "value"
            head.append(called)
        lines = [tuple(head)]
        for row in self.rows:
            pairs = zip(self.metadata.variables, row, strict=True)
            lines.append(
                tuple(t.strip().replace(",", ".") if _is_number(v) else t.strip() for v, t in pairs)
            )
        places = ["the metadata", *(f"line {number}" for number in self.lines)]
        return FieldGrid("", tuple(lines), [1, *self.lines], places)


def read_tab(path: Path | str, metadata: Metadata | None = None) -> ArgusTable:
    """A table; the metadata stand beside the file by default."""
    path = Path(path)
    return parse_tab(
        text_of_file(path), metadata or read_metadata(path.with_suffix(".rda")), str(path)
    )


def parse_tab(text: str, metadata: Metadata, source: str) -> ArgusTable:
    """A table from its text."""
    rows, lines = [], []
    for number, fields in _rows(text, metadata, source):
        for variable, field in zip(metadata.variables, fields, strict=True):
            _check_number(variable, field, f"{source}, line {number}")
        rows.append(tuple(fields))
        lines.append(number)
    if not rows:
        raise InputError(f"{source}: there is no cell; a table needs one.")
    return ArgusTable(metadata, tuple(rows), tuple(lines))


def _is_number(variable: ArgusVariable) -> bool:
    return any(variable.has(tag) for tag in _NUMERIC)


def _check_number(variable: ArgusVariable, text: str, where: str) -> None:
    plain = text.strip()
    if (
        _is_number(variable)
        and plain
        and plain not in variable.missing
        and not _NUMBER.fullmatch(plain)
    ):
        raise InputError(f"{where}: {variable.name!r} is {plain[:20]!r}, which is no number.")


def _rows(text: str, metadata: Metadata, source: str) -> list[tuple[int, Sequence[str]]]:
    if metadata.separator:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=metadata.separator[:1])
        rows: list[tuple[int, Sequence[str]]] = []
        try:
            rows = [
                (reader.line_num, fields) for fields in reader if any(f.strip() for f in fields)
            ]
        except csv.Error as error:
            raise InputError(f"{source}, line {reader.line_num}: {error}.") from None
        for number, fields in rows:
            if len(fields) != len(metadata.variables):
                raise InputError(
                    f"{source}, line {number}: there are {len(fields)} fields, but {len(metadata.variables)} "
                    "variables in the metadata."
                )
        return rows
    rows = []
    ends = [(v.start or 1) - 1 + (v.width or 0) for v in metadata.variables]
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if len(line) < max(ends) - max(v.width or 0 for v in metadata.variables):
            raise InputError(
                f"{source}, line {number}: the line has {len(line)} letters, but the metadata name column "
                f"{max(ends)}."
            )
        starts = [(v.start or 1) - 1 for v in metadata.variables]
        rows.append((number, [line[a:b] for a, b in zip(starts, ends, strict=True)]))
    return rows
