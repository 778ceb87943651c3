"""Tables in files: read from CSV, Parquet, XLSX and JSON-stat, published or confidential, with totals and
subtotals recognised.

=========================================  =========================================================
:func:`read_table`, :func:`table_of_csv`   the cells of a file; what is hidden is never 0
:class:`Reading`                           what a reader of a published file knows beside it
:class:`ColumnNames`                       which column is what, where names are not the usual ones
:func:`read_groups`                        a hierarchy from ``.hrc``, ``.csv`` or ``.toml``
:func:`recognise`, :class:`StatedTotals`     totals and subtotals: said, by name, or by their numbers
:func:`releases_of`                        published tables as releases over one population
:func:`confidential_table`                 a true table with its contributors
=========================================  =========================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.formats.table_files.columns import ColumnNames
    from lustrum.formats.table_files.hierarchy_files import Groups, groups_of_text, read_groups
    from lustrum.formats.table_files.published.reading import Reading
    from lustrum.formats.table_files.read import read_table, table_of_csv
    from lustrum.formats.table_files.recognition import (
        TOTAL_NAMES,
        Dimension,
        Recognition,
        StatedTotals,
        recognise,
    )
    from lustrum.formats.table_files.releases import confidential_table, releases_of
    from lustrum.formats.table_files.table_file import HIDDEN_SYMBOLS, TableFile

__all__ = [
    "HIDDEN_SYMBOLS",
    "TOTAL_NAMES",
    "ColumnNames",
    "Dimension",
    "Groups",
    "Reading",
    "Recognition",
    "StatedTotals",
    "TableFile",
    "confidential_table",
    "groups_of_text",
    "read_groups",
    "read_table",
    "recognise",
    "releases_of",
    "table_of_csv",
]

_PLACES = {
    "columns": "ColumnNames",
    "hierarchy_files": "Groups groups_of_text read_groups",
    "published.reading": "Reading",
    "read": "read_table table_of_csv",
    "recognition": "Dimension Recognition StatedTotals TOTAL_NAMES recognise",
    "releases": "confidential_table releases_of",
    "table_file": "HIDDEN_SYMBOLS TableFile",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
