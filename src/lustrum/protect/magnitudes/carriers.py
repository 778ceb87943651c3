"""Which cell carries the values of a record, so that sums reveal no more than the counts beside them.

A finest cell that shows a count of 0 may hold one or two units, and one that shows the smallest number may hold
none. Plain sums would reveal both. Where the existence of units is secret, the protected values of a record
whose cell shows 0 are therefore *carried* by a near cell that shows somebody, and every cell that shows
somebody carries at least one record. Then a finest cell has a sum if and only if it shows a count.

Records are carried with all their measures. One that is much larger than usual is cut into equal pieces, so
that no single cell has to carry all of it. Pieces on their own could be recognised by their equal ratios, so
every cell also carries at least one whole record. Every published sum is therefore a sum of protected records
and of equal pieces of them, and the promises that hold for every set of records hold for it. Which cell carries
what follows from protected values, protected counts, codes and the key alone, never from true values.

A third of the cells with one unit show a count anyway. So that sums lose less, *held* cells are those with the
largest values, as far as the counts of every category allow. One in ten of them is left to chance, so that a
large sum beside the smallest count does not prove that its firm is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from math import prod, sqrt

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array, Floats, Ints, Mask, Words
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.model.records import Records
from lustrum.protect.magnitudes.kernels import add_amounts, carry
from lustrum.protect.population.search.layout import TablePlan
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.start import cell_numbers, derived, find
from lustrum.runtime.stop import check_stop, report_progress

_CANDIDATES = 32
_FROM_ONE_NEIGHBOURHOOD = 6
_USUAL = 4
"""A carried record is cut into pieces of about so many average contributions each,"""
_PIECES = 32
"""but not into more than this."""
_COARSENED = 2
"""In how many variables at once neighbours differ, before any cell is a neighbour."""
_CLOSE = 0.05
"""Relative errors below this cost as squares do."""


def own_places(dataset: Dataset, codes: Array, shown: FinestCells) -> Ints:
    """The place of every record's own cell among the cells that show somebody; -1 where it shows 0."""
    return _cells_of(shown, cell_numbers(dataset, codes))


def _cells_of(shown: FinestCells, numbers: Words) -> Ints:
    """The places of cells, given by number, among those that show somebody; -1 where they show 0."""
    known = cell_numbers(shown.dataset, shown.codes)
    order = np.argsort(known, kind="stable")
    index, there = find(known[order], numbers)
    out = np.full(numbers.size, -1, dtype=np.int64)
    out[there] = order[index[there]]
    return out


@dataclass(frozen=True, eq=False, repr=False)
class Carried:
    """Records and pieces of records, with the cell that carries each. Confidential.

    ``k`` is piece number ``piece[k]`` of the ``pieces[k]`` into which the record ``record[k]`` was cut, and
    ``carrier[k]`` is the cell that carries it, among those that show somebody.
    """

    record: Ints
    piece: Ints
    pieces: Ints
    carrier: Ints

    def __repr__(self) -> str:
        return "Carried(hidden)"

    def values(self, whole: Ints) -> Ints:
        return piece_values(whole[self.record], self.piece, self.pieces)


@dataclass(frozen=True, eq=False, repr=False)
class CarriedRecords:
    """Records, or pieces of them, with the codes of the cell to which each is added. Confidential."""

    record: Ints
    codes: Array
    values: Mapping[str, Ints]

    def __repr__(self) -> str:
        return "CarriedRecords(hidden)"


