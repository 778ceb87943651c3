"""What will likely become of a question, told before it is asked: the preliminary rules alone.

They look at the question and at protected numbers, so that the hint tells nothing that a refusal would not.
The risk of the table is not measured, so a question that passes here may still be refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.model import Reason, TableQuery
from lustrum.policy import Policy
from lustrum.release.pipeline import preliminary
from lustrum.release.preliminary import inner_count, question_rules
from lustrum.release.protected_input import ProtectedInput
from lustrum.release.question_state import QuestionState
from lustrum.tabulate import Engine

__all__ = ["Precheck", "precheck"]


@dataclass(frozen=True)
class Precheck:
    """How many cells the table would have, whether it passes the rules, and what they would say."""

    cells: int
    passes: bool
    reasons: tuple[Reason, ...]


def precheck(
    query: TableQuery,
    engine: Engine,
    policy: Policy,
    source: ProtectedInput | None = None,
    *,
    count: bool = True,
) -> Precheck:
    """Try the preliminary rules; without ``count`` only those that need no numbers."""
    cells = inner_count(query, engine.dataset)
    reasons = tuple(question_rules(query, engine.dataset, policy.rules))
    if reasons or not count:
        return Precheck(cells, not reasons, reasons)
    case = preliminary(QuestionState(query, engine, policy, source or ProtectedInput(engine)))
    return Precheck(cells, case.open, case.reasons or case.remarks)
