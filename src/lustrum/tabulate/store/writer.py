"""Writing a version: records and keys with their digests, the manifest last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lustrum.model import Dataset
from lustrum.runtime.durable import BINARY, read_at, sync
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.store.files import HashedFile
from lustrum.tabulate.store.manifest import KEYS, MANIFEST, RECORDS, FileMark, Manifest


class Writer:
    """Writes chunks to a version's files; ``secret`` is the one behind their keys."""

    def __init__(self, folder: Path, dataset: Dataset, secret: Secret) -> None:
        self.secret = secret
        self._folder = folder
        self._dataset = dataset
        self._rows = 0
        self._schema = record_schema(dataset)
        self._file = new_file(folder / RECORDS)
        try:
            self._keys = KeyWriter(folder)
        except BaseException:
            self._file.close()
            raise
        self._records = pa.ipc.new_file(self._file, self._schema)
        self._codes = {v.name: pa.array(v.codes) for v in dataset.variables}
        self._ended = False
        self._highest = -1  # of all record ids so far, as long as they ascend
        self._ascending = True

    def write(self, chunk: Chunk) -> None:
        arrays: list[pa.Array] = []
        for v in self._dataset.variables:
            field_type = self._schema.field(v.name).type
            arrays.append(
                pa.DictionaryArray.from_arrays(
                    pa.array(chunk.codes[v.name], field_type.index_type), self._codes[v.name]
                )
            )
        for name in (
            *(m.name for m in self._dataset.measures),
            *(c.name for w in self._dataset.weights for c in w.columns),
        ):
            arrays.append(pa.array(chunk.numbers[name], pa.int64()))
        for name in self._dataset.id_columns:
            arrays.append(pa.array(chunk.ids[name], pa.int64()))
        self._records.write_batch(pa.record_batch(arrays, schema=self._schema))
        assert chunk.keys is not None
        self._keys.write(chunk.keys)
        self._rows += chunk.rows
        if self._dataset.record_id is not None and self._ascending and chunk.rows:
            ids = chunk.ids[self._dataset.record_id]
            self._ascending = bool(ids[0] > self._highest and (ids[1:] > ids[:-1]).all())
            self._highest = int(ids[-1])

    def repeated(self) -> tuple[int, int] | None:
        """Two rows, numbered from 1, with the same record id, once all were written; None if all differ."""
        name = self._dataset.record_id
        if name is None or self._ascending:
            return None
        self._end_records()
        row_pair = first_repeated(lambda: self._read_back(name), self._rows, self._folder)
        return None if row_pair is None else (row_pair[0] + 1, row_pair[1] + 1)

    def _end_records(self) -> None:
        if not self._ended:
            self._records.close()  # each call would write the end again
            self._ended = True

    def _read_back(self, name: str) -> Iterator[npt.NDArray[np.int64]]:
        """One column of what was written."""
        wanted = pa.ipc.IpcReadOptions(included_fields=[self._schema.get_field_index(name)])
        try:
            with pa.OSFile(str(self._folder / RECORDS)) as file:
                records = pa.ipc.open_file(file, options=wanted)
                for i in range(records.num_record_batches):
                    yield records.get_batch(i).column(name).to_numpy()
        except pa.ArrowInvalid:
            raise OSError("what was written there reads differently") from None

    def close(self) -> None:
        """Let go of the files, finished or not."""
        self._file.close()
        self._keys.close()

    def finish(self) -> bytes:
        """Finish the files and write the manifest last; gives the manifest."""
        self._end_records()
        self._file.sync()
        files = {RECORDS: FileMark(self._file.size, self._file.digest()), KEYS: self._keys.finish()}
        self.close()
        known = self.secret.fingerprint
        manifest = Manifest(self._rows, files, known, self._dataset.source).to_bytes()
        write_manifest(self._folder, manifest)
        return manifest


class KeyWriter:
    """Writes the record keys of a version, batch by batch like the records."""

    def __init__(self, folder: Path) -> None:
        self._file = new_file(folder / KEYS)
        self._writer = pa.ipc.new_file(self._file, pa.schema([("key", pa.uint64())]))

    def write(self, keys: npt.NDArray[np.uint64]) -> None:
        self._writer.write_batch(pa.record_batch([pa.array(keys, pa.uint64())], names=["key"]))

    def close(self) -> None:
        self._file.close()

    def finish(self) -> FileMark:
        self._writer.close()
        self._file.sync()
        self._file.close()
        return FileMark(self._file.size, self._file.digest())


def new_file(path: Path) -> HashedFile:
    """A new file that only its owner may read: records and keys are confidential."""
    return HashedFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600))


def write_manifest(folder: Path, manifest: bytes) -> None:
    """Write the manifest, and make the names in the folder durable."""
    file = new_file(folder / MANIFEST)
    try:
        file.write(manifest)
        file.sync()
    finally:
        file.close()
    sync(folder)


def record_schema(dataset: Dataset) -> pa.Schema:
    """The columns of a dataset as they are kept."""
    fields = []
    for v in dataset.variables:
        index = pa.uint8() if len(v.codes) <= 1 << 8 else pa.uint16()
        if len(v.codes) > 1 << 16:
            index = pa.uint32()
        fields.append(pa.field(v.name, pa.dictionary(index, pa.string())))
    numbers = [
        *(m.name for m in dataset.measures),
        *(c.name for w in dataset.weights for c in w.columns),
    ]
    fields += [pa.field(name, pa.int64()) for name in (*numbers, *dataset.id_columns)]
    return pa.schema(fields)


