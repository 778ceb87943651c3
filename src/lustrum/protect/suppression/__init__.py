"""Secondary suppression: which further cells to suppress so that nobody can work primary ones out.

=====================================  ==================================================================
:class:`Suppression`                   the method for tables
:func:`suppress`                       the same on arrays, for problems that come from no table
:class:`SuppressionProblem`            cells, relations, levels, attackers and costs
:class:`Pattern`                       which cells are suppressed, and what is proven about it
:func:`contributor_views`              attackers that know what they contribute to one or several tables
:func:`singleton_views`                attackers that know their own cell, on arrays
:func:`cell_costs`                     what the suppression of a cell costs
:func:`linked_patterns`                linked tables, protected together
:func:`with_intervals`                 partial suppression: intervals instead of blanks
:func:`level_counts`                   what is suppressed at each level of the hierarchy
:func:`explain_changes`                what changed against the last period, and why
=====================================  ==================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.protect.suppression.attackers import RuleOnUnions, coalition, singleton_views
    from lustrum.protect.suppression.changes import ChangedCell, PatternChanges, explain_changes
    from lustrum.protect.suppression.check import PatternAudit, audit_pattern, certificate_of
    from lustrum.protect.suppression.choose import suppress
    from lustrum.protect.suppression.contributors import contributor_views
    from lustrum.protect.suppression.costs import cell_costs
    from lustrum.protect.suppression.linked import linked_patterns, linked_problem
    from lustrum.protect.suppression.method import Suppression
    from lustrum.protect.suppression.partial import with_intervals
    from lustrum.protect.suppression.problem import (
        AxisSums,
        ContributorView,
        SuppressionProblem,
        UnionRule,
    )
    from lustrum.protect.suppression.result import AuditedCells, Changes, Pattern, Unprotectable
    from lustrum.protect.suppression.summary import LevelCounts, level_counts

__all__ = [
    "AuditedCells",
    "AxisSums",
    "ChangedCell",
    "Changes",
    "ContributorView",
    "LevelCounts",
    "Pattern",
    "PatternAudit",
    "PatternChanges",
    "RuleOnUnions",
    "Suppression",
    "SuppressionProblem",
    "UnionRule",
    "Unprotectable",
    "audit_pattern",
    "cell_costs",
    "certificate_of",
    "coalition",
    "contributor_views",
    "explain_changes",
    "level_counts",
    "linked_patterns",
    "linked_problem",
    "singleton_views",
    "suppress",
    "with_intervals",
]

_PLACES = {
    "attackers": "RuleOnUnions coalition singleton_views",
    "changes": "ChangedCell PatternChanges explain_changes",
    "check": "PatternAudit audit_pattern certificate_of",
    "choose": "suppress",
    "contributors": "contributor_views",
    "costs": "cell_costs",
    "linked": "linked_patterns linked_problem",
    "method": "Suppression",
    "partial": "with_intervals",
    "problem": "AxisSums ContributorView SuppressionProblem UnionRule",
    "result": "AuditedCells Changes Pattern Unprotectable",
    "summary": "LevelCounts level_counts",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
