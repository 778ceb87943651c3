"""Figures of releases that are written down: the same in every version and in every order of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lustrum.answer.figures import expected_figures, possible_tables
from lustrum.answer.figures.counts import _canonical  # figures are remembered by this form
from lustrum.model import Category, Release, Table, TableAxis
from lustrum.policy import Policy
from lustrum.protect import RandomRounding, RoundingChannel

MEASURE = Policy.model_validate({"dataset": "d"}).risk.spec


def axis(name: str, codes: list[str]) -> TableAxis:
    inner = [c for c in codes if c != "_T"]
    places = {c: (i,) for i, c in enumerate(sorted(inner))} | {"_T": tuple(range(len(inner)))}
    return TableAxis(name, name, tuple(Category(c, c, places[c]) for c in codes))


def made(*, bounds: bool = True, channel: Any = None, structural: bool = False) -> Release:
    """Three by four cells, no two lines alike."""
    values = np.array([[0, 3, 6, 9], [3, 3, 0, 12], [6, 0, 0, 30]])
    status = np.full(values.shape, "F")
    low = np.maximum(values - 2, 0) if bounds else None
    high = values + np.array([[2, 2, 1, 2], [2, 0, 2, 2], [2, 2, 2, 9]]) if bounds else None
    mask = values == 0
    mask[0, 0] = False
    return Release(
        (axis("r", ["1", "2", "3"]), axis("c", ["a", "b", "c", "d"])),
        values, status, {"method": "made-up"}, channel,
        least=low, most=high, structural=mask if structural else None,
    )  # fmt: skip


def turned(release: Release, picks: list[list[int]], transpose: bool) -> Release:
    """The same table with its categories and axes in another order."""
    part = release.take([np.array(p) for p in picks])
    if not transpose:
        return part
    swap = {
        name: None if (array := getattr(part, name)) is None else np.ascontiguousarray(array.T)
        for name in ("numbers", "status", "least", "most", "structural")
    }
    return Release(
        part.axes[::-1], swap["numbers"], swap["status"], part.method, part.channel,
        least=swap["least"], most=swap["most"], structural=swap["structural"],
    )  # fmt: skip


CASES = {
    "bounds": (made(), (0.179, 0.07, 0.82)),
    "structural": (made(structural=True), (0.148, 0.075, 0.888)),
    "channel": (made(bounds=False, channel=RoundingChannel(3)), (0.213, 0.082, 0.853)),
    "both": (made(channel=RoundingChannel(3)), (0.209, 0.082, 0.854)),
    "nothing": (made(bounds=False), (0.289, 0.289, 1.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_figures_are_the_same_in_every_version_and_in_every_order(name: str) -> None:
    release, expected = CASES[name]
    found = expected_figures(release, MEASURE)
    assert (found.risk_before, found.risk_after, found.utility) == expected
    for picks, transpose in (
        ([[2, 0, 1], [0, 1, 2, 3]], False),
        ([[0, 1, 2], [3, 1, 0, 2]], False),
        ([[0, 1, 2], [0, 1, 2, 3]], True),
        ([[1, 2, 0], [2, 3, 1, 0]], True),
    ):
        assert expected_figures(turned(release, picks, transpose), MEASURE) == found


def test_a_release_that_hides_a_cell_has_no_figures() -> None:
    release = made()
    status = release.status.copy()
    status[1, 1] = "A"
    hidden = Release(release.axes, release.published, status, release.method)
    assert list(possible_tables(hidden)) == []
    found = expected_figures(hidden, MEASURE)
    assert (found.risk_before, found.risk_after, found.utility) == (None, None, None)


def test_possible_tables_lie_within_the_bounds_and_cover_them() -> None:
    for release in (made(), made(structural=True)):
        assert release.least is not None
        assert release.most is not None
        tables = list(possible_tables(release))
        assert len(tables) == 8
        low, high = release.least, release.most
        if release.structural is not None:
            low, high = (np.where(release.structural, 0, end) for end in (low, high))
        stacked = np.stack([table.values for table in tables])
        assert (stacked >= low).all()
        assert (stacked <= high).all()
        wide = high - low >= 2
        assert (stacked.max(axis=0) > stacked.min(axis=0))[wide].mean() > 0.5
        assert all(isinstance(table, Table) and table.axes == release.axes for table in tables)
    far = Release(
        (axis("r", ["1", "2"]),), np.array([100, 100]), np.array(["F", "F"]), {"method": "m"},
        least=np.array([0, 0]), most=np.array([10**6, 10**6]),
    )  # fmt: skip
    values = np.stack([table.values for table in possible_tables(far)])
    assert 36 <= values.min() < 60  # at most 64 from the number that is shown
    assert 140 < values.max() <= 164


def test_a_large_table_is_looked_at_less_often() -> None:
    codes = [f"{i:05}" for i in range(8000)]
    for size, turns in ((4999, 8), (5001, 7), (8000, 5)):
        values = np.arange(size) % 7
        release = Release(
            (axis("r", codes[:size]),), values, np.full(size, "F"), {"method": "m"},
            least=values, most=values + 1,
        )  # fmt: skip
        assert sum(1 for _ in possible_tables(release)) == turns


def test_where_the_channel_leads_to_no_number_shown_all_counts_are_alike() -> None:
    ends = {"least": np.array([3, 2, 0]), "most": np.array([6, 9, 4])}
    shown = (axis("r", ["1", "2", "3"]),), np.array([4, 5, 1]), np.full(3, "F"), {"method": "m"}
    odd = Release(*shown, RoundingChannel(3), **ends)
    plain = Release(*shown, None, **ends)
    ours, theirs = ([t.values.tolist() for t in possible_tables(r)] for r in (odd, plain))
    assert ours == theirs


def test_every_order_of_a_table_is_put_into_one_order_before_it_is_looked_at() -> None:
    """Figures of a small table round off what would differ from order to order in a large one."""
    plain = made(structural=True)
    first = _canonical(plain)
    assert [axis.name for axis in first.axes] == ["r", "c"]  # the shorter one first
    assert np.array_equal(first.published, plain.published)
    for picks, transpose in (
        ([[2, 0, 1], [0, 1, 2, 3]], False),
        ([[0, 1, 2], [3, 1, 0, 2]], False),
        ([[1, 2, 0], [2, 3, 1, 0]], True),
    ):
        other = _canonical(turned(plain, picks, transpose))
        assert other.axes == first.axes
        for name in ("numbers", "status", "least", "most", "structural"):
            assert np.array_equal(getattr(other, name), getattr(first, name))


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
        assert ((release.least <= table.values) & (table.values <= release.most)).all()
        assert table.structural is not None
        assert table.unit == release.unit
