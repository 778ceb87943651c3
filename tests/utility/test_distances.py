from __future__ import annotations

import math

import pytest
from hypothesis import given

from lustrum.model import InputError, Table
from lustrum.utility import (
    AverageDistance,
    AverageRelativeDistance,
    ExactCells,
    LargestDeviation,
    MeanSquaredPrecision,
)
from utility.cases import QUICK, Pair, count_pairs, release_of


@QUICK
@given(count_pairs())
def test_distances_are_what_loops_make_them(pair: Pair) -> None:
    F, G = pair
    gaps = [abs(f - g) for f, g in zip(F, G, strict=True)]
    relative = [gap / max(f, 1) for gap, f in zip(gaps, F, strict=True)]
    assert AverageDistance().of_cells(F, G) == pytest.approx(sum(gaps) / len(F))
    assert AverageRelativeDistance().of_cells(F, G) == pytest.approx(sum(relative) / len(F))
    assert LargestDeviation().of_cells(F, G) == max(gaps)
    assert ExactCells().of_cells(F, G) == pytest.approx(gaps.count(0) / len(F))
    error = sum(gap**2 for gap in gaps) / len(F)
    assert MeanSquaredPrecision().of_cells(F, G) == pytest.approx(1 / error if error else math.inf)


def test_exact_cells_and_tiny_errors_have_infinite_precision_and_no_warning() -> None:
    assert MeanSquaredPrecision().of_cells([1, 2], [1, 2]) == math.inf
    assert MeanSquaredPrecision().of_cells([0.0], [1e-200]) == math.inf
    assert MeanSquaredPrecision().of_cells([0.0], [1e-160]) == math.inf


def test_the_floor_measures_what_stands_in_place_of_nothing() -> None:
    assert AverageRelativeDistance(floor=2.0).of_cells([0, 10], [3, 10]) == 0.75
    with pytest.raises(InputError, match="above 0"):
        AverageRelativeDistance(floor=0.0)


def test_magnitudes_are_measured_in_their_unit_not_in_their_smallest_part() -> None:
    counts = Table.from_counts([150, 250])
    cents = Table(axes=counts.axes, values=counts.values, kind="magnitude", decimals=2)
    assert AverageDistance().of(cents, release_of(cents, [250, 250])) == pytest.approx(0.5)


def test_different_shapes_nan_and_nothing_are_one_sentence_each() -> None:
    with pytest.raises(InputError, match="different shapes"):
        AverageDistance().of_cells([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="finite"):
        AverageDistance().of_cells([1.0], [math.nan])
    with pytest.raises(InputError, match="no cells"):
        AverageDistance().of_cells([], [])
