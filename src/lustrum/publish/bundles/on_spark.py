"""Blocks of a population on Spark's workers: finest cells are counted there, and never all of them come here.

Each block is one group of rows. A task gets the cells of its block, does what any machine would do with them
and gives back where they stand, eight cells in a byte, and some cells for the last pass, which is done here.
All cells come once, at the end, block by block; they wait in the agency's folder and not in memory.
The bytes do not depend on partitions, executors or the order of rows.

Workers get a key that is derived for this dataset, and counts and record keys of their blocks. So this is done
only where traffic and disks are encrypted, or the master is local, and where the workers have Lustrum.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lustrum.model import DatasetError
from lustrum.model.arrays import Ints, Words
from lustrum.model.finest import FinestCells
from lustrum.protect.population.blocks.divide import Division, RegionBlock, restricted
from lustrum.protect.population.blocks.whole import WholePopulation, protected_by
from lustrum.protect.population.blocks.work import (
    BlockFigures,
    BlockOffer,
    BlockRecords,
    BlockWork,
    SearchedBlock,
    Whole,
)
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.runtime.stop import report_progress, still_working
from lustrum.tabulate.finest import strides
from lustrum.tabulate.remote import ConnectedEngine, spark
from lustrum.tabulate.remote.columns import positions_of, sums

log = logging.getLogger("lustrum.publish")

_ROW = "block int, number bigint, n bigint, high bigint, low bigint, known binary"
_OUTCOME = "block int, outcome binary"
_PATIENCE = 0.2

Task = Callable[[BlockWork], Any]


@dataclass(frozen=True, eq=False, repr=False)
class _Encode:
    """Groups that Spark counted as numbers of finest cells beside their blocks; it runs on workers."""

    sent: Any
    source: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole: Whole = self.sent.value
        dataset, division = whole.dataset, whole.division
        steps = strides(dataset)
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            number = np.zeros(rows.num_rows, dtype=np.uint64)
            for i, (variable, step) in enumerate(zip(dataset.variables, steps, strict=True)):
                positions = positions_of(self.source, variable, rows.column(f"g{i}"))
                number += positions.astype(np.uint64) * step
                if variable.name == division.root:
                    block = division.block_of[positions]
            if (sums(rows, "n") != sums(rows, "held")).any():
                raise DatasetError(f"{self.source} holds records without a record key.")
            high, low = (sums(rows, name) for name in ("high", "low"))
            nothing = pa.nulls(rows.num_rows, pa.binary())
            columns = [block.astype(np.int32), number.view(np.int64), sums(rows, "n"), high, low]
            yield from _table([*map(pa.array, columns), nothing]).to_batches()


def _table(columns: Sequence[pa.Array]) -> pa.Table:
    return pa.table(columns, names=[part.split()[0] for part in _ROW.split(", ")])


def _records(whole: Whole, rows: pa.Table) -> BlockRecords:
    """The cells of one block, in order, from its rows in any order."""
    block = whole.division.blocks[int(rows.column("block")[0].as_py())]
    ((earlier, held),) = map(pickle.loads, rows.column("known").drop_null().to_pylist())
    rows = rows.filter(pc.greater(rows.column("n"), 0))
    number = np.asarray(rows.column("number"), dtype=np.int64).view(np.uint64)
    # A value that is missing and the code for it are one cell.
    numbers, inverse = np.unique(number, return_inverse=True)
    counts, keys = np.zeros(numbers.size, np.int64), np.zeros(numbers.size, np.uint64)
    np.add.at(counts, inverse, sums(rows, "n"))
    high, low = (sums(rows, name).astype(np.uint64) for name in ("high", "low"))
    np.add.at(keys, inverse, (high << np.uint64(32)) + low)
    cells = _cells(whole, block, numbers, counts, keys)
    mine = None if held is None else whole.division.numbers(block, held, cells)
    return BlockRecords(block.number, cells, earlier, mine)


def _cells(
    whole: Whole, block: RegionBlock, numbers: Words, counts: Ints, keys: Words
) -> FinestCells:
    dataset = whole.dataset
    codes = np.empty((len(dataset.variables), numbers.size), dtype=np.int64)
    for row, step in zip(codes, strides(dataset), strict=True):
        row[:] = numbers // step
        numbers = numbers % step
    row_of_root = [v.name for v in dataset.variables].index(whole.division.root)
    codes[row_of_root] = np.searchsorted(block.members, codes[row_of_root])
    mine = restricted(dataset, whole.division.root, block.members)
    return FinestCells(mine, codes, counts, keys)


def _held_in(whole: Whole, block: RegionBlock, held: Words) -> Words:
    """The held cells of a block."""
    division, variables = whole.division, whole.dataset.variables
    row = [v.name for v in variables].index(division.root)
    codes = held // strides(whole.dataset)[row] % np.uint64(len(variables[row].codes))
    return np.asarray(held[division.block_of[codes.astype(np.int64)] == block.number])


@lru_cache(1)
def _keyed(whole: Whole, key: bytes) -> Whole:
    """What all blocks have in common, kept for the next task of this worker."""
    return replace(whole, key=key)


@dataclass(frozen=True, eq=False, repr=False)
class _SparkWork:
    """Does something with a block; it runs on workers. The key is not ``sent``, so that no disk has it."""

    sent: Any
    key: bytes
    task: Task

    def __call__(self, rows: pa.Table) -> pa.Table:
        whole = _keyed(self.sent.value, self.key)
        work = BlockWork(whole, _records(whole, rows))
        outcome = pickle.dumps(self.task(work), protocol=5)
        return pa.table(
            [pa.array([work.records.number], pa.int32()), pa.array([outcome], pa.binary())],
            names=["block", "outcome"],
        )


@dataclass(frozen=True)
class _Search:
    def __call__(self, work: BlockWork) -> tuple[SearchedBlock, Ints, BlockOffer | None]:
        return work.search()


@dataclass(frozen=True, eq=False, repr=False)
class _Figures:
    found: Sequence[SearchedBlock]

    def __call__(self, work: BlockWork) -> BlockFigures:
        return work.figures(self.found[work.records.number])


class SparkRunner:
    """Blocks on the workers of a cluster; a lost one is replaced by Spark, and its blocks are done again."""

    def __init__(
        self,
        engine: ConnectedEngine,
        whole: Whole,
        previous: FinestCells | None = None,
        held: Words | None = None,
    ) -> None:
        self._blocks, self._key = whole.division.blocks, whole.key
        self._session, counted = engine.counted_on_spark()
        context = self._session.sparkContext
        threads = int(context.getConf().get("spark.task.cpus", "1"))
        self._sent = context.broadcast(replace(whole, key=b"", workers=threads))
        cells = counted.mapInArrow(_Encode(self._sent, engine.columns.source), _ROW)
        # Every block has a row, so that those without anybody are worked on too.
        marks = []
        for block in self._blocks:
            earlier = None if previous is None else whole.division.part(block, previous)
            known = earlier, None if held is None else _held_in(whole, block, held)
            marks.append((block.number, 0, 0, 0, 0, pickle.dumps(known, protocol=5)))
        cells = cells.unionByName(self._session.createDataFrame(marks, _ROW))
        self._cells = cells.repartitionById(len(self._blocks), "block").persist()

    def close(self) -> None:
        self._cells.unpersist()
        self._sent.destroy()

    def search(self) -> Iterator[tuple[SearchedBlock, Ints, BlockOffer | None]]:
        """Every block by itself."""
        return self._each(_Search(), "protecting")

    def figures(self, found: Sequence[SearchedBlock]) -> Iterator[BlockFigures]:
        """What every block adds."""
        return self._each(_Figures(found), "measuring errors")

    def _each(self, task: Task, step: str) -> Iterator[Any]:
        """Do something with every block; gives the outcomes in the order of the blocks, one by one."""
        work = _SparkWork(self._sent, self._key, task)

        def run(rows: pa.Table) -> pa.Table:  # Spark counts the arguments of a function
            return work(rows)

        done = self._cells.groupBy("block").applyInArrow(run, _OUTCOME).persist()
        early: dict[int, bytes] = {}
        try:
            self._waited(done.count, step)
            rows = done.toLocalIterator()
            for block in self._blocks:
                while block.number not in early:
                    row = next(rows)
                    early[int(row["block"])] = row["outcome"]
                yield pickle.loads(early.pop(block.number))
        finally:
            done.unpersist()

    def _waited(self, action: Callable[[], Any], step: str) -> None:
        """Wait for a job; say how many of its tasks are done, and stop it where the caller asks for that."""
        context = self._session.sparkContext
        group, failed = "lustrum blocks", []

        def run() -> None:
            try:
                context.setJobGroup(group, step, interruptOnCancel=True)
                action()
            except BaseException as error:
                failed.append(error)

        thread = Thread(target=run, name="lustrum blocks")
        thread.start()
        try:
            while thread.is_alive():
                thread.join(_PATIENCE)
                tracker = context.statusTracker()
                stages = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
                tasks = [(s.numCompletedTasks, s.numTasks) for s in stages if s is not None]
                if tasks:
                    report_progress(step, sum(d for d, _ in tasks) / sum(n for _, n in tasks))
                still_working()
        except BaseException:
            context.cancelJobGroup(group)
            thread.join()
            raise
        if failed:
            raise failed[0]


def made_on_spark(
    engine: Any,
    method: Any,
    key: bytes,
    previous: FinestCells | None,
    progress: Callable[[str, float], None],
    new_series: bool,
    held: Words | None = None,
    folder: Path | None = None,
) -> tuple[PopulationResult, FinestCells] | None:
    """The protected population of a dataset in Spark, where ``held`` cells show their upper number, and its
    true cells.

    None where the description names no blocks, the workers may not see counts, or Lustrum is not on them: the
    finest cells are then read and protected here, and the bytes are the same.
    """
    if not isinstance(engine, ConnectedEngine) or not isinstance(method, ProtectedPopulation):
        return None
    if engine.database.connection.backend != "spark" or Division.of(engine.dataset) is None:
        return None
    from pyspark.errors import PythonException

    true: list[FinestCells] = []

    def work(whole: Whole) -> WholePopulation:
        runner = SparkRunner(engine, whole, previous, held)
        try:
            made = protected_by(runner, whole, previous, folder)
        finally:
            runner.close()
        true[:] = [made.true]
        return made

    if not spark.is_private(engine.counted_on_spark()[0]):
        return None
    words: Any = {"previous": previous, "progress": progress, "new_series": new_series}
    try:
        return method.protect_blocks(engine.dataset, key, work, **words), true[0]
    except PythonException as error:
        if "ModuleNotFoundError" not in str(error):
            raise
        log.warning("%s Blocks are protected here, with the same bytes.", spark.NO_LUSTRUM)
        return None