@dataclass(frozen=True, eq=False, repr=False)
class KeptPlaces:
    """Which cells carried the records of an earlier release: ``record[k]`` was carried by cell number
    ``cell[k]``.

    A record with several rows was cut into that many pieces, in this order. Confidential.
    """

    record: Ints
    cell: Words

    def __repr__(self) -> str:
        return "KeptPlaces(hidden)"

    @classmethod
    def nothing(cls) -> KeptPlaces:
        """No earlier release."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))

    def places(self, own_cells: Ints, shown: FinestCells) -> dict[int, Ints]:
        """The earlier cells of every record that can stay, which is where all of them still show somebody.

        A record whose own cell shows somebody again returns to it, unless it was carried elsewhere because its
        cell could spare it.
        """
        cells_of: dict[int, list[int]] = {}
        for record, cell in zip(self.record, _cells_of(shown, self.cell), strict=True):
            cells_of.setdefault(int(record), []).append(int(cell))
        return {
            record: np.array(cells, dtype=np.int64)
            for record, cells in cells_of.items()
            if min(cells) >= 0
            and (len(cells) == 1 or own_cells[record] < 0)
            and cells != [own_cells[record]]
        }


def piece_values(whole: Ints, piece: Ints, pieces: Ints) -> Ints:
    """Equal pieces of whole numbers: they differ by one unit at most and add up.

    >>> piece_values(np.array([7, 7, 7]), np.array([0, 1, 2]), np.array([3, 3, 3])).tolist()
    [2, 2, 3]
    """
    each, left = whole // pieces, whole % pieces
    # The last pieces are larger by one; computed this way, no product exceeds 64 bits.
    return np.asarray(each + (piece >= pieces - left))


def carried_by(
    plan: TablePlan,
    codes: Array,
    values: Ints,
    identity: Words,
    shown: FinestCells,
    key: bytes,
    *,
    sweeps: int,
    earlier_places: KeptPlaces | None = None,
) -> Carried:
    """Which cells carry the records: their own cell if it shows somebody, otherwise near cells.

    ``codes`` has a row for every variable of the dataset, ``values`` a column for every measure, and
    ``identity`` a lasting number for every record. Records that ``earlier_places`` names stay where the
    earlier release put them.
    """
    dataset = shown.dataset
    own_cells = own_places(dataset, codes, shown)
    if own_cells.size and not len(shown):
        raise InputError(
            "No cell of the protected population shows anybody, so that no cell can carry the sums; take a "
            "smaller base, or state that existence is public."
        )
    word = scramble(derived(key, "carrier"), identity)
    near = list(_neighbourhoods(dataset))
    # A record without any value adds nothing to a sum, so any cell may carry it and none is covered by it.
    valued = (values != 0).any(axis=1)
    carriers = np.where(valued, own_cells, np.maximum(own_cells, 0))
    stay = {} if earlier_places is None else earlier_places.places(own_cells, shown)
    settled = np.zeros(own_cells.size, dtype=np.bool_)
    settled[list(stay)] = True
    cut_before = np.ones(own_cells.size, dtype=np.int64)
    for number, cells in stay.items():
        carriers[number] = cells[0]
        cut_before[number] = cells.size
    holds = valued & (carriers >= 0) & (cut_before == 1)
    holders = np.bincount(carriers[holds], minlength=len(shown))
    _cover(near, dataset, codes, word, shown, carriers, valued & ~settled, holders, key)
    pieces = np.where(carriers < 0, _pieces(values), cut_before)
    record = np.repeat(np.arange(own_cells.size), pieces)
    piece = np.arange(record.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    pieces, own_cells, carriers = pieces[record], own_cells[record], carriers[record]
    for number, cells in stay.items():
        first = np.searchsorted(record, number)
        carriers[first : first + cells.size] = cells
    amounts = piece_values(values[record], piece[:, None], pieces[:, None])
    codes = codes[:, record]
    word = scramble(derived(key, "piece"), word[record] + piece.astype(np.uint64))
    free = np.flatnonzero((own_cells < 0) & valued[record] & ~settled[record])
    free = free[np.argsort(word[free], kind="stable")]
    candidates = _near(near, dataset, codes[:, free], word[free], shown.codes, key)
    waiting = carriers[free] < 0
    carriers[free[waiting]] = candidates[waiting, 0]
    whole = pieces == 1
    np.add.at(holders, carriers[free[waiting & whole[free]]], 1)
    search = _CarrierSearch(plan, codes, amounts, shown, own_cells, free, candidates, whole)
    search.settle(carriers, holders, sweeps)
    return Carried(record, piece, pieces, carriers)


def _pieces(values: Ints) -> Ints:
    """The number of pieces for every record, by its largest protected value."""
    size = np.abs(values).astype(np.float64)
    usual = size.sum(axis=0) / np.maximum((size > 0).sum(axis=0), 1)
    most = (size / np.maximum(usual, 1.0)).max(axis=1, initial=0.0) / _USUAL
    return np.asarray(np.clip(np.ceil(most), 1, _PIECES), dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _CarrierSearch:
    """Choose among the near cells of every free record so that tables of protected sums stay close."""

    plan: TablePlan
    codes: Array
    amounts: Ints
    shown: FinestCells
    own_cell: Ints
    free: Ints
    candidates: Array
    whole: Mask

    def settle(self, carriers: Ints, holders: Ints, sweeps: int) -> None:
        """Move free records and pieces in place; ``holders`` counts the whole records of every cell."""
        plan = self.plan
        rows = plan.rows()
        record_codes = np.ascontiguousarray(self.codes[rows].T.astype(np.uint32))
        cell_codes = np.ascontiguousarray(self.shown.codes[rows].T.astype(np.uint32))
        amounts = self.amounts.astype(np.float64)
        size = np.zeros((plan.cells, amounts.shape[1]))
        add_amounts(plan.layout, record_codes, np.abs(amounts), size)
        # Empty cells have no relative error; their error is compared with an average contribution.
        usual = np.abs(amounts).sum(axis=0) / np.maximum((amounts != 0).sum(axis=0), 1)
        scale = 1.0 / np.maximum(size + usual, 1.0)
        errors = np.zeros_like(size)
        away = np.flatnonzero(carriers != self.own_cell)
        add_amounts(plan.layout, record_codes[away], -amounts[away], errors)
        add_amounts(plan.layout, cell_codes[carriers[away]], amounts[away], errors)
        prices = _prices(plan)[:, None]
        for sweep in range(sweeps):
            check_stop()
            report_progress("tying sums to counts", sweep / sweeps)
            weights = prices * scale * scale / np.maximum(np.abs(errors) * scale, _CLOSE)
            carry(
                plan.layout,
                cell_codes,
                amounts,
                self.whole,
                self.free,
                self.candidates,
                carriers,
                holders,
                weights,
                errors,
            )
        report_progress("tying sums to counts", 1.0)


def _prices(plan: TablePlan) -> Floats:
    """The cost of a relative error: much higher in tables of few cells, which carrying need not change."""
    prices = np.zeros(plan.cells)
    for table in plan.tables:
        places = table.places().ravel()
        fewer = plan.cells / places.size
        prices[places] = fewer * sqrt(sqrt(fewer))  # to the power 5/4, the same everywhere
    return prices


_Way = tuple[tuple[int, Fraction], bool, tuple[str, Ints | None]]
"""One level of a variable: how many classes of numbers it gives up and how many times fewer groups it has;
whether it is coarser than the finest; and its name and groups."""


@dataclass(frozen=True, eq=False)
class _Neighbourhood:
    """One definition of near: for every variable the groups in which near cells agree, or None."""

    groups: tuple[tuple[str, Ints | None], ...]
    keeps_classes: bool


def _neighbourhoods(dataset: Dataset) -> Iterator[_Neighbourhood]:
    """Definitions of near, nearest first: those that tell apart the most groups.

    Classes of a number, such as size classes, are given up last: a value outside the class of the cell that
    carries it would reveal that it came from elsewhere. Losses are compared as fractions, so that equal ones
    tie on every machine.
    """
    levels = controlled_levels(dataset)
    candidates: list[tuple[tuple[int, Fraction], int, tuple[tuple[str, Ints | None], ...]]] = []
    ways: list[list[_Way]] = []
    for name, var_levels in levels.items():
        dear = int(bool(dataset.variable(name).edges))
        finest = var_levels[0].size
        of_one: list[_Way] = [
            (
                (0 if level.finest else dear, Fraction(finest, level.size)),
                not level.finest,
                (name, level.group_of),
            )
            for level in var_levels
        ]
        of_one.append(((dear, Fraction(finest)), True, (name, None)))
        ways.append(of_one)
    for number, chosen in enumerate(_few_coarser(ways)):
        classes = sum(lost[0] for lost, _, _ in chosen)
        fewer = prod((lost[1] for lost, _, _ in chosen), start=Fraction(1))
        candidates.append(((classes, fewer), number, tuple(groups for _, _, groups in chosen)))
    for (classes, _), _, groups in sorted(candidates, key=lambda one: one[:2]):
        yield _Neighbourhood(groups, classes == 0)


def _few_coarser(ways: Sequence[Sequence[_Way]]) -> Iterator[tuple[_Way, ...]]:
    """All choices with few coarser variables, then classes alone, then no variable at all."""
    size = 1
    for of_one in ways:
        size *= len(of_one)
    if size <= 512:
        yield from product(*ways)
        return
    for chosen in product(*([of_one[0], of_one[-1]] for of_one in ways)):
        if sum(coarser for _, coarser, _ in chosen) <= _COARSENED:
            yield chosen
    yield tuple(of_one[0] if of_one[-1][0][0] else of_one[-1] for of_one in ways)
    yield tuple(of_one[-1] for of_one in ways)


def _groups(groups: Sequence[tuple[str, Ints | None]], dataset: Dataset, codes: Array) -> Words:
    """The group of every cell in one neighbourhood."""
    row = {v.name: i for i, v in enumerate(dataset.variables)}
    number = np.zeros(codes.shape[1], dtype=np.uint64)
    for name, group_of in groups:
        if group_of is not None:
            number = number * np.uint64(int(group_of.max()) + 1)
            number += group_of[codes[row[name]]].astype(np.uint64)
    return number


def _near(
    places: Sequence[_Neighbourhood],
    dataset: Dataset,
    codes: Array,
    word: Words,
    others: Array,
    key: bytes,
) -> Array:
    """For every cell of ``codes`` some near cells among ``others``, nearest first; repeats fill the rest.

    Several of ``others`` may be in one cell: those keep the order in which they come, which callers take from
    the secret words of the records.
    """
    candidates = np.full((codes.shape[1], _CANDIDATES), -1, dtype=np.int32)
    filled = np.zeros(codes.shape[1], dtype=np.int64)
    shuffled = np.argsort(
        scramble(derived(key, "near"), cell_numbers(dataset, others)), kind="stable"
    )
    waiting = np.arange(codes.shape[1])
    for step, one in enumerate(places):
        if not one.keeps_classes:
            waiting = waiting[filled[waiting] == 0]
        if not waiting.size:
            break
        check_stop()
        group = _groups(one.groups, dataset, others)[shuffled]
        order = np.argsort(group, kind="stable")
        group, row = group[order], shuffled[order]
        mine = _groups(one.groups, dataset, codes[:, waiting])
        first = np.searchsorted(group, mine)
        size = np.searchsorted(group, mine, side="right") - first
        begin = (word[waiting] >> np.uint64(step % 32)) % np.maximum(size, 1).astype(np.uint64)
        for number in range(_FROM_ONE_NEIGHBOURHOOD):
            has = (number < size) & (filled[waiting] < _CANDIDATES)
            at = first + (begin.astype(np.int64) + number) % np.maximum(size, 1)
            take = waiting[has]
            candidates[take, filled[take]] = row[at[has]]
            filled[take] += 1
        waiting = waiting[filled[waiting] < _CANDIDATES]
    np.copyto(candidates, candidates[:, :1].copy(), where=candidates < 0)
    return candidates


def _cover(
    places: Sequence[_Neighbourhood],
    dataset: Dataset,
    codes: Array,
    word: Words,
    shown: FinestCells,
    carriers: Ints,
    valued: Mask,
    holders: Ints,
    key: bytes,
) -> None:
    """Give every cell that shows somebody a record to carry, beginning with records whose own cell shows 0."""
    # In the last round any record will do, near or not.
    for donors in ("movers", "others", "anybody"):
        empty = np.flatnonzero(holders == 0)
        if not empty.size:
            return
        several = (carriers >= 0) & (holders[np.maximum(carriers, 0)] > 1)
        waiting = carriers < 0
        allowed = {"movers": waiting, "others": several, "anybody": waiting | several}[donors]
        pool = np.flatnonzero(valued & allowed)
        if not pool.size:
            continue
        pool = pool[np.argsort(word[pool], kind="stable")]
        cell_word = scramble(derived(key, "cover"), cell_numbers(dataset, shown.codes[:, empty]))
        near = _near(places, dataset, shown.codes[:, empty], cell_word, codes[:, pool], key)
        taken = np.zeros(pool.size, dtype=np.bool_)
        rest = iter(range(pool.size if donors == "anybody" else 0))
        for row in np.argsort(cell_word, kind="stable"):
            options = [int(c) for c in near[row] if c >= 0]
            for choice in chain(options, rest):  # what one cell passes over no other can take
                record = int(pool[choice])
                if taken[choice] or (carriers[record] >= 0 and holders[carriers[record]] < 2):
                    continue
                taken[choice] = True
                if carriers[record] >= 0:
                    holders[carriers[record]] -= 1
                carriers[record] = empty[row]
                holders[empty[row]] += 1
                break
    if (holders == 0).any():
        raise InputError(
            "More cells show somebody than there are records to carry sums; take a smaller share of empty "
            "cells ('empty_share'), or state that existence is public."
        )


_LEFT_TO_CHANCE = 10
_BUDGET = 0.4
"""Which part of the cells that would show their upper number in any case may be chosen."""


def held_cells(
    records: Records, measures: tuple[str, ...], cells: FinestCells, base: int, key: bytes
) -> Words:
    """Numbers of the occupied cells that are to show their upper number; from true values, so confidential."""
    dataset = records.dataset
    codes = np.stack([records.codes[v.name] for v in dataset.variables])
    numbers = cell_numbers(dataset, cells.codes)
    order = np.argsort(numbers, kind="stable")
    cell_of = order[np.searchsorted(numbers[order], cell_numbers(dataset, codes))]
    worth = np.zeros(len(cells))
    for name in measures:
        size = np.abs(records.numbers[name].astype(np.float64))
        if size.any():
            shares = np.bincount(cell_of, weights=size, minlength=len(cells)) / size.sum()
            worth = np.maximum(worth, shares)
    residue = cells.counts % base
    random_words = scramble(derived(key, "held"), cells.keys if cells.keys is not None else numbers)
    open_to_choice = (cells.counts < base) & (residue > 0) & (worth > 1.0 / max(len(records), 1))
    open_to_choice &= random_words % np.uint64(_LEFT_TO_CHANCE) != 0
    wanted = np.flatnonzero(open_to_choice)
    wanted = wanted[np.lexsort((random_words[wanted], -worth[wanted]))]
    groups, budget = _budgets(cells, residue / base)
    chosen = _within(groups[:, wanted], budget)
    return np.asarray(numbers[wanted[chosen]])


def _budgets(cells: FinestCells, rate: Floats) -> tuple[Ints, Floats]:
    """The category of every cell at every level, numbered, and how many cells of each may be chosen."""
    row = {v.name: i for i, v in enumerate(cells.dataset.variables)}
    groups, budgets, first = [], [], 0
    for name, levels in controlled_levels(cells.dataset).items():
        for level in levels:
            categories = level.group_of[cells.codes[row[name]]]
            groups.append(categories + first)
            budgets.append(_BUDGET * np.bincount(categories, weights=rate, minlength=level.size))
            first += level.size
    return np.stack(groups), np.concatenate(budgets)


def _within(groups: Ints, budget: Floats) -> Ints:
    """Take cells in order while every category of the cell has budget left."""
    left = budget.copy()
    chosen = []
    for cell in range(groups.shape[1]):
        categories = groups[:, cell]
        if (left[categories] >= 1.0).all():
            left[categories] -= 1.0
            chosen.append(cell)
    return np.array(chosen, dtype=np.int64)
