"""Mean squared precision: the reciprocal of the mean squared error (Duncan et al. 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import Release, Table
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class MeanSquaredPrecision(UtilitySpec):
    """``1 / mean (F - G)**2`` over the inner cells; from 0 to infinity, which is exact; higher is better.

    Duncan, Fienberg, Krishnan, Padman and Roehrig (2001) take the error of one cell over a user's belief;
    this is the same over the cells of a table.

    >>> MeanSquaredPrecision.range
    (0.0, inf)
    """

    name: ClassVar[str] = "mean-squared-precision"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "higher"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The precision of a release in place of its table."""
        return mean_squared_precision(*compare(table, release, self.impute).cells)


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
