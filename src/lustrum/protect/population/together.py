"""What two releases of the same people reveal together.

A reader who assumes that the records did not change combines both: the parts of a cell, at the new variables,
lie within their own bounds, and their sum within the bounds of the earlier number. If a cell shows another
number than before, or its parts do not add up to it, its records have certainly changed, and the earlier number
says nothing about the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Ints
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.protect.population.start import cell_numbers
from lustrum.protect.population.support import Support

__all__ = ["Together", "together"]


@dataclass(frozen=True, eq=False)
class Together:
    """Bounds of the second release's cells from both, and the cells of the first that certainly changed."""

    low: Ints
    high: Ints
    changed: int

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
        return {"changed": self.changed, "pinned": self.pinned, "left": self.left()}


def together(earlier: FinestCells, later: FinestCells, support: Support) -> Together:
    """Join two releases; the later one has all variables of the earlier one, and perhaps more."""
    names = [v.name for v in later.dataset.variables]
    rows = [names.index(v.name) for v in earlier.dataset.variables]
    parents = np.union1d(
        cell_numbers(earlier.dataset, earlier.codes),
        cell_numbers(earlier.dataset, later.codes[rows]),
    )
    before = np.zeros(parents.size, dtype=np.int64)
    before[np.searchsorted(parents, cell_numbers(earlier.dataset, earlier.codes))] = earlier.counts
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
    joined_low = np.maximum(low, parent_low[parent] - (most[parent] - high))
    joined_high = np.minimum(high, parent_high[parent] - (least[parent] - low))
    kept = same[parent]
    return Together(
        np.where(kept, joined_low, low), np.where(kept, joined_high, high), int((~same).sum())
    )


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
