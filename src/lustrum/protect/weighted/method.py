"""A protected survey: one public file of respondents, made once; every weighted table is a sum of it.

The page on survey estimates says how it is made, and what everything public in it could tell apart.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.errors import choices
from lustrum.model.parameters import DeclaredSpec, parameter
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.protect.population.public import coarse_error, coarse_share
from lustrum.protect.weighted.classes import classes_of, weight_classes
from lustrum.protect.weighted.means import class_noise, filled_means, limited_weights, shared_values
from lustrum.protect.weighted.replicates import ReplicateFactors, unit_factors, variance_units
from lustrum.protect.weighted.respondents import ProtectedRespondents, SurveyRecords

_SPREAD_STEP = 0.1
_OF_STRATUM = 0.5
"""How many protected respondents take their unit from anybody in the stratum."""

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class ProtectedSurvey(DeclaredSpec):
    """Protected respondents with shared weights, shared values of measures and drawn designs."""

    name: ClassVar[str] = "protected-survey"
    group: ClassVar[str] = ""
    what: ClassVar[str] = "A protected survey"
    class_size: int = parameter(10, "Fewest respondents that share a weight.", least=3)
    noise: float = parameter(
        0.05, "Largest relative noise of a shared weight.", least=0.01, below=0.5
    )
    classes: tuple[str, ...] = parameter((), "The variables that divide weight classes, in order.")
    measure_classes: tuple[str, ...] = parameter(
        (), "The variables that divide classes of measures, in order."
    )
    decimals: int = parameter(0, "Decimals of shared weights.", least=0)

    def protect(
        self,
        records: SurveyRecords,
        population: ProtectedPopulation,
        key: bytes,
        *,
        progress: Progress | None = None,
    ) -> tuple[ProtectedRespondents, PopulationResult]:
        """Make the public file; all randomness comes from the key and the record keys."""
        if len(key) < 16:
            raise InputError("The key of a protected survey must have at least 16 bytes.")
        for option in ("classes", "measure_classes"):
            named = getattr(self, option)
            if len(named) != len(set(named)):
                raise InputError(f"{option!r} of a protected survey names a variable twice.")
        protected = population.protect(
            records.cells(), _derived(key, "population"), progress=progress
        )
        return self.with_counts(records, protected, key), protected

    def with_counts(
        self, records: SurveyRecords, protected: PopulationResult, key: bytes
    ) -> ProtectedRespondents:
        """Give protected respondents their weights and designs."""
        secret = _derived(key, "survey")
        rng = np.random.default_rng(list(secret))
        keys = records.keys[records.order]
        codes, shown = protected.cells.codes, protected.cells.counts
        theirs = records.codes[:, records.order]
        rows = np.repeat(np.arange(len(shown)), shown)
        order = self._order(records, "classes")
        group = weight_classes(codes, shown, order, self.class_size)
        of_record = classes_of(codes, group, order, theirs)
        weight = records.design.weights[records.order]
        mean, spread = self._means(of_record, weight, int(group.max()) + 1)
        noise = class_noise(secret, "weights", of_record, keys, mean.size)
        shared = mean * (1.0 + self.noise * noise)
        klass = group[rows]
        weights = self._calibrated(shared[klass], records)
        strata, clusters, replicates, joined = self._design(records, of_record, klass, rng)
        values: dict[str, Ints] = {}
        spreads: dict[str, float] = {}
        if records.measures:
            order = self._order(records, "measure_classes")
            alike = weight_classes(codes, shown, order, self.class_size)
            at = classes_of(codes, alike, order, theirs)
            for name in sorted(records.measures):
                count = int(alike.max()) + 1
                noise = class_noise(secret, f"measure {name}", at, keys, count)
                true = records.measures[name][records.order]
                held, apart = shared_values(at, true, count, self.class_size, self.noise * noise)
                values[name] = held[alike[rows]]
                spreads[name] = coarse_error(apart, key, f"spread of {name}", _SPREAD_STEP)
        return ProtectedRespondents(
            dataset=records.dataset,
            codes=codes[:, rows],
            weights=weights,
            strata=strata,
            clusters=clusters,
            count_errors=dict(protected.public.errors),
            weight_spread=coarse_share(spread, key, "spread of weights"),
            weight_noise=self.noise,
            decimals=self.decimals,
            classes=klass,
            values=values,
            value_spreads=spreads,
            value_noise=self.noise,
            replicates=replicates,
            joined=joined,
        )

    def _order(self, records: SurveyRecords, option: str) -> list[int]:
        """The variables that divide classes, in order."""
        names = [v.name for v in records.dataset.variables]
        wanted: tuple[str, ...] = getattr(self, option)
        for name in wanted:
            if name not in names:
                raise InputError(
                    f"{option!r} of a protected survey: there is no variable {name!r}; "
                    f"{choices(name, names)}."
                )
        return [names.index(name) for name in wanted or names]

    def _means(self, group: Ints, weight: Floats, count: int) -> tuple[Floats, float]:
        """The mean weight of every class, and the relative spread of weights within classes."""
        limited = limited_weights(group, weight, count, self.class_size)
        mean = filled_means(group, limited, count, self.class_size)
        apart = (limited / mean[group] - 1.0) ** 2
        return mean, float(np.sqrt(apart.mean()))

    def _design(
        self, records: SurveyRecords, of_record: Ints, klass: Ints, rng: np.random.Generator
    ) -> tuple[Ints, Ints, ReplicateFactors | None, Ints | None]:
        """The stratum and the variance unit of every protected respondent, and what the units are made of.

        The stratum is that of a respondent of the same class, or of anybody where the class has few. So is the
        unit, or it is that of any respondent of the stratum, so that a class and a unit that meet in the file
        need not meet in truth.
        """
        design = records.design
        units = variance_units(design, self.class_size, rng)
        unit = units.of_records(design)[records.order]
        stratum = units.strata[unit]
        donor = _donors(klass, of_record, rng, self.class_size)
        anybody = _donors(stratum[donor], stratum, rng)
        donor = np.where(rng.random(klass.size) < _OF_STRATUM, anybody, donor)
        strata = _renumbered(stratum[donor], rng)
        if design.clusters is None and records.replicates is None:
            # Everybody was drawn separately, and so is every protected respondent.
            return strata, np.arange(klass.size, dtype=np.int64), None, None
        clusters = _renumbered(unit[donor], rng)
        drawn = np.zeros(int(clusters.max(initial=-1)) + 1, dtype=np.int64)
        drawn[clusters] = unit[donor]
        if records.replicates is None:
            return strata, clusters, None, np.bincount(units.of_cluster)[drawn]
        every = unit_factors(design, units, records.replicates)
        return strata, clusters, ReplicateFactors(every.factors[drawn], every.scale), None

    def _calibrated(self, weights: Floats, records: SurveyRecords) -> Ints:
        """Whole weights, at least 1; scaled to the frame where its size is public."""
        if records.total is not None and weights.size:
            weights = weights * (records.total / float(weights.sum()))
        return np.maximum(np.rint(weights * float(10**self.decimals)), 1).astype(np.int64)


def _derived(key: bytes, purpose: str) -> bytes:
    return hmac.digest(key, b"lustrum protected survey " + purpose.encode(), hashlib.sha256)


def _donors(klass: Ints, of_record: Ints, rng: np.random.Generator, least: int = 1) -> Ints:
    """For each protected respondent, a record of its class.

    A class with fewer than ``least`` records is filled up with anybody, so that few are not seen in it.
    """
    order = np.argsort(of_record, kind="stable")
    count = int(max(of_record.max(), klass.max(initial=0))) + 2
    starts = np.searchsorted(of_record[order], np.arange(count))
    held = np.diff(starts)[klass]
    full = np.maximum(held, least)
    at = rng.random(klass.size) * full
    others = np.floor((at - held) / np.maximum(full - held, 1) * order.size).astype(np.int64)
    pick = np.where(at < held, starts[klass] + np.floor(at).astype(np.int64), others)
    return np.asarray(order[np.clip(pick, 0, order.size - 1)], dtype=np.int64)


def _renumbered(numbers: Ints, rng: np.random.Generator) -> Ints:
    """The same groups with random numbers, so that no number reveals a place."""
    groups, group_index = np.unique(numbers, return_inverse=True)
    return np.asarray(rng.permutation(groups.size)[group_index], dtype=np.int64)
