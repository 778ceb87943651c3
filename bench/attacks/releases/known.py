"""Readers who know changes: their own records that join or leave cells, or all changes of all cells.

Three attacks on published numbers. *Insertions*: somebody adds a record of their own to cells that show 0, in
one release after the other. *Claims*: somebody who joined or left a cell, alone, sees its number move and says
what the cell held before. *All changes*: a reader who knows how much every count changed in every release says
what cells held at first. One reader follows the rule that a number stays while it is next to the count. Another
one is taught by all other cells that showed the same at the same changes: no reader does better with that view.
Both are judged by the truth, beside the same reader of the number before alone. Where that rule is kept, which
is the control, the readers must be right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from attacks.releases.readers import Named
from attacks.releases.series import KEY, Array, Joined, People, Release, released
from lustrum.model import Dataset
from lustrum.model.finest import possible_cells
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation

INSERTIONS = 3
SURE = 0.8
FEWEST = 10


class Dependent(People):
    """People of a few types: most of what they are follows from the type, the rest is chance."""

    def __init__(
        self, persons: int, seed: int, types: int, own: float, drawn: int | None = None
    ) -> None:
        sizes = (12, 8, 6, 5, 4, 4)
        self.dataset = Dataset.from_mapping(
            {
                "dataset": {"name": "types"},
                "variables": [
                    {"name": f"v{i}", "codes": [f"{i}.{c}" for c in range(n)]}
                    for i, n in enumerate(sizes)
                ],
            }
        )
        self.rng = np.random.default_rng(seed)
        everybody = persons + persons // 2
        # Files of other people of the same types share the seed of these.
        kinds = self.rng if drawn is None else np.random.default_rng(drawn)
        of_type = np.stack([kinds.integers(0, n, types) for n in sizes])
        chance = np.stack([self.rng.integers(0, n, everybody) for n in sizes])
        kind = np.minimum(self.rng.geometric(3 / types, everybody) - 1, types - 1)
        self.codes = np.where(self.rng.random(chance.shape) < own, chance, of_type[:, kind])
        self.keys = self.rng.integers(1, 2**63, everybody).astype(np.uint64)
        self.inside = np.arange(everybody) < persons


def worlds(persons: int, seed: int) -> dict[str, People]:
    """The census, and two files with strong dependence."""
    return {
        "census": People(persons, seed),
        "many types": Dependent(persons, seed, 400, 0.1),
        "few types": Dependent(persons, seed, 40, 0.25),
    }


def enter(world: People, codes: Array) -> None:
    """One more record in each of these cells."""
    new = world.rng.integers(1, 2**63, codes.shape[1]).astype(np.uint64)
    world.codes = np.concatenate([world.codes, codes], axis=1)
    world.keys = np.concatenate([world.keys, new])
    world.inside = np.concatenate([world.inside, np.ones(new.size, dtype=bool)])


class Publisher:
    """Publishes one release after the other, by the method or by the rule that numbers stay (the control)."""

    def __init__(self, method: ProtectedPopulation | None, key: bytes = KEY) -> None:
        self.method, self.key = method, key
        self.made: PopulationResult | None = None
        self.last: Release | None = None
        self.rng = np.random.default_rng(int.from_bytes(key[:4], "big"))

    def publish(self, world: People) -> Release:
        """The next release, beside the truth."""
        cells = world.cells()
        if self.method is None:
            self.last = self._kept(released(cells, cells))
        else:
            memory = None if self.made is None else self.made.memory
            self.made = self.method.protect(cells, self.key, previous=memory, new_series=True)
            self.last = released(self.made.cells, cells)
        return self.last

    def _kept(self, truth: Release, base: int = 3) -> Release:
        """Numbers next to the count stay, others move to the nearest that is next to it."""
        both = Joined.of([self.last or truth, truth])
        true, before = both.true[1], both.shown[0]
        low = true // base * base
        drawn = low + base * (self.rng.random(true.size) * base < true % base)
        stays = np.clip(before, low, low + base * ((true % base > 0) | (true == 0)))
        return Release(both.numbers, drawn if self.last is None else stays, true, both.keys[1])


@dataclass(frozen=True)
class Taught:
    """What a taught reader names right, and cells of which it is surer than ``SURE``."""

    named: Named
    sure: int

    @classmethod
    def of(
        cls, views: Sequence[Hashable], counts: Sequence[int], judged: Array | None = None
    ) -> Taught:
        """Names the most frequent count of all other cells with the same view; some of the cells are judged."""
        seen: dict[Hashable, dict[int, int]] = {}
        for view, count in zip(views, counts, strict=True):
            row = seen.setdefault(view, {})
            row[count] = row.get(count, 0) + 1
        right = sure = 0
        cells = np.arange(len(counts)) if judged is None else np.flatnonzero(judged)
        for cell in cells.tolist():
            row = dict(seen[views[cell]])
            row[counts[cell]] -= 1
            total = sum(row.values())
            best = max(sorted(row), key=lambda n: row[n])
            right += total > 0 and best == counts[cell]
            sure += total >= FEWEST and row[best] > SURE * total
        return cls(Named(cells.size, right), sure)


@dataclass(frozen=True)
class Insertions:
    """Counts of cells that showed 0, and what they showed after each insertion."""

    counts: list[int]
    seen: list[tuple[int, ...]]

    @property
    def by_rule(self) -> Named:
        """Says that a number which moved after n records of the reader's own was forced: base - n others."""
        said = [next((3 - n for n, s in enumerate(seen, 1) if s > 0), 0) for seen in self.seen]
        return Named(len(said), sum(a == b for a, b in zip(said, self.counts, strict=True)))

    @property
    def taught(self) -> Taught:
        """What all other cells teach."""
        return Taught.of(self.seen, self.counts)


