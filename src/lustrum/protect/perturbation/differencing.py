"""The differencing test of a matrix: published parts and a total that allow only one true value.

Where zeros stay and no change is larger than 2, parts published as 1 and 1 beside a total of 0 can only be
1 and 1. A reader sees the parts and the total, each drawn by the same matrix. True parts are possible if
each can lead to its published value, and their sum to the published total. The test goes through all
possible patterns and lists those that disclose a part (the differencing of Fraser and Wooton 2005).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import factorial, prod

import numpy as np

from lustrum.model import Channel, InputError
from lustrum.model.arrays import Floats, Ints, Mask

Counts = tuple[int, ...]


@dataclass(frozen=True)
class RevealingPattern:
    """A published pattern that discloses a part.

    ``certain`` holds, for each part, its only possible value, or ``None`` where several remain. ``small``
    says for each part whether it is certain to be a small count, though its own published value does not
    say so.
    ``probability`` is that of the true parts ``truth`` under which the pattern is most likely.
    """

    parts: Counts
    total: int
    certain: tuple[int | None, ...]
    small: tuple[bool, ...]
    truth: Counts
    probability: float


@dataclass(frozen=True)
class DifferencingReport:
    """What differencing of parts and a total can reveal under a matrix.

    ``exposed`` is, for each combination of true parts that can be given away, the probability that it is.
    """

    patterns: tuple[RevealingPattern, ...]
    exposed: Mapping[Counts, float]
    parts: int
    largest: int

    @property
    def safe(self) -> bool:
        return not self.patterns

    @property
    def worst(self) -> float:
        return max(self.exposed.values(), default=0.0)

    def __str__(self) -> str:
        if self.safe:
            return (
                f"Safe: no {self.parts} published parts with counts up to {self.largest} and their total "
                "give a part away."
            )
        truth = max(self.exposed, key=self.exposed.__getitem__)
        return (
            f"Not safe: {len(self.patterns)} patterns of {self.parts} parts and a total give a part away; "
            f"at worst the counts {', '.join(map(str, truth))}, with probability {self.worst:.3g}."
        )


def differencing_risk(
    channel: Channel, parts: int = 2, largest: int = 6, small: int = 2, keyed: bool = False
) -> DifferencingReport:
    """Find all published patterns of parts and their total that disclose a part.

    Parts and total are drawn independently. A pattern counts if a part has only one possible value left, or
    is certain to lie from 1 to ``small``, and its own published value would have left more (``small=0`` asks
    for certain values only). True parts up to ``largest`` are tried; what remains possible is
    looked for among all counts. With ``keyed`` a total that has the same records as one part, because all
    others are 0, is known to show the same number as that part, as with cell keys.

    >>> from lustrum.protect import RoundingChannel
    >>> report = differencing_risk(RoundingChannel(3), parts=2, largest=4)
    >>> next(p.certain for p in report.patterns if (p.parts, p.total) == ((3, 3), 0))
    (1, 1)
    """
    if parts < 2 or largest < 1 or small < 0:
        raise InputError(
            "The differencing test needs 2 parts or more, counts up to 1 or more and 'small' of 0 or more."
        )
    rows = _ChannelRows(channel)
    if keyed and set(rows.forward(0)) != {0}:
        raise InputError("With cell keys zeros must stay, as cells without records have no key.")
    patterns: list[RevealingPattern] = []
    exposed: dict[Counts, float] = {}
    shown = sorted({p for value in range(largest + 1) for p in rows.forward(value)})
    for published in combinations_with_replacement(shown, parts):
        line = _Line(rows, published, largest, keyed)
        for total in line.totals:
            left = line.left(total)
            disclosed = line.given_away(left, small)
            if disclosed is None:
                continue
            weight = line.weights(left, total)
            best = int(weight.argmax())
            truth = tuple(line.truths[best].tolist())
            patterns.append(
                RevealingPattern(published, total, *disclosed, truth, float(weight[best]))
            )
            for true, chance in line.by_combination(weight):
                exposed[true] = exposed.get(true, 0.0) + chance
    return DifferencingReport(tuple(patterns), exposed, parts, largest)


class _ChannelRows:
    """The rows of a channel, and the true values that lead to each published one, computed once."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._forward: dict[int, dict[int, float]] = {}
        self._back: dict[int, Ints] = {}

    def forward(self, true: int) -> dict[int, float]:
        """The published values that a true one can become, with their probabilities."""
        if true not in self._forward:
            transitions = self._channel.transitions(np.array([true], dtype=np.int64))
            self._forward[true] = {
                int(p): float(q)
                for p, q in zip(transitions.published, transitions.probability, strict=True)
                if q > 0
            }
        return self._forward[true]

    def back(self, published: int) -> Ints:
        """The true values that can become a published one."""
        if published not in self._back:
            low, high = (int(b[0]) for b in self._channel.support(np.array([published])))
            origins = [v for v in range(low, high + 1) if published in self.forward(v)]
            self._back[published] = np.array(origins, dtype=np.int64)
        return self._back[published]


