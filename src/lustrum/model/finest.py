"""The finest cells of a dataset: every combination of finest codes that holds anybody, with its count.

With nine variables there are far more combinations than people, so only the occupied ones are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.model.dataset import Dataset
from lustrum.model.errors import InputError
from lustrum.model.table import _frozen, _kept


def code_type(codes: int) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned integer that numbers this many codes."""
    return np.uint8 if codes <= 1 << 8 else np.uint16 if codes <= 1 << 16 else np.uint32


@dataclass(frozen=True, eq=False, repr=False)
class FinestCells:
    """Cells of all variables at their finest codes, each once, in ascending order of their codes.

    ``codes[v, c]`` is the position of cell ``c`` in the code list of variable ``v``; ``counts`` are people, or
    whatever a record stands for; ``keys`` sums of record keys, on the confidential side only.
    """

    dataset: Dataset
    codes: Array
    counts: Ints
    keys: Words | None = None

    def __post_init__(self) -> None:
        variables = self.dataset.variables
        codes = np.asarray(self.codes)
        counts = np.asarray(self.counts, dtype=np.int64)
        if codes.ndim != 2 or codes.shape != (len(variables), counts.size):
            raise InputError(
                "Finest cells need one row of codes for every variable and one column for every count."
            )
        if self.keys is not None and np.shape(self.keys) != counts.shape:
            raise InputError("Finest cells need one key for every count, or none at all.")
        for variable, row in zip(variables, codes, strict=True):
            if row.size and (int(row.min()) < 0 or int(row.max()) >= len(variable.codes)):
                raise InputError(f"A code of {variable.name!r} is outside its code list.")
        if counts.size and int(counts.min()) < 0:
            raise InputError("A finest cell has a negative count; counts are 0 or more.")
        most = max((len(v.codes) for v in variables), default=1)
        codes = codes.astype(code_type(most), copy=False)
        if not ascending(codes):
            order = np.lexsort(codes[::-1])
            codes, counts = codes[:, order], counts[order]
            if self.keys is not None:
                object.__setattr__(self, "keys", np.asarray(self.keys)[order])
            if not ascending(codes):
                raise InputError("A finest cell is given twice; each combination may stand once.")
        object.__setattr__(self, "codes", _kept(codes))
        object.__setattr__(self, "counts", _kept(counts))
        if self.keys is not None:
            object.__setattr__(self, "keys", _kept(np.asarray(self.keys, dtype=np.uint64)))

    def __len__(self) -> int:
        return int(self.counts.size)

    def __repr__(self) -> str:
        return f"FinestCells({self.dataset.name!r})"

    def columns(self) -> Mapping[str, Array]:
        return {v.name: row for v, row in zip(self.dataset.variables, self.codes, strict=True)}

    def where(self, chosen: Mask, *, keyed: bool = False) -> FinestCells:
        """Some of the cells, with the keys of their records if they are to be ``keyed``."""
        keys = _frozen(self.keys[chosen]) if keyed and self.keys is not None else None
        codes, counts = _frozen(self.codes[:, chosen]), _frozen(self.counts[chosen])
        return FinestCells(self.dataset, codes, counts, keys)

    @property
    def possible(self) -> Mask:
        return possible_cells(self.dataset, self.codes)


def possible_cells(dataset: Dataset, codes: Array) -> Mask:
    """Which combinations of finest codes can exist, by the structural zeros of the dataset."""
    index_of = {v.name: i for i, v in enumerate(dataset.variables)}
    possible = np.ones(codes.shape[1], dtype=np.bool_)
    for zero in dataset.structural_zeros:
        hit = np.ones(codes.shape[1], dtype=np.bool_)
        for name, members in zero.where.items():
            barred = np.zeros(len(dataset.variable(name).codes), dtype=np.bool_)
            barred[list(members)] = True
            hit &= barred[codes[index_of[name]]]
        possible &= ~hit
    return possible


def ascending(codes: Array | Sequence[Array]) -> bool:
    """Whether every column of codes comes after the one before it, variable by variable."""
    decided = np.zeros(max(len(codes[0]) - 1, 0) if len(codes) else 0, dtype=np.bool_)
    for row in codes:
        before, after = row[:-1], row[1:]
        if ((after < before) & ~decided).any():
            return False
        decided |= after > before
    return bool(decided.all())


# Protected sums of measures by finest cell: what every table of sums is added up from.


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
        return {v.name: row for v, row in zip(self.dataset.variables, self.codes, strict=True)}
