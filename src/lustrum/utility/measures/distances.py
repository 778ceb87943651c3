"""Distances of published from true cells, and what they lose of information.

Mean and largest distances, exact cells, Hellinger's distance (Shlomo, Antal, Elliot 2015, section 4.3),
divergence from the true distribution and the change of entropy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.parameters import parameter
from lustrum.numeric.arithmetic import log
from lustrum.utility.compare import Better, CellsSpec
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class AverageDistance(CellsSpec):
    """``mean |F - G|`` over the inner cells, in the table's unit; from 0 up, lower is better.

    >>> AverageDistance().of_cells([1, 2, 3], [3, 2, 2])
    1.0
    """

    name: ClassVar[str] = "average-distance"
    signed: ClassVar[bool] = True
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        return float(np.abs(F - G).mean())


@dataclass(frozen=True)
class AverageRelativeDistance(CellsSpec):
    """``mean |F - G| / max(|F|, floor)`` over the inner cells; from 0 up, lower is better.

    The floor, in the table's unit, keeps empty cells in: what is published in place of nothing is
    measured against the floor.

    >>> AverageRelativeDistance().of_cells([0, 4], [1, 2])
    0.75
    """

    name: ClassVar[str] = "average-relative-distance"
    signed: ClassVar[bool] = True
    floor: float = parameter(1.0, "Smaller true values count as this one.", above=0)
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        return float((np.abs(F - G) / np.maximum(np.abs(F), self.floor)).mean())


@dataclass(frozen=True)
class LargestDeviation(CellsSpec):
    """``max |F - G|`` over the inner cells, in the table's unit; from 0 up, lower is better.

    >>> LargestDeviation().of_cells([1, 2, 3], [3, 2, 2])
    2.0
    """

    name: ClassVar[str] = "largest-deviation"
    signed: ClassVar[bool] = True
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        return float(np.abs(F - G).max())


@dataclass(frozen=True)
class MeanSquaredPrecision(CellsSpec):
    """``1 / mean (F - G)**2`` over the inner cells; from 0 to infinity, which is exact; higher is better.

    Duncan, Fienberg, Krishnan, Padman and Roehrig (2001) take the error of one cell over a user's belief;
    this is the same over the cells of a table.

    >>> MeanSquaredPrecision().of_cells([1, 2], [3, 2]), MeanSquaredPrecision().of_cells([1, 2], [1, 2])
    (0.5, inf)
    """

    name: ClassVar[str] = "mean-squared-precision"
    better: ClassVar[Better] = "higher"
    signed: ClassVar[bool] = True
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        error = float(((F - G) ** 2).mean())
        # A difference may be so small that its square, or one over it, leaves the range of floats.
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.float64(1.0) / np.float64(error))


@dataclass(frozen=True)
class ExactCells(CellsSpec):
    """The share of inner cells with ``F = G``; from 0 to 1, higher is better.

    Structural zeros, which are always exact, are left out.

    >>> ExactCells().of_cells([1, 2, 3, 4], [3, 2, 3, 4])
    0.75
    """

    name: ClassVar[str] = "exact-cells"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "higher"
    signed: ClassVar[bool] = True
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        return float((F == G).mean())


@dataclass(frozen=True)
class HellingerUtility(CellsSpec):
    """``1 - HD(F, G) / sqrt N`` over the inner cells; from 0 to 1, higher is better.

    It is cut at 0, which it passes when far more is published than there is.

    >>> HellingerUtility().of_cells([3, 6, 9], [3, 6, 9]), HellingerUtility().of_cells([4, 0], [0, 4])
    (1.0, 0.0)
    """

    name: ClassVar[str] = "hellinger"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "higher"
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        if not F.any():
            raise InputError("A table without anybody in it has no Hellinger scale.")
        return max(0.0, 1.0 - _hellinger(F, G) / float(np.sqrt(F.sum())))

    def of_many(self, tables: Ints, published: Ints) -> Floats:
        """The utility of the same published counts in place of each table, one a row, with somebody in it.

        >>> HellingerUtility().of_many(np.array([[4, 0], [1, 3]]), np.array([4, 0])).round(3).tolist()
        [1.0, 0.293]
        """
        apart = ((np.sqrt(tables) - np.sqrt(published)) ** 2).sum(axis=-1)
        distance = np.sqrt(apart / 2)
        return np.asarray(np.maximum(0.0, 1.0 - distance / np.sqrt(tables.sum(axis=-1))))


@dataclass(frozen=True)
class HellingerDistance(CellsSpec):
    """``HD(F, G)`` of counts (equation 4); from 0 to ``sqrt((N + M) / 2)``, lower is better.

    >>> HellingerDistance().of_cells([4, 0], [0, 4])
    2.0
    """

    name: ClassVar[str] = "hellinger-distance"
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        return _hellinger(F, G)


@dataclass(frozen=True)
class HellingerShares(CellsSpec):
    """``HD(P, Q)`` of the cells' shares in their totals; from 0 to 1, lower is better.

    >>> HellingerShares().of_cells([1, 1], [5, 5]), HellingerShares().of_cells([1, 0], [0, 1])
    (0.0, 1.0)
    """

    name: ClassVar[str] = "hellinger-shares"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        _check_somebody(F, G)
        return min(1.0, _hellinger(F / F.sum(), G / G.sum()))


def _hellinger(F: Floats, G: Floats) -> float:
    """``sqrt(sum (sqrt F - sqrt G)**2 / 2)`` (equation 4); 0 when equal, at most ``sqrt((N + M) / 2)``."""
    return float(np.sqrt(((np.sqrt(F) - np.sqrt(G)) ** 2).sum() / 2))


def _check_somebody(F: Floats, G: Floats) -> None:
    if not F.any() or not G.any():
        raise InputError("A table without anybody in it has no shares.")


@dataclass(frozen=True)
class Divergence(CellsSpec):
    """``sum p log(p / q)`` in nats over the cells with ``p > 0``: ``p`` true, ``q`` published shares.

    From 0 up, lower is better. It exists only where no populated cell is published as 0; a
    ``smoothing`` above 0 is added to every cell of both tables first and makes it exist always.

    >>> Divergence().of_cells([1, 1], [2, 2]), round(Divergence(1.0).of_cells([1, 1], [2, 0]), 4)
    (0.0, 0.1438)
    """

    name: ClassVar[str] = "divergence"
    smoothing: float = parameter(0.0, "What is added to every cell, so that none is 0.", least=0)
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        F, G = F + self.smoothing, G + self.smoothing
        _check_somebody(F, G)
        populated = F > 0
        if (G[populated] == 0).any():
            raise InputError(
                "A populated cell is published as 0, where the divergence does not exist; "
                "give a smoothing above 0."
            )
        p, q = F[populated] / F.sum(), G[populated] / G.sum()
        return max(0.0, float((p * log(p / q)).sum()))


@dataclass(frozen=True)
class EntropyChange(CellsSpec):
    """``|H(G / M) - H(F / N)|`` in nats; from 0 to ``log K``, lower is better.

    >>> round(EntropyChange().of_cells([2, 0], [1, 1]), 4)
    0.6931
    """

    name: ClassVar[str] = "entropy-change"
    impute: Impute = suppressed_cells()

    def _measured(self, F: Floats, G: Floats) -> float:
        return abs(cell_entropy(G) - cell_entropy(F))


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
