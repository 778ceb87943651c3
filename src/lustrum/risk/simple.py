"""Measures that agencies quote: shares of ones, of small cells, of zeros and of sparse lines.

All run from 0 to 1, higher being riskier, over the inner cells of a table of counts without its structural
zeros. Shlomo, Antal and Elliot (2015, section 4) recall that the proportions of small cells and of rows or
columns with one or two populated cells were used to judge tables of the 2011 census of the United Kingdom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import choices
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.risk.measure import RiskSpec


class _ShareOfCells(RiskSpec):
    """The share of cells with some counts."""

    def before(self, table: Table) -> float:
        """The share in the table as it is."""
        check_table(table, f"The risk measure {self.name!r}")
        counts = table.values[_cells(table)]
        if not counts.size:
            raise InputError("A table without cells has no shares.")
        return float(self._marked(counts).mean())

    def _marked(self, counts: Ints) -> Mask:
        raise NotImplementedError


@dataclass(frozen=True)
class Uniques(_ShareOfCells):
    """The share of cells with a count of 1: somebody stands there alone.

    >>> Uniques().before(Table.from_counts([[1, 0], [5, 1]]))
    0.5
    """

    name: ClassVar[str] = "uniques"

    def _marked(self, counts: Ints) -> Mask:
        return counts == 1


@dataclass(frozen=True)
class SmallCells(_ShareOfCells):
    """The share of cells with counts from 1 to ``most``; zeros are not small, they are empty.

    >>> SmallCells(most=2).before(Table.from_counts([[1, 0], [5, 2]]))
    0.5
    """

    name: ClassVar[str] = "small-cells"
    most: int = parameter(2, "Counts from 1 up to this are small.", least=1)

    def _marked(self, counts: Ints) -> Mask:
        return (counts >= 1) & (counts <= self.most)


@dataclass(frozen=True)
class Zeros(_ShareOfCells):
    """The share of empty cells, ``|A| / K``: the first term of equation 3 of the paper.

    >>> Zeros().before(Table.from_counts([[1, 0], [5, 2]]))
    0.25
    """

    name: ClassVar[str] = "zeros"

    def _marked(self, counts: Ints) -> Mask:
        return counts == 0


@dataclass(frozen=True)
class SparseLines(RiskSpec):
    """The share of lines of which only one or two cells are populated and the others empty.

    A line runs along one axis, with the categories of all other axes fixed: the rows and columns of a
    two-way table. ``axis`` names one axis; without it the lines of all axes are taken together.

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
        """The share in the table as it is."""
        check_table(table, f"The risk measure {self.name!r}")
        names = [axis.name for axis in table.axes]
        if self.axis is not None and self.axis not in names:
            raise InputError(f"The table has no axis {self.axis!r}; {choices(self.axis, names)}.")
        cells = _cells(table)
        grid = np.ix_(*(np.flatnonzero(axis.inner) for axis in table.axes))
        along = range(len(names)) if self.axis is None else [names.index(self.axis)]
        line_counts = [
            _sparse_lines(table.values[grid], a, self.populated, cells[grid]) for a in along
        ]
        lines = sum(total for _, total in line_counts)
        if not lines:
            raise InputError("The table has no lines of two cells or more.")
        return sum(sparse for sparse, _ in line_counts) / lines


def _sparse_lines(counts: Ints, axis: int, populated: int, cells: Mask) -> tuple[int, int]:
    """How many lines along an axis are sparse, and how many lines of two cells or more there are.

    ``cells`` marks the cells that can hold anybody; the others are no part of their lines.
    """
    length = cells.sum(axis=axis)
    filled = ((counts > 0) & cells).sum(axis=axis)
    is_sparse = (filled >= 1) & (filled <= populated) & (filled < length)
    return int(is_sparse.sum()), int((length >= 2).sum())


def _cells(table: Table) -> Mask:
    if table.kind != "count" or table.decimals:
        raise InputError("Shares of small cells are for tables of whole counts.")
    return table.inner if table.structural is None else table.inner & ~table.structural
