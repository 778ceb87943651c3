"""Whose people a dataset holds, and a second draw of the same people under another name.

Two protected files of the same people, each drawn by itself, tell readers of both more than one of them. The
description of a dataset therefore names its *population*. Beside the history of its releases stand the people
that they hold, as digests of record ids under a key of the data folder: ``<data>/releases/<dataset>.people``,
readable by its owner only. Before a release is made, its people are compared with those of all other datasets
of the same population in the folder. Ids of different populations are never compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.ledger.acts import left
from lustrum.model import Dataset, DatasetError, LustrumError
from lustrum.model.arrays import Ints, Words
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.policy import read_policy
from lustrum.protect.population.later import RememberedCells
from lustrum.protect.population.start import find
from lustrum.protect.population.support import Support
from lustrum.publish.bundles.history import ReleaseHistory
from lustrum.publish.bundles.memory import Memory, memory_path, read_memory
from lustrum.runtime.data_folder import BUNDLES, POLICIES, RELEASES, REPORTS
from lustrum.runtime.durable import outages, write_whole
from lustrum.tabulate import Store
from lustrum.tabulate.finest import finest_cells, record_ids
from lustrum.tabulate.remote import ConnectedEngine, connected_names, open_connected
from lustrum.tabulate.store import EmbeddedEngine

_WORDS, _PERSON = b"lustrum people 1", "person"
NO_POPULATION = (
    "The description names no population: nobody can notice a second draw of the same people under another "
    'name. Write one word, such as population = "residents", the same for all datasets of these people.'
)
FEW = 2
"""Cells with at most so many counts left are narrowed to few."""


def opened(store: Store, name: str, workers: int | None = None) -> EmbeddedEngine | ConnectedEngine:
    """The records of a dataset, in the folder or in a database."""
    if name in connected_names(store.root) and name not in store.names():
        return open_connected(store, name)
    return store.open(name, workers)


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """The people of all releases of one dataset, as ordered keyed digests; None where they have no ids."""

    dataset: str
    population: str
    secret: str
    digests: Words | None

    @classmethod
    def of(cls, store: Store, engine: EmbeddedEngine | ConnectedEngine) -> People | None:
        """The people behind an engine; None where the description names no population."""
        dataset = engine.dataset
        if dataset.population is None:
            return None
        digests = None
        if dataset.record_id is not None:
            secret = store.secret_of(engine.secret)
            key = secret.derive(f"lustrum people of {dataset.population}")
            digests = np.unique(scramble(key, record_ids(engine)))
        return cls(dataset.name, dataset.population, engine.secret, digests)

    @classmethod
    def released(cls, path: Path) -> People:
        """The people that earlier releases of a dataset hold."""
        try:
            with outages(path):
                raw = path.read_bytes()
            table = pa.ipc.open_file(pa.BufferReader(raw)).read_all()
            said = json.loads((table.schema.metadata or {})[_WORDS])
            digests = np.asarray(table.column(_PERSON)) if table.num_columns else None
            return cls(path.stem, str(said["population"]), str(said["secret"]), digests)
        except (ValueError, KeyError, TypeError, pa.ArrowException):
            raise DatasetError(
                f"{path} does not hold the people of releases, or is damaged; restore it from a backup."
            ) from None

    def record(self, data: Path) -> None:
        """Keep these people beside those of earlier releases of the dataset."""
        path = people_path(data, self.dataset)
        digests = self.digests
        if path.is_file() and digests is not None:
            before = People.released(path)
            if self.like(before) and before.digests is not None:
                digests = np.union1d(digests, before.digests)
        table = pa.table({} if digests is None else {_PERSON: pa.array(digests, pa.uint64())})
        said = {"population": self.population, "secret": self.secret}
        table = table.replace_schema_metadata({_WORDS: json.dumps(said).encode()})
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        with outages(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, out.getvalue().to_pybytes(), 0o600)

    def like(self, other: People) -> bool:
        """Whether digests of both can be compared: of one population, and made by one secret."""
        return (self.population, self.secret) == (other.population, other.secret)

    def shared(self, other: People) -> int | None:
        """How many people both hold; None where that cannot be found out."""
        if self.digests is None or other.digests is None or not self.like(other):
            return None
        return int(find(other.digests, self.digests)[1].sum())


def one_by_one(
    engine: EmbeddedEngine | ConnectedEngine, cells: FinestCells
) -> KernelEngine | EmbeddedEngine:
    """The records one by one; those of a connected dataset must still make up these cells."""
    if not isinstance(engine, ConnectedEngine):
        return engine
    read = engine.in_memory()
    require_unchanged(engine.columns.source, finest_cells(read), cells)
    return read


def require_unchanged(source: str, again: FinestCells, cells: FinestCells) -> None:
    """Refuse records that were counted twice and gave other cells."""
    if any(
        not np.array_equal(getattr(again, part), getattr(cells, part))
        for part in ("codes", "counts", "keys")
    ):
        raise DatasetError(f"{source} changed while it was read; try again.")


def people_path(data: Path, name: str) -> Path:
    return data / RELEASES / f"{name}.people"


@dataclass(frozen=True)
class SamePeople:
    """Another dataset of the population with releases, and how many people it shares; None: nobody can say.

    ``revealed`` counts what both files tell together, where the memory of the other one is there.
    """

    dataset: str
    people: int | None
    revealed: Mapping[str, int] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """Who is meant, and how many."""
        if self.people is None:
            return f"perhaps people of {self.dataset!r}, whose ids cannot be compared"
        return f"{self.people:,} people of {self.dataset!r}"


def population_of(store: Store, name: str) -> str | None:
    """The population of a dataset of which something left; None where nothing names it."""
    path = people_path(store.root, name)
    try:
        if path.is_file():
            return People.released(path).population
        return opened(store, name).dataset.population
    except LustrumError:
        return None


def require_unanswered(store: Store, dataset: Dataset | None, reason: str | None = None) -> None:
    """Refuse what tells by another method of people about whom answers stand in the book.

    Unless ``reason`` says why it may, or the policy of these answers. Without a dataset nobody knows whose
    people they are.
    """
    lines = [e.said for e in left(store.root) if e.said.get("kind") == "answer"]
    for name, said in sorted({(str(s["dataset"]), str(s.get("population", ""))) for s in lines}):
        whose = said or population_of(store, name)
        path = store.root / POLICIES / f"{name}.toml"
        if reason is None and path.is_file() and read_policy(path).same_people_because:
            continue
        same = dataset is None or name == dataset.name or dataset.population == whose is not None
        if same and not reason:
            raise DatasetError(
                f"Tables of {name!r} were answered one by one, and stand in the book of releases: readers of "
                "them and of numbers that another method made of the same people know more than of one. Go on "
                f"with the policy of these answers, or say in {'its' if reason is None else 'the new'} policy "
                "why both may be published ('same_people_because')."
            )


def same_people(store: Store, people: People) -> list[SamePeople]:
    """The other datasets of the population of which a release was made, and that may hold the same people."""
    matches = []
    for other in _released(store, people):
        shared = people.shared(other)
        if shared != 0:
            matches.append(SamePeople(other.dataset, shared))
    return matches


def _released(store: Store, people: People) -> Iterator[People]:
    """The people of all other datasets of the population with a release.

    Releases of an earlier version, or of a secret that was changed since, left no digests that can be compared;
    their datasets are read again.
    """
    kept = {path.stem: path for path in sorted((store.root / RELEASES).glob("*.people"))}
    known = {*store.names(), *connected_names(store.root)}
    for name in sorted({*kept, *known} - {people.dataset}):
        other = People.released(kept[name]) if name in kept else None
        if other is not None and (other.population != people.population or people.like(other)):
            if other.population == people.population:
                yield other
            continue
        if name in known and (other is not None or _has_release(store.root, name)):
            again = People.of(store, opened(store, name))
            if again is not None and again.population == people.population:
                yield again
        elif other is not None:
            yield other


def _has_release(data: Path, name: str) -> bool:
    return bool(ReleaseHistory.read(data, name).digests) or (data / BUNDLES / name).exists()


def require_one_draw(matches: list[SamePeople], people: People, reason: str) -> None:
    """Refuse a second draw of the same people, unless the policy says why it may be made."""
    if matches and not reason:
        raise DatasetError(
            f"Dataset {people.dataset!r} holds {' and '.join(m.sentence for m in matches)}: of the same "
            f"population ({people.population!r}) a release was made already, and a second draw of the same "
            "people tells readers of both files more than one of them. Make a later release of that dataset "
            "instead, or say in the policy why both may be published ('same_people_because')."
        )


def last_memory(data: Path, name: str) -> Memory | None:
    """The memory of the last release of a dataset, where it stands in its usual place."""
    digests = ReleaseHistory.read(data, name).digests
    paths = [memory_path(data / REPORTS / name, digest) for digest in digests[-1:]]
    paths = paths or sorted((data / REPORTS / name).glob(memory_path(Path(), "*").name))[-1:]
    return read_memory(paths[0]) if paths and paths[0].is_file() else None


def revealed(shown: FinestCells, support: Support, other: Memory) -> dict[str, int]:
    """What two files tell together of the cells by the variables of both, to readers who take the people for
    the same: how many differ, and how many are left with few counts that neither file narrows so far alone."""
    before = other.shown
    codes_of = {v.name: v.codes for v in before.dataset.variables}
    names = [v.name for v in shown.dataset.variables if codes_of.get(v.name) == v.codes]
    method = other.method
    earlier = Support(
        int(method["base"]),
        method.get("cells") == "small",
        float(method.get("empty_share", 0)) > 0,
        wide=isinstance(other.cells, RememberedCells) and other.cells.wide,
    )
    numbers = [_numbers(cells, names) for cells in (shown, before)]
    every = np.union1d(*numbers)
    sums, lows, highs = [], [], []
    for cells, own, rule in zip((shown, before), numbers, (support, earlier), strict=True):
        place = np.searchsorted(every, own)
        low, high = rule.finest(cells)
        # As many parts as the other variables have codes: where some cannot exist, readers know a little more.
        parts = prod(len(v.codes) for v in cells.dataset.variables if v.name not in names)
        unlisted = parts - np.bincount(place, minlength=every.size)
        sums.append(_added(place, cells.counts, every.size))
        lows.append(_added(place, low, every.size))
        highs.append(_added(place, high, every.size) + rule.most_unlisted * unlisted)
    left = np.minimum(*highs) - np.maximum(*lows) + 1
    alone = np.minimum(*(high - low + 1 for low, high in zip(lows, highs, strict=True)))
    return {
        "cells": int(every.size),
        "differing": int((sums[0] != sums[1]).sum()),
        "narrowed": int(((left >= 1) & (left <= FEW) & (alone > FEW)).sum()),
        "excluded": int((left < 1).sum()),
    }


def _numbers(cells: FinestCells, names: list[str]) -> Words:
    """The cell by these variables in which each finest cell lies."""
    numbers = np.zeros(len(cells), dtype=np.uint64)
    columns: Any = cells.columns()
    for name in names:
        size = len(cells.dataset.variable(name).codes)
        numbers = numbers * np.uint64(size) + columns[name].astype(np.uint64)
    return numbers


def _added(place: Ints, values: Ints, size: int) -> Ints:
    return np.bincount(place, weights=values, minlength=size).astype(np.int64)
