"""The attack on second releases of sums: what two shown numbers leave, against a list of all contributions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from attacks.sums.channel import Channel
from attacks.sums.second import Changed, _ranges, read_both, stated_limits

CHANNEL = Channel(Fraction(52429, 1048576), Fraction(192663, 1048576))
P = Fraction(1, 20)


@pytest.mark.parametrize("shown", [5000, 5001, 8483, 9999, 12_345, 21_875])
def test_the_ends_of_large_contributions_are_exact(shown: int) -> None:
    every = CHANNEL.sources(shown, 0, 1 << 60)
    up, down = [x for x in every if x < shown], [x for x in every if x > shown]
    assert _ranges(CHANNEL, shown) == [(min(up), max(up)), (min(down), max(down))]


def test_ranges_that_only_just_meet_leave_the_reader_in_doubt() -> None:
    """8079 behind the first number and 18,479 behind the second are in the known proportion, by a hair."""
    found = Changed(*(np.array([n]) for n in (8483, 21_875, 10_090, 23_079)))
    read = read_both(found, CHANNEL, P)
    assert read.certain_by_factor == 0


def test_the_stated_limits_are_those_of_the_explanation() -> None:
    low, high = stated_limits(CHANNEL)
    assert (round(low, 3), round(high, 2)) == (0.717, 2.07)


def test_a_firm_that_is_certain_within_the_limits_is_counted() -> None:
    """One loses 60 percent, which is beyond the limits, and one 5 percent, with a share that hides nothing."""
    true = np.array([100_000, 100_000])
    after = np.array([40_000, 95_000])
    shown = true - np.array([18_000, 18_000])
    later = after - np.ceil(after * 0.051).astype(np.int64)
    read = read_both(Changed(shown, later, true, after), CHANNEL, P)
    assert (read.certain, read.within_limits) == (2, 1)
