"""What releases with a proof would cost and how far their numbers would be off: from public facts alone.

The description and the policy decide; no record is opened, and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from lustrum.model import Dataset, InputError
from lustrum.policy import Policy
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.plan import MeasurementPlan, few_people
from lustrum.protect.proven.sums import ProvenSums


@dataclass(frozen=True)
class PlannedTable:
    """The typical error of the cells of one table of counts, or of the sums of a measure in its unit."""

    measure: str | None
    shown: tuple[str, ...]
    finest: bool
    error: float


@dataclass(frozen=True)
class PlannedReleases:
    """What each of some releases costs, and what it would be worth.

    ``clipped`` says for each measure how far the number of clipped contributions would typically be off, and
    ``few`` warns of too few people.
    """

    rho: Fraction
    tables: tuple[PlannedTable, ...]
    clipped: dict[str, float]
    few: str | None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        policy: Policy | None = None,
        *,
        rho: Fraction | None = None,
        releases: int = 1,
        people: int | None = None,
    ) -> PlannedReleases:
        """Plan what a policy asks for, or people alone. ``rho`` is what all releases may cost together; counts
        and sums have the parts of it that they have in the policy, which it replaces."""
        if releases < 1:
            raise InputError("There is at least one release to be planned.")
        method, sums = _methods(policy)
        asked = method.exact_rho + (0 if sums is None else sums.exact_rho)
        part = (asked if rho is None else rho) / (asked * releases)
        domain = Domain.of(dataset)
        plan = replace(method, rho=float(method.exact_rho * part)).plan(domain)
        tables = list(_tables(domain, plan, None, 1.0))
        clipped = {}
        if sums is not None:
            bounds = sums.bounds_of(dataset, people or 0)
            plan_of_one, counting = replace(sums, rho=float(sums.exact_rho * part)).shares(domain)
            for name, bound in bounds.items():
                unit = bound / 10 ** dataset.measure(name).decimals
                tables += _tables(domain, plan_of_one, name, unit)
                clipped[name] = math.sqrt(1 / (math.pi * float(counting)))
        few = None if people is None else few_people(domain, plan, people)
        return cls(asked * part, tuple(tables), clipped, few)


def _methods(policy: Policy | None) -> tuple[ProvenPopulation, ProvenSums | None]:
    if policy is None:
        return ProvenPopulation(), None
    sums = policy.magnitudes
    if not isinstance(policy.population, ProvenPopulation):
        raise InputError(
            "The policy asks for no population with a proof, whose errors could be planned; begin with "
            "'lustrum policy preset proven'."
        )
    return policy.population, sums if isinstance(sums, ProvenSums) else None


def _tables(
    domain: Domain, plan: MeasurementPlan, measure: str | None, unit: float
) -> Iterator[PlannedTable]:
    """All tables at all levels of up to as many variables as are measured."""
    shown = [axis.levels(domain.dataset) for axis in domain.axes]
    for subset in domain.subsets(max(map(len, plan.shares))):
        for chosen in product(*(shown[axis].items() for axis in subset)):
            groups = {axis: sizes for axis, (_, sizes) in zip(subset, chosen, strict=True)}
            yield PlannedTable(
                measure,
                tuple(name for name, _ in chosen),
                all(len(groups[axis]) == len(domain.axes[axis]) for axis in subset),
                unit * plan.typical_error(subset, groups, total_known=measure is None),
            )
