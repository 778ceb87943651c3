"""Small datasets and questions to draw at random, and the slow truth about them: loops over records."""

from __future__ import annotations

import csv
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Dataset, TableQuery
from lustrum.tabulate import Secret
from lustrum.tabulate.keys import record_keys

SECRET = Secret(bytes(range(32)))
HOLDINGS = 5
MODULUS = 1 << 64


def quick(usual: int, deep: int = 0) -> settings:
    """The same examples in every run; the first one compiles a kernel, which no deadline foresees."""
    most = examples(usual, deep or 4 * usual)
    return settings(deadline=None, max_examples=most, derandomize=True, database=None)


@dataclass(frozen=True)
class World:
    """A description, records of finest codes, and what every code of the description stands for."""

    description: dict[str, Any]
    records: list[dict[str, Any]]
    nodes: dict[str, dict[str, frozenset[str]]]
    levels: dict[str, dict[str, tuple[str, ...]]]
    codes: dict[str, tuple[str, ...]]
    zeros: list[dict[str, frozenset[str]]] = field(default_factory=list)

    @cached_property
    def dataset(self) -> Dataset:
        return Dataset.from_mapping(self.description)

    @cached_property
    def keys(self) -> list[int]:
        ids = np.array([r["id"] for r in self.records], dtype=np.uint64)
        return [int(k) for k in record_keys(SECRET, "world", ids)]

    def arrow(self) -> pa.Table:
        names = list(self.records[0])
        return pa.table({n: [r[n] for r in self.records] for n in names})

    def pandas(self) -> pd.DataFrame:
        return pd.DataFrame(self.records)

    def polars(self) -> pl.DataFrame:
        return pl.DataFrame(self.records)

    def to_csv(self, path: Path) -> Path:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(self.records[0]))
            writer.writeheader()
            writer.writerows(self.records)
        return path

    def to_parquet(self, path: Path) -> Path:
        pq.write_table(self.arrow(), path)
        return path


@st.composite
def worlds(draw: st.DrawFn, *, zeros: bool = False, variables: int = 4) -> World:
    """Two variables or more, hierarchies with ragged branches, two of them crossing each other."""
    names = [f"v{i}" for i in range(draw(st.integers(2, variables)))]
    tables: list[dict[str, Any]] = []
    nodes: dict[str, dict[str, frozenset[str]]] = {}
    levels: dict[str, dict[str, tuple[str, ...]]] = {}
    codes: dict[str, tuple[str, ...]] = {}
    for name in names:
        own = tuple(f"{name}c{i}" for i in range(draw(st.integers(1, 6))))
        codes[name] = own
        nodes[name] = {c: frozenset([c]) for c in own}
        levels[name] = {}
        ladders = [
            _ladder(draw, f"h{k}", own, nodes[name], levels[name])
            for k in range(draw(st.integers(0, 2)))
        ]
        tables.append({"name": name, "codes": list(own), "hierarchies": ladders})
    # Shrinking records one by one tells little; a seed is quick to draw.
    dice = random.Random(draw(st.integers(0, 2**32)))
    forbidden: list[dict[str, frozenset[str]]] = []
    if zeros:
        for _ in range(draw(st.integers(1, 4))):
            named = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
            forbidden.append(
                {n: frozenset(draw(st.sets(st.sampled_from(codes[n]), min_size=1))) for n in named}
            )
    records = []
    for number in dice.sample(range(10_000), draw(st.integers(1, 40))):
        record: dict[str, Any] = {n: dice.choice(codes[n]) for n in names}
        if any(all(record[n] in held for n, held in zero.items()) for zero in forbidden):
            continue
        cents, tenths = dice.choice([0, 7, 7, dice.randint(-500, 5000)]), dice.randint(0, 30)
        record |= {
            "id": number,
            "turnover": _text(cents, 2),
            "debt": _text(dice.randint(-9, 9), 0),
            "weight": _text(tenths, 1),
            "owner": dice.randrange(HOLDINGS),
        }
        records.append(record)
    description = {
        "dataset": {"name": "world", "record_id": "id", "identifiers": ["owner"]},
        "variables": tables,
        "measures": [
            {"name": "turnover", "decimals": 2, "holding": "owner", "unit": "EUR"},
            {"name": "debt", "unit": "EUR"},
        ],
        "weights": [{"name": "weight", "decimals": 1}],
        "structural_zeros": [
            {"reason": f"rule {i}", "where": {n: sorted(held) for n, held in zero.items()}}
            for i, zero in enumerate(forbidden)
        ],
    }
    return World(description, records, nodes, levels, codes, forbidden)


def _text(units: int, decimals: int) -> str:
    sign, digits = "-" if units < 0 else "", f"{abs(units):0{decimals + 1}d}"
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}" if decimals else f"{sign}{digits}"


def units(text: str) -> int:
    """A number with its decimal point taken away."""
    return int(text.replace(".", ""))


