"""The factors keep three promises for every set of records, whatever the directions are."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.audit.contribution import candidates, certain_within
from lustrum.model import InputError
from lustrum.protect.magnitudes.factors import SHARES, Factors, amounts, needed_factors
from lustrum.protect.magnitudes.hidden import OPEN, certain_below
from lustrum.protect.magnitudes.units import record_shares

PERCENTS = st.sampled_from([1, 2, 5, 10, 15, 20])


def test_factors_of_ten_percent_worked_by_hand() -> None:
    # a = 0.1; b = 1.1 * 1.1 / 0.9 * 1.02 - 1 = 0.37133.
    factors = needed_factors(Fraction(1, 10), "known")
    assert float(factors.least) == pytest.approx(0.1, abs=2e-6)
    assert float(factors.most) == pytest.approx(0.3713333, abs=2e-6)
    assert float(needed_factors(Fraction(1, 10), "secret").most) == pytest.approx(0.15, abs=2e-6)


@given(st.integers(0, 2**61), st.integers(1, SHARES - 1))
def test_amounts_are_exact(size: int, share: int) -> None:
    found = amounts(np.array([size]), np.array([share]))
    assert int(found[0]) == ceil(Fraction(size * share, SHARES))


@given(PERCENTS, st.lists(st.integers(1, 400), min_size=2, max_size=6), st.data())
def test_every_set_of_records_carries_the_protection_of_the_p_percent_rule(
    percent: int, sizes: list[int], data: st.DataObject
) -> None:
    share = Fraction(percent, 100)
    factors = needed_factors(share, "known")
    low, high = factors.amounts(np.array(sizes))
    noise = [
        data.draw(st.sampled_from([1, -1])) * data.draw(st.integers(int(a), int(b)))
        for a, b in zip(low, high, strict=True)
    ]
    # Any target, any coalition of the others, who know their own factors.
    for target in range(len(sizes)):
        for inside in product([False, True], repeat=len(sizes)):
            if inside[target]:
                continue
            left = [k for k in range(len(sizes)) if k != target and not inside[k]]
            error = abs(noise[target] + sum(noise[k] for k in left))
            demanded = share * sizes[target] - sum(sizes[k] for k in left)
            assert error >= demanded


@settings(max_examples=examples(30, 240))
@given(PERCENTS, st.integers(1, 100_000), st.data())
def test_no_contribution_is_certain_within_p_percent(
    percent: int, size: int, data: st.DataObject
) -> None:
    share = Fraction(percent, 100)
    factors = needed_factors(share, "known")
    low, high = (int(x[0]) for x in factors.amounts(np.array([size])))
    amount = data.draw(st.integers(low, high))
    for sign in (1, -1):
        published = np.array([size + sign * amount])
        up, down = (
            candidates(published, factors.least, factors.most, side) for side in ("up", "down")
        )
        own = up if sign > 0 else down
        assert own[0][0] <= size <= own[1][0]
        least, most = min(up[0][0], down[0][0]), max(up[1][0], down[1][0])
        if published[0] > 0:
            assert not certain_within(np.array([least]), np.array([most]), share)[0]
        if size > 400:
            # With the direction known too, from some hundred units on.
            assert not certain_within(*own, share)[0]


@pytest.mark.parametrize("percent", [1, 5, 10, 20])
def test_no_small_contribution_is_certain_without_its_direction(percent: int) -> None:
    share = Fraction(percent, 100)
    factors = needed_factors(share, "known")
    published = np.arange(1, 3000)
    up, down = (candidates(published, factors.least, factors.most, side) for side in ("up", "down"))
    empty = up[0] > up[1]
    least = np.where(empty, down[0], np.minimum(up[0], down[0]))
    assert not certain_within(least, np.maximum(up[1], down[1]), share).any()


@given(st.fractions(Fraction(1, 1000), Fraction(65, 100)), st.sampled_from(["known", "secret"]))
def test_the_least_share_is_p_and_the_largest_keeps_candidates_apart(
    p: Fraction, directions: Literal["known", "secret"]
) -> None:
    least = Fraction(ceil(p * SHARES), SHARES)
    # Candidates from y / (1 + b) to y / (1 + a) are wider than p on either side by one fiftieth.
    wide = (1 + least) * (1 + p) / (1 - p) * Fraction(51, 50) - 1
    most = wide if directions == "known" else least * Fraction(3, 2)
    if most >= Fraction(99, 100):
        with pytest.raises(
            InputError, match="22 percent" if directions == "known" else "65 percent"
        ):
            needed_factors(p, directions)
    else:
        factors = needed_factors(p, directions)
        assert (factors.least, factors.most) == (least, Fraction(ceil(most * SHARES), SHARES))


@given(
    st.sampled_from(
        [needed_factors(Fraction(1, 10), "known"), Factors(SHARES // 100, SHARES // 50)]
    ),
    st.one_of(st.integers(0, 200), st.integers(0, 2**61)),
    st.integers(0, SHARES),
    st.sampled_from([0, SHARES // 3, SHARES - 1]),
)
def test_a_share_moves_by_a_part_of_its_way_to_either_end(
    factors: Factors, size: int, part: int, room: int
) -> None:
    """Amounts are rounded up; where one unit is left to all shares, the upper half of them takes two."""
    share = factors.low + part * (factors.high - factors.low) // SHARES
    least, most = ceil(factors.least * size), ceil(factors.most * size)
    small = size >= 3 and most < 2
    assert [int(a[0]) for a in factors.amounts(np.array([size]))] == [least, 2 if small else most]
    amount = ceil(Fraction(size * share, SHARES))
    down = share - ((share - factors.low) * room) // SHARES
    up = share + ((factors.high - share) * room) // SHARES
    ends = ceil(Fraction(size * down, SHARES)), ceil(Fraction(size * up, SHARES))
    if small:
        amount = 2 if 2 * share > factors.low + factors.high else amount
        ends = (least, 2) if room else (amount, amount)
    found = factors.chosen(np.array([size]), np.array([share]), np.array([room]))
    assert tuple(int(a[0]) for a in found) == (amount, *ends)


@given(PERCENTS, st.integers(0, 50), st.integers(0, SHARES), st.integers(0, SHARES - 1))
def test_the_search_stays_within_the_public_amounts(
    percent: int, size: int, room: int, place: int
) -> None:
    factors = needed_factors(Fraction(percent, 100), "known")
    share = factors.low + (place * (factors.high - factors.low) >> 20)
    amount, low, high = factors.chosen(np.array([size]), np.array([share]), np.array([room]))
    least, most = factors.amounts(np.array([size]))
    assert least[0] <= low[0] <= amount[0] <= high[0] <= most[0]


# --- several values of one owner ------------------------------------------------------------------


@given(st.lists(st.integers(0, SHARES - 1), min_size=1, max_size=9))
def test_values_of_one_owner_can_have_any_shares_beside_each_other(shares: list[int]) -> None:
    words = np.array(shares, dtype=np.uint64) << np.uint64(8)
    assert record_shares(np.full(len(shares), SHARES // 2), words).tolist() == shares


def left_of(shown: int, way: int, factors: Factors) -> list[int]:
    """All values that show one by moving one way, from the definition."""
    sizes = np.arange(1, 8 * abs(shown) + 9)
    least, most = factors.amounts(sizes)
    found = [0] if shown == 0 else []
    for x in (*sizes.tolist(), *(-sizes).tolist()):
        found += [x] if least[abs(x) - 1] <= (shown - x) * way <= most[abs(x) - 1] else []
    return found


@settings(max_examples=examples(30, 300), deadline=None)
@given(st.sampled_from([2, 5, 10, 20]), st.data())
def test_a_ratio_a_sum_or_a_difference_is_as_open_as_the_values_of_an_owner(
    percent: int, data: st.DataObject
) -> None:
    """Gains and losses in one direction: every value that is left is listed, and every pair of them."""
    p = Fraction(percent, 100)
    factors = needed_factors(p, "known")
    first = certain_below(factors, p)
    values = [
        data.draw(st.integers(first, first + 90)) * data.draw(st.sampled_from([1, -1]))
        for _ in range(2)
    ]
    way = data.draw(st.sampled_from([1, -1]))
    shown = []
    for x in values:
        least, most = (int(a[0]) for a in factors.amounts(np.array([abs(x)])))
        ends = st.sampled_from([least, most])
        shown.append(x + way * data.draw(ends | st.integers(least, most)))
    # A set of them errs by p percent of gains and losses together.
    assert abs(sum(shown) - sum(values)) >= p * sum(map(abs, values))
    left = {s: [left_of(y, s, factors) for y in shown] for s in (1, -1)}
    one, two = left[way]
    assert values[0] in one
    assert values[1] in two
    # Whoever knows one of them knows the direction, and is left with all that the other leaves open in it.
    for known in (one, two):
        assert (1 - p) * max(map(abs, known)) > (1 + p) * min(map(abs, known))
    for of_both in (lambda u, v: u - v, lambda u, v: u + v):
        near = [(of_both(u, v), p * max(abs(u), abs(v))) for u, v in product(one, two)]
        assert max(z - by for z, by in near) > min(z + by for z, by in near)
    ratios = [abs(Fraction(u, v)) for u, v in product(one, two)]
    assert (1 - p) * max(ratios) > (1 + p) * min(ratios)


def test_from_some_units_on_nobody_is_certain_who_knows_the_direction() -> None:
    for percent in (1, 5, 20):
        p = Fraction(percent, 100)
        factors = needed_factors(p, "known")
        first = certain_below(factors, p)
        sure = set()
        for shown in range(4 * first):
            for way in (1, -1):
                left = [x for x in left_of(shown, way, factors) if x >= 0]
                if left and (1 - p) * max(left) <= (1 + p) * min(left):
                    sure.add(max(left))
        assert max(sure) + 1 == first
    # Shares that are so near to each other promise nothing to readers who know the direction.
    assert certain_below(needed_factors(Fraction(1, 20), "secret"), Fraction(1, 20)) == OPEN


def test_shares_that_cannot_be_are_refused() -> None:
    for p, said in ((Fraction(0), "between 0 and 100"), (Fraction(30, 100), "at most 22 percent")):
        with pytest.raises(InputError, match=said):
            needed_factors(p, "known")
    with pytest.raises(InputError, match="65 percent"):
        needed_factors(Fraction(70, 100), "secret")
    for ends in ((0, 5), (5, 5), (6, 5), (5, SHARES), (-1, 5)):
        with pytest.raises(InputError, match="0 < low < high < 1"):
            Factors(*ends)
    assert Factors(SHARES - 2, SHARES - 1).least < 1
