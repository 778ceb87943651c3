"""The agency's report of a protected population: errors, transitions and worst cells, from true counts.

It is confidential and never enters a bundle; ``repr`` shows none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Ints
from lustrum.model.finest import FinestCells
from lustrum.protect.population.attributes import AttributeRisk, attribute_risks
from lustrum.protect.population.later import ONE_IN, RememberedCells, odds_of
from lustrum.protect.population.prepare import Begun
from lustrum.protect.population.readers import known_changes
from lustrum.protect.population.search.forces import add_errors
from lustrum.protect.population.search.layout import ControlledTable, TablePlan
from lustrum.protect.population.search.levels import ControlledLevel
from lustrum.protect.population.support import Support, possible_combinations
from lustrum.protect.population.together import Differences
from lustrum.runtime.stop import still_working

_SAME = Differences()


@dataclass(frozen=True)
class TableErrors:
    """Errors of one controlled table, over all of its cells and over those that hold or show somebody."""

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

    def __add__(self, other: TableErrors) -> TableErrors:
        """The errors of a table of which each has other cells."""
        occupied, squares = self.occupied + other.occupied, self.squares + other.squares
        cells, total = self.cells + other.cells, self.total + other.total
        return replace(
            self,
            cells=cells,
            occupied=occupied,
            mean=total / cells,
            mean_occupied=total / max(occupied, 1),
            root_mean_square=sqrt(squares / max(occupied, 1)),
            largest=max(self.largest, other.largest),
            total=total,
            squares=squares,
        )


@dataclass(frozen=True)
class WorstCell:
    """A controlled cell with one of the largest errors."""

    table: str
    codes: tuple[str, ...]
    true: int
    shown: int


COVERED = 0.95
"""At least this share of the cells of every size is within the margin of error that is stated."""
FEWEST_COVERED = 40
"""In a smaller group a margin that covers it would be its largest error, or the one before: none is stated."""


@dataclass(frozen=True)
class Coverage:
    """How many cells of the controlled tables by so many variables are within the margin of error.

    They are the cells that hold or show anybody, of true counts from ``least`` to below ``most``.
    """

    variables: int
    least: int
    most: int | None
    cells: int
    within: int

    @property
    def share(self) -> float:
        """Which part of them is."""
        return self.within / max(self.cells, 1)

    @property
    def is_short(self) -> bool:
        """Whether too few of them are, of as many as a margin can be stated for."""
        return self.cells >= FEWEST_COVERED and self.share < COVERED


@dataclass(frozen=True, repr=False)
class AgencyReport:
    """What the agency may know of a protected population.

    ``single_columns`` counts rows of two-way tables in which a single column holds people. ``attributes``
    says how often rows of the file name an unknown attribute, see :mod:`~.attributes`.
    ``transitions[n][s]`` counts cells of ``n`` that show ``s``; ``empty_share`` is the share of cells
    showing the base that are empty in truth. ``unchanged`` and ``changed`` count cells of an earlier release
    whose records stayed the same, or did not; ``differences`` says how many of them show another number.
    ``coverage`` says how many cells of every size are within the margin of error that is stated.
    ``blocks`` are the differences of each block, where the description divides the dataset.
    ``known_changes`` says how sure somebody who knows all changes of a cell is of its count, by the first
    number and the number of releases; ``factor`` is the largest by which choices of the search changed odds so
    far, ``moved`` how often they showed the other number, by true count.
    """

    base: int
    tables: tuple[TableErrors, ...]
    worst: tuple[WorstCell, ...]
    transitions: Mapping[int, Mapping[int, int]]
    empty_share: float
    single_columns: Mapping[str, int]
    attributes: tuple[AttributeRisk, ...]
    moves: Mapping[str, int]
    unchanged: int = 0
    changed: int = 0
    differences: Differences = _SAME
    coverage: tuple[Coverage, ...] = ()
    blocks: tuple[Differences, ...] = ()
    known_changes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    factor: float = 1.0
    moved: Mapping[str, float] = field(default_factory=dict)

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
            "root_mean_square": sqrt(sum(t.squares for t in chosen) / max(occupied, 1)),
            "largest": max((t.largest for t in chosen), default=0),
        }

    def rounded_up(self) -> dict[int, float]:
        """The share of cells of each residue ``r`` that show the upper number, instead of ``r / base``."""
        up: dict[int, int] = {}
        cells: dict[int, int] = {}
        for true, row in self.transitions.items():
            residue = true % self.base
            if residue:
                cells[residue] = cells.get(residue, 0) + sum(row.values())
                up[residue] = up.get(residue, 0) + sum(n for s, n in row.items() if s > true)
        return {r: up[r] / cells[r] for r in sorted(cells) if cells[r]}

    def to_mapping(self) -> dict[str, Any]:
        """The report as plain values, for a confidential file."""
        return {
            "tables": [vars(t) for t in self.tables],
            "worst": [{**vars(w), "codes": list(w.codes)} for w in self.worst],
            "transitions": {
                str(true): {str(shown): n for shown, n in row.items()}
                for true, row in self.transitions.items()
            },
            "empty_share": self.empty_share,
            "single_columns": dict(self.single_columns),
            "attributes": [risk.to_mapping() for risk in self.attributes],
            "rounded_up": {str(n): share for n, share in self.rounded_up().items()},
            "moves": dict(self.moves),
            "unchanged": self.unchanged,
            "changed": self.changed,
            "differences": self.differences.to_mapping(),
            "coverage": [{**vars(one), "share": one.share} for one in self.coverage],
            "known_changes": {
                "sure": {number: dict(row) for number, row in self.known_changes.items()},
                "factor": self.factor,
                "moved": dict(self.moved),
            },
        }


def true_counts(plan: TablePlan, codes: Array, counts: Ints) -> Array:
    """The true counts of all controlled cells."""
    kind = np.int32 if int(counts.sum()) < 2**31 else np.float64
    truth = np.zeros(plan.cells, dtype=kind)
    rows = np.empty((counts.size, len(plan.variables)), dtype=codes.dtype)
    for column, row in enumerate(plan.rows()):
        rows[:, column] = codes[row]
    add_errors(plan, rows, counts.astype(kind), truth)
    return truth


def table_errors(table: ControlledTable, errors: Array, truth: Array) -> TableErrors:
    """The errors of one table."""
    still_working()
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
        root_mean_square=sqrt(squares / max(occupied, 1)),
        largest=int(size.max(initial=0)),
        total=total,
        squares=squares,
    )


WORST = 20


@dataclass(frozen=True)
class ControlledErrors:
    """The errors of controlled tables, the cells with the largest ones, and rows with a single column."""

    tables: tuple[TableErrors, ...]
    worst: tuple[WorstCell, ...]
    single_columns: Mapping[str, int]

    @classmethod
    def of(cls, plan: TablePlan, errors: Array, truth: Array) -> ControlledErrors:
        """Compare; ``truth`` holds the true counts of all controlled cells."""
        return cls(
            tuple(table_errors(t, errors, truth) for t in plan.tables),
            _worst(plan, errors, truth),
            _single_columns(plan, errors, truth),
        )


def agency_report(
    support: Support,
    every: FinestCells,
    memory: RememberedCells,
    controlled: ControlledErrors,
    moves: Array,
    begun: Begun,
    apart: Differences = _SAME,
    limit: float = 0.0,
) -> AgencyReport:
    """Compare protected and true counts; ``limit`` is ``known_changes`` of the method."""
    transitions: dict[int, dict[int, int]] = {}
    for true in range(3 * support.base):
        still_working()
        values, counts = np.unique(memory.counts[every.counts == true], return_counts=True)
        transitions[true] = {int(v): int(c) for v, c in zip(values, counts, strict=True)}
    smallest = memory.counts == support.base
    return AgencyReport(
        base=support.base,
        tables=controlled.tables,
        worst=controlled.worst,
        transitions=transitions,
        empty_share=float((every.counts[smallest] == 0).mean()) if smallest.any() else 0.0,
        single_columns=controlled.single_columns,
        attributes=attribute_risks(every, memory, support.base),
        moves={
            name: int(n)
            for name, n in zip(
                (
                    "flips tried",
                    "flips made",
                    "swaps worked out",
                    "swaps made",
                    "exchanges worked out",
                    "exchanges made",
                ),
                moves.ravel(),
                strict=True,
            )
        },
        unchanged=begun.unchanged,
        changed=begun.changed,
        differences=apart,
        known_changes=_sure(memory, transitions, support, limit) if begun.first else {},
        factor=1.0 if memory.odds is None else float(memory.odds.max(initial=1.0)),
        moved={str(n): moved / chosen for n, (moved, chosen) in sorted(begun.moved.items())},
    )


def _sure(
    memory: FinestCells,
    transitions: Mapping[int, Mapping[int, int]],
    support: Support,
    limit: float,
) -> Mapping[str, Mapping[str, float]]:
    """What known changes tell beside a first release; later ones add no more than the limit."""
    unlisted = int(possible_combinations(memory.dataset)) - len(memory)
    empty = dict(transitions[0])
    empty[0] = empty.get(0, 0) + unlisted
    return known_changes({**transitions, 0: empty}, support, limit, odds_of(ONE_IN[0], moved=True))


def _single_columns(plan: TablePlan, errors: Array, truth: Array) -> dict[str, int]:
    """Rows of two-way tables in which a single column holds people, though more could.

    The column of everybody in such a row is known. Rows with a single possible column are not secret.
    """
    row_counts = {"rows": 0, "in truth": 0, "shown": 0, "in truth and shown": 0}
    for table in plan.tables:
        if len(table.levels) != 2 or not table.finest:
            continue
        still_working()
        axes = [(lv.variable, plan.dataset.variable(lv.variable).finest) for lv in table.levels]
        possible = possible_combinations(plan.dataset, axes) > 0
        true = truth[table.places()]
        shown = true + errors[table.places()]
        for axis in (0, 1):
            several = possible.sum(axis=axis) > 1
            single = ((true > 0).sum(axis=axis) == 1) & several
            single_shown = ((shown > 0).sum(axis=axis) == 1) & several
            row_counts["rows"] += int(several.sum())
            row_counts["in truth"] += int(single.sum())
            row_counts["shown"] += int(single_shown.sum())
            row_counts["in truth and shown"] += int((single & single_shown).sum())
    return row_counts


def _worst(plan: TablePlan, errors: Array, truth: Array) -> tuple[WorstCell, ...]:
    still_working()
    wanted = min(WORST, errors.size)
    size = np.abs(errors)
    # Of all cells only those are sorted that can be among the worst.
    least = np.partition(size, size.size - wanted)[size.size - wanted] if wanted else 0
    large = np.flatnonzero(size >= least)
    places = large[np.argsort(-size[large], kind="stable")][:wanted].tolist()
    worst_cells: dict[int, WorstCell] = {}
    for table in plan.tables:
        for at in places:
            hit = table.categories(at)
            if hit is None:
                continue
            codes = tuple(
                _category(plan, level, group)
                for level, group in zip(table.levels, hit, strict=True)
            )
            true = int(truth[at])
            worst_cells[at] = WorstCell(table.label, codes, true, true + int(errors[at]))
    return tuple(worst_cells[at] for at in places)


def _category(plan: TablePlan, level: ControlledLevel, group: int) -> str:
    """The finest codes of a group, the first of them if there are several."""
    codes = plan.dataset.variable(level.variable).codes
    members = [codes[c] for c in np.flatnonzero(level.group_of == group)]
    return members[0] if len(members) == 1 else f"{members[0]} and {len(members) - 1} more"