# Whether all identifiers of a version differ, in bounded memory and without doubt.
#
# The identifiers are read back from the version itself. As many as there is room for are sorted and written
# to a spill file as a run. Then all runs are read side by side, from the lowest identifiers to the highest, a
# window at a time. Windows end at identifiers that were sampled from the runs, so that none holds more than
# there is room for.


Ids = npt.NDArray[np.int64]

_GOES = getattr(os, "O_TEMPORARY", 0)  # Windows removes such a file when it is closed
ROOM = 1 << 23
"""Identifiers that are held in memory at once: 64 MiB of them, and as much again while they are sorted."""

_SAMPLES = 1 << 10  # parts of a run that are set apart by a sample


@dataclass(frozen=True)
class _SpilledRun:
    """Sorted identifiers in the spill file: where they begin, how many, and some of them."""

    start: int
    size: int
    step: int
    samples: Ids


def first_repeated(
    batches: Callable[[], Iterable[Ids]], count: int, folder: Path
) -> tuple[int, int] | None:
    """The first two places, from 0, of the lowest identifier that is there twice; None if there is none.

    ``batches`` gives the identifiers from the beginning, each time that it is called. If there are more
    than there is room for, a spill file stands in the folder, readable by its owner only and without a name.
    """
    if count <= ROOM:
        lowest = min(_repeated_in_runs(batches()), default=None)
    else:
        path = folder / "identifiers.part"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | BINARY | _GOES, 0o600)
        try:
            if not _GOES:
                path.unlink()  # the file goes when it is closed, however the process ends
            runs: list[_SpilledRun] = []
            lowest = min(_repeated_in_runs(batches(), handle, runs), default=None)
            # Windows ascend, so that no later one holds a lower one.
            across = next(_repeated_in(_windows(runs, handle)), lowest)
            lowest = across if lowest is None or across is None else min(lowest, across)
        finally:
            os.close(handle)
    return None if lowest is None else _places(batches(), lowest)


def _repeated_in_runs(
    batches: Iterable[Ids], handle: int | None = None, runs: list[_SpilledRun] | None = None
) -> Iterator[int]:
    """The lowest repeated identifier of each run that has one; runs are set aside where there is a file."""
    written = 0
    for ids in _gathered(batches):
        ids.sort()
        twice = _lowest_in(ids)
        if twice is not None:
            yield twice
            # Within a run each stands once, so that no window fills with one identifier.
            ids = ids[np.append(True, ids[1:] != ids[:-1])]
        if handle is not None and runs is not None:
            step = max(1, -(-ids.size // _SAMPLES))
            runs.append(_SpilledRun(written, ids.size, step, ids[::step].copy()))
            written += _write(handle, ids)


def _repeated_in(ordered: Iterable[Ids]) -> Iterator[int]:
    """The lowest repeated identifier of each window that has one."""
    for window in ordered:
        twice = _lowest_in(window)
        if twice is not None:
            yield twice


def _windows(runs: list[_SpilledRun], handle: int) -> Iterator[Ids]:
    """All identifiers of the runs in ascending order, some at a time; those that are equal come together."""
    samples = np.sort(np.concatenate([run.samples for run in runs] or [np.empty(0, np.int64)]))
    # Between two ends a run has at most the samples there, and one more step before and after them.
    longest = max((run.step for run in runs), default=1)
    apart = max(1, ROOM // longest - 2 * len(runs))
    ends = np.unique(samples[apart::apart])
    done = [0] * len(runs)
    for end in (*ends.tolist(), None):
        parts: list[Ids] = []
        for i, run in enumerate(runs):
            stop = run.size
            if end is not None:
                # The run passes the end between two samples: only that step is looked at.
                after = int(np.searchsorted(run.samples, end))
                stop = min(run.size, after * run.step)
            part = _read(handle, run.start + done[i], max(0, stop - done[i]))
            if end is not None:
                part = part[: int(np.searchsorted(part, end))]
            parts.append(part)
            done[i] += part.size
        window = np.concatenate(parts)
        window.sort(kind="stable")  # which merges what is sorted already
        yield window


def _gathered(batches: Iterable[Ids]) -> Iterator[Ids]:
    """Batches together, as many identifiers as there is room for."""
    room, held = np.empty(0, np.int64), 0
    for batch in batches:
        while batch.size:
            if not room.size:
                room, held = np.empty(ROOM, np.int64), 0
            part = batch[: ROOM - held]
            room[held : held + part.size] = part
            held, batch = held + part.size, batch[part.size :]
            if held == ROOM:
                yield room
                room, held = np.empty(0, np.int64), 0
    if held:
        yield room[:held]


def _lowest_in(ordered: Ids) -> int | None:
    """The lowest identifier that sorted ones hold twice."""
    twice = ordered[1:] == ordered[:-1]
    index = int(np.argmax(twice)) if twice.size else 0
    return int(ordered[index]) if twice.size and twice[index] else None


def _places(batches: Iterable[Ids], wanted: int) -> tuple[int, int]:
    """Where an identifier stands for the first and the second time."""
    positions: list[int] = []
    first = 0
    for batch in batches:
        positions += (first + np.flatnonzero(batch == wanted)[:2]).tolist()
        if len(positions) >= 2:
            break
        first += batch.size
    return positions[0], positions[1]


def _write(handle: int, ids: Ids) -> int:
    left = ids.data.cast("B")
    while left:
        left = left[os.write(handle, left) :]
    return int(ids.size)


def _read(handle: int, start: int, count: int) -> Ids:
    out = np.empty(count, dtype=np.int64)
    left, offset = out.data.cast("B"), 8 * start
    while left:
        read = read_at(handle, left, offset)
        if not read:
            raise OSError("the identifiers that were set aside cannot be read again")
        left, offset = left[read:], offset + read
    return out
