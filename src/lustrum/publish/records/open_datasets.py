"""The datasets that are open: each checked, byte by byte, before its first answer, and watched from then on.

A large dataset is checked in the background, so that a server answers about the others meanwhile. Where it
replaces an earlier version, that version answers until the check has passed.
"""

from __future__ import annotations

import logging
import threading

from lustrum.model import DatasetError, LustrumError
from lustrum.model.errors import NotReadyError
from lustrum.runtime.durable import contained
from lustrum.tabulate import EmbeddedEngine, Store
from lustrum.tabulate.store.files import DamagedError, VersionFiles

log = logging.getLogger("lustrum.publish")

LARGE = 1 << 28
"""Bytes from which on a dataset is checked in the background: less is checked within a fraction of a second."""


class OpenDatasets:
    """The engines over the versions in force; safe to share between threads."""

    def __init__(self, store: Store, workers: int | None = None) -> None:
        self.background = False
        """Whether large datasets are checked in the background; a server does, a command waits."""
        self._store = store
        self._workers = workers
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._engines: dict[str, EmbeddedEngine] = {}
        self._checking: dict[str, tuple[object, ...]] = {}
        self._failed: dict[str, tuple[tuple[object, ...], str]] = {}

    def engine(self, name: str) -> EmbeddedEngine:
        """The engine over the version in force; a sentence where its files are not what was written."""
        version = self._store.version(name)
        open_engine = self._usable(name)
        if open_engine is not None and open_engine.version == version:
            return open_engine
        files = self._store.look(name)
        if not self.background or files.size < LARGE:
            return self._open(name, files)
        self._start(name, files)
        if open_engine is not None:
            return open_engine
        raise NotReadyError(f"Dataset {name!r} is still being checked; ask again soon.")

    def _usable(self, name: str) -> EmbeddedEngine | None:
        with self._lock:
            open_engine = self._engines.get(name)
        if open_engine is None:
            return None
        try:
            open_engine.require_unchanged()
        except DatasetError as error:
            log.error("dataset %s: %s", name, error)
            with self._lock:
                self._engines.pop(name, None)
            return None
        return open_engine

    def _start(self, name: str, files: VersionFiles) -> None:
        """Check in the background, once for each state of the files."""
        identity = files.identity
        try:
            self._refuse_known(name, identity)
            with self._lock:
                if self._checking.get(name) == identity:
                    files.close()
                    return
                self._checking[name] = identity
        except BaseException:
            files.close()
            raise
        threading.Thread(
            target=self._check, args=(name, files), name=f"check {name}", daemon=True
        ).start()

    def _check(self, name: str, files: VersionFiles) -> None:
        identity = files.identity
        try:
            with contained(f"Dataset {name!r}"):
                self._open(name, files)
            log.info("dataset %s: checked and ready", name)
        except LustrumError as error:
            log.error("dataset %s: %s", name, error)
        finally:
            with self._lock:
                if self._checking.get(name) == identity:
                    del self._checking[name]

    def _open(self, name: str, files: VersionFiles) -> EmbeddedEngine:
        with self._opening:
            with self._lock:
                open_engine = self._engines.get(name)
            if open_engine is not None and open_engine.version == files.version:
                files.close()  # another thread was faster
                return open_engine
            identity = files.identity
            try:
                self._refuse_known(name, identity)
                files.check()
                engine = EmbeddedEngine(files, self._workers)
            except BaseException as error:
                if isinstance(error, DamagedError):
                    with self._lock:
                        self._failed[name] = (identity, str(error))
                files.close()
                raise
            with self._lock:
                self._engines[name] = engine
                self._failed.pop(name, None)
            return engine

    def _refuse_known(self, name: str, identity: tuple[object, ...]) -> None:
        """Files that failed are not read again, until they change: many questions must not cost many reads."""
        with self._lock:
            failed = self._failed.get(name)
        if failed is not None and failed[0] == identity:
            raise DamagedError(failed[1])
