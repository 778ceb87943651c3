"""From a question to an answer or a refusal, in five steps, on protected numbers alone."""

from lustrum.release.numbers import ProtectedNumbers, Views
from lustrum.release.pipeline import STEPS, answer
from lustrum.release.precheck import Precheck, precheck
from lustrum.release.question_state import QuestionState
from lustrum.release.table_service import TableService

__all__ = [
    "STEPS",
    "Precheck",
    "ProtectedNumbers",
    "QuestionState",
    "TableService",
    "Views",
    "answer",
    "precheck",
]
