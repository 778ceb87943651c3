"""Figures that a reader can expect: means over tables that follow the belief about a release."""

from __future__ import annotations

import numpy as np

from lustrum.answer.figures import expected_figures, possible_tables
from lustrum.model import Release, Table, TableAxis
from lustrum.protect import RandomRounding
from lustrum.risk import EntropyRisk


def rounded(counts: np.ndarray, structural: np.ndarray | None = None) -> Release:
    axes = tuple(
        TableAxis.plain(f"v{i}", [f"{c:03d}" for c in range(size)])
        for i, size in enumerate(counts.shape)
    )
    return RandomRounding(base=3).apply(Table(axes, counts, structural=structural), rng=1)


def test_possible_tables_hold_each_value_as_often_as_a_reader_believes() -> None:
    # Multiples of 3 stay. Behind a 3 lie 1 to 5 with 1, 2, 3, 2 and 1 ninths, behind a 0 lie 0 to 2 with 3, 2
    # and 1 sixths.
    counts = np.repeat([0, 3], [60, 90])
    release = rounded(counts)
    tables = [table.values for table in possible_tables(release)]
    assert len(tables) == 8
    for values in tables:
        zeros, threes = values[:60], values[60:]
        assert np.abs(np.bincount(zeros, minlength=3) - [30, 20, 10]).max() <= 1
        assert np.abs(np.bincount(threes, minlength=6) - [0, 10, 20, 30, 20, 10]).max() <= 1
    mean = np.mean(tables, axis=0)
    assert abs(mean[:60].mean() - 2 / 3) < 0.02
    assert abs(mean[60:].mean() - 3) < 0.02
    few = [table.values.tolist() for table in possible_tables(rounded(np.array([3, 3, 0, 6])))]
    assert len({tuple(values) for values in few}) > 3
    assert len({tuple(sorted(values)) for values in few}) > 3


def test_a_cell_that_cannot_exist_is_empty_in_every_possible_table() -> None:
    empty = np.array([[False, False, True], [True, False, False]])
    release = rounded(np.array([[3, 7, 0], [0, 12, 2]]), empty)
    tables = list(possible_tables(release))
    assert tables
    for table in tables:
        assert not table.values[empty].any()
        assert release.low is not None
        assert release.high is not None
        assert ((release.low <= table.values) & (table.values <= release.high)).all()
        assert table.structural is not None
        assert table.unit == release.unit


def test_the_order_of_axes_and_categories_changes_no_figure() -> None:
    rng = np.random.default_rng(4)
    release = rounded(rng.poisson(4, (4, 6)))
    risk = EntropyRisk()
    figures = expected_figures(release, risk)
    assert figures.risk_before is not None
    turned = release.take([np.array([3, 1, 0, 2]), np.array([5, 0, 4, 1, 2, 3])])
    assert expected_figures(turned, risk) == figures
