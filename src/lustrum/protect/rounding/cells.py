"""Rounding of each cell on its own: at random, to the nearest multiple, or of small counts only.

Unbiased random rounding (Shlomo, Antal, Elliot 2015, section 3.2): a count ``x`` with residue ``r = x mod
b`` becomes ``x - r + b`` with probability ``r / b`` and ``x - r`` otherwise; multiples of ``b`` stay.
Driven by record keys, a cell is rounded alike in every table, run and engine (Fraser and Wooton 2005). The
page on rounding compares the three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import Channel, Release, Table, Transitions
from lustrum.model.arrays import Ints, Words
from lustrum.model.chance import Chance
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities, changed_by_rounding
from lustrum.protect.entropy_left import entropy_left
from lustrum.protect.method import TABULAR, MethodSpec, Stage, uniform_words, whole_counts
from lustrum.protect.totals.safe import hidden_totals, safe_totals
from lustrum.protect.totals.summed import added_totals, released_sums


def _abilities(base: int, channel: Channel, *, alone: bool = True) -> Abilities:
    """What rounding to a base declares; ``alone`` says that each number follows from its own records."""
    return Abilities(
        repeatable=True,
        keyed_per_cell=alone,
        one_number=alone,
        changed=changed_by_rounding(base),
        entropy=entropy_left(channel),
        channels=(channel,),
    )


@dataclass(frozen=True)
class RoundingChannel:
    """``P(published | true)`` of unbiased random rounding to a base."""

    base: int

    def transitions(self, true: Ints) -> Transitions:
        """Two entries per value, or one for a multiple of the base."""
        rows = np.arange(true.size, dtype=np.intp)
        residue = true % self.base
        down = Transitions(rows, true - residue, 1.0 - residue / self.base)
        moving = residue > 0
        return Transitions(
            np.concatenate((down.origin, rows[moving])),
            np.concatenate((down.published, (true - residue + self.base)[moving])),
            np.concatenate((down.probability, residue[moving] / self.base)),
        )

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """Within less than one base, and not below zero."""
        return np.maximum(published - self.base + 1, 0), published + self.base - 1

    def stay(self, lowest: int, highest: int | None) -> float:
        """One residue in ``base`` stays: the mean diagonal over whole classes of residues."""
        return 1.0 / self.base


@dataclass(frozen=True)
class RandomRounding(MethodSpec):
    """Unbiased random rounding of every cell, totals included, each on its own.

    ``apply`` uses the table's cell keys; a table without keys needs a generator. Totals are rounded like
    any other cell, so that the same cell is the same in every table. Where totals rounded on their own
    would disclose an inner cell, :mod:`~lustrum.protect.totals.safe` hides or replaces them.

    >>> table = Table.from_counts([[1, 5], [7, 0]])
    >>> release = RandomRounding(base=3).apply(table, rng=np.random.default_rng(1))
    >>> bool((release.published % 3 == 0).all())
    True
    """

    name: ClassVar[str] = "random-rounding"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    base: int = parameter(3, "Numbers are published as multiples of this.", least=2)

    @property
    def abilities(self) -> Abilities:
        """Every number follows from its own records, and is a multiple of the base."""
        return _abilities(self.base, RoundingChannel(self.base))

    def draw(self, table: Table, rng: Chance) -> Release:
        counts = whole_counts(table, "Random rounding")
        random_words = uniform_words(table, rng, f"{self.name} {self.base}")
        channel = RoundingChannel(self.base)
        rounded = round_randomly(counts, self.base, random_words)
        published = safe_totals(table.axes, rounded, channel, table.structural, keyed=rng is None)
        return released_sums(
            table,
            self,
            published,
            channel=channel,
            notes=(
                say(
                    "Every number is randomly rounded to a multiple of {base}: it is less than {base} "
                    "away from the true one, and right on average.",
                    base=self.base,
                ),
                hidden_totals()
                if rng is None
                else say(
                    "Totals are rounded on their own, so the numbers may not add up to them; a total "
                    "that does add up may be the sum of the rounded numbers."
                ),
            ),
        )


def round_randomly(values: Ints, base: int, random_words: Words) -> Ints:
    """Round counts to adjacent multiples of a base, driven by uniform 64-bit words."""
    residue = values % base
    thresholds = np.array([(r << 64) // base for r in range(base)], dtype=np.uint64)
    return values - residue + np.where(random_words < thresholds[residue], base, 0)


@dataclass(frozen=True)
class NearestChannel:
    """``P(published | true)`` of rounding to the nearest multiple: one value has probability 1."""

    base: int

    def transitions(self, true: Ints) -> Transitions:
        """One entry per value."""
        true = np.asarray(true, dtype=np.int64)
        return Transitions(
            np.arange(true.size, dtype=np.intp),
            round_to_nearest(true, self.base),
            np.ones(true.size),
        )

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """Half a base on either side, not below zero; low is above high where no count leads to a value."""
        published = np.asarray(published, dtype=np.int64)
        possible = (published >= 0) & (published % self.base == 0)
        below = self.base // 2
        low = np.maximum(published - below, 0)
        high = published + (self.base - 1 - below)
        return np.where(possible, low, published + 1), np.where(possible, high, published - 1)

    def stay(self, lowest: int, highest: int | None) -> float:
        """One residue in ``base`` stays: the mean diagonal over whole classes of residues."""
        return 1.0 / self.base


@dataclass(frozen=True)
class ConventionalRounding(MethodSpec):
    """Every count, totals included, becomes the nearest multiple of the base; halves go up.

    A half exists for an even base only: to base 10 the count 5 becomes 10 and 4 becomes 0. Where totals
    rounded on their own would disclose an inner cell, :mod:`~lustrum.protect.totals.safe` hides or replaces
    them.

    >>> ConventionalRounding(base=5).apply(Table.from_counts([2, 3, 7, 8])).published.tolist()
    [0, 5, 5, 10]
    """

    name: ClassVar[str] = "conventional-rounding"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    base: int = parameter(3, "Numbers are published as multiples of this.", least=2)

    @property
    def abilities(self) -> Abilities:
        """Every number follows from its own records, and is a multiple of the base."""
        return _abilities(self.base, NearestChannel(self.base))

    def draw(self, table: Table, rng: Chance) -> Release:
        """Round a table of counts; no generator is needed."""
        counts = whole_counts(table, "Conventional rounding")
        channel = NearestChannel(self.base)
        rounded = round_to_nearest(counts, self.base)
        published = safe_totals(table.axes, rounded, channel, table.structural, hide=True)
        return released_sums(
            table,
            self,
            published,
            channel=channel,
            notes=(
                say("Every number is rounded to the nearest multiple of {base}.", base=self.base)
                if self.base % 2
                else say(
                    "Every number is rounded to the nearest multiple of {base}, halves up.",
                    base=self.base,
                ),
                hidden_totals(),
            ),
        )


def round_to_nearest(values: Ints, base: int) -> Ints:
    """The nearest multiple of a base, halves up.

    >>> round_to_nearest(np.array([4, 5, 14, 15]), 10).tolist()
    [0, 10, 10, 20]
    """
    return np.asarray((values + base // 2) // base * base)


How = Literal["nearest", "random"]


@dataclass(frozen=True)
class SmallCountChannel:
    """``P(published | true)`` of rounding small counts, to the nearest or at random."""

    base: int
    how: How = "nearest"

    def transitions(self, true: Ints) -> Transitions:
        """One entry per value; two for a small count that is rounded at random."""
        true = np.asarray(true, dtype=np.int64)
        rows = np.arange(true.size, dtype=np.intp)
        if self.how == "nearest":
            return Transitions(rows, _nearest(true, self.base), np.ones(true.size))
        small = true < self.base
        up = small & (true > 0)
        return Transitions(
            np.concatenate((rows, rows[up])),
            np.concatenate((np.where(small, 0, true), np.full(int(up.sum()), self.base))),
            np.concatenate((np.where(small, 1.0 - true / self.base, 1.0), true[up] / self.base)),
        )

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """A range for 0 and for the base, one value above; low is above high if no count is possible."""
        published = np.asarray(published, dtype=np.int64)
        first_up = self.base - self.base // 2 if self.how == "nearest" else 1
        last_down = first_up - 1 if self.how == "nearest" else self.base - 1
        low = np.where(published == self.base, first_up, published)
        high = np.where(published == 0, last_down, published)
        possible = (published == 0) | (published >= self.base)
        return np.where(possible, low, published + 1), np.where(possible, high, published - 1)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The share of values that stay: none from 1 to ``base - 1``, and all others.

        Without a highest value the share is 1.
        """
        if highest is None:
            return 1.0
        values = highest - lowest + 1
        moved = max(0, min(highest, self.base - 1) - max(lowest, 1) + 1)
        return (values - moved) / values if values > 0 else 1.0


