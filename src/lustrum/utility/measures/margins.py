"""Margins kept: how many one-way margins a release leaves as they are, and the worst one.

A one-way margin counts the categories of one variable. The true one is the sum of the table's inner cells. The
published one is the release's own total cell where it has one that is shown, as this is what a
reader would quote; otherwise the sum of its inner cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.utility.impute import Impute, inner_grid, margin_grid, suppressed_cells
from lustrum.utility.measure import Better, UtilitySpec, as_pair, compare


@dataclass(frozen=True)
class MarginsKept(UtilitySpec):
    """The share of one-way margins that are unchanged, over all axes; from 0 to 1, higher is better."""

    name: ClassVar[str] = "margins-kept"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Better] = "higher"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        return share_of_margins_kept(*one_way_margins(table, release, self.impute))


@dataclass(frozen=True)
class LargestMarginError(UtilitySpec):
    """The largest error of a one-way margin, in the table's unit; from 0 up, lower is better."""

    name: ClassVar[str] = "largest-margin-error"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        return largest_margin_error(*one_way_margins(table, release, self.impute))


def one_way_margins(table: Table, release: Release, impute: Impute) -> tuple[Floats, Floats]:
    """True and published one-way margins of all axes, one after the other.

    >>> from lustrum.protect import ConventionalRounding
    >>> from lustrum.rumap.measures import usual_impute
    >>> table = Table.from_counts([[1, 9], [8, 7]])
    >>> release = ConventionalRounding(base=5).apply(table)
    >>> [margins.tolist() for margins in one_way_margins(table, release, usual_impute(table))]
    [[10.0, 15.0, 9.0, 16.0], [10.0, 15.0, 10.0, 15.0]]
    """
    pair = compare(table, release, impute)
    if not table.axes:
        raise InputError("A table without variables has no margins.")
    scale = 1 / 10**table.decimals
    true, published = [], []
    for axis in range(len(table.axes)):
        others = tuple(a for a in range(len(table.axes)) if a != axis)
        true.append(pair.original.sum(axis=others))
        margin = pair.published.sum(axis=others)
        grid = margin_grid(release.axes, others) if others else None
        if grid is not None:
            shown = release.shown[grid].ravel()
            margin = np.where(shown, release.numbers[grid].ravel() * scale, margin)
        published.append(margin)
    return np.concatenate(true), np.concatenate(published)


def share_of_margins_kept(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """The share of margins that agree up to rounding error.

    >>> share_of_margins_kept([10, 20], [10, 21])
    0.5
    """
    F, G = as_pair(original, published)
    return float(np.isclose(F, G, rtol=1e-12, atol=1e-9).mean())


def largest_margin_error(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``max |F+ - G+|``.

    >>> largest_margin_error([10, 20], [10, 21])
    1.0
    """
    F, G = as_pair(original, published)
    return float(np.abs(F - G).max())


# How much is suppressed: the number of inner cells, and the value in them.


@dataclass(frozen=True)
class SuppressedCells(UtilitySpec):
    """The number of inner cells that are not shown; from 0 up, lower is better.

    Nothing is imputed: suppressed cells are what is counted.
    """

    name: ClassVar[str] = "suppressed-cells"

    def of(self, table: Table, release: Release) -> float:
        _check(table, release)
        return float(np.count_nonzero(~release.shown[inner_grid(table.axes)]))


@dataclass(frozen=True)
class SuppressedValue(UtilitySpec):
    """The true value in suppressed inner cells, in the table's unit; from 0 up, lower is better.

    Values are taken without their sign, so that gains and losses do not cancel. The figure is for
    the agency: it comes from cells that nobody is to see.
    """

    name: ClassVar[str] = "suppressed-value"

    def of(self, table: Table, release: Release) -> float:
        """How much of the table is in suppressed inner cells."""
        _check(table, release)
        grid = inner_grid(table.axes)
        hidden = np.abs(table.values[grid][~release.shown[grid]])
        return float(hidden.sum() * (1 / 10**table.decimals))


def _check(table: Table, release: Release) -> None:
    check_table(table, "A utility measure")
    check_release(release, "A utility measure")
    if release.shape != table.shape:
        raise InputError("The release and its table have different shapes; they must be equal.")
