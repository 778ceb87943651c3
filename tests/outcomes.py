"""What a method, rule, risk or measure makes of small inputs, as a digest of all that it says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from lustrum.model import Dataset, InputError, Release
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.protect import RandomRounding, Suppression
from lustrum.protect.abilities import abilities_of
from lustrum.protect.proven.domain import Domain
from lustrum.testing import example_populations
from protect.magnitudes import registers
from same_bytes.golden import KEY, digest
from same_bytes.inputs import counted, magnitudes, people, town

__all__ = ["NEEDED", "outcomes"]

NEEDED: dict[str, dict[str, Any]] = {
    "between-variance-change": {"area": "v0", "variable": "v1", "category": "v10"},
    "conditional-error": {"variable": "v0"},
    "differential-privacy": {"epsilon": 1.0},
    "multiplicative-noise": {"measure": "income"},
    "p-percent": {"p": 10},
    "post-randomisation": {"variable": "job"},
    "prior-posterior": {"p": 10, "q": 50},
    "sample-r2": {"fraction": 0.1},
    "stratified-sampling": {"by": "area"},
    "suppression": {"work": 100},
}
"""What a spec needs to be made at all, in the words of the inputs here."""


@cache
def records() -> Records:
    """300 people of 120 households."""
    count, rng = 300, np.random.default_rng(2)
    frame = people(count)
    words = {**town().source}
    words["dataset"] = {**words["dataset"], "identifiers": ["household"]}
    words["measures"] = [*words["measures"], {"name": "grossing"}]
    home = np.sort(rng.integers(0, 120, count))
    codes = {
        v.name: np.array([v.codes.index(c) for c in frame.column(v.name).to_pylist()], np.uint8)
        for v in town().variables
    }
    codes["area"] = (home % 3).astype(np.uint8)
    return Records(
        Dataset.from_mapping(words),
        codes=codes,
        numbers={
            "income": frame.column("income").to_numpy(),
            "grossing": rng.integers(1, 9, count),
        },
        ids={"id": np.arange(count), "household": home},
        keys=rng.integers(0, 2**64, count, dtype=np.uint64),
    )


@cache
def tables() -> tuple[Any, ...]:
    return counted(5, (3, 3, 2)), counted(11, (5, 4), 25), magnitudes(1, (4, 3))


@cache
def cube() -> Any:
    return counted(5, (5, 4, 3))


@cache
def pairs() -> tuple[tuple[Any, Any], ...]:
    methods = (RandomRounding(base=3), Suppression(work=100))
    return tuple((table, method.apply(table)) for table in tables()[:2] for method in methods)


def said(value: Any) -> Any:
    """All of a result but the words of the method that made it."""
    if isinstance(value, Release):
        parts = ("published", "status", "low", "high", "decimals", "notes", "margins", "channel")
        return [getattr(value, part) for part in parts]
    if isinstance(value, Records):
        return value.codes, value.numbers, value.ids
    if hasattr(value, "agency"):  # of a population, or of sums
        made = value.cells if hasattr(value, "cells") else value.sums
        report = {k: v for k, v in value.public.to_mapping().items() if k != "method"}
        return made.codes, made.counts if hasattr(made, "counts") else made.sums, report
    return value


def runs(group: str, spec: Any) -> Iterator[Any]:
    """What can be asked of a spec, each as a function without arguments."""
    if group == "rules":
        yield from (lambda t=t: spec.judge(t) for t in tables())
    elif group == "risks":
        yield from (lambda t=t: spec.before(t) for t in tables()[:2])
        if spec.measures_releases:
            yield from (lambda t=t, r=r: spec.after(t, r) for t, r in pairs())
    elif group == "utilities":
        yield from (lambda t=t, r=r: spec.of(t, r) for t, r in pairs())
    elif "population" in spec.stages and spec.name == "protected-population":
        cells = next(iter(example_populations(1, 1)))

        def later() -> Any:
            more = (np.arange(len(cells)) % 5 == 0).astype(np.int64)
            keys = cells.keys + more.astype(np.uint64)
            grown = FinestCells(cells.dataset, cells.codes, cells.counts + more, keys)
            return spec.protect(grown, KEY, previous=spec.protect(cells, KEY).memory)

        yield from (lambda: spec.protect(cells, KEY), later)
    elif "magnitudes" in spec.stages:
        register = registers.register(1, keyed=True)
        yield lambda: spec.protect(register, KEY, shown=registers.shown_counts(register, 2))
    elif spec.name == "differential-privacy":
        yield from (lambda t=t: spec.rehearse(t, np.random.default_rng(4)) for t in tables()[:2])
    elif "population" in spec.stages:
        domain = Domain.of(next(iter(example_populations(1, 1))).dataset)
        yield lambda: spec.plan(domain)
    else:
        if "microdata" in spec.stages:
            yield lambda: spec.apply_records(records(), 5)
            yield lambda: spec.publish(tables()[1])
        if "table" in spec.stages:
            if abilities_of(spec).repeatable:
                yield from (lambda t=t: spec.apply(t) for t in (*tables(), cube()))
            yield lambda: spec.apply(tables()[1], 3)


def outcomes(group: str, spec: Any) -> Iterator[str]:
    """A digest of each result, or the sentence of its refusal."""
    for run in runs(group, spec):
        try:
            yield digest(said(run()))
        except InputError as error:
            yield f"refused: {error}"
