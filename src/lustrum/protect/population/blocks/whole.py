"""From the records of a dataset to its protected population, block by block.

Each block is searched by itself, and offers its cells to the last pass. There every block has its turn, in the
order of the description and in this process, wherever blocks were searched: it moves cells so that the errors
which all blocks together leave in shared tables become smaller. At the end the cells of all blocks are put
together, one block after the other, and the reports are made of the figures of each.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Protocol

import numpy as np

from lustrum.model import Dataset
from lustrum.model.arrays import Array, Ints, Words, narrow
from lustrum.model.finest import FinestCells, ascending
from lustrum.protect.population.agency import (
    WORST,
    AgencyReport,
    ControlledErrors,
    agency_report,
)
from lustrum.protect.population.blocks.divide import RegionBlock
from lustrum.protect.population.blocks.work import (
    BlockFigures,
    BlockOffer,
    BlockRecords,
    BlockWork,
    JoinedTable,
    SearchedBlock,
    Whole,
)
from lustrum.protect.population.later import LASTING, RememberedCells
from lustrum.protect.population.measure import (
    Drawn,
    coverage_of,
    coverage_row,
    largest_error,
    measured_report,
)
from lustrum.protect.population.prepare import Begun
from lustrum.protect.population.public import LARGEST, PublicReport
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import differences
from lustrum.runtime.stop import one_part, report_progress, still_working

_AT_ONCE = 1 << 20
"""So many cells of a column are put in order in one go."""
_JOINED = 16
"""After so many blocks the rows of their tables are joined."""
_PATIENCE = 0.2
"""After so many seconds of waiting for another process somebody may stop the work."""
_TURNS, _ROUNDS = 3, 3
"""How many turns every block has in the last pass, and how many more there are at most for large errors."""


@dataclass(frozen=True, eq=False, repr=False)
class WholePopulation:
    """What all blocks together make."""

    cells: FinestCells
    public: PublicReport
    agency: AgencyReport
    memory: RememberedCells
    every: FinestCells
    folder: Path | None

    @cached_property
    def true(self) -> FinestCells:
        """The true cells that hold somebody."""
        return _chosen(self.every, self.folder, self.every.keys)


class Runner(Protocol):
    """Where blocks are worked on: in this process, in several, or on a cluster. The bytes are the same."""

    def search(self) -> Iterator[tuple[SearchedBlock, Ints, BlockOffer | None]]:
        """Every block by itself, in the order of the blocks."""
        ...

    def figures(self, found: Sequence[SearchedBlock]) -> Iterator[BlockFigures]:
        """What every block adds to the release, in the order of the blocks."""
        ...


def protected_by(
    runner: Runner, whole: Whole, previous: FinestCells | None = None, folder: Path | None = None
) -> WholePopulation:
    """Protect every block by itself, mend the tables that they share, and put all together.

    With a ``folder`` cells wait there, in files without a name, and not in memory.
    """
    blocks, shared = whole.division.blocks, whole.shared
    errors = np.zeros(0 if shared is None else shared.plan.cells, dtype=np.int64)
    found: list[SearchedBlock] = []
    with nullcontext() if folder is None else _unnamed(folder) as file:
        offers = _Offers(file)
        for one, added, offer in runner.search():
            found.append(one)
            errors += added
            offers.add(offer)
        if shared is not None:
            largest = LARGEST * whole.method.base
            for number, others in _turns(len(blocks)):
                if others or largest_error(shared.plan, errors) > largest:
                    with one_part(number, len(blocks)):
                        mended = offers[number].mend(whole, found[number], errors, others)
                    found[number], change = mended
                    errors += change
        whole.plans.clear()
    return _put_together(whole, runner.figures(found), errors, previous, folder)


class _Offers:
    """The offers of all blocks: in a file if there is one, of which one is read at a time."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file
        self._held: list[Any] = []

    def add(self, offer: BlockOffer | None) -> None:
        """Keep one more."""
        if self._file is not None:
            data = pickle.dumps(offer, protocol=5)
            self._held.append((self._file.seek(0, SEEK_END), self._file.write(data)))
        else:
            self._held.append(offer)

    def __getitem__(self, number: int) -> BlockOffer:
        offer = self._held[number]
        if self._file is not None:
            at, size = offer
            self._file.seek(at)
            offer = pickle.loads(self._file.read(size))
        assert isinstance(offer, BlockOffer)
        return offer