def insertions(world: People, publisher: Publisher, cells: int) -> Insertions:
    """Add records to so many cells of each count, 0 to 2, that first show 0: one to each per release."""
    first = publisher.publish(world)
    sizes = [len(v.codes) for v in world.dataset.variables]
    rng = world.rng
    inside = world.codes[:, world.inside]
    near = inside[:, rng.integers(0, inside.shape[1], 40 * cells)].copy()
    which = rng.integers(0, len(sizes), near.shape[1])
    near[which, np.arange(which.size)] = rng.integers(0, np.array(sizes)[which])
    near = near[:, possible_cells(world.dataset, near)]
    empty = np.setdiff1d(np.ravel_multi_index(tuple(near), sizes).astype(np.uint64), first.numbers)
    chosen, counts = [], []
    for count in range(3):
        here = first.numbers[(first.true == count) & (first.shown == 0)] if count else empty
        some = rng.permutation(here)[:cells]
        chosen.append(some)
        counts += [count] * some.size
    cell_numbers = np.concatenate(chosen)
    codes = np.stack(np.unravel_index(cell_numbers.astype(np.int64), sizes))
    seen: list[Array] = []
    for _ in range(INSERTIONS):
        enter(world, codes)
        seen.append(shown_by(publisher.publish(world), cell_numbers))
    return Insertions(counts, [tuple(row) for row in np.stack(seen).T.tolist()])


def shown_by(release: Release, numbers: Array) -> Array:
    """What cells show; 0 where they are not listed."""
    place = np.minimum(np.searchsorted(release.numbers, numbers), release.numbers.size - 1)
    return np.where(release.numbers[place] == numbers, release.shown[place], 0)


CLAIMS = {(1, 0, 3): 2, (1, 3, 6): 5, (-1, 6, 3): 4, (-1, 9, 6): 7}
"""By known change, number before and number after: what the rule says that the cell held before."""


def claims(joined: Joined) -> dict[str, tuple[Named, Taught, Taught]]:
    """What those who joined or left alone and saw their cell move say of it.

    By the rule, taught by all cells that went between the same numbers, and by the number before alone.
    """
    change = np.diff(joined.true, axis=0)
    found = {}
    for words, way in (("joined", 1), ("left", -1)):
        at = np.nonzero(change == way)
        before, after, held = joined.shown[:-1][at], joined.shown[1:][at], joined.true[:-1][at]
        moved = before != after
        pairs = list(zip(before.tolist(), after.tolist(), strict=True))
        told = np.array([CLAIMS.get((way, *pair), -1) for pair in pairs])
        found[words] = (
            Named(int((told >= 0).sum()), int((told == held).sum())),
            Taught.of(pairs, held.tolist(), moved),
            Taught.of(before.tolist(), held.tolist(), moved),
        )
    return found


def all_changes(joined: Joined) -> tuple[Taught, Taught]:
    """What a reader of all changes names of first counts below the base, and the same from first numbers alone.

    The view is the first number, and the changes up to the first release in which it moved, and how it moved.
    """
    since = joined.true - joined.true[0]
    moved = joined.shown != joined.shown[0]
    ever = (np.diff(joined.true, axis=0) != 0).any(axis=0) & moved.any(axis=0)
    ever &= joined.true[0] < 3
    place = np.argmax(moved, axis=0)
    columns = np.flatnonzero(ever)
    views = [
        (int(joined.shown[0, c]), int(since[place[c], c]), int(joined.shown[place[c], c]))
        for c in columns
    ]
    counts = joined.true[0, columns].tolist()
    return Taught.of(views, counts), Taught.of([view[0] for view in views], counts)


def changing(world: People, publisher: Publisher, releases: int, share: float) -> Joined:
    """So many releases, with this share of records changed between them: half joined, half left."""
    some = int(share * world.inside.sum() / 2)
    made = []
    for number in range(releases):
        if number:
            world.change(some, some, 0)
        made.append(publisher.publish(world))
    return Joined.of(made)


def pooled(some: Iterable[Insertions]) -> Insertions:
    """Insertions under several keys together."""
    counts: list[int] = []
    seen: list[tuple[int, ...]] = []
    for one in some:
        counts, seen = counts + one.counts, seen + one.seen
    return Insertions(counts, seen)
