"""Distances of published from true cells: mean and largest ones, exact cells, and Hellinger's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.parameters import parameter
from lustrum.numeric.arithmetic import log
from lustrum.utility.impute import Impute, suppressed_cells
from lustrum.utility.measure import Better, CellMeasure, UtilitySpec, as_pair, compare


def average_distance(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``mean |F - G|``.

    >>> average_distance([1, 2, 3], [3, 2, 2])
    1.0
    """
    F, G = as_pair(original, published)
    return float(np.abs(F - G).mean())


@dataclass(frozen=True)
class AverageDistance(CellMeasure):
    """``mean |F - G|`` over the inner cells, in the table's unit; from 0 up, lower is better."""

    name: ClassVar[str] = "average-distance"
    figure = staticmethod(average_distance)


@dataclass(frozen=True)
class AverageRelativeDistance(UtilitySpec):
    """``mean |F - G| / max(|F|, floor)`` over the inner cells; from 0 up, lower is better.

    The floor, in the table's unit, keeps empty cells in: what is published in place of nothing is
    measured against the floor.
    """

    name: ClassVar[str] = "average-relative-distance"
    floor: float = parameter(1.0, "Smaller true values count as this one.", above=0)
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        return average_relative_distance(*compare(table, release, self.impute).cells, self.floor)


def average_relative_distance(
    original: npt.ArrayLike, published: npt.ArrayLike, floor: float = 1.0
) -> float:
    """``mean |F - G| / max(|F|, floor)``.

    >>> average_relative_distance([0, 4], [1, 2])
    0.75
    """
    _check_floor(floor)
    F, G = as_pair(original, published)
    return float((np.abs(F - G) / np.maximum(np.abs(F), floor)).mean())


def _check_floor(floor: float) -> None:
    if not (np.isfinite(floor) and floor > 0):
        raise InputError(f"The floor of a relative distance must be above 0, not {floor!r}.")


# The largest deviation of a published cell from the true one.


