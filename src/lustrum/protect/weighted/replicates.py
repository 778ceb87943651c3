"""Replicate weights of a survey: what of them can be public.

The public file has factors of variance units only, each the mean of many respondents, in hundredths. Their
deviations from 1 are made four times smaller, and the scale of the variance sixteen times larger (Fay's idea):
variances of sums stay as they are, and no replicate leaves a small cell empty, so that quotients have errors
too. Jackknife weights need no factors: clusters and strata are recovered from them.

*Variance units* are the clusters and strata of the public file. Small clusters of a stratum are joined at
random until every unit has enough respondents, with fewer degrees of freedom (Wolter 2007, chapter 2). How many
are enough is drawn by the secret for every cluster, between the least number and twice that: nobody can tell on
which side of it a cluster lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.survey import Design

HUNDREDTHS = 100
STEADY = 0.25
"""By how much deviations of factors from 1 are made smaller."""
_ALIKE = 4
"""Factors are compared in steps of one over this, where clusters are not named."""


@dataclass(frozen=True, eq=False, repr=False)
class GivenReplicates:
    """The replicate weights of all respondents, one column for each replicate. Confidential.

    The variance is ``scale`` times the sum of squared deviations of the replicates from the full estimate.
    """

    columns: Floats
    scale: float


@dataclass(frozen=True, eq=False)
class ReplicateFactors:
    """A respondent of unit ``u`` weighs ``factors[u, r]`` hundredths of its weight in replicate ``r``. Public.

    The variance is ``scale`` times the sum of squared deviations of the replicates from the full estimate.
    """

    factors: Ints
    scale: float

    def of_units(self, units: Ints) -> Floats:
        return np.asarray(self.factors[units] / HUNDREDTHS)


def unit_factors(design: Design, units: VarianceUnits, given: GivenReplicates) -> ReplicateFactors:
    """The factors of every variance unit, in hundredths.

    The factor of a unit is the sum of its replicate weights over that of its weights. Clusters that are joined
    in a unit level each other out: with ``q`` the sum of squared shares of the clusters in the weight of the
    unit, and ``n`` clusters in the stratum of which any is as likely to be in the unit as another, the
    squared deviation of the unit from its stratum is ``(n q - 1) / (n - 1)`` of that of a cluster. It is raised
    by that, so that standard errors stay those of the design. The factor of a whole stratum stays as it is.
    """
    count, number = len(units.strata), int(units.strata.max(initial=-1)) + 1
    clusters = len(design.stratum_of_cluster)
    weight = np.bincount(design.cluster, weights=design.weights, minlength=clusters)
    sums = _summed(design.cluster, given.columns, clusters)
    unit_weight = np.bincount(units.of_cluster, weights=weight, minlength=count)
    mean = _summed(units.of_cluster, sums, count) / unit_weight[:, None]
    whole = np.bincount(units.strata, weights=unit_weight, minlength=number)
    level = _summed(units.strata, unit_weight[:, None] * mean, number) / whole[:, None]
    squares = np.bincount(units.of_cluster, weights=weight**2, minlength=count) / unit_weight**2
    n = np.bincount(units.strata[units.of_cluster], minlength=number)[units.strata]
    raised = np.sqrt((n - 1.0) / (n * squares - 1.0))
    apart = raised[:, None] * (mean - level[units.strata])
    over = _summed(units.strata, unit_weight[:, None] * apart, number) / whole[:, None]
    factor = level[units.strata] + apart - over[units.strata]
    steady = np.rint(HUNDREDTHS * (1.0 + STEADY * (factor - 1.0)))
    return ReplicateFactors(np.maximum(steady, 0).astype(np.int64), given.scale / (STEADY * STEADY))


def _summed(group: Ints, rows: Floats, count: int) -> Floats:
    return np.stack([np.bincount(group, weights=c, minlength=count) for c in rows.T], axis=1)


def alike_clusters(weights: Floats, replicates: Floats) -> Ints:
    """Clusters that are not named: respondents whose replicate weights move in the same way.

    >>> replicates = np.array([[2.0, 0.0], [4.0, 0.0], [0.0, 6.0], [0.0, 2.0]])
    >>> alike_clusters(np.array([1.0, 2.0, 3.0, 1.0]), replicates).tolist()
    [1, 1, 0, 0]
    """
    steps = np.rint(_ALIKE * replicates / weights[:, None]).astype(np.int64)
    patterns, cluster = np.unique(steps, axis=0, return_inverse=True)
    if 2 * len(patterns) > len(weights):
        raise InputError(
            "The replicate weights differ from respondent to respondent, so they do not show the clusters of "
            "the sample; name these with 'clusters'."
        )
    return np.asarray(cluster).ravel().astype(np.int64)


def jackknife_design(weights: Floats, replicates: Floats) -> Design:
    """The strata and clusters behind jackknife weights: a cluster is what a replicate leaves out.

    Its stratum are the clusters that weigh more in that replicate.

    >>> one, other = np.array([[0.0, 2.0], [2.0, 0.0]]), np.ones((2, 2))
    >>> jackknife_design(np.ones(4), np.block([[one, other], [other, one]])).stratum.tolist()
    [0, 0, 1, 1]
    """
    out = replicates == 0
    if not bool((out.sum(axis=1) == 1).all()) or not bool(out.any(axis=0).all()):
        raise InputError(
            "Jackknife weights leave every respondent out in exactly one replicate, and a replicate leaves "
            "some out; name 'strata' and 'clusters' if yours do not."
        )
    cluster = np.argmax(out, axis=1).astype(np.int64)
    count = replicates.shape[1]
    total = np.bincount(cluster, weights=weights, minlength=count)
    columns = [np.bincount(cluster, weights=c, minlength=count) for c in replicates.T]
    raised = np.stack(columns, axis=1) / total[:, None] > 1.0 + 0.5 / count
    same = raised | np.eye(count, dtype=np.bool_)
    stratum = np.argmax(same, axis=0)
    if not np.array_equal(same, stratum[:, None] == stratum[None, :]):
        raise InputError(
            "The jackknife weights do not show which clusters share a stratum; name 'strata' and 'clusters'."
        )
    return Design(weights, stratum[cluster], cluster)


@dataclass(frozen=True, eq=False)
class VarianceUnits:
    """The unit of every cluster of a design, and the stratum of every unit. Confidential."""

    of_cluster: Ints
    strata: Ints

    def of_records(self, design: Design) -> Ints:
        return self.of_cluster[design.cluster]


def variance_units(design: Design, least: int, rng: np.random.Generator) -> VarianceUnits:
    """Units of at least so many respondents, two or more in every stratum.

    >>> clusters = np.repeat(np.arange(8), [9, 1, 8, 1, 1, 1, 9, 9])
    >>> design = Design(np.ones(39), np.where(clusters < 4, 0, 1), clusters)
    >>> units = variance_units(design, 3, np.random.default_rng(1))
    >>> np.bincount(units.of_records(design)).min() >= 3, np.bincount(units.strata).min() >= 2
    (np.True_, np.True_)
    """
    size = np.bincount(design.cluster, minlength=len(design.stratum_of_cluster)).tolist()
    turn = rng.permutation(len(size)).tolist()
    drawn = (least + rng.integers(0, least, len(size))).tolist()
    for enough in (drawn, [least] * len(size)):
        units_by_stratum = _strata_of_units(design, size, enough, turn)
        if units_by_stratum is not None:
            break
    else:
        raise InputError(
            "The survey has fewer than two groups of 'class_size' respondents, from which no standard "
            "error can be computed; choose a smaller 'class_size'."
        )
    of_cluster = np.zeros(len(size), dtype=np.int64)
    strata: list[int] = []
    for stratum, units in enumerate(units_by_stratum):
        for unit in units:
            of_cluster[unit] = len(strata)
            strata.append(stratum)
    return VarianceUnits(of_cluster, np.array(strata, dtype=np.int64))


def _strata_of_units(
    design: Design, size: list[int], enough: list[int], turn: list[int]
) -> list[list[list[int]]] | None:
    """Strata of units of clusters, each of two units or more; None if there is no such division."""
    units_by_stratum: list[list[list[int]]] = []
    waiting: list[int] = []
    for stratum in range(len(design.clusters_in_stratum)):
        waiting += np.flatnonzero(design.stratum_of_cluster == stratum).tolist()
        units = _units(waiting, size, enough, turn)
        if len(units) >= 2:
            units_by_stratum.append(units)
            waiting = []
    if waiting and units_by_stratum:
        waiting += [cluster for unit in units_by_stratum.pop() for cluster in unit]
        units_by_stratum.append(_units(waiting, size, enough, turn))
    return units_by_stratum or None


def _units(
    clusters: list[int], size: list[int], enough: list[int], turn: list[int]
) -> list[list[int]]:
    """Large clusters by themselves, small ones together in random order; none if all are too few."""
    large = [[c] for c in clusters if size[c] >= enough[c]]
    joined: list[list[int]] = []
    open_unit: list[int] = []
    for cluster in sorted((c for c in clusters if size[c] < enough[c]), key=turn.__getitem__):
        open_unit.append(cluster)
        if sum(size[c] for c in open_unit) >= enough[open_unit[0]]:
            joined.append(open_unit)
            open_unit = []
    if open_unit:
        if not joined and not large:
            return []
        last = joined[-1] if joined else min(large, key=lambda unit: turn[unit[0]])
        last.extend(open_unit)
    return large + joined
