"""Unbiased random rounding (Shlomo, Antal, Elliot 2015, section 3.2).

A count ``x`` with residue ``r = x mod b`` becomes ``x - r + b`` with probability ``r / b`` and ``x - r``
otherwise; multiples of ``b`` stay. Driven by record keys, a cell is rounded alike in every table, run and
engine, so that asking again reveals nothing new (Fraser and Wooton 2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import Release, Table, Transitions
from lustrum.model.arrays import Ints
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
from lustrum.protect.totals.safe import hidden_totals, safe_totals
from lustrum.protect.totals.summed import released_sums


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
        channel = RoundingChannel(self.base)
        return Abilities(
            repeatable=True,
            keyed_per_cell=True,
            one_number=True,
            changed=changed_by_rounding(self.base),
            entropy=entropy_left(channel),
            channels=(channel,),
        )

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Round a table of counts."""
        rng = checked_input(table, rng)
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


def round_randomly(values: Ints, base: int, random_words: npt.NDArray[np.uint64]) -> Ints:
    """Round counts to adjacent multiples of a base, driven by uniform 64-bit words."""
    residue = values % base
    thresholds = np.array([(r << 64) // base for r in range(base)], dtype=np.uint64)
    return values - residue + np.where(random_words < thresholds[residue], base, 0)
