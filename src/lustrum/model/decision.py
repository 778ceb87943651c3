"""What becomes of a question: an answer, a partial answer or a refusal, always with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Any

from lustrum.model.errors import InputError
from lustrum.model.query import TableQuery
from lustrum.model.release import Release
from lustrum.model.table import Framed


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
class AttackerFigures:
    """What one attacker can say about a largest contributor, where it can say most and in a typical cell.

    ``published`` is the sum of the cell where it can say most, ``left`` the least that it is left with there.
    The contribution lies from ``low`` to ``high``. ``bits`` is the entropy of the attacker's belief and
    ``risk`` one over it, None where the contribution is known. ``within`` is the chance of the best guess to be
    within p percent in a typical cell.
    """

    attacker: str
    published: float
    left: float
    low: float
    high: float
    bits: float
    risk: float | None
    typical_bits: float
    typical_risk: float | None
    within: float | None = None


@dataclass(frozen=True)
class SizeFigures:
    """The expected relative error, in per cent, of the sums from ``least`` to below ``most``."""

    least: float
    most: float
    cells: int
    error: float


@dataclass(frozen=True)
class SumFigures:
    """Risk and utility of the sums of one measure, as a reader can work them out.

    ``growth`` is the expected error of growth since the period before, in percentage points.
    """

    measure: str
    label: str
    unit: str
    p: float | None
    attackers: tuple[AttackerFigures, ...]
    errors: tuple[SizeFigures, ...]
    growth: float | None = None


@dataclass(frozen=True)
class Decision(Framed):
    """The end of a question. A refusal is a value with reasons and a way forward, not an exception."""

    query: TableQuery
    verdict: Verdict
    reasons: tuple[Reason, ...] = ()
    release: Release | None = None
    risk_before: float | None = None
    risk_after: float | None = None
    utility: float | None = None
    sums: tuple[SumFigures, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    policy: Mapping[str, Any] | None = None

    @property
    def released(self) -> bool:
        """Whether there is anything to see."""
        return self.release is not None

    def _cells(self) -> Release:
        """The release; a refusal says why there is none, so that nobody takes it for an empty table."""
        if self.release is None:
            why = " ".join(f"{reason.text} {reason.way_forward}".strip() for reason in self.reasons)
            raise InputError(f"The table was refused, so there is no frame of it. {why}".rstrip())
        return self.release

    def _repr_html_(self) -> str:
        """The answer for a notebook: its numbers, and the reasons for what is missing."""
        told = "".join(
            f"<li>{escape(f'{reason.text} {reason.way_forward}'.strip())}</li>"
            for reason in self.reasons
        )
        reasons = f"<ul>{told}</ul>" if told else ""
        if self.release is None:
            return f"<p><strong>The table was refused.</strong></p>{reasons}"
        return self.release._repr_html_() + reasons

    @property
    def counted(self) -> bool:
        """Whether counts are shown or go into what is shown, so that figures of the counts are about it."""
        needed = [q for s in self.query.asked for q in s.quantities(self.query.weight)]
        return not self.sums or any(quantity.measure is None for quantity in needed)
