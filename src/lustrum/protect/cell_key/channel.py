"""The public channel of a lookup table: by which steps a count can move, and how often.

The rows of an agency's lookup table hold steps, not published values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from lustrum.model import InputError, Transitions
from lustrum.model.arrays import Array, Floats, Ints
from lustrum.model.channel import MatrixChannel, row_entries
from lustrum.numeric.compiled import compiled


@dataclass(frozen=True, eq=False)
class LookupChannel:
    """Row ``v`` says by which steps a count ``v`` moves, with which probabilities.

    Entries of row ``v`` are at ``first[v]`` to ``first[v + 1]``. Counts above the last row move as the one
    among the last ``cycle`` rows that differs from them by a multiple of ``cycle``.

    >>> coin = LookupChannel.of_rows([{0: 1.0}, {-1: 0.5, 1: 0.5}], cycle=1)
    >>> coin
    LookupChannel(rows 0 to 1, then the last 1 again)
    >>> [ends.tolist() for ends in coin.support(np.array([0, 1, 7]))]
    [[0, 2, 6], [1, 2, 8]]
    """

    first: Ints
    steps: Ints
    probability: Floats
    cycle: int

    @classmethod
    def of_rows(cls, rows: Sequence[dict[int, float]], cycle: int) -> LookupChannel:
        """A channel from the steps of each value and their probabilities, without those of probability 0."""
        positive_rows = [sorted((s, p) for s, p in row.items() if p > 0) for row in rows]
        first = np.concatenate(([0], np.cumsum([len(row) for row in positive_rows]))).astype(
            np.int64
        )
        steps = np.array([s for row in positive_rows for s, _ in row], dtype=np.int64)
        chances = np.array([p for row in positive_rows for _, p in row], dtype=np.float64)
        return cls(first, steps, chances, cycle)

    def __repr__(self) -> str:
        return f"LookupChannel(rows 0 to {self.cap}, then the last {self.cycle} again)"

    @property
    def cap(self) -> int:
        return len(self.first) - 2

    @property
    def largest_change(self) -> int:
        return int(np.abs(self.steps).max(initial=0))

    def rows_of(self, true: Ints) -> Ints:
        true = np.asarray(true, dtype=np.int64)
        if true.size and int(true.min()) < 0:
            raise InputError("A lookup table is for counts of 0 or more.")
        lowest = self.cap - self.cycle + 1
        return np.where(true <= self.cap, true, lowest + (true - lowest) % self.cycle)

    def transitions(self, true: Ints) -> Transitions:
        """The entries of each row, moved to the true value."""
        true = np.asarray(true, dtype=np.int64)
        rows = self.rows_of(true)
        origin, entry = row_entries(self.first[rows], np.diff(self.first)[rows])
        return Transitions(origin, true[origin] + self.steps[entry], self.probability[entry])

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """Bounds of the true value behind each published one; low is above high where none is possible."""
        return self._support.support(published)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean probability to stay, over the values of a range; without an end, over the remaining rows."""
        if lowest < 0 or (highest is not None and highest < lowest):
            raise InputError("A range of values runs from 0 or more upwards; this one does not.")
        if highest is None:
            highest = self.cap if lowest <= self.cap else lowest + self.cycle - 1
        return float(self._stays[self.rows_of(np.arange(lowest, highest + 1))].mean())

    @cached_property
    def _stays(self) -> Floats:
        row = np.repeat(np.arange(self.cap + 1), np.diff(self.first))
        still = self.steps == 0
        chances = np.bincount(row[still], self.probability[still], minlength=self.cap + 1)
        return chances.astype(np.float64)

    @cached_property
    def _support(self) -> LookupSupport:
        """The bounds as a table; beyond the last row that a step can reach, they repeat with the rows."""
        size = self.cap + self.largest_change + self.cycle + 1
        true = np.arange(size + self.largest_change, dtype=np.int64)
        moved = self.transitions(true)
        inside = moved.published < size
        low = np.full(size, np.iinfo(np.int64).max)
        high = np.full(size, -1, dtype=np.int64)
        origin, published = true[moved.origin[inside]], moved.published[inside]
        np.minimum.at(low, published, origin)
        np.maximum.at(high, published, origin)
        counts = np.arange(size, dtype=np.int64)
        reached = high >= 0
        return LookupSupport(
            np.where(reached, low, counts + 1), np.where(reached, high, counts - 1), self.cycle
        )


@dataclass(frozen=True, eq=False)
class LookupSupport:
    """The bounds of the true value behind each published one, as a table whose last part repeats.

    The same as ``support`` of the channel, with one lookup per cell.
    """

    low: Ints
    high: Ints
    cycle: int

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """Bounds of the true value behind each published one."""
        published = np.asarray(published, dtype=np.int64)
        if published.size and int(published.min()) < 0:
            raise InputError("A published count is 0 or more.")
        flat = np.ascontiguousarray(published).reshape(-1)
        low, high = np.empty_like(flat), np.empty_like(flat)
        _look_up(flat, self.low, self.high, self.cycle, low, high)
        return low.reshape(published.shape), high.reshape(published.shape)


@compiled
def _look_up(  # pragma: no cover
    published: Array, table_low: Array, table_high: Array, cycle: int, low: Array, high: Array
) -> None:
    last = table_low.size - cycle
    for i in range(published.size):
        row = published[i]
        if row >= table_low.size:
            row = last + (row - last) % cycle
        shift = published[i] - row
        low[i] = table_low[row] + shift
        high[i] = table_high[row] + shift


@lru_cache(maxsize=64)
def support_of(channel: MatrixChannel | LookupChannel) -> LookupSupport:
    """The bounds of a channel as a table, computed once."""
    if isinstance(channel, LookupChannel):
        return channel._support
    cycle = channel.residue_base or 1
    size = channel.matrix.shape[1]
    if channel.residue_base is not None:
        # Numbers above this come from repeated rows only.
        size = channel.cap + longest_step(channel) + cycle + 1
    low, high = channel.support(np.arange(size, dtype=np.int64))
    return LookupSupport(low, high, cycle)


@lru_cache(maxsize=64)
def zeros_stay(channel: MatrixChannel | LookupChannel) -> MatrixChannel | LookupChannel:
    if isinstance(channel, LookupChannel):
        begin = int(channel.first[1])
        first = channel.first - begin + 1
        first[0] = 0
        return LookupChannel(
            first,
            np.concatenate(([0], channel.steps[begin:])).astype(np.int64),
            np.concatenate(([1.0], channel.probability[begin:])),
            channel.cycle,
        )
    matrix = channel.matrix.copy()
    matrix[0] = 0.0
    matrix[0, 0] = 1.0
    return MatrixChannel(matrix, channel.residue_base)


@lru_cache(maxsize=64)
def longest_step(channel: MatrixChannel | LookupChannel) -> int:
    """The largest change of a count."""
    if isinstance(channel, LookupChannel):
        return channel.largest_change
    row, column = np.nonzero(channel.matrix)
    return int(np.abs(column - row).max(initial=0))
