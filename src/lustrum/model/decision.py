"""What becomes of a question: an answer, a partial answer or a refusal, always with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lustrum.model.query import TableQuery
from lustrum.model.release import Release

__all__ = ["Decision", "Reason", "TraceStep", "Verdict"]


class Verdict(StrEnum):
    """How a question ended."""

    ANSWER = "answer"
    PARTIAL = "partial"
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Reason:
    """Why something is not shown, and what would help."""

    rule: str
    text: str
    way_forward: str = ""


@dataclass(frozen=True)
class TraceStep:
    """What one step decided, in words that may be shown to anybody."""

    step: str
    outcome: str
    text: str


@dataclass(frozen=True)
class Decision:
    """The end of a question. A refusal is a value with reasons and a way forward, not an exception."""

    query: TableQuery
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    release: Release | None = None
    risk_before: float | None = None
    risk_after: float | None = None
    utility: float | None = None
    trace: tuple[TraceStep, ...] = ()
    policy: Mapping[str, Any] | None = None

    @property
    def released(self) -> bool:
        """Whether there is anything to see."""
        return self.release is not None
