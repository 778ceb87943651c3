"""Rounding of small counts only: a count below the base becomes 0 or the base, all others stay.

Nobody sees a count of 1 or 2, and large counts keep their value. Each cell is rounded by itself. Totals are
the sums of what is published, so that the table is additive and a total cannot disclose a small count; or
they are rounded like any other cell, so that the same people show the same number in every table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import Release, Table, Transitions
from lustrum.model.arrays import Ints, Words
from lustrum.model.chance import Seed
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities, changed_by_rounding
from lustrum.protect.entropy_left import entropy_left
from lustrum.protect.method import (
    TABULAR,
    MethodSpec,
    Stage,
    checked_input,
    uniform_words,
    whole_counts,
)
from lustrum.protect.rounding.random import round_randomly
from lustrum.protect.totals.safe import hidden_totals, safe_totals
from lustrum.protect.totals.summed import added_totals, released_sums

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
    ``how="nearest"`` rounds a count of half the base or more up, which needs no generator and is biased.
    ``how="random"`` rounds a count ``x`` up with probability ``x / base``, which is right on average; it
    uses the table's cell keys, or a generator.

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
        alone = self.totals == "own"
        channel = SmallCountChannel(self.base, self.how)
        return Abilities(
            repeatable=True,
            keyed_per_cell=alone,
            one_number=alone,
            changed=changed_by_rounding(self.base),
            entropy=entropy_left(channel),
            channels=(channel,),
        )

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Round the small counts of a table and add the totals up."""
        rng = checked_input(table, rng)
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
    return np.where(values < base, (values + base // 2) // base * base, values)
