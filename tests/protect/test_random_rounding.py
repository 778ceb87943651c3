"""Random rounding: unbiased, adjacent, keyed, and honest about what the public can know."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from lustrum.model import InputError, Table
from lustrum.model.keys import cell_words
from lustrum.protect import RandomRounding, RoundingChannel
from lustrum.protect.rounding.cells import round_randomly

PINNED = [5665188244183254396, 15226727078098784556, 6061892040613258123, 13406522649066241764]
counts = st.lists(st.integers(0, 10_000), min_size=1, max_size=40)


@given(values=counts, base=st.integers(2, 20), seed=st.integers(0, 2**32))
def test_every_value_becomes_an_adjacent_multiple(values: list[int], base: int, seed: int) -> None:
    table = Table.from_counts(values)
    published = RandomRounding(base).apply(table, np.random.default_rng(seed)).published
    assert np.all(published % base == 0)
    assert np.all(np.abs(published - table.values) < base)
    exact = table.values % base == 0
    assert np.array_equal(published[exact], table.values[exact])


def test_rounding_is_unbiased_to_the_last_word() -> None:
    """The number of 64-bit words that round up is r/b of all, but for less than one word."""
    for base in (2, 3, 5, 7, 10):
        for residue in range(1, base):
            threshold = (residue << 64) // base
            words = np.array([threshold - 1, threshold], dtype=np.uint64)
            out = round_randomly(np.array([residue, residue], dtype=np.int64), base, words)
            assert out.tolist() == [base, 0]
            assert abs(threshold * base - (residue << 64)) < base


def test_keyed_rounding_follows_its_channel() -> None:
    """Chi-square over 20,000 keyed cells for each residue; false alarm rate one in a million."""
    rng = np.random.default_rng(7)
    for base, value in [(3, 1), (3, 2), (5, 4), (10, 3)]:
        keys = rng.integers(0, 2**64, 20_000, dtype=np.uint64)
        table = Table.from_counts(np.full(20_000, value), keys=keys)
        published = RandomRounding(base).apply(table).published
        rows = RoundingChannel(base).transitions(np.array([value]))
        seen = np.array([np.count_nonzero(published == p) for p in rows.published])
        assert seen.sum() == 20_000
        assert stats.chisquare(seen, rows.probability * 20_000).pvalue > 1e-6


def test_cells_of_related_keys_are_rounded_independently() -> None:
    """A total's key is the sum of its parts' keys; its rounding must not follow from theirs."""
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 2**64, (2, 40_000), dtype=np.uint64)
    words = [
        cell_words(k, "random-rounding 3") < np.uint64(2**64 // 3)
        for k in (*keys, keys.sum(axis=0))
    ]
    pattern = words[0] * 4 + words[1] * 2 + words[2]
    expected = [np.prod([1 / 3 if (i >> b) & 1 else 2 / 3 for b in range(3)]) for i in range(8)]
    seen = np.bincount(pattern, minlength=8)
    assert stats.chisquare(seen, np.array(expected) * 40_000).pvalue > 1e-6


def test_the_same_keys_give_the_same_bytes() -> None:
    keys = np.random.default_rng(1).integers(0, 2**64, (5, 4), dtype=np.uint64)
    values = np.arange(20).reshape(5, 4)
    once, again = (RandomRounding().apply(Table.from_counts(values, keys=keys)) for _ in range(2))
    turned = RandomRounding().apply(Table.from_counts(values.T, keys=keys.T))
    assert once.published.tobytes() == again.published.tobytes()
    assert np.array_equal(once.published, turned.published.T)


def test_keyed_words_are_pinned() -> None:
    """Published tables must not change with a new version of the software."""
    keys = np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert cell_words(keys, "random-rounding 3").tolist() == PINNED


@given(values=counts, base=st.integers(2, 12), seed=st.integers(0, 2**32))
def test_public_bounds_hold_the_true_value(values: list[int], base: int, seed: int) -> None:
    table = Table.from_counts(values)
    release = RandomRounding(base).apply(table, np.random.default_rng(seed))
    assert release.low is not None
    assert release.high is not None
    assert np.all(release.low <= table.values)
    assert np.all(table.values <= release.high)
    assert np.all(release.low >= 0)


def test_a_table_without_keys_asks_for_a_generator() -> None:
    with pytest.raises(InputError, match="give a random generator"):
        RandomRounding().apply(Table.from_counts([1, 2]))
