"""Quantiles from protected histograms, against fractions and against every table that the bounds allow."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model import (
    Release,
    TableAxis,
)
from lustrum.release.quantiles import quantile
from lustrum.structure import UNBOUNDED


def histogram(
    counts: list[int], low: list[int] | None = None, high: list[int] | None = None
) -> Release:
    return Release(
        axes=(TableAxis.plain("age", [str(i) for i in range(len(counts))]),),
        published=np.array(counts),
        status=np.full(len(counts), "F"),
        method={"method": "x"},
        low=None if low is None else np.array(low),
        high=None if high is None else np.array(high),
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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=3),
    st.sampled_from([0.1, 0.5, 0.75]),
)
def test_every_true_table_within_the_bounds_has_its_quantile_within_the_bounds(
    cells: list[tuple[int, int]], at: float
) -> None:
    low, high = [a for a, _ in cells], [a + b for a, b in cells]
    edges = tuple(float(5 * k) for k in range(len(cells) + 1))
    _, _, least, most = quantile(histogram(high, low, high), edges, at, 0)
    assert least is not None
    assert most is not None
    for counts in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
        true = exact(counts, edges, Fraction(str(at)))
        if true is not None:
            assert int(least) <= true <= (int(most) if most < UNBOUNDED else 10**9)


def test_a_median_in_the_open_class_is_not_made_up() -> None:
    values, exists, _, high = quantile(
        histogram([1, 1, 8], [0, 0, 5], [2, 2, 9]), (0, 5, 10), 0.5, 1
    )
    assert not exists
    assert values == 0
    assert high is not None
    assert high == UNBOUNDED
