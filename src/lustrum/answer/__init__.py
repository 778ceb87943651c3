"""From a question to an answer or a refusal, in five steps, on protected numbers alone."""

from lustrum.answer.pipeline import STEPS, answer
from lustrum.answer.precheck import Precheck, precheck
from lustrum.answer.question_state import QuestionState
from lustrum.answer.snapshot import Snapshot
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
