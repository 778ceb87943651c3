"""How much is suppressed: the number of inner cells, and the value in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.utility.blocks import inner_grid
from lustrum.utility.compare import Better, UtilitySpec


@dataclass(frozen=True)
class SuppressedCells(UtilitySpec):
    """The number of inner cells that are not shown; from 0 up, lower is better.

    Nothing is imputed: suppressed cells are what is counted.
    """

    name: ClassVar[str] = "suppressed-cells"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"

    def of(self, table: Table, release: Release) -> float:
        """How many inner cells of a release are suppressed."""
        _check(table, release)
        return float(np.count_nonzero(~release.shown[inner_grid(table.axes)]))


@dataclass(frozen=True)
class SuppressedValue(UtilitySpec):
    """The true value in suppressed inner cells, in the table's unit; from 0 up, lower is better.

    Values are taken without their sign, so that gains and losses do not cancel. The figure is for
    the agency: it comes from cells that nobody is to see.
    """

    name: ClassVar[str] = "suppressed-value"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"

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
