"""Candidates, certainty and belief about one contribution, against enumeration and cases worked by hand."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.audit.contribution import (
    candidates,
    certain_within,
    contribution_belief,
    largest_between,
)
from lustrum.model import InputError

SHARES = st.tuples(
    st.fractions(Fraction(1, 50), Fraction(1, 4)), st.fractions(Fraction(26, 100), Fraction(9, 10))
)


def enumerated(published: int, low: Fraction, high: Fraction, sign: int) -> list[int]:
    """All contributions that can be published so, one after the other."""
    found = []
    for x in range(1, 20 * published + 40):
        most = max(ceil(high * x), 2 if x >= 3 else 0)
        if ceil(low * x) <= sign * (published - x) <= most:
            found.append(x)
    return found


@given(st.integers(0, 60), SHARES)
def test_candidates_are_those_that_enumeration_finds(
    published: int, shares: tuple[Fraction, Fraction]
) -> None:
    low, high = shares
    for sign, side in ((1, "up"), (-1, "down")):
        least, most = candidates(np.array([published]), low, high, side)
        found = enumerated(published, low, high, sign)
        assert list(range(int(least[0]), int(most[0]) + 1)) == found


@given(st.integers(1, 60), st.integers(0, 40), st.fractions(Fraction(1, 100), Fraction(1, 2)))
def test_certainty_is_a_number_within_reach_of_all_candidates(
    least: int, more: int, share: Fraction
) -> None:
    values = range(least, least + more + 1)
    # The best number touches the nearer end: it is the largest that is not too large for the least one.
    best = (1 + share) * least
    exists = all(abs(best - x) <= share * x for x in values)
    assert bool(certain_within(np.array([least]), np.array([least + more]), share)[0]) == exists


def test_candidates_worked_by_hand() -> None:
    # Published 110 with shares from 10 to 37 percent: 81 + ceil(29.97) = 111, 80 + ceil(29.6) = 110, and
    # 79 + ceil(29.23) = 109 is too little; 100 + 10 = 110, and 101 + ceil(10.1) = 112 is too much.
    low, high = Fraction(10, 100), Fraction(37, 100)
    least, most = candidates(np.array([110]), low, high, "up")
    assert (int(least[0]), int(most[0])) == (80, 100)
    # 100 is within 10 percent of none of 80 and 81, so nobody is certain.
    assert not certain_within(least, most, Fraction(1, 10))[0]
    # Between 8 and 12 percent: from 99 (99 + 11.88) to 101 (101 + 9 = 8.08 rounded up): all within 2 percent.
    least, most = candidates(np.array([110]), Fraction(8, 100), Fraction(12, 100), "up")
    assert (int(least[0]), int(most[0])) == (98, 101)
    assert certain_within(least, most, Fraction(2, 100))[0]


def test_an_outsider_who_knows_the_ranking_knows_little() -> None:
    # 1000 from two contributors, at most a quarter and 1.25 units away each: a sum from 798 (997.5 / 1.25)
    # to 1336 (1002.5 / 0.75).
    assert largest_between(1000, 2, Fraction(1, 10), Fraction(1, 4)) == (399, 1336)


def test_belief_is_a_distribution_over_the_candidates() -> None:
    low, high = Fraction(1, 10), Fraction(37, 100)
    belief = contribution_belief(1000, low, high)
    assert belief.probability.sum() == pytest.approx(1)
    assert 0 < belief.risk == pytest.approx(1 / belief.bits)
    both, one = belief.within(0.1), contribution_belief(1000, low, high, "up").within(0.1)
    # Direction unknown, the best guess is right at most about half of the time.
    assert both < 0.55
    assert one < 1.0
    # A narrow range of shares says more.
    assert contribution_belief(1000, low, Fraction(15, 100)).bits < belief.bits


def test_a_large_belief_has_the_entropy_of_its_candidates() -> None:
    low, high = Fraction(1, 10), Fraction(3, 10)
    small = contribution_belief(10_000, low, high, "up")
    large = contribution_belief(10_000_000, low, high, "up")
    assert large.bits - small.bits == pytest.approx(np.log2(1000), abs=0.01)


def test_shares_out_of_order_are_refused() -> None:
    with pytest.raises(InputError, match="0 < low < high < 1"):
        candidates(np.array([5]), Fraction(1, 2), Fraction(1, 3), "up")
    with pytest.raises(InputError, match="at least one contributor"):
        largest_between(10, 0, Fraction(1, 10), Fraction(1, 5))
