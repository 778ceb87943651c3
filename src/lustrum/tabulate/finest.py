"""Count the finest cells of a dataset: a group-by over all variables that never lays out empty cells.

Every record gets the number of its cell, mixed in 64 bits from its codes, and a hash table adds up counts
and record keys. Work and memory grow with records and occupied cells, not with possible ones.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array, Ints, Words
from lustrum.model.finest import FinestCells, code_type
from lustrum.numeric.compiled import compiled
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.stream import mixed
from lustrum.runtime.stop import check_stop, report_progress
from lustrum.tabulate.encode import Chunk

_BLOCK = 1 << 18
_NOBODY = np.uint64(2**64 - 1)


class CountsFinestCells(Protocol):
    """An engine that counts its finest cells itself, because the records are elsewhere."""

    def finest_cells(self) -> FinestCells: ...

    def record_ids(self) -> Words:
        """The identities of all records, in any order."""
        ...


def record_ids(engine: KernelEngine | CountsFinestCells) -> Words:
    """The identities of all records behind an engine of a dataset that has them."""
    if not isinstance(engine, KernelEngine):
        return engine.record_ids()
    name = str(engine.dataset.record_id)
    return np.concatenate([chunk.ids[name].astype(np.uint64) for chunk in engine.chunks])


def finest_cells(engine: KernelEngine | CountsFinestCells) -> FinestCells:
    """The occupied finest cells behind an engine, with summed record keys if the records have any.

    >>> import pyarrow as pa
    >>> from lustrum.tabulate.frame import FrameEngine, describe_frame
    >>> people = pa.table({"area": ["N", "S", "N"], "faith": ["a", "b", "a"]})
    >>> cells = finest_cells(FrameEngine(people, describe_frame(people, ["area", "faith"])))
    >>> cells.codes.tolist(), cells.counts.tolist()
    ([[0, 1], [0, 1]], [2, 1])
    """
    if not isinstance(engine, KernelEngine):
        return engine.finest_cells()
    dataset = engine.dataset
    if len(dataset.variables) == 0:
        raise InputError("A dataset without variables has no finest cells.")
    steps = strides(dataset)
    rows = sum(chunk.rows for chunk in engine.chunks)
    keyed = bool(engine.chunks) and all(chunk.keys is not None for chunk in engine.chunks)
    table = _HashTable()
    done = 0
    for chunk in engine.chunks:
        for start in range(0, chunk.rows, _BLOCK):
            check_stop()
            stop = min(start + _BLOCK, chunk.rows)
            table.add(*_block(chunk, dataset, steps, start, stop))
            done += stop - start
            report_progress("counting", done / rows)
    numbers, counts, keys = table.sorted()
    occupied = counts > 0
    numbers, counts, keys = numbers[occupied], counts[occupied], keys[occupied]
    most = max(len(v.codes) for v in dataset.variables)
    codes = np.empty((len(dataset.variables), numbers.size), dtype=code_type(most))
    rest = numbers
    for row, stride in zip(codes, steps, strict=True):
        row[:] = rest // stride
        rest = rest % stride
    return FinestCells(dataset, codes, counts, keys if keyed else None)


def strides(dataset: Dataset) -> list[np.uint64]:
    """What one step along each variable adds to the number of a cell, the last variable fastest."""
    strides, size = [], 1
    for variable in reversed(dataset.variables):
        strides.append(np.uint64(size))
        size *= len(variable.codes)
        if size >= 2**64 - 1:
            raise InputError(
                "The variables of this dataset have more combinations than 64 bits can number; "
                "protect it with fewer variables or coarser finest codes."
            )
    return strides[::-1]


def _block(
    chunk: Chunk, dataset: Dataset, strides: list[np.uint64], start: int, stop: int
) -> tuple[Words, Ints, Words]:
    numbers = np.zeros(stop - start, dtype=np.uint64)
    for variable, stride in zip(dataset.variables, strides, strict=True):
        numbers += chunk.codes[variable.name][start:stop].astype(np.uint64) * stride
    counts = (
        np.ones(stop - start, dtype=np.int64) if chunk.counts is None else chunk.counts[start:stop]
    )
    keys = np.zeros(stop - start, dtype=np.uint64) if chunk.keys is None else chunk.keys[start:stop]
    return numbers, counts, keys


class _HashTable:
    """Open addressing; doubled before it is half full."""

    def __init__(self) -> None:
        self._slots(1 << 12)
        self._used = 0

    def _slots(self, size: int) -> None:
        self._numbers = np.full(size, _NOBODY)
        self._counts = np.zeros(size, dtype=np.int64)
        self._keys = np.zeros(size, dtype=np.uint64)

    def add(self, numbers: Words, counts: Ints, keys: Words) -> None:
        done = 0
        while done < numbers.size:
            taken, self._used = _add(
                numbers[done:],
                counts[done:],
                keys[done:],
                self._numbers,
                self._counts,
                self._keys,
                self._used,
            )
            done += taken
            if done < numbers.size:
                self._grow()

    def _grow(self) -> None:
        numbers, counts, keys = self._numbers, self._counts, self._keys
        full = numbers != _NOBODY
        self._slots(4 * numbers.size)
        _, self._used = _add(
            numbers[full], counts[full], keys[full], self._numbers, self._counts, self._keys, 0
        )

    def sorted(self) -> tuple[Words, Ints, Words]:
        """Numbers, counts and keys of the cells in ascending order of their numbers."""
        full = np.flatnonzero(self._numbers != _NOBODY)
        order = full[np.argsort(self._numbers[full], kind="stable")]
        return self._numbers[order], self._counts[order], self._keys[order]


@compiled
def _add(
    numbers: Array, counts: Array, keys: Array, slots: Array, totals: Array, sums: Array, used: int
) -> Any:  # pragma: no cover
    """Add records until the table is half full; says how many were added and how many slots are used."""
    size = slots.size
    mask = np.uint64(size - 1)
    nobody = np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(numbers.size):
        number = numbers[i]
        at = mixed(number) & mask
        while slots[at] != number:
            if slots[at] == nobody:
                if 2 * (used + 1) > size:
                    return i, used
                slots[at] = number
                used += 1
                break
            at = (at + np.uint64(1)) & mask
        totals[at] += counts[i]
        sums[at] += keys[i]
    return numbers.size, used
