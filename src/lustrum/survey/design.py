"""The design of a sample: how its records were drawn, what each stands for, and estimates.

A record belongs to a cluster (its primary sampling unit) of a stratum. Without clusters every record is a
cluster; without strata there is one. ``population`` is the number of clusters in the whole stratum, the same
for all of its records; with it variances get the correction of sampling without replacement. A cluster may be
several that were drawn and are no longer apart; ``joined`` is their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Mask

Lonely = Literal["refuse", "certainty", "centre"]

_LONELY = ("refuse", "certainty", "centre")


@dataclass(frozen=True, eq=False)
class Design:
    """Weights, strata and clusters, one entry for each record.

    ``lonely`` says what happens to a stratum with a single cluster, whose variance cannot be estimated:
    ``refuse``, ``certainty`` (it was certain to be drawn and adds no variance) or ``centre`` (its squared
    distance from the mean of all clusters counts). ``joined`` is for linearised variances.

    >>> design = Design(np.array([2.0, 2.0, 5.0, 5.0]), strata=np.array([0, 0, 1, 1]))
    >>> design.clusters_in_stratum.tolist()
    [2, 2]
    """

    weights: Floats
    strata: npt.NDArray[Any] | None = None
    clusters: npt.NDArray[Any] | None = None
    population: Floats | None = None
    lonely: Lonely = "refuse"
    joined: Ints | None = None

    def __post_init__(self) -> None:
        weights = _numbers(self.weights, "weights")
        if weights.size and weights.min() < 0:
            raise InputError("A weight is negative; sampling weights are 0 or more.")
        object.__setattr__(self, "weights", weights)
        for name in ("strata", "clusters", "population", "joined"):
            column = getattr(self, name)
            if column is not None and len(column) != len(weights):
                raise InputError(
                    f"The design has {len(weights)} weights and {len(column)} {name}; it needs one of "
                    "each for every record."
                )
        if self.lonely not in _LONELY:
            raise InputError(f"'lonely' is one of {', '.join(_LONELY)}, not {self.lonely!r}.")
        if self.lonely == "refuse" and bool((self.clusters_in_stratum == 1).any()):
            raise InputError(
                "A stratum has a single cluster, so its variance cannot be estimated; merge it with "
                "another, or say lonely='certainty' or lonely='centre'."
            )

    @property
    def records(self) -> int:
        """How many records the sample has."""
        return len(self.weights)

    @cached_property
    def stratum(self) -> Ints:
        """The stratum of each record, numbered from 0."""
        if self.strata is None:
            return np.zeros(self.records, dtype=np.int64)
        number: Ints = np.unique(np.asarray(self.strata), return_inverse=True)[1].astype(np.int64)
        return number

    @cached_property
    def cluster(self) -> Ints:
        """The cluster of each record, numbered from 0; the same name in two strata is two clusters."""
        if self.clusters is None:
            return np.arange(self.records, dtype=np.int64)
        name = np.unique(np.asarray(self.clusters), return_inverse=True)[1].astype(np.int64)
        pair = self.stratum * (int(name.max(initial=0)) + 1) + name
        number: Ints = np.unique(pair, return_inverse=True)[1].astype(np.int64)
        return number

    @cached_property
    def stratum_of_cluster(self) -> Ints:
        """The stratum of each cluster."""
        count = int(self.cluster.max(initial=-1)) + 1
        out = np.zeros(count, dtype=np.int64)
        out[self.cluster] = self.stratum
        return out

    @cached_property
    def clusters_in_stratum(self) -> Ints:
        """How many clusters were drawn in each stratum."""
        return np.bincount(self.stratum_of_cluster).astype(np.int64)

    @cached_property
    def joined_in_cluster(self) -> Floats:
        """How many clusters that were drawn each cluster is made of; 1 if they are all apart."""
        out = np.ones(len(self.stratum_of_cluster))
        if self.joined is not None:
            out[self.cluster] = _numbers(self.joined, "joined")
            if bool((out < 1).any()) or bool((out[self.cluster] != self.joined).any()):
                raise InputError("'joined' is one number of 1 or more for each cluster.")
        return out

    @cached_property
    def drawn_in_stratum(self) -> Floats:
        """How many clusters were drawn in each stratum, also where some were joined."""
        joined = np.bincount(self.stratum_of_cluster, weights=self.joined_in_cluster)
        return joined.astype(np.float64)

    @cached_property
    def correction(self) -> Floats:
        """The share of each stratum's clusters that were not drawn; 1 without finite populations."""
        drawn = self.drawn_in_stratum
        if self.population is None:
            return np.ones(len(drawn))
        size = np.zeros(len(drawn))
        given = _numbers(self.population, "population")
        size[self.stratum] = given
        if bool((size[self.stratum] != given).any()):
            raise InputError("'population' differs within a stratum; it is one number for each.")
        if bool((size < drawn).any()):
            raise InputError(
                "A stratum has more clusters in the sample than in its population; 'population' counts "
                "the clusters of the whole stratum."
            )
        return 1.0 - drawn / size


