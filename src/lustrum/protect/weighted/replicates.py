"""Replicate weights of a survey: what of them can be public.

Replicate weights follow from the sample's clusters: a replicate leaves clusters out, halves or repeats them.
The public file draws a cluster for every protected respondent anyway, so a factor for every cluster and
replicate tells no more than that. What calibration made of each respondent's own replicates would tell more, so
the respondents of a cluster share the mean of their factors, in hundredths.

Jackknife weights leave out one cluster at a time. They need no factors: clusters and strata are recovered from
them, and variances come from the design.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.arrays import Floats, Ints
from lustrum.model import InputError
from lustrum.survey import Design

__all__ = ["HUNDREDTHS", "ReplicateFactors", "alike_clusters", "jackknife_design", "shared_factors"]

HUNDREDTHS = 100
_ALIKE = 4
"""Factors are compared in steps of one over this, where clusters are not named."""


@dataclass(frozen=True, eq=False)
class ReplicateFactors:
    """A respondent of cluster ``c`` weighs ``factors[c, r]`` hundredths of its weight in replicate ``r``.

    The variance is ``scale`` times the sum of squared deviations of the replicates from the full estimate.
    """

    factors: Ints
    scale: float

    def of_clusters(self, clusters: Ints) -> Floats:
        """The factor of every respondent in every replicate."""
        return np.asarray(self.factors[clusters] / HUNDREDTHS)


def shared_factors(design: Design, replicates: Floats) -> Ints:
    """The factors of every cluster in hundredths: the sum of its replicate weights over that of its weights."""
    count = len(design.stratum_of_cluster)
    total = np.bincount(design.cluster, weights=design.weights, minlength=count)
    columns = [np.bincount(design.cluster, weights=c, minlength=count) for c in replicates.T]
    return np.rint(HUNDREDTHS * np.stack(columns, axis=1) / total[:, None]).astype(np.int64)


def alike_clusters(weights: Floats, replicates: Floats) -> Ints:
    """Clusters that are not named: respondents whose replicate weights move in the same way.

    >>> replicates = np.array([[2.0, 0.0], [4.0, 0.0], [0.0, 6.0], [0.0, 2.0]])
    >>> alike_clusters(np.array([1.0, 2.0, 3.0, 1.0]), replicates).tolist()
    [1, 1, 0, 0]
    """
    steps = np.rint(_ALIKE * replicates / weights[:, None]).astype(np.int64)
    found, place = np.unique(steps, axis=0, return_inverse=True)
    if 2 * len(found) > len(weights):
        raise InputError(
            "The replicate weights differ from respondent to respondent, so they do not show the clusters of "
            "the sample; name these with 'clusters'."
        )
    return np.asarray(place).ravel().astype(np.int64)


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
