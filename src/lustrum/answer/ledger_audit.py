"""What readers could work out from all that they hold, for the agency: in the background, and by command."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lustrum.answer.ledger import AnswerHistory, Audience, Everyone, ReleaseLedger, grids_of
from lustrum.answer.snapshot import Snapshot
from lustrum.audit.held import HeldBounds, NarrowCount
from lustrum.ledger.releases import PUBLIC, ReleaseBook
from lustrum.model import Dataset, TableQuery
from lustrum.protect.abilities import abilities_of
from lustrum.runtime.log_lines import where_it_happened

log = logging.getLogger("lustrum.answer")


@dataclass(frozen=True)
class HeldAudit:
    """What follows from all that one audience holds, by bounds passed through all of its tables."""

    audience: Audience
    answers: int
    expected: float
    certain: tuple[NarrowCount, ...]
    closest: tuple[NarrowCount, ...]
    questions: Mapping[NarrowCount, tuple[int, ...]]
    """The lines of the answers from which each of them follows."""
    adds: float | None = None
    """How many small counts another table would make certain, in the mean, where one was asked about."""

    def who(self, names: Mapping[str, str]) -> str:
        """The audience in words, by the names of readers and groups that were not erased."""
        if self.audience is None:
            return "everybody"
        known = {PUBLIC: "the public", **names}
        return ", ".join(sorted(known.get(word, word[:12]) for word in self.audience))


def audit_held(
    book: ReleaseBook, snapshot: Snapshot, most: int = 20, beside: TableQuery | None = None
) -> Iterator[HeldAudit]:
    """Audit what each audience holds, by what it was shown; for the agency, in its own time.

    ``beside`` is a question of which it is said what its table would add; nothing is asked or recorded.
    """
    policy = snapshot.policy.ledger
    assert policy is not None
    history = AnswerHistory(book, snapshot)
    history.catch_up()
    channels = abilities_of(snapshot.policy.protect.spec).channels
    grids = None if beside is None else list(grids_of(beside, snapshot.dataset, None))
    together: Sequence[Audience] = [Everyone]
    if policy.audience != "everyone":
        together = [frozenset({PUBLIC}), *sorted(history.readers, key=sorted)]
    for audience in together:
        view = history.view(audience)
        adds = None if grids is None else view.holdings.expected_certain(grids)
        found = {
            one
            for channel in channels
            for one in HeldBounds(view.holdings, channel).narrow(policy.small, values=3)
        }
        order = sorted(found, key=lambda one: (one.high - one.low, one.high, one.cell))
        chosen = [one for one in order if one.certain] + [one for one in order if not one.certain][
            :most
        ]
        yield HeldAudit(
            audience,
            view.count,
            view.expected,
            tuple(one for one in chosen if one.certain),
            tuple(one for one in chosen if not one.certain),
            {one: history.lines_about(one, audience) for one in chosen},
            adds,
        )


_EVERY = 50
"""Answers after which the whole of what is held is audited again."""


class LedgerWatch:
    """Audits in the background what readers hold, and says in the log where a small count is certain.

    What it finds decides nothing: answers must not depend on when it ran.
    """

    def __init__(self, ledger: ReleaseLedger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._audited: dict[str, int] = {}
        self._busy = False

    def look(self, snapshot: Snapshot) -> None:
        """Audit a dataset if enough was answered about it since, unless an audit is under way."""
        name, last = snapshot.dataset.name, self._ledger.last_line(snapshot)
        with self._lock:
            if self._busy or last < self._audited.get(name, 0) + _EVERY:
                return
            self._busy, self._audited[name] = True, last
        threading.Thread(
            target=self._audit, args=(snapshot,), name="ledger audit", daemon=True
        ).start()

    def _audit(self, snapshot: Snapshot) -> None:
        try:
            for found in audit_held(self._ledger.book, snapshot):
                if found.certain:
                    log.error(
                        "ledger: dataset %s: %d small counts follow with certainty from what was answered; "
                        "'lustrum ledger audit' says which",
                        snapshot.dataset.name,
                        len(found.certain),
                    )
        except Exception as error:  # whatever it is, answers go on
            log.error("ledger: the audit failed: %s", where_it_happened(error))
        finally:
            with self._lock:
                self._busy = False


def described(found: NarrowCount, dataset: Dataset) -> str:
    """A population in words: who counts, and who is left out of it."""

    def words(cell: Sequence[tuple[str, int]]) -> str:
        parts = []
        for name, bits in cell:
            variable = dataset.variable(name)
            labels = [label for at, label in enumerate(variable.labels) if bits >> at & 1]
            parts.append(
                f"{variable.label}: {', '.join(labels[:4])}{' ...' if len(labels) > 4 else ''}"
            )
        return "; ".join(parts) or "everybody"

    value = f"{found.low}" if found.certain else f"{found.low} to {found.high}"
    without = "" if found.left_of is None else f", without {words(found.left_of)}"
    return f"{value}: {words(found.cell)}{without}"
