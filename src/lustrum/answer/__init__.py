"""From a question to an answer or a refusal, in five steps, on protected numbers alone."""

from lustrum.answer.pipeline import STEPS, answer
from lustrum.answer.question_state import QuestionState
from lustrum.answer.snapshot import Precheck, Snapshot, precheck
from lustrum.answer.table_service import TableService

__all__ = [
    "STEPS",
    "Precheck",
    "QuestionState",
    "Snapshot",
    "TableService",
    "answer",
    "precheck",
]
