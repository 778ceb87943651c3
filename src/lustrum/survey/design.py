"""The design of a sample: how its records were drawn, what each stands for, and estimates.

A record belongs to a cluster (its primary sampling unit) of a stratum. Without clusters every record is a
cluster; without strata there is one. ``population`` is the number of clusters in the whole stratum, the same
for all of its records; with it variances get the correction of sampling without replacement. A cluster may be
several that were drawn and are no longer apart; ``joined`` is their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.numeric.arithmetic_loops import exp, log
from lustrum.numeric.compiled import compiled

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
        return len(self.weights)

    @cached_property
    def stratum(self) -> Ints:
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
        count = int(self.cluster.max(initial=-1)) + 1
        out = np.zeros(count, dtype=np.int64)
        out[self.cluster] = self.stratum
        return out

    @cached_property
    def clusters_in_stratum(self) -> Ints:
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


# Replicate weights made from a design: jackknife, balanced half-samples with Fay's factor, bootstrap.
#
# =================================  ====================================================================
# :func:`jackknife`                  leaves one cluster out at a time: JK1 without strata, JKn with them
# :func:`balanced_half_samples`      halves of strata with two clusters each: BRR, and Fay's method
# :func:`bootstrap`                  draws ``n - 1`` clusters of each stratum again (Rao and Wu 1988)
# =================================  ====================================================================
#
# Each gives the weights of every replicate and the factors with which squared deviations become a variance
# (Wolter 2007, chapters 3 and 4).


def jackknife(design: Design) -> ReplicateWeights:
    """Leave out one cluster in each replicate, and give its weight to the others of its stratum.

    Of a stratum with ``n`` clusters the factor is ``(1 - f) (n - 1) / n``. A stratum of one cluster adds
    nothing: where it is not certain, ``lonely = "centre"`` of the design is for linearised variances only.

    >>> made = jackknife(Design(np.array([10.0, 10.0, 10.0])))
    >>> made.replicates[:, 0].tolist(), made.rscales.round(3).tolist()
    ([0.0, 15.0, 15.0], [0.667, 0.667, 0.667])
    """
    _require_apart(design)
    drawn = design.clusters_in_stratum
    columns, factors = [], []
    for cluster, stratum in enumerate(design.stratum_of_cluster.tolist()):
        n = int(drawn[stratum])
        if n == 1:
            continue
        factor = np.where(design.stratum == stratum, n / (n - 1.0), 1.0)
        columns.append(design.weights * np.where(design.cluster == cluster, 0.0, factor))
        factors.append(design.correction[stratum] * (n - 1.0) / n)
    if len(columns) < 2:
        raise InputError("The jackknife needs a stratum with two clusters or more.")
    return ReplicateWeights(design.weights, np.stack(columns, axis=1), 1.0, np.array(factors))


def balanced_half_samples(design: Design, fay: float = 0.0) -> ReplicateWeights:
    """Double one half of the clusters and drop the other, in balance over all strata.

    With Fay's factor the halves weigh ``2 - fay`` and ``fay``. Every stratum needs exactly two clusters.
    """
    if not 0 <= fay < 1:
        raise InputError(f"Fay's factor is at least 0 and below 1, not {fay!r}.")
    _require_apart(design)
    if bool((design.clusters_in_stratum != 2).any()):
        raise InputError(
            "Balanced half-samples need two clusters in every stratum; use the jackknife or the bootstrap."
        )
    strata = len(design.clusters_in_stratum)
    size = 4
    while size <= strata:
        size *= 2
    from scipy.linalg import hadamard  # for this alone, which a server never needs

    signs = np.asarray(hadamard(size), dtype=np.float64)[:, 1 : strata + 1]
    first = np.zeros(len(design.stratum_of_cluster), dtype=np.bool_)
    first[np.unique(design.stratum_of_cluster, return_index=True)[1]] = True
    side = np.where(first[design.cluster], 1.0, -1.0)
    columns = [design.weights * (1.0 + (1.0 - fay) * side * row[design.stratum]) for row in signs]
    correction = design.correction
    if bool((correction != correction[0]).any()):
        raise InputError(
            "Balanced half-samples have one finite population correction for all strata; leave "
            "'population' out, or use the jackknife."
        )
    scale = float(correction[0]) / (size * (1.0 - fay) * (1.0 - fay))
    return ReplicateWeights(design.weights, np.stack(columns, axis=1), scale)


def bootstrap(design: Design, replicates: int, rng: np.random.Generator) -> ReplicateWeights:
    """Draw ``n - 1`` of the ``n`` clusters of each stratum with replacement, so often."""
    if type(replicates) is not int or replicates < 2:
        raise InputError(f"A bootstrap needs 2 replicates or more, not {replicates!r}.")
    _require_apart(design)
    clusters = len(design.stratum_of_cluster)
    factor: Floats = np.ones((clusters, replicates))
    for stratum, n in enumerate(design.clusters_in_stratum.tolist()):
        if n == 1:
            continue
        stratum_clusters = np.flatnonzero(design.stratum_of_cluster == stratum)
        times = np.zeros((replicates, n), dtype=np.int64)
        draw_times(times, rng)
        shrunk = np.sqrt(design.correction[stratum])
        factor[stratum_clusters] = 1.0 - shrunk + shrunk * times.T * n / (n - 1.0)
    return ReplicateWeights(
        design.weights, design.weights[:, None] * factor[design.cluster], 1.0 / replicates
    )


def _require_apart(design: Design) -> None:
    if design.joined is not None:
        raise InputError("Replicates are made of clusters as they were drawn, not of joined ones.")


@compiled
def _binomial(n: int, p: float, rng: Any) -> int:  # pragma: no cover
    """A binomial draw, counted up from 0."""
    q = 1.0 - p
    mean = n * p
    most = min(n, int(mean + 10.0 * math.sqrt(mean * q + 1.0)))
    first = exp(n * log(q))
    successes = 0
    mass = first
    u = rng.random()
    while u > mass:
        successes += 1
        if successes > most:
            successes = 0
            mass = first
            u = rng.random()
        else:
            u -= mass
            mass = ((n - successes + 1) * p * mass) / (successes * q)
    return successes


@compiled
def draw_times(times: Array, rng: Any) -> None:  # pragma: no cover
    """Fill in how often each cluster is drawn, for every replicate: one row less than there are clusters.

    Cluster after cluster, by binomial draws: numpy's own way, with the same bytes on every processor.
    """
    n = times.shape[1]
    for replicate in range(times.shape[0]):
        rest = n - 1
        left = 1.0
        for cluster in range(n - 1):
            share = (1.0 / n) / left
            draws = _binomial(rest, min(share, 1.0 - share), rng)
            if share > 0.5:
                draws = rest - draws
            times[replicate, cluster] = draws
            rest -= draws
            if rest == 0:
                break
            left -= 1.0 / n
        times[replicate, n - 1] = rest
