"""Lustrum: let people build their own tables without giving away anybody's secret.

A map by task:

=========  ================================================================================
describe   :class:`Dataset`, :class:`TableQuery`, :class:`Axis`, :class:`Filter`
count      :class:`Table` (``Table.from_frame``, ``Table.from_counts``), :mod:`lustrum.tabulate`
relate     :mod:`lustrum.structure`: which cells add up to which
judge      :mod:`lustrum.sensitivity`: which cells tell too much before anything is protected
protect    :mod:`lustrum.protect`: a table becomes a :class:`Release`; :func:`suppress` from records
attack     :mod:`lustrum.audit`: what a reader can work out from a release
measure    :mod:`lustrum.risk` and :mod:`lustrum.utility`
compare    :func:`rumap` and :func:`best`: methods on one map of risk against utility
write      :mod:`lustrum.formats`: files that other programs read
decide     :mod:`lustrum.policy`, and :class:`~lustrum.answer.TableService` which answers or refuses
tabulate   :func:`crosstab` and :func:`pivot_table`: as pandas spells them, protected
publish    :mod:`lustrum.publish`: bundles, yearly programmes and reports from records
=========  ================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum._version import __version__
from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum import (
        answer,
        audit,
        formats,
        policy,
        protect,
        publish,
        risk,
        sensitivity,
        structure,
        tabulate,
        utility,
    )
    from lustrum.local import crosstab, pivot_table
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
    from lustrum.publish.frames import suppress
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
    "answer",
    "audit",
    "best",
    "crosstab",
    "formats",
    "pivot_table",
    "policy",
    "protect",
    "publish",
    "risk",
    "rumap",
    "sensitivity",
    "structure",
    "suppress",
    "tabulate",
    "utility",
]

# Imported when first used, so that ``import lustrum`` and ``lustrum --help`` are fast.
__getattr__, __dir__ = offer(
    __name__,
    {
        "": (
            "answer audit formats policy protect publish risk rumap sensitivity structure tabulate "
            "utility"
        ),
        "local.crosstabs": "crosstab pivot_table",
        "model": "Axis Dataset Decision Filter InputError LustrumError Release Table TableQuery",
        "publish.frames": "suppress",
        "rumap": "best",
    },
    __all__,
)
