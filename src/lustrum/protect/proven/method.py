"""The method ``proven-population``: tables are measured once with noise, people made up from these alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from lustrum.model.errors import InputError
from lustrum.model.finest import FinestCells
from lustrum.model.parameters import parameter
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import MethodSpec
from lustrum.protect.method import Stage as MethodStage
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.fit import fit
from lustrum.protect.proven.noisy import NoisyTables
from lustrum.protect.proven.plan import LinearEstimate, MeasurementPlan, plan_measurements
from lustrum.protect.proven.whole import whole_people


@dataclass(frozen=True)
class ProvenPopulation(MethodSpec):
    """Make people up from noisy tables, so that no outcome says much of a single record: rho-zCDP.

    - ``rho``: what the release costs. Neighbours are two datasets of the same size in which one person has
      another record; a household of k people is protected at k * k * rho.
    - ``max_variables``: tables of up to this many variables are measured.
    - ``one_way``, ``two_way``: what an error in a table of one or of two variables counts, beside 1 in those of
      three.
    - ``tables``, ``own_weight``: the agency's own tables, each a list such as ``("area", "sex")``, and how much
      more an error counts in them.
    """

    name: ClassVar[str] = "proven-population"
    stages: ClassVar[tuple[MethodStage, ...]] = ("population",)
    abilities: ClassVar[Abilities] = Abilities(repeatable=True, one_number=True, proof=True)
    rho: float = parameter(2.56, "What the release costs.", above=0, most=100)
    max_variables: int = parameter(
        3, "Tables of up to this many variables are measured.", least=1, most=3
    )
    one_way: float = parameter(
        175.0, "What an error counts in tables of one variable.", above=0, most=1e6
    )
    two_way: float = parameter(
        5.0, "What an error counts in tables of two variables.", above=0, most=1e6
    )

    tables: tuple[tuple[str, ...], ...] = parameter(
        (), "The agency's own tables, whose errors count more."
    )
    own_weight: float = parameter(
        10.0, "How much more an error counts in the agency's own tables.", least=1, most=1e6
    )

    @property
    def exact_rho(self) -> Fraction:
        """The cost as it was written, to the last digit."""
        return Fraction(repr(self.rho))

    def plan(self, domain: Domain) -> MeasurementPlan:
        """Which tables are measured, and their shares of rho: from the description alone."""
        weights = (self.one_way, self.two_way, 1.0)
        own = [domain.subset_of(names) for names in self.tables]
        if any(len(subset) > self.max_variables for subset in own):
            raise InputError(
                f"An own table has more than {self.max_variables} variables that are not tied to each other; "
                "'max_variables' says how many are measured."
            )
        return plan_measurements(
            domain,
            self.exact_rho,
            max_variables=self.max_variables,
            weights=weights,
            own={subset: weights[len(subset) - 1] * self.own_weight for subset in own},
        )

    def population(self, noisy: NoisyTables, seed: int = 0) -> FinestCells:
        """Whole people from noisy tables and a public seed; the same bytes wherever it is done."""
        most = min(self.max_variables, len(noisy.domain.axes))
        estimate = LinearEstimate(noisy.plan, noisy.tables, noisy.people)
        expected = fit(noisy.domain, estimate, most)
        counts = whole_people(noisy.domain, expected, noisy.people, most, seed)
        major, combination = counts.nonzero()
        return noisy.domain.finest(major, combination, counts[major, combination])
