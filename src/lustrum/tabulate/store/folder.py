"""A folder of datasets.

::

    <root>/record-keys.secret            the agency's secret, readable by its owner only
    <root>/<dataset>/current             one line: the version in force
    <root>/<dataset>/<version>/dataset.json   description, rows, sizes and digests of the files
    <root>/<dataset>/<version>/records.arrow  dictionary-coded variables, numbers, identifiers
    <root>/<dataset>/<version>/keys.arrow     record keys, readable by their owner only

A new version is written beside the old one and put in force by renaming ``current``, so that a crash
leaves the old dataset or the new one, never half of either.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import secrets
import shutil
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, DescriptionError, InternalError
from lustrum.model.errors import choices
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.counting.plan import Zones
from lustrum.runtime.data_folder import CONNECTIONS, CURRENT, datasets_in
from lustrum.runtime.durable import lock, outages, sync, write_whole
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.store import secret_files
from lustrum.tabulate.store.files import VersionFiles
from lustrum.tabulate.store.manifest import RECORDS, VERSION, read_manifest, version_of
from lustrum.tabulate.store.writer import Writer

# The engine over a version on disk, mapped into memory.


class EmbeddedEngine(KernelEngine):
    """Answers from a dataset on disk, through a memory map of files that were checked before.

    Only files whose digests are right are mapped: neither Arrow's reader nor the compiled loops look for bytes
    that nobody wrote. Codes are still held to their code lists, for the loops check no bounds.
    """

    def __init__(self, files: VersionFiles, workers: int | None = None) -> None:
        if not files.checked:
            raise InternalError("The files of a dataset must be checked before they are used.")
        self.version = files.version
        self.rows = files.manifest.rows
        self.secret = files.manifest.secret
        """The fingerprint of the secret behind the record keys."""
        self.files = files
        # Records and keys stay open as long as the engine: its arrays are views into them.
        weakref.finalize(self, files.close)
        dataset = files.manifest.dataset
        chunks = _chunks(files, dataset)
        zones = Zones.of(chunks, [variable.name for variable in dataset.variables])
        _check_codes(files, dataset, zones)
        super().__init__(dataset, chunks, workers, zones)

    def require_unchanged(self) -> None:
        self.files.require_unchanged()

    @property
    def encoded_bytes(self) -> int:
        return self.files.size


def _chunks(files: VersionFiles, dataset: Dataset) -> list[Chunk]:
    """The columns, as views into the files."""
    try:
        records, keys = (
            pa.ipc.open_file(pa.py_buffer(mmap.mmap(handle, 0, prot=mmap.PROT_READ)))
            for handle in files.handles
        )
        if records.num_record_batches != keys.num_record_batches:
            raise pa.ArrowInvalid("other batches")
        return [
            _chunk(dataset, records.get_batch(i), keys.get_batch(i))
            for i in range(records.num_record_batches)
        ]
    except (pa.ArrowException, ValueError, KeyError):
        raise files.damaged("its records cannot be read") from None
    except OSError as error:
        raise DatasetError(f"{files.folder} cannot be read: {error.strerror}.") from None


def _check_codes(files: VersionFiles, dataset: Dataset, zones: Zones) -> None:
    """Hold every code to its code list, and the records to their number."""
    for variable in dataset.variables:
        ranges = zones.ranges.get(variable.name)
        if ranges is not None and int(ranges.greatest.max()) >= len(variable.codes):
            raise files.damaged(
                f"{RECORDS} holds codes of {variable.name!r} that are not in its code list"
            )
    if sum(chunk.rows for chunk in zones.chunks) != files.manifest.rows:
        raise files.damaged(f"{RECORDS} does not hold as many records as were written")


def _chunk(dataset: Dataset, records: pa.RecordBatch, keys: pa.RecordBatch) -> Chunk:
    def array(name: str) -> np.ndarray[Any, Any]:
        column = records.column(records.schema.get_field_index(name))
        source = column
        if pa.types.is_dictionary(column.type):
            # The kernel checks no bounds: these codes must be those of the description.
            if tuple(column.dictionary.to_pylist()) != dataset.variable(name).codes:
                raise pa.ArrowInvalid(f"other codes of {name}")
            source = column.indices
        if source.null_count:
            raise pa.ArrowInvalid(f"gaps in {name}")
        out: np.ndarray[Any, Any] = source.to_numpy(zero_copy_only=True)
        return out

    numbers = [
        *(m.name for m in dataset.measures),
        *(c.name for w in dataset.weights for c in w.columns),
    ]
    if keys.num_rows != records.num_rows or keys.schema.types != [pa.uint64()]:
        raise pa.ArrowInvalid("other keys than records")
    return Chunk(
        rows=records.num_rows,
        codes={v.name: array(v.name) for v in dataset.variables},
        numbers={name: array(name) for name in numbers},
        ids={name: array(name) for name in dataset.id_columns},
        keys=keys.column(0).to_numpy(zero_copy_only=True),
    )


_LOCK = ".lock"
_LONGEST = 64  # bytes of the file that names the version in force
LEFTOVER = re.compile(rf"(?:{VERSION.pattern}|v[0-9a-f]{{16}}\.part|\.current\.\w+(?:\.part)?)")
"""What a dataset's folder may hold beside the version in force, left by an ingest that was stopped."""


