"""Small registers with owners, parts, periods and losses, for the tests of protected magnitudes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lustrum.model import Dataset
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.protect.magnitudes.carriers import Carried, KeptPlaces, carried_by
from lustrum.protect.magnitudes.method import MagnitudeResult, ProtectedMagnitudes
from lustrum.protect.magnitudes.units import families_of, units_of
from lustrum.protect.population.search.layout import TablePlan
from lustrum.protect.population.search.plan import plan_tables
from lustrum.protect.population.start import cell_numbers
from lustrum.sensitivity import Background
from lustrum.sensitivity.rule import NOTHING

KEY = b"a key of the agency of 32 bytes."
SPEC = ProtectedMagnitudes(p=10, sweeps=3, max_variables=2)
HALVES = [{"name": "half", "groups": [{"code": "h", "members": ["a0", "a1"]}]}]


def described(*measures: dict[str, Any]) -> Dataset:
    return Dataset.from_mapping(
        {
            "dataset": {"name": "firms", "record_id": "id", "identifiers": ["owner"]},
            "variables": [
                {
                    "name": "activity",
                    "codes": ["a0", "a1", "a2", "a3"],
                    "hierarchies": [{"name": "broad", "levels": HALVES}],
                },
                {"name": "region", "codes": ["r0", "r1", "r2"]},
                {"name": "form", "codes": ["f0", "f1"]},
            ],
            "measures": list(measures),
        }
    )


PLAIN = described(
    {"name": "turnover", "holding": "owner", "parts": ["home", "abroad"]},
    {"name": "home", "holding": "owner"},
    {"name": "abroad", "holding": "owner"},
    {"name": "wages", "earlier": "wages_before"},
    {"name": "wages_before"},
)


def register(seed: int, count: int = 40, owners: int = 14, keyed: bool = False) -> Records:
    rng = np.random.default_rng(seed)
    home = np.rint(rng.lognormal(5, 2, count)).astype(np.int64)
    abroad = np.where(rng.random(count) < 0.5, 0, rng.integers(-90, 400, count))
    home[rng.random(count) < 0.1] = 0
    before = rng.integers(0, 300, count)
    wages = np.where(rng.random(count) < 0.2, before, rng.integers(0, 300, count))
    return Records(
        PLAIN,
        codes={
            "activity": rng.integers(0, 4, count).astype(np.uint8),
            "region": rng.integers(0, 3, count).astype(np.uint8),
            "form": rng.integers(0, 2, count).astype(np.uint8),
        },
        numbers={
            "turnover": home + abroad,
            "home": home,
            "abroad": abroad,
            "wages": wages,
            "wages_before": before,
        },
        ids={"id": np.arange(count) * 7 + 3, "owner": rng.integers(0, owners, count)},
        keys=rng.integers(1, 2**62, count).astype(np.uint64) if keyed else None,
    )


def codes_of(records: Records) -> np.ndarray:
    return np.stack([records.codes[v.name] for v in records.dataset.variables])


def shown_counts(records: Records, seed: int) -> FinestCells:
    """Counts of a protected population: some cells with units show 0, and some without show 3."""
    rng = np.random.default_rng(seed)
    every = np.stack(np.nonzero(np.ones((4, 3, 2))))
    held = np.isin(cell_numbers(PLAIN, every), cell_numbers(PLAIN, codes_of(records)))
    shows = np.where(held, rng.random(24) < 0.6, rng.random(24) < 0.4)
    return FinestCells(PLAIN, every[:, shows], np.full(int(shows.sum()), 3))


def inside(plan: TablePlan, codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Every controlled cell with the records that lie in it."""
    row = {v.name: place for place, v in enumerate(plan.dataset.variables)}
    for table in plan.tables:
        for place in np.ndindex(*table.shape):
            mask = np.ones(codes.shape[1], dtype=bool)
            for level, group in zip(table.levels, place, strict=True):
                mask &= level.group_of[codes[row[level.variable]]] == group
            yield int(table.places()[place]), np.flatnonzero(mask)


