"""Association: how much the chi-square statistic and Cramér's V change.

Both need two variables. In a table of more, two axes can be chosen, and the others are summed over; without a
choice the first axis stands against all others together, each combination of these being one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats
from lustrum.model.parameters import parameter
from lustrum.utility.blocks import axis_position
from lustrum.utility.compare import Better, UtilitySpec, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class ChiSquareChange(UtilitySpec):
    """``|X2(G) - X2(F)|``; from 0 up, lower is better.

    >>> ChiSquareChange(axes=("sex", "age")).better
    'lower'
    """

    name: ClassVar[str] = "chi-square-change"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"
    axes: tuple[str, str] | None = parameter(
        None, "The two variables; a table of two needs no names."
    )
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The change that a release makes to the statistic."""
        original, published = _two_way(table, release, self.axes, self.impute)
        return abs(chi_square(published) - chi_square(original))


@dataclass(frozen=True)
class CramersVChange(UtilitySpec):
    """``|V(G) - V(F)|``; from 0 to 1, lower is better."""

    name: ClassVar[str] = "cramers-v-change"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "lower"
    axes: tuple[str, str] | None = parameter(
        None, "The two variables; a table of two needs no names."
    )
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The change that a release makes to Cramér's V."""
        original, published = _two_way(table, release, self.axes, self.impute)
        return abs(cramers_v(published) - cramers_v(original))


def chi_square(counts: npt.ArrayLike) -> float:
    """``sum (F - E)**2 / E`` with ``E`` the counts under independence; empty rows and columns are dropped.

    >>> chi_square([[10, 0], [0, 10]]), chi_square([[1, 2], [2, 4]])
    (20.0, 0.0)
    """
    array = _filled(counts)
    total = array.sum()
    expected = array.sum(axis=1, keepdims=True) * array.sum(axis=0, keepdims=True) / total
    return float(((array - expected) ** 2 / expected).sum())


def cramers_v(counts: npt.ArrayLike) -> float:
    """``sqrt(X2 / (N (min(rows, columns) - 1)))`` over rows and columns with anybody in them.

    From 0, independent, to 1, one variable tells the other.

    >>> cramers_v([[10, 0], [0, 10]])
    1.0
    """
    array = _filled(counts)
    smaller = min(array.shape)
    if smaller < 2:
        raise InputError("Cramér's V needs two populated rows and two populated columns.")
    return min(1.0, float(np.sqrt(chi_square(array) / (array.sum() * (smaller - 1)))))


def _filled(counts: npt.ArrayLike) -> Floats:
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim != 2:
        raise InputError("A chi-square statistic is of a two-way table.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise InputError("A chi-square statistic is of counts of 0 or more.")
    array = array[array.sum(axis=1) > 0][:, array.sum(axis=0) > 0]
    if not array.size:
        raise InputError("A table without anybody in it has no chi-square statistic.")
    return np.asarray(array)


def _two_way(
    table: Table, release: Release, axes: tuple[str, str] | None, impute: Impute
) -> tuple[Floats, Floats]:
    pair = compare(table, release, impute)
    if len(table.axes) < 2:
        raise InputError("Association needs a table of two variables or more.")
    if axes is None:
        rows = pair.original.shape[0]
        return pair.original.reshape(rows, -1), pair.published.reshape(rows, -1)
    if axes[0] == axes[1]:
        raise InputError("Association is between two different axes.")
    row, column = (axis_position(table.axes, name) for name in axes)
    others = tuple(a for a in range(len(table.axes)) if a not in (row, column))
    original, published = pair.original.sum(axis=others), pair.published.sum(axis=others)
    return (original, published) if row < column else (original.T, published.T)
