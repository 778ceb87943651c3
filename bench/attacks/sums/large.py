"""Large firms: how their shares are spread, guesses by size, and what the runner-up knows of the leader."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from attacks.register import Register
from attacks.sums.channel import Channel

__all__ = ["Guessed", "Pairs", "Spread", "guesses", "pairs", "spread"]

Ints = np.ndarray[Any, Any]
LIMIT = 2.23
"""A uniform sample exceeds this Kolmogorov distance times the root of its size once in 10,000 times."""


@dataclass(frozen=True)
class Spread:
    """Shares of some firms: how many lie in the lowest quarter of the range, and the distance from uniform."""

    firms: int
    lowest_quarter: float
    distance: float

    @property
    def uniform(self) -> bool:
        """Whether a test with one false alarm in 10,000 calls the shares uniform."""
        return self.distance <= LIMIT


def spread(true: Ints, shown: Ints, channel: Channel) -> Spread:
    """Compare the shares of contributions with uniform ones."""
    low, high = float(channel.low), float(channel.high)
    place = np.sort((np.abs(shown - true) / true - low) / (high - low))
    steps = np.arange(place.size + 1) / place.size
    distance = max(np.abs(place - steps[1:]).max(), np.abs(place - steps[:-1]).max())
    return Spread(place.size, float((place < 0.25).mean()), float(distance * np.sqrt(place.size)))


@dataclass(frozen=True)
class Guessed:
    """How often a guess is within p percent: the better of two plain ones, and with the direction known."""

    firms: int
    plain: float
    with_direction: float


def guesses(true: Ints, shown: Ints, channel: Channel, p: float) -> Guessed:
    """Guess from the shown number and the public shares alone."""
    up, down = _guess(shown, channel, p)
    ups, downs = (np.abs(g - true) <= p * true for g in (up, down))
    known = np.where(shown > true, ups, downs)
    return Guessed(true.size, float(max(ups.mean(), downs.mean())), float(known.mean()))


def _guess(shown: Ints, channel: Channel, p: float) -> tuple[Ints, Ints]:
    """The number that covers the smallest shares, if the contribution went up, and if it went down."""
    low = float(channel.low)
    return shown * (1 - p) / (1 + low), shown * (1 + p) / (1 - low)


@dataclass(frozen=True)
class Pairs:
    """Leaders of cells, guessed by the second largest contributor, who takes the direction that is not its own.

    ``base`` is how often the better of both directions is within p percent, whoever guesses. ``most`` is the
    largest gain, in points, over kinds of cells that the second largest can tell apart.
    """

    cells: int
    opposite: float
    guessed: float
    base: float
    most: float

    @property
    def gain(self) -> float:
        """What its own direction tells the second largest, in points."""
        return 100 * (self.guessed - self.base)


FEWEST = 500
"""Kinds of cells of which there are fewer are left aside: their gain is chance."""


def pairs(register: Register, measure: str, channel: Channel, p: float) -> Pairs:
    """Look at every cell of every table at all levels with two contributors or more."""
    tops, shown, totals = [], [], []
    for levels in register.tables():
        cell = register.cells(levels)
        sets = register.ranked(cell, int(cell.max()) + 1, measure)
        many = (sets.contributors > 1) & (sets.true[:, 0] > sets.true[:, 1])
        tops.append(sets.true[many, :2])
        shown.append(sets.shown[many, :2])
        totals.append(sets.true_total[many])
    true, seen, total = (np.concatenate(one) for one in (tops, shown, totals))
    leader, runner_up = ((seen[:, k] > true[:, k]) for k in (0, 1))
    up, down = _guess(seen[:, 0], channel, p)
    ups, downs = (np.abs(g - true[:, 0]) <= p * true[:, 0] for g in (up, down))
    hit = np.where(runner_up, downs, ups)
    base = max(ups.mean(), downs.mean())
    kinds = _kinds(true / np.maximum(total, 1)[:, None], p)
    gains = [
        100 * float(hit[k].mean() - max(ups[k].mean(), downs[k].mean()))
        for k in kinds
        if k.sum() >= FEWEST
    ]
    opposite = float((leader != runner_up).mean())
    return Pairs(len(true), opposite, float(hit.mean()), float(base), max(gains, default=0.0))


def _kinds(part: Ints, p: float) -> Iterator[Ints]:
    """Cells that are not sensitive, by the part of the second largest and of both together."""
    both = part.sum(axis=1)
    close = 1 - both >= p * part[:, 0]
    yield ~close
    for least, most in pairwise((0.0, 0.1, 0.2, 0.35, 0.51)):
        yield close & (part[:, 1] > least) & (part[:, 1] <= most)
    for least, most in pairwise((0.0, 0.4, 0.6, 0.8, 1.01)):
        yield close & (both > least) & (both <= most)
