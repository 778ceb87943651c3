"""The rows of a file, as text, from CSV, Parquet, XLSX or JSON-stat; what they mean is decided elsewhere."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import json
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from lustrum.model import InputError

_DELIMITERS = (",", ";", "\t")
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of text by name, all of one length; an empty text is an empty field.

    ``places`` says where each row stands, for messages, such as ``line 2``. ``notes`` say how the file was
    read, and ``doubts`` what is unclear.
    """

    source: str
    columns: Mapping[str, Sequence[str]]
    places: Sequence[str]
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    delimiter: str = ","

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int) -> str:
        """A row in words."""
        return f"{self.source}, {self.places[row]}"


def read_rows(path: Path) -> Rows:
    """Read a file by its ending: Parquet, XLSX, JSON-stat, or else CSV, which may be compressed with gzip."""
    return _rows(path, lambda content: rows_of_csv(content.decode("utf-8"), str(path)))


def read_published_rows(path: Path, csv_rows: Callable[[bytes], Rows]) -> Rows:
    """The same for a published file, of which CSV is read in another way."""
    return _rows(path, csv_rows)


def _rows(path: Path, csv_rows: Callable[[bytes], Rows]) -> Rows:
    try:
        if path.suffix.lower() == ".xlsx":
            return _rows_of_workbook(path)
        if path.suffix.lower() == ".json":
            return _rows_of_jsonstat(path.read_bytes().decode("utf-8"), str(path))
        if path.suffix.lower() in _PARQUET:
            return _rows_of_parquet(path)
        if path.suffix.lower() == ".gz":
            return csv_rows(gzip.decompress(path.read_bytes()))
        return csv_rows(path.read_bytes())
    except gzip.BadGzipFile:
        raise InputError(f"{path} is not compressed with gzip, though its name says so.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it in that encoding.") from None


def rows_of_csv(text: str, source: str) -> Rows:
    """The rows of CSV with commas, semicolons or tabs, whichever the first line has most of."""
    plain = text.removeprefix("\ufeff")
    first = plain.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(plain, newline=""), delimiter=delimiter)
    try:
        head = [name.strip() for name in next(reader, [])]
        twice = next((name for name in head if head.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{source}: the column {twice!r} occurs twice; use it once.")
        rows, places = [], []
        for row in reader:
            if not row:
                continue
            if len(row) != len(head):
                raise InputError(
                    f"{source}, line {reader.line_num}: there are {len(row)} fields, but the first line "
                    f"names {len(head)}."
                )
            rows.append(row)
            places.append(f"line {reader.line_num}")
    except csv.Error as error:
        raise InputError(f"{source}, line {reader.line_num}: this is not CSV ({error}).") from None
    # A code that a spreadsheet could take for a formula is written with a quote before it.
    columns = {
        name: [row[i].strip().removeprefix("'") for row in rows] for i, name in enumerate(head)
    }
    return Rows(source, columns, places)


def _rows_of_parquet(path: Path) -> Rows:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowInvalid:
        raise InputError(f"{path} is not a Parquet file, though its name says so.") from None
    columns = {}
    for name in table.column_names:
        if name in columns:
            raise InputError(f"{path}: the column {name!r} occurs twice; use it once.")
        columns[name] = [_text(value) for value in table.column(name).to_pylist()]
    return Rows(str(path), columns, [f"row {i + 1}" for i in range(table.num_rows)])


def _rows_of_workbook(path: Path) -> Rows:
    """The sheet 'Cells' of a workbook, as this project writes it, or else the first sheet."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError):
        raise InputError(f"{path} is not a workbook, though its name says so.") from None
    with contextlib.closing(book):
        sheet = book["Cells"] if "Cells" in book.sheetnames else book.worksheets[0]
        lines = [[_text(value) for value in row] for row in sheet.iter_rows(values_only=True)]
    lines = [line for line in lines if any(line)]
    if not lines:
        raise InputError(f"{path}: the sheet is empty; a table needs a line of names.")
    head = lines[0]
    twice = next((name for name in head if head.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: the column {twice!r} occurs twice; use it once.")
    columns = {name: [line[i] for line in lines[1:]] for i, name in enumerate(head)}
    if "value" in columns and "status" in columns:
        # A workbook shows the letter of a hidden cell in place of its value.
        pairs = zip(columns["value"], columns["status"], strict=True)
        columns["value"] = ["" if value == letter else value for value, letter in pairs]
    for name in ("low", "high"):
        if name in columns:
            columns[name] = ["" if text == "not known" else text for text in columns[name]]
    return Rows(str(path), columns, [f"row {i + 2}" for i in range(len(lines) - 1)])


def _rows_of_jsonstat(text: str, source: str) -> Rows:
    """The cells of a JSON-stat dataset, one a row."""
    try:
        found = json.loads(text, parse_float=Decimal)
        names, sizes = list(found["id"]), [int(size) for size in found["size"]]
        codes, labels = [], []
        for name in names:
            category = found["dimension"][name]["category"]
            index = category.get("index") or list(category["label"])
            own = sorted(index, key=lambda c: index[c]) if isinstance(index, dict) else list(index)
            codes.append(own)
            labels.append([str(category.get("label", {}).get(code, code)) for code in own])
        cells = math.prod(sizes)
        values = _each_cell(found["value"], cells)
        status = _each_cell(found.get("status"), cells)
        extension = found.get("extension")
        interval = extension.get("interval") if isinstance(extension, dict) else None
        ends = {n: _each_cell(interval[n], cells) for n in ("low", "high")} if interval else {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{source} is not a dataset of JSON-stat 2.0.") from None
    if [len(own) for own in codes] != sizes:
        raise InputError(f"{source}: the sizes do not fit the categories of its dimensions.")
    columns: dict[str, list[str]] = {}
    places = list(itertools.product(*(range(size) for size in sizes)))
    for axis, name in enumerate(names):
        columns[name] = [str(codes[axis][place[axis]]) for place in places]
        if labels[axis] != codes[axis]:
            columns[f"{name}_label"] = [labels[axis][place[axis]] for place in places]
    columns["value"] = [_text(value) for value in values]
    if found.get("status") is not None:
        columns["status"] = [_text(letter) for letter in status]
    columns |= {name: [_text(value) for value in end] for name, end in ends.items()}
    return Rows(source, columns, [f"cell {i + 1}" for i in range(cells)])


def _each_cell(given: Any, cells: int) -> list[Any]:
    """A value for every cell, from a list, an object by cell number, or one word for all."""
    if isinstance(given, dict):
        return [given.get(str(i)) for i in range(cells)]
    if isinstance(given, list):
        if len(given) != cells:
            raise ValueError("a list of another length")
        return list(given)
    return [given] * cells


def _text(value: Any) -> str:
    if value is None or value != value:  # a number that is not one is an empty field
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value).strip()
