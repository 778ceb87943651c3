"""From sample counts to population counts, with standard errors (Cochran 1977), and channels of sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, InputError, Release, Table, Transitions
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import row_entries
from lustrum.model.records import Records
from lustrum.model.variable import Weight
from lustrum.numeric.distributions import binomial, hypergeometric
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.method import RecordMethod, released

# The weights of drawn records, as a column.


@dataclass(frozen=True, eq=False)
class PopulationEstimates:
    """Estimated population counts and their standard errors; NaN where a sample is too small for one."""

    values: Floats
    standard_error: Floats


def simple(counts: npt.ArrayLike, population: int, sample: int) -> PopulationEstimates:
    """``N f / n`` of a simple random sample without replacement; an error with finite population correction.

    ``v = N**2 (1 - n/N) p (1 - p) / (n - 1)`` with ``p = f / n``, without bias.

    >>> found = simple([30], population=1000, sample=100)
    >>> found.values.tolist(), found.standard_error.round(2).tolist()
    ([300.0], [43.69])
    """
    shown = np.asarray(counts, dtype=np.float64)
    if not 0 < sample <= population or bool((shown > sample).any()):
        raise InputError(
            "A sample has somebody, is no larger than the population, and no cell is larger than it."
        )
    share = shown / sample
    spread = population**2 * (1 - sample / population) * share * (1 - share)
    # The variance cannot be estimated from one person, unless the population has one.
    unknown = np.full(shown.shape, 0.0 if population == 1 else np.nan)
    variance = spread / (sample - 1) if sample > 1 else unknown
    return PopulationEstimates(population * share, np.sqrt(variance))


def stratified(
    counts: npt.ArrayLike, populations: npt.ArrayLike, samples: npt.ArrayLike
) -> PopulationEstimates:
    """The sum over strata, along the first axis, of what a simple sample of each estimates.

    >>> found = stratified([[3, 0], [5, 5]], populations=[10, 100], samples=[3, 10])
    >>> found.values.tolist()
    [60.0, 50.0]
    """
    shown = np.asarray(counts, dtype=np.float64)
    sizes, drawn = np.asarray(populations, dtype=np.int64), np.asarray(samples, dtype=np.int64)
    if shown.shape[:1] != sizes.shape or sizes.shape != drawn.shape:
        raise InputError("There must be one population and one sample size for each stratum.")
    if bool(((drawn == 0) & (sizes > 0)).any()):
        raise InputError("A stratum has people but no sample; nothing can be estimated for it.")
    parts = [
        simple(row, int(N), int(n)) for row, N, n in zip(shown, sizes, drawn, strict=True) if N
    ]
    zero = np.zeros(shown.shape[1:])
    values = sum((part.values for part in parts), zero)
    variance = sum((part.standard_error**2 for part in parts), zero)
    return PopulationEstimates(values, np.sqrt(variance))


def poisson(counts: npt.ArrayLike, fraction: float) -> PopulationEstimates:
    """``f / p`` where everybody is drawn with the same probability; ``v = f (1 - p) / p**2``."""
    if not 0 < fraction <= 1:
        raise InputError(f"A sampling fraction is above 0 and at most 1, not {fraction!r}.")
    shown = np.asarray(counts, dtype=np.float64)
    return PopulationEstimates(shown / fraction, np.sqrt(shown * (1 - fraction)) / fraction)


def horvitz_thompson(cells: Ints, size: int, probabilities: npt.ArrayLike) -> PopulationEstimates:
    """Sums of ``1 / p`` over the drawn people of each cell; ``v = sum (1 - p) / p**2`` (Poisson sampling).

    ``cells`` numbers the cell of each drawn person, 0 to ``size - 1`` (Horvitz and Thompson 1952).
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.shape != cells.shape or bool(((p <= 0) | (p > 1)).any()):
        raise InputError("Everybody drawn needs a probability above 0 and at most 1.")
    return PopulationEstimates(
        np.bincount(cells, weights=1 / p, minlength=size).astype(np.float64),
        np.sqrt(np.bincount(cells, weights=(1 - p) / p**2, minlength=size)),
    )


# Releases of tables that were counted from a sample.

DECIMALS = 6


