"""What the public knows of protected sums, tried out number by number; shares no code with the method."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, floor
from typing import Any

import numpy as np

__all__ = ["Channel", "drawn"]

Ints = np.ndarray[Any, Any]
UNBOUNDED = 1 << 60


@dataclass(frozen=True)
class Channel:
    """Contributions change by a share from ``low`` to ``high``, rounded up, and by 2 at most from 3 on."""

    low: Fraction
    high: Fraction

    def amounts(self, size: int) -> tuple[int, int]:
        """The least and the largest change of a contribution."""
        most = ceil(self.high * size)
        return ceil(self.low * size), max(most, 2) if size >= 3 else most

    def sources(self, shown: int, first: int, last: int) -> list[int]:
        """Every contribution between two numbers that can show this one, either way."""
        return _sources(self, shown, first, last)

    def certain(self, sources: list[int], share: Fraction) -> bool:
        """Whether one number is within a share of all of these."""
        return bool(sources) and (1 - share) * max(sources) <= (1 + share) * min(sources)


@cache
def _sources(channel: Channel, shown: int, first: int, last: int) -> list[int]:
    low = max(first, floor(shown / (1 + channel.high)) - 3, 0)
    high = min(last, ceil((shown + 1) / (1 - channel.high)) + 3)
    found = []
    for size in range(low, high + 1):
        least, most = channel.amounts(size)
        if least <= abs(shown - size) <= most:
            found.append(size)
    return found


def drawn(true: Ints, channel: Channel, rng: np.random.Generator) -> Ints:
    """The numbers of a method that draws shares and directions and regards nothing else: the control."""
    share = rng.uniform(float(channel.low), float(channel.high), true.size)
    way = rng.choice([-1, 1], true.size)
    return true + way * np.ceil(share * true).astype(np.int64)
