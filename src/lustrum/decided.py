"""What a decision says beside its table, declared once for the model, the API, archives and the client.

Nothing but the standard library is imported here, so that the client stays light. The description of a field is
what the API says of it.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from enum import StrEnum
from typing import Any, Literal


def _of(description: str, default: object = MISSING, **more: object) -> Any:
    """A field with its description."""
    metadata = {"description": description, **more}
    return (
        field(default=default, metadata=metadata)
        if default is not MISSING
        else field(metadata=metadata)
    )


class Verdict(StrEnum):
    """How a question ended."""

    ANSWER = "answer"
    PARTIAL = "partial"
    REFUSAL = "refusal"


@dataclass(frozen=True)
class Reason:
    """Why something is not shown, and what would help."""

    rule: str = _of("Short name of the rule.", examples=["mean-cell-size"])
    text: str = _of("The reason, in a sentence.")
    way_forward: str = _of("What would help; empty where nothing would.", default="")


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
    published: float = _of("The sum that is shown where the attacker can say most.")
    left: float = _of("The least that the attacker is left with there.")
    low: float = _of("The least that the contribution can be there.")
    high: float = _of("The most that it can be there.")
    bits: float = _of("The entropy of the attacker's belief there.")
    risk: float | None = _of("One over it; null where nothing is left open.")
    typical_bits: float = _of("The entropy in a typical cell.")
    typical_risk: float | None = _of("One over it.")
    within: float | None = _of(
        "The chance of the best guess to be within p percent, in a typical cell.", default=None
    )


@dataclass(frozen=True)
class SizeFigures:
    """How far sums from ``least`` to below ``most`` are expected to be off."""

    least: float
    most: float
    cells: int = _of("How many sums of the table have this size.")
    error: float = _of("The expected relative error in per cent.")


@dataclass(frozen=True)
class SumFigures:
    """Risk and utility of the sums of one measure, as a reader can work them out."""

    measure: str
    label: str
    unit: str
    p: float | None = _of("The percentage that the method protects, if it states one.")
    attackers: tuple[AttackerFigures, ...]
    errors: tuple[SizeFigures, ...]
    growth: float | None = _of(
        "The expected error of growth since the period before, in percentage points.", default=None
    )
