"""The reader of confidential tables, by the ending of a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lustrum.readers.columns import ColumnNames
from lustrum.readers.rows import read_rows, rows_of_csv
from lustrum.readers.table_file import TableFile, table_of_rows

_PLAIN = ColumnNames()


def read_table(path: Path, named: ColumnNames = _PLAIN, hidden: Iterable[str] = ()) -> TableFile:
    """Read a table from CSV, Parquet, XLSX or JSON-stat; ``hidden`` are further symbols for values not
    published.
    """
    return table_of_rows(read_rows(path), named, hidden)


def table_of_csv(
    text: str, source: str, named: ColumnNames = _PLAIN, hidden: Iterable[str] = ()
) -> TableFile:
    """Read a table from the text of a CSV file; every mistake is one sentence with its line.

    >>> found = table_of_csv("sex,value\\n1,12\\n2,x\\nTotal,20\\n", "x.csv")
    >>> found, found.values["value"]
    (TableFile('x.csv', sex, 3 cells), (Decimal('12'), None, Decimal('20')))
    """
    return table_of_rows(rows_of_csv(text, source), named, hidden)
