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
from lustrum.protect.population.search.layout import ControlledTable
from lustrum.protect.population.search.levels import renumbered
from lustrum.protect.population.search.plan import Shared
from lustrum.protect.population.search.run import search
from lustrum.protect.population.search.stages import Stage
from lustrum.protect.population.start import derived
from lustrum.protect.population.state import StateFile
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import Differences, differences
from lustrum.runtime.stop import check_stop, report_progress

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
    moves: Array

    @classmethod
    def of(cls, up: Mask, moves: Array) -> SearchedBlock:
        """Keep it."""
        return cls(np.packbits(up), moves)

    def up(self, cells: int) -> Mask:
        """Which cells stand at their upper number."""
        return np.unpackbits(self.bits, count=cells).astype(np.bool_)


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
    def shared(self) -> Shared | None:
        """The tables whose cells lie in several blocks; None where there are none."""
        schedule = self.method.schedule
        tables = self.method.tables
        return self.division.shared(schedule.max_variables, tables, schedule.extra_tables)

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
        tables = self.division.tables(self.block, self.dataset, self.method.tables)
        return replace(self.method.schedule, tables=tables)

    @cached_property
    def prepared(self) -> Prepared:
        """What the search begins with; the same whenever it is worked out."""
        records = self.records
        return self.method.prepared(self.cells, self.key, records.previous, records.held)

    def search(self, state: Path | None = None) -> tuple[SearchedBlock, Ints]:
        """Protect the block by itself; gives the errors too that it adds to shared tables."""
        if not self.cells.possible.all():
            raise InputError(IMPOSSIBLE)
        stages = self.schedule.stages(self.dataset)
        found = self._searched(self.prepared, stages, "search", state)
        return found, self._shared_errors(found)

    def mend(
        self, found: SearchedBlock, errors: Ints, others: int, state: Path | None = None
    ) -> tuple[SearchedBlock, Ints]:
        """Take over a part of the ``errors`` in shared tables, which so many ``others`` can still mend too;
        gives the errors that are left.

        With none the turn is for the large errors that are left.
        """
        assert self.whole.shared is not None
        mine = replace(self.whole.shared, members=self.block.members)
        up = found.up(self.prepared.problem.up.size)
        problem = replace(self.prepared.problem, found=up, shared_errors=errors)
        schedule = self.schedule
        stages = (
            schedule.last_pass(self.dataset, mine, others)
            if others
            else schedule.last_errors(self.dataset, mine)
        )
        purpose = f"last pass {others}"
        mended = self._searched(replace(self.prepared, problem=problem), stages, purpose, state)
        after = SearchedBlock(mended.bits, found.moves + mended.moves)
        return after, errors + self._shared_errors(after) - self._shared_errors(found)

    def _searched(
        self, prepared: Prepared, stages: tuple[Stage, ...], purpose: str, state: Path | None
    ) -> SearchedBlock:
        file = None
        if state is not None:
            words = {**self.method.to_mapping(), "block": self.block.code, "purpose": purpose}
            problem = prepared.problem
            beside = [a for a in (problem.found, problem.shared_errors) if a is not None]
            together = np.concatenate([a.astype(np.int64) for a in beside]) if beside else None
            kept = words, self.cells, self.records.previous, self.records.held, together
            file = StateFile(state, self.key, *kept)
        searched = search(
            prepared.problem,
            stages,
            int.from_bytes(derived(self.key, purpose)[:8], "big"),
            resume=None if file is None else file.load(),
            keep=None if file is None else file.keep,
            workers=self.whole.workers,
        )
        return SearchedBlock.of(searched.up, searched.moves)

    def _shared_errors(self, found: SearchedBlock) -> Ints:
        """What the block adds to the errors of shared tables."""
        return self._added((self._shown(found) - self.prepared.every.counts).astype(np.int32))

    def _shared_counts(self) -> Ints:
        """What the block adds to the true counts of shared tables."""
        counts = self.prepared.every.counts
        return self._added(counts.astype(np.int32 if counts.sum() < 2**31 else np.float64))

    def _added(self, by: Array) -> Ints:
        if self.whole.shared is None:
            return np.zeros(0, dtype=np.int64)
        plan = self.whole.shared.plan
        codes = self.division.codes(self.block, self.prepared.every.codes)
        sums = np.zeros(plan.cells, dtype=by.dtype)
        add_errors(plan, np.ascontiguousarray(codes[plan.rows()].T), by, sums)
        return sums.astype(np.int64)

    def _shown(self, found: SearchedBlock) -> Ints:
        return self.prepared.numbers(found.up(self.prepared.problem.up.size))

    def figures(self, found: SearchedBlock) -> BlockFigures:
        """The cells of the block after the last pass, and figures of its tables.

        Figures of shared tables are made of all blocks, from what each adds to them.
        """
        every, shown, plan = (
            self.prepared.every,
            self._shown(found),
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
            self._shared_counts(),
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
