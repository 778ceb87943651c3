"""Many releases of contributions that change: what readers of all of them know, listed number by number."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from lustrum.model.records import Records
from lustrum.protect.magnitudes.method import MagnitudeResult, ProtectedMagnitudes
from lustrum.protect.magnitudes.remembered import sums_together
from lustrum.publish.bundles.sum_memory import remembered_sums, sums_bytes
from protect.magnitudes.test_classes import register, sources

KEY = b"sixteen bytes ok"
SPEC = ProtectedMagnitudes(p=5, sweeps=1, existence="public")
P = SPEC.share
Release = tuple[np.ndarray, np.ndarray]


def released(
    values: np.ndarray, steps: int, by: tuple[float, float], spec: ProtectedMagnitudes = SPEC
) -> tuple[list[Release], list[MagnitudeResult]]:
    """True and shown values of releases in which half of the firms change each time."""
    rng = np.random.default_rng(5)
    records = register(values, (0, 60), described=False)
    made = [spec.protect(records, KEY)]
    found = [(values, made[0].records["staff"])]
    for _ in range(steps):
        now = found[-1][0].copy()
        rows = rng.random(now.size) < 0.5
        factor = 1 + rng.uniform(*by, now.size) * rng.choice([-1, 1], now.size)
        now[rows] = np.maximum(now * factor, 5).astype(np.int64)[rows]
        records = replace(records, numbers={"staff": now})
        memory = remembered_sums(sums_bytes(made[-1].memory))
        made.append(spec.protect(records, KEY, previous=memory))
        found.append((now, made[-1].records["staff"]))
    return found, made


@cache
def listed(shown: int) -> list[int]:
    return sources(shown, shown // 2, 3 * shown // 2 + 9)


def left_by(found: list[Release], firm: int) -> tuple[Fraction, Fraction] | None:
    """The ends of the last value to a reader of all releases who knows every factor, direction by direction."""
    last = Fraction(int(found[-1][0][firm]))
    ends = []
    for sign in (1, -1):
        low, high = Fraction(0), Fraction(10**9)
        for true, shown in found:
            y, factor = int(shown[firm]), last / int(true[firm])
            own = [x for x in listed(y) if (y - x) * sign > 0]
            if not own:
                low, high = Fraction(1), Fraction(0)
                break
            low, high = max(low, min(own) * factor), min(high, max(own) * factor)
        if low <= high:
            ends.append((low, high))
    return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None


@pytest.mark.parametrize("steps", [1, 4, 11])
def test_readers_of_all_releases_are_certain_of_no_firm_that_changes(steps: int) -> None:
    values = np.random.default_rng(steps).integers(60, 600, 60)
    found, made = released(values, steps, (0.005, 0.3))
    for firm in range(values.size):
        left = left_by(found, firm)
        assert left[0] <= found[-1][0][firm] <= left[1]
        assert (1 - P) * left[1] > (1 + P) * left[0], firm
    both = sums_together(made[-2].memory, made[-1].memory, "staff", SPEC.factors, P)
    assert both.other == 0
    # What earlier releases leave open is rounded inwards, which counts a few firms of few units too many.
    assert both.certain <= 2
    assert both.changed > 15


def test_every_change_draws_a_new_share_and_nothing_else_does() -> None:
    values = np.random.default_rng(3).integers(2000, 9000, 300)
    found, _ = released(values, 1, (0.002, 0.04))
    (old, before), (new, after) = found
    same = old == new
    assert np.array_equal(before[same], after[same])
    share_before, share = (before / old - 1)[~same], (after / new - 1)[~same]
    assert (np.sign(share) == np.sign(share_before)).all()
    # Shares of two releases lie around that of the firm; one in fifty may be alike by chance.
    assert (np.abs(share - share_before) > 0.001).mean() > 0.9
    guess = before[~same] * (new - old)[~same] / np.maximum(np.abs(after - before), 1)[~same]
    assert (np.abs(np.abs(guess) / old[~same] - 1) <= 0.05).mean() < 0.5


def test_shares_that_were_kept_would_make_firms_certain_and_are_counted() -> None:
    """A second release drawn without regard to the first: the sums of both leave some firms certain."""
    values = np.random.default_rng(8).integers(600, 9000, 300)
    records = register(values, (0, 60), described=False)
    first = SPEC.protect(records, KEY).memory
    second = SPEC.protect(replace(records, numbers={"staff": values + 1}), KEY[::-1]).memory
    found = sums_together(first, second, "staff", SPEC.factors, P)
    assert found.changed == 300
    assert found.certain > 10


def test_a_memory_of_an_earlier_version_continues_from_its_numbers() -> None:
    values = np.random.default_rng(9).integers(60, 900, 50)
    records: Records = register(values, (0, 60), described=False)
    first = SPEC.protect(records, KEY).memory
    old = replace(first, reach={})
    later = replace(records, numbers={"staff": values + 3})
    one, two = (SPEC.protect(later, KEY, previous=m).records["staff"] for m in (first, old))
    assert np.array_equal(one, two)


def certain_by_difference(y: int, z: int, grown: int) -> tuple[bool, bool]:
    """Whether readers who know the difference are certain of the value now, and of that before."""
    ends = []
    for sign in (1, -1):
        then, now = ([x for x in listed(s) if (s - x) * sign > 0] for s in (y, z))
        if then and now:
            low, high = max(min(then) + grown, min(now)), min(max(then) + grown, max(now))
            if low <= high:
                ends.append((low, high))
    low, high = min(a for a, _ in ends), max(b for _, b in ends)
    found = [(1 - P) * (high - g) <= (1 + P) * (low - g) for g in (0, grown)]
    return found[0], found[1]


def test_readers_who_know_the_difference_are_certain_only_where_hardly_any_share_hides() -> None:
    """And that is only of firms that lost more than the stated part of their value."""
    values = np.random.default_rng(6).integers(300, 900, 150)
    found, _ = released(values, 1, (0.2, 0.6))
    (old, before), (new, after) = found
    a, b = SPEC.factors.least, SPEC.factors.most
    limit = (a + b) * (1 + b) / (2 * b * (1 + a))
    assert Fraction(7, 10) < limit < Fraction(73, 100)
    hidden = seen = 0
    for x, y, w, z in zip(*(v.tolist() for v in (old, before, new, after)), strict=True):
        if x == w:
            continue
        least, most = (int(v[0]) for v in SPEC.factors.amounts(np.array([w])))
        sign = 1 if y > x else -1
        every = [
            certain_by_difference(y, w + sign * d, w - x)
            for d in range(least, most + 1)
            if not certain_by_factor(y, w + sign * d, x, w)
        ]
        hides = sum(not any(c) for c in every)
        # One share of each of 64 parts of the range is tried.
        if 64 * hides <= 2 * (most - least + 1):
            seen += 1
            # Rounding to whole units moves the limit by less than a hundredth of these values.
            assert w < (limit + Fraction(1, 100)) * x, (x, w)
        else:
            assert not any(certain_by_difference(y, z, w - x)), (x, w)
            hidden += any(any(c) for c in every)
    assert hidden > 10
    assert seen > 3


def certain_by_factor(y: int, z: int, x: int, w: int) -> bool:
    """Whether readers who know the factor are certain of the value now."""
    left = left_by([(np.array([x]), np.array([y])), (np.array([w]), np.array([z]))], 0)
    return left is not None and (1 - P) * left[1] <= (1 + P) * left[0]
