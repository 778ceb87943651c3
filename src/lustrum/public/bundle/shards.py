"""Very many cells in shards: a question reads those that it needs, and checks the digest of each before use.

``cells.arrow`` then has a batch of cells for every shard, and ``shards.json`` says where each of them begins,
its digest, and the least and the greatest code of every variable in it. A shard holds whole blocks of the
description, or a run of codes of the variable with the most codes, as far as they fit into it.

Opening reads ``shards.json`` and no shard. The file stays open, so that a bundle that is replaced answers to
the end. Bytes are checked whenever they are read, and numbers come from these very bytes: a shard that is
damaged, or that somebody changes while the server runs, ends in one sentence and in no number.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, LustrumError
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.finest import FinestCells, ascending, code_type
from lustrum.numeric.counting.engine import PartsEngine
from lustrum.numeric.counting.plan import Chunk, CodeRanges, Entries
from lustrum.protect.population.blocks.divide import Division
from lustrum.protect.population.support import Support

SHARD = 1 << 18
"""Cells of a shard, at most."""
SHARDED_FROM = 1 << 20
"""Bundles of more cells than this are written in shards."""
COUNT = "count"
_MAGIC = b"ARROW1\0\0"
LISTED = 36
"""Bits below which lows are added up; cells are counted above them."""


class Shard(NamedTuple):
    """Where the bytes of a shard stand, their digest, and what cells they hold: of which groups, from which
    one to which, and the least and the greatest code of every variable."""

    at: int
    bytes: int
    sha256: str
    rows: int
    groups: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    least: tuple[int, ...]
    greatest: tuple[int, ...]

    @classmethod
    def read(cls, words: Mapping[str, Any]) -> Shard:
        values = [words[name] for name in cls._fields]
        return cls._make(tuple(v) if isinstance(v, list) else v for v in values)


def _grouped(dataset: Dataset) -> tuple[int, Ints]:
    """The variable by which shards divide cells, and the group of each of its codes."""
    division = Division.of(dataset)
    if division is not None:
        return [v.name for v in dataset.variables].index(division.root), division.block_of
    sizes = [len(v.codes) for v in dataset.variables]
    largest = int(np.argmax(sizes))
    return largest, np.arange(sizes[largest], dtype=np.int64)


def _schema(dataset: Dataset, count: str) -> pa.Schema:
    """The columns of a shard; what the file itself says of them is under no digest of a shard."""
    fields = [(v.name, pa.from_numpy_dtype(code_type(len(v.codes)))) for v in dataset.variables]
    return pa.schema([*fields, (COUNT, pa.from_numpy_dtype(count))])


def shards_of(cells: FinestCells, size: int = SHARD) -> tuple[bytes, dict[str, Any]]:
    """The cells as an Arrow file with a batch for each shard, and the words of ``shards.json``."""
    variable, group_of = _grouped(cells.dataset)
    groups = group_of[cells.codes[variable]]
    order = np.argsort(groups, kind="stable")
    groups = groups[order]
    count = str(np.min_scalar_type(int(cells.counts.max(initial=1))))
    schema = _schema(cells.dataset, count)
    out = pa.BufferOutputStream()
    head = len(_MAGIC) + schema.serialize().size  # written with the first batch
    places: list[list[Any]] = []
    with pa.ipc.new_file(out, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        for start, stop in _runs(groups, size):
            rows = np.sort(order[start:stop])
            codes = cells.codes[:, rows]
            columns = [
                pa.array(column, kind.type)
                for column, kind in zip((*codes, cells.counts[rows]), schema, strict=True)
            ]
            began = max(out.tell(), head)
            file.write_batch(pa.record_batch(columns, schema=schema))
            ends = (codes[:, 0], codes[:, -1], codes.min(axis=1), codes.max(axis=1))
            held = (groups[[start, stop - 1]], *ends)
            places.append([began, out.tell() - began, rows.size, *(end.tolist() for end in held)])
    data: bytes = out.getvalue().to_pybytes()
    shards = [
        Shard(at, length, hashlib.sha256(data[at : at + length]).hexdigest(), *rest)._asdict()
        for at, length, *rest in places
    ]
    return data, {"cells": len(cells), "count": count, "shards": shards}


def _runs(groups: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Runs of at most so many cells: whole groups, or a part of one group that alone is longer."""
    start = 0
    while start < groups.size:
        stop = min(start + size, groups.size)
        if start and groups[start] == groups[start - 1]:
            stop = min(stop, int(np.searchsorted(groups, groups[start], side="right")))
        elif stop < groups.size:
            edge = int(np.searchsorted(groups, groups[stop]))
            stop = edge if edge > start else stop
        yield start, stop
        start = stop


