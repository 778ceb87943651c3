"""Datasets on disk: Arrow files opened by memory map, replaced as a whole or not at all.

::

    <root>/record-keys.secret            the agency's secret, readable by its owner only
    <root>/<dataset>/current             one line: the version in force
    <root>/<dataset>/<version>/dataset.json   description, rows, sizes of the files
    <root>/<dataset>/<version>/records.arrow  dictionary-coded variables, numbers, identifiers
    <root>/<dataset>/<version>/keys.arrow     record keys, readable by their owner only

A new version is written beside the old one and put in force by renaming ``current``, so that a crash
leaves the old dataset or the new one, never half of either.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, DescriptionError
from lustrum.model.errors import choices
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.engine import KernelEngine
from lustrum.tabulate.keys import KEY_VERSION, Secret

__all__ = ["EmbeddedEngine", "Store", "Writer"]

FORMAT = 1
_RECORDS = "records.arrow"
_KEYS = "keys.arrow"
_MANIFEST = "dataset.json"
_CURRENT = "current"
_LOCK = ".lock"
_OWN = re.compile(r"v[0-9a-f]{16}(\.part)?|\.current\.v[0-9a-f]{16}")


@dataclass(frozen=True)
class Store:
    """A folder of datasets."""

    root: Path

    @property
    def secret(self) -> Secret:
        """The agency's secret for record keys, made on first use."""
        return Secret.load_or_create(self.root / "record-keys.secret")

    def names(self) -> list[str]:
        """The datasets that are there."""
        if not self.root.is_dir():
            return []
        return sorted(p.parent.name for p in self.root.glob(f"*/{_CURRENT}"))

    def version(self, name: str) -> str:
        """The version of a dataset that is in force."""
        try:
            return (self.root / name / _CURRENT).read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            raise DatasetError(
                f"There is no dataset {name!r} in {self.root}; {choices(name, self.names())}."
            ) from None

    def open(self, name: str, workers: int | None = None) -> EmbeddedEngine:
        """Open the version in force."""
        version = self.version(name)
        try:
            return EmbeddedEngine(self.root / name / version, version, workers)
        except DatasetError:
            if self.version(name) == version:
                raise
            return self.open(name, workers)  # it was replaced between the two looks

    @contextlib.contextmanager
    def replace(self, dataset: Dataset) -> Iterator[Writer]:
        """Write a new version and put it in force at the end; an exception leaves the old one."""
        _check_described(dataset)
        home = self.root / dataset.name
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatasetError(f"{home} cannot be made: {error.strerror}.") from None
        version = f"v{secrets.token_hex(8)}"
        folder = home / f"{version}.part"
        with _alone(home):
            try:
                folder.mkdir(mode=0o700)  # microdata are for their keeper only
                with contextlib.closing(Writer(folder, dataset)) as writer:
                    yield writer
                    writer.finish()
                folder.rename(home / version)
                _sync(home)
                draft = home / f".{_CURRENT}.{version}"
                draft.write_text(version + "\n", encoding="ascii")
                _sync(draft)
                draft.replace(home / _CURRENT)
                _sync(home)
            except OSError as error:
                raise DatasetError(
                    f"Dataset {dataset.name!r} could not be written to {home}: "
                    f"{error.strerror or error}; the earlier data, if any, are as they were."
                ) from None
            finally:
                self._clean(home)

    def _clean(self, home: Path) -> None:
        """Remove all versions but the one in force; who has an old one mapped keeps it until they close."""
        current = home / _CURRENT
        kept = current.read_text(encoding="ascii").strip() if current.exists() else ""
        for path in home.iterdir():
            if _OWN.fullmatch(path.name) and path.name != kept:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()


