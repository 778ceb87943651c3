"""Conventional rounding: every count to the nearest multiple of a base.

It is not random, so the same count gives the same number in every table without keys. It is biased for
small counts, and it protects less than random rounding to the same base: ``base`` true counts can lead to a
published number, and nearly twice as many under random rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import Release, Table, Transitions
from lustrum.model.arrays import Ints
from lustrum.model.chance import Seed
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities, changed_by_rounding
from lustrum.protect.entropy_left import entropy_left
from lustrum.protect.method import TABULAR, MethodSpec, Stage, checked_input, whole_counts
from lustrum.protect.totals.safe import hidden_totals, safe_totals
from lustrum.protect.totals.summed import released_sums


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
        channel = NearestChannel(self.base)
        return Abilities(
            repeatable=True,
            keyed_per_cell=True,
            one_number=True,
            changed=changed_by_rounding(self.base),
            entropy=entropy_left(channel),
            channels=(channel,),
        )

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Round a table of counts; no generator is needed."""
        rng = checked_input(table, rng)
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
