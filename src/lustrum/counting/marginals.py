"""Cells added up over the variables that a question does not name, remembered for the next such question."""

from __future__ import annotations

from math import prod

import numpy as np

from lustrum.counting import kernel
from lustrum.counting.chunk import Chunk
from lustrum.counting.engine import KernelEngine
from lustrum.model import Dataset, TableQuery
from lustrum.remembered import Remembered

_MOST_BYTES = 64 << 20
_MOST_CELLS = 1 << 21
"""Combinations of codes of some variables that are laid out one by one."""


class Marginals:
    """Engines over cells of a dataset, one for each set of variables, all with the same counts and keys."""

    def __init__(self, dataset: Dataset, cells: Chunk, workers: int | None = None) -> None:
        self._dataset, self._cells, self._workers = dataset, cells, workers
        self._whole = KernelEngine(dataset, [cells], workers)
        self._known = Remembered[KernelEngine](_MOST_BYTES, _size)

    def of(self, query: TableQuery) -> KernelEngine:
        """An engine that counts what a question names; every table of it is the same on the whole."""
        asked = {*(axis.variable for axis in query.by), *(item.variable for item in query.where)}
        names = tuple(v.name for v in self._dataset.variables if v.name in asked)
        shape = [len(self._dataset.variable(name).codes) for name in names]
        if not names or prod(shape) > min(_MOST_CELLS, 4 * self._cells.rows):
            return self._whole
        return self._known.get(names, lambda: self._added_up(names, shape))

    def _added_up(self, names: tuple[str, ...], shape: list[int]) -> KernelEngine:
        cells, index = self._cells, np.zeros(self._cells.rows, dtype=np.int64)
        for name, size in zip(names, shape, strict=True):
            index = index * size + cells.codes[name]
        assert cells.counts is not None
        assert cells.keys is not None
        # One cell more than there are, as the kernel wants it.
        sums = np.zeros((prod(shape) + 1, 2), dtype=np.uint64)
        kernel.tally_counts(index, cells.counts.view(np.uint64), sums[:, 0])
        kernel.tally_counts(index, cells.keys, sums[:, 1])
        held = np.flatnonzero(sums.any(axis=1))
        counts, keys = (np.ascontiguousarray(column) for column in sums[held].T)
        codes = {}
        for name, column in zip(names, np.unravel_index(held, shape), strict=True):
            codes[name] = np.ascontiguousarray(column.astype(cells.codes[name].dtype))
        chunk = Chunk(held.size, codes, counts=counts.view(np.int64), keys=keys)
        return self._whole.over(chunk)


def _size(engine: KernelEngine) -> int:
    return sum(
        chunk.rows * (16 + sum(codes.itemsize for codes in chunk.codes.values()))
        for chunk in engine.chunks
    )
