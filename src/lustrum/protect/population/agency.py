"""The agency's report of a protected population: errors, transitions and worst cells, from true counts.

It is confidential and never enters a bundle; ``repr`` shows none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.protect.population.kernels import add_errors
from lustrum.protect.population.layout import ControlledTable, Plan

__all__ = ["AgencyReport", "TableErrors", "table_errors", "true_counts"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TableErrors:
    """Errors of one controlled table, over all of its cells and over those that hold or show anybody."""

    label: str
    variables: int
    finest: bool
    cells: int
    occupied: int
    mean: float
    mean_occupied: float
    root_mean_square: float
    largest: int
    total: int
    squares: int


@dataclass(frozen=True, repr=False)
class AgencyReport:
    """What the agency may know of a protected population."""

    tables: tuple[TableErrors, ...]
    transitions: Mapping[int, Mapping[int, int]]
    empty_share: float
    figures: Mapping[str, Any]

    def __repr__(self) -> str:
        return "AgencyReport(hidden)"

    def over(self, *, finest: bool = False, variables: int | None = None) -> dict[str, float]:
        """Mean and largest error over all tables, those at finest levels, or those of some variables."""
        chosen = [
            t
            for t in self.tables
            if (t.finest or not finest) and (variables is None or t.variables == variables)
        ]
        cells = sum(t.cells for t in chosen)
        occupied = sum(t.occupied for t in chosen)
        total = sum(t.total for t in chosen)
        return {
            "tables": len(chosen),
            "cells": cells,
            "occupied": occupied,
            "mean": total / max(cells, 1),
            "mean_occupied": total / max(occupied, 1),
            "root_mean_square": (sum(t.squares for t in chosen) / max(occupied, 1)) ** 0.5,
            "largest": max((t.largest for t in chosen), default=0),
        }

    def to_mapping(self) -> dict[str, Any]:
        """The report as plain values, for a file that stays in the house."""
        return {
            "tables": [vars(t) for t in self.tables],
            "transitions": {
                str(true): {str(shown): n for shown, n in row.items()}
                for true, row in self.transitions.items()
            },
            "empty_share": self.empty_share,
            "figures": dict(self.figures),
        }


def true_counts(plan: Plan, codes: Array, counts: Ints) -> Array:
    """The true counts of all controlled cells."""
    truth = np.zeros(plan.cells, dtype=np.float64)
    rows = np.ascontiguousarray(codes[plan.rows()].T)
    add_errors(plan.layout, rows, counts.astype(np.float64), truth)
    return truth


def table_errors(table: ControlledTable, errors: Array, truth: Array) -> TableErrors:
    """The errors of one table."""
    places = table.places().ravel()
    size = np.abs(errors[places]).astype(np.int64)
    true = truth[places]
    occupied = int(((true > 0) | (size > 0)).sum())
    total, squares = int(size.sum()), int((size * size).sum())
    return TableErrors(
        label=table.label,
        variables=len(table.levels),
        finest=table.finest,
        cells=places.size,
        occupied=occupied,
        mean=total / places.size,
        mean_occupied=total / max(occupied, 1),
        root_mean_square=(squares / max(occupied, 1)) ** 0.5,
        largest=int(size.max(initial=0)),
        total=total,
        squares=squares,
    )
