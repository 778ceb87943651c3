"""What readers hold of a dataset, for its page: lines of the book, what follows from them, and what is left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lustrum.agency.state import DatasetState, question_of
from lustrum.answer import TableService
from lustrum.answer.ledger import ANSWER
from lustrum.answer.ledger_audit import HeldAudit, audit_held, described
from lustrum.answer.readers import Reader, reading_as
from lustrum.audit.held import NarrowCount
from lustrum.ledger.releases import PUBLIC, Recorded, ReleaseBook
from lustrum.model import Dataset, InputError

_MOST = 100  # lines that a page shows


@dataclass(frozen=True)
class LimitBar:
    """A bar of the limit in hundredths of its width: what is used up, what a table adds, where the limit is."""

    used: float
    adds: float
    limit: float

    @classmethod
    def of(cls, used: float, adds: float, limit: float) -> LimitBar:
        """The bar; where the limit would be passed, all of it is drawn and the limit stands inside.

        >>> LimitBar.of(0.05, 0.025, 0.1)
        LimitBar(used=50.0, adds=25.0, limit=100.0)
        >>> LimitBar.of(0.1, 0.1, 0.1)
        LimitBar(used=50.0, adds=50.0, limit=50.0)
        """
        whole = max(limit, used + adds)
        return cls(*(round(100 * part / whole, 2) for part in (used, adds, limit)))


@dataclass(frozen=True)
class FoundCount:
    """A population known within few values, in words, with the questions that led there."""

    words: str
    certain: bool
    lines: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class AudienceAnswers:
    """What those who count together hold."""

    name: str
    answers: int
    used: float
    adds: float | None
    limit: float
    bar: LimitBar
    cells: tuple[FoundCount, ...]
    differences: tuple[FoundCount, ...]

    @property
    def refused(self) -> bool:
        """Whether the table that was asked about would be refused."""
        return bool(self.adds) and self.used + (self.adds or 0) > self.limit


@dataclass(frozen=True)
class RecordedLine:
    """One line of the book in words."""

    number: int
    at: str
    reader: str
    verdict: str
    question: str
    expected: float


@dataclass(frozen=True)
class HeldAnswers:
    """All that the page shows."""

    lines: tuple[RecordedLine, ...]
    all: int
    audiences: tuple[AudienceAnswers, ...]


def held_answers(
    data: Path, service: TableService, state: DatasetState, question: str
) -> HeldAnswers:
    """What was answered about a dataset; a question is looked at as a reader's would be, and not asked."""
    with reading_as(Reader(role="staff")):
        snapshot = service.snapshot(state.name)
    ledger = snapshot.policy.ledger
    if ledger is None or not snapshot.counted_together:
        raise InputError(
            f"Answers about {state.name!r} are not counted together: its policy has no [ledger]."
        )
    beside = question_of(question, snapshot.dataset) if question else None
    if beside is not None and not beside.by:
        raise InputError("Name a variable, such as 'age, sex where region=1'.")
    if not ReleaseBook.exists(data):  # looking begins none
        return HeldAnswers((), 0, ())
    book = ReleaseBook(data)
    try:
        names = {PUBLIC: "the public", **book.names()}
        entries = {
            entry.number: entry
            for entry in book.entries(dataset=state.name)
            if entry.said.get("kind") == ANSWER
        }
        audiences = tuple(
            _audience(found, names, entries, snapshot.dataset, ledger.limit)
            for found in audit_held(book, snapshot, beside=beside)
        )
    finally:
        book.close()
    newest = [entries[number] for number in sorted(entries, reverse=True)[:_MOST]]
    return HeldAnswers(tuple(_line(one, names) for one in newest), len(entries), audiences)


def _audience(
    found: HeldAudit,
    names: Mapping[str, str],
    entries: Mapping[int, Recorded],
    dataset: Dataset,
    limit: float,
) -> AudienceAnswers:
    def told(counts: Iterable[NarrowCount]) -> tuple[FoundCount, ...]:
        return tuple(
            FoundCount(
                described(one, dataset),
                one.certain,
                tuple((n, _words(entries[n].said)) for n in found.questions[one] if n in entries),
            )
            for one in counts
        )

    every = (*found.certain, *found.closest)
    return AudienceAnswers(
        found.who(names),
        found.answers,
        found.expected,
        found.adds,
        limit,
        LimitBar.of(found.expected, found.adds or 0.0, limit),
        told(one for one in every if one.left_of is None),
        told(one for one in every if one.left_of is not None),
    )


def _line(entry: Recorded, names: Mapping[str, str]) -> RecordedLine:
    said = entry.said
    return RecordedLine(
        entry.number,
        str(said["at"])[:19].replace("T", " "),
        names.get(entry.audience, entry.audience[:12]),
        {"answer": "answered", "refusal": "refused"}.get(str(said["verdict"]), "in part"),
        _words(said),
        float(said["expected"]),
    )


def _words(said: Mapping[str, Any]) -> str:
    """A question as it is written on these pages."""
    raw = json.loads(str(said["question"]))
    axes = [one if isinstance(one, dict) else {"variable": one} for one in raw.get("by", ())]
    by = ", ".join(
        one["variable"] + (f":{one['level']}" if one.get("level") else "") for one in axes
    )
    where = " and ".join(
        f"{name}={','.join(map(str, codes if isinstance(codes, list) else [codes]))}"
        for name, codes in raw.get("where", {}).items()
    )
    shown = [str(one) for one in raw.get("statistics", ())]
    return by + (f" where {where}" if where else "") + (f" ({', '.join(shown)})" if shown else "")
