"""Writing a version: records and keys with their digests, the manifest last."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lustrum.model import Dataset
from lustrum.runtime.durable import sync
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.store.files import HashedFile
from lustrum.tabulate.store.manifest import KEYS, MANIFEST, RECORDS, FileMark, Manifest
from lustrum.tabulate.store.unique import first_repeated


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
        files = {
            RECORDS: FileMark(self._file.size, self._file.digest()),
            KEYS: self._keys.finish(),
        }
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
    return HashedFile(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


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
