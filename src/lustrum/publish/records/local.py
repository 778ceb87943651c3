"""The records of one folder of datasets: engines, secret and protected inputs."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

from lustrum.model import (
    DatasetError,
    InputError,
    LustrumError,
    PolicyError,
    QueryError,
    TableQuery,
)
from lustrum.model.errors import NotReadyError, choices
from lustrum.policy import Policy
from lustrum.protect.weighted.classes import MeanWeights
from lustrum.public.numbers import Described, Views
from lustrum.publish.records.protected_input import ProtectedInput, prepared
from lustrum.publish.records.views import counted_views, mean_weights
from lustrum.runtime.durable import contained
from lustrum.tabulate import EmbeddedEngine, Store
from lustrum.tabulate.store.files import DamagedError, VersionFiles

# The datasets that are open: each checked, byte by byte, before its first answer, and watched from then on.
#
# A large dataset is checked in the background, so that a server answers about the others meanwhile. Where it
# replaces an earlier version, that version answers until the check has passed.

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


class LocalRecordsService:
    """Describes the datasets of a folder and gives protected numbers; safe to share between threads."""

    def __init__(self, root: Path, workers: int | None = None) -> None:
        self.store = Store(root)
        self._open = OpenDatasets(self.store, workers)
        self._preparing = threading.Lock()
        self._sources: dict[str, tuple[tuple[str, str], ProtectedInput]] = {}
        self._means: dict[str, tuple[tuple[str, str], MeanWeights]] = {}

    answering = True
    """It answers as long as this process does."""

    def revive(self) -> bool:
        """True: there is no other process that could end."""
        return True

    def names(self) -> list[str]:
        return self.store.names()

    def describe(self, name: str) -> Described:
        """A dataset and its version in force."""
        engine = self.engine(name)
        self.store.secret_of(engine.secret)  # without it nothing could be answered
        return Described(engine.version, engine.dataset)

    def views(self, query: TableQuery, policy: Policy) -> Views:
        """Count and protect what a question needs."""
        engine = self.engine(query.dataset)
        source = self.source(engine, policy)
        mean = None if query.weight is None else self._mean(engine, source, policy)
        views = counted_views(query, source, policy, mean)
        # Files that were cut or changed meanwhile may have been read so; such numbers never leave.
        engine.require_unchanged()
        return views

    def check_in_background(self) -> None:
        """Check large datasets in the background from now on, as a server does."""
        self._open.background = True

    def close(self) -> None:
        """Let go of the engines."""
        with self._preparing:
            self._sources.clear()
            self._means.clear()

    def engine(self, name: str) -> EmbeddedEngine:
        """The engine over the version in force, with the true records; for the agency alone."""
        if name not in self.store.names():
            raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
        return self._open.engine(name)

    def _mean(self, engine: EmbeddedEngine, source: ProtectedInput, policy: Policy) -> MeanWeights:
        """The mean weights of a policy, made once for each version of the data."""
        mark = (engine.version, policy.model_dump_json())
        with self._preparing:
            cached = self._means.get(engine.dataset.name)
            if cached is None or cached[0] != mark:
                cached = self._means[engine.dataset.name] = (mark, mean_weights(source, policy))
            return cached[1]

    def source(self, engine: EmbeddedEngine, policy: Policy) -> ProtectedInput:
        """What tables are counted from: the data, or what the policy made of them beforehand.

        That is made once for each version of the data; a question that comes meanwhile waits for it.
        """
        secret = self.store.secret_of(engine.secret)
        if not policy.before:
            return ProtectedInput(engine, secret=secret)
        name = engine.dataset.name
        mark = (engine.version, json.dumps([step.model_dump() for step in policy.before]))
        with self._preparing:
            cached = self._sources.get(name)
            if cached is None or cached[0] != mark:
                try:
                    protected = prepared(engine, policy.before, secret)
                except InputError as error:  # a mistake of the policy, not of the question
                    raise PolicyError(
                        f"The policy of {name!r} cannot protect the input: {error}"
                    ) from None
                engine.require_unchanged()  # what was made of damaged files is not kept
                cached = self._sources[name] = (mark, protected)
            return cached[1]