def made_units(records: Records, name: str = "home") -> Any:
    family = next(f for f in families_of(records.dataset.measures) if name in f.shown)
    plan = plan_tables(records.dataset, 2, (("activity", "region", "form"),))
    units, order, secret = units_of(
        records,
        plan.variables,
        family,
        SPEC.factors,
        KEY,
        room=int(0.8 * 2**20),
        background=NOTHING,
    )
    return plan, family, units, order, secret


CLASSES = Dataset.from_mapping(
    {
        "dataset": {"name": "classes"},
        "variables": [
            {"name": "size", "codes": ["s0", "s1", "s2"], "edges": [0, 10, 50]},
            {"name": "activity", "codes": ["a0", "a1", "a2", "a3"]},
            {"name": "region", "codes": ["r0", "r1"]},
        ],
    }
)
MANY = Dataset.from_mapping(
    {
        "dataset": {"name": "many"},
        "variables": [
            *({"name": f"v{k}", "codes": ["0", "1"]} for k in range(9)),
            {"name": "size", "codes": ["s0", "s1"], "edges": [0, 10]},
        ],
    }
)


class Scene:
    """Records of a dataset, and which of its finest cells show somebody."""

    def __init__(
        self, dataset: Dataset, seed: int, count: int, share: float, idle: int = 2
    ) -> None:
        rng = np.random.default_rng(seed)
        self.dataset, self.count = dataset, count
        sizes = [len(v.codes) for v in dataset.variables]
        self.codes = np.stack([rng.integers(0, n, count) for n in sizes])
        own = np.unique(self.codes, axis=1)
        free = np.stack([rng.integers(0, n, 5) for n in sizes])
        every = np.unique(np.c_[own[:, rng.random(own.shape[1]) < share], free], axis=1)
        self.shown = FinestCells(dataset, every, np.full(every.shape[1], 3))
        self.values = np.rint(rng.lognormal(3, 1.5, (count, 2))).astype(np.int64)
        self.values[rng.random((count, 2)) < 0.2] = 0
        self.values[:idle] = 0
        self.identity = rng.permutation(np.arange(count)).astype(np.uint64)
        self.plan: TablePlan = plan_tables(dataset, 1)

    def carried(self, kept: KeptPlaces | None = None, sweeps: int = 1) -> Carried:
        return carried_by(
            self.plan,
            self.codes,
            self.values,
            self.identity,
            self.shown,
            KEY,
            sweeps=sweeps,
            earlier_places=kept,
        )


SCENES = {
    "plain": (PLAIN, 1, 40, 0.5),
    "cells that are short of records": (PLAIN, 6, 16, 0.4),
    "few cells": (PLAIN, 3, 30, 0.1),
    "classes": (CLASSES, 4, 40, 0.5),
    "many variables": (MANY, 5, 40, 0.4),
    "nobody has to leave": (PLAIN, 7, 40, 1.0, 12),
    # Several cells have no near record left, and take one from anywhere.
    "classes without records": (CLASSES, 3274, 23, 1.0, 6),
    "hardly enough records": (CLASSES, 214, 8, 0.2, 1),
}


REGISTERS = ("alone", "public", "one measure", "tied", "second")


def result(name: str) -> MagnitudeResult:
    if name == "alone":
        return SPEC.protect(register(10), KEY)
    if name == "public":
        return replace(SPEC, existence="public").protect(
            register(11, keyed=True), KEY, background=Background(waived=[3, 5])
        )
    if name == "one measure":
        spec = replace(SPEC, measures=("wages",), directions="secret", search_range=0.3)
        return spec.protect(register(12), KEY)
    records = register(13, 44, keyed=True)
    first = SPEC.protect(records, KEY, shown=shown_counts(records, 13))
    if name == "tied":
        return first
    rng = np.random.default_rng(14)
    numbers = {n: v.copy() for n, v in records.numbers.items()}
    numbers["home"][rng.random(44) < 0.2] += 40
    numbers["wages"][rng.random(44) < 0.2] += 3
    numbers["turnover"] = numbers["home"] + numbers["abroad"]
    codes = {n: v.copy() for n, v in records.codes.items()}
    codes["region"][rng.random(44) < 0.1] = 0
    later = replace(records, numbers=numbers, codes=codes).take(np.arange(4, 44))
    return SPEC.protect(later, KEY, shown=shown_counts(records, 15), previous=first.memory)
