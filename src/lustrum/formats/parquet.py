"""Parquet: one row per cell, written a group of rows at a time, so that tables of any size fit into memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lustrum.formats.about import NOTHING, About
from lustrum.formats.cell_text import HeadNames
from lustrum.model import Release
from lustrum.model.arrays import Ints, Mask
from lustrum.model.release import check_publishable
from lustrum.model.text import say

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 20
"""Rows of a group, as pyarrow itself would write them."""


class Parquet:
    """Writes one row per cell: a code and a label per variable, the value, the status.

    The columns are those of :class:`~lustrum.formats.csv.Csv`. A suppressed value is null, never 0, and nothing
    stands behind the null. Whole numbers are 64-bit integers, others exact decimals.
    """

    name: ClassVar[str] = "parquet"
    media_type: ClassVar[str] = "application/vnd.apache.parquet"
    ending: ClassVar[str] = "parquet"
    other_endings: ClassVar[tuple[str, ...]] = ("pq",)
    title: ClassVar[str] = say("Parquet")
    cell_bytes: ClassVar[int] = 50
    tells_about: ClassVar[bool] = True

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> bytes:
        """The release as the bytes of a file, whose metadata say what it is."""
        said: dict[str, list[str]] = {}
        for name, value in () if about is NOTHING else about.lines(release, label):
            said.setdefault(name, []).append(str(value))
        metadata = {name: "\n".join(values) for name, values in said.items()}
        return b"".join(self.pieces(about.beside(release), metadata))

    def pieces(
        self, release: Release, metadata: Mapping[str, str] | None = None
    ) -> Iterator[bytes]:
        """The file in pieces, for a table that is large."""
        check_publishable(release, "A Parquet file")
        known, stated = release.known, release.stated
        ends = [
            (name, end)
            for name, end in (("low", release.least), ("high", release.most))
            if end is not None and stated.any()
        ]
        errors, grades = release.errors, release.grades
        margins = release.error_margins
        there = None if errors is None else known & (errors >= 0)
        many = release.shape[-1] if release.axes else 1

        # Each statistic has decimals of its own, and no file shows more of them than another.
        steps = np.array(
            [10 ** (release.decimals - release.decimals_at(index)) for index in range(many)],
            dtype=np.int64,
        )

        heads = HeadNames.of(release.axes)
        called = heads.facts
        named = []
        for index, axis in enumerate(release.axes):
            parts = [(axis.name, plain_texts(axis.codes))]
            parts.append((heads.labels[index], plain_texts(axis.labels)))
            if any(category.note for category in axis.categories):
                notes = [category.note for category in axis.categories]
                parts.append((heads.members[index], plain_texts(notes)))
            named.append((after_axis(release.shape, index), parts))
        units = plain_texts([release.unit_at(at) for at in range(many)]) if release.label else None

        def seen_as(values: Ints, where: Mask, low: int, high: int) -> pa.Array:
            step = steps[np.arange(low, high) % steps.size]
            whole = values.ravel()[low:high] // step * step
            return exact(whole, where.ravel()[low:high], release.decimals)

        def columns(low: int, high: int) -> dict[str, pa.Array]:
            arrays: dict[str, pa.Array] = {}
            for after, parts in named:
                for name, texts in parts:
                    arrays[name] = spread(texts, after, low, high, coded=True)
            arrays[called["value"]] = seen_as(release.numbers, known, low, high)
            if units is not None:
                arrays[called["unit"]] = spread(units, 1, low, high, coded=True)
            arrays[called["status"]] = letters(release.status, low, high)
            for name, end in ends:
                arrays[called[name]] = seen_as(end, stated, low, high)
            if errors is not None and there is not None and grades is not None:
                arrays[called["standard_error"]] = seen_as(errors, there, low, high)
                seen = there.ravel()[low:high]
                arrays[called["reliability"]] = letters(grades, low, high, ~seen)
            if margins is not None:
                arrays[called["margin"]] = seen_as(margins, known & (margins >= 0), low, high)
            return arrays

        # Without the types of Arrow readers see texts, not the numbers that stand for them here.
        return parquet_pieces(release.numbers.size, columns, schema=False, metadata=metadata)


def parquet_pieces(
    size: int,
    columns: Callable[[int, int], dict[str, pa.Array]],
    *,
    schema: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> Iterator[bytes]:
    """A file of so many rows; ``columns`` gives those from one number to another.

    With ``schema`` the types of Arrow stand in it beside those of Parquet.
    """
    import pyarrow as pa
    from pyarrow import parquet

    sink = _Sink()
    writer = None
    for low in range(0, max(size, 1), ROWS):
        part = pa.table(columns(low, min(low + ROWS, size)))
        if writer is None:
            writer = parquet.ParquetWriter(pa.PythonFile(sink), part.schema, store_schema=schema)
        writer.write_table(part)
        del part
        yield sink.taken()
    assert writer is not None
    if metadata:
        writer.add_key_value_metadata(dict(metadata))
    writer.close()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """Holds what was written until somebody takes it."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def writable(self) -> bool:
        """A file that is written and never read."""
        return True

    def write(self, data: Any, /) -> int:
        """Take some bytes in."""
        self._held.append(bytes(data))
        return len(data)

    def taken(self) -> bytes:
        """All that came since it was last asked for."""
        held, self._held = self._held, []
        return b"".join(held)