@dataclass(frozen=True)
class SmallCountRounding(MethodSpec):
    """Counts below ``base`` become 0 or ``base``; totals are ``"sums"`` of the published numbers.

    With ``totals="own"`` a total is rounded like any other cell and hidden where it would disclose a part.
    That is often the case: larger counts are exact, and the difference of two can be a small count.
    ``"nearest"`` rounds half the base or more up, which is biased; ``"random"`` rounds ``x`` up with
    probability ``x / base``, by the table's cell keys or a generator.

    >>> SmallCountRounding(base=3).apply(Table.from_counts([0, 1, 2, 3, 40])).published.tolist()
    [0, 0, 3, 3, 40]
    """

    name: ClassVar[str] = "small-count-rounding"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    base: int = parameter(3, "Counts below this become 0 or this.", least=2)
    how: How = parameter("nearest", "To the nearer of the two, or at random without bias.")
    totals: Literal["sums", "own"] = parameter(
        "sums", "Totals are sums of the published numbers, or rounded on their own.", brief=True
    )

    @property
    def abilities(self) -> Abilities:
        """Totals that are sums can differ from the number that the same people have as a cell."""
        channel = SmallCountChannel(self.base, self.how)
        return _abilities(self.base, channel, alone=self.totals == "own")

    def draw(self, table: Table, rng: Chance) -> Release:
        """Round the small counts of a table and add the totals up."""
        counts = whole_counts(table, "Rounding of small counts")
        random_words = None
        if self.how == "random":
            random_words = uniform_words(table, rng, f"{self.name} {self.base}")
        channel = SmallCountChannel(self.base, self.how)
        rounded = round_small_counts(counts, self.base, random_words)
        published = (
            safe_totals(
                table.axes, rounded, channel, table.structural, keyed=rng is None, hide=True
            )
            if self.totals == "own"
            else added_totals(table.axes, rounded, *channel.support(rounded))
        )
        how = (
            say("at random, and right on average") if self.how == "random" else say("to the nearer")
        )
        return released_sums(
            table,
            self,
            published,
            channel=channel,
            notes=(
                say(
                    "A number below {base} is rounded to 0 or {base}, {how}; larger ones are as counted.",
                    base=self.base,
                    how=how,
                ),
                hidden_totals()
                if self.totals == "own"
                else say("Totals are the sums of the published numbers."),
            ),
        )


def round_small_counts(values: Ints, base: int, random_words: Words | None = None) -> Ints:
    """Counts below the base to 0 or the base: to the nearer, or by uniform words without bias."""
    if random_words is None:
        return _nearest(values, base)
    return np.where(values < base, round_randomly(values, base, random_words), values)


def _nearest(values: Ints, base: int) -> Ints:
    return np.where(values < base, round_to_nearest(values, base), values)
