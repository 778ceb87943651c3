"""A case: one question on its way through the five steps, with everything known so far."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from lustrum.model import (
    Decision,
    Quantity,
    Reason,
    Release,
    SumFigures,
    TableQuery,
    TraceStep,
    Verdict,
)
from lustrum.model.text import say
from lustrum.policy import Policy
from lustrum.public.numbers import ProtectedNumbers, Views


@dataclass(frozen=True)
class QuestionState:
    """Frozen; every step returns a new one.

    ``reasons`` speak against a release and close the case; ``remarks`` say what is missing from a release that
    is made all the same. ``views`` are the counts that the rules judge, ``others`` those of earlier
    periods and of classes, and ``parts`` the protected numbers that statistics are worked out from. All that
    a case knows of the people are protected numbers.
    """

    query: TableQuery
    numbers: ProtectedNumbers
    policy: Policy
    views: Views | None = field(default=None, repr=False)
    others: tuple[Views, ...] = field(default=(), repr=False)
    parts: Mapping[Quantity, Release] = field(default_factory=dict, repr=False)
    release: Release | None = None
    risk_before: float | None = field(default=None, repr=False)
    risk_after: float | None = field(default=None, repr=False)
    utility: float | None = field(default=None, repr=False)
    sums: tuple[SumFigures, ...] = field(default=(), repr=False)
    reasons: tuple[Reason, ...] = ()
    remarks: tuple[Reason, ...] = ()
    trace: tuple[TraceStep, ...] = ()

    @property
    def open(self) -> bool:
        """Whether nothing has been said against a release yet."""
        return not self.reasons

    def noted(self, step: str, outcome: str, text: str, **known: Any) -> QuestionState:
        """The case with a line in its trace and whatever else the step found out."""
        case = copy(self)
        vars(case).update(known, trace=(*self.trace, TraceStep(step, outcome, text)))
        return case

    def refused(self, step: str, *reasons: Reason) -> QuestionState:
        """The case closed with reasons."""
        text = reasons[0].text
        for reason in reasons[1:]:
            text = say("{some} {more}", some=text, more=reason.text)
        return self.noted(step, "refused", text, reasons=(*self.reasons, *reasons))

    def decision(self) -> Decision:
        """How the case ended. A refused case carries no numbers."""
        if not self.open or self.release is None:
            return Decision(self.query, Verdict.REFUSAL, self.reasons, trace=self.trace)
        return Decision(
            query=self.query,
            verdict=Verdict.PARTIAL if self.remarks else Verdict.ANSWER,
            reasons=self.remarks,
            release=self.release,
            risk_before=self.risk_before,
            risk_after=self.risk_after,
            utility=self.utility,
            sums=self.sums,
            trace=self.trace,
        )
