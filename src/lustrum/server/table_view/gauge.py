"""What the pages show of an answer: the five steps, and the picture of risk and utility."""

from __future__ import annotations

from dataclasses import dataclass

from lustrum.answer.figures.words import (
    AttackerWords,
    attacker_words,
    error_words,
    growth_words,
    summary,
)
from lustrum.model import Decision, TraceStep
from lustrum.model.text import say

STEPS = (
    ("question", say("Question")),
    ("numbers", say("Protected numbers")),
    ("rules", say("Rules")),
    ("risk", say("Risk")),
    ("answer", say("Answer")),
)
_OUTCOMES = {"passed": "done", "protected": "done", "released": "done"}


@dataclass(frozen=True)
class GaugeStep:
    """One of the five steps: ``done``, ``refused``, or ``open`` where the question did not get so far."""

    name: str
    state: str
    text: str


def steps(trace: tuple[TraceStep, ...]) -> tuple[GaugeStep, ...]:
    """All five steps, taken or not."""
    taken = {step.step: step for step in trace}
    out = []
    for key, name in STEPS:
        step = taken.get(key)
        if step is None:
            out.append(GaugeStep(name, "open", say("Not reached.")))
        else:
            out.append(GaugeStep(name, _OUTCOMES.get(step.outcome, "refused"), step.text))
    return tuple(out)


@dataclass(frozen=True)
class Gauge:
    """The picture of risk before and after on a scale up to ``top``, in units of the drawing."""

    before: float
    after: float
    limit: float
    utility: float | None
    top: float
    left: int = 8
    start: int = 76
    width: int = 276

    def x(self, value: float) -> float:
        """Where a risk stands on the scale."""
        return round(self.start + self.length(value), 1)

    def length(self, value: float) -> float:
        """How long the bar of a risk is."""
        return round(self.width * min(value / self.top, 1.0), 1)

    @property
    def sentence(self) -> str:
        said = say(
            "Risk of disclosure about {before:.2f} before protection and {after:.2f} after it; the limit is "
            "{limit:g}.",
            before=self.before,
            after=self.after,
            limit=self.limit,
        )
        if self.utility is None:
            return said
        return say("{risk} Utility about {utility:.3f} of 1.", risk=said, utility=self.utility)


def gauge(decision: Decision, limit: float) -> Gauge | None:
    """The picture, if the risk was measured and counts are shown or go into what is shown."""
    before, after = decision.risk_before, decision.risk_after
    if before is None or after is None or not decision.counted:
        return None
    top = 0.5 if max(before, after, limit) <= 0.45 else 1.0
    return Gauge(before, after, limit, decision.utility, top)


# --- Risk and utility of sums as the page of an answer shows them


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
