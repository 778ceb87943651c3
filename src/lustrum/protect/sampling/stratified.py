"""Stratified sampling: a simple random sample of each stratum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Ints
from lustrum.model.chance import Seed, required_generator
from lustrum.model.parameters import one_or_more, pairs, parameter
from lustrum.model.records import Records
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import MICRODATA, MethodSpec, Stage, whole_counts
from lustrum.protect.microdata import canonical_order, combined
from lustrum.protect.sampling import estimates
from lustrum.protect.sampling.estimates import drawn_records, sample_release
from lustrum.protect.totals.summed import AxisParts

Allocation = Literal["proportional", "equal", "root"]


@dataclass(frozen=True)
class StratifiedSampling(MethodSpec):
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
        """The variables that make the strata."""
        return (self.by,) if isinstance(self.by, str) else self.by

    @property
    def needed_variables(self) -> tuple[str, ...]:
        """The variables that a dataset must have."""
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

    def apply_records(self, records: Records, rng: Seed) -> Records:
        """The drawn records with their weights; who is drawn does not depend on the order of rows."""
        rng = required_generator(rng)
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

    def shared(scale: float) -> npt.NDArray[np.float64]:
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
