"""Formats in which a release is written: files that other programs read.

=========================  ==========================================================
:class:`About`             what a table says of itself, the same in every file
:class:`Arrow`             Arrow IPC: one row a cell, mapped into memory
:class:`Csv`               one row a cell
:class:`CsvDescription`    what stands in it, as CSV on the Web describes tables
:class:`Html`              a page without scripts
:class:`JsonStat`          JSON-stat 2.0
:class:`Parquet`           one row a cell, for programs and large tables
:class:`Px`                PX 2013, for PxWeb and its clients
:class:`SdmxCsv`           SDMX-CSV 2.0
:class:`SdmxStructure`     its structure message
:class:`Xlsx`              a workbook for people
:func:`write_release`      a release as a file of CSV, Parquet or XLSX, by its ending
:func:`release_as_arrow`   a release as an Arrow table, for pandas and polars
=========================  ==========================================================
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
