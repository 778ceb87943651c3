"""The records of one folder of datasets: engines, secret and protected inputs."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from lustrum.model import InputError, PolicyError, QueryError, TableQuery
from lustrum.model.errors import choices
from lustrum.policy import Policy
from lustrum.protect.weighted.classes import MeanWeights
from lustrum.public.numbers import Described, Views
from lustrum.publish.records.open_datasets import OpenDatasets
from lustrum.publish.records.protected_input import ProtectedInput, prepared
from lustrum.publish.records.views import counted_views, mean_weights
from lustrum.tabulate import EmbeddedEngine, Store


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
        """The datasets that are there."""
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
