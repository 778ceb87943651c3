"""What will likely become of a question, before it is asked: the first three steps alone.

They look at the question and at protected numbers, so that the hint reveals nothing that a refusal would not.
The risk of the table is not measured, so a question that passes here may still be refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.answer.pipeline import STEPS, run_steps
from lustrum.answer.preliminary import inner_count, question_rules
from lustrum.answer.question_state import QuestionState
from lustrum.model import Reason, TableQuery
from lustrum.policy import Policy
from lustrum.public.numbers import ProtectedNumbers


@dataclass(frozen=True)
class Precheck:
    """How many cells the table would have, whether it passes the rules, and what they would say."""

    cells: int
    passes: bool
    reasons: tuple[Reason, ...]


def precheck(
    query: TableQuery, numbers: ProtectedNumbers, policy: Policy, *, count: bool = True
) -> Precheck:
    """Try the rules; without ``count`` only those that need no numbers."""
    cells = inner_count(query, numbers.dataset)
    reasons = tuple(question_rules(query, numbers.dataset, policy.rules))
    if reasons or not count:
        return Precheck(cells, not reasons, reasons)
    case = run_steps(QuestionState(query, numbers, policy), STEPS[:3])
    return Precheck(cells, case.open, case.reasons or case.remarks)
