"""Sampling of records or of a table of counts: simple without replacement, Poisson, and stratified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.chance import Chance
from lustrum.model.errors import check_known
from lustrum.model.parameters import one_or_more, pairs, parameter
from lustrum.model.records import Records
from lustrum.model.text import say
from lustrum.numeric.distributions import binomial_quantile
from lustrum.protect.abilities import Abilities, changed_by_leaving
from lustrum.protect.entropy_left import left_by_thinning
from lustrum.protect.method import MICRODATA, RecordMethodSpec, Stage, uniform_words, whole_counts
from lustrum.protect.microdata import canonical_order, combined
from lustrum.protect.sampling import estimates
from lustrum.protect.sampling.estimates import (
    BinomialThinning,
    HypergeometricChannel,
    drawn_records,
    sample_release,
)
from lustrum.protect.totals.inner_table import InnerTable
from lustrum.protect.totals.summed import AxisParts


@dataclass(frozen=True)
class SimpleSampling(RecordMethodSpec):
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
        return int(np.floor(self.fraction * population + 0.5))

    @property
    def abilities(self) -> Abilities:
        """Everybody is drawn with the same chance."""
        return Abilities(
            repeatable=True,
            changed=changed_by_leaving(1.0 - self.fraction),
            entropy=left_by_thinning(self.fraction),
        )

    def change(self, records: Records, rng: np.random.Generator) -> Records:
        """The drawn records with their weights; who is drawn does not depend on the order of rows."""
        n = self.size(self._checked(len(records)))
        rows = canonical_order(records)[rng.choice(len(records), n, replace=False)]
        share = np.full(n, n / max(len(records), 1))
        return drawn_records(records, rows, share, self.weight)

    def draw(self, table: Table, rng: Chance) -> Release:
        """Draw from the people of a table's inner cells; totals are those of the sample."""
        whole_counts(table, "Simple sampling")
        inner = InnerTable.of(table.axes, "Simple sampling")
        block = inner.counts(table)
        chance = inner.generator(table, rng, f"{self.name} {self.fraction!r}")
        n = self.size(self._checked(int(block.sum())))
        drawn = chance.multivariate_hypergeometric(block.ravel(), n, method="marginals")
        return self._release(table, inner.added_up(drawn.reshape(block.shape)))

    def publish(self, table: Table) -> Release:
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

    def _release(self, table: Table, values: Ints) -> Release:
        note = say(
            "The numbers are those of a random sample of {fraction:g} of the population.",
            fraction=self.fraction,
        )
        return sample_release(table, self, values, self.channel(), note)


@dataclass(frozen=True)
class PoissonSampling(RecordMethodSpec):
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

    def change(self, records: Records, rng: np.random.Generator) -> Records:
        """The drawn records with their weights; who is drawn does not depend on the order of rows."""
        order = canonical_order(records)
        chance = self.probabilities(records)[order]
        drawn = rng.random(len(records)) < chance
        return drawn_records(records, order[drawn], chance[drawn], self.weight)

    def probabilities(self, records: Records) -> Floats:
        if self.size is None:
            return np.full(len(records), float(self.fraction))
        check_known((self.size,), records.numbers, "The records have no measure")
        return proportional_to_size(records.numbers[self.size], self.fraction * len(records))

    def draw(self, table: Table, rng: Chance) -> Release:
        """Draw from the people of a table's inner cells; totals are those of the sample."""
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


Allocation = Literal["proportional", "equal", "root"]


