"""What audit, suppress and verify found, as one document for programs; terminal and page are drawn from it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from lustrum.runtime.durable import write_whole


class _ReportPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditedFile(_ReportPart):
    """A file that was read: its digest (of a certificate that of its facts), and where its layout came from."""

    name: str
    digest: str
    layout: Literal["given", "beside the file", "proposed", "none"]
    notes: tuple[str, ...] = ()


class AuditedValue(_ReportPart):
    """A value that was not published as it is, and the range in which a reader knows it to be.

    An end that is not there is not bounded. ``sharp`` ends are reached by some table that fits; ends that are
    only ``reached`` are no bounds, and the range may be wider. ``follows``
    names published cells from which a disclosed value follows. ``known_to`` names contributors who know
    the range; it is then about what others contribute, or about one contribution to a shown cell.
    """

    cell: str
    place: str
    low: float | None
    high: float | None
    sharp: bool
    reached: bool = False
    status: Literal["", "primary", "secondary"] = ""
    finding: Literal["exact", "close", "within protection", "few values", "open"]
    follows: tuple[str, ...] = ()
    known_to: tuple[str, ...] = ()
    about: Literal["value", "contributions of others", "one contribution"] = "value"


class OpenQuestion(_ReportPart):
    """A role that nothing settles. ``role`` is its name in the layout."""

    file: str
    role: str
    text: str


class PatternReport(_ReportPart):
    """A pattern of suppressed cells: how many, what the secondary ones cost, and the least cost of any."""

    cells: int
    primary: int
    secondary: int
    cost: float
    lower_bound: float
    optimal: bool
    algorithm: str
    attackers: int


class FileReport(_ReportPart):
    """The outcome of a command: why it ended as it did, and the cells with their bounds.

    ``exit`` is 0 if everything has a role and nothing is disclosed, 3 if something is, 4 if roles are open,
    and 1 if a certificate does not hold; ``reason`` says it in words. ``values`` are all findings of an audit
    but open ones, all suppressed cells, or all proven bounds. ``if_confirmed`` is what would be disclosed if
    the proposed roles were confirmed. ``on_word`` are roles that rest on a person's word. ``contributors`` is
    the number of those who were judged beside readers. A ``confidential`` report names contributors or tells
    which cells are sensitive.
    """

    format: Literal["lustrum-report"] = "lustrum-report"
    version: Literal[1] = 1
    command: Literal["audit", "suppress", "verify"] = "audit"
    exit: Literal[0, 1, 3, 4]
    reason: str
    confidential: bool = False
    files: tuple[AuditedFile, ...]
    hidden: int
    open: int
    values: tuple[AuditedValue, ...]
    standing: tuple[str, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    if_confirmed: tuple[AuditedValue, ...] = ()
    on_word: tuple[str, ...] = ()
    closest: AuditedValue | None = None
    contributors: int = 0
    coalition: int = 0
    pattern: PatternReport | None = None

    def write(self, path: Path) -> None:
        write_whole(path, self.model_dump_json(indent=1).encode())

    @property
    def disclosed(self) -> tuple[AuditedValue, ...]:
        return tuple(v for v in self.values if v.finding in ("exact", "close", "within protection"))
