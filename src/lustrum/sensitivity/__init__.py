"""A-priori rules: which cells of a table tell too much, before anything is protected.

=====================================  =============================================================
few contributors                       :class:`Threshold`
few contributors have most             :class:`Dominance`, :class:`Request` (only who asked)
one contributor can work out another   :class:`PPercent`, :class:`PriorPosterior`, :func:`insider_bounds`
a group is all in one place            :class:`KDisclosure`, :class:`GroupDisclosure`, :class:`Sparsity`
cells named by their owner             :class:`GivenCells`
several rules                          :class:`AnyOf`, :class:`AllOf`, :class:`Unless`
=====================================  =============================================================

Each is a frozen spec; ``rule.judge(table)`` gives a :class:`Sensitivity`: the cells, status letters,
reasons in words, and the interval that must hide each cell. Waivers and requests
come in a :class:`Background`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.sensitivity.background import Background
    from lustrum.sensitivity.insider import insider_bounds
    from lustrum.sensitivity.read import read_rule
    from lustrum.sensitivity.result import Finding, Sensitivity
    from lustrum.sensitivity.rule import Rule
    from lustrum.sensitivity.rules.combine import AllOf, AnyOf, Unless
    from lustrum.sensitivity.rules.dominance import Dominance
    from lustrum.sensitivity.rules.given import GivenCells
    from lustrum.sensitivity.rules.group_disclosure import GroupDisclosure
    from lustrum.sensitivity.rules.k_disclosure import KDisclosure
    from lustrum.sensitivity.rules.p_percent import PPercent
    from lustrum.sensitivity.rules.prior_posterior import PriorPosterior
    from lustrum.sensitivity.rules.request import Request
    from lustrum.sensitivity.rules.sparsity import Sparsity
    from lustrum.sensitivity.rules.threshold import Threshold

__all__ = [
    "AllOf",
    "AnyOf",
    "Background",
    "Dominance",
    "Finding",
    "GivenCells",
    "GroupDisclosure",
    "KDisclosure",
    "PPercent",
    "PriorPosterior",
    "Request",
    "Rule",
    "Sensitivity",
    "Sparsity",
    "Threshold",
    "Unless",
    "insider_bounds",
    "read_rule",
]

_PLACES = {
    "background": "Background",
    "insider": "insider_bounds",
    "read": "read_rule",
    "result": "Finding Sensitivity",
    "rule": "Rule",
    "rules.combine": "AllOf AnyOf Unless",
    "rules.dominance": "Dominance",
    "rules.given": "GivenCells",
    "rules.group_disclosure": "GroupDisclosure",
    "rules.k_disclosure": "KDisclosure",
    "rules.p_percent": "PPercent",
    "rules.prior_posterior": "PriorPosterior",
    "rules.request": "Request",
    "rules.sparsity": "Sparsity",
    "rules.threshold": "Threshold",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
