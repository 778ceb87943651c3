"""Shares and directions of large firms: drawn by the key, and of no use to competitors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from lustrum.demo import businesses, description_path
from lustrum.model.records import Records
from lustrum.protect.magnitudes.factors import needed_factors
from lustrum.protect.magnitudes.method import ProtectedMagnitudes
from lustrum.protect.magnitudes.report import guesses_by_size
from lustrum.protect.magnitudes.search import balance_leaders
from lustrum.protect.magnitudes.units import Units
from lustrum.tabulate import FrameEngine, read_description, records_of

KEY = b"sixteen bytes ok"
SPEC = ProtectedMagnitudes(
    p=5, sweeps=3, existence="public", measures=("wages",), public_classes=("size",)
)
LIMIT = 2.76
"""A uniform sample exceeds this distance times the root of its size less than once in 2 million times."""


@pytest.fixture(scope="module")
def firms() -> Records:
    dataset = read_description(description_path("businesses"))
    return records_of(FrameEngine(businesses(6000), dataset))


def distance(true: np.ndarray, shown: np.ndarray) -> float:
    """The Kolmogorov distance of shares from uniform ones, times the root of their number."""
    low, high = float(SPEC.factors.least), float(SPEC.factors.most)
    place = np.sort((np.abs(shown - true) / true - low) / (high - low))
    steps = np.arange(place.size + 1) / place.size
    off = max(np.abs(place - steps[1:]).max(), np.abs(place - steps[:-1]).max())
    return float(off * np.sqrt(place.size))


def test_shares_of_large_and_of_small_firms_are_uniform(firms: Records) -> None:
    true = firms.numbers["wages"].astype(np.int64)
    shown = SPEC.protect(firms, KEY).records["wages"]
    old = replace(SPEC, search_range=0.8, leader_part=1.0).protect(firms, KEY).records["wages"]
    large = true >= np.sort(true)[-300]
    for rows in (large, (true >= 200) & ~large):
        assert rows.sum() > 100
        assert distance(true[rows], shown[rows]) < LIMIT
    # Where the search may move shares, those of large firms are small.
    assert distance(true[large], old[large]) > 2 * LIMIT


def leader_pairs(firms: Records, shown: np.ndarray) -> float:
    """How often the two largest firms of activity by district move in opposite directions."""
    true = firms.numbers["wages"].astype(np.int64)
    cell = firms.codes["activity"].astype(np.int64) * 1000 + firms.codes["size"]
    up = shown > true
    opposite = []
    for one in np.unique(cell):
        rows = np.flatnonzero((cell == one) & (true > 0))
        owners = firms.ids["holding_id"][rows]
        rows = rows[np.argsort(-true[rows], kind="stable")]
        if rows.size > 1 and np.unique(owners).size == owners.size:
            opposite.append(up[rows[0]] != up[rows[1]])
    assert len(opposite) > 150
    return float(np.mean(opposite))


def test_the_direction_of_the_second_largest_says_little_about_that_of_the_largest(
    firms: Records,
) -> None:
    drawn = [SPEC.protect(firms, bytes([k]) * 16).records["wages"] for k in range(3)]
    ours = np.mean([leader_pairs(firms, shown) for shown in drawn])
    searched = replace(SPEC, leader_part=1.0, search_range=0.8)
    old = np.mean(
        [
            leader_pairs(firms, searched.protect(firms, bytes([k]) * 16).records["wages"])
            for k in range(3)
        ]
    )
    # Of independent directions more than 0.5 + 5 standard errors differ less than once in a million times.
    assert ours < 0.5 + 5 * 0.5 / np.sqrt(3 * 150) + 1 / 30
    assert old > ours + 0.05


def units(count: int) -> Units:
    none = np.zeros((count, 1), dtype=np.int64)
    owner = np.arange(count)
    first = np.arange(count + 1)
    return Units(none, owner, first, np.ones(count, dtype=np.int64), none, none, none, none)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33, 64])
def test_half_of_the_leaders_of_about_the_same_size_go_up(count: int) -> None:
    rng = np.random.default_rng(count)
    secret = rng.integers(0, 2**63, count).astype(np.uint64)
    values = rng.permutation(count)[:, None] + 1
    made = units(count)
    balance_leaders(made, values, np.ones(count, dtype=bool), secret)
    ranked = made.sign[np.argsort(-values[:, 0])]
    for start in range(0, count, 16):
        group = ranked[start : start + 16]
        assert abs(int(group.sum())) == group.size % 2
    some = units(count)
    some.sign[:] = -1
    balance_leaders(some, values, np.zeros(count, dtype=bool), secret)
    assert (some.sign == -1).all()


def test_guesses_are_counted_by_size_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    factors, share = needed_factors(Fraction(1, 20), "known"), Fraction(1, 20)
    true = np.r_[rng.integers(10, 1000, 400), rng.integers(1000, 10**6, 90), -700, 0]
    moved = np.ceil(np.abs(true) * rng.uniform(0.05, 0.18, true.size)).astype(np.int64)
    shown = true + rng.choice([-1, 1], true.size) * moved
    found = guesses_by_size(true, shown, factors, share)
    sizes = sorted(found)
    counted = {size: [0, 0, 0, 0] for size in sizes}
    for x, y in zip(np.abs(true).tolist(), np.abs(shown).tolist(), strict=True):
        if x == 0:
            continue
        mine = counted[max((s for s in sizes if s <= max(y, sizes[0])), default=sizes[0])]
        low = float(factors.least)
        up = abs(y * 0.95 / (1 + low) - x) <= 0.05 * x
        down = abs(y * 1.05 / (1 - low) - x) <= 0.05 * x
        for place, hit in enumerate((True, up, down, up if y > x else down)):
            mine[place] += hit
    for size, (rows, up, down, known) in counted.items():
        assert found[size] == pytest.approx((100 * max(up, down) / rows, 100 * known / rows))
        assert rows >= 50
