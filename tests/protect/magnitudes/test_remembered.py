"""What two releases leave open together, against a slow version in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lustrum.audit.contribution import candidates, certain_within
from lustrum.protect.magnitudes.factors import amounts, needed_factors
from lustrum.protect.magnitudes.remembered import RememberedSums, sums_together

P = Fraction(1, 10)
FACTORS = needed_factors(P, "known")


def release(true: np.ndarray, shown: np.ndarray) -> RememberedSums:
    count = true.size
    return RememberedSums(
        {},
        0,
        np.arange(count, dtype=np.uint64),
        {"turnover": true},
        {"turnover": shown},
        np.zeros((1, count), dtype=np.int64),
        np.arange(count),
        np.zeros((1, count), dtype=np.int64),
    )


def drawn(true: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    share = rng.integers(FACTORS.low, FACTORS.high, true.size)
    sign = rng.choice([-1, 1], true.size)
    return true + sign * np.sign(true) * amounts(np.abs(true), share)


def slowly_certain(old: int, new: int, was: int, now: int) -> bool:
    """Candidates of both releases one by one, each pair of directions joined in fractions."""
    sides = ("up", "down")
    factor = Fraction(abs(new), abs(old))
    parts = []
    for s in sides:
        low, high = (e[0] for e in candidates(np.array([abs(now)]), FACTORS.least, FACTORS.most, s))
        for t in sides:
            before = candidates(np.array([abs(was)]), FACTORS.least, FACTORS.most, t)
            first, last = max(low, before[0][0] * factor), min(high, before[1][0] * factor)
            if first <= last:
                parts.append((first, last))
    if not parts:
        return False
    least, most = min(a for a, _ in parts), max(b for _, b in parts)
    return bool(certain_within(np.array([least]), np.array([most]), P)[0])


@pytest.mark.parametrize("size", [9, 300, 10**6, 2**61])
def test_two_releases_together_agree_with_a_slow_version(size: int) -> None:
    rng = np.random.default_rng(size % 1000)
    old = rng.integers(1, size, 150) * rng.choice([-1, 1], 150)
    stretch = rng.uniform(0.5, 2.0, 150)
    new = np.maximum(np.abs(old) * stretch, 1).astype(np.int64) * np.sign(old)
    new[:20] = old[:20]
    new[20:25] = 0
    was, now = drawn(old, rng), drawn(new, rng)
    now[:10] = was[:10]
    found = sums_together(release(old, was), release(new, now), "turnover", FACTORS, P)
    judged = [i for i in range(150) if new[i] != 0 and not (old[i] == new[i] and was[i] == now[i])]
    slow = sum(slowly_certain(int(old[i]), int(new[i]), int(was[i]), int(now[i])) for i in judged)
    assert found.certain == slow
    assert slow > 0
    assert found.unchanged + found.changed + found.other == int((new != 0).sum())
