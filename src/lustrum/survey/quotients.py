"""Quotients of two weighted sums over different records: means, ratios, shares and growth, with variances.

``R = T_y / T_x`` has the linearised variable ``(y - R x) / T_x`` (Woodruff 1971). Where numerator and
denominator are sums over different records, such as a cell and the row that it is part of, its variance is::

    (V(T_y) - 2 R C(T_y, T_x) + R**2 V(T_x)) / T_x**2

with variances and covariances of sums over clusters within strata, as in :mod:`lustrum.survey.linearised`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.survey.design import Design, ReplicateWeights
from lustrum.survey.estimates import Estimates
from lustrum.survey.linearised import Sample, checked, sums_by_cell


@dataclass(frozen=True, eq=False)
class Sums:
    """Weighted sums over cells: the cell of each record or -1, how many cells there are, and values or ones."""

    cells: Ints
    count: int
    values: npt.ArrayLike | None = None


def estimate_quotients(sample: Sample, over: Sums, under: Sums, base: Ints) -> Estimates:
    """The sum in every cell of ``over`` in proportion to that in the cell ``base`` of ``under``.

    >>> design = Design(np.array([1.0, 1.0, 1.0, 1.0]))
    >>> cells, everybody = np.array([0, 0, 0, 1]), np.zeros(4, dtype=np.int64)
    >>> found = estimate_quotients(design, Sums(cells, 2), Sums(everybody, 1), np.array([0, 0]))
    >>> found.values.tolist(), found.standard_errors.round(6).tolist()
    ([0.75, 0.25], [0.25, 0.25])
    """
    base_cells = np.asarray(base)
    if base_cells.shape != (over.count,) or bool(
        ((base_cells < 0) | (base_cells >= under.count)).any()
    ):
        raise InputError("Every cell of a numerator needs one cell of the denominator.")
    top = checked(sample, over.cells, over.count, over.values)
    bottom = checked(sample, under.cells, under.count, under.values)
    respondents = np.bincount(top[1], minlength=over.count).astype(np.int64)

    def quotient(weights: Floats) -> Floats:
        y = sums_by_cell(top[1], weights[top[0]] * top[2], over.count)
        x = sums_by_cell(bottom[1], weights[bottom[0]] * bottom[2], under.count)[base_cells]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(x == 0, np.nan, y / x)

    quotients = quotient(sample.weights)
    if isinstance(sample, ReplicateWeights):
        variances = np.zeros(over.count)
        assert sample.rscales is not None
        for column, factor in zip(sample.replicates.T, sample.rscales, strict=True):
            variances += factor * (quotient(column) - quotients) ** 2
        return Estimates(quotients, sample.scale * variances, respondents)
    weighted = [sample.weights[inside] * values for inside, _, values in (top, bottom)]
    total = sums_by_cell(bottom[1], weighted[1], under.count)[base_cells]
    z = _by_cluster(sample, top[0], top[1], weighted[0])
    x = _by_cluster(sample, bottom[0], bottom[1], weighted[1])
    spread = _spread(sample, z, z, np.arange(over.count), over.count)
    cross = _spread(sample, z, x, base_cells, over.count)
    below = _spread(sample, x, x, np.arange(under.count), under.count)[base_cells]
    rate = np.nan_to_num(quotients)
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = np.maximum(spread - 2 * rate * cross + rate**2 * below, 0.0) / total**2
    return Estimates(quotients, np.where(total == 0, np.nan, variances), respondents)


@dataclass(frozen=True, eq=False)
class _ClusterSums:
    """Sums over the clusters that have a record in a cell, in ascending order of cell and cluster."""

    key: Ints
    value: Floats


def _by_cluster(design: Design, inside: Ints, where: Ints, weighted: Floats) -> _ClusterSums:
    clusters = len(design.stratum_of_cluster)
    met, slot = np.unique(where * clusters + design.cluster[inside], return_inverse=True)
    return _ClusterSums(met, sums_by_cell(slot.ravel(), weighted, len(met)))


_BLOCK = 1 << 22
"""Cells times strata that are worked on at a time."""


def _spread(
    design: Design, one: _ClusterSums, other: _ClusterSums, base: Ints, count: int
) -> Floats:
    """The covariance of every cell's sum with that of its base; clusters without a record count with 0."""
    clusters = len(design.stratum_of_cluster)
    step = max(_BLOCK // max(len(design.clusters_in_stratum), 1), 1)
    covariances = []
    for start in range(0, count, step):
        stop = min(start + step, count)
        first, last = np.searchsorted(one.key, [start * clusters, stop * clusters])
        part = _ClusterSums(one.key[first:last] - start * clusters, one.value[first:last])
        covariances.append(_block(design, part, other, base[start:stop]))
    return np.concatenate([*covariances, np.zeros(0)])


def _block(design: Design, one: _ClusterSums, other: _ClusterSums, base: Ints) -> Floats:
    clusters, strata = len(design.stratum_of_cluster), len(design.clusters_in_stratum)
    count = base.size
    cell, cluster = one.key // clusters, one.key % clusters
    product = one.value * _looked_up(other, base[cell] * clusters + cluster)
    product = product / design.joined_in_cluster[cluster]
    stratum = design.stratum_of_cluster[cluster]
    products = sums_by_cell(cell * strata + stratum, product, count * strata)
    stratum_sums = sums_by_cell(cell * strata + stratum, one.value, count * strata)
    wanted, base_index = np.unique(base, return_inverse=True)
    at = np.searchsorted(wanted, other.key // clusters)
    held = wanted[np.minimum(at, wanted.size - 1)] == other.key // clusters
    theirs = sums_by_cell(
        at[held] * strata + design.stratum_of_cluster[other.key[held] % clusters],
        other.value[held],
        wanted.size * strata,
    )
    beside = theirs.reshape(wanted.size, strata)[base_index.ravel()].ravel()
    n = np.tile(design.drawn_in_stratum, count)
    units = np.tile(design.clusters_in_stratum.astype(np.float64), count)
    with np.errstate(divide="ignore", invalid="ignore"):
        covariances = (products - stratum_sums * beside / n) * n / (units - 1.0)
    alone = units == 1
    covariances = np.where(alone, 0.0, covariances)
    if design.lonely == "centre" and alone.any():
        # A stratum of one cluster counts with its distance from the mean of all clusters.
        mean = stratum_sums.reshape(count, strata).sum(axis=1) / clusters
        mean_beside = beside.reshape(count, strata).sum(axis=1) / clusters
        apart = (stratum_sums - np.repeat(mean, strata)) * (beside - np.repeat(mean_beside, strata))
        covariances = np.where(alone, apart, covariances)
    corrected = covariances * np.tile(design.correction, count)
    return np.asarray(corrected.reshape(count, strata).sum(axis=1))


def _looked_up(sums: _ClusterSums, keys: Ints) -> Floats:
    """The sums under these keys, 0 where there is none."""
    if not sums.key.size:
        return np.zeros(keys.size)
    at = np.minimum(np.searchsorted(sums.key, keys), sums.key.size - 1)
    return np.where(sums.key[at] == keys, sums.value[at], 0.0)
