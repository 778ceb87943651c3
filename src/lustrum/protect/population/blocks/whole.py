"""From the records of a dataset to its protected population, block by block.

Each block is searched by itself. Then every block has its turn in the last pass, in the order of the
description: it moves cells so that the errors which all blocks together leave in shared tables become smaller.
At the end the cells of all blocks are put together, and the reports are made of the figures of each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lustrum.model import Dataset
from lustrum.model.arrays import Ints, Words, narrow
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

    @property
    def true(self) -> FinestCells:
        """The true cells that hold somebody."""
        return self.every.where(self.every.counts > 0, keyed=True)


class Runner(Protocol):
    """Where blocks are worked on: in this process, in several, or on a cluster. The bytes are the same."""

    def search(self) -> Iterator[tuple[SearchedBlock, Ints]]:
        """Every block by itself, in the order of the blocks."""
        ...

    def mend(
        self, block: RegionBlock, found: SearchedBlock, errors: Ints, others: int, turn: str
    ) -> tuple[SearchedBlock, Ints]:
        """A turn of one block in the last pass."""
        ...

    def figures(self, found: Sequence[SearchedBlock]) -> Iterator[BlockFigures]:
        """What every block adds to the release, in the order of the blocks."""
        ...


def protected_by(
    runner: Runner, whole: Whole, previous: FinestCells | None = None
) -> WholePopulation:
    """Protect every block by itself, mend the tables that they share, and put all together."""
    blocks, shared = whole.division.blocks, whole.shared
    errors = np.zeros(0 if shared is None else shared.plan.cells, dtype=np.int64)
    found: list[SearchedBlock] = []
    for one, added in runner.search():
        found.append(one)
        errors += added
    if shared is not None:
        largest = LARGEST * whole.method.base
        for block, others, turn in _turns(blocks):
            if others or largest_error(shared.plan, errors) > largest:
                mended = runner.mend(block, found[block.number], errors, others, turn)
                found[block.number], errors = mended
    return _put_together(whole, list(runner.figures(found)), errors, previous)


def _turns(blocks: Sequence[RegionBlock]) -> Iterator[tuple[RegionBlock, int, str]]:
    """The last pass: which block has a turn, how many others can still mend the same errors, and its name.

    After these turns there are others for large errors, as long as there are any.
    """
    last = len(blocks) - 1
    for turn in range(_TURNS):
        for block in blocks:
            report_progress("mending shared tables", block.number / len(blocks))
            yield block, 1 if turn else max(last - block.number, 1), f"last-{turn}"
    for turn in range(_ROUNDS):
        for block in blocks:
            yield block, 0, f"large-{turn}"


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

    def search(self) -> Iterator[tuple[SearchedBlock, Ints]]:
        """Every block by itself."""
        blocks = self.whole.division.blocks
        return self._each("search", [(self._file(b, "first"),) for b in blocks])

    def mend(
        self, block: RegionBlock, found: SearchedBlock, errors: Ints, others: int, turn: str
    ) -> tuple[SearchedBlock, Ints]:
        """A turn of one block, in this process."""
        with one_part(block.number, len(self.whole.division.blocks)):
            work = BlockWork(self.whole, self._records(block))
            return work.mend(found, errors, others, self._file(block, turn))

    def figures(self, found: Sequence[SearchedBlock]) -> Iterator[BlockFigures]:
        """What every block adds; where searches stood is needed no more after that."""
        yield from self._each("figures", [(one,) for one in found])
        if self.state is not None:
            for path in self.state.parent.glob(f"{self.state.name}.*"):
                path.unlink(missing_ok=True)

    def _records(self, block: RegionBlock) -> BlockRecords:
        return self.whole.records(block, self.cells, self.previous, self.held)

    def _file(self, block: RegionBlock, purpose: str) -> Path | None:
        if self.state is None:
            return None
        return self.state.with_name(f"{self.state.name}.{purpose}.{block.number}")

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
    parts: Sequence[BlockFigures],
    errors: Ints,
    previous: FinestCells | None,
) -> WholePopulation:
    """The cells of all blocks in order, and the reports of all."""
    method, division, shared = whole.method, whole.division, whole.shared
    truth = np.sum([part.shared_counts for part in parts], axis=0)
    report_progress("measuring errors", 0.0)
    every, memory = _joined_cells(division.dataset, parts)
    support: Support = replace(method.support, wide=memory.wide)
    drawn = Drawn(division.dataset, list(division.levels), every, memory, support.base)
    tables: dict[str, JoinedTable] = {}
    for part in parts:
        for label, table in part.tables.items():
            tables[label] = tables[label] + table if label in tables else table
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
    return WholePopulation(memory.where(memory.counts > 0), public, agency, memory, every)


def _joined_cells(
    dataset: Dataset, parts: Sequence[BlockFigures]
) -> tuple[FinestCells, RememberedCells]:
    """The true cells and what is remembered of them, in the order of their codes.

    Columns are taken out of the parts, so that no more than one of them is there twice.
    """

    def together(name: str, order: Ints | None = None) -> Any:
        columns = [part.columns.pop(name) for part in parts]
        if any(column is None for column in columns):
            return None
        column = np.concatenate(columns, axis=-1)
        columns.clear()
        return column if order is None else column[..., order]

    codes = together("codes")
    order = None if ascending(codes) else np.lexsort(codes[::-1])
    if order is not None:
        codes = codes[:, order]
    true, shown = (together(name, order).astype(np.int64) for name in ("true", "shown"))
    keys, *lasting = (together(name, order) for name in ("keys", *LASTING))
    for column in (codes, true, shown, *([] if keys is None else [keys])):
        column.setflags(write=False)  # nobody else has it, so that it need not be copied
    offset, shift, odds = (None if a is None else narrow(a) for a in lasting)
    memory = RememberedCells(
        *(dataset, codes, shown, keys, offset, shift, odds),
        wide=any(part.wide for part in parts),
        share=_share([part.share for part in parts]),
    )
    return FinestCells(dataset, memory.codes, true, memory.keys), memory


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
