"""Sensitive cells that somebody names, with the levels they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import CellStatus, InputError, Reason, Table
from lustrum.model.table import check_table
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.result import Finding, Sensitivity


@dataclass(frozen=True, eq=False, repr=False)
class GivenCells:
    """The cells of one table that are sensitive, as its owner says, and how much protection each needs.

    Arrays have the shape of the table; levels are in its units. The rule belongs to that one table, so no
    policy can name it.

    >>> table = Table.from_counts([4, 9, 7])
    >>> GivenCells(np.array([True, False, False]), np.array([2, 0, 0])).judge(table).upper.tolist()
    [2, 0, 0]
    """

    name: ClassVar[str] = "given-cells"
    cells: npt.NDArray[np.bool_]
    upper: npt.NDArray[np.int64]
    lower: npt.NDArray[np.int64] | None = None

    def __repr__(self) -> str:
        return "GivenCells()"

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """The cells that were given."""
        check_table(table, f"The rule {self.name!r}")
        if self.cells.shape != table.shape:
            raise InputError("The given cells are those of a table of another shape.")
        reason = Reason(
            self.name, "named as sensitive", "Merge categories, so that cells hold more."
        )
        finding = Finding(reason, CellStatus.CONCENTRATED, self.cells)
        upper = np.maximum(self.upper, 1)
        lower = upper if self.lower is None else self.lower
        if bool((table.values >= 0).all()):
            lower = np.minimum(lower, table.values)
        return Sensitivity.of(table, self.to_mapping(), [finding], lower, upper)

    def to_mapping(self) -> dict[str, Any]:
        """The name of the rule; the cells stay with the table."""
        return {"rule": self.name}
