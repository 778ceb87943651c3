"""Conventional rounding: nearest, halves up, and honest about what the public can know."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.protect.rounding.conventional import ConventionalRounding, NearestChannel

counts = st.lists(st.integers(0, 10_000), min_size=1, max_size=40)


def axis(name: str, size: int) -> TableAxis:
    parts = tuple(Category(str(i), str(i), (i,)) for i in range(size))
    return TableAxis(name, name, (*parts, Category("_T", "Total", tuple(range(size)))))


@given(values=counts, base=st.integers(2, 20))
def test_every_count_becomes_the_nearest_multiple_and_halves_go_up(
    values: list[int], base: int
) -> None:
    published = ConventionalRounding(base).apply(Table.from_counts(values)).published.tolist()
    for true, shown in zip(values, published, strict=True):
        below = true - true % base
        expected = below if 2 * (true - below) < base else below + base
        assert shown == expected


@given(base=st.integers(2, 15), published=st.integers(0, 60))
def test_support_is_what_the_channel_can_reach(base: int, published: int) -> None:
    channel = NearestChannel(base)
    true = np.arange(0, 100)
    rows = channel.transitions(true)
    assert rows.probability.tolist() == [1.0] * 100
    reaching = true[rows.origin[rows.published == published]]
    low, high = channel.support(np.array([published]))
    if reaching.size:
        assert (low[0], high[0]) == (reaching.min(), reaching.max())
    else:
        assert low[0] > high[0]


def test_the_mean_diagonal_is_one_in_base() -> None:
    for base in (2, 3, 5, 10):
        true = np.arange(0, 10 * base)
        rows = NearestChannel(base).transitions(true)
        assert NearestChannel(base).stay(0, None) == pytest.approx(np.mean(rows.published == true))


@pytest.mark.parametrize(
    ("size", "largest", "base"), [(2, 14, 3), (3, 8, 3), (2, 14, 4), (2, 14, 5)]
)
def test_no_inner_cell_of_a_small_table_can_be_worked_out(
    size: int, largest: int, base: int
) -> None:
    """Enumerated: all true tables behind each release leave two values for every cell that had two."""
    behind: dict[bytes, list[tuple[int, ...]]] = {}
    releases = {}
    for cells in itertools.product(range(largest + 1), repeat=size):
        values = np.array([*cells, sum(cells)], dtype=np.int64)
        release = ConventionalRounding(base).apply(Table(axes=(axis("v", size),), values=values))
        assert release.low is not None
        assert release.high is not None
        assert np.all((release.low <= values) & (values <= release.high))
        behind.setdefault(release.published.tobytes(), []).append(cells)
        releases[release.published.tobytes()] = release.published[:size]
    checked = 0
    for key, shown in releases.items():
        if shown.max() > largest - base:  # some of what is behind it lies beyond the enumeration
            continue
        low, high = NearestChannel(base).support(shown)
        truths = np.array(behind[key])
        assert not np.any((truths.min(axis=0) == truths.max(axis=0)) & (low < high))
        checked += 1
    assert checked > 5


def test_the_mapping_builds_the_method_again() -> None:
    words = ConventionalRounding(7).to_mapping()
    assert words.pop("method") == "conventional-rounding"
    assert ConventionalRounding(**words) == ConventionalRounding(7)


@pytest.mark.parametrize("base", [1, 0, -3, 2.5, True])
def test_a_wrong_base_is_one_sentence(base: object) -> None:
    with pytest.raises(InputError, match="whole number of 2 or more"):
        ConventionalRounding(base)  # type: ignore[arg-type]


def test_magnitudes_are_refused() -> None:
    table = Table(axes=(), values=np.array(5, dtype=np.int64), kind="magnitude")
    with pytest.raises(InputError, match="whole counts"):
        ConventionalRounding().apply(table)
