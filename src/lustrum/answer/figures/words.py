"""Figures beside sums in sentences, for pages, files and the command line."""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.model import AttackerFigures, SizeFigures, SumFigures
from lustrum.model.text import lowered, say

_WHO = {
    "outsider": say("An outsider who knows how many contributors there are at most"),
    "second-largest": say(
        "The second largest contributor, or all others together where the largest has half of the sum"
    ),
    "second-largest-with-direction": say(
        "The same, if they know whether the largest one was moved up or down"
    ),
}


@dataclass(frozen=True)
class AttackerWords:
    """Who can say what about the largest contributor, and the risk: one over the entropy in bits."""

    who: str
    says: str
    risk: float | None
    typical: float | None
    within: str


def attacker_words(figures: SumFigures) -> tuple[AttackerWords, ...]:
    return tuple(
        AttackerWords(
            _WHO[one.attacker],
            _says(one, figures.unit),
            one.risk,
            one.typical_risk,
            "" if one.within is None else say("{share:.0f} %", share=100 * one.within),
        )
        for one in figures.attackers
    )


def _says(one: AttackerFigures, unit: str) -> str:
    if one.attacker == "outsider":
        return say(
            "It lies between {low:,} and {high:,} {unit} where {published:,} is shown.",
            low=_number(one.low),
            high=_number(one.high),
            unit=unit,
            published=_number(one.published),
        )
    return say(
        "It lies between {low:.0f} and {high:.0f} percent of what is left without their own values.",
        low=100 * one.low / one.left,
        high=100 * one.high / one.left,
    )


def error_words(size: SizeFigures, unit: str) -> str:
    return say(
        "From {least:,} to {most:,} {unit}: about {error:.3g} percent.",
        least=_number(size.least),
        most=_number(size.most),
        unit=unit,
        error=size.error,
    )


def growth_words(figures: SumFigures) -> str:
    """How far growth since the period before is typically off; nothing where that is not known."""
    if figures.growth is None:
        return ""
    return say(
        "Growth of {measure} since the period before is typically {points:.3g} percentage points away from "
        "the true one.",
        measure=lowered(figures.label),
        points=figures.growth,
    )


def summary(figures: SumFigures) -> str:
    """Risk and utility of one measure in a sentence."""
    insider = next((a for a in figures.attackers if a.attacker == "second-largest"), None)
    cells = sum(size.cells for size in figures.errors)
    if insider is None or insider.typical_risk is None or not cells:
        return ""
    error = sum(size.cells * size.error for size in figures.errors) / cells
    return say(
        "{measure}: risk of disclosure about {risk:.2f} for the largest contributor of a typical cell. A sum "
        "is expected to be {error:.3g} percent away from the true one.",
        measure=figures.label,
        risk=insider.typical_risk,
        error=error,
    )


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value
