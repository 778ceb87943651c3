"""Asking a ledger in this process as one reader or several, and what all attacks make of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attacks.asker import Answer, Asker
from attacks.held_tables import Claims, HeldTables, inhabitants, town
from lustrum.answer import Snapshot
from lustrum.answer.ledger import ReleaseLedger
from lustrum.answer.readers import EVERYBODY, Reader
from lustrum.model import Dataset, Decision, TableQuery
from lustrum.model.arrays import Ints
from lustrum.policy import Policy
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy
from lustrum.public.bundle.files import read_bundle
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.publish.bundles.make import make_bundle
from lustrum.publish.records import EngineNumbers, ProtectedInput
from lustrum.tabulate import FrameSource, Secret, Store, ingest

__all__ = [
    "Attacked",
    "LedgerAsker",
    "MarkedNumbers",
    "attacked_town",
    "by_two_methods",
    "policy_of",
]


@dataclass(frozen=True)
class MarkedNumbers(EngineNumbers):
    """Numbers of an engine under a mark that does not change."""

    @property
    def mark(self) -> str:
        """The mark."""
        return "bench"


@dataclass
class LedgerAsker(Asker):
    """Asks a ledger in this process as one of several readers, in turn."""

    snapshot: Snapshot
    ledger: ReleaseLedger | None
    readers: Sequence[Reader] = (EVERYBODY,)
    asked: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    _answers: dict[TableQuery, Answer | None] = field(default_factory=dict)

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """The answer, or nothing where the ledger or the rules refuse."""
        query = TableQuery.from_mapping({"dataset": self.snapshot.dataset.name, **asked})
        if query not in self._answers:
            self._answers[query] = _answer(self.decided(query))
        return self._answers[query]

    def decided(self, query: TableQuery) -> Decision:
        """The decision for the reader whose turn it is."""
        reader = self.readers[self.asked % len(self.readers)]
        self.asked += 1
        if self.ledger is None:
            decision = self.snapshot.answer(query)
        else:
            audience = self.ledger.audience_of(reader)
            group = self.ledger.group_of(reader, self.snapshot)
            decision = self.ledger.decided(
                query, self.snapshot, audience, lambda: self.snapshot.answer(query), group=group
            )
        if not decision.released:
            why = "ledger" if decision.reasons[0].rule == "ledger" else "rules"
            self.refused[why] = self.refused.get(why, 0) + 1
        return decision


def _answer(decision: Decision) -> Answer | None:
    release = decision.release
    if release is None or release.low is None or release.high is None:
        return None
    shown = np.where(release.shown, release.published, np.nan)
    low = np.where(release.shown, release.low, 0).astype(float)
    high = np.where(release.shown, release.high, np.inf)
    codes = tuple(axis.codes for axis in release.axes)
    return Answer(tuple(a.name for a in release.axes), codes, shown, low, high, {})


def policy_of(
    name: str, dataset: str | Dataset = "demo", *, rules: bool = True, **ledger: object
) -> Policy:
    """A preset with another ledger; without ``rules`` about numbers, so that nothing else protects."""
    policy = parse_policy(preset(name, dataset).encode(), "the preset")
    assert policy.ledger is not None
    update: dict[str, object] = {"ledger": policy.ledger.model_copy(update=ledger)}
    if not rules:
        off = {"min_population": 0, "min_mean_cell_size": 0.0, "max_small_share": 1.0}
        update["rules"] = policy.rules.model_copy(update=off)
        update["risk"] = policy.risk.model_copy(update={"limit": 1.0})
    return policy.model_copy(update=update)


def by_two_methods(root: Path, name: str, persons: int, key: int) -> Ints:
    """Of each cell of a table the true count, what a preset shows of it, and what a strict bundle shows."""
    store, secret = Store(root), Secret(bytes([key]) * 32)
    ingest(FrameSource(inhabitants(persons, key)), town(), store, secret=secret)
    engine = store.open("town")
    path, policy = root / "strict.toml", policy_of(name, town(), rules=False)
    path.write_text(preset("strict", town()), encoding="utf-8")
    make_bundle(store, "town", path, root / "strict")
    numbers = BundleNumbers(read_bundle(root / "strict"))
    query = TableQuery.from_mapping({"dataset": "town", "by": ["age", "area", "state"]})
    source = ProtectedInput(engine, secret=secret)
    found = [engine.tabulate(query).values]
    for one in (
        Snapshot(MarkedNumbers(engine, policy, source), policy),
        Snapshot(numbers, numbers.bundle.policy),
    ):
        release = one.answer(query).release
        assert release is not None
        found.append(release.numbers)
    return np.array([numbers.ravel() for numbers in found])


@dataclass(frozen=True)
class Attacked:
    """What an attack on the small town found, and what stood in its way."""

    claims: Claims
    asked: int
    refused: dict[str, int]
    charged: float
    """How many small counts the ledger expected to become certain."""
    behind: dict[int, int]
    """How often each question led to a certain count."""


def attacked_town(
    root: Path,
    name: str,
    persons: int,
    key: int,
    asked: Sequence[dict[str, Any]],
    ledger: dict[str, object] | None,
    *,
    readers: Sequence[Reader] = (EVERYBODY,),
    rules: bool = True,
) -> Attacked:
    """Ask a small town under a preset, and attack with all that was answered; None is no ledger."""
    store, secret = Store(root), Secret(bytes([key]) * 32)
    ingest(FrameSource(inhabitants(persons, key)), town(), store, secret=secret)
    engine = store.open("town")
    policy = policy_of(name, town(), rules=rules, **(ledger or {}))
    source = ProtectedInput(engine, secret=secret)
    book = None if ledger is None else ReleaseLedger(root / "book")
    asker = LedgerAsker(Snapshot(MarkedNumbers(engine, policy, source), policy), book, readers)
    # Rounding to 3 has a mean square error of 4/3 between multiples of 3; the cell key states its own.
    held = HeldTables(town(), np.zeros(0), getattr(policy.protect.spec, "variance", 4 / 3))
    names = [v.name for v in engine.dataset.variables]
    every = engine.tabulate(TableQuery.from_mapping({"dataset": "town", "by": names}))
    held.counts = every.values[tuple(held.atoms)].astype(float)
    held.gather(asker, asked)
    claims = held.claims()
    charged = 0.0 if book is None else sum(float(e.said["expected"]) for e in book.book.entries())
    if book is not None:
        book.close()
    return Attacked(claims, asker.asked, asker.refused, charged, held.behind)
