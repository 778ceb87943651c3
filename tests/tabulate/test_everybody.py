"""The table of everybody is remembered, and questions with other filters still get their own numbers."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Dataset, TableQuery
from lustrum.numeric.counting import KernelEngine, engine
from lustrum.numeric.counting.plan import Zones
from tabulate.lands import (
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
from tabulate.worlds import quick


def same_views(known: KernelEngine, fresh: KernelEngine, words: dict[str, Any]) -> None:
    """Every view of a question is that of an engine that was never asked before."""
    query = TableQuery.from_mapping({"dataset": "land"} | words)
    one, other = known.cube(query, unfiltered=True), fresh.cube(query, unfiltered=True)
    for view in ("shown", "widened", "unfiltered"):
        same_table(getattr(one, view)(), getattr(other, view)())
        same_table(one.completed(view)[0], other.completed(view)[0])  # type: ignore[arg-type]


@given(
    data=st.data(),
    rows=st.sampled_from([0, 1, 40, 200]),
    order=st.sampled_from(ORDERS),
    keyed=st.booleans(),
    zoned=st.booleans(),
    kept=st.sampled_from([0, 300, 1 << 20]),
    seed=st.integers(0, 2**32),
)
@quick(50, 300)
def test_questions_in_any_order_get_the_numbers_of_an_engine_that_remembers_nothing(
    data: st.DataObject, rows: int, order: str, keyed: bool, zoned: bool, kept: int, seed: int
) -> None:
    dataset, whole = describe(), columns(rows, order, seed)
    chunks = chunks_of(whole, [64])
    if not keyed:
        chunks = [type(chunk)(chunk.rows, chunk.codes, chunk.numbers) for chunk in chunks]
    few = data.draw(st.lists(st.sampled_from(AXES), min_size=1, max_size=2))
    with small_blocks(16, 16, 0), patch.object(engine, "_EVERYBODY_KEPT", kept):
        zones = Zones.of(chunks, [v.name for v in dataset.variables]) if zoned else None
        known = KernelEngine(dataset, chunks, 2, zones)
        for _ in range(5):
            words = {"by": data.draw(st.sampled_from(few)), "where": data.draw(filters(AREAS))}
            same_views(known, KernelEngine(dataset, chunks, 1), words)


def test_what_is_remembered_belongs_to_one_description_and_its_records() -> None:
    dataset, chunks = describe(), chunks_of(columns(100, "shuffled", 1), [100])
    words = dataset.source
    ladder = [{"name": "region", "groups": [{"code": "R0", "members": ["0", "5"]}]}]
    area = {**words["variables"][0], "hierarchies": [{"name": "up", "levels": ladder}]}
    other = Dataset.from_mapping({**words, "variables": [area, *words["variables"][1:]]})
    asked = {"by": [{"variable": "area", "level": "region"}], "where": {"sex": ["m"]}}
    with small_blocks(16, 16, 0):
        known = KernelEngine(dataset, chunks, 1)
        same_views(known, KernelEngine(dataset, chunks, 1), asked)
        same_views(known.described_by(other), KernelEngine(other, chunks, 1), asked)
        more = chunks_of(columns(70, "shuffled", 2), [70])
        same_views(known.over(more[0]), KernelEngine(dataset, more, 1), asked)
        same_views(known, KernelEngine(dataset, chunks, 1), asked)
