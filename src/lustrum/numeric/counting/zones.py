"""Zones: stretches of records with the least and the greatest code of every column.

Records are often stored sorted by area. A question about one area then needs few zones: where no code between
the least and the greatest passes a filter, no record does, and the zone is not read at all. Where all codes of
a zone add the same to a cell's number, its column is not read. Zones are worked out from the columns when these
are opened and are never written down, so they cannot differ from the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lustrum.model.arrays import Array, Ints
from lustrum.numeric.counting.chunk import Chunk

ZONE = 1 << 14
"""Records of a zone; the last one of a chunk may have fewer."""

Entries = Sequence[tuple[str, Ints]]
"""Columns, and what each of their codes adds to the number of a record's cell; see :class:`~.plan.Plan`."""


class Stretch(NamedTuple):
    """Records of a chunk that are counted in the same way.

    A record's cell is ``cell``, which all of them have in common, and the sum of its ``entries``.
    """

    chunk: Chunk
    start: int
    stop: int
    entries: Entries
    cell: int = 0

    def split(self, rows: int) -> Iterator[Stretch]:
        """The same records in parts of at most so many rows."""
        for start in range(self.start, self.stop, rows):
            yield self._replace(start=start, stop=min(start + rows, self.stop))


class CodeRanges(NamedTuple):
    """The least and the greatest code of every zone of a column."""

    least: Array
    greatest: Array


def _none() -> Ints:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, repr=False)
class Zones:
    """Chunks, and the ranges of codes in their zones for those columns whose ranges are known.

    ``chunk`` is the number of the chunk that a zone is part of, ``start`` and ``stop`` are its records there.
    """

    chunks: tuple[Chunk, ...]
    chunk: Ints = field(default_factory=_none)
    start: Ints = field(default_factory=_none)
    stop: Ints = field(default_factory=_none)
    ranges: Mapping[str, CodeRanges] = field(default_factory=dict)

    @classmethod
    def of(cls, chunks: Sequence[Chunk], names: Sequence[str]) -> Zones:
        """Read these columns once, and note the ranges of their codes."""
        starts = [np.arange(0, chunk.rows, ZONE, dtype=np.int64) for chunk in chunks]
        if not any(start.size for start in starts):
            return cls(tuple(chunks))
        ranges = {}
        for name in names:
            parts = [
                (chunk.codes[name], start)
                for chunk, start in zip(chunks, starts, strict=True)
                if start.size
            ]
            ranges[name] = CodeRanges(
                np.concatenate([np.minimum.reduceat(codes, start) for codes, start in parts]),
                np.concatenate([np.maximum.reduceat(codes, start) for codes, start in parts]),
            )
        return cls(
            tuple(chunks),
            np.repeat(np.arange(len(starts)), [start.size for start in starts]),
            np.concatenate(starts),
            np.concatenate(
                [np.append(s[1:], c.rows)[: s.size] for s, c in zip(starts, chunks, strict=True)]
            ),
            ranges,
        )

    def stretches(self, entries: Entries) -> Iterator[Stretch]:
        """All records that may be in a cell, in their order, each with the columns that decide in which."""
        if not any(name in self.ranges for name, _ in entries):
            for chunk in self.chunks:
                yield Stretch(chunk, 0, chunk.rows, entries)
            return
        same = np.zeros((self.start.size, len(entries)), dtype=np.bool_)
        cell = np.zeros(self.start.size, dtype=np.int64)
        for column, (name, entry) in zip(same.T, entries, strict=True):
            if name in self.ranges:
                least, greatest = self.ranges[name]
                # Codes of one run, from the least to the greatest, all add the same.
                run = np.append(0, np.cumsum(entry[1:] != entry[:-1]))
                column[:] = run[least] == run[greatest]
                cell += np.where(column, entry[least], 0)
        new = np.ones(cell.size, dtype=np.bool_)
        new[1:] = self.chunk[1:] != self.chunk[:-1]
        new[1:] |= cell[1:] != cell[:-1]
        new[1:] |= (same[1:] != same[:-1]).any(axis=1)
        first = np.flatnonzero(new)
        last = np.append(first[1:], cell.size) - 1
        # A cell below zero is outside of the table, whatever the other columns add.
        needed = cell[first] >= 0
        for one, other in zip(first[needed].tolist(), last[needed].tolist(), strict=True):
            left = [entry for entry, known in zip(entries, same[one], strict=True) if not known]
            start, stop = int(self.start[one]), int(self.stop[other])
            yield Stretch(self.chunks[self.chunk[one]], start, stop, left, int(cell[one]))
