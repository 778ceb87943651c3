"""The rows of a file, as text, from CSV or Parquet; what they mean is decided elsewhere."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from lustrum.model import InputError

__all__ = ["Rows", "read_rows", "rows_of_csv"]

_DELIMITERS = (",", ";", "\t")
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of text by name, all of one length; an empty text is an empty field.

    ``places`` says where each row stands, for messages, such as ``line 2``.
    """

    source: str
    columns: Mapping[str, Sequence[str]]
    places: Sequence[str]

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int) -> str:
        """A row in words."""
        return f"{self.source}, {self.places[row]}"


def read_rows(path: Path) -> Rows:
    """Read a file by its ending: Parquet, or else CSV, which may be compressed with gzip."""
    try:
        if path.suffix.lower() in _PARQUET:
            return _rows_of_parquet(path)
        if path.suffix.lower() == ".gz":
            return rows_of_csv(gzip.decompress(path.read_bytes()).decode("utf-8"), str(path))
        return rows_of_csv(path.read_bytes().decode("utf-8"), str(path))
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
