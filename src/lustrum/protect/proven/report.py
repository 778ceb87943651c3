"""The public report of a population with a proof: its promise, and how large errors are.

Errors follow from public numbers alone, by a parametric bootstrap: the people who were made up are measured
again with new noise of the same scales, people are made up from that, and both are compared. This does not see
what nobody measured: how more variables depend on each other than the tables had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells, FinestSums
from lustrum.numeric.arithmetic import normal_draws
from lustrum.protect.population.measure import MeasuredTable, measured_tables, report_of
from lustrum.protect.population.public import MARGIN_ENDS, Margins, PublicReport, margin_class
from lustrum.protect.population.start import cell_numbers
from lustrum.protect.population.support import Support
from lustrum.protect.privacy.budget import epsilon_of_rho
from lustrum.protect.privacy.mechanism import DiscreteNoiseChannel
from lustrum.protect.proven.domain import Domain, Placed, Subset, positions
from lustrum.protect.proven.margins import NORMAL, FittedNumbers, NoiseMargins, compared
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NEIGHBOURS, NoisyTables
from lustrum.protect.proven.plan import LinearEstimate, total_of
from lustrum.protect.proven.sums import ClippedMeasure, ClippedSums, ProvenSums, sums_of
from lustrum.protect.rehearsal import rehearsed_noise

DELTA = 1e-10
"""The delta for which the report also states an epsilon."""
_BASE = 3
"""Sizes of counts and errors are stated in steps of this, as for other populations."""
_CELLS, _DRAWS = 1 << 20, 8
"""Small files are compared with several draws of noise: so many finest cells in all, at most so many draws."""
_WIDE = 1000.0
SUPPORT = Support(_BASE, small_only=True, certain=False)
"""Every number leaves every count."""
VERSION = 1
"""Of the fit: one that makes other people of the same noisy tables is another."""


@dataclass(frozen=True, eq=False, repr=False)
class Remade:
    """What was made of noisy tables, sums with it where these were measured."""

    noisy: NoisyTables
    people: FinestCells
    sums: FinestSums | None

    @classmethod
    def of(cls, method: ProvenPopulation, noisy: NoisyTables) -> Remade:
        """Make people up, and give them sums."""
        people = method.population(noisy)
        return cls(noisy, people, sums_of(noisy, people) if noisy.sums else None)

    def again(self, method: ProvenPopulation) -> list[Remade]:
        """The same from new noise on what was made up: a parametric bootstrap."""
        rng = np.random.default_rng(_seed(self.noisy))
        draws = min(max(_CELLS // prod(self.noisy.domain.shape), 1), _DRAWS)
        return [
            Remade.of(method, simulated(self.noisy, self.people, rng, self.sums))
            for _ in range(draws)
        ]

    def fitted(self) -> FittedNumbers:
        """The people beside the linear estimate."""
        noisy = self.noisy
        estimate = LinearEstimate(noisy.plan, noisy.tables, noisy.people)
        return FittedNumbers(Placed.of(noisy.domain, self.people), estimate)

    def fitted_sums(self, name: str) -> FittedNumbers:
        """The sums of a measure beside the linear estimate."""
        assert self.sums is not None
        one = self.noisy.sums[name]
        place = Placed(*positions(self.noisy.domain, self.sums.codes), self.sums.sums[name])
        total = total_of(one.plan, one.tables)
        return FittedNumbers(place, LinearEstimate(one.plan, one.tables, total))


def public_sums(spec: ProvenSums, made: Remade, again: Sequence[Remade]) -> ClippedSums:
    """What everybody may know of the sums, with margins from the same draws."""
    noisy, measures = made.noisy, {}
    for name, one in noisy.sums.items():
        draws = (draw.fitted_sums(name) for draw in again)
        noise = NoiseMargins.of(
            noisy.domain, one.plan, made.fitted_sums(name), draws, _seed(noisy), one.bound
        )
        margin = int(np.ceil(NORMAL * one.clipped_scale))
        measures[name] = ClippedMeasure(one.bound, max(one.clipped, 0), margin, noise)
    return ClippedSums(spec.to_mapping(), measures)


def _seed(noisy: NoisyTables) -> int:
    return int(noisy.digest[:16], 16)


def public_report(
    method: ProvenPopulation, made: Remade, again: Sequence[Remade], proof: Mapping[str, Any]
) -> PublicReport:
    """Compare the people with those of other draws of noise; ``proof`` is what the ledger adds."""
    noisy, domain = made.noisy, made.noisy.domain
    most = min(method.max_variables, len(domain.axes))
    kinds: dict[int, list[MeasuredTable]] = {}
    grouped: dict[int, list[MeasuredTable]] = {}
    for other in again:
        for every, some in zip(
            (kinds, grouped),
            measured_tables(*beside(made.people, other.people), _BASE, most),
            strict=True,
        ):
            for variables, tables in some.items():
                every.setdefault(variables, []).extend(tables)
    draws = (other.fitted() for other in again)
    noise = NoiseMargins.of(domain, noisy.plan, made.fitted(), draws, _seed(noisy))
    # Nothing here is secret: the noisy tables themselves may be published.
    shift = hashlib.sha256(noisy.digest.encode()).digest()
    report = report_of(method.to_mapping(), SUPPORT, 0.5, kinds, grouped, shift, fewest=1)
    return replace(
        report,
        search=VERSION,
        changed=0.95,
        largest=None,
        margins=_largest(domain, noise, Placed.of(domain, made.people)),
        noise=noise.to_mapping(),
        proof={
            "rho": str(noisy.rho),
            "neighbours": NEIGHBOURS,
            "epsilon": round(epsilon_of_rho(float(noisy.rho), DELTA), 2),
            "delta": DELTA,
            "noisy_tables": noisy.digest,
            **proof,
        },
    )


def _largest(domain: Domain, noise: NoiseMargins, people: Placed) -> Margins:
    """By axes and size, the largest margin of a number; a size that nobody has is like the one before."""
    found: dict[int, Ints] = {}
    for subset, shown, _, deviation in compared(domain, noise, people, people):
        largest = found.setdefault(max(len(subset), 1), np.ones(len(MARGIN_ENDS) + 1, np.int64))
        margins = noise.rounded(deviation, np.full(shown.shape, len(subset)), shown)
        np.maximum.at(largest, margin_class(shown), margins)
    return {k: tuple(np.maximum.accumulate(sizes).tolist()) for k, sizes in found.items()}


def rehearsed_people(
    method: ProvenPopulation, cells: FinestCells, rng: np.random.Generator
) -> FinestCells:
    """People as the method would make them up, with noise that can be repeated: never to publish."""
    domain = Domain.of(cells.dataset)
    plan = method.plan(domain)
    scales = {subset: sqrt(1 / share) for subset, share in plan.shares.items()}
    unmeasured = NoisyTables(domain, plan, int(cells.counts.sum()), {}, scales, {})
    return method.population(simulated(unmeasured, cells, rng))


def simulated(
    noisy: NoisyTables,
    people: FinestCells,
    rng: np.random.Generator,
    sums: FinestSums | None = None,
) -> NoisyTables:
    """Tables of people who were made up, with noise of the same scales from an ordinary generator."""
    domain = noisy.domain

    def drawn(numbers: Placed, scales: Mapping[Subset, float]) -> dict[Subset, Ints]:
        tables = {}
        for subset, scale in scales.items():
            possible = domain.possible_table(subset)
            noise = _noise(scale, possible.shape, rng)
            tables[subset] = numbers.table(domain, subset) + np.where(possible, noise, 0)
        return tables

    counts = Placed.of(domain, people)
    tables = drawn(counts, noisy.scales)
    if sums is None:
        return replace(noisy, tables=tables, sums={})
    return replace(
        noisy,
        tables=tables,
        sums={
            name: replace(one, tables=drawn(replace(counts, numbers=sums.sums[name]), one.scales))
            for name, one in noisy.sums.items()
        },
    )


def _noise(scale: float, shape: tuple[int, ...], rng: np.random.Generator) -> Ints:
    """Discrete Gaussian noise; a wide one is a rounded normal number to any digit that matters here."""
    if scale > _WIDE:
        return np.rint(scale * normal_draws(rng, prod(shape))).astype(np.int64).reshape(shape)
    return rehearsed_noise(DiscreteNoiseChannel("gaussian", scale), shape, rng)


def beside(one: FinestCells, other: FinestCells) -> tuple[FinestCells, FinestCells]:
    """The cells of both, with the counts of each."""
    codes = np.concatenate([one.codes, other.codes], axis=1)
    numbers, first, place = np.unique(
        cell_numbers(one.dataset, codes), return_index=True, return_inverse=True
    )
    counts = np.zeros((2, numbers.size), dtype=np.int64)
    counts[0, place.reshape(-1)[: len(one)]] = one.counts
    counts[1, place.reshape(-1)[len(one) :]] = other.counts
    both = codes[:, first]
    return tuple(FinestCells(one.dataset, both, row) for row in counts)  # type: ignore[return-value]
