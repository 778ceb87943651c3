"""What holds for every utility measure."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lustrum.utility
from lustrum.model import InputError, Table
from lustrum.utility import (
    AverageDistance,
    AverageRelativeDistance,
    BetweenVarianceChange,
    ChiSquareChange,
    ConditionalError,
    CramersVChange,
    Divergence,
    EntropyChange,
    ExactCells,
    HellingerDistance,
    HellingerShares,
    HellingerUtility,
    Impute,
    LargestDeviation,
    LargestMarginError,
    MarginsKept,
    MeanSquaredPrecision,
    RankCorrelation,
    SuppressedCells,
    SuppressedValue,
    UtilityMeasure,
    compare,
)
from utility.cases import BRIEF, add_totals, grids, release_of, with_totals

MEASURES: tuple[UtilityMeasure, ...] = (
    AverageDistance(),
    AverageRelativeDistance(),
    BetweenVarianceChange("a", "b", "1"),
    ChiSquareChange(),
    ConditionalError("b"),
    CramersVChange(),
    Divergence(),
    EntropyChange(),
    ExactCells(),
    HellingerDistance(),
    HellingerShares(),
    HellingerUtility(),
    LargestDeviation(),
    LargestMarginError(),
    MarginsKept(),
    MeanSquaredPrecision(),
    RankCorrelation(),
    SuppressedCells(),
    SuppressedValue(),
)
each = pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.name)


def test_every_exported_measure_is_among_those_tested_and_has_its_own_name() -> None:
    exported = {
        n for n in lustrum.utility.__all__ if hasattr(getattr(lustrum.utility, n), "better")
    }
    assert exported - {"UtilityMeasure"} == {type(m).__name__ for m in MEASURES}
    assert len({m.name for m in MEASURES}) == len(MEASURES)


@each
def test_a_measure_is_frozen_and_says_its_range_and_its_better_end(measure: UtilityMeasure) -> None:
    assert measure.better in ("higher", "lower")
    assert measure.range[0] < measure.range[1]
    assert dataclasses.is_dataclass(measure)
    with pytest.raises(dataclasses.FrozenInstanceError):
        measure.extra = 1  # type: ignore[attr-defined]


@each
@BRIEF
@given(st.data())
def test_a_value_lies_in_its_range_and_nothing_is_better_than_the_truth(
    measure: UtilityMeasure, data: st.DataObject
) -> None:
    counts = data.draw(grids())
    cells = st.lists(st.integers(1, 20), min_size=counts.size, max_size=counts.size)
    table = Table.from_counts(counts, names="abc"[: counts.ndim])
    try:
        best = measure.of(table, release_of(table, counts))
        value = measure.of(table, release_of(table, np.reshape(data.draw(cells), counts.shape)))
    except InputError as error:
        assume("equal" not in str(error) and "do not differ" not in str(error))
        raise
    low, high = measure.range
    assert low <= value <= high
    ends = {"higher": high, "lower": low}
    assert best == pytest.approx(ends[measure.better], abs=1e-9)


@each
def test_totals_beside_the_inner_cells_change_nothing(measure: UtilityMeasure) -> None:
    inner, noisy = np.array([[1, 5, 2], [9, 3, 4]]), np.array([[2, 4, 3], [9, 6, 1]])
    plain = Table.from_counts(inner, names=["a", "b"], codes=["01", "012"])
    full = with_totals(inner, "ab")
    alone = measure.of(plain, release_of(plain, noisy))
    assert measure.of(full, release_of(full, add_totals(noisy))) == pytest.approx(alone)


@each
def test_a_release_of_another_shape_is_refused(measure: UtilityMeasure) -> None:
    table, other = Table.from_counts([[1, 2], [3, 4]]), Table.from_counts([[1, 2]])
    with pytest.raises(InputError, match="different shapes"):
        measure.of(table, release_of(other, other.values))


@each
def test_suppressed_cells_are_refused_without_a_rule(measure: UtilityMeasure) -> None:
    table = Table.from_counts([[1, 2], [3, 4]], names=["a", "b"])
    release = release_of(table, table.values, hidden=[[True, False], [False, False]])
    if isinstance(measure, SuppressedCells | SuppressedValue):
        assert measure.of(table, release) == 1
        return
    with pytest.raises(InputError, match="suppressed"):
        measure.of(table, release)
    assert dataclasses.replace(measure, impute=Impute("zero")).impute == Impute("zero")


def test_structural_zeros_do_not_flatter_averages() -> None:
    counts = Table.from_counts([[0, 2], [3, 4]])
    structural = np.array([[True, False], [False, False]])
    table = Table(axes=counts.axes, values=counts.values, structural=structural)
    release = release_of(table, [[0, 3], [3, 4]])
    assert ExactCells().of(table, release) == pytest.approx(2 / 3)
    assert AverageDistance().of(table, release) == pytest.approx(1 / 3)
    nobody = Table(
        axes=counts.axes, values=0 * counts.values, structural=np.ones((2, 2), dtype=bool)
    )
    with pytest.raises(InputError, match="can hold anybody"):
        ExactCells().of(nobody, release)


def test_suppressed_value_is_in_the_unit_of_the_table_and_knows_no_sign() -> None:
    counts = Table.from_counts([150, 250, 1])
    table = Table(axes=counts.axes, values=counts.values * [1, -1, 1], kind="magnitude", decimals=2)
    release = release_of(table, [0, 0, 1], hidden=[True, True, False])
    assert SuppressedValue().of(table, release) == pytest.approx(4.0)
    assert SuppressedCells().of(table, release) == 2


def test_other_decimals_are_refused() -> None:
    counts = Table.from_counts([150, 250])
    table = Table(axes=counts.axes, values=counts.values, kind="magnitude", decimals=2)
    with pytest.raises(InputError, match="decimals"):
        AverageDistance().of(table, release_of(counts, [1, 2]))


def test_a_comparison_shows_no_number() -> None:
    table = Table.from_counts([[17, 23], [31, 47]])
    assert (
        repr(compare(table, release_of(table, table.values), Impute())) == "Comparison(2 x 2 cells)"
    )
