from __future__ import annotations

import math

import pytest
from hypothesis import given

from lustrum.model import InputError, Table
from lustrum.utility import (
    HellingerDistance,
    HellingerShares,
    HellingerUtility,
    hellinger_counts,
    hellinger_shares,
    hellinger_utility,
)
from utility.cases import QUICK, Pair, count_pairs, release_of

VILLAGE = [0, 0, 1, 2, 4, 0, 12, 31, 50, 20]
ROUNDED = [0, 0, 0, 3, 3, 0, 12, 30, 51, 21]


def distance(F: list[float], G: list[float]) -> float:
    total = 0.0
    for f, g in zip(F, G, strict=True):
        total += (math.sqrt(f) - math.sqrt(g)) ** 2
    return math.sqrt(total) / math.sqrt(2)


@QUICK
@given(count_pairs())
def test_the_count_form_is_equation_4_and_keeps_its_bound(pair: Pair) -> None:
    F, G = pair
    assert hellinger_counts(F, G) == pytest.approx(distance(F, G))
    assert hellinger_counts(F, G) <= math.sqrt((sum(F) + sum(G)) / 2) + 1e-12
    assert hellinger_counts(F, G) == hellinger_counts(G, F)
    assert hellinger_counts(F, F) == 0


@QUICK
@given(count_pairs())
def test_the_share_form_knows_no_scale_and_stays_within_1(pair: Pair) -> None:
    F, G = pair
    shares = distance([f / sum(F) for f in F], [g / sum(G) for g in G])
    assert hellinger_shares(F, G) == pytest.approx(shares, abs=1e-12)
    assert 0 <= hellinger_shares(F, G) <= 1
    assert hellinger_shares(F, [3 * f for f in F]) == pytest.approx(0, abs=1e-7)


@QUICK
@given(count_pairs())
def test_the_utility_is_1_less_the_distance_over_the_root_of_the_people(pair: Pair) -> None:
    F, G = pair
    expected = max(0.0, 1 - distance(F, G) / math.sqrt(sum(F)))
    assert hellinger_utility(F, G) == pytest.approx(expected)
    assert hellinger_utility(F, F) == 1


def test_the_village_of_the_explanation_keeps_0_9293() -> None:
    table = Table.from_counts(VILLAGE)
    release = release_of(table, ROUNDED)
    assert HellingerUtility().of(table, release) == pytest.approx(0.9293, abs=5e-5)
    assert HellingerDistance().of(table, release) == hellinger_counts(VILLAGE, ROUNDED)
    assert HellingerShares().of(table, release) == hellinger_shares(VILLAGE, ROUNDED)


def test_nobody_and_negative_values_have_no_distance() -> None:
    with pytest.raises(InputError, match="without anybody"):
        hellinger_utility([0, 0], [1, 0])
    with pytest.raises(InputError, match="without anybody"):
        hellinger_shares([1, 0], [0, 0])
    with pytest.raises(InputError, match="negative"):
        hellinger_counts([1], [-1])
