"""From what is known to what can be believed: bounds, posteriors, attacks.

=====================================  ============================================================
:class:`Knowledge`                     linear facts and bounds about hidden cells
:class:`PublishedTable`,               published tables, and what they reveal together
:func:`from_tables`
:func:`from_release`                   what one release reveals
:func:`from_suppression`               what a table with suppressed cells reveals
:func:`from_margins`                   what margins reveal about a hidden cube
:func:`from_responses`                 what tables of responses that add up to each other reveal
:func:`best_bounds`                    the least and the greatest value of each cell, by the cheapest way
:func:`bounds`                         the same by linear and integer programming
:mod:`~lustrum.audit.closed`           the same by formula, from margins of a hidden cube
:mod:`~lustrum.audit.shuttle`          the same by the shuttle algorithm, with a search for sharp bounds
:func:`exactly_disclosed`              which cells follow from the equations alone
:func:`conflict`                       published cells that contradict each other
:mod:`~lustrum.audit.certificate`      bounds with proofs that anybody can check
:mod:`~lustrum.audit.fibre`            how probable each value is, exactly or by sampling
:func:`audit_tables`                   a report on published tables
:class:`Protection`                    how uncertain a reader must stay about true values
:class:`Belief`                        a distribution for each cell
:func:`posterior`, :func:`likelihood`  Bayes with a channel and a prior
:func:`attack`                         the belief of an attacker about each cell
=====================================  ============================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lustrum.lazy import offer

if TYPE_CHECKING:
    from lustrum.audit import certificate, closed, fibre, shuttle
    from lustrum.audit.attackers import Attacker, Coalition, Insider, Outsider, OwnContributions
    from lustrum.audit.attacking import attack, others
    from lustrum.audit.belief.belief import Belief
    from lustrum.audit.belief.channels import MarkovSquare
    from lustrum.audit.belief.posterior import likelihood, posterior
    from lustrum.audit.belief.priors import (
        BetaBinomial,
        Prior,
        ReferenceFrequencies,
        TablePrior,
        Uniform,
    )
    from lustrum.audit.best import best_bounds
    from lustrum.audit.bounding.compute import Bounds, bounds
    from lustrum.audit.bounding.elimination import exactly_disclosed
    from lustrum.audit.knowledge.conflicts import Conflict, ConflictError, conflict
    from lustrum.audit.knowledge.facts import CellRef, ContradictionError, Knowledge
    from lustrum.audit.knowledge.published import (
        PublishedTable,
        from_margins,
        from_release,
        from_suppression,
        from_tables,
    )
    from lustrum.audit.knowledge.responses import Relation, from_responses
    from lustrum.audit.protection import Protection, ProtectionVerdict
    from lustrum.audit.report import AuditedCell, AuditReport, audit_tables

__all__ = [
    "Attacker",
    "AuditReport",
    "AuditedCell",
    "Belief",
    "BetaBinomial",
    "Bounds",
    "CellRef",
    "Coalition",
    "Conflict",
    "ConflictError",
    "ContradictionError",
    "Insider",
    "Knowledge",
    "MarkovSquare",
    "Outsider",
    "OwnContributions",
    "Prior",
    "Protection",
    "ProtectionVerdict",
    "PublishedTable",
    "ReferenceFrequencies",
    "Relation",
    "TablePrior",
    "Uniform",
    "attack",
    "audit_tables",
    "best_bounds",
    "bounds",
    "certificate",
    "closed",
    "conflict",
    "exactly_disclosed",
    "fibre",
    "from_margins",
    "from_release",
    "from_responses",
    "from_suppression",
    "from_tables",
    "likelihood",
    "others",
    "posterior",
    "shuttle",
]

_PLACES = {
    "": "certificate closed fibre shuttle",
    "attackers": "Attacker Coalition Insider Outsider OwnContributions",
    "attacking": "attack others",
    "belief.belief": "Belief",
    "belief.channels": "MarkovSquare",
    "belief.posterior": "likelihood posterior",
    "belief.priors": "BetaBinomial Prior ReferenceFrequencies TablePrior Uniform",
    "best": "best_bounds",
    "bounding.compute": "Bounds bounds",
    "bounding.elimination": "exactly_disclosed",
    "knowledge.conflicts": "Conflict ConflictError conflict",
    "knowledge.facts": "CellRef ContradictionError Knowledge",
    "knowledge.published": "PublishedTable from_margins from_release from_suppression from_tables",
    "knowledge.responses": "Relation from_responses",
    "protection": "Protection ProtectionVerdict",
    "report": "AuditReport AuditedCell audit_tables",
}

__getattr__, __dir__ = offer(__name__, _PLACES)
