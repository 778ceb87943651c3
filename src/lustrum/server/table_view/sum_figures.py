"""Risk and utility of sums as the page of an answer shows them."""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.answer.figures.words import (
    AttackerWords,
    attacker_words,
    error_words,
    growth_words,
    summary,
)
from lustrum.model import Decision


@dataclass(frozen=True)
class SumView:
    """The figures of one measure in words."""

    measure: str
    label: str
    p: float | None
    summary: str
    attackers: tuple[AttackerWords, ...]
    errors: tuple[str, ...]
    growth: str


def sum_views(decision: Decision) -> tuple[SumView, ...]:
    """Those of every measure that is summed."""
    return tuple(
        SumView(
            one.measure,
            one.label,
            one.p,
            summary(one),
            attacker_words(one),
            tuple(error_words(size, one.unit) for size in one.errors),
            growth_words(one),
        )
        for one in decision.sums
    )
