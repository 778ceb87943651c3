"""Typical errors, and rates of errors, by kind of table: measured once for the public report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from math import ceil, fsum, prod, sqrt
from operator import add
from typing import Any

import numpy as np

from lustrum.model import Category, Dataset
from lustrum.model.arrays import Array, Ints, Whole, Words
from lustrum.model.finest import FinestCells
from lustrum.numeric.compiled import compiled
from lustrum.protect.population.agency import COVERED, FEWEST_COVERED, Coverage, true_counts
from lustrum.protect.population.channel import (
    ERROR_ENDS,
    SIZE_ENDS,
    Rates,
    coarse_rates,
    error_class,
    nearest_rates,
    size_class,
)
from lustrum.protect.population.public import (
    GROUP_ERROR_STEP,
    GROUP_MARGIN_STEP,
    LARGEST,
    MARGIN_ENDS,
    MARGIN_STEP,
    Margins,
    PublicReport,
    coarse_error,
    coarse_largest,
    coarse_share,
    keyed_shift,
    margin_class,
    of_kind,
)
from lustrum.protect.population.search.layout import KINDS, ControlledTable, TablePlan
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.search.plan import plan_tables
from lustrum.protect.population.search.run import SearchedPopulation
from lustrum.protect.population.start import by_number, derived, parts_of
from lustrum.protect.population.support import Combinations, Support
from lustrum.runtime.stop import check_stop, report_progress, still_working

FEWEST = 400
"""Figures over fewer cells than that are not stated by themselves but joined with those of the next kind."""

FEWEST_BY_CLASS = 1000
"""Rates over fewer cells than that are not stated."""

_AIMED = 0.96
"""The share of cells of every size that a margin of error is to cover; ``COVERED`` of every kind of table."""

_CLASSES = (len(SIZE_ENDS) + 1, len(ERROR_ENDS))
_DRAWN = 16
_BEYOND = 2
_MOST_CELLS = 1 << 17
_MOST_LAID_OUT = 1 << 22


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredTable:
    """The figures of one table: squared errors, cells that hold or show anybody, and cells by classes.

    ``transitions`` counts the cells that can hold anybody by the class of the true count and that of the error.
    ``by_size`` counts the cells that hold or show anybody by how large the true count is, see
    :func:`~.public.margin_class`, and by error: rows of size, error and cells.
    """

    squares: float
    seen: int
    transitions: Ints
    by_size: Ints = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))

    def __add__(self, other: MeasuredTable) -> MeasuredTable:
        """The figures of a table of which each has other cells."""
        return MeasuredTable(
            self.squares + other.squares,
            self.seen + other.seen,
            self.transitions + other.transitions,
            np.concatenate([self.by_size, other.by_size]),
        )


def public_report(
    method: Mapping[str, Any],
    support: Support,
    plan: TablePlan,
    every: FinestCells,
    memory: FinestCells,
    searched: SearchedPopulation,
    key: bytes,
    truth: Array | None = None,
) -> PublicReport:
    """Measure typical errors over the cells that hold or show anybody, and make them coarse."""
    if truth is None:
        truth = true_counts(plan, every.codes, every.counts)
    kinds: dict[int, list[MeasuredTable]] = {}
    drawn = Drawn(plan.dataset, plan.variables, every, memory, support.base)
    for number, table in enumerate(plan.tables):
        check_stop()
        report_progress("measuring errors", 0.8 * number / len(plan.tables))
        if len(table.levels) <= plan.max_variables:
            measured = drawn.controlled(table, truth, searched.errors)
            kinds.setdefault(max(len(table.levels), 1), []).append(measured)
    return measured_report(method, support, drawn, kinds, largest_error(plan, searched.errors), key)


def measured_report(
    method: Mapping[str, Any],
    support: Support,
    drawn: Drawn,
    kinds: dict[int, list[MeasuredTable]],
    largest: int,
    key: bytes,
) -> PublicReport:
    """The public report, from the figures of controlled tables by their variables and from drawn tables."""
    every, memory = drawn.every, drawn.memory
    controlled = max(kinds)
    last = min(controlled + _BEYOND, len(drawn.variables))
    # Only some tables of more variables are controlled; those of still more have smaller cells and errors.
    for variables in range(controlled + 1, last + 1):
        kinds[variables] = list(drawn.tables(variables))
    grouped = {v: list(drawn.tables(v, own_group=True)) for v in kinds}
    occupied = every.counts > 0
    changed = float((memory.counts != every.counts)[occupied].mean()) if occupied.any() else 0.5
    secret = derived(key, "public report")
    return report_of(method, support, changed, kinds, grouped, secret, largest)


def largest_error(plan: TablePlan, errors: Array) -> int:
    """The largest error of a controlled table; single finest cells are none."""
    return int(np.abs(errors[plan.layout.cell_kind != KINDS.index("single")]).max(initial=0))


def report_of(
    method: Mapping[str, Any],
    support: Support,
    changed: float,
    kinds: Mapping[int, Sequence[MeasuredTable]],
    grouped: Mapping[int, Sequence[MeasuredTable]],
    secret: bytes,
    largest: int = 0,
    fewest: int = FEWEST_BY_CLASS,
) -> PublicReport:
    """The public report of measured figures; everything that comes from true counts is made coarse here.

    Rates over fewer cells than ``fewest`` are not stated.
    """
    errors = _coarse_errors(kinds, secret, "error", 0.5)
    group_errors = _coarse_errors(grouped, secret, "group error", GROUP_ERROR_STEP)
    most = int(method["max_variables"])
    controlled = [one for k in kinds if k <= most for one in kinds[k]]
    free = [one for k in kinds if k > most for one in kinds[k]]
    free += [one for tables in grouped.values() for one in tables]
    step = 1 if support.small_only else support.base
    nearest = nearest_rates(support.base, step)
    return PublicReport(
        method=dict(method),
        support=support,
        changed=coarse_share(changed, secret, "changed"),
        errors=errors,
        group_errors=group_errors,
        rates=_coarse_rates((controlled,), nearest, secret, "rates", fewest),
        free_rates=_coarse_rates((free, controlled), nearest, secret, "free rates", fewest),
        margins=_coarse_margins(kinds, errors, secret, "margin", MARGIN_STEP),
        group_margins=_coarse_margins(
            grouped, group_errors, secret, "group margin", GROUP_MARGIN_STEP
        ),
        largest=coarse_largest(largest, LARGEST * support.base, secret),
    )


def _coarse_margins(
    kinds: Mapping[int, Sequence[MeasuredTable]],
    errors: Mapping[int, float],
    secret: bytes,
    name: str,
    step: float,
) -> Margins:
    """A margin of error for each kind of table and each size of numbers, which most cells of that size keep.

    Sizes of which a kind has few cells are joined with the next kind. Within them the margin covers every
    kind that has cells enough. No margin is smaller than that of smaller numbers, or of fewer variables. Where
    no size of any kind has cells enough, it is twice the typical error.
    """
    last = max(kinds)
    sizes = range(len(MARGIN_ENDS) + 1)
    waiting: list[list[Array]] = [[] for _ in sizes]
    stated: dict[int, list[float | None]] = {}
    for variables in sorted(kinds):
        rows = np.concatenate(
            [np.zeros((0, 3), np.int64), *(one.by_size for one in kinds[variables])]
        )
        stated[variables] = [None for _ in sizes]
        for size in sizes:
            waiting[size].append(rows[rows[:, 0] == size])
            joined = np.concatenate(waiting[size])
            if joined[:, 2].sum() < (FEWEST_COVERED if variables == last else FEWEST):
                continue
            groups = [g for g in waiting[size] if g[:, 2].sum() >= FEWEST_COVERED]
            most = max([_within(joined, _AIMED), *(_within(group, COVERED) for group in groups)])
            stated[variables][size] = coarse_error(most, secret, f"{name} {variables} {size}", step)
            waiting[size] = []
    later = [0.0 for _ in sizes]
    for variables in sorted(kinds, reverse=True):
        later = [one or after for one, after in zip(stated[variables], later, strict=True)]
        # A size of which there are too few cells has the margin of the next larger one.
        for size in reversed(sizes[:-1]):
            later[size] = later[size] or later[size + 1]
        widest = 0.0 if any(later) else step * ceil(2 * of_kind(errors, variables) / step)
        stated[variables] = [max(widest, *later[: size + 1]) for size in sizes]
    least = np.ones(len(sizes))
    margins: dict[int, tuple[int, ...]] = {}
    for variables in sorted(kinds):
        least = np.maximum(least, np.array(stated[variables], dtype=np.float64))
        margins[variables] = tuple(ceil(margin) for margin in least)
    return margins


def _within(rows: Array, share: float) -> int:
    """The error that at least this share of the cells keeps."""
    order = np.argsort(rows[:, 1], kind="stable")
    cells = np.cumsum(rows[order, 2])
    return int(rows[order[np.searchsorted(cells, share * cells[-1])], 1])


def coverage_row(true: Array, error: Array) -> Ints:
    """Cells of a table that hold or show anybody: rows of a class of true counts, one of shown numbers, an
    error, and cells."""
    true, error = true.astype(np.int64), error.astype(np.int64)
    seen = (true > 0) | (error != 0)
    true, error = true[seen], error[seen]
    far = np.abs(error)
    reach, sizes = int(far.max(initial=0)) + 1, len(MARGIN_ENDS) + 1
    classes = margin_class(true) * sizes + margin_class(true + error)
    cells = np.bincount(classes * reach + far)
    held = np.flatnonzero(cells)
    classes, far = np.divmod(held, reach)
    return np.stack([*np.divmod(classes, sizes), far, cells[held]], axis=1)


def coverage_rows(plan: TablePlan, errors: Array, truth: Array) -> dict[int, Ints]:
    """The rows of all controlled tables by up to so many variables, for each number of variables."""
    rows: dict[int, list[Ints]] = {}
    for table in plan.tables:
        still_working()
        places = table.places().ravel()
        row = coverage_row(truth[places], errors[places])
        rows.setdefault(max(len(table.levels), 1), []).append(row)
    return {v: np.concatenate(many) for v, many in rows.items() if v <= plan.max_variables}


def coverage_of(rows: Mapping[int, Ints], report: PublicReport) -> tuple[Coverage, ...]:
    """Measure the stated margins: for every number of variables, and every size of true counts."""
    ends = (0, *MARGIN_ENDS)
    coverage = []
    for variables in sorted(rows):
        size, shown, far, cells = rows[variables].T
        margin = np.array([report.margin(variables, shown=e) for e in ends])
        within = np.where(far <= margin[shown], cells, 0)
        for number in range(len(ends)):
            here = size == number
            held = int(cells[here].sum())
            if held:
                most = (*ends[1:], None)[number]
                kept = int(within[here].sum())
                coverage.append(Coverage(variables, ends[number], most, held, kept))
    return tuple(coverage)


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
    kinds: Sequence[Sequence[MeasuredTable]], nearest: Rates, secret: bytes, name: str, fewest: int
) -> Rates:
    """How often counts of each class err by how much, over the cells of many tables.

    Where a class has few cells, those of the next kind stand in, which err less. Where these are few too,
    nothing is measured: the row is that of numbers next to the true count. Neither understates what a reader
    learns.
    """
    rows = []
    for count_class, least in enumerate(nearest):
        rows.append(least)
        for tables in kinds:
            cells = np.array([table.transitions[count_class] for table in tables]).sum(axis=0)
            if cells.sum() >= fewest:
                shift = keyed_shift(secret, f"{name} {count_class}")
                rows[count_class] = coarse_rates(cells / cells.sum(), shift)
                break
    return tuple(rows)


def measured_tables(
    every: FinestCells, memory: FinestCells, base: int, max_variables: int
) -> tuple[dict[int, list[MeasuredTable]], dict[int, list[MeasuredTable]]]:
    """Figures of all tables of up to so many variables, and of drawn ones with own groups, by variables."""
    plan = plan_tables(every.dataset, max_variables, ())
    drawn = Drawn(plan.dataset, plan.variables, every, memory, base)
    kinds: dict[int, list[MeasuredTable]] = {}
    for number, table in enumerate(plan.tables):
        check_stop()
        report_progress("measuring errors", 0.8 * number / len(plan.tables))
        if table.levels:
            groups = {level.variable: level.group_of for level in table.levels}
            kinds.setdefault(len(table.levels), []).append(drawn._measured(groups))
    return kinds, {v: list(drawn.tables(v, own_group=True)) for v in kinds}


def tables_of_a_kind(
    plan: TablePlan, every: FinestCells, memory: FinestCells, base: int, variables: int
) -> list[MeasuredTable]:
    """Figures of tables at levels drawn for each variable, as the public report measures them."""
    drawn = Drawn(plan.dataset, plan.variables, every, memory, base)
    return list(drawn.tables(variables))


@compiled
def _number_cells(
    codes: Array, rows: Array, group: Array, sizes: Array, begin: Whole, numbers: Array
) -> None:  # pragma: no cover
    """The cell of a table in which each finest cell from ``begin`` on lies."""
    for i in range(numbers.size):
        number = np.uint64(0)
        for v in range(rows.size):
            number = number * sizes[v] + np.uint64(group[v, codes[rows[v], begin + i]])
        numbers[i] = number


@compiled
def _add_up(
    numbers: Array, counts: Array, numbers_shown: Array, true: Array, shown: Array
) -> None:  # pragma: no cover
    """True and shown counts of the cells of a table."""
    for i in range(numbers.size):
        true[numbers[i]] += counts[i]
        shown[numbers[i]] += numbers_shown[i]


class Drawn:
    """Tables that are drawn: which ones is the same for all records and no secret."""

    def __init__(
        self,
        dataset: Dataset,
        variables: Sequence[str],
        every: FinestCells,
        memory: FinestCells,
        base: int,
    ) -> None:
        self.variables, self.every, self.memory, self.base = variables, every, memory, base
        self.rows = {v.name: row for row, v in enumerate(dataset.variables)}
        self.levels = controlled_levels(dataset)
        self.combinations = Combinations.of(dataset)
        self._grouped: dict[int, tuple[Ints | None, list[Category]]] = {}

    def tables(self, variables: int, *, own_group: bool = False) -> Iterator[MeasuredTable]:
        """Figures of drawn tables; with ``own_group`` one variable has two groups of codes drawn at random."""
        rng = np.random.default_rng(variables + 100 * own_group)
        for _ in range(_DRAWN):
            check_stop()
            report_progress("measuring errors", 0.8 if not own_group else 0.9)
            chosen = rng.permutation(len(self.variables))[:variables]
            groups: dict[str, Ints] = {}
            for index, variable in enumerate(self.variables[c] for c in chosen):
                levels = self.levels[variable]
                group_of = levels[int(rng.integers(len(levels)))].group_of
                if own_group and index == 0:
                    group_of = rng.integers(0, 2, group_of.size)
                groups[variable] = group_of
            yield self._measured(groups)

    def controlled(self, table: ControlledTable, truth: Array, errors: Array) -> MeasuredTable:
        """Figures of a controlled table."""
        places = table.places().ravel()
        groups = {level.variable: level.group_of for level in table.levels}
        return self.figures(groups, truth[places], errors[places])

    def _measured(self, groups: Mapping[str, Ints]) -> MeasuredTable:
        rows = np.array([self.rows[variable] for variable in groups], dtype=np.int64)
        sizes = np.array([int(group_of.max()) + 1 for group_of in groups.values()], dtype=np.uint64)
        group = np.zeros((rows.size, max(g.size for g in groups.values())), dtype=np.uint32)
        for row, group_of in enumerate(groups.values()):
            group[row, : group_of.size] = group_of
        cells = prod(int(size) for size in sizes)

        def numbers_of(part: slice) -> Words:
            numbers = np.empty(part.stop - part.start, dtype=np.uint64)
            _number_cells(self.every.codes, rows, group, sizes, part.start, numbers)
            return numbers

        both = self.every.counts, self.memory.counts
        # Sorting takes longer than laying out, where there are more finest cells than cells of the table.
        if cells <= max(_MOST_CELLS, min(len(self.every), _MOST_LAID_OUT)):
            true, shown = np.zeros((2, cells), dtype=np.int64)
            for part in parts_of(len(self.every)):
                _add_up(numbers_of(part), both[0][part], both[1][part], true, shown)
            return self.figures(groups, true, shown - true)
        found = []
        for place, numbers in by_number(numbers_of, len(self.every)):
            order = np.argsort(numbers, kind="stable")
            numbers, place = numbers[order], place[order]
            first = np.flatnonzero(np.r_[numbers.size > 0, numbers[1:] != numbers[:-1]])
            true, shown = (np.add.reduceat(counts[place], first) for counts in both)
            found.append(self._figures(true, shown - true))
        return self._of_possible(groups, reduce(add, found))

    def figures(self, groups: Mapping[str, Ints], true: Array, error: Array) -> MeasuredTable:
        """The figures of one table, from the cells that may hold or show anybody; the others are empty and
        show 0."""
        return self._of_possible(groups, self._figures(true, error))

    def _of_possible(self, groups: Mapping[str, Ints], found: MeasuredTable) -> MeasuredTable:
        """The figures with the empty cells that show 0."""
        found.transitions[0, 0] += self._possible(groups) - found.seen
        return found

    def _figures(self, true: Array, error: Array) -> MeasuredTable:
        reach = int(max(error.max(initial=0), -error.min(initial=0))) + 1
        transitions = np.zeros(_CLASSES[0] * _CLASSES[1], dtype=np.int64)
        cells = np.zeros((len(MARGIN_ENDS) + 1) * reach, dtype=np.int64)
        squares = held = 0
        for few in parts_of(true.size):
            seen = (true[few] > 0) | (error[few] != 0)
            some, apart = (a[few][seen].astype(np.int64) for a in (true, error))
            classes = size_class(some, self.base) * _CLASSES[1] + error_class(apart, self.base)
            transitions += np.bincount(classes, minlength=transitions.size)
            cells += np.bincount(margin_class(some) * reach + np.abs(apart), minlength=cells.size)
            squares, held = squares + int((apart**2).sum()), held + some.size
        rows = np.flatnonzero(cells)
        by_size = np.stack([*np.divmod(rows, reach), cells[rows]], axis=1)
        return MeasuredTable(float(squares), held, transitions.reshape(_CLASSES), by_size)

    def _possible(self, groups: Mapping[str, Ints]) -> int:
        """How many cells of a table can hold anybody."""
        return self.combinations.cells(
            [(variable, self._categories(group_of)) for variable, group_of in groups.items()]
        )

    def _categories(self, group_of: Ints) -> list[Category]:
        """The groups of a level; many tables share one, and it may have very many."""
        known, categories = self._grouped.get(id(group_of), (None, []))
        if known is not group_of:
            order = np.argsort(group_of, kind="stable")
            ends = np.cumsum(np.bincount(group_of)).tolist()
            categories = [
                Category(str(g), str(g), tuple(order[low:high].tolist()))
                for g, (low, high) in enumerate(pairwise([0, *ends]))
            ]
            self._grouped[id(group_of)] = (group_of, categories)
        return categories