class Writer:
    """Writes chunks to a version's files."""

    def __init__(self, folder: Path, dataset: Dataset) -> None:
        self._folder = folder
        self._dataset = dataset
        self._rows = 0
        self._schema = _record_schema(dataset)
        self._record_file = pa.OSFile(str(folder / _RECORDS), "wb")
        self._records = pa.ipc.new_file(self._record_file, self._schema)
        handle = os.open(folder / _KEYS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._key_file = os.fdopen(handle, "wb")
        self._keys = pa.ipc.new_file(self._key_file, pa.schema([("key", pa.uint64())]))

    def write(self, chunk: Chunk) -> None:
        """Append records."""
        arrays: list[pa.Array] = []
        for v in self._dataset.variables:
            field_type = self._schema.field(v.name).type
            arrays.append(
                pa.DictionaryArray.from_arrays(
                    pa.array(chunk.codes[v.name], field_type.index_type), pa.array(v.codes)
                )
            )
        for name in (
            *(m.name for m in self._dataset.measures),
            *(w.name for w in self._dataset.weights),
        ):
            arrays.append(pa.array(chunk.numbers[name], pa.int64()))
        for name in self._dataset.id_columns:
            arrays.append(pa.array(chunk.ids[name], pa.int64()))
        self._records.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._keys.write_batch(pa.record_batch([pa.array(chunk.keys, pa.uint64())], names=["key"]))
        self._rows += chunk.rows

    def close(self) -> None:
        """Let go of the files, finished or not."""
        self._record_file.close()
        self._key_file.close()

    def finish(self) -> None:
        """Finish the files and write the manifest last."""
        self._records.close()
        self._keys.close()
        self.close()
        manifest = {
            "format": FORMAT,
            "key_version": KEY_VERSION,
            "rows": self._rows,
            "bytes": {name: (self._folder / name).stat().st_size for name in (_RECORDS, _KEYS)},
            "description": self._dataset.source,
        }
        path = self._folder / _MANIFEST
        path.write_text(json.dumps(manifest, ensure_ascii=False), encoding="utf-8")
        for name in (_RECORDS, _KEYS, _MANIFEST):
            _sync(self._folder / name)


class EmbeddedEngine(KernelEngine):
    """Answers from a dataset on disk, through a memory map."""

    def __init__(self, folder: Path, version: str, workers: int | None = None) -> None:
        manifest = _manifest(folder)
        dataset = Dataset.from_mapping(manifest["description"])
        self.version = version
        self.rows = int(manifest["rows"])
        # Both maps stay open as long as the engine: its arrays are views into them.
        self._maps = [pa.memory_map(str(folder / name)) for name in (_RECORDS, _KEYS)]
        try:
            records, keys = (pa.ipc.open_file(m) for m in self._maps)
            chunks = [
                _chunk(dataset, records.get_batch(i), keys.get_batch(i))
                for i in range(records.num_record_batches)
            ]
        except (pa.ArrowException, OSError):
            raise DatasetError(
                f"The dataset in {folder} is damaged: its records cannot be read; ingest it again."
            ) from None
        super().__init__(dataset, chunks, workers)

    @property
    def encoded_bytes(self) -> int:
        """The size of the encoded columns."""
        return sum(m.size() for m in self._maps)


def _manifest(folder: Path) -> dict[str, Any]:
    damaged = f"The dataset in {folder} is damaged"
    try:
        manifest: dict[str, Any] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(manifest, dict):
            raise ValueError("not a manifest")
    except (OSError, ValueError):
        raise DatasetError(f"{damaged}: {_MANIFEST} cannot be read; ingest it again.") from None
    if manifest.get("format") != FORMAT:
        raise DatasetError(
            f"The dataset in {folder} was written by another version of Lustrum; ingest it again."
        )
    for name, size in manifest["bytes"].items():
        try:
            found = (folder / name).stat().st_size
        except OSError:
            raise DatasetError(f"{damaged}: {name} is missing; ingest it again.") from None
        if found != size:  # a shorter file under a memory map would end the process, not the query
            raise DatasetError(
                f"{damaged}: {name} has {found:,} bytes and should have {size:,}; ingest it again."
            )
    return manifest


def _record_schema(dataset: Dataset) -> pa.Schema:
    fields = []
    for v in dataset.variables:
        index = pa.uint8() if len(v.codes) <= 1 << 8 else pa.uint16()
        if len(v.codes) > 1 << 16:
            index = pa.uint32()
        fields.append(pa.field(v.name, pa.dictionary(index, pa.string())))
    numbers = [*(m.name for m in dataset.measures), *(w.name for w in dataset.weights)]
    fields += [pa.field(name, pa.int64()) for name in (*numbers, *dataset.id_columns)]
    return pa.schema(fields)


def _chunk(dataset: Dataset, records: pa.RecordBatch, keys: pa.RecordBatch) -> Chunk:
    def array(name: str) -> np.ndarray[Any, Any]:
        column = records.column(records.schema.get_field_index(name))
        source = column
        if pa.types.is_dictionary(column.type):
            # The kernel checks no bounds: these codes must be those of the description.
            if tuple(column.dictionary.to_pylist()) != dataset.variable(name).codes:
                raise pa.ArrowInvalid(f"other codes of {name}")
            source = column.indices
        out: np.ndarray[Any, Any] = source.to_numpy(zero_copy_only=True)
        return out

    numbers = [*(m.name for m in dataset.measures), *(w.name for w in dataset.weights)]
    return Chunk(
        rows=records.num_rows,
        codes={v.name: array(v.name) for v in dataset.variables},
        numbers={name: array(name) for name in numbers},
        ids={name: array(name) for name in dataset.id_columns},
        keys=keys.column(0).to_numpy(zero_copy_only=True),
    )


def _check_described(dataset: Dataset) -> None:
    try:
        kept = Dataset.from_mapping(dataset.source)
    except DescriptionError:
        kept = None
    if kept != dataset:
        raise DescriptionError(
            f"Dataset {dataset.name!r} does not come from its description, which is kept beside the "
            "records; make it with Dataset.from_mapping or read_description."
        )


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Keep other writers away from a dataset; a crash lets go too."""
    try:
        handle = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DatasetError(f"{home} cannot be written to: {error.strerror}.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise DatasetError(
            f"Another process is writing to {home}; wait until it is done."
        ) from None
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