@dataclass(frozen=True)
class Store:
    """A folder of datasets."""

    root: Path

    def names(self) -> list[str]:
        return datasets_in(self.root)

    def version(self, name: str) -> str:
        path = self.root / name / CURRENT
        try:
            with path.open("rb") as file:
                text = file.read(_LONGEST)
        except (FileNotFoundError, NotADirectoryError):
            raise DatasetError(
                f"There is no dataset {name!r} in {self.root}; {choices(name, self.names())}."
            ) from None
        except OSError as error:
            raise DatasetError(f"{path} cannot be read: {error.strerror}.") from None
        version = text.decode("ascii", "replace").removesuffix("\n")
        if not text.endswith(b"\n") or not VERSION.fullmatch(version):
            raise DatasetError(
                f"{path} is damaged: it does not name a version in its own folder; ingest {name!r} again."
            )
        return version

    def look(self, name: str) -> VersionFiles:
        """The files of the version in force, not yet checked, for the secret that they were made with."""
        version = self.version(name)
        try:
            with outages(self.root / name):
                files = VersionFiles(self.root / name / version)
        except DatasetError:
            if self.version(name) == version:
                raise
            return self.look(name)  # it was replaced between the two looks
        try:
            self.secret_of(files.manifest.secret)
        except BaseException:
            files.close()
            raise
        return files

    def open(self, name: str, workers: int | None = None) -> EmbeddedEngine:
        """Check the version in force, byte by byte, and open it."""
        files = self.look(name)
        try:
            files.check()
            return EmbeddedEngine(files, workers)
        except BaseException:
            files.close()
            raise

    def secret_of(self, fingerprint: str) -> Secret:
        """The secret that a dataset was made with; refused where it is missing or another one."""
        with outages(self.root):
            return secret_files.find(self.root, fingerprint)

    @property
    def secret(self) -> Secret:
        """The agency's secret for new records, made on first use and only where no dataset exists."""
        with outages(self.root):
            return secret_files.for_writing(self.root, self._used())

    def _used(self) -> list[str]:
        """The fingerprints of the secrets behind the datasets, as far as they can be read."""
        fingerprints = []
        for name in self.names():
            with contextlib.suppress(DatasetError):
                fingerprints.append(read_manifest(self.root / name / self.version(name)).secret)
        # The keys of records in a database were made with the secret too; their receipts name it.
        for path in self.root.glob(f"{CONNECTIONS}/*.keys.json"):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                fingerprints.append(str(json.loads(path.read_bytes())["secret"]))
        if not (self.root / secret_files.SECRET).exists():
            # A version nobody can read, or that nothing names as in force, still has its secret somewhere.
            fingerprints += [
                "unknown" for path in self.root.glob("*/v*") if VERSION.fullmatch(path.name)
            ]
        return fingerprints

    def _for_writing(self, secret: Secret | None) -> Secret:
        if secret is None:
            return self.secret
        with outages(self.root):
            secret_files.adopt(self.root, secret, self._used())
        return secret

    @contextlib.contextmanager
    def replace(self, dataset: Dataset, secret: Secret | None = None) -> Iterator[Writer]:
        """Write a new version and put it in force at the end; an exception leaves the old one.

        A secret that is given becomes that of the folder, and is refused where the folder has another one.
        """
        _check_described(dataset)
        home = self.root / dataset.name
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise DatasetError(f"{self.root} cannot be made: {error.strerror}.") from None
        with self.shared():
            used = self._for_writing(secret)
            try:
                home.mkdir(exist_ok=True, mode=0o700)
            except OSError as error:
                raise DatasetError(f"{home} cannot be made: {error.strerror}.") from None
            with self.alone(dataset.name), self.new_version(dataset.name) as folder:
                with contextlib.closing(Writer(folder, dataset, used)) as writer:
                    yield writer
                    manifest = writer.finish()
                self.publish(dataset.name, folder, manifest)

    @contextlib.contextmanager
    def new_version(self, name: str) -> Iterator[Path]:
        """A folder for a version that is being made; what is left of it is removed at the end."""
        home = self.root / name
        folder = home / f"v{secrets.token_hex(8)}.part"
        try:
            folder.mkdir(mode=0o700)  # microdata are for their keeper only
            yield folder
        except OSError as error:
            raise DatasetError(
                f"Dataset {name!r} could not be written to {home}: "
                f"{error.strerror or error}; the earlier data, if any, are as they were."
            ) from None
        finally:
            self._clean(home)

    def publish(self, name: str, folder: Path, manifest: bytes) -> None:
        """Put a finished version in force."""
        home, version = self.root / name, version_of(manifest)
        folder.rename(home / version)
        sync(home)
        write_whole(home / CURRENT, f"{version}\n".encode())

    def _clean(self, home: Path) -> None:
        """Remove all versions but the one in force; who has an old one open keeps it until they close."""
        try:
            current = self.version(home.name)
        except DatasetError:
            current = None  # nobody knows which one is in force, so no whole version is removed
        with contextlib.suppress(OSError):
            for path in home.iterdir():
                whole = VERSION.fullmatch(path.name)
                if path.name == current or (whole and current is None):
                    continue
                if LEFTOVER.fullmatch(path.name):
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Keep other writers away from a dataset; a crash lets go too."""
        with _locked(self.root / name):
            yield

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Keep a rotation of the secret, or a restore, away while datasets are written."""
        with _locked(self.root, shared=True):
            yield

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep all other writers away from the whole folder."""
        with _locked(self.root):
            yield


@contextlib.contextmanager
def _locked(folder: Path, shared: bool = False) -> Iterator[None]:
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DatasetError(f"{folder} cannot be written to: {error.strerror}.") from None
    try:
        try:
            lock(handle, shared=shared)
        except BlockingIOError:
            raise DatasetError(
                f"Another process is writing to {folder}; wait until it is done."
            ) from None
        except OSError as error:
            raise DatasetError(f"{folder} cannot be locked: {error.strerror}.") from None
        yield
    finally:
        os.close(handle)


def _check_described(dataset: Dataset) -> None:
    try:
        described = Dataset.from_mapping(dataset.source)
    except DescriptionError:
        described = None
    if described != dataset:
        raise DescriptionError(
            f"Dataset {dataset.name!r} does not come from its description, which is kept beside the "
            "records; make it with Dataset.from_mapping or read_description."
        )