def plain_texts(names: Sequence[str]) -> pa.Array:
    """Texts unchanged: columns have types, so that no program takes one for a formula."""
    import pyarrow as pa

    return pa.array([str(name) for name in names], pa.string())


def after_axis(shape: Sequence[int], axis: int) -> int:
    """How many cells have the same category of an axis one after the other."""
    return int(np.prod(shape[axis + 1 :], dtype=np.int64))


def spread(names: pa.Array, after: int, low: int, high: int, *, coded: bool = False) -> pa.Array:
    """The names along an axis for the cells from one number to another; if ``coded`` as numbers of names."""
    import pyarrow as pa

    taken = np.arange(low, high, dtype=np.int64) // after % max(len(names), 1)
    if not coded:
        return names.take(pa.array(taken.astype(np.int32)))
    first, last = (int(taken.min()), int(taken.max())) if taken.size else (0, -1)
    # Each text once: where one stands twice, Arrow writes pages of the size of both and fills them with
    # whatever was in memory, which then is in a public file.
    once = names.slice(first, last - first + 1).dictionary_encode()
    numbers = once.indices.take(pa.array((taken - first).astype(np.int32)))
    return pa.DictionaryArray.from_arrays(numbers, once.dictionary)


def letters(texts: Any, low: int, high: int, hidden: Mask | None = None) -> pa.Array:
    """Short texts of some cells, null where they are hidden, as numbers of the texts that occur."""
    import pyarrow as pa

    part = np.ascontiguousarray(texts.ravel()[low:high])
    if part.dtype != np.dtype("<U1"):
        return pa.array(part.tolist(), pa.string(), mask=hidden).dictionary_encode()
    signs = part.view(np.uint32)
    if hidden is not None:
        # A text that no cell shows may not stand among those that occur either.
        signs = np.where(hidden, 0, signs)
    there = np.flatnonzero(np.bincount(signs))
    text_index = np.zeros(int(there[-1]) + 1 if there.size else 1, dtype=np.int32)
    text_index[there] = np.arange(there.size)
    known = pa.array([chr(sign) if sign else "" for sign in there.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(text_index[signs], mask=hidden), known)


def exact(values: Ints, where: Mask, decimals: int, cells: slice = slice(None)) -> pa.Array:
    """Numbers where they may be seen, null elsewhere; decimals are exact."""
    import pyarrow as pa

    seen = where.ravel()[cells]
    # What may not be seen must not stand behind a null either, where some readers would find it.
    whole = np.where(seen, values.ravel()[cells], 0).astype(np.int64)
    if not decimals:
        return pa.array(whole, pa.int64(), mask=~seen)
    halves = np.column_stack([whole, whole >> 63])
    valid = pa.array(seen).buffers()[1]
    kind = pa.decimal128(38, decimals)
    hidden = int(seen.size - np.count_nonzero(seen))
    return pa.Array.from_buffers(
        kind, whole.size, [valid, pa.py_buffer(halves.astype("<i8").tobytes())], null_count=hidden
    )
