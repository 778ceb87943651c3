"""Series of releases of invented people: what is published each time, and the truth to judge attacks by.

``how`` says who makes the second and later releases:

- ``"method"``: the protected population continues from its own memory;
- ``"changed only"``: cells with other records draw a new number and all others keep theirs, as it was once
  done. Every number that differs is then a cell that changed: the attacks must find them;
- ``"anew"``: every release is drawn as if there had been none before, as it happened where records had no
  identifiers. The attacks must find who is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lustrum.demo.census import people
from lustrum.demo.draws import description_path
from lustrum.model import Dataset
from lustrum.model.finest import FinestCells
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.tabulate import FrameEngine, Secret, read_description

Array = np.ndarray[Any, Any]
How = Literal["method", "changed only", "anew"]
LEFT_OUT = ("occupation",)
KEY = b"the key of an agency of 32 bytes"


@dataclass(frozen=True)
class Release:
    """One release: shown and true counts of the same cells, by their numbers, and the sums of keys."""

    numbers: Array
    shown: Array
    true: Array
    keys: Array


@dataclass(frozen=True)
class Joined:
    """Releases side by side, (releases, cells): a cell that a release does not list shows 0."""

    numbers: Array
    shown: Array
    true: Array
    keys: Array

    @classmethod
    def of(cls, releases: list[Release]) -> Joined:
        """All cells that any of the releases lists, or that hold anybody at any time."""
        numbers = np.unique(np.concatenate([r.numbers for r in releases]))
        rows = [np.zeros((len(releases), numbers.size), dtype=np.int64) for _ in range(2)]
        keys = np.zeros((len(releases), numbers.size), dtype=np.uint64)
        for t, release in enumerate(releases):
            at = np.searchsorted(numbers, release.numbers)
            rows[0][t, at], rows[1][t, at], keys[t, at] = release.shown, release.true, release.keys
        return cls(numbers, rows[0], rows[1], keys)

    @property
    def changed(self) -> Array:
        """Whether the records of a cell changed between a release and the next."""
        return np.asarray(self.keys[1:] != self.keys[:-1])

    @property
    def moved(self) -> Array:
        """Whether a cell shows another number than in the release before."""
        return np.asarray(self.shown[1:] != self.shown[:-1])

    def at(self, cells: Array) -> Joined:
        """Some of the cells."""
        rows = (a[:, cells] for a in (self.shown, self.true, self.keys))
        return Joined(self.numbers[cells], *rows)

    def first(self, releases: int) -> Joined:
        """The first few releases."""
        return Joined(*(self.numbers, *(a[:releases] for a in (self.shown, self.true, self.keys))))


class People:
    """Invented people: their codes, a key for everybody, and who is in the file at the moment."""

    def __init__(self, persons: int, seed: int, left_out: tuple[str, ...] = LEFT_OUT) -> None:
        whole = read_description(description_path("demo"))
        source = {
            **whole.source,
            "variables": [v for v in whole.source["variables"] if v["name"] not in left_out],
            "structural_zeros": [
                z
                for z in whole.source.get("structural_zeros", ())
                if not set(z["where"]) & set(left_out)
            ],
            "maps": [m for m in whole.source.get("maps", ()) if m["variable"] not in left_out],
        }
        self.dataset = Dataset.from_mapping(source)
        self.rng = np.random.default_rng(seed)
        drawn = people(persons + persons // 2, seed)
        engine = FrameEngine(drawn, self.dataset, Secret(b"people" * 8))
        chunks = [[c.codes[v.name] for v in self.dataset.variables] for c in engine.chunks]
        self.codes = np.concatenate([np.stack(c) for c in chunks], axis=1).astype(np.int64)
        self.keys = self.rng.integers(1, 2**63, self.codes.shape[1]).astype(np.uint64)
        self.inside = np.arange(self.codes.shape[1]) < persons

    def change(self, added: int, removed: int, moved: int) -> None:
        """Add people from outside, remove others, and give some the attributes of somebody outside."""
        there, outside = np.flatnonzero(self.inside), np.flatnonzero(~self.inside)
        leaving = self.rng.permutation(there)
        self.inside[leaving[:removed]] = False
        arriving = self.rng.permutation(outside)
        self.inside[arriving[:added]] = True
        movers = leaving[removed : removed + moved]
        self.codes[:, movers] = self.codes[:, arriving[added : added + moved]]

    def cells(self, keys: Array | None = None) -> FinestCells:
        """The occupied cells of those inside."""
        codes = self.codes[:, self.inside]
        own = (self.keys if keys is None else keys)[self.inside]
        sizes = [len(v.codes) for v in self.dataset.variables]
        numbers = np.ravel_multi_index(tuple(codes), sizes)
        found, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        sums = np.zeros(found.size, dtype=np.uint64)
        np.add.at(sums, place.ravel(), own)
        return FinestCells(self.dataset, np.stack(np.unravel_index(found, sizes)), counts, sums)


def numbers_of(cells: FinestCells) -> Array:
    """Every cell's place among all combinations of codes."""
    numbers = np.zeros(len(cells), dtype=np.uint64)
    for variable, row in zip(cells.dataset.variables, cells.codes, strict=True):
        numbers = numbers * np.uint64(len(variable.codes)) + row.astype(np.uint64)
    return numbers


def released(shown: FinestCells, truth: FinestCells) -> Release:
    """What a release publishes, beside the truth."""
    one, two = numbers_of(shown), numbers_of(truth)
    numbers = np.union1d(one, two)
    columns = [np.zeros(numbers.size, dtype=np.int64) for _ in range(2)]
    keys = np.zeros(numbers.size, dtype=np.uint64)
    columns[0][np.searchsorted(numbers, one)] = shown.counts
    at = np.searchsorted(numbers, two)
    columns[1][at] = truth.counts
    keys[at] = truth.keys if truth.keys is not None else 0
    return Release(numbers, columns[0], columns[1], keys)


def series(
    world: People,
    method: ProtectedPopulation,
    releases: int,
    changes: tuple[int, int, int],
    how: How,
    key: bytes = KEY,
    first: PopulationResult | None = None,
) -> Iterator[Release]:
    """So many releases, with (added, removed, moved) people between one and the next.

    ``first`` is the first one, if it is at hand.
    """
    rng = np.random.default_rng(int.from_bytes(key[:4], "big"))
    last: Release | None = None
    memory = None
    for number in range(releases):
        if number:
            world.change(*changes)
        cells = world.cells()
        if how == "anew":
            # Keys that follow row numbers are other keys whenever a row is removed.
            fresh = rng.integers(1, 2**63, world.keys.size).astype(np.uint64)
            made = method.protect(world.cells(fresh), key)
            last = released(made.cells, cells)
        elif how == "changed only" and last is not None:
            last = _changed_only(last, cells, method.base, rng)
        else:
            known = first if number == 0 else None
            made = known or method.protect(cells, key, previous=memory)
            memory = made.memory
            last = released(made.cells, cells)
        yield last


def _changed_only(
    last: Release, cells: FinestCells, base: int, rng: np.random.Generator
) -> Release:
    """The numbers of cells with other records are rounded at random; all others stay."""
    truth = released(cells, cells)
    both = Joined.of([last, truth])
    true, before = both.true[1], both.shown[0]
    up = rng.random(true.size) * base < true % base
    drawn = true - true % base + base * up
    shown = np.where(both.changed[0], drawn, before)
    return Release(both.numbers, shown, true, both.keys[1])
