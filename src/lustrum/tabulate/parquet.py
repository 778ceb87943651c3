"""Parquet files read a batch at a time, codes as entries of the dictionaries that the file holds itself.

A batch is a row group, or the next part of one that is larger. So the batches of a file do not depend on how
many threads read it, and memory depends neither on the number of records nor on the size of row groups.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BATCH = 1 << 20
"""Most rows of a batch, whatever they are read from."""

_READ_AHEAD = 1 << 20
"""Bytes of a column that are read at once; without it a column of a row group would be read whole."""

_PIECE = 1 << 17
"""Rows that are decoded at once: the reader makes room for several times as many."""


File: TypeAlias = Path | pa.NativeFile


def reads_plainly(path: File, columns: Collection[str]) -> bool:
    """Whether the columns are plain texts and numbers, whose values no reader changes.

    Dates, times, lists and the like are left to DuckDB, which has its own words for their values.
    """
    with pq.ParquetFile(path) as file:
        leaves = [file.schema.column(i) for i in range(len(file.schema))]
        stored = {leaf.path: leaf.logical_type.type for leaf in leaves}
        fields = {name: file.schema_arrow.field(name).type for name in columns}
    return all(
        "." not in name and name in stored and _is_plain(kind, stored[name])
        for name, kind in fields.items()
    )


def _is_plain(kind: pa.DataType, stored: str) -> bool:
    if _is_text(kind):
        return stored == "STRING"
    whole = pa.types.is_integer(kind)
    return bool(
        whole
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_decimal128(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def batches(
    path: File, columns: list[str], coded: Collection[str], rows: int
) -> Iterator[tuple[pa.Table, int]]:
    """The wanted columns in order of the file, at most so many rows at a time, and the rows of the file."""
    with pq.ParquetFile(
        path, read_dictionary=list(coded), pre_buffer=False, buffer_size=_READ_AHEAD
    ) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        sizes = (min(rows, group - at) for group in groups for at in range(0, group, rows))
        pieces = file.iter_batches(min(rows, _PIECE), columns=columns)
        for table in _cut(pieces, sizes):
            yield table.select(columns), file.metadata.num_rows


def _cut(pieces: Iterable[pa.RecordBatch], sizes: Iterable[int]) -> Iterator[pa.Table]:
    """Pieces of any size as tables of these sizes."""
    left = iter(pieces)
    piece: pa.RecordBatch | None = None
    for size in sizes:
        parts: list[pa.RecordBatch] = []
        while size:
            if piece is None or not piece.num_rows:
                piece = next(left, None)
                if piece is None:
                    raise pa.ArrowInvalid("it holds fewer records than it says")
                for column in piece.columns:
                    _check(column)
            parts.append(piece.slice(0, size))
            size -= parts[-1].num_rows
            piece = piece.slice(parts[-1].num_rows)
        yield pa.Table.from_batches(parts)


def _check(column: pa.Array) -> None:
    """Refuse texts that are not UTF-8 and entries that no dictionary has; the reader does not look."""
    texts = column
    if pa.types.is_dictionary(column.type):
        texts = column.dictionary
        ends = pc.min_max(column.indices)
        if ends["min"].is_valid and not 0 <= ends["min"].as_py() <= ends["max"].as_py() < len(
            texts
        ):
            raise pa.ArrowInvalid("a column has entries that are not in its dictionary")
    if _is_text(texts.type):
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise pa.ArrowInvalid("a text is not UTF-8") from None  # nothing that quotes it
