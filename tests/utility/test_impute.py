from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError, Table
from lustrum.utility import AverageDistance, HellingerUtility, Impute, compare
from lustrum.utility.impute import Rule, spread
from utility.cases import QUICK, add_totals, grids, release_of, with_totals


def test_without_a_rule_suppressed_cells_are_refused() -> None:
    table = Table.from_counts([1, 5])
    release = release_of(table, [0, 5], hidden=[True, False])
    with pytest.raises(InputError, match="suppressed"):
        HellingerUtility().of(table, release)


def test_zero_and_midpoint_put_in_what_they_say() -> None:
    table = Table.from_counts([4, 5])
    release = release_of(
        table, [99, 5], hidden=[True, False], least=np.array([1, 5]), most=np.array([4, 5])
    )
    assert compare(table, release, Impute("zero")).published.tolist() == [0, 5]
    assert compare(table, release, Impute("midpoint")).published.tolist() == [2.5, 5]
    assert AverageDistance(Impute("midpoint")).of(table, release) == 0.75


def test_the_midpoint_needs_bounds() -> None:
    table = Table.from_counts([4, 5])
    with pytest.raises(InputError, match="bounds"):
        Impute("midpoint").fill(release_of(table, [0, 5], hidden=[True, False]))


@QUICK
@given(grids(), st.data())
def test_one_suppressed_cell_is_what_the_totals_leave(
    inner: np.ndarray, data: st.DataObject
) -> None:
    table = with_totals(inner, "abc"[: inner.ndim])
    place = tuple(data.draw(st.integers(0, n - 1)) for n in inner.shape)
    hidden = np.zeros(table.shape, dtype=bool)
    hidden[place] = True
    filled = Impute("proportional").fill(release_of(table, table.values, hidden))
    assert filled == pytest.approx(inner)


@QUICK
@given(grids(), st.data())
def test_a_proportional_fill_meets_every_shown_total(
    inner: np.ndarray, data: st.DataObject
) -> None:
    table = with_totals(inner, "abc"[: inner.ndim])
    size = inner.size
    flags = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    hidden = np.zeros(table.shape, dtype=bool)
    hidden[tuple(slice(0, n) for n in inner.shape)] = np.reshape(flags, inner.shape)
    filled = Impute("proportional").fill(release_of(table, table.values, hidden))
    for axis in range(inner.ndim):
        assert filled.sum(axis=axis) == pytest.approx(inner.sum(axis=axis), rel=1e-3, abs=1e-3)


def test_a_wholly_suppressed_table_becomes_the_product_of_its_margins() -> None:
    inner = np.array([[1, 5], [9, 3]])
    table = with_totals(inner, "ab")
    hidden = np.zeros((3, 3), dtype=bool)
    hidden[:2, :2] = True
    filled = Impute("proportional").fill(release_of(table, table.values, hidden))
    assert filled == pytest.approx(np.outer([6, 12], [10, 8]) / 18)


def test_a_suppressed_cell_below_no_total_is_refused() -> None:
    table = Table.from_counts([[1, 2], [3, 4]])
    release = release_of(table, table.values, hidden=[[True, False], [False, False]])
    with pytest.raises(InputError, match="below no total"):
        Impute("proportional").fill(release)


def test_a_suppressed_total_is_not_used() -> None:
    table = with_totals([[1, 5], [9, 3]], "ab")
    hidden = np.zeros((3, 3), dtype=bool)
    hidden[0, :] = True
    filled = Impute("proportional").fill(release_of(table, table.values, hidden))
    assert filled[0].tolist() == pytest.approx([1, 5])


@QUICK
@given(st.sampled_from(["zero", "midpoint", "proportional"]), st.integers(0, 1000))
def test_the_value_behind_a_suppressed_cell_is_never_looked_at(rule: str, secret: int) -> None:
    table = with_totals([[1, 5], [9, 3]], "ab")
    hidden = np.zeros((3, 3), dtype=bool)
    hidden[:2, 0] = True
    filled = []
    for value in (0, secret):
        shown = table.values.copy()
        shown[hidden] = value
        bounds = {"least": np.zeros((3, 3), dtype=np.int64), "most": np.full((3, 3), 20)}
        filled.append(Impute(cast(Rule, rule)).fill(release_of(table, shown, hidden, **bounds)))
    assert np.array_equal(*filled)


def test_structural_zeros_take_no_share_of_what_is_left() -> None:
    counted = with_totals([[0, 6], [1, 1]], "ab")
    structural = np.zeros(counted.shape, dtype=bool)
    structural[0, 0] = True
    table = Table(axes=counted.axes, values=counted.values, structural=structural)
    hidden = np.zeros(table.shape, dtype=bool)
    hidden[0, :2] = True
    pair = compare(table, release_of(table, table.values, hidden), Impute("proportional"))
    assert pair.published.tolist() == [[0, 6], [1, 1]]


def test_totals_that_contradict_each_other_end_without_error() -> None:
    cells = spread(
        np.zeros((2, 2)),
        np.ones((2, 2), dtype=bool),
        [((1,), np.array([[4.0], [4.0]])), ((0,), np.array([[1.0, 2.0]]))],
    )
    assert np.isfinite(cells).all()


def test_an_unknown_rule_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="midpoint"):
        Impute(cast(Rule, "midpiont"))


def test_subtotals_are_no_inner_cells() -> None:
    table = with_totals([[1, 2], [3, 4]], "ab")
    shown = add_totals(np.array([[1, 2], [3, 4]]))
    shown[2, 2] = 99
    assert AverageDistance().of(table, release_of(table, shown)) == 0
