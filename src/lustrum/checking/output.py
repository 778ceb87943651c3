"""An output of a session, with what the rules say of it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from lustrum.checking.populations import OutputPopulation
from lustrum.checking.rules import Verdict
from lustrum.checking.tables import TableOutput


@dataclass(frozen=True, eq=False)
class SessionOutput:
    """One output: what would go out (``frame``), what the rules say of it, and what to do.

    ``outcome`` says of every cell which rules it fails; it is for the safe room alone, as ``suggestion`` is.
    """

    name: str
    kind: str
    command: str
    frame: Any
    outcome: Any
    verdict: Verdict
    summary: str
    suggestion: str = ""
    table: TableOutput | None = None
    population: OutputPopulation | None = None
    comments: tuple[str, ...] = ()
    exception: str = ""
    file: Path | None = None

    def __repr__(self) -> str:
        return f"SessionOutput({self.name!r}: {self.verdict}, {self.summary})"

    def _repr_html_(self) -> str:
        shown = self.frame._repr_html_() if hasattr(self.frame, "_repr_html_") else ""
        return (
            f"<p><b>{escape(self.name)}</b>: {escape(f'{self.verdict}, {self.summary}')}</p>{shown}"
        )
