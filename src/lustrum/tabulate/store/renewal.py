"""What renews a data folder: a rotation of its secret, and the upgrade of an older format.

A rotation makes new record keys for one dataset at a time. The new secret is kept next to the old one until
every dataset has keys of it. A dataset is opened with the secret whose fingerprint it keeps, so that at every
moment each dataset has exactly one set of keys, and a rotation that was stopped goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError
from lustrum.model.errors import LustrumError
from lustrum.runtime.data_folder import CONNECTIONS
from lustrum.runtime.durable import BINARY, contained, outages, sync
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.keys import KEY_VERSION, Secret, SecretMissingError, record_keys
from lustrum.tabulate.store.files import VersionFiles, digest_of
from lustrum.tabulate.store.folder import EmbeddedEngine, Store
from lustrum.tabulate.store.manifest import KEYS, MANIFEST, RECORDS, FileMark, Manifest
from lustrum.tabulate.store.secret_files import NEXT, SECRET
from lustrum.tabulate.store.writer import KeyWriter, record_schema, write_manifest


def rotate(store: Store, progress: Callable[[str], None] | None = None) -> list[str]:
    """Give every dataset keys of a new secret; gives the names of the datasets that were changed.

    The old secret is not needed: keys follow from the identities of records, which are kept with them.
    ``progress`` gets the name of each dataset before its turn.
    """
    with outages(store.root), store.exclusive():
        if any(store.root.glob(f"{CONNECTIONS}/*.keys.json")):
            raise DatasetError(
                f"{store.root / CONNECTIONS} names records in a database, whose keys cannot be rotated from "
                "here; drop their tables of keys, remove these files, rotate, and make keys again with "
                "'lustrum keys'."
            )
        for name in store.names():  # a damaged dataset is found before anything is changed
            _checked(store, name).files.close()
        try:
            secret = Secret.load(store.root / NEXT)
        except SecretMissingError:
            secret = Secret.random()
            secret.write(store.root / NEXT)
        changed = []
        for name in store.names():
            if progress is not None:
                progress(name)
            if _rekey(store, name, secret):
                changed.append(name)
        try:
            (store.root / NEXT).replace(store.root / SECRET)
            sync(store.root)
        except OSError as error:
            raise DatasetError(
                f"The new secret could not be put in place: {error.strerror}; run the rotation again."
            ) from None
    return changed


def _checked(store: Store, name: str) -> EmbeddedEngine:
    files = VersionFiles(store.root / name / store.version(name))
    try:
        files.check()
        return EmbeddedEngine(files, workers=1)
    except BaseException:
        files.close()
        raise


def _rekey(store: Store, name: str, secret: Secret) -> bool:
    engine = _checked(store, name)
    try:
        if engine.secret == secret.fingerprint:
            return False
        home = store.root / name
        with store.alone(name), store.new_version(name) as folder:
            # The records stay as they are: the same file, under a second name.
            os.link(home / engine.version / RECORDS, folder / RECORDS)
            first = 1
            with contextlib.closing(KeyWriter(folder)) as writer:
                for chunk in engine.chunks:
                    writer.write(keys_of(engine, chunk, first, secret))
                    first += chunk.rows
                keys = writer.finish()
            old = engine.files.manifest
            files = {RECORDS: old.files[RECORDS], KEYS: keys}
            manifest = Manifest(old.rows, files, secret.fingerprint, old.description).to_bytes()
            write_manifest(folder, manifest)
            store.publish(name, folder, manifest)
        return True
    finally:
        engine.files.close()


def keys_of(
    engine: EmbeddedEngine, chunk: Chunk, first: int, secret: Secret
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """The keys of some records under a secret; ``first`` is the number of the first record."""
    dataset = engine.dataset
    identity = (
        np.arange(first, first + chunk.rows, dtype=np.uint64)
        if dataset.record_id is None
        else chunk.ids[dataset.record_id].astype(np.uint64)
    )
    return record_keys(secret, dataset.name, identity)


# From the first format of the store to the present one: digests and the fingerprint of the secret are added.
#
# The first format has no digests, so what it holds is checked in other ways: sizes, Arrow's own validation,
# codes against code lists, and every record key against the secret. The files stay as they are.


def upgrade(store: Store) -> list[str]:
    """Bring every dataset of the first format to the present one; gives their names.

    One that cannot be read does not stop the others; the first of them is named at the end.
    """
    failures: list[DatasetError] = []
    with outages(store.root), store.exclusive():
        old = [name for name in store.names() if _is_first(store.root / name / store.version(name))]
        if not old:
            return []
        secret = Secret.load(store.root / SECRET)
        for name in old:
            try:
                with contained(f"Dataset {name!r}"), store.alone(name):
                    _upgrade(store, name, secret)
            except DatasetError as error:
                failures.append(error)
    if failures:
        raise failures[0]
    return old


def _is_first(folder: Path) -> bool:
    try:
        return bool(json.loads((folder / MANIFEST).read_bytes()).get("format") == 1)
    except (FileNotFoundError, ValueError, AttributeError):
        return False  # damaged, which is for opening to say


def _upgrade(store: Store, name: str, secret: Secret) -> None:
    folder = store.root / name / store.version(name)
    try:
        document: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
        dataset, rows = Dataset.from_mapping(document["description"]), int(document["rows"])
        sizes = document["bytes"]
        same = {n: (folder / n).stat().st_size == sizes[n] for n in (RECORDS, KEYS)}
        if document["key_version"] != KEY_VERSION or not all(same.values()):
            raise ValueError("other sizes")
        _check(folder, dataset, rows, secret)
    except OSError as error:
        raise DatasetError(f"{folder} cannot be read: {error.strerror}.") from None
    except (LustrumError, pa.ArrowException, ValueError, KeyError, TypeError) as error:
        if isinstance(error, DatasetError):
            raise
        raise DatasetError(f"The dataset in {folder} is damaged; ingest it again.") from None
    with store.new_version(name) as new_folder:
        files = {}
        for file in (RECORDS, KEYS):
            os.link(folder / file, new_folder / file)
            (new_folder / file).chmod(0o600)
            handle = os.open(new_folder / file, os.O_RDONLY | BINARY)
            try:
                files[file] = FileMark(os.fstat(handle).st_size, digest_of(handle))
            finally:
                os.close(handle)
        manifest = Manifest(rows, files, secret.fingerprint, document["description"]).to_bytes()
        write_manifest(new_folder, manifest)
        store.publish(name, new_folder, manifest)


def _check(folder: Path, dataset: Dataset, rows: int, secret: Secret) -> None:
    """Refuse records that are not those of the description, and keys that are not those of the secret."""
    with pa.OSFile(str(folder / RECORDS)) as one, pa.OSFile(str(folder / KEYS)) as two:
        records, keys = pa.ipc.open_file(one), pa.ipc.open_file(two)
        if records.schema != record_schema(dataset) or keys.schema.types != [pa.uint64()]:
            raise ValueError("other columns")
        first = 1
        for i in range(records.num_record_batches):
            batch, key_batch = records.get_batch(i), keys.get_batch(i)
            batch.validate(full=True)  # also that every code is in its code list
            key_batch.validate(full=True)
            for variable in dataset.variables:
                if tuple(batch.column(variable.name).dictionary.to_pylist()) != variable.codes:
                    raise ValueError("other codes")
            identity = np.arange(first, first + batch.num_rows, dtype=np.uint64)
            if dataset.record_id is not None:
                ids = batch.column(dataset.record_id).to_numpy(zero_copy_only=True)
                identity = ids.astype(np.uint64)
            if not np.array_equal(
                record_keys(secret, dataset.name, identity), key_batch.column(0).to_numpy()
            ):
                raise DatasetError(
                    f"The dataset in {folder} was made with another secret, or is damaged; restore the secret "
                    "from a backup, or ingest the dataset again."
                )
            first += batch.num_rows
        if first - 1 != rows:
            raise ValueError("other rows")
