"""A protected survey: one public file of respondents, made once; every weighted table is a sum of it.

The number of respondents in every finest cell comes from a protected population. A weight is never that of
one respondent: respondents of a class share the mean weight of the class, moved by keyed noise and rounded
to whole numbers, so that a weighted count reveals neither the weight nor the number of respondents, even if
there is only one. Strata and clusters of a protected respondent are drawn from those of the class. Tables
add up and agree with each other; standard errors follow from the file itself and state what protection
adds.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lustrum.arrays import Array, Floats, Ints
from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.model.finest import FinestCells
from lustrum.model.parameters import check_parameters, parameter
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.protect.population.public import coarse_error, coarse_share
from lustrum.protect.weighted.classes import weight_classes
from lustrum.protect.weighted.replicates import ReplicateFactors
from lustrum.protect.weighted.respondents import ProtectedRespondents, SurveyRecords
from lustrum.protect.weighted.values import shared_values

__all__ = ["ProtectedSurvey"]

_SPREAD_STEP = 0.1

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class ProtectedSurvey:
    """Protected respondents with shared weights, shared values of measures and drawn designs.

    ``classes`` are the variables that divide the weight classes, the most important first; by default all
    variables.
    ``measure_classes`` are the same for values of measures.
    """

    name: ClassVar[str] = "protected-survey"
    class_size: int = parameter(10, "Fewest respondents that share a weight.", least=3)
    noise: float = parameter(
        0.05, "Largest relative noise of a shared weight.", least=0.01, below=0.5
    )
    classes: tuple[str, ...] = parameter((), "The variables that divide weight classes, in order.")
    measure_classes: tuple[str, ...] = parameter(
        (), "The variables that divide classes of measures, in order."
    )
    decimals: int = parameter(0, "Decimals of shared weights.", least=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "measure_classes", tuple(self.measure_classes))
        check_parameters(self, "A protected survey")

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file."""
        return {
            "class_size": self.class_size,
            "noise": self.noise,
            "classes": list(self.classes),
            "measure_classes": list(self.measure_classes),
            "decimals": self.decimals,
        }

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
        for words in ("classes", "measure_classes"):
            named = getattr(self, words)
            if len(named) != len(set(named)):
                raise InputError(f"{words!r} of a protected survey names a variable twice.")
        true = records.cells()
        made = population.protect(true, _derived(key, "population"), progress=progress)
        return self.with_counts(records, true, made, key), made

    def with_counts(
        self, records: SurveyRecords, true: FinestCells, made: PopulationResult, key: bytes
    ) -> ProtectedRespondents:
        """Give protected respondents their weights and designs."""
        rng = np.random.default_rng(list(_derived(key, "survey")))
        codes, sizes, place = _joined(true, made.cells)
        order = self._order(records, "classes")
        group = weight_classes(codes, sizes, order, self.class_size)
        at = _places(codes, records.codes[:, records.order])
        of_record = group[at]
        weight = records.design.weights[records.order]
        mean, spread = _means(of_record, weight, int(group.max()) + 1)
        shared = self._shared(mean, rng)
        rows = np.repeat(place, made.cells.counts)
        klass = group[rows]
        donor = _donors(klass, of_record, rng)
        weights = self._calibrated(shared[klass], records)
        strata = records.design.stratum[records.order][donor]
        clusters = records.design.cluster[records.order][donor]
        drawn = clusters
        strata, clusters = _renumbered(strata, rng), _renumbered(clusters, rng)
        replicates = None
        if records.replicates is not None:
            factors = np.zeros(
                (int(clusters.max(initial=-1)) + 1, records.replicates.factors.shape[1]), np.int64
            )
            factors[clusters] = records.replicates.factors[drawn]
            replicates = ReplicateFactors(factors, records.replicates.scale)
        values: dict[str, Ints] = {}
        spreads: dict[str, float] = {}
        if records.measures:
            alike = weight_classes(
                codes, sizes, self._order(records, "measure_classes"), self.class_size
            )
            for name in sorted(records.measures):
                own = np.random.default_rng(list(_derived(key, f"measure {name}")))
                true_values = records.measures[name][records.order]
                held, apart = shared_values(
                    alike[at], true_values, int(alike.max()) + 1, self.noise, own
                )
                values[name] = held[alike[rows]]
                spreads[name] = coarse_error(apart, key, f"spread of {name}", _SPREAD_STEP)
        return ProtectedRespondents(
            dataset=records.dataset,
            codes=codes[:, rows],
            weights=weights,
            strata=strata,
            clusters=clusters,
            count_errors=dict(made.public.errors),
            weight_spread=coarse_share(spread, key, "spread of weights"),
            weight_noise=self.noise,
            decimals=self.decimals,
            classes=klass,
            values=values,
            value_spreads=spreads,
            value_noise=self.noise,
            replicates=replicates,
        )

    def _order(self, records: SurveyRecords, words: str) -> list[int]:
        """The variables that divide classes, in order."""
        names = [v.name for v in records.dataset.variables]
        wanted: tuple[str, ...] = getattr(self, words)
        for name in wanted:
            if name not in names:
                raise InputError(
                    f"{words!r} of a protected survey: there is no variable {name!r}; "
                    f"{choices(name, names)}."
                )
        return [names.index(name) for name in wanted or names]

    def _shared(self, mean: Floats, rng: np.random.Generator) -> Floats:
        """The weight of every class: its mean, moved by noise."""
        return np.asarray(mean * (1.0 + self.noise * rng.uniform(-1.0, 1.0, mean.size)))

    def _calibrated(self, weights: Floats, records: SurveyRecords) -> Ints:
        """Whole weights, at least 1; scaled to the frame where its size is public."""
        if records.total is not None and weights.size:
            weights = weights * (records.total / float(weights.sum()))
        return np.maximum(np.rint(weights * 10.0**self.decimals), 1).astype(np.int64)


