"""Replicate weights made from a design: jackknife, balanced half-samples with Fay's factor, bootstrap.

=================================  ====================================================================
:func:`jackknife`                  leaves one cluster out at a time: JK1 without strata, JKn with them
:func:`balanced_half_samples`      halves of strata with two clusters each: BRR, and Fay's method
:func:`bootstrap`                  draws ``n - 1`` clusters of each stratum again (Rao and Wu 1988)
=================================  ====================================================================

Each gives the weights of every replicate and the factors with which squared deviations become a variance
(Wolter 2007, chapters 3 and 4).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats
from lustrum.numeric.arithmetic_loops import exp, log
from lustrum.numeric.compiled import compiled
from lustrum.survey.design import Design, ReplicateWeights


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
