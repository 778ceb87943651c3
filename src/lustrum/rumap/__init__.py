"""Risk-utility maps: compare methods on the same tables against the same attacker, and choose one.

The room can be called: ``lustrum.rumap(table)`` is :func:`rumap`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from lustrum.rumap.cases import Cases, HypercubeTables, HypercubeView, RecordTables, Tables
from lustrum.rumap.choose import Choice, ReleaseComparison, best, compare, decide
from lustrum.rumap.grids import BeforeCounting, default_methods, grid
from lustrum.rumap.map import RUMap, dominated_area, frontier, growing_map, rumap, sweep_of
from lustrum.rumap.measures import Measures
from lustrum.rumap.points import Draw, Point
from lustrum.rumap.search import Space, Span, find_frontier, space
from lustrum.rumap.series import Question, SeriesMap, series, series_map
from lustrum.rumap.sweep import Cache

__all__ = [
    "BeforeCounting", "Cache", "Cases", "Choice", "Draw", "HypercubeTables", "HypercubeView",
    "Measures", "Point", "Question", "RUMap", "RecordTables", "ReleaseComparison", "SeriesMap",
    "Space", "Span", "Tables", "best", "compare", "decide", "default_methods", "dominated_area",
    "find_frontier", "frontier", "grid", "growing_map", "rumap", "series", "series_map",
    "space", "sweep_of",
]  # fmt: skip


class _Room(ModuleType):
    """The room as a function: a package and a function of one name would hide each other."""

    def __call__(self, *args: Any, **options: Any) -> RUMap:
        """See :func:`rumap`."""
        return rumap(*args, **options)

    def __dir__(self) -> list[str]:
        """The names that the room offers, for Tab."""
        return sorted(__all__)


sys.modules[__name__].__class__ = _Room
