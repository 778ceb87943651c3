"""Hellinger distance (Shlomo, Antal, Elliot 2015, section 4.3): of counts, of shares, and as a utility."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


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
        """The utility of a release in place of its table, cut at 0."""
        return hellinger_utility(*compare(table, release, self.impute).cells)

    def of_many(self, tables: Ints, published: Ints) -> Floats:
        """The utility of the same published counts in place of each table, one a row, with somebody in it.

        >>> HellingerUtility().of_many(np.array([[4, 0], [1, 3]]), np.array([4, 0])).round(3).tolist()
        [1.0, 0.293]
        """
        apart = ((np.sqrt(tables) - np.sqrt(published)) ** 2).sum(axis=-1)
        distance = np.sqrt(apart / 2)
        return np.asarray(np.maximum(0.0, 1.0 - distance / np.sqrt(tables.sum(axis=-1))))


@dataclass(frozen=True)
class HellingerDistance(UtilitySpec):
    """``HD(F, G)`` of counts (equation 4); from 0 to ``sqrt((N + M) / 2)``, lower is better."""

    name: ClassVar[str] = "hellinger-distance"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    better: ClassVar[Better] = "lower"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The distance between a table and its release."""
        return hellinger_counts(*compare(table, release, self.impute).cells)


@dataclass(frozen=True)
class HellingerShares(UtilitySpec):
    """``HD(P, Q)`` of the cells' shares in their totals; from 0 to 1, lower is better."""

    name: ClassVar[str] = "hellinger-shares"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "lower"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The distance between the shares of a table and those of its release."""
        return hellinger_shares(*compare(table, release, self.impute).cells)


def hellinger_counts(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``sqrt(sum (sqrt F - sqrt G)**2 / 2)`` (equation 4); 0 when equal, at most ``sqrt((N + M) / 2)``.

    >>> hellinger_counts([4, 0], [0, 4])
    2.0
    """
    F, G = as_pair(original, published, signed=False)
    return float(np.sqrt(((np.sqrt(F) - np.sqrt(G)) ** 2).sum() / 2))


def hellinger_shares(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``||sqrt P - sqrt Q|| / sqrt 2`` with ``P = F / N`` and ``Q = G / M``; from 0 to 1.

    >>> hellinger_shares([1, 1], [5, 5]), hellinger_shares([1, 0], [0, 1])
    (0.0, 1.0)
    """
    F, G = as_pair(original, published, signed=False)
    if not F.any() or not G.any():
        raise InputError("A table without anybody in it has no shares.")
    return min(1.0, hellinger_counts(F / F.sum(), G / G.sum()))


def hellinger_utility(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``1 - HD(F, G) / sqrt N``, cut at 0, which it passes when far more is published than there is.

    >>> hellinger_utility([4, 0], [0, 4])
    0.0
    """
    F, G = as_pair(original, published, signed=False)
    if not F.any():
        raise InputError("A table without anybody in it has no Hellinger scale.")
    return max(0.0, 1.0 - hellinger_counts(F, G) / float(np.sqrt(F.sum())))
