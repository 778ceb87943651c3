"""Typical errors by kind of table, measured once for the public report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lustrum.model.finest import FinestCells
from lustrum.protect.population.agency import true_counts
from lustrum.protect.population.layout import Plan
from lustrum.protect.population.levels import controlled_levels
from lustrum.protect.population.public import PublicReport, coarse_error, coarse_share
from lustrum.protect.population.search import Searched
from lustrum.protect.population.start import derived
from lustrum.protect.population.support import Support

__all__ = ["public_report", "squares_beyond"]

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
    """Measure typical errors over the cells that hold or show anybody, and make them coarse."""
    secret = derived(key, "public report")
    truth = true_counts(plan, every.codes, every.counts)
    kinds: dict[int, list[tuple[float, float]]] = {}
    for table in plan.tables:
        places = table.places().ravel()
        error = found.errors[places].astype(np.float64)
        seen = float(((truth[places] > 0) | (error != 0)).sum())
        kinds.setdefault(max(len(table.levels), 1), []).append((float((error**2).sum()), seen))
    controlled = max(kinds)
    for variables in range(controlled + 1, len(plan.variables) + 1):
        kinds[variables] = squares_beyond(plan, every, memory, variables)
    grouped = {
        variables: squares_beyond(plan, every, memory, variables, own_group=True)
        for variables in kinds
    }
    occupied = every.counts > 0
    changed = float((memory.counts != every.counts)[occupied].mean()) if occupied.any() else 0.5
    return PublicReport(
        method=dict(method),
        support=support,
        changed=coarse_share(changed, secret, "changed"),
        errors=_coarse(kinds, secret, "error"),
        group_errors=_coarse(grouped, secret, "group error"),
    )


def _coarse(
    kinds: Mapping[int, list[tuple[float, float]]], secret: bytes, name: str
) -> dict[int, float]:
    """A typical error of each kind of table, never smaller than that of tables of fewer variables.

    Every table counts alike, whatever its cells: large cells of coarse tables are few, and people ask for
    them most. Kinds with few cells are joined with the next.
    """
    errors: dict[int, float] = {}
    most = 0.0
    waiting: list[tuple[float, float]] = []
    for variables in sorted(kinds):
        waiting = [*waiting, *(one for one in kinds[variables] if one[1] > 0)]
        if sum(seen for _, seen in waiting) < _FEWEST and variables < max(kinds):
            continue
        squares = [total / seen for total, seen in waiting] or [0.0]
        measured = (sum(squares) / len(squares)) ** 0.5
        most = max(most, coarse_error(measured, secret, f"{name} {variables}"))
        errors[variables] = most
        waiting = []
    return errors


_DRAWN = 24


def squares_beyond(
    plan: Plan,
    every: FinestCells,
    memory: FinestCells,
    variables: int,
    *,
    own_group: bool = False,
) -> list[tuple[float, float]]:
    """Squared errors and occupied cells of tables that nobody controlled, at levels drawn for each variable.

    With ``own_group`` one variable of each table has two groups of codes drawn at random. Which tables are
    drawn is the same for all records and no secret.
    """
    rng = np.random.default_rng(variables + 100 * own_group)
    rows = dict(zip(plan.variables, plan.rows(), strict=True))
    levels = controlled_levels(plan.dataset)
    difference = (memory.counts - every.counts).astype(np.float64)
    people = (every.counts + memory.counts).astype(np.float64)
    found = []
    for _ in range(_DRAWN):
        numbers = np.zeros(len(every), dtype=np.uint64)
        chosen = rng.permutation(len(plan.variables))[:variables]
        for place, variable in enumerate(plan.variables[c] for c in chosen):
            group_of = levels[variable][int(rng.integers(len(levels[variable])))].group_of
            if own_group and place == 0:
                group_of = rng.integers(0, 2, group_of.size)
            size = np.uint64(int(group_of.max()) + 1)
            numbers = numbers * size + group_of[every.codes[rows[variable]]].astype(np.uint64)
        _, inverse = np.unique(numbers, return_inverse=True)
        error = np.bincount(inverse, weights=difference)
        held = np.bincount(inverse, weights=people)
        found.append((float((error**2).sum()), float((held > 0).sum())))
    return found
