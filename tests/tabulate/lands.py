"""A small land in some order of its areas, in chunks of any size, and questions about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from lustrum.model import Dataset, Table
from lustrum.numeric.counting import Chunk, kernel, plan

AREAS, MISSING = 9, 8
ORDERS = ("sorted", "falling", "nearly sorted", "shuffled", "one area")


def describe(areas: int = AREAS) -> Dataset:
    """Areas in three regions and one code for those of no known area; the wide ones need two bytes."""
    names = [str(i) for i in range(areas)]
    regions = [
        {"code": f"R{k}", "members": names[k * 3 : k * 3 + 3] if k < 2 else names[6:-1]}
        for k in range(3)
    ]
    ladder = [{"name": "up", "levels": [{"name": "region", "groups": regions}]}]
    return Dataset.from_mapping(
        {
            "dataset": {"name": "land", "record_id": "id", "identifiers": ["owner"]},
            "variables": [
                {"name": "area", "codes": names, "hierarchies": ladder, "missing": names[-1]},
                {"name": "age", "codes": ["a", "b", "c", "d"]},
                {"name": "sex", "codes": ["m", "f"]},
            ],
            "measures": [
                {"name": "turnover", "holding": "owner", "unit": "EUR"},
                {"name": "debt", "unit": "EUR"},
            ],
            "weights": [{"name": "w"}],
        }
    )


def columns(rows: int, order: str, seed: int, areas: int = AREAS) -> dict[str, Any]:
    """Records of a small land, in some order of their areas."""
    dice = np.random.default_rng(seed)
    area = dice.integers(0, AREAS, rows)
    area[area == MISSING] = areas - 1
    if order != "shuffled":
        area = np.sort(area, kind="stable")
    if order == "falling":
        area = area[::-1].copy()
    if order == "nearly sorted" and rows:
        moved = dice.integers(0, rows, max(1, rows // 8))
        area[moved] = area[dice.permutation(moved)]
    if order == "one area":
        area[:] = 4
    small = np.uint8 if areas <= 256 else np.uint16
    return {
        "codes": {
            "area": area.astype(small),
            "age": np.sort(dice.integers(0, 4, rows)).astype(np.uint8),
            "sex": dice.integers(0, 2, rows).astype(np.uint8),
        },
        "numbers": {
            "turnover": dice.integers(-9, 50, rows),
            "debt": dice.integers(-5, 5, rows),
            "w": dice.integers(0, 4, rows),
        },
        "ids": {"id": dice.permutation(rows).astype(np.int64), "owner": dice.integers(0, 6, rows)},
        "keys": dice.integers(0, 2**64, rows, dtype=np.uint64),
    }


def chunks_of(whole: dict[str, Any], sizes: list[int]) -> list[Chunk]:
    """The same records in chunks of these sizes, in turn; a size of 0 is an empty chunk."""
    rows, start, out, turn = whole["keys"].size, 0, [], 0
    while start < rows or turn < len(sizes):
        stop = min(rows, start + sizes[turn % len(sizes)])
        part = {
            name: {n: v[start:stop] for n, v in held.items()}
            for name, held in whole.items()
            if name != "keys"
        }
        out.append(Chunk(stop - start, **part, keys=whole["keys"][start:stop]))
        start, turn = stop, turn + 1
    return out


@contextmanager
def small_blocks(zone: int, block: int, worth_it: int) -> Iterator[None]:
    """Few records make many zones and blocks."""
    with (
        patch.object(plan, "ZONE", zone),
        patch.object(kernel, "BLOCK", block),
        patch.object(kernel, "WIDE_BLOCK", 2 * block),
        patch.object(kernel, "WORTH_IT", worth_it),
    ):
        yield


def same_table(one: Table, other: Table) -> None:
    """Every number of two tables is the same."""
    for name in ("values", "contributors", "keys", "structural"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            assert np.array_equal(ours, theirs), name
    assert (one.contributions is None) == (other.contributions is None)
    if one.contributions is not None and other.contributions is not None:
        for name in ("value", "holding", "weight"):
            ours, theirs = getattr(one.contributions, name), getattr(other.contributions, name)
            assert (ours is None) == (theirs is None)
            assert ours is None or np.array_equal(ours, theirs), name


@st.composite
def filters(draw: st.DrawFn, areas: int) -> dict[str, list[str]]:
    """Filters that many, few or no records pass."""
    known = [*(str(i) for i in range(9) if i < areas - 1), str(areas - 1), "R0", "R1", "R2"]
    where = {}
    if draw(st.integers(0, 3)):
        where["area"] = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
    if draw(st.booleans()):
        where["age"] = draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    if not draw(st.integers(0, 3)):
        where["sex"] = draw(st.sampled_from([["m"], ["f"], ["m", "f"]]))
    return where


AXES: list[list[Any]] = [
    [],
    ["sex"],
    ["area"],
    ["age", "sex"],
    ["area", "age", "sex"],
    [{"variable": "area", "level": "region", "total": True}, "sex"],
    [{"variable": "area", "codes": ["3", "R0"]}, "age"],
    [{"variable": "age", "codes": ["b"]}],
    [{"variable": "area", "groups": [{"label": "own", "members": ["1", "5"]}], "total": True}],
]

AMOUNTS: list[dict[str, str]] = [
    {},
    {},
    {"weight": "w"},
    {"measure": "turnover"},
    {"measure": "debt"},
    {"measure": "turnover", "weight": "w"},
]
