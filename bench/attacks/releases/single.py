"""One person added, removed or moved between releases: who do readers of 2, 5 and 12 releases name?

Between one release and the next a single person changes, so that a series of k releases has k - 1 changes. The
reader knows what kind of change it is, the method and every release, and says at each step:

- every cell that differs has changed, or one of these, guessed;
- the cell for which tables speak most: the numbers of all tables of up to three variables in the releases from
  the step on, in the mean, against those before it, over all cells or over those that differ;
- a cell that moved once, and never again, has changed at some time;
- a cell that moved is or was occupied.

The truth judges. Where only changed cells move all of it must be right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from attacks.releases.readers import (
    Named,
    by_tables,
    differing,
    ever_changed,
    jumped,
    moved_occupied,
)
from attacks.releases.series import Array, How, Joined, People, series
from lustrum.protect.population.method import ProtectedPopulation

RELEASES = (2, 5, 12)
KINDS = {"added": (1, 0, 0), "removed": (0, 1, 0), "moved": (0, 0, 1)}
SAID = (
    "every cell that differs has changed",
    "moved by two steps, so changed",
    "moved once, changed at some time",
    "moved, so is or was occupied",
    "the cell for which tables speak most",
    "the same among cells that differ",
)
DIFFERS, JUMPED, _, OCCUPIED, TABLES, AMONG = SAID


@dataclass
class SingleReport:
    """What readers of so many releases said over all trials of one kind of change, and where it was right."""

    kind: str
    releases: int
    trials: int = 0
    exposed: int = 0
    chance: float = 0.0
    worst: float = 0.0
    ranks: list[float] = field(default_factory=list)
    said: dict[str, Named] = field(default_factory=lambda: dict.fromkeys(SAID, Named(0, 0)))

    def add(self, words: str, found: Named) -> None:
        """More of what was said."""
        known = self.said[words]
        self.said[words] = Named(known.cells + found.cells, known.right + found.right)

    @classmethod
    def of(cls, reports: Sequence[SingleReport]) -> SingleReport:
        """All kinds of change together, for the same number of releases."""
        whole = cls("any", reports[0].releases)
        for one in reports:
            whole.trials += one.trials
            whole.exposed += one.exposed
            whole.chance += one.chance
            whole.worst = max(whole.worst, one.worst)
            whole.ranks += one.ranks
            for words, found in one.said.items():
                whole.add(words, found)
        return whole

    @property
    def steps(self) -> int:
        """Changes of single people in all trials."""
        return self.trials * (self.releases - 1)

    @property
    def succeeds(self) -> bool:
        """Whether everybody who is named is named rightly, as it must be where only changed cells move."""
        named = (self.said[DIFFERS], self.said[OCCUPIED])
        return self.exposed > 0 and all(one.cells > 0 and one.odds > 0.95 for one in named)

    def holds(self, odds: float, empty_share: float) -> bool:
        """Whether nobody is named with more than the odds, and no movement proves an occupied cell."""
        hidden = self.said[OCCUPIED]
        # Three standard errors of a share near the limit.
        least = empty_share - 3 * (empty_share / max(hidden.cells, 1)) ** 0.5
        named = max(self.said[words].odds for words in (DIFFERS, TABLES, AMONG))
        return (
            max(named, self.worst) <= odds
            and not self.said[JUMPED].cells
            and hidden.odds <= 1 - least
            and hidden.right < hidden.cells
        )

    def row(self) -> dict[str, str | int | float]:
        """What a bench records."""
        return {
            "change": self.kind,
            "releases": self.releases,
            "trials": self.trials,
            "changes": self.steps,
            "exposed": self.exposed,
            "guess of one that differs (%)": 100 * self.chance / max(self.steps, 1),
            "worst trial (%)": 100 * self.worst,
            **{words: str(self.said[words]) for words in SAID},
            "mean rank by tables (%)": float(100 * np.mean(self.ranks)),
            "best rank (%)": 100 * min(self.ranks),
        }


def add_series(report: SingleReport, joined: Joined, sizes: tuple[int, ...]) -> None:
    """Judge what readers say of one series with a single change between any two releases."""
    moved, changed = joined.moved, joined.changed
    steps = moved.shape[0]
    report.trials += 1
    report.add(SAID[0], differing(joined))
    report.add(SAID[1], jumped(joined, int(joined.shown[joined.shown > 0].min())))
    report.add(SAID[2], ever_changed(joined).get(1, Named(0, 0)))
    report.add(SAID[3], moved_occupied(joined))
    shown = joined.shown.astype(np.float64)
    change = np.stack([shown[t + 1 :].mean(0) - shown[: t + 1].mean(0) for t in range(steps)])
    scores = by_tables(joined.numbers, change, sizes)
    hits, named = 0, 0
    for t in range(steps):
        hit, differ = int((moved[t] & changed[t]).sum()), int(moved[t].sum())
        hits, named = hits + hit, named + differ
        report.exposed += hit > 0 and differ <= 2
        report.chance += hit / max(differ, 1)
        sign = np.sign(joined.true[t + 1] - joined.true[t])
        for way in np.unique(sign[changed[t] & (sign != 0)]):
            own = scores[t] * way
            wanted = changed[t] & (sign == way)
            report.add(TABLES, _top(own, np.ones(own.size, dtype=bool), wanted))
            report.add(AMONG, _top(own, moved[t], wanted))
            report.ranks += [float((own > own[cell]).mean()) for cell in np.flatnonzero(wanted)]
    report.worst = max(report.worst, hits / max(named, 1))


def _top(score: Array, among: Array, wanted: Array) -> Named:
    """Names the cell with the highest score among some; the first of several."""
    if not among.any():
        return Named(0, 0)
    best = int(np.flatnonzero(among)[np.argmax(score[among])])
    return Named(1, int(wanted[best]))


def lengths(trials: int) -> Iterator[int]:
    """How many releases each trial has: one in fifteen has 12, as many have 5, all others 2."""
    few = max(1, trials // 15)
    for trial in range(trials):
        yield RELEASES[2] if trial < few else RELEASES[1] if trial < 2 * few else RELEASES[0]


def attack_single(
    persons: int, trials: int, method: ProtectedPopulation
) -> dict[How, list[SingleReport]]:
    """So many trials of every kind with the method, and where only changed cells move.

    A series of twelve releases is also read after five and after two. The first release of a trial is the same
    for all kinds of change and for the control.
    """
    hows: tuple[How, ...] = ("changed only", "method")
    found = {how: [SingleReport(k, n) for k in KINDS for n in RELEASES] for how in hows}
    for trial, length in enumerate(lengths(trials)):
        key = hashlib.sha256(b"one person, trial %d" % trial).digest()
        first = method.protect(People(persons, 3000 + trial).cells(), key)
        for how in hows:
            for kind, changes in KINDS.items():
                world = People(persons, 3000 + trial)
                made = list(series(world, method, length, changes, how, key, first))
                sizes = tuple(len(v.codes) for v in world.dataset.variables)
                whole = Joined.of(made)
                for report in found[how]:
                    if report.kind == kind and report.releases <= length:
                        add_series(report, whole.first(report.releases), sizes)
    return found