@dataclass(frozen=True)
class StratifiedSampling(RecordMethodSpec):
    """A simple random sample of each combination of the ``by`` variables.

    The ``fraction`` of all people is shared among the strata in proportion to their people, ``equal`` for each,
    or in proportion to the square ``root`` of their people; each gets at least ``minimum`` if it has this many.
    ``sizes`` sets the sample sizes of codes instead, for one ``by`` variable. ``weight`` names the column of
    weights.
    """

    name: ClassVar[str] = "stratified-sampling"
    stages: ClassVar[tuple[Stage, ...]] = MICRODATA
    # A small stratum may be drawn as a whole, so nothing is certain to change.
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    by: str | tuple[str, ...] = parameter(
        MISSING, "The variables whose categories are the strata.", once=True, read=one_or_more
    )
    fraction: float = parameter(0.1, "The share of people drawn.", above=0, below=1)
    allocation: Allocation = parameter("proportional", "How the sample is divided among strata.")
    minimum: int = parameter(1, "The fewest people drawn from a stratum.", least=0)
    sizes: Mapping[str, int] | tuple[tuple[str, int], ...] = parameter(
        (), "Sample sizes of some strata.", least=0, brief=True, read=pairs, write=dict
    )
    weight: str = parameter("weight", "The name of the weight that drawn records get.", brief=True)

    def check_together(self) -> None:
        """Sizes by code are for one variable."""
        if not self.by:
            raise InputError("Stratified sampling needs a variable that makes the strata ('by').")
        if self.sizes and len(self.by) > 1:
            raise InputError("Sample sizes by code are for one variable of strata.")

    @property
    def strata(self) -> tuple[str, ...]:
        return (self.by,) if isinstance(self.by, str) else self.by

    @property
    def needed_variables(self) -> tuple[str, ...]:
        return self.strata

    def allocated(self, populations: Ints, codes: tuple[str, ...]) -> Ints:
        """How many are drawn of each stratum; ``codes`` are needed for sizes by code only."""
        if not self.sizes:
            total = int(np.floor(self.fraction * int(populations.sum()) + 0.5))
            return allocate(populations, total, self.allocation, self.minimum)
        wanted = dict(self.sizes)
        for code in wanted:
            if code not in codes:
                raise InputError(f"There is no stratum {code!r} of {self.strata[0]!r}.")
        sizes = np.array([wanted.get(code, 0) for code in codes], dtype=np.int64)
        return np.minimum(sizes, populations)

    def change(self, records: Records, rng: np.random.Generator) -> Records:
        """The drawn records with their weights; who is drawn does not depend on the order of rows."""
        codes: tuple[str, ...] = ()
        if self.sizes:
            codes = records.dataset.variable(self.strata[0]).codes
            stratum = records.codes[self.strata[0]].astype(np.int64)
        else:
            stratum = combined(records, self.strata)
        N = np.bincount(stratum, minlength=len(codes))
        n = self.allocated(N, codes)
        mixed = canonical_order(records)[rng.permutation(len(records))]
        by_stratum = mixed[np.argsort(stratum[mixed], kind="stable")]
        rank = np.arange(len(records)) - np.repeat(np.cumsum(N) - N, N)
        rows = by_stratum[rank < np.repeat(n, N)]
        share = n[stratum[rows]] / N[stratum[rows]]
        return drawn_records(records, rows, share, self.weight)

    def publish(self, table: Table) -> Release:
        """A table counted from drawn records.

        Each stratum has its own channel and a cell may lie in many, so a cell has no channel of its own.
        """
        note = say(
            "The numbers are those of a random sample, drawn by {names}.",
            names=", ".join(self.strata),
        )
        return sample_release(table, self, table.values, None, note)

    def estimates(self, table: Table, populations: Table) -> estimates.PopulationEstimates:
        """Population counts for the axes of a sample table other than the strata, with standard errors.

        The table must be crossed with all strata. ``populations`` holds the number of people of each stratum
        along the same axes.
        """
        counts = whole_counts(table, "Estimation from a sample")
        at = {axis.name: i for i, axis in enumerate(table.axes)}
        if not set(self.strata) <= set(at) or [a.name for a in populations.axes] != list(
            self.strata
        ):
            raise InputError(
                f"Estimates from a stratified sample need a table and populations by "
                f"{' and '.join(self.strata)}."
            )
        # In the order of the codes, as in the sample: it decides which of equal strata gets more.
        N = populations.values
        for number, axis in enumerate(populations.axes):
            if table.axes[at[axis.name]].codes != axis.codes:
                raise InputError(
                    f"The table and the populations differ in their codes of {axis.name!r}."
                )
            parts = AxisParts.of(axis)
            if not parts.disjoint:
                raise InputError(f"Strata do not overlap; categories of {axis.name!r} do.")
            N = N.take(parts.inner, number)
            counts = counts.take(parts.inner, at[axis.name])
        front = np.moveaxis(counts, [at[name] for name in self.strata], range(len(self.strata)))
        axis = populations.axes[0]
        codes = tuple(axis.codes[i] for i in np.flatnonzero(axis.inner))
        n = self.allocated(N.ravel(), codes)
        return estimates.stratified(front.reshape(N.size, *front.shape[N.ndim :]), N.ravel(), n)

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file; sizes stand in place of how they are found."""
        words = super().to_mapping()
        unused = ("fraction", "allocation", "minimum") if self.sizes else ()
        return {key: value for key, value in words.items() if key not in unused}


def allocate(populations: Ints, total: int, how: Allocation, minimum: int = 0) -> Ints:
    """Whole sample sizes that add up to ``total`` as far as the strata allow, by largest remainders.

    >>> allocate(np.array([100, 10, 1]), 12, "equal", 1).tolist()
    [6, 5, 1]
    """
    N = np.asarray(populations, dtype=np.int64)
    shape = {"proportional": N.astype(np.float64), "equal": (N > 0) * 1.0, "root": np.sqrt(N)}[how]
    least = np.minimum(N, minimum)
    total = min(max(total, int(least.sum())), int(N.sum()))

    def shared(scale: float) -> Floats:
        return np.clip(scale * shape, least, N)

    low, high = 0.0, 1.0
    while shared(high).sum() < total:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if shared(middle).sum() < total else (low, middle)
    ideal = shared(high)
    out = np.floor(ideal + 1e-9).astype(np.int64)
    remainder = np.where(out < N, ideal - out, -1.0)
    out[np.argsort(-remainder, kind="stable")[: max(total - int(out.sum()), 0)]] += 1
    return out