class _Line:
    """Published parts, all true parts that can lead to them, and those that agree with a total."""

    def __init__(self, rows: _ChannelRows, published: Counts, largest: int, keyed: bool) -> None:
        self.rows, self.published, self.keyed = rows, published, keyed
        self.origins = [rows.back(p) for p in published]
        grid = np.meshgrid(*self.origins, indexing="ij")
        self.truths = np.stack([g.ravel() for g in grid], axis=1)
        self.sums = self.truths.sum(axis=1)
        self.tried = self.truths.max(axis=1) <= largest

    @cached_property
    def totals(self) -> list[int]:
        """The totals that can be published with these parts."""
        sums = np.unique(self.sums[self.tried]).tolist()
        return sorted({p for value in sums for p in self.rows.forward(value)})

    @cached_property
    def _alone(self) -> tuple[Mask, Ints]:
        """Where one part holds everybody, and the published value of that part."""
        filled = self.truths > 0
        shown = np.array(self.published)[filled.argmax(axis=1)]
        return filled.sum(axis=1) == 1, np.where(filled.any(axis=1), shown, 0)

    def left(self, total: int) -> Mask:
        """Which true parts remain possible beside a published total."""
        possible = np.isin(self.sums, self.rows.back(total))
        if self.keyed:
            alone, shown = self._alone
            possible &= ~alone | (shown == total)
        return possible

    def given_away(
        self, left: Mask, small: int
    ) -> tuple[tuple[int | None, ...], tuple[bool, ...]] | None:
        """The parts that are certain, and those certain to be small; ``None`` if there are none."""
        if not (left & self.tried).any():
            return None
        remaining = self.truths[left]
        low, high = remaining.min(axis=0), remaining.max(axis=0)
        certain = tuple(
            int(a) if a == b and origin.size > 1 else None
            for a, b, origin in zip(low, high, self.origins, strict=True)
        )
        is_small = tuple(
            bool(a >= 1 and b <= small and not (origin.min() >= 1 and origin.max() <= small))
            for a, b, origin in zip(low, high, self.origins, strict=True)
        )
        some = any(c is not None for c in certain) or any(is_small)
        return (certain, is_small) if some else None

    @cached_property
    def _chances(self) -> Floats:
        """The probability of the published parts for each combination of true ones."""
        chance = np.ones(len(self.truths))
        for column, published in enumerate(self.published):
            share = {int(v): self.rows.forward(int(v))[published] for v in self.origins[column]}
            chance *= np.array([share[v] for v in self.truths[:, column].tolist()])
        return chance

    def weights(self, left: Mask, total: int) -> Floats:
        """The probability of parts and total for each combination of true parts that is tried."""
        share = np.array([self.rows.forward(int(s)).get(total, 0.0) for s in self.sums])
        if self.keyed:
            share = np.where(self._alone[0], 1.0, share)
        return np.where(left & self.tried, self._chances * share, 0.0)

    def by_combination(self, weight: Floats) -> list[tuple[Counts, float]]:
        """The probability of the published parts in any order."""
        chances: dict[Counts, float] = {}
        for k in np.flatnonzero(weight).tolist():
            true = tuple(sorted(self.truths[k].tolist()))
            chances[true] = chances.get(true, 0.0) + float(weight[k])
        orders = _orders(self.published)
        return [(true, chance * orders / _orders(true)) for true, chance in chances.items()]


def _orders(values: Counts) -> int:
    """The number of distinct orders of these values."""
    return factorial(len(values)) // prod(factorial(values.count(v)) for v in set(values))
