"""Variance units: the clusters and strata of the public file, from which standard errors are computed.

A cluster may have one respondent, and its place in the file or its replicate weights would be those of a
person. So small clusters of a stratum are joined at random until every unit has enough respondents, and a
stratum that would have a single unit is joined with the next one. Random groups of clusters have the variance
that the clusters have, with fewer degrees of freedom (Wolter 2007, chapter 2).

Whether a cluster is large enough is a fact about its respondents. How many are enough is therefore drawn by the
secret for every cluster, between the least number and twice that: nobody can tell on which side of it a cluster
lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.survey import Design


@dataclass(frozen=True, eq=False)
class VarianceUnits:
    """The unit of every cluster of a design, and the stratum of every unit. Confidential."""

    of_cluster: Ints
    strata: Ints

    def of_records(self, design: Design) -> Ints:
        """The unit of every record."""
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
