"""The engine protocol, and the engine that runs the kernel over encoded columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from lustrum.model import Dataset, InternalError, QueryError, Table, TableQuery
from lustrum.model.arrays import Ints, Mask, Words
from lustrum.model.workers import workers as available
from lustrum.numeric.counting import kernel
from lustrum.numeric.counting.contributions import (
    Owners,
    rank_contributions,
    rank_two,
    several_rows,
)
from lustrum.numeric.counting.cube import Cube, PossibleCells
from lustrum.numeric.counting.kernel import empty_rows, merge_rows, tally_ranked
from lustrum.numeric.counting.plan import AxisPlan, Chunk, CodeRanges, Entries, Plan, Stretch, Zones
from lustrum.runtime.remembered import Remembered
from lustrum.runtime.stop import Stopped, stop_asked

_AXES_KEPT = 1024
_FEWEST_BLOCKS = 16  # a thread for fewer takes longer than it saves
_EVERYBODY_KEPT = 64 << 20  # bytes of tables of everybody

S = TypeVar("S")
T = TypeVar("T")


class Several(NamedTuple):
    """Records of owners who have several, sorted by owner."""

    chunk: Chunk
    owner: Ints


class Block(NamedTuple):
    """Records that stay in the cache while they are counted, and the loop that takes their columns at once."""

    part: Stretch
    at_once: Callable[..., None] | None


class Engine(Protocol):
    """Answers a :class:`~lustrum.model.TableQuery` about one dataset."""

    @property
    def dataset(self) -> Dataset: ...

    def cube(self, query: TableQuery, *, unfiltered: bool = False, ranks: int = 0) -> Cube:
        """Count once what the question and, if asked, the rules before its filters need."""
        ...

    def tabulate(self, query: TableQuery, *, ranks: int = 0) -> Table:
        """The table asked for, with ``ranks`` largest contributions per cell if it has a measure."""
        ...


class KernelEngine:
    """Tabulates chunks of encoded columns in parallel."""

    knows_contributors: ClassVar[bool] = True

    def __init__(
        self,
        dataset: Dataset,
        chunks: Sequence[Chunk],
        workers: int | None = None,
        zones: Zones | None = None,
    ) -> None:
        self._dataset = dataset
        self._chunks = tuple(chunks)
        self._zones = zones or Zones(self._chunks)
        if [*map(id, self._zones.chunks)] != [*map(id, self._chunks)]:
            raise InternalError("Zones of other records would pass over the wrong ones.")
        self._workers = workers or available()
        self._largest: dict[tuple[str | None, str | None], float] = {}
        self._sorted: dict[str | None, tuple[Ints, Owners]] = {}
        self._opened_by: KernelEngine | None = None
        self._apart: dict[tuple[str | None, int], tuple[Several, ...]] = {}
        self._axes = Remembered[AxisPlan](_AXES_KEPT)
        self._everybody = _no_tables()
        self._possible = PossibleCells(dataset)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._dataset.name!r})"

    @property
    def dataset(self) -> Dataset:
        return self._dataset

    def described_by(self, dataset: Dataset) -> Self:
        """The same records under a description with further hierarchies; codes and columns are the same."""
        ours = [(v.name, v.codes) for v in self._dataset.variables]
        if ours != [(v.name, v.codes) for v in dataset.variables]:
            raise InternalError("Another description has other codes than the records.")
        other = copy(self)
        other._dataset = dataset
        other._axes = Remembered[AxisPlan](_AXES_KEPT)
        other._everybody = _no_tables()
        other._possible = PossibleCells(dataset)
        # Files are closed when the engine that opened them goes, so that it has to stay.
        other._opened_by = self
        return other

    def over(self, chunk: Chunk) -> Self:
        """Other cells of the same dataset, with all that was worked out about its description."""
        other = copy(self)
        other._chunks = (chunk,)
        other._zones = Zones(other._chunks)
        other._everybody = _no_tables()
        other._largest, other._sorted, other._apart = {}, {}, {}
        other._opened_by = self
        return other

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        return self._chunks

    def parts(self) -> Iterator[Chunk]:
        return iter(self._chunks)

    def tabulate(self, query: TableQuery, *, ranks: int = 0) -> Table:
        return self.cube(query, ranks=ranks).shown()

    def plan(self, query: TableQuery, *, unfiltered: bool = False) -> Plan:
        """What is to be counted; axes of earlier questions are known."""
        return Plan.of(query, self._dataset, unfiltered, self._axes)

    def cube(self, query: TableQuery, *, unfiltered: bool = False, ranks: int = 0) -> Cube:
        """Count by atoms in one pass."""
        plan = self.plan(query, unfiltered=unfiltered)
        self._check_range(query)
        if self._ranks_in_one_pass(query, ranks):
            return self._ranked_cube(plan, ranks)
        cells, sums = self._cells(plan)
        keyed = all(chunk.keys is not None for chunk in self._chunks)
        shape = (cells.shape[0], *plan.shape)
        contributors = contributions = None
        if query.measure is not None and self.knows_contributors:
            contributors, contributions = self._contributions(plan, ranks)
        return Cube(
            plan,
            self._dataset,
            counts=cells[..., 0].astype(np.int64).reshape(shape),
            keys=np.ascontiguousarray(cells[..., 1]).reshape(shape) if keyed else None,
            sums=None if sums is None else sums.reshape(shape),
            contributors=contributors,
            contributions=contributions if ranks else None,
            possible=self._possible,
        )

    def _cells(self, plan: Plan) -> tuple[Words, Ints | None]:
        """Counts and keys of cells of atoms, those who pass every filter first, and sums if asked for.

        The table of everybody is the same for all filters. It is remembered, so that the next question with
        the same axes only reads records that may pass.
        """
        query = plan.query
        counts_alone = query.measure is None and query.weight is None
        if not plan.keep_dropped or not counts_alone or not self._are_many:
            return self._tallied(plan)
        everybody = self._everybody.find(query.by)
        if everybody is None:
            cells, _ = self._tallied(plan)
            self._everybody.keep(query.by, cells.sum(axis=0, dtype=np.uint64))
            return cells, None
        if not plan.filters:
            return everybody[None], None
        passing, _ = self._tallied(replace(plan, keep_dropped=False))
        return np.stack([passing[0], everybody - passing[0]]), None

    @property
    def _are_many(self) -> bool:
        """Whether there are so many records that a pass over them takes its time."""
        return sum(chunk.rows for chunk in self._chunks) >= kernel.WORTH_IT

    def _tallied(self, plan: Plan) -> tuple[Words, Ints | None]:
        """Cells by layers, from one pass over the records."""
        asked = stop_asked()
        shares = self._shares(self._blocks(plan))
        done = in_threads(lambda share: self._tally(plan, share, asked), shares)
        cells = np.add.reduce([d[0] for d in done]).reshape(plan.layers, plan.size, 2)
        partial = [d[1] for d in done if d[1] is not None]
        return cells, np.add.reduce(partial) if partial else None

    def _ranks_in_one_pass(self, query: TableQuery, ranks: int) -> bool:
        """Whether counts, sums and at most two largest contributors are all that is asked for."""
        return (
            self.knows_contributors
            and query.measure is not None
            and query.weight is None
            and ranks <= 2
            and bool(self._chunks)
            and not any(chunk.counts is not None for chunk in self._chunks)
        )

    def _ranked_cube(self, plan: Plan, ranks: int) -> Cube:
        """Counts, sums and the two largest contributors from one pass over the records."""
        query = plan.query
        assert query.measure is not None
        holding = self._dataset.measure(query.measure).holding
        owner, owners = self._owners(holding)
        first, rows = {}, 0
        for chunk in self._chunks:
            first[id(chunk)] = rows
            rows += chunk.rows
        asked = stop_asked()
        entries = plan.entries()

        def tallied(work: Sequence[Block]) -> Ints:
            tallies = empty_rows(plan.size * plan.layers + 1)
            space = np.empty(kernel.BLOCK, dtype=np.int64)
            no_keys = np.zeros(kernel.BLOCK, dtype=np.int64)
            for part, _ in work:
                if asked():
                    raise Stopped
                chunk, start, stop = part.chunk, part.start, part.stop
                span = slice(first[id(chunk)] + start, first[id(chunk)] + stop)
                cell_index = _index(part, space)
                keys = no_keys[: stop - start]
                if chunk.keys is not None:
                    keys = chunk.keys[start:stop].view(np.int64)
                values = chunk.numbers[query.measure or ""][start:stop]
                alone, whose, ranked = owners.alone[span], owner[span], plan.size - part.cell
                tally_ranked(cell_index, keys, values, alone, whose, ranked, tallies[part.cell :])
            return tallies

        def several(part: Several) -> Ints:
            space = np.empty(part.chunk.rows, dtype=np.int64)
            cell_index = _index(Stretch(part.chunk, 0, part.chunk.rows, entries), space)
            return several_rows(
                plan, cell_index, part.owner, part.chunk.numbers[query.measure or ""]
            )

        shares = self._shares(self._blocks(plan))
        done = in_threads(tallied, shares)
        # Divided alike for all questions, whatever zones they pass over: the parts are kept.
        others = in_threads(several, self._several(holding, self._threads_for(rows)))
        for tallies in (done, others):
            for other in tallies[1:]:
                merge_rows(tallies[0], other)
        cells = done[0][:-1]
        contributors, contributions = rank_two(
            plan, cells, others[0] if others else None, max(ranks, 1)
        )
        shape = (plan.layers, *plan.shape)
        keyed = all(chunk.keys is not None for chunk in self._chunks)
        return Cube(
            plan,
            self._dataset,
            counts=np.ascontiguousarray(cells[:, 0]).reshape(shape),
            keys=np.ascontiguousarray(cells[:, 1]).view(np.uint64).reshape(shape)
            if keyed
            else None,
            sums=np.ascontiguousarray(cells[:, 2]).reshape(shape),
            contributors=contributors,
            contributions=contributions if ranks else None,
            possible=self._possible,
        )

    def _joined(self, name: str) -> Ints:
        """A column of numbers over all chunks."""
        parts = [chunk.numbers[name] for chunk in self._chunks]
        none = np.empty(0, dtype=np.int64)
        return parts[0] if len(parts) == 1 else np.concatenate([none, *parts])

    def _check_range(self, query: TableQuery) -> None:
        """Refuse sums that could leave 64 bits; they would wrap around without a word."""
        asked = (query.measure, query.weight)
        if asked == (None, None):
            return
        if asked not in self._largest:
            largest = 0.0
            for chunk in self._chunks:
                values, weights = self._amounts(query, chunk, 0, chunk.rows)
                largest += float((np.abs(values).astype(np.float64) * weights).sum())
            self._largest[asked] = largest
        if self._largest[asked] >= 2.0**62:
            raise QueryError(
                f"The sums of {query.measure or query.weight!r} do not fit 64 bits at their decimals; "
                "describe the column with fewer decimals, or ask without weights."
            )

    def _blocks(self, plan: Plan) -> list[Block]:
        """All records that may be in a cell, in blocks.

        Where a loop takes all columns of the table at once, it saves a third of the time.
        """
        measured = plan.query.measure is not None or plan.query.weight is not None
        many = not measured and self._are_many
        blocks: list[Block] = []
        for part in self._zones.stretches(plan.entries()):
            at_once = None
            columns = [part.chunk.codes[name] for name, _ in part.entries]
            if (
                many
                and part.chunk.counts is None
                and all(codes.dtype == np.uint8 for codes in columns)
            ):
                at_once = kernel.AT_ONCE.get(len(columns))
            rows = kernel.BLOCK if at_once is None else kernel.WIDE_BLOCK
            blocks += [Block(piece, at_once) for piece in part.split(rows)]
        return blocks

    def _shares(self, blocks: Sequence[Block]) -> list[Sequence[Block]]:
        """Blocks divided between threads."""
        parts = self._threads_for(sum(part.stop - part.start for part, _ in blocks))
        return [blocks[i::parts] for i in range(parts)]

    def _threads_for(self, rows: int) -> int:
        return min(self._workers, max(1, rows // (_FEWEST_BLOCKS * kernel.BLOCK)))

    def _tally(
        self, plan: Plan, work: Iterable[Block], asked: Callable[[], bool]
    ) -> tuple[Words, Ints | None]:
        # One cell more than there are, for records that belong to none.
        total = plan.size * plan.layers
        every = np.zeros((total + 1, 2), dtype=np.uint64)
        measured = plan.query.measure is not None or plan.query.weight is not None
        sums = np.zeros(total + 1, dtype=np.int64) if measured else None
        space = np.empty(kernel.BLOCK, dtype=np.int64)
        for part, at_once in work:
            if asked():
                raise Stopped
            chunk, start, stop = part.chunk, part.start, part.stop
            cells = every[part.cell :]
            if chunk.counts is not None:
                index = _index(part, space)
                # Cells that hold sums alone have no counts, and some have no keys.
                if self.knows_contributors:
                    counts = chunk.counts[start:stop].view(np.uint64)
                    kernel.tally_counts(index, counts, cells[:, 0])
                    if chunk.keys is not None:
                        kernel.tally_counts(index, chunk.keys[start:stop], cells[:, 1])
            else:
                rows = stop - start
                keys = np.zeros(rows, np.uint64) if chunk.keys is None else chunk.keys[start:stop]
                if at_once is not None:
                    columns = (chunk.codes[name][start:stop] for name, _ in part.entries)
                    at_once(*columns, *(entry for _, entry in part.entries), keys, cells)
                    continue
                index = _index(part, space)
                kernel.tally(index, keys, cells)
            if sums is not None:
                values, weights = self._amounts(plan.query, chunk, start, stop)
                kernel.tally_numbers(index, values, weights, sums[part.cell :])
        return every[:-1], None if sums is None else sums[:-1]

    def _amounts(self, query: TableQuery, chunk: Chunk, start: int, stop: int) -> tuple[Ints, Ints]:
        ones = np.ones(stop - start, dtype=np.int64)
        if chunk.counts is not None and query.measure is None and query.weight is not None:
            return chunk.numbers[query.weight][start:stop], ones
        values = ones if query.measure is None else chunk.numbers[query.measure][start:stop]
        weights = ones if query.weight is None else chunk.numbers[query.weight][start:stop]
        return values, weights

    def _contributions(self, plan: Plan, ranks: int) -> tuple[Ints, Any]:
        """Rank the owners of the records that pass."""
        query = plan.query
        assert query.measure is not None
        if any(chunk.counts is not None for chunk in self._chunks):
            raise QueryError(
                "A hypercube holds no single contributions; ask for counts, or use the microdata."
            )
        holding = self._dataset.measure(query.measure).holding
        entries = plan.entries()
        index = np.empty(sum(chunk.rows for chunk in self._chunks), dtype=np.int64)
        first = 0
        for chunk in self._chunks:
            _index(Stretch(chunk, 0, chunk.rows, entries), index[first:])
            first += chunk.rows

        owner, owners = self._owners(holding)
        return rank_contributions(
            plan,
            index,
            owner,
            self._joined(query.measure),
            None if query.weight is None else self._joined(query.weight),
            max(ranks, 1),
            self._dataset.weight(query.weight).decimals if query.weight else 0,
            owners,
        )

    def _several(self, holding: str | None, parts: int) -> tuple[Several, ...]:
        """The records of owners who have several, sorted by owner and divided between owners, made once."""
        if (holding, parts) not in self._apart:
            owner, owners = self._owners(holding)
            order = owners.several
            sorted_owner = owner[order]
            marks = (
                np.searchsorted(
                    sorted_owner, sorted_owner[np.arange(1, parts) * order.size // parts]
                )
                if order.size
                else np.zeros(0, dtype=np.intp)
            )
            groups = []
            for rows in np.split(order, marks):
                if not rows.size:
                    continue
                names = [v.name for v in self._dataset.variables]
                codes = {n: np.concatenate([c.codes[n] for c in self._chunks])[rows] for n in names}
                held = self._chunks[0].numbers
                measure_names = [
                    m.name
                    for m in self._dataset.measures
                    if m.holding == holding and m.name in held
                ]
                numbers = {n: self._joined(n)[rows] for n in measure_names}
                groups.append(Several(Chunk(rows.size, codes, numbers), owner[rows]))
            self._apart[holding, parts] = tuple(groups)
        return self._apart[holding, parts]

    def _owners(self, holding: str | None) -> tuple[Ints, Owners]:
        """The owner of every record, and the order of owners, worked out once."""
        if holding not in self._sorted:
            rows = sum(chunk.rows for chunk in self._chunks)
            order = np.arange(rows, dtype=np.intp)
            owner = order.astype(np.int64)
            known = self._dataset.record_id
            if known is not None and all(known in chunk.ids for chunk in self._chunks):
                # Ties do not depend on the order of the records, which a database does not have.
                owner = np.concatenate([owner[:0], *(c.ids[known] for c in self._chunks)])
            every = np.ones(rows, dtype=np.bool_)
            owners = Owners(order, np.empty(0, dtype=np.intp), every)
            if holding is not None:
                owner = np.concatenate([owner[:0], *(c.ids[holding] for c in self._chunks)])
                owners = Owners.of(owner)
            self._sorted[holding] = owner, owners
        return self._sorted[holding]


def _no_tables() -> Remembered[Words]:
    return Remembered[Words](_EVERYBODY_KEPT, lambda cells: cells.nbytes, "counts")


class SumEngine(KernelEngine):
    """Adds up cells that hold sums already; who contributed to them nobody knows here."""

    knows_contributors = False


_PARTS_KEPT = 256 << 20  # bytes of parts that were read


class PartsEngine(KernelEngine):
    """Counts cells that are read part by part, those that a question needs, and never all at once.

    ``rows`` and ``ranges`` say how many cells a part has, and the least and the greatest of each of its codes;
    ``needed`` says which parts may hold cells that pass, and ``read`` reads one.
    """

    def __init__(
        self,
        dataset: Dataset,
        rows: Sequence[int],
        ranges: Mapping[str, CodeRanges],
        needed: Callable[[Entries], Mask],
        read: Callable[[int], Chunk],
        workers: int | None = None,
    ) -> None:
        none = np.zeros(0, dtype=np.int64)
        chunks = tuple(Chunk(n, {}, counts=none, keys=none.view(np.uint64)) for n in rows)
        numbers = np.arange(len(rows), dtype=np.int64)
        zones = Zones(chunks, numbers, np.zeros_like(numbers), np.array(rows), ranges)
        super().__init__(dataset, chunks, workers, zones)
        self._number = {id(chunk): number for number, chunk in enumerate(chunks)}
        self._needed, self._read = needed, read
        self._kept = Remembered[Chunk](_PARTS_KEPT, bytes_of, "parts")

    def over(self, chunk: Chunk) -> KernelEngine:  # type: ignore[override]
        """Cells that are at hand; every question names its axes anew."""
        return KernelEngine(self._dataset, [chunk], self._workers)

    def parts(self) -> Iterator[Chunk]:
        return map(self._part, self._chunks)

    def _part(self, chunk: Chunk) -> Chunk:
        number = self._number[id(chunk)]
        return self._kept.get(number, lambda: self._read(number))

    def _blocks(self, plan: Plan) -> list[Block]:
        entries = plan.entries()
        needed = self._needed(entries)
        parts = self._zones.stretches(entries)
        return [Block(part, None) for part in parts if needed[self._number[id(part.chunk)]]]

    def _tally(
        self, plan: Plan, work: Iterable[Block], asked: Callable[[], bool]
    ) -> tuple[Words, Ints | None]:
        def pieces() -> Iterator[Block]:
            for stretch, _ in work:
                read = stretch._replace(chunk=self._part(stretch.chunk))
                yield from (Block(piece, None) for piece in read.split(kernel.BLOCK))

        return super()._tally(plan, pieces(), asked)


def bytes_of(chunk: Chunk) -> int:
    """The bytes of cells with counts and keys."""
    return chunk.rows * (16 + sum(codes.itemsize for codes in chunk.codes.values()))


def _index(part: Stretch, space: Ints) -> Ints:
    """The cells of some records, counted from that of the stretch and written to ``space``."""
    index = space[: part.stop - part.start]
    if not part.entries:
        index[:] = 0
    for position, (name, entry) in enumerate(part.entries):
        codes = part.chunk.codes[name][part.start : part.stop]
        if position == 0:
            kernel.start_codes(codes, entry, index)
        else:
            kernel.add_codes(codes, entry, index)
    return index


@cache
def _pool() -> ThreadPoolExecutor:
    """Started once for the process, since starting threads takes longer than a small table."""
    return ThreadPoolExecutor(max(1, available() - 1), thread_name_prefix="lustrum-count")


if hasattr(os, "register_at_fork"):
    # A child has the object but none of its threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_threads(work: Callable[[S], T], shares: Sequence[S]) -> list[T]:
    """Do the first share here and the others in threads; the results are in the order of the shares.

    >>> in_threads(lambda n: n * n, [1, 2, 3])
    [1, 4, 9]
    """
    later = [_pool().submit(work, share) for share in shares[1:]]
    done: list[T] = []
    try:
        done += [work(share) for share in shares[:1]]
    finally:
        # Whatever happens here, no thread works on after the question has ended.
        waited = [(waiting.exception(), waiting) for waiting in later]
    for error, waiting in waited:
        if error is not None:
            raise error
        done.append(waiting.result())
    return done
