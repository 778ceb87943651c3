"""Which finest cells must show a count, so that sums that are tied to counts lose less.

If existence is secret, other cells carry the values of records whose cell shows 0. A third of the cells with
one unit show the base anyway, so this module chooses those with the largest values for it, as far as the counts
of every category allow. One in ten of them is left to chance, so that a large sum beside the smallest count
does not prove that its firm is there.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Floats, Ints, Words
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.model.records import Records
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.start import cell_numbers, derived

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
