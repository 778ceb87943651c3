from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from lustrum.model import InputError, Table
from lustrum.utility import (
    AverageDistance,
    AverageRelativeDistance,
    Divergence,
    average_distance,
    average_relative_distance,
    cell_entropy,
    divergence,
    entropy_change,
    largest_deviation,
    mean_squared_precision,
    share_of_exact_cells,
)
from utility.cases import QUICK, Pair, count_pairs, release_of


@QUICK
@given(count_pairs())
def test_distances_are_what_loops_make_them(pair: Pair) -> None:
    F, G = pair
    gaps = [abs(f - g) for f, g in zip(F, G, strict=True)]
    relative = [gap / max(f, 1) for gap, f in zip(gaps, F, strict=True)]
    assert average_distance(F, G) == pytest.approx(sum(gaps) / len(F))
    assert average_relative_distance(F, G) == pytest.approx(sum(relative) / len(F))
    assert largest_deviation(F, G) == max(gaps)
    assert share_of_exact_cells(F, G) == pytest.approx(gaps.count(0) / len(F))
    error = sum(gap**2 for gap in gaps) / len(F)
    assert mean_squared_precision(F, G) == pytest.approx(1 / error if error else math.inf)


def test_exact_cells_and_tiny_errors_have_infinite_precision_and_no_warning() -> None:
    assert mean_squared_precision([1, 2], [1, 2]) == math.inf
    assert mean_squared_precision([0.0], [1e-200]) == math.inf
    assert mean_squared_precision([0.0], [1e-160]) == math.inf


def test_the_floor_measures_what_stands_in_place_of_nothing() -> None:
    assert average_relative_distance([0, 10], [3, 10], floor=2.0) == 0.75
    with pytest.raises(InputError, match="above 0"):
        AverageRelativeDistance(floor=0.0)


def test_magnitudes_are_measured_in_their_unit_not_in_their_smallest_part() -> None:
    counts = Table.from_counts([150, 250])
    cents = Table(axes=counts.axes, values=counts.values, kind="magnitude", decimals=2)
    assert AverageDistance().of(cents, release_of(cents, [250, 250])) == pytest.approx(0.5)


def test_different_shapes_nan_and_nothing_are_one_sentence_each() -> None:
    with pytest.raises(InputError, match="different shapes"):
        average_distance([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="finite"):
        average_distance([1.0], [math.nan])
    with pytest.raises(InputError, match="no cells"):
        average_distance([], [])


@QUICK
@given(count_pairs())
def test_entropies_are_those_of_scipy(pair: Pair) -> None:
    F, G = pair
    assert cell_entropy(F) == pytest.approx(entropy(F), abs=1e-12)
    assert entropy_change(F, G) == pytest.approx(entropy(G) - entropy(F), abs=1e-12)
    assert abs(entropy_change(F, G)) <= math.log(len(F)) + 1e-12


@QUICK
@given(count_pairs(least=1))
def test_the_divergence_is_that_of_scipy(pair: Pair) -> None:
    F, G = pair
    assert divergence(F, G) == pytest.approx(entropy(F, G), abs=1e-12)


@QUICK
@given(count_pairs(), st.floats(0.01, 2))
def test_smoothing_makes_the_divergence_exist(pair: Pair, extra: float) -> None:
    F, G = pair
    oracle = entropy([f + extra for f in F], [g + extra for g in G])
    assert divergence(F, G, extra) == pytest.approx(oracle, abs=1e-12)


def test_a_populated_cell_published_as_0_has_no_divergence() -> None:
    with pytest.raises(InputError, match="smoothing above 0"):
        divergence([1, 2], [0, 3])
    assert divergence([0, 3], [1, 2]) > 0
    with pytest.raises(InputError, match="0 or more"):
        Divergence(smoothing=-1)


def test_nobody_has_no_information() -> None:
    with pytest.raises(InputError, match="without anybody"):
        cell_entropy([0, 0])
    with pytest.raises(InputError, match="without anybody"):
        divergence([0, 0], [1, 1])