@dataclass(frozen=True, eq=False)
class ReplicateWeights:
    """Replicate weights: one column for each replicate, and how their spread becomes a variance.

    The variance is ``scale`` times the sum over replicates of ``rscales`` times the squared deviation from
    the full estimate: ``scale = 1 / R`` for balanced half-samples, ``1 / (R (1 - rho)**2)`` with Fay's factor
    ``rho``, ``(R - 1) / R`` for the delete-one jackknife.
    """

    weights: Floats
    replicates: Floats
    scale: float
    rscales: Floats | None = None

    def __post_init__(self) -> None:
        weights = _numbers(self.weights, "weights")
        replicates = np.asarray(self.replicates, dtype=np.float64)
        if replicates.ndim != 2 or replicates.shape[0] != len(weights) or replicates.shape[1] < 2:
            raise InputError(
                "Replicate weights need one row for each record and a column for each of two or more "
                "replicates."
            )
        if not np.isfinite(replicates).all():
            raise InputError("A replicate weight is missing or not a number.")
        if weights.size and weights.min() < 0:
            raise InputError("A weight is negative; sampling weights are 0 or more.")
        if not self.scale > 0:
            raise InputError(f"The scale of replicate weights must be above 0, not {self.scale!r}.")
        rscales = np.ones(replicates.shape[1]) if self.rscales is None else self.rscales
        if len(rscales) != replicates.shape[1]:
            raise InputError("'rscales' needs one number for each replicate.")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "replicates", replicates)
        object.__setattr__(self, "rscales", np.asarray(rscales, dtype=np.float64))

    @property
    def records(self) -> int:
        """How many records the sample has."""
        return len(self.weights)


def _numbers(values: npt.ArrayLike, name: str) -> Floats:
    out = np.asarray(values, dtype=np.float64)
    if out.ndim != 1:
        raise InputError(f"{name!r} must be a list with one number for each record.")
    if not np.isfinite(out).all():
        raise InputError(f"{name!r} holds a value that is missing or not a number.")
    return out


@dataclass(frozen=True)
class Reliability:
    """When an estimate is flagged: too few respondents, or too large a relative standard error.

    From ``caution`` on an estimate is graded ``caution``, from ``unreliable`` on ``unreliable``.
    """

    respondents: int = 20
    unreliable: float = 0.3
    caution: float = 0.15

    def __post_init__(self) -> None:
        if type(self.respondents) is not int or self.respondents < 0:
            raise InputError("'respondents' must be a whole number of 0 or more.")
        if not self.unreliable > 0:
            raise InputError("'unreliable' must be a relative standard error above 0.")
        if not self.caution > 0:
            raise InputError("'caution' must be a relative standard error above 0.")


@dataclass(frozen=True, eq=False)
class Estimates:
    """One estimate a cell; NaN where nothing can be estimated."""

    values: Floats
    variances: Floats
    respondents: Ints

    @property
    def standard_errors(self) -> Floats:
        """The square roots of the variances."""
        return np.sqrt(self.variances)

    @property
    def relative_errors(self) -> Floats:
        """Standard errors in proportion to the estimates; infinite where an estimate is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.standard_errors / np.abs(self.values)

    def flagged(self, reliability: Reliability) -> Mask:
        """Which estimates are unreliable, by the unweighted number of respondents or by their error."""
        few = self.respondents < reliability.respondents
        errors = self.relative_errors
        return np.asarray(few | ~(errors <= reliability.unreliable))

    def grades(self, reliability: Reliability) -> npt.NDArray[np.str_]:
        """``reliable``, ``caution`` or ``unreliable`` for each estimate."""
        careful = self.relative_errors > reliability.caution
        grade = np.where(careful, "caution", "reliable")
        return np.asarray(np.where(self.flagged(reliability), "unreliable", grade))

    def with_noise(self, variance: npt.ArrayLike) -> Estimates:
        """The same estimates where protection has added noise of this variance, drawn independently."""
        added = np.asarray(variance, dtype=np.float64)
        if bool((added < 0).any()):
            raise InputError("A variance is 0 or more.")
        return replace(self, variances=self.variances + added)
