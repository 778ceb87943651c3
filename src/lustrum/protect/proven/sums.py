"""Sums with a proof: contributions are clipped at a bound that the policy states, and measured with noise.

A contribution below 0 counts as 0, and one above the bound as the bound. A record that is replaced takes at
most the bound out of one cell of a table and puts at most the bound into one, so that the table changes by at
most the root of 2 times the bound. How much clipping takes off a sum has no bound that anybody could hide, so
that it is not published; how many contributions were clipped is, with noise.

The people who were made up are given the sums: each finest cell as much as the linear estimate of the noisy
sums asks for, starting from the same amount for everybody. Nothing here has seen a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells, FinestSums
from lustrum.model.parameters import pairs, parameter
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import MethodSpec, Stage
from lustrum.protect.proven.domain import Domain, laid_out, positions
from lustrum.protect.proven.fit import fit
from lustrum.protect.proven.margins import NoiseMargins
from lustrum.protect.proven.noisy import NoisySums, NoisyTables
from lustrum.protect.proven.plan import LinearEstimate, MeasurementPlan, plan_measurements, total_of

_CLIPPED = Fraction(1, 50)
"""The share of a measure's cost that says how many contributions were clipped."""
_MOST = 2**53
"""Sums are below this, so that they are exact as floats."""


@dataclass(frozen=True)
class ProvenSums(MethodSpec):
    """Measure sums beside a proven population: rho-zCDP for contributions that are clipped at stated bounds.

    ``rho`` comes beside that of the population; each measure has an equal part. ``bounds`` are such as
    ``{income = 200000}``. Noise grows with the bound. Choose it without looking at the records: whoever reads a
    bound that follows from them learns what the proof does not cover. An error counts ``one_way`` in tables of
    one variable, beside 1 in those of two.
    """

    name: ClassVar[str] = "proven-sums"
    stages: ClassVar[tuple[Stage, ...]] = ("magnitudes",)
    abilities: ClassVar[Abilities] = Abilities(repeatable=True, one_number=True, proof=True)
    rho: float = parameter(0.5, "What the sums of all measures cost.", above=0, most=100)
    bounds: Mapping[str, float] | tuple[tuple[str, float], ...] = parameter(
        (), "The measures, and the most that one record counts.", above=0, read=pairs, write=dict
    )
    max_variables: int = parameter(
        2, "Sums by up to this many variables are measured.", least=1, most=2
    )
    one_way: float = parameter(
        25.0, "What an error counts in tables of one variable.", above=0, most=1e6
    )

    def check_together(self) -> None:
        """Every measure has one bound."""
        if len(dict(self.bounds)) < len(self.bounds):
            raise InputError("A measure has one bound; 'bounds' names one twice.")

    @property
    def exact_rho(self) -> Fraction:
        """The cost as it was written, to the last digit."""
        return Fraction(repr(self.rho))

    def bounds_of(self, dataset: Dataset, people: int) -> dict[str, int]:
        """The bounds in units of the last decimal; an error says what lacks one or cannot have it."""
        if not self.bounds:
            raise InputError(
                "Sums with a proof need the most that one record counts, fixed without the records; write "
                "bounds = { income = 200000 } for each measure, here "
                f"{' and '.join(m.name for m in dataset.measures) or 'none, as the dataset has no measure'}."
            )
        found = {}
        for name, bound in dict(self.bounds).items():
            decimals = dataset.measure(name).decimals
            units = Fraction(repr(bound)) * 10**decimals
            if units.denominator != 1 or units * max(people, 1) >= _MOST:
                raise InputError(
                    f"The bound {bound:g} of {name!r} must have at most {decimals} decimals, and sums of it "
                    "must stay exact; write a rounder or a smaller one."
                )
            found[name] = int(units)
        return found

    def shares(self, domain: Domain) -> tuple[MeasurementPlan, Fraction]:
        """What each measure's tables cost, and how many contributions of it were clipped: exact fractions."""
        own = self.exact_rho / len(dict(self.bounds))
        plan = plan_measurements(
            domain,
            own * (1 - _CLIPPED),
            max_variables=self.max_variables,
            weights=(self.one_way, 1.0),
        )
        return plan, own * _CLIPPED


def sums_of(noisy: NoisyTables, people: FinestCells) -> FinestSums:
    """The sums that the finest cells of people who were made up are given."""
    return FinestSums(
        people.dataset,
        people.codes,
        {name: _given(noisy.domain, sums, people) for name, sums in noisy.sums.items()},
    )


def _given(domain: Domain, sums: NoisySums, people: FinestCells) -> Ints:
    """Each finest cell's part; amounts are fitted in mean contributions, as people are."""
    number, total = int(people.counts.sum()), total_of(sums.plan, sums.tables)
    if number == 0 or total <= 0:
        return np.zeros(len(people), dtype=np.int64)
    mean = total / number
    estimate = LinearEstimate(sums.plan, sums.tables, total, unit=mean, noise=sums.bound)
    most = max(map(len, sums.plan.shares))
    given = fit(domain, estimate, most, laid_out(domain, people))[positions(domain, people.codes)]
    return np.minimum(np.rint(given * mean), people.counts * sums.bound).astype(np.int64)


@dataclass(frozen=True)
class ClippedMeasure:
    """What everybody may know of the sums of one measure, in units of its last decimal.

    ``clipped`` is about how many contributions were clipped, and in 95 of 100 draws of noise at most
    ``clipped_margin`` away from it.
    """

    bound: int
    clipped: int
    clipped_margin: int
    noise: NoiseMargins


@dataclass(frozen=True)
class ClippedSums:
    """What everybody may know of sums with a proof: the method, and every measure."""

    method: Mapping[str, Any]
    measures: Mapping[str, ClippedMeasure]
    existence_public: ClassVar[bool] = False
    losses: ClassVar[tuple[str, ...]] = ()

    def to_mapping(self) -> dict[str, Any]:
        """The words as plain values, for a bundle."""
        return {
            "method": dict(self.method),
            "clipped": {
                name: {
                    **{k: v for k, v in vars(one).items() if k != "noise"},
                    **one.noise.to_mapping(),
                }
                for name, one in sorted(self.measures.items())
            },
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> ClippedSums:
        """The words that :meth:`to_mapping` wrote."""
        try:
            measures = {
                str(name): ClippedMeasure(
                    int(one["bound"]),
                    int(one["clipped"]),
                    int(one["clipped_margin"]),
                    NoiseMargins.from_mapping(one),
                )
                for name, one in mapping["clipped"].items()
            }
            return cls(dict(mapping["method"]), measures)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError("The public words of the sums with a proof are damaged.") from None
