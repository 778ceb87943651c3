"""The work on one block: its search, its turn in the last pass, and its figures.

Before the last pass everything follows from the records of the block, the description and the key. In the last
pass a block starts from the errors that all blocks together leave in the tables that they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array, Ints, Mask, Words, narrow
from lustrum.model.finest import FinestCells
from lustrum.protect.population.agency import ControlledErrors, TableErrors, true_counts
from lustrum.protect.population.blocks.divide import Division, RegionBlock
from lustrum.protect.population.later import LASTING
from lustrum.protect.population.measure import (
    Drawn,
    MeasuredTable,
    coverage_row,
    largest_error,
)
from lustrum.protect.population.prepare import Begun, Prepared
from lustrum.protect.population.schedule import Schedule
from lustrum.protect.population.search.forces import add_errors
from lustrum.protect.population.search.layout import ControlledTable, TablePlan
from lustrum.protect.population.search.levels import renumbered
from lustrum.protect.population.search.plan import Shared
from lustrum.protect.population.search.run import SearchProblem, search
from lustrum.protect.population.start import derived
from lustrum.protect.population.state import StateFile
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import Differences, differences
from lustrum.runtime.stop import check_stop, report_progress

_PLANNED = 1 << 26
"""Plans of the last pass are kept where all of them have no more cells than that."""
IMPOSSIBLE = "A record has a combination that the description says cannot exist."


class BlockMethod(Protocol):
    """What blocks need of a protected population."""

    @property
    def base(self) -> int:
        """The step between shown numbers."""
        ...

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The agency's own tables."""
        ...

    @property
    def known_changes(self) -> float:
        """By how much releases may change odds."""
        ...

    @property
    def support(self) -> Support:
        """What a shown number leaves open."""
        ...

    @property
    def schedule(self) -> Schedule:
        """The stages of the search."""
        ...

    def prepared(
        self, cells: FinestCells, key: bytes, previous: FinestCells | None, held: Words | None
    ) -> Prepared:
        """What the search begins with."""
        ...

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class SearchedBlock:
    """Where the cells of a block stand, eight in a byte, and how many moves a search tried and made."""

    bits: Array
    cells: int
    moves: Array

    @classmethod
    def of(cls, up: Mask, moves: Array) -> SearchedBlock:
        """Keep it."""
        return cls(np.packbits(up), up.size, moves)

    @property
    def up(self) -> Mask:
        """Which cells stand at their upper number."""
        return np.unpackbits(self.bits, count=self.cells).astype(np.bool_)


@dataclass(frozen=True, eq=False, repr=False)
class BlockOffer:
    """What a block offers to the last pass: cells that may move, and how far others are from the truth."""

    block: RegionBlock
    dataset: Dataset
    problem: SearchProblem

    def mend(
        self, whole: Whole, found: SearchedBlock, errors: Ints, others: int
    ) -> tuple[SearchedBlock, Ints]:
        """Take over a part of the ``errors`` in shared tables, which so many ``others`` can still mend too;
        gives where the block stands then and by how much errors change.

        With none the turn is for the large errors that are left.
        """
        schedule, before = whole.schedule(self.block, self.dataset), found.up
        mended = search(
            replace(self.problem, found=before, shared_errors=errors),
            schedule.last_pass(self._plan(whole), others),
            int.from_bytes(derived(self.block.key(whole.key), f"last pass {others}")[:8], "big"),
            workers=whole.workers,
        )
        step = self.problem.step
        change = step * (mended.up.astype(np.int32) - before)
        added = whole.added(self.block, self.problem.codes, change)
        return SearchedBlock.of(mended.up, found.moves + mended.moves), added

    def _plan(self, whole: Whole) -> TablePlan:
        """The tables of the block and those that it shares; kept for its next turn if they are few."""
        number = self.block.number
        plan = whole.plans.get(number)
        if plan is None:
            assert whole.shared is not None
            mine = replace(whole.shared, members=self.block.members)
            plan = whole.schedule(self.block, self.dataset).plan(self.dataset, mine)
            if plan.cells * len(whole.division.blocks) <= _PLANNED:
                whole.plans[number] = plan
        return plan


@dataclass(frozen=True)
class JoinedTable:
    """A controlled table of the whole dataset, as far as it lies in one block."""

    errors: TableErrors
    measured: MeasuredTable
    covered: Ints

    def __add__(self, other: JoinedTable) -> JoinedTable:
        """With the part that lies in other blocks."""
        return JoinedTable(
            self.errors + other.errors,
            self.measured + other.measured,
            np.concatenate([self.covered, other.covered]),
        )

    def in_few_rows(self) -> JoinedTable:
        """The same figures: cells that are counted under the same words are counted together."""
        measured = replace(self.measured, by_size=_counted(self.measured.by_size))
        return replace(self, measured=measured, covered=_counted(self.covered))


