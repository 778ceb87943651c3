"""Contributions and protection intervals on small numbers, against every case written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, log2

import numpy as np
import pytest

from lustrum.audit import Protection, ProtectionVerdict
from lustrum.audit.contribution import (
    ContributionBelief,
    candidates,
    certain_within,
    contribution_belief,
    largest_between,
)
from lustrum.model import InputError

TENTH, FIFTH, THIRD = Fraction(1, 10), Fraction(1, 5), Fraction(1, 3)
SHARES = [(TENTH, FIFTH), (Fraction(1, 4), Fraction(1, 2)), (THIRD, Fraction(4, 5))]
SHARES += [(Fraction(1, 50), Fraction(1, 20)), (Fraction(3, 5), Fraction(9, 10))]
SHARES += [(Fraction(32, 100), Fraction(33, 100)), (Fraction(9, 20), Fraction(46, 100))]


def changes(x: int, low: Fraction, high: Fraction) -> range:
    """How much a contribution may change: by a share of it, or by up to 2 from 3 on."""
    return range(ceil(low * x), max(ceil(high * x), 2 if x >= 3 else 0) + 1)


@pytest.mark.parametrize(("low", "high"), SHARES)
@pytest.mark.parametrize("side", ["up", "down"])
def test_candidates_are_all_contributions_that_lead_to_the_published_value(low, high, side):
    behind: dict[int, list[int]] = {}
    sign = 1 if side == "up" else -1
    for x in range(1, 500):
        for d in changes(x, low, high):
            behind.setdefault(x + sign * d, []).append(x)
    published = np.arange(0, 40)
    least, most = candidates(published, low, high, side)
    for y, a, b in zip(published.tolist(), least.tolist(), most.tolist(), strict=True):
        assert list(range(a, b + 1)) == behind.get(y, [])


@pytest.mark.parametrize(("low", "high"), SHARES)
def test_the_largest_contribution_lies_in_its_range_whatever_was_published(low, high):
    for count in (1, 2, 3):
        for parts in combinations_with_replacement((1, 2, 3, 4, 7, 10, 40), count):
            furthest = sum(changes(x, low, high)[-1] for x in parts)
            for published in (sum(parts) + furthest, max(sum(parts) - furthest, 0)):
                least, most = largest_between(published, count, low, high)
                assert least <= max(parts) <= most


def test_a_small_contribution_that_grew_by_two_stays_possible():
    # 3 may be published as 5 although a fifth of it is less than 1.
    assert candidates(np.array([5]), TENTH, FIFTH, "up")[0].tolist() == [3]
    assert largest_between(5, 1, TENTH, FIFTH)[0] == 3
    # With shares of a third and more the step of 2 is no more than a rounded share: (11 - 1) * 3 / 4 = 7.5.
    assert largest_between(11, 1, FIFTH, THIRD)[0] == 8
    assert largest_between(0, 4, TENTH, FIFTH)[0] == 0
    # A sum of at least 830 has one of three contributions that is 277 or more.
    assert largest_between(1000, 3, TENTH, FIFTH)[0] == 277
    for published, contributors in ((-1, 1), (0, 0)):
        with pytest.raises(InputError, match="0 or more and at least one"):
            largest_between(published, contributors, TENTH, FIFTH)
    assert largest_between(0, 1, TENTH, THIRD) == (0, 1)


def test_shares_must_lie_between_0_and_1_in_order():
    for low, high in ((0, 1), (TENTH, TENTH), (TENTH, 1), (Fraction(0), TENTH)):
        with pytest.raises(InputError, match="0 < low < high < 1"):
            candidates(np.array([5]), Fraction(low), Fraction(high), "up")
        with pytest.raises(InputError, match="0 < low < high < 1"):
            largest_between(5, 1, Fraction(low), Fraction(high))


def test_certainty_needs_a_candidate_and_includes_the_limit():
    # 99 and 101 are exactly 1 percent of 100 apart from it: (1 - 1/100) 101 = 99.99 <= (1 + 1/100) 99.
    assert certain_within(np.array([99]), np.array([101]), Fraction(1, 100)).tolist() == [True]
    # 90 and 110: both are within a tenth of 99 exactly.
    assert certain_within(np.array([90]), np.array([110]), TENTH).tolist() == [True]
    assert certain_within(np.array([90]), np.array([111]), TENTH).tolist() == [False]
    # No candidate: nobody can be certain of anything.
    assert certain_within(np.array([6]), np.array([5]), TENTH).tolist() == [False]
    assert certain_within(np.array([5]), np.array([5]), TENTH).tolist() == [True]


def written_out(published, low, high, sides):
    """Weights by the length of the shares that lead from a contribution to the published value."""
    weights = {}
    for sign in sides:
        for x in range(1, 450):
            amount = sign * (published - x)
            if amount not in changes(x, low, high):
                continue
            widest = max(high, Fraction(2, x) if x >= 3 else Fraction(0))
            length = min(Fraction(amount, x), widest) - max(Fraction(amount - 1, x), low)
            weights[x] = weights.get(x, Fraction(0)) + max(length, Fraction(0))
    total = sum(weights.values())
    return {x: float(w / total) for x, w in weights.items()}


@pytest.mark.parametrize(("low", "high"), SHARES)
@pytest.mark.parametrize("published", [3, 5, 12, 40])
def test_a_belief_weighs_contributions_by_the_shares_that_lead_to_what_is_published(
    published, low, high
):
    for sides, direction in (((1, -1), None), ((1,), "up"), ((-1,), "down")):
        wanted = written_out(published, low, high, sides)
        if not wanted:
            with pytest.raises(InputError, match="No contribution"):
                contribution_belief(published, low, high, direction)
            continue
        belief = contribution_belief(published, low, high, direction)
        found = dict(zip(belief.values.tolist(), belief.probability.tolist(), strict=True))
        assert found == pytest.approx(wanted)
        assert belief.step == 1.0
        bits = -sum(p * log2(p) for p in wanted.values() if p)
        assert belief.bits == pytest.approx(bits)


def test_a_thinned_belief_stands_for_all_its_candidates():
    # From 10 to 30 percent upwards 10 million can be any of 1,398,603 contributions.
    belief = contribution_belief(10_000_000, TENTH, Fraction(3, 10), "up")
    assert 4000 <= belief.values.size <= 4097
    assert belief.step == pytest.approx(1_398_603 / 4096, rel=1e-9)
    first, last = belief.values[[0, -1]].tolist()
    assert first == 7_692_307
    assert 9_090_909 - belief.step <= last <= 9_090_909
    # Each side stands for its own numbers: the mean of the logarithms of both steps.
    both = contribution_belief(10_000_000, TENTH, Fraction(3, 10))
    up = both.values < 10_000_000
    steps = np.where(up, 1_398_603 / 4096, (14_285_715 - 11_111_112 + 1) / 4096)
    assert np.log2(both.step) == pytest.approx((both.probability * np.log2(steps)).sum(), abs=1e-9)
    # Weights count what a value stands for: every side has the weight of all its candidates.
    small = contribution_belief(10_000, TENTH, Fraction(3, 10))
    assert small.step == 1.0
    share = small.probability[small.values < 10_000].sum()
    assert both.probability[up].sum() == pytest.approx(share, abs=2e-3)


def test_the_best_estimate_of_a_belief_by_hand():
    belief = ContributionBelief(np.array([130.0, 100.0, 110.0]), np.array([0.5, 0.2, 0.3]))
    # Within 5 percent 104.7 reaches 100 and 110 (110 * 0.95 = 104.5 <= 105 = 100 * 1.05), not 130.
    assert belief.within(0.05) == pytest.approx(0.5)
    # Within 10 percent 119 reaches 110 and 130 (117 <= 121), within 14 percent 113 reaches all.
    assert belief.within(0.1) == pytest.approx(0.8)
    assert belief.within(0.14) == pytest.approx(1.0)
    assert belief.within(0.0) == pytest.approx(0.5)
    assert ContributionBelief(np.zeros(0), np.zeros(0)).within(0.1) == 0.0
    # 100 and 300: 150 is within one half of both, exactly at the limit.
    limit = ContributionBelief(np.array([100.0, 300.0]), np.array([0.5, 0.5]))
    assert limit.within(0.5) == pytest.approx(1.0)


def test_risk_is_one_over_the_entropy_and_certainty_is_infinite():
    sure = ContributionBelief(np.array([7.0]), np.array([1.0]))
    assert (sure.bits, sure.risk) == (0.0, float("inf"))
    four = ContributionBelief(np.arange(5.0), np.array([0.25, 0.25, 0.0, 0.25, 0.25]))
    assert (four.bits, four.risk) == (2.0, 0.5)
    assert ContributionBelief(four.values, four.probability, step=8.0).bits == 5.0
    # A belief of less than one bit has a risk above 1.
    assert ContributionBelief(np.arange(2.0), np.array([0.89, 0.11])).risk == pytest.approx(
        1 / 0.49991596
    )


def test_protection_asks_for_its_own_level_on_each_side_of_each_cell():
    wanted = Protection.of([10, 10], lower=[2, 0], upper=[5, 0], needed=[True, False])
    verdicts = {(8, 15): "enough", (9, 15): "too narrow", (8, 14): "too narrow"}
    for (low, high), said in verdicts.items():
        assert wanted.verdict((0,), low, high, sharp=True) == said
        assert wanted.verdict((1,), low, high, sharp=True) is ProtectionVerdict.NOT_ASKED
    assert Protection.of([1], [0], [0]).verdict((0,), 1, 1, sharp=True) is ProtectionVerdict.ENOUGH
    some = Protection.within([10, 20], 10, needed=[False, True])
    assert some.verdict((0,), 10, 10, sharp=True) is ProtectionVerdict.NOT_ASKED
    assert some.verdict((1,), 18, 22, sharp=True) is ProtectionVerdict.ENOUGH
    for level in ([-1, 0], [0, -1]):
        with pytest.raises(InputError, match="negative"):
            Protection.of([5, 5], level, [0, 0])
        with pytest.raises(InputError, match="negative"):
            Protection.of([5, 5], [0, 0], level)
    Protection.of([5, 5], [-1, 0], [0, 0], needed=[False, True])


def test_protection_within_percent_is_rounded_up_to_whole_units():
    found = Protection.within([1000, -1000, 1001, 0], 10)
    assert found.low.tolist() == [900, -1100, 900, 0]
    assert found.high.tolist() == [1100, -900, 1102, 0]
    # 7 percent of 100 is 7, although the product in floating point is a little more.
    assert Protection.within([100], 7).high.tolist() == [107]
    assert Protection.within([10**6], 100).low.tolist() == [0]
    assert Protection.within([5], 0).low.tolist() == [5]
    for percent in (-1, np.inf, np.nan):
        with pytest.raises(InputError, match="0 or more"):
            Protection.within([5], percent)


def test_a_true_value_fits_its_range_to_both_ends():
    held = Protection.of([5], [1], [1])
    assert held.fits((0,), 5, 5)
    assert not held.fits((0,), 6, 9)
    assert not held.fits((0,), 1, 4)
