"""Firms that are alone in a finest cell, to readers who know the size class of each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attacks.sums.channel import Channel

__all__ = ["Alone", "Classed", "with_classes"]

Ints = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Alone:
    """Firms alone in a finest cell: what it shows, the ends of the class, and the truth to judge by."""

    shown: Ints
    first: Ints
    last: Ints
    true: Ints


@dataclass(frozen=True)
class Classed:
    """How many firms are certain within p percent, exactly known, and certain without their class.

    ``by_class`` are firms whose class alone gives them away, and are not in the other numbers. ``wrong`` are
    claims that miss the truth.
    """

    firms: int
    certain: int
    exact: int
    without: int
    by_class: int
    wrong: int


def with_classes(alone: Alone, channel: Channel, share: Fraction) -> Classed:
    """List every contribution of the class that can show what is shown."""
    certain = exact = without = by_class = wrong = 0
    for shown, first, last, true in zip(
        *(column.tolist() for column in (alone.shown, alone.first, alone.last, alone.true)),
        strict=True,
    ):
        if true == 0:
            continue
        if (1 - share) * last <= (1 + share) * max(first, 1):
            by_class += 1
            continue
        left = channel.sources(shown, first, last)
        if channel.certain(left, share):
            certain += 1
            exact += len(left) == 1
            wrong += true not in left
        without += channel.certain(channel.sources(shown, 0, 1 << 60), share)
    return Classed(int((alone.true > 0).sum()), certain, exact, without, by_class, wrong)
