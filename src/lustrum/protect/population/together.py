"""What several releases of the same people reveal together.

A reader who assumes that the records did not change combines all: the parts of a cell, at the new variables,
lie within their own bounds, and their sum within the bounds that the earlier releases left. A cell that moved
by more than one step, or whose parts leave no count, has certainly changed, and the earlier numbers say nothing
about the new one.

Which cells show another number than in the release before, and how many of these have other records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Ints, Words
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.protect.population.start import cell_numbers
from lustrum.protect.population.support import Support


@dataclass(frozen=True, eq=False)
class Together:
    """Bounds of the last release's cells from all, the cells of the first that certainly changed, and those
    that differ."""

    low: Ints
    high: Ints
    changed: int
    differing: int = 0

    @property
    def pinned(self) -> int:
        """The number of cells of the second release with one count left."""
        return int((self.low == self.high).sum())

    def left(self) -> dict[int, int]:
        """How many cells have 1, 2, 3, ... counts left."""
        values, cells = np.unique(self.high - self.low + 1, return_counts=True)
        return {int(v): int(c) for v, c in zip(values, cells, strict=True)}

    def to_mapping(self) -> Mapping[str, Any]:
        """The figures as plain values."""
        return {
            "changed": self.changed,
            "differing": self.differing,
            "pinned": self.pinned,
            "left": self.left(),
        }


Bounds = tuple[Ints, Ints]


def together(
    earlier: FinestCells, later: FinestCells, support: Support, bounds: Bounds | None = None
) -> Together:
    """Join two releases; the later one has all variables of the earlier one, and perhaps more.

    ``bounds`` are what all releases up to the earlier one left for its cells, if there were several.
    """
    names = [v.name for v in later.dataset.variables]
    rows = [names.index(v.name) for v in earlier.dataset.variables]
    parents = np.union1d(
        cell_numbers(earlier.dataset, earlier.codes),
        cell_numbers(earlier.dataset, later.codes[rows]),
    )
    before = np.zeros(parents.size, dtype=np.int64)
    known = np.searchsorted(parents, cell_numbers(earlier.dataset, earlier.codes))
    before[known] = earlier.counts
    parent = np.searchsorted(parents, cell_numbers(earlier.dataset, later.codes[rows]))
    low, high = support.finest(later)

    def added(values: Ints) -> Ints:
        return np.bincount(parent, weights=values, minlength=parents.size).astype(np.int64)

    same = added(later.counts) == before
    least, most = added(low), added(high)
    unlisted = _possible_parts(earlier, later, rows, parents) - np.bincount(
        parent, minlength=parents.size
    )
    most = most + support.most_unlisted * unlisted
    parent_low, parent_high = support.bounds(before)
    if bounds is not None:
        parent_low[known], parent_high[known] = bounds
    joined_low = np.maximum(low, parent_low[parent] - (most[parent] - high))
    joined_high = np.minimum(high, parent_high[parent] - (least[parent] - low))
    possible = (least <= parent_high) & (most >= parent_low)
    if len(rows) == len(names):
        possible &= np.abs(added(later.counts) - before) <= support.base
    consistent = possible[parent]
    return Together(
        np.where(consistent, joined_low, low),
        np.where(consistent, joined_high, high),
        int((~possible).sum()),
        int((~same).sum()),
    )


def carried_bounds(
    earlier: FinestCells, later: FinestCells, support: Support, bounds: Bounds | None
) -> Bounds:
    """What all releases leave for the cells that the last one remembers, as long as their records stay."""
    names = [v.name for v in later.dataset.variables]
    rows = [names.index(v.name) for v in earlier.dataset.variables]
    old = cell_numbers(earlier.dataset, earlier.codes)
    new = cell_numbers(earlier.dataset, later.codes[rows])
    every = np.union1d(old, new)
    sums = np.zeros((2, every.size), dtype=np.uint64)
    assert earlier.keys is not None
    assert later.keys is not None
    for row, numbers, keys in zip(sums, (old, new), (earlier.keys, later.keys), strict=True):
        np.add.at(row, np.searchsorted(every, numbers), keys)
    stays = (sums[0] == sums[1])[np.searchsorted(every, new)]
    both = together(earlier, later, support, bounds)
    low, high = support.finest(later)
    return np.where(stays, both.low, low), np.where(stays, both.high, high)


def _possible_parts(
    earlier: FinestCells, later: FinestCells, rows: list[int], parents: npt.NDArray[np.uint64]
) -> Ints:
    """How many cells of the later release that can be occupied lie in each cell of the earlier one."""
    codes = np.zeros((len(later.dataset.variables), parents.size), dtype=np.int64)
    rest = parents.copy()
    for variable, row in reversed(list(zip(earlier.dataset.variables, rows, strict=True))):
        size = np.uint64(len(variable.codes))
        codes[row] = (rest % size).astype(np.int64)
        rest = rest // size
    new = [i for i in range(codes.shape[0]) if i not in rows]
    sizes = [range(len(later.dataset.variables[i].codes)) for i in new]
    parts = np.zeros(parents.size, dtype=np.int64)
    for combination in product(*sizes):
        codes[new] = np.array(combination, dtype=np.int64)[:, None]
        parts += possible_cells(later.dataset, codes)
    return parts


FEWEST_DIFFERENT = 20
"""Odds are held among so many cells that differ or more: what is right of fewer may be chance."""


@dataclass(frozen=True)
class NumberChange:
    """Cells that went from one number to another, in classes: numbers of 3 bases and more are one."""

    before: int
    after: int
    cells: int
    changed: int


@dataclass(frozen=True)
class Differences:
    """Cells that differ, those of them with other records, and cells that moved by more than one step.

    ``certain`` cells have other records for sure: no cell whose records stayed moves so far.
    """

    cells: int = 0
    changed: int = 0
    certain: int = 0
    steps: tuple[NumberChange, ...] = ()

    def beyond(self, odds: float, base: int) -> list[NumberChange]:
        """Kinds of cells that moved by one step, and of which more than these odds have other records."""
        return [
            step
            for step in self.steps
            if abs(step.after - step.before) <= base and step.changed > odds * step.cells
        ]

    def reveals(self, odds: float, base: int) -> tuple[int, int] | None:
        """Cells that differ, and those of them with other records, where these are beyond the odds.

        A single kind of cells decides, or all that differ together, those that moved further among them.
        """
        beyond = [step for step in self.beyond(odds, base) if step.cells >= FEWEST_DIFFERENT]
        if beyond:
            worst = max(beyond, key=lambda step: step.changed / step.cells)
            return worst.cells, worst.changed
        if self.cells >= FEWEST_DIFFERENT and self.changed > odds * self.cells:
            return self.cells, self.changed
        return None

    def to_mapping(self) -> dict[str, Any]:
        """The figures as plain values, for the agency's report."""
        return {
            "cells": self.cells,
            "changed": self.changed,
            "certain": self.certain,
            "steps": [vars(step) for step in self.steps],
        }


