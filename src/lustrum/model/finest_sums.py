"""Protected sums of measures by finest cell: what every table of sums is added up from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Array, Ints
from lustrum.model.dataset import Dataset
from lustrum.model.errors import InputError
from lustrum.model.finest import FinestCells


@dataclass(frozen=True, eq=False, repr=False)
class FinestSums:
    """Cells of all variables at their finest codes, each once and in ascending order, with sums of measures.

    Sums are whole numbers in units of the measure's decimals; they may be negative.
    """

    dataset: Dataset
    codes: Array
    sums: Mapping[str, Ints]

    def __post_init__(self) -> None:
        cells = np.asarray(self.codes)
        if cells.ndim != 2 or any(np.shape(s) != cells.shape[1:] for s in self.sums.values()):
            raise InputError("Finest sums need one sum of every measure for every cell.")
        for name in self.sums:
            self.dataset.measure(name)
        # Sorting and the checks of codes are those of finest cells; the place stands for a count.
        order = FinestCells(self.dataset, cells, np.arange(cells.shape[1], dtype=np.int64))
        object.__setattr__(self, "codes", order.codes)
        sorted_sums = {}
        for name, sums in self.sums.items():
            array = np.asarray(sums, dtype=np.int64)[order.counts]
            array.setflags(write=False)
            sorted_sums[name] = array
        object.__setattr__(self, "sums", sorted_sums)

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"FinestSums({self.dataset.name!r})"

    def columns(self) -> Mapping[str, Array]:
        """The codes of every variable by its name."""
        return {v.name: row for v, row in zip(self.dataset.variables, self.codes, strict=True)}