class ShardedCells:
    """The finest cells of a bundle that stay in their file; safe to share between threads."""

    def __init__(self, path: Path, stated: bytes, dataset: Dataset, support: Support) -> None:
        words = json.loads(stated)
        self.dataset, self._support, self._path = dataset, support, path
        self.shards = tuple(Shard.read(one) for one in words["shards"])
        self._schema = _schema(dataset, words["count"])
        self._grouped = _grouped(dataset)
        self.end = self._checked(words["cells"])
        self._known: set[int] = set()
        self._lock = threading.Lock()
        self._file = path.open("rb", buffering=0)
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return sum(shard.rows for shard in self.shards)

    def __repr__(self) -> str:
        return f"ShardedCells({self.dataset.name!r})"

    def _checked(self, cells: int) -> int:
        """Where the last shard ends; raises ValueError where they do not fit each other or the description."""
        _require(cells == sum(shard.rows for shard in self.shards) > 0)
        sizes = [len(v.codes) for v in self.dataset.variables]
        end, group = 0, -1
        last: tuple[int, ...] = ()
        for one in self.shards:
            _require(one.rows > 0 and one.at >= end and one.bytes > 0)
            # Each cell stands once: groups go up from shard to shard, and so do the cells of one group.
            goes_on = one.groups == (group, group) and one.first > last
            _require(goes_on or group < one.groups[0] <= one.groups[1])
            _require(len(one.first) == len(one.last) == len(sizes))
            for low, high, most in zip(one.least, one.greatest, sizes, strict=True):
                _require(0 <= low <= high < most)
            end, group, last = one.at + one.bytes, one.groups[1], one.last
        return end

    def read(self, number: int) -> tuple[dict[str, Array], Ints]:
        """The codes and counts of a shard, from bytes that have the digest that is stated."""
        shard = self.shards[number]
        try:
            data = self._bytes(shard)
        except OSError:
            data = b""
        if hashlib.sha256(data).hexdigest() != shard.sha256:
            raise DatasetError(
                f"{self._path} is damaged: part {number + 1} of {len(self.shards)} does not have the digest "
                "that was stated; copy the bundle again, or make it again."
            )
        try:
            batch = pa.ipc.read_record_batch(pa.ipc.read_message(data), self._schema)
            *rows, shown = (np.from_dlpack(column) for column in batch.columns)
            counts = shown.astype(np.int64)
            if number not in self._known:
                self._require_fit(shard, rows, counts)
                self._known.add(number)
        except (LustrumError, ValueError, pa.ArrowException):
            raise DatasetError(
                f"{self._path} was written by another version of Lustrum: its part {number + 1} does not fit "
                "the description; make the bundle again."
            ) from None
        return dict(zip(self._schema.names, rows, strict=False)), counts

    def _bytes(self, shard: Shard) -> bytes:
        if hasattr(os, "pread"):  # needs no place in the file, which processes may share
            return os.pread(self._file.fileno(), shard.bytes, shard.at)
        with self._lock:
            self._file.seek(shard.at)
            return bytes(self._file.read(shard.bytes))

    def _require_fit(self, shard: Shard, rows: Sequence[Array], counts: Ints) -> None:
        """Hold the cells of a shard against what was stated of them, and counts against the method."""
        _require(counts.size == shard.rows and int(counts.min()) >= 1 and ascending(rows))
        for place, ends in ((0, shard.first), (-1, shard.last)):
            _require(tuple(int(row[place]) for row in rows) == ends)
        _require(tuple(int(row.min()) for row in rows) == shard.least)
        _require(tuple(int(row.max()) for row in rows) == shard.greatest)
        variable, group_of = self._grouped
        groups = group_of[rows[variable]]
        _require((int(groups.min()), int(groups.max())) == shard.groups)
        self._support.check(counts)

    def check(self) -> None:
        """Read and check every shard."""
        for number in range(len(self.shards)):
            self.read(number)

    def engine(self, workers: int | None) -> PartsEngine:
        """An engine that reads the shards which a question needs; keys say how little each cell can hold."""
        ranges = {
            variable.name: CodeRanges(
                *np.array([(s.least[v], s.greatest[v]) for s in self.shards]).T
            )
            for v, variable in enumerate(self.dataset.variables)
        }

        def part(number: int) -> Chunk:
            codes, counts = self.read(number)
            return counted(codes, counts, self._support)

        variable, group_of = self._grouped
        name = self.dataset.variables[variable].name
        first, last = np.array([shard.groups for shard in self.shards]).T

        def needed(entries: Entries) -> Mask:
            holds = np.ones(len(self.shards), dtype=np.bool_)
            for _, entry in (one for one in entries if one[0] == name):
                # Below zero is what fails a filter or stands in no category that is shown.
                passing = np.bincount(group_of[entry >= 0], minlength=int(group_of.max()) + 1) > 0
                before = np.append(0, np.cumsum(passing))
                holds &= before[last + 1] > before[first]
            return holds

        rows = [shard.rows for shard in self.shards]
        return PartsEngine(self.dataset, rows, ranges, needed, part, workers)


def counted(codes: Mapping[str, Array], counts: Ints, support: Support) -> Chunk:
    """Cells for an engine; in place of keys the least that each can be, and a 1 above it."""
    low, high = support.bounds(counts)
    if counts.size and int(np.ptp(high - counts)):
        raise DatasetError("The support of the protected population is not understood here.")
    return Chunk(
        counts.size, codes, counts=counts, keys=low.astype(np.uint64) | np.uint64(1 << LISTED)
    )


def _require(fits: bool) -> None:
    if not fits:
        raise ValueError("shards do not fit each other")
