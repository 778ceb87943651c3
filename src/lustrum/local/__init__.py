"""Answers and records in one process: for the agency's own machine, for notebooks and for tests.

=======================  =====================================================================
:func:`local_service`    answers about the datasets of a folder
:func:`health`           what is wrong with a data folder, and with its answers
:func:`crosstab`         a protected cross tabulation of columns, as pandas spells it
:func:`pivot_table`      the same of a frame
:class:`ProtectedTable`  what these two give: the public table, and reasons for the agency
=======================  =====================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.local.crosstabs import crosstab, pivot_table
    from lustrum.local.protected_table import ProtectedTable
    from lustrum.local.service import health, local_service

__all__ = ["ProtectedTable", "crosstab", "health", "local_service", "pivot_table"]

__getattr__, __dir__ = offer(
    __name__,
    {
        "crosstabs": "crosstab pivot_table",
        "protected_table": "ProtectedTable",
        "service": "health local_service",
    },
)
