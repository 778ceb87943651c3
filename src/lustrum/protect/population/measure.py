"""Typical errors by kind of table, measured once for the public report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model.finest import FinestCells
from lustrum.protect.population.agency import true_counts
from lustrum.protect.population.layout import Plan
from lustrum.protect.population.public import PublicReport, coarse_error, coarse_share
from lustrum.protect.population.search import Searched
from lustrum.protect.population.start import derived
from lustrum.protect.population.support import Support

__all__ = ["public_report", "squares_beyond"]

Array = npt.NDArray[Any]
_FEWEST = 50
"""Figures over fewer cells than that are not stated by themselves but joined with those of the next kind."""


def public_report(
    method: Mapping[str, Any],
    support: Support,
    plan: Plan,
    every: FinestCells,
    memory: FinestCells,
    found: Searched,
    key: bytes,
) -> PublicReport:
    """Measure typical errors over the cells of each kind that hold or show anybody, and make them coarse."""
    secret = derived(key, "public report")
    truth = true_counts(plan, every.codes, every.counts)
    squares: dict[int, list[float]] = {}
    for table in plan.tables:
        places = table.places().ravel()
        error = found.errors[places].astype(np.float64)
        entry = squares.setdefault(max(len(table.levels), 1), [0.0, 0.0])
        entry[0] += float((error**2).sum())
        entry[1] += float(((truth[places] > 0) | (error != 0)).sum())
    controlled = max(squares)
    for variables in range(controlled + 1, len(plan.variables) + 1):
        squares[variables] = squares_beyond(plan, every, memory, variables)
    errors: dict[int, float] = {}
    most, total, count = 0.0, 0.0, 0.0
    for variables in sorted(squares):
        total, count = total + squares[variables][0], count + squares[variables][1]
        if count < _FEWEST and variables < max(squares):
            continue
        error_size = (total / max(count, 1.0)) ** 0.5
        most = max(most, coarse_error(error_size, secret, f"error {variables}"))
        errors[variables] = most
        total, count = 0.0, 0.0
    occupied = every.counts > 0
    changed = float((memory.counts != every.counts)[occupied].mean()) if occupied.any() else 0.5
    return PublicReport(
        method=dict(method),
        support=support,
        changed=coarse_share(changed, secret, "changed"),
        errors=errors,
    )


def squares_beyond(
    plan: Plan, every: FinestCells, memory: FinestCells, variables: int
) -> list[float]:
    """Squared errors and occupied cells of tables that nobody controlled, of neighbouring variables."""
    rows = plan.rows()
    difference = memory.counts - every.counts
    total, count = 0.0, 0.0
    for first in range(len(rows)):
        chosen = [rows[(first + j) % len(rows)] for j in range(variables)]
        numbers = np.zeros(len(every), dtype=np.uint64)
        for row in chosen:
            size = np.uint64(len(every.dataset.variables[row].codes))
            numbers = numbers * size + every.codes[row].astype(np.uint64)
        _, inverse = np.unique(numbers, return_inverse=True)
        error = np.bincount(inverse, weights=difference.astype(np.float64))
        held = np.bincount(inverse, weights=(every.counts + memory.counts).astype(np.float64))
        total += float((error**2).sum())
        count += float((held > 0).sum())
        if variables == len(rows):
            break
    return [total, count]