def largest_deviation(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``max |F - G|``.

    >>> largest_deviation([1, 2, 3], [3, 2, 2])
    2.0
    """
    F, G = as_pair(original, published)
    return float(np.abs(F - G).max())


@dataclass(frozen=True)
class LargestDeviation(CellMeasure):
    """``max |F - G|`` over the inner cells, in the table's unit; from 0 up, lower is better."""

    name: ClassVar[str] = "largest-deviation"
    figure = staticmethod(largest_deviation)


# Mean squared precision: the reciprocal of the mean squared error (Duncan et al. 2001).


def mean_squared_precision(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """One over the mean squared error; infinite when nothing differs.

    >>> mean_squared_precision([1, 2], [3, 2]), mean_squared_precision([1, 2], [1, 2])
    (0.5, inf)
    """
    F, G = as_pair(original, published)
    error = float(((F - G) ** 2).mean())
    # A difference may be so small that its square, or one over it, leaves the range of floats.
    with np.errstate(divide="ignore", over="ignore"):
        return float(np.float64(1.0) / np.float64(error))


@dataclass(frozen=True)
class MeanSquaredPrecision(CellMeasure):
    """``1 / mean (F - G)**2`` over the inner cells; from 0 to infinity, which is exact; higher is better.

    Duncan, Fienberg, Krishnan, Padman and Roehrig (2001) take the error of one cell over a user's belief;
    this is the same over the cells of a table.

    >>> MeanSquaredPrecision.range
    (0.0, inf)
    """

    name: ClassVar[str] = "mean-squared-precision"
    better: ClassVar[Better] = "higher"
    figure = staticmethod(mean_squared_precision)


# The share of cells that are published as they are.


def share_of_exact_cells(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``mean [F = G]``.

    >>> share_of_exact_cells([1, 2, 3, 4], [3, 2, 3, 4])
    0.75
    """
    F, G = as_pair(original, published)
    return float((F == G).mean())


@dataclass(frozen=True)
class ExactCells(CellMeasure):
    """The share of inner cells with ``F = G``; from 0 to 1, higher is better.

    Structural zeros, which are always exact, are left out.
    """

    name: ClassVar[str] = "exact-cells"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "higher"
    figure = staticmethod(share_of_exact_cells)


# Hellinger distance (Shlomo, Antal, Elliot 2015, section 4.3): of counts, of shares, and as a utility.


@dataclass(frozen=True)
class HellingerUtility(UtilitySpec):
    """``1 - HD(F, G) / sqrt N`` over the inner cells; from 0 to 1, higher is better.

    >>> from lustrum.protect import RandomRounding
    >>> table = Table.from_counts([[3, 6], [9, 12]])
    >>> HellingerUtility().of(table, RandomRounding().apply(table, np.random.default_rng(0)))
    1.0
    """

    name: ClassVar[str] = "hellinger"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "higher"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        return hellinger_utility(*compare(table, release, self.impute).cells)

    def of_many(self, tables: Ints, published: Ints) -> Floats:
        """The utility of the same published counts in place of each table, one a row, with somebody in it.

        >>> HellingerUtility().of_many(np.array([[4, 0], [1, 3]]), np.array([4, 0])).round(3).tolist()
        [1.0, 0.293]
        """
        apart = ((np.sqrt(tables) - np.sqrt(published)) ** 2).sum(axis=-1)
        distance = np.sqrt(apart / 2)
        return np.asarray(np.maximum(0.0, 1.0 - distance / np.sqrt(tables.sum(axis=-1))))


def hellinger_counts(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``sqrt(sum (sqrt F - sqrt G)**2 / 2)`` (equation 4); 0 when equal, at most ``sqrt((N + M) / 2)``.

    >>> hellinger_counts([4, 0], [0, 4])
    2.0
    """
    F, G = as_pair(original, published, signed=False)
    return float(np.sqrt(((np.sqrt(F) - np.sqrt(G)) ** 2).sum() / 2))


@dataclass(frozen=True)
class HellingerDistance(CellMeasure):
    """``HD(F, G)`` of counts (equation 4); from 0 to ``sqrt((N + M) / 2)``, lower is better."""

    name: ClassVar[str] = "hellinger-distance"
    figure = staticmethod(hellinger_counts)


def hellinger_shares(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``||sqrt P - sqrt Q|| / sqrt 2`` with ``P = F / N`` and ``Q = G / M``; from 0 to 1.

    >>> hellinger_shares([1, 1], [5, 5]), hellinger_shares([1, 0], [0, 1])
    (0.0, 1.0)
    """
    F, G = as_pair(original, published, signed=False)
    if not F.any() or not G.any():
        raise InputError("A table without anybody in it has no shares.")
    return min(1.0, hellinger_counts(F / F.sum(), G / G.sum()))


@dataclass(frozen=True)
class HellingerShares(CellMeasure):
    """``HD(P, Q)`` of the cells' shares in their totals; from 0 to 1, lower is better."""

    name: ClassVar[str] = "hellinger-shares"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    figure = staticmethod(hellinger_shares)


def hellinger_utility(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``1 - HD(F, G) / sqrt N``, cut at 0, which it passes when far more is published than there is.

    >>> hellinger_utility([4, 0], [0, 4])
    0.0
    """
    F, G = as_pair(original, published, signed=False)
    if not F.any():
        raise InputError("A table without anybody in it has no Hellinger scale.")
    return max(0.0, 1.0 - hellinger_counts(F, G) / float(np.sqrt(F.sum())))


# Measures of information: divergence from the true distribution, and the change of entropy.


@dataclass(frozen=True)
class Divergence(UtilitySpec):
    """``sum p log(p / q)`` in nats, with ``p`` the true and ``q`` the published shares.

    From 0 up, lower is better. It exists only where no populated cell is published as 0; a
    ``smoothing`` above 0 is added to every cell of both tables first and makes it exist always.
    """

    name: ClassVar[str] = "divergence"
    smoothing: float = parameter(0.0, "What is added to every cell, so that none is 0.", least=0)
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        return divergence(*compare(table, release, self.impute).cells, self.smoothing)


def divergence(original: npt.ArrayLike, published: npt.ArrayLike, smoothing: float = 0.0) -> float:
    """``sum p log(p / q)`` over the cells with ``p > 0``.

    >>> divergence([1, 1], [2, 2]), round(divergence([1, 1], [2, 0], smoothing=1.0), 4)
    (0.0, 0.1438)
    """
    _check(smoothing)
    F, G = as_pair(original, published, signed=False)
    F, G = F + smoothing, G + smoothing
    if not F.any() or not G.any():
        raise InputError("A table without anybody in it has no shares.")
    populated = F > 0
    if (G[populated] == 0).any():
        raise InputError(
            "A populated cell is published as 0, where the divergence does not exist; "
            "give a smoothing above 0."
        )
    p, q = F[populated] / F.sum(), G[populated] / G.sum()
    return max(0.0, float((p * log(p / q)).sum()))


def _check(smoothing: float) -> None:
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"The smoothing of a divergence is 0 or more, not {smoothing!r}.")


# How much the entropy of the cells changes.


@dataclass(frozen=True)
class EntropyChange(UtilitySpec):
    """``|H(G / M) - H(F / N)|`` in nats; from 0 to ``log K``, lower is better."""

    name: ClassVar[str] = "entropy-change"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        return abs(entropy_change(*compare(table, release, self.impute).cells))


def entropy_change(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``H(G / M) - H(F / N)``: above 0 the release looks more even than the table is.

    >>> round(entropy_change([2, 0], [1, 1]), 4)
    0.6931
    """
    F, G = as_pair(original, published, signed=False)
    return cell_entropy(G) - cell_entropy(F)


def cell_entropy(counts: npt.ArrayLike) -> float:
    """``-sum p log p`` of the cells' shares (Shlomo, Antal, Elliot 2015, equation 1).

    >>> cell_entropy([3, 0])
    0.0
    """
    array = np.asarray(counts, dtype=np.float64)
    if not array.size or not array.sum() > 0:
        raise InputError("A table without anybody in it has no entropy.")
    share = array[array > 0] / array.sum()
    return abs(float((share * log(share)).sum()))
