"""Two releases of one contribution, to readers who know by how much it changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attacks.sums.channel import Channel

__all__ = ["Changed", "SecondRead", "read_both"]

Ints = np.ndarray[Any, Any]
TRIED = 400
"""Numbers that the second release could have shown instead, from the least amount to the largest."""


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

    ``certain`` are to readers who know the difference, of the value before or after, ``certain_by_factor`` to
    those who know the factor. ``avoidable`` are those of the first that one share in 32 or more would have
    hidden from both, ``within_limits`` those whose factor lies between the limits that are stated.
    """

    contributions: int
    near: float
    within_one: float
    alone: float
    certain: int
    certain_by_factor: int
    avoidable: int
    within_limits: int


def stated_limits(channel: Channel) -> tuple[float, float]:
    """Between these factors a share hides a change from readers who know the difference."""
    a, b = float(channel.low), float(channel.high)
    ratio = (1 + b) / (1 + a)
    return (a + b) / (2 * b) * ratio, (a + b) / (2 * a) / ratio


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
    certain = by_factor = avoidable = within = 0
    ends = stated_limits(channel)
    middle = found.before.astype(np.float64)
    for k in range(found.before.size):
        y, z = int(found.before[k]), int(found.after[k])
        old, new = int(found.true_before[k]), int(found.true_after[k])
        sure = _sure_of_both(channel, (y, z), (old, new), share)
        by_factor += sure.by_factor
        certain += sure.by_difference
        if sure.by_difference:
            avoidable += _avoidable(channel, y, (old, new), z > new, share)
            # Whole units move the limits by less than a hundredth of these values.
            within += ends[0] + 0.01 < new / old < ends[1] - 0.01
        shifted = [(lo - new + old, hi - new + old) for lo, hi in _ranges(channel, z)]
        left = _left(_ranges(channel, y), shifted)
        if left:
            low, high = max(left, key=lambda ends: ends[1] / ends[0])
            middle[k] = (low * high) ** 0.5
    wide = np.abs(middle / found.true_before - 1)
    if (wide <= p).mean() > (off <= p).mean():
        off = wide
    return SecondRead(
        off.size, float((off <= p).mean()), float((off <= 0.01).mean()), float(plain.mean()),
        certain, by_factor, avoidable, within,
    )  # fmt: skip


@dataclass(frozen=True)
class _Sure:
    """Whether readers of two releases are certain of a contribution, by what they know of its change."""

    by_factor: bool
    by_difference: bool


def _sure_of_both(
    channel: Channel, shown: tuple[int, int], true: tuple[int, int], share: Fraction
) -> _Sure:
    """What two shown numbers tell of both contributions; with the factor known one tells the other."""
    old, new = true
    one, two = (_ranges(channel, y) for y in shown)
    by_factor = _sure([(lo * new, hi * new) for lo, hi in one],
                      [(lo * old, hi * old) for lo, hi in two], share)  # fmt: skip
    shifted = [(lo - new + old, hi - new + old) for lo, hi in two]
    grown = [[(lo + new - old, hi + new - old) for lo, hi in ends] for ends in (one, shifted)]
    return _Sure(by_factor, _sure(one, shifted, share) or _sure(grown[0], grown[1], share))


def _avoidable(
    channel: Channel, before: int, true: tuple[int, int], up: bool, share: Fraction
) -> bool:
    """Whether one in 32 or more of the numbers of the second release would have left both readers in doubt."""
    new = true[1]
    sign = 1 if up else -1
    amounts = np.unique(np.linspace(*channel.amounts(new), TRIED).astype(np.int64)).tolist()
    sure = [_sure_of_both(channel, (before, new + sign * d), true, share) for d in amounts]
    return 32 * sum(not (one.by_factor or one.by_difference) for one in sure) >= len(amounts)


def _ranges(channel: Channel, shown: int) -> list[tuple[int, int]]:
    """The contributions that went up to a shown one, and those that went down; ends are exact."""
    every = channel.sources(shown, 0, 1 << 60) if shown < 5000 else []
    if every:
        return [
            (min(part), max(part)) if part else (1, 0)
            for part in ([x for x in every if x < shown], [x for x in every if x > shown])
        ]
    least, most = (lambda x: channel.amounts(x)[0]), (lambda x: channel.amounts(x)[1])
    return [
        (
            _first(shown / (1 + channel.high), lambda x: x + most(x) >= shown),
            _last(shown / (1 + channel.low), lambda x: x + least(x) <= shown),
        ),
        (
            _first(shown / (1 - channel.low), lambda x: x - least(x) >= shown),
            _last(shown / (1 - channel.high), lambda x: x - most(x) <= shown),
        ),
    ]


def _first(near: Fraction, holds: Callable[[int], bool]) -> int:
    """The least number near another one of which something holds; of all larger ones it holds too."""
    x = int(near) - 4
    while not holds(x):
        x += 1
    return x


def _last(near: Fraction, holds: Callable[[int], bool]) -> int:
    """The largest such number; of all smaller ones it holds too."""
    x = int(near) + 4
    while not holds(x):
        x -= 1
    return x


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
