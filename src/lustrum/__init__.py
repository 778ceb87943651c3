"""Lustrum: let people build their own tables without giving away anybody's secret.

A map by task:

=========  ================================================================================
describe   :class:`Dataset`, :class:`TableQuery`, :class:`Axis`, :class:`Filter`
count      :class:`Table` (``Table.from_frame``, ``Table.from_counts``), :mod:`lustrum.tabulate`
relate     :mod:`lustrum.structure`: which cells add up to which
protect    :mod:`lustrum.protect`: a table becomes a :class:`Release`; :func:`suppress` from records
measure    :mod:`lustrum.risk` and :mod:`lustrum.utility`
compare    :func:`rumap` and :func:`best`: methods on one map of risk against utility
decide     :mod:`lustrum.policy`, and :class:`~lustrum.release.TableService` which answers or refuses
=========  ================================================================================
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from lustrum._version import __version__
from lustrum.model import (
    Axis,
    Dataset,
    Decision,
    Filter,
    InputError,
    LustrumError,
    Release,
    Table,
    TableQuery,
)

if TYPE_CHECKING:
    from lustrum import policy, protect, release, risk, structure, tabulate, utility
    from lustrum.frames import suppress
    from lustrum.rumap import best, rumap

__all__ = [
    "Axis",
    "Dataset",
    "Decision",
    "Filter",
    "InputError",
    "LustrumError",
    "Release",
    "Table",
    "TableQuery",
    "__version__",
    "best",
    "policy",
    "protect",
    "release",
    "risk",
    "rumap",
    "structure",
    "suppress",
    "tabulate",
    "utility",
]

_ROOMS = ("policy", "protect", "release", "risk", "rumap", "structure", "tabulate", "utility")


def __getattr__(name: str) -> object:
    """Rooms are imported when they are first used, so that ``import lustrum`` stays fast."""
    if name in _ROOMS:
        return importlib.import_module(f"lustrum.{name}")
    if name == "best":
        return importlib.import_module("lustrum.rumap").best
    if name == "suppress":
        return importlib.import_module("lustrum.frames").suppress
    raise AttributeError(f"module 'lustrum' has no attribute {name!r}")
