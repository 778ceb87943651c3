"""Simple random sampling without replacement, of records or of a table of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.chance import Seed, required_generator
from lustrum.model.parameters import parameter
from lustrum.model.records import Records
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities, changed_by_leaving
from lustrum.protect.entropy_left import left_by_thinning
from lustrum.protect.method import MethodSpec, Stage, checked_input, whole_counts
from lustrum.protect.microdata import canonical_order
from lustrum.protect.sampling import estimates
from lustrum.protect.sampling.channels import HypergeometricChannel
from lustrum.protect.sampling.estimates import drawn_records, sample_release
from lustrum.protect.totals.inner_table import InnerTable


@dataclass(frozen=True)
class SimpleSampling(MethodSpec):
    """Every set of ``n`` people is equally likely; ``n`` is the fraction of all, rounded to the nearest.

    The counts of the sample are published unchanged. If the size of the ``population`` is public, the
    release has an exact channel. ``weight`` names the column of weights that drawn records get.

    >>> table = Table.from_counts([[40, 10], [30, 20]])
    >>> int(SimpleSampling(0.3).apply(table, np.random.default_rng(1)).published.sum())
    30
    """

    name: ClassVar[str] = "simple-sampling"
    stages: ClassVar[tuple[Stage, ...]] = ("microdata", "hypercube", "table")
    fraction: float = parameter(0.1, "The share of people drawn.", above=0, below=1)
    population: int | None = parameter(
        None, "The size of the population, if it is public.", least=1
    )
    weight: str = parameter("weight", "The name of the weight that drawn records get.", brief=True)

    def size(self, population: int) -> int:
        """How many are drawn from this many."""
        return int(np.floor(self.fraction * population + 0.5))

    @property
    def abilities(self) -> Abilities:
        """Everybody is drawn with the same chance."""
        return Abilities(
            repeatable=True,
            changed=changed_by_leaving(1.0 - self.fraction),
            entropy=left_by_thinning(self.fraction),
        )

    def apply_records(self, records: Records, rng: Seed) -> Records:
        """The drawn records with their weights; who is drawn does not depend on the order of rows."""
        rng = required_generator(rng)
        n = self.size(self._checked(len(records)))
        rows = canonical_order(records)[rng.choice(len(records), n, replace=False)]
        share = np.full(n, n / max(len(records), 1))
        return drawn_records(records, rows, share, self.weight)

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Draw from the people of a table's inner cells; totals are those of the sample."""
        rng = checked_input(table, rng)
        whole_counts(table, "Simple sampling")
        inner = InnerTable.of(table.axes, "Simple sampling")
        block = inner.counts(table)
        chance = inner.generator(table, rng, f"{self.name} {self.fraction!r}")
        n = self.size(self._checked(int(block.sum())))
        drawn = chance.multivariate_hypergeometric(block.ravel(), n, method="marginals")
        return self._release(table, inner.added_up(drawn.reshape(block.shape)))

    def publish(self, table: Table) -> Release:
        """A table counted from drawn records."""
        return self._release(table, table.values)

    def channel(self) -> HypergeometricChannel | None:
        """The channel of a cell, if the size of the population is public."""
        if self.population is None:
            return None
        return HypergeometricChannel(self.population, self.size(self.population))

    def estimates(
        self, table: Table, population: int | None = None
    ) -> estimates.PopulationEstimates:
        """Population counts estimated from a table of sample counts, with standard errors."""
        size = self.population if population is None else population
        if size is None:
            raise InputError("Estimates from a simple sample need the size of the population.")
        return estimates.simple(
            whole_counts(table, "Estimation from a sample"), size, self.size(size)
        )

    def _checked(self, population: int) -> int:
        if self.population is not None and population != self.population:
            raise InputError(
                "The population size of simple sampling does not match the number of records."
            )
        return population

    def _release(self, table: Table, values: npt.NDArray[np.int64]) -> Release:
        note = say(
            "The numbers are those of a random sample of {fraction:g} of the population.",
            fraction=self.fraction,
        )
        return sample_release(table, self, values, self.channel(), note)
