"""Rotation of the secret: new record keys for every dataset, one dataset at a time.

The new secret is kept next to the old one until every dataset has keys of it. A dataset is opened with the
secret whose fingerprint it keeps, so that at every moment each dataset has exactly one set of keys, and a
rotation that was stopped goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import numpy as np

from lustrum.model import DatasetError
from lustrum.runtime.data_folder import CONNECTIONS
from lustrum.runtime.durable import outages, sync
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.keys import Secret, SecretMissingError, record_keys
from lustrum.tabulate.store.embedded import EmbeddedEngine
from lustrum.tabulate.store.files import VersionFiles
from lustrum.tabulate.store.folder import Store
from lustrum.tabulate.store.manifest import KEYS, RECORDS, Manifest
from lustrum.tabulate.store.secret_files import NEXT, SECRET
from lustrum.tabulate.store.writer import KeyWriter, write_manifest


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
