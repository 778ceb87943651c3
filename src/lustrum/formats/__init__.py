"""Formats in which a release is written: files that other programs read.

================  ========================================
:class:`Csv`      one row a cell
:class:`JsonStat` JSON-stat 2.0
:class:`Xlsx`     a workbook for people
================  ========================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.formats.csv import Csv
    from lustrum.formats.jsonstat import JsonStat
    from lustrum.formats.xlsx import Xlsx

__all__ = ["Csv", "JsonStat", "Xlsx"]

__getattr__, __dir__ = offer(__name__, {"Csv": "csv", "JsonStat": "jsonstat", "Xlsx": "xlsx"})
