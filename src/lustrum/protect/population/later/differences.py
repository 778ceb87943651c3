"""Which cells show another number than in the release before, and how many of these have other records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model.arrays import Ints, Words
from lustrum.model.finest import FinestCells
from lustrum.protect.population.start import cell_numbers

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