def drawn_records(records: Records, rows: Ints, probabilities: Floats, name: str) -> Records:
    """The drawn records in the order of the rows, with the weight ``1 / probability`` of each."""
    rows = np.asarray(rows, dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    rows, probabilities = rows[order], probabilities[order]
    dataset = records.dataset
    if any(weight.name == name for weight in dataset.weights):
        raise InputError(
            f"The records have a weight {name!r} already; choose another name for the new one."
        )
    weight = Weight(name, "Sampling weight", DECIMALS)
    source = dict(dataset.source)
    if source:
        described = {"name": name, "label": weight.label, "decimals": DECIMALS}
        source["weights"] = [*source.get("weights", ()), described]
    sampled = records.take(rows)
    whole = np.rint(10**DECIMALS / probabilities).astype(np.int64)
    return replace(
        sampled,
        dataset=replace(dataset, weights=(*dataset.weights, weight), source=source),
        numbers={**sampled.numbers, name: whole},
    )


def sample_release(
    table: Table, method: RecordMethod, values: Ints, channel: Channel | None, note: str
) -> Release:
    counted = table.kind == "count" and not table.decimals
    low, high = _bounds(table, values, channel)
    return released(
        table,
        method,
        values,
        low=low,
        high=high,
        channel=channel if counted else None,
        notes=(note,),
    )


def _bounds(table: Table, values: Ints, channel: Channel | None) -> tuple[Ints, Ints]:
    """A count is at least that of the sample; a sum of amounts or weights can be anything."""
    if table.kind != "count" or table.decimals:
        least = 0 if table.kind == "count" else -UNBOUNDED
        return np.full(table.shape, least), np.full(table.shape, UNBOUNDED)
    if channel is not None:
        return channel.support(values)
    return values, np.full(table.shape, UNBOUNDED)


_WIDE = 40.0  # standard deviations beyond which a double holds no probability


@dataclass(frozen=True)
class BinomialThinning:
    """Everybody is drawn independently with one probability: ``f ~ Binomial(F, fraction)``.

    >>> half = BinomialThinning(0.5).transitions(np.array([2]))
    >>> half.published.tolist(), half.probability.round(12).tolist()
    ([0, 1, 2], [0.25, 0.5, 0.25])
    """

    fraction: float

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise InputError(
                f"A sampling fraction is above 0 and at most 1, not {self.fraction!r}."
            )

    def transitions(self, true: Ints) -> Transitions:
        """The probabilities of all sample counts, as far as they differ from 0."""
        true = _counts(true)
        mean = true * self.fraction
        spread = _WIDE * np.sqrt(mean * (1 - self.fraction)) + _WIDE * _WIDE
        low, high = np.maximum(np.floor(mean - spread), 0), np.minimum(np.ceil(mean + spread), true)
        return _rows(true, low, high, lambda f, F: binomial(f, F, self.fraction))

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """At least the sample count, without an upper bound."""
        published = np.asarray(published, dtype=np.int64)
        most = published if self.fraction == 1 else np.full(published.shape, UNBOUNDED)
        return published.copy(), most.copy()

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean of ``fraction**F``; over a range without end that is 0, or 1 if all are drawn."""
        if self.fraction == 1:
            return 1.0
        if highest is None:
            return 0.0
        everybody = np.arange(lowest, highest + 1)
        return float(binomial(everybody, everybody, self.fraction).mean())


@dataclass(frozen=True)
class HypergeometricChannel:
    """``sample`` people are drawn of ``population`` without replacement: ``f ~ Hypergeometric(N, F, n)``.

    >>> draw = HypergeometricChannel(population=4, sample=2).transitions(np.array([2]))
    >>> draw.published.tolist(), (6 * draw.probability).round(12).tolist()
    ([0, 1, 2], [1.0, 4.0, 1.0])
    """

    population: int
    sample: int

    def __post_init__(self) -> None:
        if not 0 <= self.sample <= self.population:
            raise InputError("A sample without replacement is at most as large as the population.")

    def transitions(self, true: Ints) -> Transitions:
        """The probabilities of all sample counts, as far as they differ from 0."""
        true = _counts(true)
        N, n = self.population, self.sample
        if bool((true > N).any()):
            raise InputError("A true count is larger than the population.")
        mean = true * (n / max(N, 1))
        spread = _WIDE * np.sqrt(mean * (1 - n / max(N, 1))) + _WIDE * _WIDE
        low = np.maximum(np.maximum(np.floor(mean - spread), n - (N - true)), 0)
        high = np.minimum(np.minimum(np.ceil(mean + spread), true), n)
        return _rows(true, low, high, lambda f, F: hypergeometric(f, N, F, n))

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """At least the sample count, at most that plus everybody who was not drawn."""
        published = np.asarray(published, dtype=np.int64)
        return published.copy(), published + (self.population - self.sample)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean probability that all of a cell are drawn, over the values that a cell can have."""
        last = self.population if highest is None else min(highest, self.population)
        if last < lowest:
            return 1.0
        # P(all F are drawn) = prod (n - i) / (N - i), i below F.
        i = np.arange(min(last, self.sample))
        all_drawn = np.concatenate(
            ([1.0], np.cumprod((self.sample - i) / np.maximum(self.population - i, 1)))
        )
        return float(all_drawn[lowest : last + 1].sum() / (last - lowest + 1))


def _counts(true: Ints) -> Ints:
    true = np.asarray(true, dtype=np.int64)
    if true.size and int(true.min()) < 0:
        raise InputError("Sampling is for counts of 0 or more.")
    return true


def _rows(
    true: Ints, low: Floats, high: Floats, probability: Callable[[Ints, Ints], Floats]
) -> Transitions:
    length = (high - low).astype(np.int64) + 1
    origin, shown = row_entries(low, length)
    p = np.asarray(probability(shown, true[origin]), dtype=np.float64)
    some = p > 0
    return Transitions(origin[some], shown[some], p[some])
