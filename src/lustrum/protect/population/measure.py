"""Typical errors, and rates of errors, by kind of table: measured once for the public report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, prod, sqrt
from typing import Any

import numpy as np

from lustrum.arrays import Array, Ints
from lustrum.compiled import compiled
from lustrum.model import Category
from lustrum.model.finest import FinestCells
from lustrum.protect.population.agency import true_counts
from lustrum.protect.population.channel import (
    ERROR_ENDS,
    SIZE_ENDS,
    Rates,
    coarse_rates,
    error_class,
    normal_rates,
    size_class,
)
from lustrum.protect.population.public import (
    GROUP_ERROR_STEP,
    PublicReport,
    coarse_error,
    coarse_share,
    keyed_shift,
)
from lustrum.protect.population.search.layout import Plan
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.search.run import Searched
from lustrum.protect.population.start import derived
from lustrum.protect.population.support import Combinations, Support

__all__ = ["MeasuredTable", "public_report", "report_of", "tables_of_a_kind"]

FEWEST = 400
"""Figures over fewer cells than that are not stated by themselves but joined with those of the next kind."""

FEWEST_BY_CLASS = 1000
"""Rates over fewer cells than that are not stated."""

_CLASSES = (len(SIZE_ENDS) + 1, len(ERROR_ENDS))
_DRAWN = 16
_BEYOND = 2
_MOST_CELLS = 1 << 17


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredTable:
    """The figures of one table: squared errors, cells that hold or show anybody, and cells by classes.

    ``transitions`` counts the cells that can hold anybody by the class of the true count and that of the
    error; None for a table with very many cells.
    """

    squares: float
    seen: int
    transitions: Ints | None


def public_report(
    method: Mapping[str, Any],
    support: Support,
    plan: Plan,
    every: FinestCells,
    memory: FinestCells,
    found: Searched,
    key: bytes,
    truth: Array | None = None,
) -> PublicReport:
    """Measure typical errors over the cells that hold or show anybody, and make them coarse."""
    if truth is None:
        truth = true_counts(plan, every.codes, every.counts)
    kinds: dict[int, list[MeasuredTable]] = {}
    for table in plan.tables:
        if len(table.levels) > plan.max_variables:
            continue
        places = table.places().ravel()
        error = found.errors[places].astype(np.float64)
        seen = int(((truth[places] > 0) | (error != 0)).sum())
        measured = MeasuredTable(float((error**2).sum()), seen, None)
        kinds.setdefault(max(len(table.levels), 1), []).append(measured)
    controlled = max(kinds)
    last = min(controlled + _BEYOND, len(plan.variables))
    drawn = _Drawn(plan, every, memory, support.base)
    # Only some tables of more variables are controlled; those of still more have smaller cells and errors.
    for variables in range(1, last + 1):
        more = list(drawn.tables(variables))
        if variables > controlled:
            kinds[variables] = more
        else:
            kinds[variables] += [MeasuredTable(0.0, 0, m.transitions) for m in more]
    grouped = {v: list(drawn.tables(v, own_group=True)) for v in kinds}
    occupied = every.counts > 0
    changed = float((memory.counts != every.counts)[occupied].mean()) if occupied.any() else 0.5
    return report_of(method, support, changed, kinds, grouped, derived(key, "public report"))


def report_of(
    method: Mapping[str, Any],
    support: Support,
    changed: float,
    kinds: Mapping[int, Sequence[MeasuredTable]],
    grouped: Mapping[int, Sequence[MeasuredTable]],
    secret: bytes,
) -> PublicReport:
    """The public report of measured figures; everything that comes from true counts is made coarse here."""
    errors = _coarse_errors(kinds, secret, "error", 0.5)
    group_errors = _coarse_errors(grouped, secret, "group error", GROUP_ERROR_STEP)
    most = int(method["max_variables"])
    controlled = [one for k in kinds if k <= most for one in kinds[k]]
    free = [one for k in kinds if k > most for one in kinds[k]]
    free += [one for tables in grouped.values() for one in tables]
    step = 1 if support.small_only else support.base
    typical = normal_rates(support.base, step, errors[max(errors)])
    wide = normal_rates(support.base, step, group_errors[max(group_errors)])
    return PublicReport(
        method=dict(method),
        support=support,
        changed=coarse_share(changed, secret, "changed"),
        errors=errors,
        group_errors=group_errors,
        rates=_coarse_rates(controlled, typical, secret, "rates"),
        free_rates=_coarse_rates(free, wide, secret, "free rates"),
    )


def _coarse_errors(
    kinds: Mapping[int, Sequence[MeasuredTable]], secret: bytes, name: str, step: float
) -> dict[int, float]:
    """A typical error of each kind of table, never smaller than that of tables of fewer variables.

    Every table has the same weight, however many cells it has: large cells of coarse tables are few, and people
    ask for them most. Kinds with few cells are joined with the next.
    """
    errors: dict[int, float] = {}
    most = 0.0
    waiting: list[MeasuredTable] = []
    for variables in sorted(kinds):
        waiting = [*waiting, *(one for one in kinds[variables] if one.seen > 0)]
        if sum(one.seen for one in waiting) < FEWEST and variables < max(kinds):
            continue
        squares = [one.squares / one.seen for one in waiting] or [0.0]
        measured = sqrt(fsum(squares) / len(squares))
        most = max(most, coarse_error(measured, secret, f"{name} {variables}", step))
        errors[variables] = most
        waiting = []
    return errors


def _coarse_rates(
    tables: Sequence[MeasuredTable], typical: Rates, secret: bytes, name: str
) -> Rates:
    """How often counts of each class err by how much, over the cells of many tables.

    Nothing is stated for a class with few cells: its errors are taken as normal with the typical error, which
    is coarse already.
    """
    rows = []
    for place, cells in enumerate(_added(tables)):
        if cells.sum() < FEWEST_BY_CLASS:
            rows.append(typical[place])
        else:
            shift = keyed_shift(secret, f"{name} {place}")
            rows.append(coarse_rates(cells / cells.sum(), shift))
    return tuple(rows)


def _added(tables: Sequence[MeasuredTable]) -> Ints:
    total = np.zeros(_CLASSES, dtype=np.int64)
    for table in tables:
        if table.transitions is not None:
            total += table.transitions
    return total


def tables_of_a_kind(
    plan: Plan, every: FinestCells, memory: FinestCells, base: int, variables: int
) -> list[MeasuredTable]:
    """Figures of tables at levels drawn for each variable, as the public report measures them."""
    return list(_Drawn(plan, every, memory, base).tables(variables))


@compiled
def _number_cells(
    codes: Any, rows: Any, group: Any, sizes: Any, numbers: Any
) -> None:  # pragma: no cover
    """The cell of a table in which each finest cell lies."""
    for i in range(numbers.size):
        number = np.uint64(0)
        for v in range(rows.size):
            number = number * sizes[v] + np.uint64(group[v, codes[rows[v], i]])
        numbers[i] = number


@compiled
def _add_up(numbers: Any, true: Any, shown: Any, sums: Any) -> None:  # pragma: no cover
    """True and shown counts of the cells of a table."""
    for i in range(numbers.size):
        sums[numbers[i], 0] += true[i]
        sums[numbers[i], 1] += shown[i]


class _Drawn:
    """Tables that are drawn: which ones is the same for all records and no secret."""

    def __init__(self, plan: Plan, every: FinestCells, memory: FinestCells, base: int) -> None:
        self.plan, self.every, self.memory, self.base = plan, every, memory, base
        self.rows = dict(zip(plan.variables, plan.rows(), strict=True))
        self.levels = controlled_levels(plan.dataset)
        self.combinations = Combinations.of(plan.dataset)

    def tables(self, variables: int, *, own_group: bool = False) -> Iterator[MeasuredTable]:
        """Figures of drawn tables; with ``own_group`` one variable has two groups of codes drawn at random."""
        rng = np.random.default_rng(variables + 100 * own_group)
        for _ in range(_DRAWN):
            chosen = rng.permutation(len(self.plan.variables))[:variables]
            groups: dict[str, Ints] = {}
            for place, variable in enumerate(self.plan.variables[c] for c in chosen):
                levels = self.levels[variable]
                group_of = levels[int(rng.integers(len(levels)))].group_of
                if own_group and place == 0:
                    group_of = rng.integers(0, 2, group_of.size)
                groups[variable] = group_of
            yield self._measured(groups)

    def _measured(self, groups: Mapping[str, Ints]) -> MeasuredTable:
        rows = np.array([self.rows[variable] for variable in groups], dtype=np.int64)
        sizes = np.array([int(group_of.max()) + 1 for group_of in groups.values()], dtype=np.uint64)
        group = np.zeros((rows.size, max(g.size for g in groups.values())), dtype=np.uint32)
        for place, group_of in enumerate(groups.values()):
            group[place, : group_of.size] = group_of
        cells = prod(int(size) for size in sizes)
        numbers = np.empty(len(self.every), dtype=np.uint64)
        _number_cells(self.every.codes, rows, group, sizes, numbers)
        length = cells
        if cells > _MOST_CELLS:  # too many to lay out
            found, places = np.unique(numbers, return_inverse=True)
            length, numbers = found.size, places.reshape(-1).astype(np.uint64)
        sums = np.zeros((length, 2), dtype=np.int64)
        _add_up(numbers, self.every.counts, self.memory.counts, sums)
        true, shown = sums.T
        seen = (true > 0) | (shown > 0)
        true, error = true[seen], (shown - true)[seen]
        transitions = None
        if cells <= _MOST_CELLS:
            classes = size_class(true, self.base) * _CLASSES[1] + error_class(error, self.base)
            transitions = np.bincount(classes, minlength=_CLASSES[0] * _CLASSES[1])
            transitions = transitions.reshape(_CLASSES).astype(np.int64)
            # The other possible cells are empty and show 0.
            transitions[0, 0] += self._possible(groups) - int(seen.sum())
        return MeasuredTable(float((error**2).sum()), int(seen.sum()), transitions)

    def _possible(self, groups: Mapping[str, Ints]) -> int:
        axes = [
            (
                variable,
                [
                    Category(str(g), str(g), tuple(np.flatnonzero(group_of == g).tolist()))
                    for g in range(int(group_of.max()) + 1)
                ],
            )
            for variable, group_of in groups.items()
        ]
        return int((self.combinations.within(axes) > 0).sum())
