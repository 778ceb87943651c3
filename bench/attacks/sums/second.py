"""Two releases of one contribution, to readers who know by how much it changed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attacks.sums.channel import Channel

__all__ = ["Changed", "SecondRead", "read_both"]

Ints = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Changed:
    """Contributions with what both releases show of them; the truth is known up to the difference."""

    before: Ints
    after: Ints
    true_before: Ints
    true_after: Ints


@dataclass(frozen=True)
class SecondRead:
    """Guesses within p and within one percent, those of one release alone, and certain ones.

    ``certain`` are to readers who know the difference, ``certain_by_factor`` to those who know the factor.
    """

    contributions: int
    near: float
    within_one: float
    alone: float
    certain: int
    certain_by_factor: int


def read_both(found: Changed, channel: Channel, share: Fraction) -> SecondRead:
    """Guess the share from the ratio of both differences, or the middle of the longest range that is left open.

    The better of the two guesses counts.
    """
    change = found.true_after - found.true_before
    seen = found.after - found.before
    p = float(share)
    a, b = float(channel.low), float(channel.high)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = seen / change
    # The factor is one that the method can draw: the nearest such.
    up, down = np.clip(factor, 1 + a, 1 + b), np.clip(factor, 1 - b, 1 - a)
    nearest = np.where(np.abs(factor - up) < np.abs(factor - down), up, down)
    guess = found.before / np.where(np.isfinite(nearest), nearest, 1 + a)
    off = np.abs(guess / found.true_before - 1)
    plain = np.abs(found.before * (1 - p) / (1 + a) / found.true_before - 1) <= p
    certain = by_factor = 0
    middle = found.before.astype(np.float64)
    for k in range(found.before.size):
        y, z = int(found.before[k]), int(found.after[k])
        old, new = int(found.true_before[k]), int(found.true_after[k])
        ranges = _ranges(channel, y), _ranges(channel, z)
        by_factor += _sure([(lo * new, hi * new) for lo, hi in ranges[0]],
                           [(lo * old, hi * old) for lo, hi in ranges[1]], share)  # fmt: skip
        shifted = [(lo - new + old, hi - new + old) for lo, hi in ranges[1]]
        certain += _sure(ranges[0], shifted, share)
        left = _left(ranges[0], shifted)
        if left:
            low, high = max(left, key=lambda ends: ends[1] / ends[0])
            middle[k] = (low * high) ** 0.5
    wide = np.abs(middle / found.true_before - 1)
    if (wide <= p).mean() > (off <= p).mean():
        off = wide
    return SecondRead(
        off.size, float((off <= p).mean()), float((off <= 0.01).mean()), float(plain.mean()),
        certain, by_factor,
    )  # fmt: skip


def _ranges(channel: Channel, shown: int) -> list[tuple[int, int]]:
    """The contributions that went up to a shown one, and those that went down."""
    every = channel.sources(shown, 0, 1 << 60) if shown < 5000 else []
    if every:
        return [
            (min(part), max(part)) if part else (1, 0)
            for part in ([x for x in every if x < shown], [x for x in every if x > shown])
        ]
    return [
        (int(shown / (1 + channel.high)) + 1, int(shown / (1 + channel.low))),
        (-int(-shown / (1 - channel.low)), int((shown + 1) / (1 - channel.high))),
    ]


def _left(one: list[tuple[int, int]], two: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What both leave open, for each direction in which they leave anything."""
    return [
        (max(a[0], b[0]), min(a[1], b[1]))
        for a, b in zip(one, two, strict=True)
        if max(a[0], b[0]) <= min(a[1], b[1])
    ]


def _sure(one: list[tuple[int, int]], two: list[tuple[int, int]], share: Fraction) -> bool:
    """Whether what both leave open, with the same direction, is certain within a share."""
    left = _left(one, two)
    if not left:
        return False
    least, most = min(a for a, _ in left), max(b for _, b in left)
    return (1 - share) * most <= (1 + share) * least
