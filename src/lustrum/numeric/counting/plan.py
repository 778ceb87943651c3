"""A plan: what has to be counted so that a question can be answered, with and without its filters.

The rules of an agency are tested on the table before the user's choices and filters, and again on
what is shown. One pass over the records serves both: along each axis it counts the atoms of all
categories that either table needs, and it keeps those whom a filter drops apart from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lustrum.model import Category, Dataset, QueryError, TableAxis, TableQuery, Variable
from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.numeric.counting.kernel import OUTSIDE
from lustrum.numeric.structure import Atoms
from lustrum.runtime.remembered import Remembered

# A chunk: encoded columns, of records or of cells. It knows nothing of where they came from.


@dataclass(frozen=True, repr=False)
class Chunk:
    """Some records (or cells of a hypercube, with ``counts``), column by column."""

    rows: int
    codes: Mapping[str, Array]
    numbers: Mapping[str, Ints] = field(default_factory=dict)
    ids: Mapping[str, Ints] = field(default_factory=dict)
    keys: Words | None = None
    counts: Ints | None = None


MOST_CELLS = 1 << 27
HIDDEN = "_H"


@dataclass(frozen=True)
class AxisPlan:
    """One axis: what is shown, what the rules look at, and the atoms that both are made of."""

    variable: Variable
    shown: tuple[Category, ...]
    wide: tuple[Category, ...]
    atoms: Atoms

    @classmethod
    def of(
        cls, variable: Variable, shown: Sequence[Category], wide: Sequence[Category]
    ) -> AxisPlan:
        atoms = Atoms.of(len(variable.codes), [*shown, *wide])
        return cls(variable, tuple(shown), tuple(wide), atoms)

    def table_axis(self, categories: tuple[Category, ...]) -> TableAxis:
        for known, axis in self._axes:
            if known is categories:
                return axis
        return TableAxis(self.variable.name, self.variable.label, categories)

    @cached_property
    def _axes(self) -> tuple[tuple[tuple[Category, ...], TableAxis], ...]:
        """The two axes that are asked for again and again."""
        return tuple(
            (categories, TableAxis(self.variable.name, self.variable.label, categories))
            for categories in (self.shown, self.wide)
        )

    @cached_property
    def shown_atoms(self) -> Atoms:
        """How the shown categories are made of atoms."""
        return self.atoms.part(slice(len(self.shown)))

    @cached_property
    def completed_shown(self) -> tuple[tuple[Category, ...], Atoms]:
        """The shown categories with all pieces of their totals, and how they are made of atoms."""
        every = self.completed(self.shown)
        return every, self.atoms_of(every)

    @cached_property
    def completed_wide(self) -> tuple[tuple[Category, ...], Atoms]:
        """The unfiltered categories with all pieces of their totals, and how they are made of atoms."""
        every = self.completed(self.wide)
        return every, self.atoms_of(every)

    def completed(self, categories: tuple[Category, ...]) -> tuple[Category, ...]:
        """Categories with the pieces of their totals that are not among them.

        Age 20 to 29 beside the total of all ages leaves one such piece, everybody else. Categories that lie
        apart leave none.
        """
        atoms = Atoms.of(len(self.variable.codes), categories)
        # A category of one atom is that piece itself.
        single = atoms.held.indptr[:-1][atoms.held.lengths == 1]
        left = np.setdiff1d(np.arange(atoms.count), atoms.held.items[single])
        if not left.size:
            return categories
        codes = np.flatnonzero(np.isin(atoms.of_code, left))
        codes = codes[np.argsort(atoms.of_code[codes], kind="stable")]
        pieces = np.split(codes, np.searchsorted(atoms.of_code[codes], left))[1:]
        hidden = (
            Category(f"{HIDDEN}{i}", "not shown", tuple(piece.tolist()))
            for i, piece in enumerate(pieces, start=1)
        )
        return (*categories, *hidden)

    def atoms_of(self, categories: Sequence[Category]) -> Atoms:
        """How any categories are made of the atoms of this axis; each must be a union of some."""
        return self.atoms.regrouped(categories)

    @cached_property
    def wide_atoms(self) -> Atoms:
        """How the unfiltered categories are made of atoms."""
        return self.atoms.part(slice(len(self.shown), None))


@dataclass(frozen=True)
class FilterPlan:
    """One filter: the finest codes that pass."""

    variable: Variable
    passing: frozenset[int]

    @property
    def passes(self) -> Mask:
        mask = np.zeros(len(self.variable.codes), dtype=np.bool_)
        mask[np.fromiter(self.passing, dtype=np.intp)] = True
        return mask


@dataclass(frozen=True)
class Plan:
    """What to count."""

    query: TableQuery
    axes: tuple[AxisPlan, ...]
    filters: tuple[FilterPlan, ...]
    keep_dropped: bool

    @classmethod
    def of(
        cls,
        query: TableQuery,
        dataset: Dataset,
        unfiltered: bool = False,
        known: Remembered[AxisPlan] | None = None,
    ) -> Plan:
        """Resolve a question; ``unfiltered`` also keeps what the rules need, ``known`` are earlier axes."""
        if query.dataset != dataset.name:
            raise QueryError(
                f"The question is for {query.dataset!r}, but this is {dataset.name!r}."
            )
        if query.measure is not None:
            dataset.measure(query.measure)
        if query.weight is not None:
            dataset.weight(query.weight)
        axes = []
        for axis in query.by:
            axis_plan = None if known is None else known.find((axis, unfiltered))
            if axis_plan is None:
                variable = dataset.variable(axis.variable)
                wide = axis.widened(variable) if unfiltered else ()
                axis_plan = AxisPlan.of(variable, axis.categories(variable), wide)
                if known is not None:
                    known.keep((axis, unfiltered), axis_plan)
            axes.append(axis_plan)
        filters = []
        for item in query.where:
            variable = dataset.variable(item.variable)
            filters.append(FilterPlan(variable, item.members(variable)))
        plan = cls(query, tuple(axes), tuple(filters), unfiltered)
        if plan.size * plan.layers > MOST_CELLS:
            raise QueryError(
                f"The table would have {plan.size:,} cells; the most that can be counted at once is "
                f"{MOST_CELLS // plan.layers:,}. Ask for fewer variables or coarser levels."
            )
        return plan

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.atoms.count for axis in self.axes)

    @property
    def size(self) -> int:
        """How many cells of atoms there are."""
        out = 1
        for count in self.shape:
            out *= count
        return out

    @property
    def layers(self) -> int:
        """Layer ``f`` holds the records that fail ``f`` filters; only the first one is shown."""
        return 1 + len(self.filters) if self.keep_dropped else 1

    @property
    def strides(self) -> list[int]:
        """What one step along each axis adds to a cell's number."""
        out, stride = [], self.size
        for axis in self.axes:
            stride //= max(axis.atoms.count, 1)
            out.append(stride)
        return out

    def entries(self) -> list[tuple[str, Ints]]:
        """Per column, what each code adds to a record's cell number."""
        out: list[tuple[str, Ints]] = []
        for axis, stride in zip(self.axes, self.strides, strict=True):
            of_code = axis.atoms.of_code
            out.append((axis.variable.name, np.where(of_code < 0, OUTSIDE, of_code * stride)))
        for item in self.filters:
            failing = self.size if self.keep_dropped else OUTSIDE
            out.append((item.variable.name, np.where(item.passes, 0, failing).astype(np.int64)))
        return out


# Zones: stretches of records with the least and the greatest code of every column.
#
# Records are often stored sorted by area. A question about one area then needs few zones: where no code
# between the least and the greatest passes a filter, no record does, and the zone is not read at all. Where
# all codes of a zone add the same to a cell's number, its column is not read. Zones are worked out from the
# columns when these are opened and are never written down, so they cannot differ from the columns.


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
