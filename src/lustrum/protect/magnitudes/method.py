"""Protected magnitudes: the contributions of a register are multiplied once, and every table of sums is a plain
sum of the result.

Evans, Zayatz and Slanta (1998, Journal of Official Statistics 14, 537-551) multiply the values of every
enterprise by a factor near, never at, one; Massell and Funk (2007) balance directions so that noise cancels in
large cells. Here factors are wide enough that every set of records carries the protection that the p% rule
asks for, whatever their directions are; see :mod:`lustrum.protect.magnitudes.factors`. The search is then free
to keep all other cells close.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.arrays import Ints
from lustrum.model import Dataset, InputError
from lustrum.model.finest_sums import FinestSums
from lustrum.model.parameters import checks_parameters, parameter
from lustrum.model.records import Records
from lustrum.model.stop import reporting_progress
from lustrum.protect.abilities import Abilities
from lustrum.protect.magnitudes.factors import SHARES, Factors, needed_factors
from lustrum.protect.magnitudes.families import Family, check_relations, families_of
from lustrum.protect.magnitudes.report import MagnitudeReport, PublicFactors, measured
from lustrum.protect.magnitudes.search import (
    Ranking,
    noise_of,
    rank_cells,
    relative_scale,
    search,
)
from lustrum.protect.magnitudes.units import units_of
from lustrum.protect.method import Stage
from lustrum.protect.population.layout import Plan, plan_tables
from lustrum.protect.population.start import cell_numbers, derived
from lustrum.sensitivity import Background
from lustrum.sensitivity.background import NOTHING
from lustrum.sensitivity.parameters import exact

__all__ = ["MagnitudeResult", "ProtectedMagnitudes"]

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class MagnitudeResult:
    """Protected sums and their public words may be published; ``agency`` and ``records`` may not.

    ``records`` holds the protected value of every record and measure, in the order of the records.
    """

    sums: FinestSums
    public: PublicFactors
    agency: MagnitudeReport
    records: dict[str, Ints]

    def __repr__(self) -> str:
        return f"MagnitudeResult({self.sums.dataset.name!r})"


@dataclass(frozen=True)
class ProtectedMagnitudes:
    """Multiply every contribution once, so that nobody is certain of one within ``p`` percent.

    - ``p``: the protection that the p% rule asks for. For the prior-posterior rule write ``100 p / q``, for the
      dominance rule (n, k) ``100 n (100 - k) / k``.
    - ``directions``: ``"known"`` assumes attackers who know whether a contribution went up or down;
      ``"secret"`` does not, and adds less noise.
    - ``room``: which part of its way to the least or the largest share the search may move the share of a
      record. Less keeps shares closer to a uniform draw, more keeps tables closer to the truth.
    - ``ways``, ``tables``: which tables are kept close, as for a protected population.
    - ``measures``: those to protect, all if empty.
    - ``sweeps``: how often the search visits every contributor.
    """

    name: ClassVar[str] = "protected-magnitudes"
    stages: ClassVar[tuple[Stage, ...]] = ("magnitudes",)
    abilities: ClassVar[Abilities] = Abilities(repeatable=True, one_number=True)
    p: float = parameter(
        5.0, "Nobody may be certain of a contribution within this percentage.", above=0, most=65
    )
    directions: Literal["known", "secret"] = parameter(
        "known", "Whether attackers may know if a contribution went up or down."
    )
    room: float = parameter(
        0.6, "Which part of its way to either end the search may move a share.", least=0, below=1
    )
    ways: int = parameter(3, "Tables of up to this many variables are kept close.", least=1, most=4)
    tables: tuple[tuple[str, ...], ...] = parameter(
        (), "The agency's own tables that are kept close too."
    )
    measures: tuple[str, ...] = parameter((), "The measures to protect; all if empty.")
    sweeps: int = parameter(6, "How often the search visits every contributor.", least=1)

    @checks_parameters("Protected magnitudes")
    def __post_init__(self) -> None:
        _ = self.factors

    @cached_property
    def factors(self) -> Factors:
        """The shares by which contributions change, as everybody may know."""
        return needed_factors(self.share, self.directions)

    @property
    def share(self) -> Fraction:
        """``p`` as an exact share."""
        return exact(self.p) / 100

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file."""
        return {
            "method": self.name,
            "p": self.p,
            "directions": self.directions,
            "room": self.room,
            "ways": self.ways,
            "tables": [list(words) for words in self.tables],
            "measures": list(self.measures),
            "sweeps": self.sweeps,
        }

    def protect(
        self,
        records: Records,
        key: bytes,
        *,
        background: Background = NOTHING,
        progress: Progress | None = None,
    ) -> MagnitudeResult:
        """Protect the measures of a register; all chance comes from the key and the identities of contributors.

        Contributors who gave a waiver keep their true values.
        """
        if len(key) < 16:
            raise InputError("The key of protected magnitudes must have at least 16 bytes.")
        families = self._families(records)
        check_relations(records, families)
        with nullcontext() if progress is None else reporting_progress(progress):
            return self._protect(records, key, families, background)

    def _families(self, records: Records) -> tuple[Family, ...]:
        known = records.dataset.measures
        chosen = {records.dataset.measure(name).name for name in self.measures}
        families = families_of(known)
        if not families:
            raise InputError("The dataset has no measures; there are no sums to protect.")
        if chosen:
            families = tuple(f for f in families if chosen & set(f.shown))
        for family in families:
            for name in family.moved:
                if records.numbers[name].size and int(np.abs(records.numbers[name]).max()) >= 2**62:
                    raise InputError(
                        f"A value of {name!r} does not fit 62 bits; use fewer decimals."
                    )
        return families

    def _protect(
        self, records: Records, key: bytes, families: tuple[Family, ...], background: Background
    ) -> MagnitudeResult:
        plan = plan_tables(records.dataset, self.ways, self.tables)
        room = int(self.room * SHARES)
        made: dict[str, Ints] = {}
        found = []
        for family in families:
            secret_key = derived(key, f"magnitudes {family.name}")
            units, order, secret = units_of(
                records,
                plan.variables,
                family,
                self.factors,
                secret_key,
                room=room,
                background=background,
            )
            values = np.stack([records.numbers[m][order] for m in family.shown], axis=1)
            ranking = [rank_cells(plan, units, np.ascontiguousarray(v)) for v in values.T]
            totals = np.stack([r.total for r in ranking], axis=1)
            close = np.stack([~r.sensitive(self._ratio) for r in ranking], axis=1)
            errors = search(
                plan, units, family, relative_scale(totals, close), secret, secret_key, self.sweeps
            )
            shown = values + family.added(noise_of(units))
            back = np.empty_like(order)
            back[order] = np.arange(order.size)
            for column, name in enumerate(family.shown):
                made[name] = shown[back, column]
                found.append((name, ranking[column], errors[:, column]))
        return MagnitudeResult(
            _finest_sums(records, made),
            *self._reports(plan, found, key, records.dataset),
            made,
        )

    @property
    def _ratio(self) -> tuple[int, int]:
        return self.share.numerator, self.share.denominator

    def _reports(
        self, plan: Plan, found: list[tuple[str, Ranking, Any]], key: bytes, dataset: Dataset
    ) -> tuple[PublicFactors, MagnitudeReport]:
        return measured(
            self.to_mapping(),
            self.factors,
            plan,
            found,
            self._ratio,
            derived(key, "sums report"),
            {m.name: m.earlier for m in dataset.measures if m.earlier is not None},
        )


def _finest_sums(records: Records, made: dict[str, Ints]) -> FinestSums:
    """Add protected values up by finest cell; cells whose sums are all 0 are left out."""
    dataset = records.dataset
    codes = np.stack([records.codes[v.name] for v in dataset.variables])
    _, first, place = np.unique(
        cell_numbers(dataset, codes), return_index=True, return_inverse=True
    )
    sums = {}
    for name, values in made.items():
        sums[name] = np.zeros(first.size, dtype=np.int64)
        np.add.at(sums[name], place.ravel(), values)
    kept = np.any([s != 0 for s in sums.values()], axis=0)
    return FinestSums(dataset, codes[:, first[kept]], {n: s[kept] for n, s in sums.items()})