def _ladder(
    draw: st.DrawFn,
    name: str,
    codes: Sequence[str],
    nodes: dict[str, frozenset[str]],
    levels: dict[str, tuple[str, ...]],
) -> dict[str, Any]:
    """One or two levels; each groups some categories of the level below and leaves the others alone."""
    below = {c: frozenset([c]) for c in codes}
    rungs = []
    for number in range(draw(st.integers(1, 2))):
        level = f"{name}l{number}"
        owner = {c: draw(st.integers(0, 3)) for c in below}  # 0 is left alone
        groups = {g: [c for c in below if owner[c] == g] for g in (1, 2, 3)}
        named = {f"{level}g{g}": members for g, members in groups.items() if members}
        rungs.append(
            {"name": level, "groups": [{"code": g, "members": m} for g, m in named.items()]}
        )
        up = {g: frozenset().union(*(below[c] for c in m)) for g, m in named.items()}
        nodes.update(up)
        below = up | {c: held for c, held in below.items() if owner[c] == 0}
        order = {c: min(codes.index(x) for x in held) for c, held in below.items()}
        levels[level] = tuple(sorted(below, key=order.__getitem__))
        below = {c: below[c] for c in levels[level]}
    return {"name": name, "levels": rungs}


@st.composite
def questions(draw: st.DrawFn, world: World) -> dict[str, Any]:
    """Levels, chosen codes of several levels, own overlapping groups, totals; up to three filters."""
    names = list(world.codes)
    by: list[Any] = []
    for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True)):
        some = st.lists(st.sampled_from(sorted(world.nodes[name])), min_size=1, max_size=4)
        axis: dict[str, Any] = {"variable": name}
        form = draw(st.sampled_from(["finest", "level", "codes", "groups", "chosen at a level"]))
        if form in ("level", "chosen at a level") and world.levels[name]:
            axis["level"] = draw(st.sampled_from(sorted(world.levels[name])))
        if form in ("codes", "chosen at a level"):
            offered = world.levels[name].get(axis.get("level", ""), world.codes[name])
            one_level = st.lists(st.sampled_from(offered), min_size=1, max_size=3)
            axis["codes"] = list(dict.fromkeys(draw(some | one_level)))
        elif form == "groups":
            groups = draw(st.lists(some, min_size=1, max_size=3))
            axis["groups"] = [
                {"label": f"own {i}", "members": members} for i, members in enumerate(groups)
            ]
        if draw(st.booleans()):
            axis["total"] = True
        by.append(axis)
    where = {
        name: draw(st.lists(st.sampled_from(sorted(world.nodes[name])), min_size=1, max_size=3))
        for name in draw(st.lists(st.sampled_from(names), max_size=3, unique=True))
    }
    return {"dataset": "world", "by": by, "where": where}


@dataclass(frozen=True)
class Cell:
    """What stands in one cell."""

    records: list[int]
    structural: bool


@dataclass(frozen=True)
class Truth:
    """The axes of a table, and its cells, by brute force."""

    axes: list[list[tuple[str, frozenset[str]]]]
    cells: dict[tuple[int, ...], Cell]

    @property
    def codes(self) -> list[list[str]]:
        return [[code for code, _ in axis] for axis in self.axes]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)


def truth(
    world: World, question: dict[str, Any], *, wide: bool = False, filtered: bool = True
) -> Truth:
    """The table asked for; with ``wide``, before choices, without ``filtered`` before filters."""
    axes = [_categories(world, axis, wide) for axis in question["by"]]
    names = [axis["variable"] for axis in question["by"]]
    allowed = {n: frozenset(codes) for n, codes in world.codes.items()}
    if filtered:
        for name, picked in question["where"].items():
            allowed[name] = frozenset().union(*(world.nodes[name][c] for c in picked))
    cells = {}
    for position in itertools.product(*(range(len(axis)) for axis in axes)):
        box = dict(allowed)
        for name, axis, i in zip(names, axes, position, strict=True):
            box[name] = box[name] & axis[i][1]
        held = [
            number
            for number, record in enumerate(world.records)
            if all(record[n] in box[n] for n in box)
        ]
        cells[position] = Cell(held, not _somebody(world, box))
    return Truth(axes, cells)


def _somebody(world: World, box: dict[str, frozenset[str]]) -> bool:
    """Whether any combination of finest codes in a box can exist."""
    names = list(box)
    return any(
        not any(all(dict(zip(names, c, strict=True))[n] in z[n] for n in z) for z in world.zeros)
        for c in itertools.product(*(box[n] for n in names))
    )


def _categories(world: World, axis: dict[str, Any], wide: bool) -> list[tuple[str, frozenset[str]]]:
    name = axis["variable"]
    nodes, everything = world.nodes[name], frozenset(world.codes[name])
    offered = world.levels[name][axis["level"]] if "level" in axis else world.codes[name]
    shown = [(c, nodes[c]) for c in axis.get("codes", offered)]
    if "groups" in axis:
        shown = [
            (f"G{i}", frozenset().union(*(nodes[m] for m in group["members"])))
            for i, group in enumerate(axis["groups"], start=1)
        ]
    if not wide:
        return [*shown, ("_T", everything)] if axis.get("total") else shown
    if {code for code, _ in shown} <= set(offered):
        return [(c, nodes[c]) for c in offered]
    rest = everything.difference(*(held for _, held in shown))
    return [*shown, ("_REST", rest)] if rest else shown


def question_of(raw: dict[str, Any], **more: str) -> TableQuery:
    return TableQuery.from_mapping(raw | more)
