"""From a question to an answer or a refusal, in five steps."""

from lustrum.release.case import Case
from lustrum.release.desk import Desk
from lustrum.release.foresee import Foresight, foresee
from lustrum.release.pipeline import STEPS, answer

__all__ = ["STEPS", "Case", "Desk", "Foresight", "answer", "foresee"]
