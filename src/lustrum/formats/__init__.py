"""Formats in which a release is written: files that other programs read.

=========================  ==========================================================
:class:`Csv`               one row a cell
:class:`JsonStat`          JSON-stat 2.0
:class:`Parquet`           one row a cell, for programs and large tables
:class:`Xlsx`              a workbook for people
:func:`write_release`      a release as a file of CSV, Parquet or XLSX, by its ending
:func:`release_as_arrow`   a release as an Arrow table, for pandas and polars
=========================  ==========================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.formats.csv import Csv
    from lustrum.formats.jsonstat import JsonStat
    from lustrum.formats.parquet import Parquet
    from lustrum.formats.table_files.write import release_as_arrow, write_release
    from lustrum.formats.xlsx import Xlsx

__all__ = ["Csv", "JsonStat", "Parquet", "Xlsx", "release_as_arrow", "write_release"]

__getattr__, __dir__ = offer(
    __name__,
    {
        "csv": "Csv",
        "jsonstat": "JsonStat",
        "parquet": "Parquet",
        "table_files.write": "release_as_arrow write_release",
        "xlsx": "Xlsx",
    },
)
