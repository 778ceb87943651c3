"""Figures beside sums: bounds hold for every contributor and outcome, and no true number goes into them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lustrum.answer.figures import sum_figures
from lustrum.answer.figures.words import attacker_words, error_words, growth_words, summary
from lustrum.audit.contribution import contribution_belief
from lustrum.model import Category, CellStatus, Measure, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.cell_key import CellKeyMagnitude
from lustrum.protect.cell_key.magnitudes import flex
from lustrum.protect.magnitudes.factors import needed_factors
from lustrum.protect.magnitudes.report import (
    PublicFactors,
    by_variables,
    errors_by_size,
    growth_by_variables,
    relative_errors,
)
from lustrum.protect.rounding.cells import RoundingChannel
from lustrum.public.bundle.sums import sum_bounds
from lustrum.public.noise import FactorNoise, KeyedNoise

FACTORS = needed_factors(Fraction(1, 20), "known")
PUBLIC = PublicFactors(
    {"method": "protected-magnitudes", "p": 5.0},
    FACTORS,
    {"turnover": {1: 1.0, 2: 2.5}},
    {"turnover": {100: 6.0, 10_000: 1.5}},
    {"turnover": {2: 3.0}},
)
NOISE = FactorNoise(PUBLIC, "turnover")
TURNOVER = Measure("turnover", "Turnover", "euro", earlier="before")


def moved(values: list[int], data: st.DataObject) -> list[int]:
    """Protected contributions: any direction and any amount that the factors allow."""
    least, most = FACTORS.amounts(np.array(values))
    out = []
    for x, low, high in zip(values, least.tolist(), most.tolist(), strict=True):
        amount = data.draw(st.integers(low, high))
        out.append(x + (amount if data.draw(st.booleans()) else -amount))
    return out


def table(published: list[int], records: list[int]) -> tuple[Release, Release]:
    """The sums and the counts of a table with one variable."""
    axis = TableAxis("a", "A", tuple(Category(str(i), str(i), (i,)) for i in range(len(published))))
    shown, most = np.array(published), np.array(records)
    low, high = sum_bounds(shown, most, FACTORS.most)
    words: dict[str, Any] = {"status": np.full(shown.shape, "F"), "method": {"method": "x"}}
    return (
        Release((axis,), shown, least=low, most=high, **words),
        Release((axis,), most, least=np.zeros_like(most), most=most, **words),
    )


@given(st.lists(st.integers(40, 10**6), min_size=2, max_size=6), st.data())
def test_the_second_largest_is_never_left_with_less(values: list[int], data: st.DataObject) -> None:
    values = sorted(values, reverse=True)
    shown = moved(values, data)
    published = sum(shown)
    low = sum_bounds(np.array([published]), np.array([len(values)]), FACTORS.most)[0]
    left = int(NOISE.left(np.array([published]), low)[0])
    assert left <= max(published - shown[1], 1)


def test_what_is_left_is_about_half_and_not_a_trivial_bound() -> None:
    low = sum_bounds(np.array([100_000]), np.array([5]), FACTORS.most)[0]
    left = int(NOISE.left(np.array([100_000]), low)[0])
    assert 0.38 < left / 100_000 < (1 - float(FACTORS.most)) / 2


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=6), st.data())
def test_the_largest_lies_in_the_interval_of_an_outsider(
    values: list[int], data: st.DataObject
) -> None:
    sums, counts = table([sum(moved(values, data))], [len(values)])
    figures = sum_figures(TURNOVER, sums, counts, NOISE, 1)
    assume(sums.published[0] > 0)
    outsider = figures.attackers[0]
    assert outsider.low <= max(values) <= outsider.high
    width = outsider.high - outsider.low + 1
    assert outsider.bits == pytest.approx(np.log2(width), rel=0.01)


def test_the_risk_is_one_over_the_entropy_where_least_is_left() -> None:
    sums, counts = table([5_000, 900, 70_000], [4, 3, 9])
    outsider, second, told = sum_figures(TURNOVER, sums, counts, NOISE, 1).attackers
    assert (second.attacker, second.published) == ("second-largest", 900)
    belief = contribution_belief(int(second.left), FACTORS.least, FACTORS.most)
    assert second.bits == pytest.approx(belief.bits, rel=0.01)
    assert second.risk == pytest.approx(1 / belief.bits, rel=0.01)
    assert second.low < second.left < second.high
    # One who knows the direction can say more, and one who knows no value can say less.
    assert told.bits < second.bits < outsider.bits
    assert told.within > second.within


def test_an_insider_is_left_with_what_the_least_possible_sum_leaves() -> None:
    """The noise of a cell key moves the sum itself, so that its lower bound counts and not its upper one."""
    spec = CellKeyMagnitude(largest_change=2, steps=4, small=0.1, large=0.1)
    noise = KeyedNoise(spec, 0)
    sums, counts = table([9_000, 2_000, 70_000], [4, 3, 9])
    low, high = spec.bounds(sums.published)
    (_, second) = sum_figures(
        TURNOVER, replace(sums, least=low, most=high), counts, noise, 1
    ).attackers
    assert (second.attacker, second.published) == ("second-largest", 2_000)
    assert second.left == noise.left(sums.published[1:2], low[1:2])[0]
    assert second.left < noise.left(sums.published[1:2], high[1:2])[0]


def test_figures_are_of_inner_cells_that_are_shown_and_above_zero() -> None:
    """A hidden cell would be the worst one, a 0 and a total would change the errors by size."""
    right = sum_figures(TURNOVER, *table([5_000, 70_000], [4, 9]), NOISE, 1)
    assert right.attackers
    sums, counts = table([5_000, 70_000, 900, 0, 75_900], [4, 9, 3, 1, 17])
    categories = (*sums.axes[0].categories[:4], Category("T", "all", (0, 1, 2, 3)))
    axes = (replace(sums.axes[0], categories=categories),)
    status = np.array(["F", "F", CellStatus.SECONDARY.value, "F", "F"])
    sums, counts = replace(sums, axes=axes, status=status), replace(counts, axes=axes)
    assert sum_figures(TURNOVER, sums, counts, NOISE, 1) == right


def test_attackers_need_both_bounds_and_an_outsider_a_finite_one() -> None:
    sums, counts = table([5_000, 900], [4, 3])
    for part in ("least", "most"):
        assert (
            sum_figures(TURNOVER, replace(sums, **{part: None}), counts, NOISE, 1).attackers == ()
        )
    known = sum_figures(TURNOVER, sums, counts, NOISE, 1).attackers
    endless = replace(sums, most=np.full(2, UNBOUNDED))
    assert sum_figures(TURNOVER, endless, counts, NOISE, 1).attackers == known[1:]
    partly = replace(sums, most=np.array([UNBOUNDED, sums.most[1]]))
    outsider = sum_figures(TURNOVER, partly, counts, NOISE, 1).attackers[0]
    assert (outsider.attacker, outsider.published) == ("outsider", 900)


@pytest.mark.parametrize(
    ("low", "high", "most", "share", "values"),
    [(90, 110, 4, 23, 88), (90, 110, 1, 90, 21), (100, 100, 1, 100, 1), (99, 100, 1, 99, 2)],
)
def test_an_outsider_counts_the_values_between_an_even_share_and_the_whole_sum(
    low: int, high: int, most: int, share: int, values: int
) -> None:
    sums, counts = table([100], [most])
    sums = replace(sums, least=np.array([low]), most=np.array([high]))
    outsider = sum_figures(TURNOVER, sums, counts, NOISE, 1).attackers[0]
    assert (outsider.low, outsider.high, outsider.left) == (share, high, 100)
    assert outsider.bits == float(f"{np.log2(values):.3g}")
    assert outsider.risk == (None if values == 1 else float(f"{1 / np.log2(values):.3g}"))


def test_the_most_contributors_follow_from_bounds_or_from_the_channel() -> None:
    """Without either only one unit is certain for the largest."""
    sums, counts = table([9_000], [6])
    least = int(sums.low[0])
    for released, most in (
        (counts, 6),
        (replace(counts, most=None, channel=RoundingChannel(3)), 8),
    ):
        outsider = sum_figures(TURNOVER, sums, released, NOISE, 1).attackers[0]
        assert outsider.low == -(-least // most)
    alone = sum_figures(TURNOVER, sums, replace(counts, most=None), NOISE, 1).attackers[0]
    assert alone.low == 1


def test_figures_have_three_digits_and_the_unit_of_the_measure() -> None:
    sums, counts = table([512_345, 90_001, 7_000_123], [4, 3, 9])
    plain = sum_figures(TURNOVER, sums, counts, NOISE, 1)
    cents = sum_figures(replace(TURNOVER, decimals=2), sums, counts, NOISE, 1)
    for one, other in zip(plain.attackers, cents.attackers, strict=True):
        assert one.risk is not None
        assert one.typical_risk is not None
        for figure in (one.bits, one.typical_bits, one.risk, one.typical_risk, one.within or 0.0):
            assert figure == float(f"{figure:.3g}")
        assert len(f"{one.bits:g}") > 3  # and not fewer
        for name in ("published", "left", "low", "high"):
            assert getattr(other, name) == pytest.approx(getattr(one, name) / 100, rel=1e-12)
        assert (other.bits, other.risk) == (one.bits, one.risk)
        assert one.risk == pytest.approx(1 / one.bits, rel=0.01)
        assert one.typical_risk == pytest.approx(1 / one.typical_bits, rel=0.01)
        assert one.typical_bits > one.bits
    assert [(e.least, e.most) for e in plain.errors] == [
        (10**4, 10**5),
        (10**5, 10**6),
        (10**6, 10**7),
    ]
    assert [(e.least, e.most) for e in cents.errors] == [
        (100, 1_000),
        (1_000, 10**4),
        (10**4, 10**5),
    ]


def test_sizes_are_powers_of_ten_of_the_unit_and_less_than_one_is_a_size_too() -> None:
    figures = sum_figures(
        replace(TURNOVER, decimals=2), *table([99, 100, 999, 1_000, 10_000], [2] * 5), NOISE, 1
    )
    sizes = [(error.least, error.most, error.cells) for error in figures.errors]
    assert sizes == [(0, 1, 1), (1, 10, 2), (10, 100, 1), (100, 1_000, 1)]


def test_less_is_open_the_less_is_left() -> None:
    bits = [NOISE.belief(left, left).bits for left in (2, 3, 5, 8, 20, 60, 200, 1000, 10**5, 10**8)]
    assert all(a < b for a, b in pairwise(bits))


@pytest.mark.parametrize(
    ("published", "records"),
    [([900, 5_000, 900, 70_000, 333], [3, 4, 5, 9, 2]), ([3, 2, 4, 5], [2, 2, 2, 2])],
)
def test_nothing_depends_on_the_order_of_the_cells(
    published: list[int], records: list[int]
) -> None:
    """Of small sums the same is left, so that the sums themselves decide."""
    right = sum_figures(TURNOVER, *table(published, records), NOISE, 1)
    turned = sum_figures(TURNOVER, *table(published[::-1], records[::-1]), NOISE, 1)
    assert turned == right


def test_errors_are_those_of_each_size_and_growth_of_the_variables() -> None:
    sums, counts = table([50, 500, 20_000, 30_000], [2, 2, 2, 2])
    figures = sum_figures(TURNOVER, sums, counts, NOISE, 1)
    assert [(e.least, e.most, e.cells, e.error) for e in figures.errors] == [
        (10, 100, 1, 6.0),
        (100, 1000, 1, 6.0),
        (10_000, 100_000, 2, 1.5),
    ]
    assert figures.growth == 3.0
    assert sum_figures(replace(TURNOVER, earlier=None), sums, counts, NOISE, 1).growth is None


def test_without_bounds_only_errors_are_stated() -> None:
    sums, counts = table([500], [2])
    figures = sum_figures(TURNOVER, replace(sums, least=None, most=None), counts, NOISE, 1)
    assert figures.attackers == ()
    assert figures.errors[0].error == 6.0
    assert summary(figures) == ""


def test_sums_that_nothing_bounds_leave_an_outsider_without_an_interval() -> None:
    sums, counts = table([500], [int(UNBOUNDED)])
    figures = sum_figures(TURNOVER, sums, counts, NOISE, 1)
    assert [a.attacker for a in figures.attackers] == [
        "second-largest",
        "second-largest-with-direction",
    ]


@pytest.mark.parametrize("left", [40, 1_000, 10**7])
def test_the_belief_behind_a_cell_key_follows_from_its_noise_table(left: int) -> None:
    """Against the plain way: every contribution, every coefficient, which of them shows what is left."""
    spec = CellKeyMagnitude(largest_change=2, steps=2, small=0.1, large=0.1)
    found = KeyedNoise(spec, 0).belief(left, 10**6)
    sizes, chances = spec.noise.sizes, spec.noise.chances
    weights: dict[int, float] = {}
    for size, chance in zip(sizes.tolist(), chances.tolist(), strict=True):
        for sign in (1, -1):
            stretch = 1 + 0.1 * sign * size / spec.steps
            near = round(left / stretch)
            weights[near] = weights.get(near, 0.0) + chance / 2 / stretch
    right = np.array([weights[int(v)] for v in found.values])
    assert found.values.size == len(weights)
    assert found.probability == pytest.approx(right / right.sum())


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=6), st.integers(-8, 8))
def test_a_keyed_sum_never_leaves_the_second_largest_less(values: list[int], step: int) -> None:
    spec = CellKeyMagnitude(largest_change=2, steps=4, small=0.1, large=0.1)
    values = sorted(values, reverse=True)
    published = np.array([sum(values) + round(values[0] * 0.1 * step / 4)])
    low = spec.bounds(published)[0]
    left = int(KeyedNoise(spec, 0).left(published, low)[0])
    assert left <= max(int(published[0]) - values[1], 1)


def test_public_errors_by_size_are_coarse_and_cautious() -> None:
    rng = np.random.default_rng(3)
    total = rng.integers(100, 10**6, 4000)
    noise = np.rint(total * rng.uniform(-0.05, 0.05, total.size) / np.sqrt(total / 100))
    found = errors_by_size(total, noise, b"k" * 32, "turnover")
    shown = total + noise
    edges = [*sorted(found), np.inf]
    for least, most in pairwise(edges):
        own, error = (shown >= least) & (shown < most), found[least]
        assert error >= 100 * float((np.abs(noise) / total)[own].mean())
        assert error % 0.5 == 0
    assert list(found.values()) == sorted(found.values())
    assert set(found) <= {10**k for k in range(2, 6)}
    # One contribution more or less moves no figure further than one step.
    other = errors_by_size(total[1:], noise[1:], b"k" * 32, "turnover")
    assert max(abs(found[k] - other[k]) for k in found) <= 0.5


def test_few_cells_of_one_size_have_no_figure_of_their_own() -> None:
    total = np.array([5_000_000] * 10 + [500] * 100)
    found = errors_by_size(total, total * 0.01, b"k" * 32, "turnover")
    assert list(found) == [100]


def test_the_last_few_cells_never_make_a_figure_of_their_own() -> None:
    kinds = np.repeat([1, 2, 3], [80, 60, 49])
    errors = np.repeat([1.0, 2.0, 40.0], [80, 60, 49])
    everything = np.ones(kinds.size, dtype=np.bool_)
    found = by_variables(errors, everything, kinds, b"k" * 32, "turnover", 12.0)
    joined = float(errors[80:].mean())
    assert list(found) == [1, 3]
    assert joined <= found[3] <= joined + 1.0
    # With fewer than fifty cells in all, the figure is the public ceiling whatever the truth is.
    few = kinds > 2
    assert by_variables(errors, few, kinds, b"k" * 32, "turnover", 12.0) == {3: 12.0}
    assert errors_by_size(np.full(49, 500), np.full(49, 9.0), b"k" * 32, "turnover") == {}
    sizes = errors_by_size(
        np.repeat([5000, 50], [60, 49]), np.repeat([50.0, 10.0], [60, 49]), b"k" * 32, "turnover"
    )
    assert list(sizes) == [10]
    assert sizes[10] > 9.0


@given(st.lists(st.integers(0, 400), min_size=40, max_size=120), st.data())
def test_published_sums_alone_decide_which_figures_there_are(
    shown: list[int], data: st.DataObject
) -> None:
    published = np.array(shown, dtype=np.int64)
    kinds = np.arange(published.size) % 3 + 1
    lists = []
    for _ in range(2):
        truth = np.array(
            data.draw(
                st.lists(st.integers(0, 500), min_size=published.size, max_size=published.size)
            )
        )
        noise = (published - truth).astype(np.float64)
        lists.append(
            (
                list(errors_by_size(truth, noise, b"k" * 32, "turnover")),
                list(
                    by_variables(
                        relative_errors(truth, noise),
                        truth + noise > 0,
                        kinds,
                        b"k" * 32,
                        "turnover",
                        12.0,
                    )
                ),
                list(
                    growth_by_variables(
                        (truth, noise), (truth[::-1], noise[::-1]), kinds, b"k" * 32, "turnover"
                    )
                ),
            )
        )
    assert lists[0] == lists[1]


def test_the_error_of_growth_is_in_percentage_points() -> None:
    now, before = np.full(60, 1100), np.full(60, 1000)
    kinds = np.ones(60, dtype=np.int64)
    found = growth_by_variables(
        (now, np.full(60, 40.0)), (before, np.zeros(60)), kinds, b"k" * 32, "turnover"
    )
    assert 4.0 <= found[1] <= 5.0


def test_words_say_the_figures() -> None:
    figures = sum_figures(TURNOVER, *table([500, 20_000], [3, 3]), NOISE, 1)
    outsider, second, _ = attacker_words(figures)
    assert "between" in str(outsider.says)
    assert "500 is shown" in str(outsider.says)
    assert "percent of what is left" in str(second.says)
    assert str(error_words(figures.errors[0], "euro")) == "From 100 to 1,000 euro: about 6 percent."
    assert "3 percentage points" in str(growth_words(figures))
    assert "3.75 percent away" in str(summary(figures))


@pytest.mark.parametrize("left", [1, 2, 40, 1000])
def test_of_a_known_direction_the_one_that_leaves_less_open_is_taken(left: int) -> None:
    least, most = FACTORS.least, FACTORS.most
    sides = ("down",) if left == 1 else ("up", "down")
    bits = [contribution_belief(left, least, most, side).bits for side in sides]
    assert NOISE.belief(left, left, direction=True).bits == pytest.approx(min(bits), abs=1e-8)
    if left == 1000:
        assert min(bits) < max(bits) - 0.01


def test_errors_are_those_of_the_size_class_of_each_sum_or_of_the_variables() -> None:
    shown = np.array([5.0, 100.0, -9_999.0, 10_000.0, 1e9])
    assert NOISE.error(shown, 2).tolist() == [6.0, 6.0, 6.0, 1.5, 1.5]
    plain = FactorNoise(
        PublicFactors({"method": "x"}, FACTORS, {"turnover": {1: 1.0, 2: 2.5}}), "turnover"
    )
    assert plain.error(shown[:2], 2).tolist() == [2.5, 2.5]
    assert plain.p is None
    assert NOISE.p == 5.0


def test_what_is_left_of_a_sum_is_at_least_one_and_less_than_half_by_the_largest_change() -> None:
    half = (1 - FACTORS.most - Fraction(1, 20)) / 2
    sums = np.array([0, 1, 1_000_000])
    assert NOISE.left(sums, sums).tolist() == [1, 1, int(1_000_000 * half)]


def test_keyed_noise_is_known_by_its_table() -> None:
    spec = CellKeyMagnitude(small=0.1)
    noise = KeyedNoise(spec, 2)
    assert not noise.hides_direction
    low = np.array([0, 1, 76_000])
    half = (1 - spec.reach) / 2
    assert noise.left(low, low).tolist() == [1, 1, int(76_000 * half)]
    values, chances = noise._coefficients
    assert chances.sum() == pytest.approx(1.0)
    assert (values * chances).sum() == pytest.approx(0.0)
    shown = np.array([50_000.0, 200_000.0])
    share = flex(shown / 100.0, spec.flex_point, float(spec.small), float(spec.large), spec.power)
    error = 100.0 * share * (np.abs(values) * chances).sum()
    assert noise.error(shown, 1) == pytest.approx(error)
    assert noise.growth_error(shown, 1) == pytest.approx(2.0**0.5 * error.mean())
    assert noise.growth_error(shown[:0], 1) is None
    # Noise upwards leaves a smaller contribution; every coefficient of the table is a candidate.
    stretch = 1.0 + share[0] * values
    found = noise.belief(1_000_000, 50_000)
    assert found.values.tolist() == np.unique(np.rint(1_000_000 / stretch)).tolist()
    weight = (chances / stretch)[np.argsort(-stretch, kind="stable")]
    assert found.probability == pytest.approx(weight / weight.sum())
