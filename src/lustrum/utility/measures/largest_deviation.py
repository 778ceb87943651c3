"""The largest deviation of a published cell from the true one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import Release, Table
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class LargestDeviation(UtilitySpec):
    """``max |F - G|`` over the inner cells, in the table's unit; from 0 up, lower is better."""

    name: ClassVar[str] = "largest-deviation"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The largest deviation of a release from its table."""
        return largest_deviation(*compare(table, release, self.impute).cells)


def largest_deviation(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``max |F - G|``.

    >>> largest_deviation([1, 2, 3], [3, 2, 2])
    2.0
    """
    F, G = as_pair(original, published)
    return float(np.abs(F - G).max())