def differences(previous: FinestCells | None, memory: FinestCells, base: int) -> Differences:
    """Compare what two releases remember, at the variables of the earlier one."""
    if previous is None or previous.keys is None or memory.keys is None:
        return Differences()
    names = [v.name for v in memory.dataset.variables]
    rows = [names.index(v.name) for v in previous.dataset.variables]
    old = cell_numbers(previous.dataset, previous.codes)
    new = cell_numbers(previous.dataset, memory.codes[rows])
    every = np.union1d(old, new)
    before, keys_before = _added(every, old, previous.counts, previous.keys)
    after, keys_after = _added(every, new, memory.counts, memory.keys)
    differ, changed = before != after, keys_before != keys_after
    top = 3 * base
    pairs = np.stack([np.minimum(before, top), np.minimum(after, top)])[:, differ]
    steps = []
    for one, two in np.unique(pairs, axis=1).T.tolist():
        here = differ & (np.minimum(before, top) == one) & (np.minimum(after, top) == two)
        steps.append(NumberChange(one, two, int(here.sum()), int((here & changed).sum())))
    return Differences(
        int(differ.sum()),
        int((differ & changed).sum()),
        int((np.abs(after - before) > base).sum()),
        tuple(steps),
    )


def _added(every: Words, numbers: Words, counts: Ints, keys: Words) -> tuple[Ints, Words]:
    index = np.searchsorted(every, numbers)
    sums = np.zeros(every.size, dtype=np.uint64)
    np.add.at(sums, index, keys)
    return np.bincount(index, weights=counts, minlength=every.size).astype(np.int64), sums
