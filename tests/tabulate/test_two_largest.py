"""One pass ranks as the general way does, for all workers, chunks, holdings, totals, groups and filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model import Axis, Dataset, Filter, Group, Table, TableQuery
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.counting.plan import Chunk

FIRMS = Dataset.from_mapping(
    {
        "dataset": {"name": "firms", "unit": "firm", "units": "firms", "identifiers": ["owner"]},
        "variables": [
            {"name": "a", "label": "A", "codes": ["1", "2", "3"]},
            {"name": "b", "label": "B", "codes": ["1", "2"]},
        ],
        "measures": [
            {"name": "x", "label": "X", "unit": "euro", "holding": "owner"},
            {"name": "y", "label": "Y", "unit": "euro"},
        ],
    }
)
BY = (
    Axis("a", groups=(Group("some", ("1", "3")), Group("more", ("3", "2"))), total=True),
    Axis("b", total=True),
)
QUESTIONS = {
    "plain": TableQuery("firms", (Axis("a"), Axis("b")), measure="x"),
    "totals": TableQuery("firms", (Axis("a", total=True), Axis("b", total=True)), measure="x"),
    "overlapping": TableQuery("firms", BY, measure="x"),
    "filtered": TableQuery("firms", (Axis("a"),), (Filter("b", ("2",)),), measure="x"),
    "everything": TableQuery("firms", (), measure="x"),
    "no holding": TableQuery("firms", BY, measure="y"),
}


class General(KernelEngine):
    """The same without the one pass."""

    def _ranks_in_one_pass(self, query: TableQuery, ranks: int) -> bool:
        return False


def chunks(seed: int, rows: int, parts: int) -> list[Chunk]:
    rng = np.random.default_rng(seed)
    out = []
    for part in np.array_split(np.arange(rows), parts):
        size = part.size
        out.append(
            Chunk(
                size,
                {"a": rng.integers(0, 3, size).astype(np.uint8), "b": rng.integers(0, 2, size)},
                # Few values, of both signs and 0, so that many are equal in size.
                {name: rng.integers(-4, 5, size) for name in ("x", "y")},
                ids={"owner": rng.integers(0, max(rows // 2, 1), size)},
                keys=rng.integers(0, 2**64, size, dtype=np.uint64),
            )
        )
    return out


def same(one: Table, other: Table) -> None:
    assert np.array_equal(one.values, other.values)
    assert one.keys is not None
    assert other.keys is not None
    assert np.array_equal(one.keys, other.keys)
    assert one.contributors is not None
    assert other.contributors is not None
    assert np.array_equal(one.contributors, other.contributors)
    assert np.array_equal(one.contributions.value, other.contributions.value)
    assert np.array_equal(one.contributions.holding, other.contributions.holding)


@pytest.mark.parametrize("name", QUESTIONS)
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 60),
    parts=st.integers(1, 3),
    workers=st.integers(1, 3),
    ranks=st.integers(1, 2),
)
def test_one_pass_is_the_general_way(name: str, **drawn: Any) -> None:
    held = chunks(drawn["seed"], drawn["rows"], drawn["parts"])
    query, ranks = QUESTIONS[name], drawn["ranks"]
    mine = KernelEngine(FIRMS, held, drawn["workers"])
    assert mine._ranks_in_one_pass(query, ranks)
    same(mine.tabulate(query, ranks=ranks), General(FIRMS, held, 1).tabulate(query, ranks=ranks))


def test_many_blocks_between_several_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lustrum.numeric.counting.kernel.BLOCK", 64)
    held = chunks(7, 5000, 2)
    query = QUESTIONS["overlapping"]
    right = General(FIRMS, held, 1).tabulate(query, ranks=2)
    for workers in (1, 2, 5):
        same(KernelEngine(FIRMS, held, workers).tabulate(query, ranks=2), right)


def test_more_ranks_take_the_general_way() -> None:
    held = chunks(8, 50, 1)
    engine = KernelEngine(FIRMS, held, 1)
    three = engine.tabulate(QUESTIONS["totals"], ranks=3)
    two = engine.tabulate(QUESTIONS["totals"], ranks=2)
    assert np.array_equal(three.contributions.value[..., :2], two.contributions.value)
    none = engine.tabulate(QUESTIONS["totals"])
    assert none.contributions is None
    assert np.array_equal(none.contributors, two.contributors)  # type: ignore[arg-type]


def test_the_rules_before_a_filter_see_everybody() -> None:
    held = chunks(9, 200, 2)
    query = QUESTIONS["filtered"]
    mine, right = (
        kind(FIRMS, held, 2).cube(query, unfiltered=True, ranks=2)
        for kind in (KernelEngine, General)
    )
    assert np.array_equal(mine.unfiltered().values, right.unfiltered().values)
    assert np.array_equal(mine.widened().values, right.widened().values)
    same(mine.shown(), right.shown())
    counts = KernelEngine(FIRMS, held, 1).tabulate(replace(query, measure=None))
    assert mine.counts[0].sum() == counts.values.sum()
