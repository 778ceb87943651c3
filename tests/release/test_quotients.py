"""Quotients of protected numbers, digit by digit, and their bounds against every pair of true numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.model import Release, Statistic, TableAxis
from lustrum.release import statistics
from lustrum.structure import UNBOUNDED


def release(
    values: Any, ends: Any = None, decimals: int = 0, status: Any = None, codes: Any = None
) -> Release:
    values = np.atleast_1d(np.asarray(values))
    low, high = (None, None) if ends is None else map(np.asarray, zip(*ends, strict=True))
    return Release(
        (TableAxis.plain("a", codes or [str(i) for i in range(values.size)]),),
        values,
        np.full(values.shape, "F") if status is None else np.array(status),
        {"method": "made-up"},
        low=low,
        high=high,
        decimals=decimals,
    )


def quotient(over: Release, under: Release, text: str, decimals: int = 1, unit: str = "") -> Any:
    words: Any = SimpleNamespace(decimals=decimals, unit=unit)
    return statistics._quotient(over, under, Statistic.parse(text), words)


def nearest(value: Fraction) -> int:
    """Halves go away from 0."""
    return int(math.copysign(1, value)) * ((2 * abs(value) + 1) // 2) if value else 0


@pytest.mark.parametrize(("unit", "percent"), [("", 0), ("%", 2)])
@pytest.mark.parametrize(("one", "other"), [(0, 0), (2, 0), (0, 2), (1, 3), (3, 1)])
def test_a_quotient_is_the_nearest_number_with_its_decimals(
    unit: str, percent: int, one: int, other: int
) -> None:
    pairs = [(a, b) for a in (-7, -5, 0, 1, 5, 25, 1003) for b in (-6, -2, 0, 1, 3, 4, 8)]
    over = release([a for a, _ in pairs], decimals=one)
    under = release([b for _, b in pairs], decimals=other)
    for text, positive in (("ratio:t:e", False), ("mean:t", True)):
        found = quotient(over, under, text, 2, unit)
        for k, (a, b) in enumerate(pairs):
            undefined = b <= 0 if positive else b == 0
            assert bool(found.undefined[k]) == undefined
            if not undefined:
                exact = Fraction(a, 10**one) / Fraction(b, 10**other)
                assert int(found.published[k]) == nearest(exact * 10 ** (2 + percent))
            else:
                assert found.published[k] == 0
        assert found.low is None
        assert found.high is None


def test_growth_is_less_one_hundred_percent_and_needs_a_positive_base() -> None:
    found = quotient(release([110, 50, 7]), release([100, 0, -7]), "growth:t:u", 1, "%")
    assert found.published.tolist() == [100, 0, 0]
    assert found.undefined.tolist() == [False, True, True]
    ends = quotient(
        release([110, 110], [(100, 120), (-UNBOUNDED, UNBOUNDED)]),
        release([100, 100], [(80, 100), (80, 100)]),
        "growth:t:u", 1, "%",
    )  # fmt: skip
    assert ends.low.tolist() == [0, -UNBOUNDED]
    assert ends.high.tolist() == [500, UNBOUNDED]


def test_bounds_hold_every_pair_of_true_numbers_and_are_reached() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        al, bl = rng.integers(-6, 7, 2).tolist()
        ah, bh = al + int(rng.integers(0, 5)), bl + int(rng.integers(0, 5))
        a, b = int(rng.integers(al, ah + 1)), int(rng.integers(bl, bh + 1))
        found = quotient(release([a], [(al, ah)]), release([b], [(bl, bh)]), "ratio:t:e", 1)
        low, high = int(found.low[0]), int(found.high[0])
        if b == 0:
            assert (low, high) == (-UNBOUNDED, UNBOUNDED)
            continue
        true = [Fraction(x, y) * 10 for x in range(al, ah + 1) for y in range(bl, bh + 1) if y != 0]
        assert all(low <= value <= high for value in true)
        if bl > 0 or bh < 0:
            assert (low, high) == (math.floor(min(true)), math.ceil(max(true)))
        elif bl == 0:
            # Next to 0 a quotient grows without end, unless its numerator keeps one sign.
            assert low == (math.floor(min(true)) if al >= 0 else -UNBOUNDED)
            assert high == (math.ceil(max(true)) if ah <= 0 else UNBOUNDED)
        else:
            assert low == -UNBOUNDED or bh == 0
            assert high == UNBOUNDED or bh == 0


def test_what_is_unbounded_stays_so_and_an_endless_denominator_leaves_nothing() -> None:
    over = release([5, 5, -5, 5], [(1, UNBOUNDED), (-UNBOUNDED, 6), (-UNBOUNDED, -1), (4, 6)])
    under = release([2, 2, 2, 2], [(1, 3), (1, 3), (1, 3), (2, UNBOUNDED)])
    found = quotient(over, under, "ratio:t:e", 1)
    assert found.low.tolist() == [3, -UNBOUNDED, -UNBOUNDED, 0]
    assert found.high.tolist() == [UNBOUNDED, 60, -3, 30]


def test_a_share_of_a_count_lies_between_nothing_and_all() -> None:
    over = release([4, 1], [(3, 9), (0, 2)])
    under = release([5, 5], [(4, 6), (4, 6)])
    share = quotient(over, under, "share:count:total", 1, "%")
    assert share.published.tolist() == [800, 200]
    assert share.low.tolist() == [500, 0]
    assert share.high.tolist() == [1000, 500]
    of_sums = quotient(over, under, "share:t:total", 1, "%")
    assert of_sums.high.tolist() == [2250, 500]


def test_what_is_hidden_in_a_part_is_hidden_in_the_quotient() -> None:
    over = release([4, 9, 6], status=["F", "A", "F"])
    under = release([2, 3, 0], status=["D", "F", "F"])
    found = quotient(over, under, "mean:t", 0)
    assert found.status.tolist() == ["D", "A", "F"]
    assert found.published.tolist() == [0, 0, 0]
    assert found.undefined.tolist() == [False, False, True]


def test_large_numbers_are_divided_exactly_and_never_wrap_around() -> None:
    for a, b in ((2**61, 3), (-(2**61), 7), (2**53 + 1, 2**40), (10**17, 9)):
        for up, down in ((1, 1), (10**4, 1), (1, 10**4), (10**6, 10**2)):
            exact = Fraction(a * up, b * down)
            for rounding, expected in (
                ("near", nearest(exact)), ("down", math.floor(exact)), ("up", math.ceil(exact)),
            ):  # fmt: skip
                found = statistics._divided(np.array([a]), np.array([b]), up, down, rounding)  # type: ignore[arg-type]
                assert int(found[0]) == max(-UNBOUNDED, min(expected, UNBOUNDED))
    times = statistics._times(np.array([5, UNBOUNDED, -UNBOUNDED, 2**61, -(2**61)]), 100)
    assert times.tolist() == [500, UNBOUNDED, -UNBOUNDED, UNBOUNDED, -UNBOUNDED]