def _counted(rows: Ints) -> Ints:
    words, which = np.unique(rows[:, :-1], axis=0, return_inverse=True)
    cells = np.bincount(which.reshape(-1), rows[:, -1], len(words)).astype(np.int64)
    return np.column_stack([words, cells])


@dataclass(frozen=True, eq=False, repr=False)
class BlockFigures:
    """What a block adds to a release: the columns of its cells, by the codes of the whole and in few bytes,
    and figures of its tables."""

    columns: dict[str, Any]
    wide: bool
    share: tuple[int, int] | None
    tables: Mapping[str, JoinedTable]
    controlled: ControlledErrors
    largest: int
    begun: Begun
    differences: Differences
    moves: Array
    shared_counts: Ints


@dataclass(frozen=True, eq=False, repr=False)
class Whole:
    """What all blocks have in common, none of it from records: the description, the method and the key.

    ``workers`` is how many threads the search of a block may use.
    """

    method: BlockMethod
    dataset: Dataset
    key: bytes
    workers: int | None = None

    @cached_property
    def division(self) -> Division:
        """The blocks of the description."""
        division = Division.of(self.dataset)
        assert division is not None
        return division

    @cached_property
    def plans(self) -> dict[int, TablePlan]:
        """The plans of blocks for the last pass that are kept."""
        return {}

    @cached_property
    def shared(self) -> Shared | None:
        """The tables whose cells lie in several blocks; None where there are none."""
        schedule = self.method.schedule
        tables = self.method.tables
        return self.division.shared(schedule.max_variables, tables, schedule.extra_tables)

    def schedule(self, block: RegionBlock, dataset: Dataset) -> Schedule:
        """The stages of the search, with the agency's tables as a block has them."""
        tables = self.division.tables(block, dataset, self.method.tables)
        return replace(self.method.schedule, tables=tables)

    def added(self, block: RegionBlock, codes: Array, by: Array) -> Ints:
        """What numbers of the cells of a block add up to in shared tables."""
        if self.shared is None:
            return np.zeros(0, dtype=np.int64)
        plan = self.shared.plan
        sums = np.zeros(plan.cells, dtype=by.dtype)
        rows = self.division.codes(block, codes)[plan.rows()]
        add_errors(plan, np.ascontiguousarray(rows.T), by, sums)
        return sums.astype(np.int64)

    def records(
        self,
        block: RegionBlock,
        cells: FinestCells,
        previous: FinestCells | None,
        held: Words | None,
    ) -> BlockRecords:
        """The records of a block, from those of the whole."""
        part = self.division.part(block, cells)
        before = None if previous is None else self.division.part(block, previous)
        mine = None if held is None else self.division.numbers(block, held, part)
        return BlockRecords(block.number, part, before, mine)


@dataclass(frozen=True, eq=False, repr=False)
class BlockRecords:
    """The cells of one block, by its own codes, and what is remembered of an earlier release of it."""

    number: int
    cells: FinestCells
    previous: FinestCells | None = None
    held: Words | None = None


