"""What an audit found, as one documented document: the terminal and the page are drawn from it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _ReportPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AuditedFile(_ReportPart):
    """A file that was audited: its digest, and where its layout came from."""

    name: str
    digest: str
    layout: Literal["given", "beside the file", "proposed"]
    notes: tuple[str, ...] = ()


class AuditedValue(_ReportPart):
    """A value that was not published as it is, and the range in which a reader knows it to be.

    An end that is not there is not bounded. ``sharp`` ends are reached by some table that fits. ``follows``
    names published cells from which a disclosed value follows. ``known_to`` names contributors who know
    the range; it is then about what others contribute, or about one contribution to a shown cell.
    """

    cell: str
    place: str
    low: float | None
    high: float | None
    sharp: bool
    finding: Literal["exact", "close", "within protection", "few values", "open"]
    follows: tuple[str, ...] = ()
    known_to: tuple[str, ...] = ()
    about: Literal["value", "contributions of others", "one contribution"] = "value"


class OpenQuestion(_ReportPart):
    """A role that nothing settles. ``role`` is its name in the layout."""

    file: str
    role: str
    text: str


class FileReport(_ReportPart):
    """The outcome of ``lustrum audit``.

    ``exit`` is 0 if everything has a role and nothing is disclosed, 3 if something is, 4 if roles are open.
    ``values`` are all findings but open ones; ``if_confirmed`` what would be disclosed if the proposed roles
    were confirmed. ``on_word`` are roles that rest on a person's word. ``contributors`` is the number of those
    who were judged beside readers; a report with any names them and is confidential.
    """

    format: Literal[1] = 1
    exit: Literal[0, 3, 4]
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

    @property
    def disclosed(self) -> tuple[AuditedValue, ...]:
        """The values that count as disclosed."""
        return tuple(v for v in self.values if v.finding in ("exact", "close", "within protection"))
