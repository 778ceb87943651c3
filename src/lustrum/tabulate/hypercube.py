"""A pre-aggregated hypercube as input: cells with counts and summed keys instead of records."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lustrum.model import Dataset, IngestError, InputError, Table, TableQuery
from lustrum.model.arrays import Ints
from lustrum.model.query import Axis
from lustrum.model.records import Records
from lustrum.numeric.counting.engine import Engine, KernelEngine
from lustrum.tabulate.encode import Chunk, encode
from lustrum.tabulate.frame import as_arrow

COUNT = "count"
KEY = "key"


class HypercubeEngine(KernelEngine):
    """Answers from cells: one row per non-empty combination, its count, and its summed key if any."""

    def __init__(
        self,
        cells: object,
        dataset: Dataset,
        count: str = COUNT,
        key: str | None = None,
        workers: int | None = None,
    ) -> None:
        table = as_arrow(cells)
        if dataset.measures or dataset.weights or dataset.id_columns:
            dataset = Dataset(
                name=dataset.name,
                title=dataset.title,
                variables=dataset.variables,
                structural_zeros=dataset.structural_zeros,
                unit=dataset.unit,
                units=dataset.units,
                description=dataset.description,
                study=dataset.study,
            )
        for name in (count, *([key] if key else [])):
            if name not in table.schema.names:
                raise IngestError(f"The hypercube has no column {name!r}; it needs one.")
        if key is None and KEY in table.schema.names:
            key = KEY
        plain = encode(table, dataset, "The hypercube")
        chunk = Chunk(
            rows=plain.rows,
            codes=plain.codes,
            counts=_counts(table, count),
            keys=None if key is None else _keys(table, key),
        )
        super().__init__(dataset, [chunk], workers)


def _counts(table: pa.Table, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    column = table.column(name)
    if not pa.types.is_integer(column.type) or column.null_count:
        raise IngestError(
            f"The hypercube, column {name!r}: counts must be whole numbers, none missing."
        )
    counts = np.asarray(column.combine_chunks().cast(pa.int64()), dtype=np.int64)
    if counts.size and counts.min() < 0:
        raise IngestError(
            f"The hypercube, column {name!r}, row {int(np.argmax(counts < 0)) + 1}: the count is "
            "negative; counts are 0 or more."
        )
    return counts


def _keys(table: pa.Table, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    column = table.column(name)
    if column.type != pa.uint64() or column.null_count:
        raise IngestError(
            f"The hypercube, column {name!r}: summed keys must be unsigned 64-bit integers, none missing."
        )
    return np.asarray(pc.cast(column, pa.uint64()).combine_chunks(), dtype=np.uint64)


def aggregate(engine: Engine, variables: list[str]) -> pa.Table:
    """The non-empty cells of a hypercube over these variables, for :class:`HypercubeEngine`.

    >>> from lustrum.tabulate.frame import FrameEngine, describe_frame
    >>> people = pa.table({"area": ["n", "n", "s"], "job": ["a", "b", "a"]})
    >>> aggregate(FrameEngine(people, describe_frame(people, ["area", "job"])), ["area"]).to_pydict()
    {'area': ['n', 's'], 'count': [2, 1]}
    """
    if not variables:
        raise InputError("A hypercube needs at least one variable.")
    query = TableQuery(engine.dataset.name, tuple(Axis(name) for name in variables))
    table = engine.tabulate(query)
    return cells_of(table, table.values)


def cells_of(table: Table, counts: Ints) -> pa.Table:
    """The cells of a table that hold anybody by these counts, with their summed keys if there are any.

    >>> table = Table.from_counts([3, 0, 2], names=["area"])
    >>> cells_of(table, table.values).to_pydict()
    {'area': ['1', '3'], 'count': [3, 2]}
    """
    where = np.nonzero(counts)
    columns: dict[str, pa.Array] = {}
    for axis, position in zip(table.axes, where, strict=True):
        columns[axis.name] = pa.array(axis.codes).take(pa.array(position))
    columns[COUNT] = pa.array(counts[where])
    if table.keys is not None:
        columns[KEY] = pa.array(table.keys[where])
    return pa.table(columns)


# From engines to records and back: the way of a pre-tabular method.


class RecordsEngine(KernelEngine):
    """Answers from records in memory."""

    def __init__(self, records: Records, workers: int | None = None) -> None:
        chunk = Chunk(len(records), records.codes, records.numbers, records.ids, records.keys)
        super().__init__(records.dataset, [chunk], workers)


def records_of(engine: KernelEngine) -> Records:
    """All records behind an engine in one piece.

    >>> from lustrum.tabulate.frame import FrameEngine, describe_frame
    >>> people = pa.table({"area": ["n", "n", "s"]})
    >>> records_of(FrameEngine(people, describe_frame(people, ["area"]))).codes["area"].tolist()
    [0, 0, 1]
    """
    chunks = engine.chunks

    def joined(part: str, name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(chunk, part)[name] for chunk in chunks])

    first = chunks[0]
    keys = [chunk.keys for chunk in chunks if chunk.keys is not None]
    return Records(
        engine.dataset,
        codes={name: joined("codes", name) for name in first.codes},
        numbers={name: joined("numbers", name) for name in first.numbers},
        ids={name: joined("ids", name) for name in first.ids},
        keys=np.concatenate(keys) if len(keys) == len(chunks) else None,
    )