def _derived(key: bytes, purpose: str) -> bytes:
    return hmac.digest(key, b"lustrum protected survey " + purpose.encode(), hashlib.sha256)


def _joined(true: FinestCells, shown: FinestCells) -> tuple[Array, Ints, Ints]:
    """All finest cells with true or protected respondents, the true numbers, and where protected ones are."""
    both = np.concatenate([true.codes, shown.codes], axis=1)
    codes, place = np.unique(both, axis=1, return_inverse=True)
    place = np.asarray(place).ravel()
    counts = np.zeros((2, codes.shape[1]), dtype=np.int64)
    counts[0, place[: len(true)]] = true.counts
    counts[1, place[len(true) :]] = shown.counts
    # The true number of respondents must be large; the protected number reveals nothing more.
    return codes, counts[0], place[len(true) :].astype(np.int64)


def _places(codes: Array, records: Array) -> Ints:
    """The column of each record among the cells, which are in ascending order."""
    sizes = codes.max(axis=1).astype(np.int64) + 1
    if float(np.prod(sizes.astype(np.float64))) >= 2.0**62:
        known = {column.tobytes(): i for i, column in enumerate(np.ascontiguousarray(codes.T))}
        rows = np.ascontiguousarray(records.T.astype(codes.dtype))
        return np.array([known[row.tobytes()] for row in rows], dtype=np.int64)
    keys = np.ravel_multi_index(tuple(codes.astype(np.int64)), tuple(sizes))
    wanted = np.ravel_multi_index(tuple(records.astype(np.int64)), tuple(sizes))
    order = np.argsort(keys, kind="stable")
    return np.asarray(order[np.searchsorted(keys[order], wanted)], dtype=np.int64)


def _means(group: Ints, weight: Floats, count: int) -> tuple[Floats, float]:
    """The mean weight of every class, and the relative spread of weights within classes."""
    number = np.bincount(group, minlength=count)
    total = np.bincount(group, weights=weight, minlength=count)
    mean = np.divide(total, number, out=np.ones(count), where=number > 0)
    apart = (weight / mean[group] - 1.0) ** 2
    return mean, float(np.sqrt(apart.mean()))


def _donors(klass: Ints, of_record: Ints, rng: np.random.Generator) -> Ints:
    """For each protected respondent, a record of its class from which it takes the stratum and cluster."""
    order = np.argsort(of_record, kind="stable")
    starts = np.searchsorted(of_record[order], np.arange(int(of_record.max()) + 2))
    held = np.diff(starts)
    pick = starts[klass] + np.floor(rng.random(klass.size) * held[klass]).astype(np.int64)
    return np.asarray(order[pick], dtype=np.int64)


def _renumbered(numbers: Ints, rng: np.random.Generator) -> Ints:
    """The same groups with random numbers, so that no number reveals a place."""
    found, place = np.unique(numbers, return_inverse=True)
    return np.asarray(rng.permutation(found.size)[place], dtype=np.int64)
