"""Totals and ratios of all cells of a table at once, with variances by Taylor linearisation or replication.

A total is ``T = sum w y``; a ratio ``R = T_y / T_x`` has the linearised variable ``(y - R x) / T_x``. With
``z`` the weighted sum of a linearised variable over one cluster, the variance is, summed over strata ``h`` of
``n`` clusters::

    (1 - f) n / (n - 1)  sum (z - mean z)**2        (Wolter 2007, sections 1.4 and 6.3; Lumley 2010, appendix)

A cluster of ``k`` that were drawn, joined at random, is compared with ``k`` times the mean: with ``u`` such
clusters in the stratum, the sum is that of ``(z - k mean z)**2 / k``, times ``n / (u - 1)``.

Clusters without a record in a cell count with ``z = 0``: a cell is a domain, not a sample of its own. Every
cell needs only its sums of ``z`` and ``z**2`` in each stratum, so the work grows with the records and not with
the number of cells.

Where numerator and denominator of a ratio are sums over different records, such as a cell and its row, its
variance is, with variances and covariances of sums over clusters within strata::

    (V(T_y) - 2 R C(T_y, T_x) + R**2 V(T_x)) / T_x**2                     (Woodruff 1971)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints
from lustrum.numeric.compiled import compiled_if_large
from lustrum.survey.design import Design, Estimates, ReplicateWeights

Sample = Design | ReplicateWeights


def estimate_totals(
    sample: Sample, cells: Ints, count: int, values: npt.ArrayLike | None = None
) -> Estimates:
    """The weighted sum of values in every cell; without values the weighted count.

    ``cells`` gives the cell of each record, from 0 to ``count - 1``; -1 is none.

    >>> design = Design(np.array([10.0, 10.0, 10.0, 10.0]))
    >>> found = estimate_totals(design, np.array([0, 0, 0, 1]), 2)
    >>> found.values.tolist(), found.standard_errors.round(6).tolist()
    ([30.0, 10.0], [10.0, 10.0])
    """
    inside, where, y = checked(sample, cells, count, values)
    if isinstance(sample, ReplicateWeights):
        return _replicated(
            sample, where, count, lambda w: _weighted_sums(where, inside, w, y, count)
        )
    weighted = sample.weights[inside] * y
    total = sums_by_cell(where, weighted, count)
    return Estimates(
        total, _variances(sample, inside, where, weighted, count), _respondents(where, count)
    )


def estimate_ratios(
    sample: Sample,
    cells: Ints,
    count: int,
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike | None = None,
) -> Estimates:
    """The ratio of two weighted sums in every cell; without a denominator the weighted mean.

    A share is the mean of a column of zeros and ones.

    >>> design = Design(np.array([1.0, 1.0, 1.0, 1.0]))
    >>> found = estimate_ratios(design, np.zeros(4, dtype=int), 1, [1.0, 2.0, 3.0, 6.0])
    >>> found.values.tolist(), found.standard_errors.round(6).tolist()
    ([3.0], [1.080123])
    """
    inside, where, y = checked(sample, cells, count, numerator)
    x = checked(sample, cells, count, denominator)[2]

    def ratio(weights: Floats) -> Floats:
        over = _weighted_sums(where, inside, weights, y, count)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(over / _weighted_sums(where, inside, weights, x, count))

    if isinstance(sample, ReplicateWeights):
        return _replicated(sample, where, count, ratio)
    weights = sample.weights[inside]
    below = sums_by_cell(where, weights * x, count)
    ratios = np.where(below == 0, np.nan, ratio(sample.weights[:, None])[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        residual = weights * (y - ratios[where] * x) / below[where]
    variances = _variances(sample, inside, where, np.nan_to_num(residual), count)
    return Estimates(ratios, np.where(below == 0, np.nan, variances), _respondents(where, count))


def checked(
    sample: Sample, cells: Ints, count: int, values: npt.ArrayLike | None
) -> tuple[Ints, Ints, Floats]:
    """Which records are in a cell, in which, and their values."""
    cell_of_record = np.asarray(cells)
    if cell_of_record.shape != (sample.records,):
        raise InputError(f"The sample has {sample.records} records; 'cells' needs a cell for each.")
    if cell_of_record.size and not (cell_of_record.min() >= -1 and cell_of_record.max() < count):
        raise InputError(f"'cells' runs from 0 to {count - 1}, with -1 for none.")
    given = np.ones(sample.records) if values is None else np.asarray(values, dtype=np.float64)
    if given.shape != (sample.records,):
        raise InputError(f"The sample has {sample.records} records; it needs a value for each.")
    inside = np.flatnonzero(cell_of_record >= 0)
    if not np.isfinite(given[inside]).all():
        raise InputError("A value is missing or not a number; leave its record out with cell -1.")
    return inside, cell_of_record[inside].astype(np.int64), given[inside]


def sums_by_cell(where: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(where, weights=values, minlength=count).astype(np.float64)


def _respondents(where: Ints, count: int) -> Ints:
    return np.bincount(where, minlength=count).astype(np.int64)


def _variances(design: Design, inside: Ints, where: Ints, weighted: Floats, count: int) -> Floats:
    """The variance of every cell's sum of weighted linearised values."""
    clusters = len(design.stratum_of_cluster)
    pair = where * clusters + design.cluster[inside]
    met, slot = np.unique(pair, return_inverse=True)
    z = sums_by_cell(slot, weighted, len(met))
    cell, stratum = met // clusters, design.stratum_of_cluster[met % clusters]
    joined = design.joined_in_cluster[met % clusters]
    strata = len(design.clusters_in_stratum)
    key = cell * strata + stratum
    parts, slot = np.unique(key, return_inverse=True)
    sums = sums_by_cell(slot, z, len(parts))
    squares = sums_by_cell(slot, z * z / joined, len(parts))
    n = design.drawn_in_stratum[parts % strata]
    units = design.clusters_in_stratum[parts % strata].astype(np.float64)
    correction = design.correction[parts % strata]
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.maximum(squares - sums * sums / n, 0.0) * n / (units - 1.0)
    spread = np.where(units == 1, 0.0, spread)
    variances = sums_by_cell(parts // strata, correction * spread, count)
    if design.lonely == "centre":
        variances += _centred(design, parts, sums, count)
    return variances


def _centred(design: Design, parts: Ints, sums: Floats, count: int) -> Floats:
    """What strata of a single cluster add: their squared distance from the mean of all clusters."""
    strata = len(design.clusters_in_stratum)
    alone = np.flatnonzero(design.clusters_in_stratum == 1)
    mean = sums_by_cell(parts // strata, sums, count) / len(design.stratum_of_cluster)
    variances = np.zeros(count)
    for stratum in alone:
        stratum_sums = np.zeros(count)
        here = parts % strata == stratum
        stratum_sums[parts[here] // strata] = sums[here]
        variances += design.correction[stratum] * (stratum_sums - mean) ** 2
    return variances


def _replicated(
    sample: ReplicateWeights, where: Ints, count: int, estimate: Callable[[Floats], Floats]
) -> Estimates:
    """The full estimate, and the spread of the replicates around it; ``estimate`` takes weights in columns."""
    full_estimate = estimate(sample.weights[:, None])[:, 0]
    assert sample.rscales is not None
    variances = spread_around(full_estimate, estimate(sample.replicates), sample.rscales)
    return Estimates(full_estimate, sample.scale * variances, _respondents(where, count))


def _weighted_sums(
    where: Ints, inside: Ints, weights: Floats, values: Floats, count: int
) -> Floats:
    """Of every cell the sums of values by each column of weights: one row a cell."""
    sums = np.zeros((count, weights.shape[1]))
    add_weighted(where, inside, weights, values, sums)
    return sums


@compiled_if_large
def add_weighted(
    where: Array, inside: Array, weights: Array, values: Array, sums: Array
) -> None:  # pragma: no cover
    """Add to row ``where[i]`` of the sums row ``inside[i]`` of the weights, times ``values[i]``."""
    for i in range(inside.size):
        own, cell, value = weights[inside[i]], sums[where[i]], values[i]
        for column in range(own.size):
            cell[column] += own[column] * value


@compiled_if_large
def spread_around(full: Array, replicates: Array, factors: Array) -> Any:  # pragma: no cover
    """Of every cell the squared distances of its replicates from the full estimate, each times its factor."""
    out = np.zeros(full.size)
    for cell in range(full.size):
        for column in range(factors.size):
            out[cell] += factors[column] * (replicates[cell, column] - full[cell]) ** 2
    return out


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

    def quotient(weights: Floats) -> Floats:
        y = _weighted_sums(top[1], top[0], weights, top[2], over.count)
        x = _weighted_sums(bottom[1], bottom[0], weights, bottom[2], under.count)[base_cells]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(x == 0, np.nan, y / x)

    if isinstance(sample, ReplicateWeights):
        return _replicated(sample, top[1], over.count, quotient)
    quotients = quotient(sample.weights[:, None])[:, 0]
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
    variances = np.where(total == 0, np.nan, variances)
    return Estimates(quotients, variances, _respondents(top[1], over.count))


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
