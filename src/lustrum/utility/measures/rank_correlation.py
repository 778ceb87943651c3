"""Whether large cells stay large: Spearman's rank correlation between true and published cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class RankCorrelation(UtilitySpec):
    """Spearman's correlation over the inner cells; from -1 to 1, higher is better."""

    name: ClassVar[str] = "rank-correlation"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    better: ClassVar[Better] = "higher"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The rank correlation between a table and its release."""
        return rank_correlation(*compare(table, release, self.impute).cells)


def rank_correlation(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """The product-moment correlation of average ranks, which is right with ties too.

    >>> rank_correlation([1, 2, 3], [10, 20, 30]), rank_correlation([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    F, G = as_pair(original, published)
    ranks = [average_ranks(x.ravel()) for x in (F, G)]
    first, second = (r - r.mean() for r in ranks)
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    if scale == 0:
        raise InputError("Cells that are all equal have no ranks to correlate.")
    return min(1.0, max(-1.0, float((first * second).sum()) / scale))


def average_ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values sharing the mean of the ranks that they take up.

    >>> average_ranks(np.array([5.0, 1.0, 5.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, number = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(number)
    return np.asarray((last - (number - 1) / 2)[inverse.ravel()], dtype=np.float64)
