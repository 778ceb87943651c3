"""Conventional rounding: nearest, halves up, and honest about what the public can know."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.protect.rounding.cells import ConventionalRounding, NearestChannel

counts = st.lists(st.integers(0, 10_000), min_size=1, max_size=40)


def axis(name: str, size: int) -> TableAxis:
    parts = tuple(Category(str(i), str(i), (i,)) for i in range(size))
    return TableAxis(name, name, (*parts, Category("_T", "Total", tuple(range(size)))))


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


def test_magnitudes_are_refused() -> None:
    table = Table(axes=(), values=np.array(5, dtype=np.int64), kind="magnitude")
    with pytest.raises(InputError, match="whole counts"):
        ConventionalRounding().apply(table)
