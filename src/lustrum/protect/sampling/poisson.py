"""Poisson sampling: everybody is drawn independently, with equal probability or by a measure of size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Seed, required_generator
from lustrum.model.errors import choices
from lustrum.model.parameters import parameter
from lustrum.model.records import Records
from lustrum.model.text import say
from lustrum.numeric.distributions import binomial_quantile
from lustrum.protect.abilities import Abilities, changed_by_leaving
from lustrum.protect.entropy_left import left_by_thinning
from lustrum.protect.method import MethodSpec, Stage, checked_input, uniform_words, whole_counts
from lustrum.protect.microdata import canonical_order
from lustrum.protect.sampling import estimates
from lustrum.protect.sampling.channels import BinomialThinning
from lustrum.protect.sampling.estimates import drawn_records, sample_release
from lustrum.protect.totals.inner_table import InnerTable


@dataclass(frozen=True)
class PoissonSampling(MethodSpec):
    """Everybody is drawn independently, with probability ``fraction``.

    With ``size``, a measure above 0, the probabilities are in proportion to it and ``fraction`` is their
    mean; a record that would have more than 1 is drawn for certain. The counts of the sample are published
    unchanged; ``weight`` names the column of weights that drawn records get.

    Without ``size`` the method also works on tables. From record keys the same cell then has the same
    sample in every table.

    >>> PoissonSampling(0.25).publish(Table.from_counts([3])).low.tolist()
    [3]
    """

    name: ClassVar[str] = "poisson-sampling"
    stages: ClassVar[tuple[Stage, ...]] = ("microdata", "hypercube", "table")
    fraction: float = parameter(0.1, "The share of people drawn.", above=0, below=1)
    size: str | None = parameter(None, "A measure to which probabilities are in proportion.")
    weight: str = parameter("weight", "The name of the weight that drawn records get.", brief=True)

    @property
    def abilities(self) -> Abilities:
        """Sampling by size may draw some people for certain."""
        if self.size:
            return Abilities(repeatable=True)
        return Abilities(
            repeatable=True,
            changed=changed_by_leaving(1.0 - self.fraction),
            entropy=left_by_thinning(self.fraction),
        )

    def apply_records(self, records: Records, rng: Seed) -> Records:
        """The drawn records with their weights; who is drawn does not depend on the order of rows."""
        rng = required_generator(rng)
        order = canonical_order(records)
        chance = self.probabilities(records)[order]
        drawn = rng.random(len(records)) < chance
        return drawn_records(records, order[drawn], chance[drawn], self.weight)

    def probabilities(self, records: Records) -> Floats:
        """The probability with which each record is drawn."""
        if self.size is None:
            return np.full(len(records), float(self.fraction))
        if self.size not in records.numbers:
            raise InputError(
                f"The records have no measure {self.size!r}; {choices(self.size, records.numbers)}."
            )
        return proportional_to_size(records.numbers[self.size], self.fraction * len(records))

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Draw from the people of a table's inner cells; totals are those of the sample."""
        rng = checked_input(table, rng)
        whole_counts(table, "Poisson sampling")
        if self.size is not None:
            raise InputError("Poisson sampling by size needs records; a table has no sizes.")
        inner = InnerTable.of(table.axes, "Poisson sampling")
        block = inner.counts(table)
        if rng is not None:
            random_words = rng.integers(0, 2**64, size=block.shape, dtype=np.uint64)
        else:
            every = uniform_words(table, None, f"{self.name} {self.fraction!r}")
            random_words = inner.take(every).astype(np.uint64)
        chance = ((random_words >> np.uint64(11)) + 0.5) * 2.0**-53
        drawn = binomial_quantile(chance, block, self.fraction)
        return self._release(table, inner.added_up(drawn))

    def publish(self, table: Table) -> Release:
        """A table counted from drawn records."""
        return self._release(table, table.values)

    def channel(self) -> BinomialThinning | None:
        """The channel of a cell; None for sampling by size, where it depends on who is in the cell."""
        return BinomialThinning(self.fraction) if self.size is None else None

    def estimates(self, table: Table) -> estimates.PopulationEstimates:
        """Population counts estimated from a table of sample counts, with standard errors."""
        if self.size is not None:
            raise InputError(
                "A sample by size is estimated from its records: 'horvitz_thompson' with their weights."
            )
        return estimates.poisson(whole_counts(table, "Estimation from a sample"), self.fraction)

    def _release(self, table: Table, values: Ints) -> Release:
        how = (
            say("the same probability")
            if self.size is None
            else say("probability by {size}", size=self.size)
        )
        note = say(
            "The numbers are those of a random sample: each was drawn with {how}, {fraction:g} on average.",
            how=how,
            fraction=self.fraction,
        )
        return sample_release(table, self, values, self.channel(), note)


def proportional_to_size(sizes: Ints, expected: float) -> Floats:
    """Probabilities in proportion to sizes that add up to ``expected``, none above 1.

    >>> proportional_to_size(np.array([1, 1, 2, 16]), 2.0).round(9).tolist()
    [0.25, 0.25, 0.5, 1.0]
    """
    if sizes.size and int(sizes.min()) <= 0:
        raise InputError("Sampling by size needs a size above 0 of every record.")
    out = np.ones(sizes.size)
    rest = np.arange(sizes.size)
    while rest.size:
        share = sizes[rest] * ((expected - (sizes.size - rest.size)) / sizes[rest].sum())
        sure = share >= 1
        out[rest] = np.where(sure, 1.0, share)
        if not sure.any():
            break
        rest = rest[~sure]
    return out