def _turns(blocks: int) -> Iterator[tuple[int, int]]:
    """The last pass: which block has a turn, and how many others can still mend the same errors.

    After these turns there are others for large errors, as long as there are any.
    """
    for turn in range(_TURNS):
        for number in range(blocks):
            report_progress("mending shared tables", number / blocks)
            yield number, 1 if turn else max(blocks - 1 - number, 1)
    yield from ((number, 0) for _ in range(_ROUNDS) for number in range(blocks))


@dataclass(frozen=True, eq=False, repr=False)
class LocalRunner:
    """Blocks on this machine: one after the other in this process, or several processes side by side.

    ``state`` is where each keeps how far it is.
    """

    whole: Whole
    cells: FinestCells
    previous: FinestCells | None = None
    held: Words | None = None
    state: Path | None = None
    processes: int = 1

    def search(self) -> Iterator[tuple[SearchedBlock, Ints, BlockOffer | None]]:
        """Every block by itself."""
        blocks = self.whole.division.blocks
        return self._each("search", [(self._file(b),) for b in blocks])

    def figures(self, found: Sequence[SearchedBlock]) -> Iterator[BlockFigures]:
        """What every block adds; where searches stood is needed no more after that."""
        yield from self._each("figures", [(one,) for one in found])
        if self.state is not None:
            for path in self.state.parent.glob(f"{self.state.name}.*"):
                path.unlink(missing_ok=True)

    def _records(self, block: RegionBlock) -> BlockRecords:
        return self.whole.records(block, self.cells, self.previous, self.held)

    def _file(self, block: RegionBlock) -> Path | None:
        state = self.state
        return None if state is None else state.with_name(f"{state.name}.first.{block.number}")

    def _each(self, task: str, words: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Do something with every block; gives the outcomes in the order of the blocks."""
        blocks = self.whole.division.blocks
        if self.processes < 2:
            for block, some in zip(blocks, words, strict=True):
                with one_part(block.number, len(blocks)):
                    outcome = getattr(BlockWork(self.whole, self._records(block)), task)(*some)
                yield outcome
            return
        # No more blocks than there are processes wait for one, so that memory stays bounded.
        waiting: deque[Any] = deque()
        with get_context("spawn").Pool(
            self.processes, _begin, (replace(self.whole, workers=1),)
        ) as pool:
            for block, some in zip(blocks, words, strict=True):
                sent = self._records(block), task, some
                waiting.append(pool.apply_async(_do, sent))
                if len(waiting) >= 2 * self.processes:
                    yield _outcome(waiting.popleft())
                    report_progress("protecting", block.number / len(blocks))
            while waiting:
                yield _outcome(waiting.popleft())


_WHOLE: list[Whole] = []
"""In a process of a pool: what its blocks have in common."""


def _begin(whole: Whole) -> None:
    _WHOLE[:] = [whole]


def _do(records: BlockRecords, task: str, words: tuple[Any, ...]) -> Any:
    return getattr(BlockWork(_WHOLE[0], records), task)(*words)


def _outcome(waiting: Any) -> Any:
    """The outcome of a block in another process; the caller may stop the work while it waits."""
    while not waiting.ready():
        still_working()
        waiting.wait(_PATIENCE)
    return waiting.get()


def _put_together(
    whole: Whole,
    figures: Iterator[BlockFigures],
    errors: Ints,
    previous: FinestCells | None,
    folder: Path | None,
) -> WholePopulation:
    """The cells of all blocks in order, and the reports of all; one block is held at a time."""
    method, division, shared = whole.method, whole.division, whole.shared
    parts: list[BlockFigures] = []
    tables: dict[str, JoinedTable] = {}
    truth = np.zeros_like(errors)
    with nullcontext() if folder is None else _unnamed(folder) as file:
        columns = _BlockColumns(folder, file)
        for part in figures:
            columns.add(part.columns)
            truth += part.shared_counts
            for label, table in part.tables.items():
                tables[label] = tables[label] + table if label in tables else table
            if len(parts) % _JOINED == _JOINED - 1:
                tables = {label: table.in_few_rows() for label, table in tables.items()}
            parts.append(replace(part, columns={}, tables={}, shared_counts=truth))
        report_progress("measuring errors", 0.0)
        share = _share([part.share for part in parts])
        wide = any(part.wide for part in parts)
        every, memory = _joined_cells(division.dataset, columns, wide, share)
    support: Support = replace(method.support, wide=memory.wide)
    drawn = Drawn(division.dataset, list(division.levels), every, memory, support.base)
    controlled = [part.controlled for part in parts]
    largest = max(part.largest for part in parts)
    if shared is not None:
        largest = max(largest, largest_error(shared.plan, errors))
        own = ControlledErrors.of(shared.plan, errors, truth)
        controlled.append(replace(own, tables=()))
        for crossing, found in zip(shared.plan.tables, own.tables, strict=True):
            if len(crossing.levels) <= shared.plan.max_variables:
                places = crossing.places().ravel()
                measured = drawn.controlled(crossing, truth, errors)
                row = coverage_row(truth[places], errors[places])
                tables[crossing.label] = JoinedTable(found, measured, row)
    kinds: dict[int, list[Any]] = {}
    rows: dict[int, list[Ints]] = {}
    for label in sorted(tables):
        one = tables[label]
        variables = max(one.errors.variables, 1)
        kinds.setdefault(variables, []).append(one.measured)
        rows.setdefault(variables, []).append(one.covered)
    public = measured_report(method.to_mapping(), support, drawn, kinds, largest, whole.key)
    agency = agency_report(
        support,
        every,
        memory,
        ControlledErrors(
            tuple(tables[label].errors for label in sorted(tables)),
            tuple(
                sorted(
                    (cell for one in controlled for cell in one.worst),
                    key=lambda cell: -abs(cell.shown - cell.true),
                )[:WORST]
            ),
            _summed([one.single_columns for one in controlled]),
        ),
        np.sum([part.moves for part in parts], axis=0),
        _begun([part.begun for part in parts]),
        differences(previous, memory, support.base),
        method.known_changes,
    )
    agency = replace(
        agency,
        coverage=coverage_of({v: np.concatenate(many) for v, many in rows.items()}, public),
        blocks=tuple(part.differences for part in parts),
    )
    return WholePopulation(_chosen(memory, folder), public, agency, memory, every, folder)


def _joined_cells(
    dataset: Dataset, columns: _BlockColumns, wide: bool, share: tuple[int, int]
) -> tuple[FinestCells, RememberedCells]:
    """The true cells and what is remembered of them, in the order of their codes."""
    codes = columns.joined("codes")
    if not ascending(codes):
        columns.order = np.lexsort(codes[::-1])
        codes = columns.ordered(codes)
    true, shown, keys, *lasting = (
        columns.ordered(columns.joined(name, kind))
        for name, kind in (
            *(("true", np.int64), ("shown", np.int64), ("keys", np.uint64)),
            *((name, None) for name in LASTING),
        )
    )
    offset, shift, odds = (None if a is None else narrow(a) for a in lasting)
    memory = RememberedCells(
        *(dataset, codes, shown, keys, offset, shift, odds), wide=wide, share=share
    )
    return FinestCells(dataset, memory.codes, true, memory.keys), memory


class _BlockColumns:
    """Columns of all blocks, as they come.

    With a folder they wait there in files that have no name: nobody else opens them, they are gone with this
    process, and of an array only what is looked at is in memory.
    """

    def __init__(self, folder: Path | None, file: IO[bytes] | None) -> None:
        self.folder, self._file = folder, file
        self.order: Ints | None = None
        self._parts: dict[str, list[Any]] = {}

    def add(self, columns: Mapping[str, Array | None]) -> None:
        """Keep the columns of a block."""
        for name, column in columns.items():
            place: Any = column
            if column is not None and self._file is not None:
                place = self._file.tell(), column.dtype, column.shape
                data = column.tobytes()
                self._file.write(data + bytes(-len(data) % 8))
            self._parts.setdefault(name, []).append(place)

    def joined(self, name: str, kind: Any = None) -> Any:
        """A column of all blocks, one after the other; its parts are needed no more."""
        parts = self._parts.pop(name)
        if any(part is None for part in parts):
            return None
        if self._file is not None:
            self._file.flush()
            held = np.memmap(self._file, np.uint8, "r")
            parts = [np.ndarray(shape, of, held, at) for at, of, shape in parts]
        kind = np.result_type(*parts) if kind is None else kind
        shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
        rows = (part[row] for row in np.ndindex(shape[:-1]) for part in parts)
        return stored(rows, kind, shape, self.folder)

    def ordered(self, column: Any) -> Any:
        """A column in the order of the codes."""
        order = self.order
        if column is None or order is None:
            return column
        chunks = (
            row[order[begin : begin + _AT_ONCE]]
            for row in np.atleast_2d(column)
            for begin in range(0, order.size, _AT_ONCE)
        )
        return stored(chunks, column.dtype, column.shape, self.folder)


def _unnamed(folder: Path) -> IO[bytes]:
    """A file for the owner alone; that no file is empty lets every one be mapped."""
    file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115
    file.write(bytes(8))
    return file


def stored(parts: Iterator[Array], kind: Any, shape: tuple[int, ...], folder: Path | None) -> Array:
    """The parts of an array as one that cannot be changed, in an unnamed file of a folder if there is one."""
    if folder is None:
        array = np.concatenate([np.zeros(0, kind), *parts], dtype=kind).reshape(shape)
        array.setflags(write=False)  # nobody else has it, so that it need not be copied
        return array
    with _unnamed(folder) as file:
        for part in parts:
            still_working()
            file.write(part.astype(kind, copy=False).tobytes())
        file.flush()
        return np.asarray(np.memmap(file, kind, "r", 8, shape))


def _chosen(cells: FinestCells, folder: Path | None, keys: Words | None = None) -> FinestCells:
    """The cells that hold or show somebody."""
    chosen = cells.counts > 0
    size = int(chosen.sum())

    def kept(column: Array) -> Array:
        rows = (row[chosen] for row in np.atleast_2d(column))
        return stored(rows, column.dtype, (*column.shape[:-1], size), folder)

    held = None if keys is None else kept(keys)
    return FinestCells(cells.dataset, kept(cells.codes), kept(cells.counts), held)


def _share(shares: list[tuple[int, int] | None]) -> tuple[int, int]:
    """By how much small cells of all blocks together were lowered."""
    known = [share for share in shares if share is not None]
    if len(set(known)) == 1:
        return known[0]
    return sum(left for left, _ in known), sum(of for _, of in known)


def _summed(rows: list[Mapping[str, int]]) -> dict[str, int]:
    return {name: sum(row[name] for row in rows) for name in rows[0]}


def _begun(parts: list[Begun]) -> Begun:
    """What all blocks began with."""
    moved: dict[int, tuple[int, int]] = {}
    for part in parts:
        for count, (some, of) in part.moved.items():
            before = moved.get(count, (0, 0))
            moved[count] = before[0] + some, before[1] + of
    return Begun(
        all(part.first for part in parts),
        sum(part.unchanged for part in parts),
        sum(part.changed for part in parts),
        moved,
    )
