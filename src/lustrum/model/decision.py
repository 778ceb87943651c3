"""What becomes of a question: an answer, a partial answer or a refusal, always with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from lustrum.model.decided import Reason, SumFigures, TraceStep, Verdict
from lustrum.model.errors import InputError
from lustrum.model.query import TableQuery
from lustrum.model.release import Release
from lustrum.model.table import Framed


@dataclass(frozen=True)
class Decision(Framed):
    """The end of a question. A refusal is a value with reasons and a way forward, not an exception.

    >>> reason = Reason("max_cells", "The table is too large.", "Leave a variable out.")
    >>> Decision(TableQuery("town", ()), Verdict.REFUSAL, (reason,)).reasons[0].rule
    'max_cells'
    """

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
