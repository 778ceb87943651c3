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
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.survey.design import Design, ReplicateWeights
from lustrum.survey.estimates import Estimates

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
            sample, inside, where, count, lambda w: sums_by_cell(where, w * y, count)
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
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(
                sums_by_cell(where, weights * y, count) / sums_by_cell(where, weights * x, count)
            )

    if isinstance(sample, ReplicateWeights):
        return _replicated(sample, inside, where, count, ratio)
    weights = sample.weights[inside]
    ratios, below = ratio(weights), sums_by_cell(where, weights * x, count)
    ratios = np.where(below == 0, np.nan, ratios)
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
    """The sum of the values of every cell."""
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
    sample: ReplicateWeights,
    inside: Ints,
    where: Ints,
    count: int,
    estimate: Callable[[Floats], Floats],
) -> Estimates:
    """The full estimate, and the spread of the replicates around it."""
    full_estimate = estimate(sample.weights[inside])
    variances = np.zeros(count)
    assert sample.rscales is not None
    for column, factor in zip(sample.replicates[inside].T, sample.rscales, strict=True):
        variances += factor * (estimate(column) - full_estimate) ** 2
    return Estimates(full_estimate, sample.scale * variances, _respondents(where, count))
