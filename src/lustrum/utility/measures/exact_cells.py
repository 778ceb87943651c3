"""The share of cells that are published as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy.typing as npt

from lustrum.model import Release, Table
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class ExactCells(UtilitySpec):
    """The share of inner cells with ``F = G``; from 0 to 1, higher is better.

    Structural zeros, which are always exact, are left out.
    """

    name: ClassVar[str] = "exact-cells"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "higher"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The share of a release that is exact."""
        return share_of_exact_cells(*compare(table, release, self.impute).cells)


def share_of_exact_cells(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``mean [F = G]``.

    >>> share_of_exact_cells([1, 2, 3, 4], [3, 2, 3, 4])
    0.75
    """
    F, G = as_pair(original, published)
    return float((F == G).mean())
