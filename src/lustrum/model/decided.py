"""What a decision says beside its table, declared once for the model, the API, archives and the client.

Nothing but the standard library is imported here, so that the client stays light. The description of a field is
what the API says of it.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from typing import Any, Literal


def said(description: str = "", default: object = MISSING, **more: object) -> Any:
    """A field with what the API says of it."""
    metadata = {"description": description, **more} if description else {}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


class Verdict(StrEnum):
    """How a question ended."""

    ANSWER = "answer"
    PARTIAL = "partial"
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Reason:
    """Why something is not shown, and what would help."""

    rule: str = said("Short name of the rule.", examples=["mean-cell-size"])
    text: str = said("The reason, in a sentence.")
    way_forward: str = said("What would help; empty where nothing would.", default="")


@dataclass(frozen=True)
class TraceStep:
    """What one step decided, in words that may be shown to anybody."""

    step: str
    outcome: str
    text: str


@dataclass(frozen=True)
class AttackerFigures:
    """What one attacker can say about a largest contributor from the release alone."""

    attacker: Literal["outsider", "second-largest", "second-largest-with-direction"]
    published: float = said("The sum that is shown where the attacker can say most.")
    left: float = said("The least that the attacker is left with there.")
    low: float = said("The least that the contribution can be there.")
    high: float = said("The most that it can be there.")
    bits: float = said("The entropy of the attacker's belief there.")
    risk: float | None = said("One over it; null where nothing is left open.")
    typical_bits: float = said("The entropy in a typical cell.")
    typical_risk: float | None = said("One over it.")
    within: float | None = said(
        "The chance of the best guess to be within p percent, in a typical cell.", default=None
    )


@dataclass(frozen=True)
class SizeFigures:
    """How far sums from ``least`` to below ``most`` are expected to be off."""

    least: float
    most: float
    cells: int = said("How many sums of the table have this size.")
    error: float = said("The expected relative error in per cent.")


@dataclass(frozen=True)
class SumFigures:
    """Risk and utility of the sums of one measure, as a reader can work them out."""

    measure: str
    label: str
    unit: str
    p: float | None = said("The percentage that the method protects, if it states one.")
    attackers: tuple[AttackerFigures, ...] = said()
    errors: tuple[SizeFigures, ...] = said()
    growth: float | None = said(
        "The expected error of growth since the period before, in percentage points.", default=None
    )
