"""Average distance between true and published cells, absolute and relative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.parameters import parameter
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class AverageDistance(UtilitySpec):
    """``mean |F - G|`` over the inner cells, in the table's unit; from 0 up, lower is better."""

    name: ClassVar[str] = "average-distance"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The average distance of a release from its table."""
        return average_distance(*compare(table, release, self.impute).cells)


@dataclass(frozen=True)
class AverageRelativeDistance(UtilitySpec):
    """``mean |F - G| / max(|F|, floor)`` over the inner cells; from 0 up, lower is better.

    The floor, in the table's unit, keeps empty cells in: what is published in place of nothing is
    measured against the floor.
    """

    name: ClassVar[str] = "average-relative-distance"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"
    floor: float = parameter(1.0, "Smaller true values count as this one.", above=0)
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The average relative distance of a release from its table."""
        return average_relative_distance(*compare(table, release, self.impute).cells, self.floor)


def average_distance(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``mean |F - G|``.

    >>> average_distance([1, 2, 3], [3, 2, 2])
    1.0
    """
    F, G = as_pair(original, published)
    return float(np.abs(F - G).mean())


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
