"""Measures that agencies quote: shares of ones, of small cells, of zeros and of sparse lines.

All run from 0 to 1, higher being riskier, over the inner cells of a table of counts without its structural
zeros. Shlomo, Antal and Elliot (2015, section 4) recall that the proportions of small cells and of rows or
columns with one or two populated cells were used to judge tables of the 2011 census of the United Kingdom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import choices
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.risk.measure import RiskSpec


@dataclass(frozen=True)
class Uniques(RiskSpec):
    """The share of cells with a count of 1: somebody stands there alone.

    >>> Uniques().before(Table.from_counts([[1, 0], [5, 1]]))
    0.5
    """

    name: ClassVar[str] = "uniques"

    def before(self, table: Table) -> float:
        check_table(table, f"The risk measure {self.name!r}")
        return share_of_uniques(table.values[_cells(table)])


@dataclass(frozen=True)
class SmallCells(RiskSpec):
    """The share of cells with counts from 1 to ``most``.

    >>> SmallCells(most=2).before(Table.from_counts([[1, 0], [5, 2]]))
    0.5
    """

    name: ClassVar[str] = "small-cells"
    most: int = parameter(2, "Counts from 1 up to this are small.", least=1)

    def before(self, table: Table) -> float:
        check_table(table, f"The risk measure {self.name!r}")
        return share_of_small_cells(table.values[_cells(table)], self.most)


@dataclass(frozen=True)
class Zeros(RiskSpec):
    """The share of empty cells, ``|A| / K``: the first term of equation 3 of the paper.

    >>> Zeros().before(Table.from_counts([[1, 0], [5, 2]]))
    0.25
    """

    name: ClassVar[str] = "zeros"

    def before(self, table: Table) -> float:
        check_table(table, f"The risk measure {self.name!r}")
        return share_of_zeros(table.values[_cells(table)])


@dataclass(frozen=True)
class SparseLines(RiskSpec):
    """The share of lines of which only one or two cells are populated and the others empty.

    A line runs along one axis, with the categories of all other axes fixed.

    >>> table = Table.from_counts([[9, 0, 0], [1, 2, 3]], names=["area", "faith"])
    >>> SparseLines("faith").before(table)
    0.5
    """

    name: ClassVar[str] = "sparse-lines"
    axis: str | None = parameter(None, "The axis along which lines run; by default every axis.")
    populated: int = parameter(
        2, "A line with at most this many populated cells is sparse.", least=1
    )

    def before(self, table: Table) -> float:
        check_table(table, f"The risk measure {self.name!r}")
        names = [axis.name for axis in table.axes]
        if self.axis is not None and self.axis not in names:
            raise InputError(f"The table has no axis {self.axis!r}; {choices(self.axis, names)}.")
        cells = _cells(table)
        grid = np.ix_(*(np.flatnonzero(axis.inner) for axis in table.axes))
        along = range(len(names)) if self.axis is None else [names.index(self.axis)]
        line_counts = [
            sparse_lines(table.values[grid], a, self.populated, cells[grid]) for a in along
        ]
        lines = sum(total for _, total in line_counts)
        if not lines:
            raise InputError("The table has no lines of two cells or more.")
        return sum(sparse for sparse, _ in line_counts) / lines


def share_of_uniques(counts: npt.ArrayLike) -> float:
    """The share of ones among the cells.

    >>> share_of_uniques([0, 1, 1, 2])
    0.5
    """
    return float((_counts(counts) == 1).mean())


def share_of_small_cells(counts: npt.ArrayLike, most: int = 2) -> float:
    """The share of cells from 1 to ``most``; zeros are not small, they are empty.

    >>> share_of_small_cells([0, 1, 2, 3], most=2)
    0.5
    """
    _check_most(most, "count")
    array = _counts(counts)
    return float(((array >= 1) & (array <= most)).mean())


def share_of_zeros(counts: npt.ArrayLike) -> float:
    """The share of empty cells.

    >>> share_of_zeros([0, 1, 2, 3])
    0.25
    """
    return float((_counts(counts) == 0).mean())


def share_of_sparse_lines(counts: npt.ArrayLike, axis: int, populated: int = 2) -> float:
    """The share of lines along an axis with 1 to ``populated`` populated cells and an empty one.

    Entirely empty lines count as lines but not as sparse ones: nobody is in them.

    >>> share_of_sparse_lines([[9, 0, 0], [1, 2, 3]], axis=1)
    0.5
    """
    array = _counts(counts)
    if not -array.ndim <= axis < array.ndim:
        raise InputError(f"The counts have no axis {axis}; they have {array.ndim}.")
    sparse, lines = sparse_lines(array, axis, populated, np.ones(array.shape, dtype=np.bool_))
    if not lines:
        raise InputError("The table has no lines of two cells or more.")
    return sparse / lines


def sparse_lines(counts: Ints, axis: int, populated: int, cells: Mask) -> tuple[int, int]:
    """How many lines along an axis are sparse, and how many lines of two cells or more there are.

    ``cells`` marks the cells that can hold anybody; the others are no part of their lines.
    """
    _check_most(populated, "number of populated cells")
    length = cells.sum(axis=axis)
    filled = ((counts > 0) & cells).sum(axis=axis)
    is_sparse = (filled >= 1) & (filled <= populated) & (filled < length)
    return int(is_sparse.sum()), int((length >= 2).sum())


def _counts(counts: npt.ArrayLike) -> Ints:
    array = np.asarray(counts)
    if array.size == 0:
        raise InputError("A table without cells has no shares.")
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array) & (array == np.floor(array))):
        raise InputError(
            "Counts must be whole numbers; a fraction, infinity, NaN or text is among them."
        )
    if array.min() < 0:
        raise InputError("Counts are 0 or more; a negative one is among them.")
    return array.astype(np.int64)


def _cells(table: Table) -> Mask:
    if table.kind != "count" or table.decimals:
        raise InputError("Shares of small cells are for tables of whole counts.")
    return table.inner if table.structural is None else table.inner & ~table.structural


def _check_most(most: int, what: str) -> None:
    if type(most) is not int or most < 1:
        raise InputError(f"The largest {what} must be a whole number of 1 or more, not {most!r}.")
