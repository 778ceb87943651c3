"""The one reader of published and of confidential tables, by the ending of a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lustrum.model import InputError
from lustrum.readers.columns import ColumnNames
from lustrum.readers.published.layouts import decoded, published_rows
from lustrum.readers.published.reading import STRICT, Reading
from lustrum.readers.published_file import published_table
from lustrum.readers.rows import Rows, read_published_rows, read_rows, rows_of_csv
from lustrum.readers.table_file import TableFile, table_of_rows

_PLAIN = ColumnNames()


def read_table(
    path: Path, named: ColumnNames = _PLAIN, hidden: Iterable[str] = (), reading: Reading = STRICT
) -> TableFile:
    """Read a table from CSV, Parquet, XLSX or JSON-stat; ``hidden`` are further symbols for values not
    published.

    Where ``reading`` says that the file is published, it is read as :class:`Reading` describes.
    """
    if not reading.published:
        return table_of_rows(read_rows(path), named, hidden)

    def csv_rows(content: bytes) -> Rows:
        try:
            text, note = decoded(content)
        except InputError as problem:
            raise InputError(f"{path}: {problem}") from None
        rows = published_rows(text, str(path))
        return replace(rows, notes=(note, *rows.notes)) if note else rows

    rows = read_published_rows(path, csv_rows)
    return published_table(replace(rows, doubts=()) if reading.notes_read else rows, named, reading)


def table_of_csv(
    text: str,
    source: str,
    named: ColumnNames = _PLAIN,
    hidden: Iterable[str] = (),
    reading: Reading = STRICT,
) -> TableFile:
    """Read a table from the text of a CSV file; every mistake is one sentence with its line.

    >>> found = table_of_csv("sex,value\\n1,12\\n2,x\\nTotal,20\\n", "x.csv")
    >>> found, found.values["value"]
    (TableFile('x.csv', sex, 3 cells), (Decimal('12'), None, Decimal('20')))
    """
    if reading.published:
        rows = published_rows(text, source, notes_read=reading.notes_read)
        return published_table(rows, named, reading)
    return table_of_rows(rows_of_csv(text, source), named, hidden)
