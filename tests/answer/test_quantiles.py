"""Quantiles from protected histograms, against fractions and against every table that the bounds allow."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.answer.statistics import quantile
from lustrum.model import InputError, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED


def histogram(
    counts: list[int], low: list[int] | None = None, high: list[int] | None = None
) -> Release:
    return Release(
        axes=(TableAxis.plain("age", [str(i) for i in range(len(counts))]),),
        numbers=np.array(counts),
        status=np.full(len(counts), "F"),
        method={"method": "x"},
        least=None if low is None else np.array(low),
        most=None if high is None else np.array(high),
    )


def exact(counts: tuple[int, ...], edges: tuple[float, ...], at: Fraction) -> Fraction | None:
    """The same by its definition: the first class that reaches the share, evenly filled."""
    wanted, before = at * sum(counts), 0
    for k, count in enumerate(counts):
        if count and before + count >= wanted:
            if k + 1 >= len(edges):
                return None
            width = Fraction(edges[k + 1]) - Fraction(edges[k])
            return Fraction(edges[k]) + (wanted - before) / count * width
        before += count
    return None


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=5),
    st.sampled_from([0.25, 0.5, 0.9]),
    st.booleans(),
)
def test_quantiles_agree_with_their_definition(counts: list[int], at: float, is_open: bool) -> None:
    edges = tuple(float(3 * k * k) for k in range(len(counts) + (not is_open)))
    values, exists, low, high = quantile(histogram(counts), edges, at, 2)
    expected = exact(tuple(counts), edges, Fraction(str(at)))
    assert bool(exists) == (expected is not None)
    assert low is None
    assert high is None
    if expected is not None:
        assert abs(Fraction(int(values), 100) - expected) <= Fraction(1, 200)


def place(counts: tuple[int, ...], at: Fraction) -> int | None:
    """The first class that reaches the share."""
    running = [sum(counts[: k + 1]) for k in range(len(counts))]
    reached = [k for k, r in enumerate(running) if counts[k] and r >= at * running[-1]]
    return reached[0] if reached else None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=4),
    st.sampled_from([0.1, 0.25, 0.5, 0.75]),
    st.booleans(),
)
def test_bounds_are_the_ends_of_the_classes_that_some_true_table_reaches(
    cells: list[tuple[int, int]], at: float, is_open: bool
) -> None:
    """All tables within the bounds are looked at, so that the ends are neither too narrow nor too wide."""
    low, high = [a for a, _ in cells], [a + b for a, b in cells]
    edges = tuple(2.5 * k - 3 for k in range(len(cells) + (not is_open)))
    _, _, least, most = quantile(histogram(high, low, high), edges, at, 0)
    assert least is not None
    assert most is not None
    tables = product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))
    reached = {place(counts, Fraction(str(at))) for counts in tables} - {None}
    if reached:
        top = max(k for k in reached if k is not None) + 1
        assert int(least) == math.floor(edges[min(k for k in reached if k is not None)])
        assert int(most) == (math.ceil(edges[top]) if top < len(edges) else UNBOUNDED)


def test_what_is_unknown_leaves_every_class_open_and_nothing_below_0_counts() -> None:
    free = histogram([4, 4, 4], [-5, -5, -5], [UNBOUNDED] * 3)
    _, _, least, most = quantile(free, (0, 5, 10, 15), 0.5, 1)
    assert [int(x) for x in (least, most) if x is not None] == [0, 150]
    # Six above the first class at least, and the first has five at most.
    half = histogram([4, 6, 4], [-2, 6, -1], [5, UNBOUNDED, UNBOUNDED])
    _, _, least, most = quantile(half, (0, 5, 10, 15), 0.5, 1)
    assert [int(x) for x in (least, most) if x is not None] == [50, 150]


def test_large_counts_are_compared_exactly() -> None:
    """One person more or less decides in which class the first tenth ends."""
    tenth = 10**11
    for below, class_ in ((tenth, 0), (tenth - 1, 1)):
        counts = [below, 9 * tenth]
        exactly = histogram(counts, counts, counts)
        values, exists, least, most = quantile(exactly, (0, 5, 10), 0.1, 0)
        assert exists
        ends = [int(x) for x in (least, most) if x is not None]
        assert ends == [5 * class_, 5 * class_ + 5]
        assert values == 5


def test_cells_have_quantiles_of_their_own_rounded_to_the_nearest() -> None:
    axes = (TableAxis.plain("a", list("123456")), TableAxis.plain("age", ["x", "y"]))
    counts = np.array([[1, 3], [3, 0], [0, 0], [4, 4], [0, 2], [1, 0]])
    status = np.full(counts.shape, "F")
    status[3, 1] = "N"
    shown = Release(axes, counts, status, {"method": "x"}, least=counts, most=counts)
    values, exists, least, most = quantile(shown, (-9.0, 0.0, 1.8), 0.5, 0)
    # A third of the second class is 0.6; half of the first is -4.5; nobody, or a class hidden, has none.
    assert exists.tolist() == [True, True, False, False, True, True]
    assert values.tolist() == [1, -5, 0, 0, 1, -5]
    tenths, _, _, _ = quantile(shown, (-9.0, 0.0, 1.8), 0.5, 1)
    assert tenths.tolist() == [6, -45, 0, 0, 9, -45]
    assert least is not None
    assert most is not None
    assert [least[i] for i in (0, 1, 4, 5)] == [0, -9, 0, -9]
    assert [most[i] for i in (0, 1, 4, 5)] == [2, 0, 2, 0]
    # What ends exactly with a class lies in it, though the next one is open.
    values, exists, _, _ = quantile(histogram([1, 1]), (0, 5), 0.5, 0)
    assert exists
    assert values == 5


def test_a_variable_has_an_edge_for_each_class() -> None:
    for edges in ((0.0,), (0.0, 1.0, 2.0, 3.0)):
        with pytest.raises(InputError, match="one for every class"):
            quantile(histogram([1, 2]), edges, 0.5, 0)


def test_a_median_in_the_open_class_is_not_made_up() -> None:
    values, exists, _, high = quantile(
        histogram([1, 1, 8], [0, 0, 5], [2, 2, 9]), (0, 5, 10), 0.5, 1
    )
    assert not exists
    assert values == 0
    assert high is not None
    assert high == UNBOUNDED
