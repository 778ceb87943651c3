"""What will likely become of a question, told before it is asked: the preliminary rules alone.

They look at the question and at protected numbers, so that the hint tells nothing that a refusal would not.
The risk of the table is not measured, so a question that passes here may still be refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.model import Reason, TableQuery
from lustrum.policy import Policy
from lustrum.release.before import Source
from lustrum.release.case import Case
from lustrum.release.pipeline import preliminary
from lustrum.release.preliminary import inner_count, question_rules
from lustrum.tabulate import Engine

__all__ = ["Foresight", "foresee"]


@dataclass(frozen=True)
class Foresight:
    """How many cells the table would have, whether it passes the rules, and what they would say."""

    cells: int
    passes: bool
    reasons: tuple[Reason, ...]


def foresee(
    query: TableQuery,
    engine: Engine,
    policy: Policy,
    source: Source | None = None,
    *,
    count: bool = True,
) -> Foresight:
    """Try the preliminary rules; without ``count`` only those that need no numbers."""
    cells = inner_count(query, engine.dataset)
    reasons = tuple(question_rules(query, engine.dataset, policy.rules))
    if reasons or not count:
        return Foresight(cells, not reasons, reasons)
    case = preliminary(Case(query, engine, policy, source or Source(engine)))
    return Foresight(cells, case.open, case.reasons or case.remarks)
