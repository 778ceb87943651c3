"""Zones that are passed over change nothing: every table is the one that reads all records."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InternalError, TableQuery
from lustrum.numeric.counting import KernelEngine, plan
from lustrum.numeric.counting.plan import Plan, Zones
from lustrum.tabulate import Store
from tabulate.lands import (
    AMOUNTS,
    AREAS,
    AXES,
    ORDERS,
    chunks_of,
    columns,
    describe,
    filters,
    same_table,
    small_blocks,
)
from tabulate.worlds import SECRET, quick


@given(
    data=st.data(),
    rows=st.sampled_from([0, 1, 2, 17, 64, 200]),
    order=st.sampled_from(ORDERS),
    areas=st.sampled_from([AREAS, 300]),
    sizes=st.lists(st.sampled_from([0, 1, 5, 16, 33, 100]), min_size=1, max_size=3),
    zone=st.sampled_from([1, 3, 8, 16, 1000]),
    block=st.sampled_from([1, 4, 1 << 15]),
    worth_it=st.sampled_from([0, 1_000_000]),
    workers=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
@quick(120, 900)
def test_zones_change_no_number_of_any_table(
    data: st.DataObject,
    rows: int,
    order: str,
    areas: int,
    sizes: list[int],
    zone: int,
    block: int,
    worth_it: int,
    workers: int,
    seed: int,
) -> None:
    dataset = describe(areas)
    chunks = chunks_of(columns(rows, order, seed, areas), sizes if any(sizes) else [7])
    words: dict[str, Any] = {
        "dataset": "land",
        "by": data.draw(st.sampled_from(AXES)),
        "where": data.draw(filters(areas)),
    }
    more = data.draw(st.sampled_from(AMOUNTS))
    ranks = data.draw(st.integers(0, 3)) if "measure" in more else 0
    query = TableQuery.from_mapping(words | more)
    with small_blocks(zone, block, worth_it):
        known = Zones.of(chunks, [v.name for v in dataset.variables])
        zoned = KernelEngine(dataset, chunks, workers, known)
        plain = KernelEngine(dataset, chunks, workers)
        same_table(zoned.tabulate(query, ranks=ranks), plain.tabulate(query, ranks=ranks))
        one = zoned.cube(query, unfiltered=True, ranks=ranks)
        other = plain.cube(query, unfiltered=True, ranks=ranks)
        for view in ("shown", "widened", "unfiltered"):
            same_table(getattr(one, view)(), getattr(other, view)())


@given(
    data=st.data(),
    rows=st.sampled_from([1, 17, 64, 200]),
    order=st.sampled_from(ORDERS),
    sizes=st.lists(st.sampled_from([1, 5, 16, 33, 100]), min_size=1, max_size=3),
    zone=st.sampled_from([1, 3, 8, 16, 1000]),
    seed=st.integers(0, 2**32),
    unfiltered=st.booleans(),
)
@quick(60, 400)
def test_exactly_the_zones_that_no_record_can_pass_are_left_out(
    data: st.DataObject,
    rows: int,
    order: str,
    sizes: list[int],
    zone: int,
    seed: int,
    unfiltered: bool,
) -> None:
    dataset, chunks = describe(), chunks_of(columns(rows, order, seed), sizes)
    by = data.draw(st.sampled_from(AXES))
    where = data.draw(filters(AREAS))
    query = TableQuery.from_mapping({"dataset": "land", "by": by, "where": where})
    entries = Plan.of(query, dataset, unfiltered).entries()
    with patch.object(plan, "ZONE", zone):
        known = Zones.of(chunks, [v.name for v in dataset.variables])
    seen = [np.zeros(chunk.rows, dtype=int) for chunk in chunks]
    read: dict[tuple[int, int], list[str]] = {}
    for part in known.stretches(entries):
        own = next(i for i, chunk in enumerate(chunks) if chunk is part.chunk)
        seen[own][part.start : part.stop] += 1
        for row in range(part.start, part.stop):
            codes = {name: int(column[row]) for name, column in part.chunk.codes.items()}
            every = sum(int(entry[codes[name]]) for name, entry in entries)
            assert every == part.cell + sum(int(entry[codes[name]]) for name, entry in part.entries)
            read[own, row] = [name for name, _ in part.entries]
    for own, (chunk, times) in enumerate(zip(chunks, seen, strict=True)):
        for start in range(0, chunk.rows, zone):
            added = [
                (name, set(entry[codes.min() : codes.max() + 1].tolist()))
                for name, entry in entries
                for codes in [chunk.codes[name][start : start + zone]]
            ]
            rows_of_zone = range(start, min(start + zone, chunk.rows))
            if any(max(one) < 0 for _, one in added):
                assert not times[rows_of_zone].any()
            else:
                assert (times[rows_of_zone] == 1).all()
                varying = [name for name, one in added if len(one) > 1]
                assert all(read[own, row] == varying for row in rows_of_zone)


@pytest.mark.parametrize("rows", [0, 1])
def test_a_store_of_nobody_or_one_answers(tmp_path: Path, rows: int) -> None:
    dataset = describe()
    store = Store(tmp_path / "store")
    with store.replace(dataset, SECRET) as writer:
        for chunk in chunks_of(columns(rows, "sorted", 1), [5]):
            writer.write(chunk)
    engine = store.open("land")
    for where in ({}, {"area": ["0"]}, {"area": ["R0", "R1", "R2", "8"]}):
        query = TableQuery.from_mapping({"dataset": "land", "by": ["sex"], "where": where})
        plain = KernelEngine(dataset, list(engine.chunks))
        same_table(engine.tabulate(query), plain.tabulate(query))
        if len(where.get("area", "R0 to 8")) > 1:
            assert int(engine.tabulate(query).values.sum()) == rows


def test_other_cells_of_the_same_dataset_are_not_passed_over_by_zones_of_the_first() -> None:
    dataset = describe()
    one, other = (chunks_of(columns(50, "one area", seed), [50]) for seed in (1, 2))
    other[0].codes["area"][:] = 7  # type: ignore[index]
    engine = KernelEngine(dataset, one, 1, Zones.of(one, ["area", "age", "sex"]))
    query = TableQuery.from_mapping({"dataset": "land", "by": ["sex"], "where": {"area": ["7"]}})
    assert int(engine.tabulate(query).values.sum()) == 0
    assert int(engine.over(other[0]).tabulate(query).values.sum()) == 50


def test_zones_of_other_records_are_refused() -> None:
    one, other = (chunks_of(columns(50, "sorted", seed), [50]) for seed in (1, 2))
    with pytest.raises(InternalError):
        KernelEngine(describe(), one, 1, Zones.of(other, ["area"]))
