"""Rounding of small counts only: large counts stay, small ones become 0 or the base, all adds up."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.protect.rounding.cells import SmallCountChannel, SmallCountRounding

counts = st.lists(st.integers(0, 30), min_size=1, max_size=40)
hows = st.sampled_from(["nearest", "random"])


def axis(name: str, size: int) -> TableAxis:
    parts = tuple(Category(str(i), str(i), (i,)) for i in range(size))
    return TableAxis(name, name, (*parts, Category("_T", "Total", tuple(range(size)))))


@given(values=counts, base=st.integers(2, 12), how=hows, seed=st.integers(0, 2**32))
def test_only_counts_below_the_base_move(values: list[int], base: int, how: str, seed: int) -> None:
    table = Table.from_counts(values)
    method = SmallCountRounding(base, how)  # type: ignore[arg-type]
    release = method.apply(table, np.random.default_rng(seed))
    large = table.values >= base
    assert np.array_equal(release.published[large], table.values[large])
    assert set(release.published[~large].tolist()) <= {0, base}
    assert np.all(release.published[table.values == 0] == 0)
    if how == "nearest":
        up = 2 * table.values[~large] >= base
        assert np.array_equal(release.published[~large] > 0, up)
    assert release.low is not None
    assert release.high is not None
    assert np.all((release.low <= table.values) & (table.values <= release.high))


def test_keyed_rounding_follows_its_channel() -> None:
    """Chi-square over 60,000 keyed cells for each count; false alarm rate one in a million."""
    rng = np.random.default_rng(11)
    for base, value in [(3, 1), (3, 2), (5, 4)]:
        keys = rng.integers(0, 2**64, (200, 300), dtype=np.uint64)
        table = Table.from_counts(np.full((200, 300), value), keys=keys)
        published = SmallCountRounding(base, "random").apply(table).published
        rows = SmallCountChannel(base, "random").transitions(np.array([value]))
        seen = np.array([np.count_nonzero(published == p) for p in rows.published])
        assert seen.sum() == 60_000
        assert stats.chisquare(seen, rows.probability * 60_000).pvalue > 1e-6


@given(
    cells=st.lists(st.integers(0, 9), min_size=6, max_size=6), how=hows, seed=st.integers(0, 999)
)
def test_totals_are_the_sums_of_what_is_published(cells: list[int], how: str, seed: int) -> None:
    inner = np.array(cells, dtype=np.int64).reshape(2, 3)
    values = np.pad(inner, ((0, 1), (0, 1)))
    values[:2, 3], values[2, :3], values[2, 3] = inner.sum(1), inner.sum(0), inner.sum()
    table = Table(axes=(axis("a", 2), axis("b", 3)), values=values)
    method = SmallCountRounding(4, how)  # type: ignore[arg-type]
    release = method.apply(table, np.random.default_rng(seed))
    shown = release.published[:2, :3]
    assert release.published[:2, 3].tolist() == shown.sum(axis=1).tolist()
    assert release.published[2, :3].tolist() == shown.sum(axis=0).tolist()
    assert release.published[2, 3] == shown.sum()
    assert release.low is not None
    assert release.high is not None
    assert np.all((release.low <= values) & (values <= release.high))
    assert release.low[2, 3] == release.low[:2, :3].sum()


def test_the_same_cell_is_rounded_alike_in_overlapping_tables() -> None:
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**64, (6, 5), dtype=np.uint64)
    values = rng.integers(0, 6, (6, 5))
    method = SmallCountRounding(4, "random")
    whole = method.apply(Table.from_counts(values, keys=keys)).published
    part = method.apply(Table.from_counts(values[2:5, ::2], keys=keys[2:5, ::2])).published
    assert np.array_equal(whole[2:5, ::2], part)


def test_wrong_parameters_and_missing_chance_are_one_sentence() -> None:
    with pytest.raises(InputError, match="no record keys"):
        SmallCountRounding(3, "random").apply(Table.from_counts([1, 2]))
