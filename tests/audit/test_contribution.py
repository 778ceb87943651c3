"""Candidates, certainty and belief about one contribution, against enumeration and cases worked by hand."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import cache
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.audit.contribution import (
    ContributionBelief,
    candidates,
    certain_within,
    contribution_belief,
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


@given(st.integers(1, 60), st.integers(0, 40), st.fractions(Fraction(1, 100), Fraction(1, 2)))
def test_certainty_is_a_number_within_reach_of_all_candidates(
    least: int, more: int, share: Fraction
) -> None:
    values = range(least, least + more + 1)
    # The best number touches the nearer end: it is the largest that is not too large for the least one.
    best = (1 + share) * least
    exists = all(abs(best - x) <= share * x for x in values)
    assert bool(certain_within(np.array([least]), np.array([least + more]), share)[0]) == exists
    # Without a candidate nobody can be certain of anything.
    assert not certain_within(np.array([least + 1]), np.array([least]), share)[0]


def written_out(published, low, high, sides, most=450):
    """Weights by the length of the shares that lead from a contribution to the published value."""
    weights = Counter()
    for sign in sides:
        weights.update(on_one_side(published, low, high, sign, most))
    total = sum(weights.values())
    return {x: float(w / total) for x, w in weights.items()}


@cache
def on_one_side(published, low, high, sign, most):
    weights = {}
    for x in range(max(published // 2 - 2, 1), most):
        amount = sign * (published - x)
        if amount in changes(x, low, high):
            widest = max(high, Fraction(2, x) if x >= 3 else Fraction(0))
            length = min(Fraction(amount, x), widest) - max(Fraction(amount - 1, x), low)
            weights[x] = max(length, Fraction(0))
    return weights


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


@pytest.mark.parametrize(
    ("low", "high", "published"),
    [(TENTH, THIRD, 30_000), (Fraction(1, 20), Fraction(1, 8), 70_000)],
)
def test_a_thinned_belief_says_what_all_candidates_say(low, high, published):
    for sides, direction in (((1, -1), None), ((1,), "up"), ((-1,), "down")):
        wanted = written_out(published, low, high, sides, 3 * published // 2 + 3)
        belief = contribution_belief(published, low, high, direction)
        assert belief.step > 1
        assert [belief.values.min(), belief.values.max()] == [min(wanted), max(wanted)]
        bits = -sum(p * log2(p) for p in wanted.values() if p)
        assert belief.bits == pytest.approx(bits, abs=0.001)
        every = ContributionBelief(np.array([*wanted]), np.array([*wanted.values()]))
        assert belief.within(0.05) == pytest.approx(every.within(0.05), abs=0.001)
        larger = contribution_belief(1000 * published, low, high, direction)
        assert larger.bits == pytest.approx(belief.bits + log2(1000), abs=1e-9)


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


def test_shares_must_lie_between_0_and_1_in_order():
    for low, high in ((0, 1), (TENTH, TENTH), (TENTH, 1), (Fraction(0), TENTH)):
        with pytest.raises(InputError, match="0 < low < high < 1"):
            candidates(np.array([5]), Fraction(low), Fraction(high), "up")