@dataclass(frozen=True, eq=False, repr=False)
class BlockWork:
    """One block at work."""

    whole: Whole
    records: BlockRecords

    @property
    def method(self) -> BlockMethod:
        """The method, which is that of all blocks."""
        return self.whole.method

    @property
    def division(self) -> Division:
        """All blocks."""
        return self.whole.division

    @property
    def block(self) -> RegionBlock:
        """This one."""
        return self.division.blocks[self.records.number]

    @property
    def cells(self) -> FinestCells:
        """Its true cells."""
        return self.records.cells

    @cached_property
    def key(self) -> bytes:
        """Its key, from which all of its chance comes."""
        return self.block.key(self.whole.key)

    @property
    def dataset(self) -> Dataset:
        """The block as a dataset of its own."""
        return self.cells.dataset

    @cached_property
    def schedule(self) -> Schedule:
        """The stages of the search, with the agency's tables as the block has them."""
        return self.whole.schedule(self.block, self.dataset)

    @cached_property
    def prepared(self) -> Prepared:
        """What the search begins with; the same whenever it is worked out."""
        records = self.records
        return self.method.prepared(self.cells, self.key, records.previous, records.held)

    def search(self, state: Path | None = None) -> tuple[SearchedBlock, Ints, BlockOffer | None]:
        """Protect the block by itself; gives the errors too that it adds to shared tables, and its offer."""
        if not self.cells.possible.all():
            raise InputError(IMPOSSIBLE)
        stages = self.schedule.stages(self.dataset)
        file = None
        if state is not None:
            words = {**self.method.to_mapping(), "block": self.block.code, "purpose": "search"}
            kept = words, self.cells, self.records.previous, self.records.held
            file = StateFile(state, self.key, *kept)
        searched = search(
            self.prepared.problem,
            stages,
            int.from_bytes(derived(self.key, "search")[:8], "big"),
            resume=None if file is None else file.load(),
            keep=None if file is None else file.keep,
            workers=self.whole.workers,
        )
        shown, counts = self.prepared.numbers(searched.up), self.prepared.every.counts
        added = self._added((shown - counts).astype(np.int32))
        offer = (
            None
            if self.whole.shared is None
            else BlockOffer(self.block, self.dataset, self.prepared.problem)
        )
        return SearchedBlock.of(searched.up, searched.moves), added, offer

    def _added(self, by: Array) -> Ints:
        return self.whole.added(self.block, self.prepared.every.codes, by)

    def figures(self, found: SearchedBlock) -> BlockFigures:
        """The cells of the block after the last pass, and figures of its tables.

        Figures of shared tables are made of all blocks, from what each adds to them.
        """
        every, shown, plan = (
            self.prepared.every,
            self.prepared.numbers(found.up),
            self.schedule.plan(self.dataset),
        )
        memory = self.prepared.memory(shown)
        truth = true_counts(plan, every.codes, every.counts)
        errors = np.zeros(plan.cells, dtype=np.int32)
        codes = np.ascontiguousarray(every.codes[plan.rows()].T)
        add_errors(plan, codes, (shown - every.counts).astype(np.int32), errors)
        controlled = ControlledErrors.of(plan, errors, truth)
        drawn = Drawn(self.dataset, plan.variables, every, memory, self.method.base)
        joined: dict[str, JoinedTable] = {}
        for number, (table, found_errors) in enumerate(
            zip(plan.tables, controlled.tables, strict=True)
        ):
            check_stop()
            report_progress("measuring errors", number / len(plan.tables))
            for label, finest in self._whole_tables(table, plan.max_variables):
                places = table.places().ravel()
                joined[label] = JoinedTable(
                    replace(
                        found_errors,
                        label=label,
                        variables=label.count(" x ") + 1,
                        finest=finest,
                    ),
                    drawn.controlled(table, truth, errors),
                    coverage_row(truth[places], errors[places]),
                )
        worst = tuple(
            replace(cell, table=f"{cell.table}, {self.block.code}") for cell in controlled.worst
        )
        return BlockFigures(
            {
                "codes": self.division.codes(self.block, memory.codes),
                "true": narrow(every.counts),
                "shown": narrow(shown),
                "keys": memory.keys,
                **{name: getattr(memory, name) for name in LASTING},
            },
            memory.wide,
            memory.share,
            joined,
            replace(controlled, tables=(), worst=worst),
            largest_error(plan, errors),
            self.prepared.begun(shown),
            differences(self.records.previous, memory, self.method.base),
            found.moves,
            self._added(
                every.counts.astype(np.int32 if every.counts.sum() < 2**31 else np.float64)
            ),
        )

    @cached_property
    def _levels(self) -> dict[bytes, list[tuple[str, bool]]]:
        """The levels of the divided variable that lie within blocks, by the groups that they have here."""
        levels: dict[bytes, list[tuple[str, bool]]] = {}
        for level in self.division.within:
            groups = renumbered(level.group_of[self.block.members])
            name = groups.tobytes() if groups.any() else b""
            levels.setdefault(name, []).append((level.label, level.finest))
        return levels

    def _whole_tables(self, table: ControlledTable, most: int) -> list[tuple[str, bool]]:
        """The tables of the whole dataset of which a table of this block is a part, and whether all levels are
        finest ones."""
        root = [level for level in table.levels if level.variable == self.division.root]
        others = [level for level in table.levels if level.variable != self.division.root]
        if len(others) + 1 > most:
            return []
        here = self._levels.get(root[0].group_of.tobytes() if root else b"", [])
        rest = sorted(level.label for level in others)
        finest = all(level.finest for level in others)
        return [(" x ".join([label, *rest]), finest and is_finest) for label, is_finest in here]
