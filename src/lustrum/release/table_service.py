"""The service: where questions come in, with the datasets and policies of one folder behind it.

::

    <root>/<dataset>/...             the data, see lustrum.tabulate.store
    <root>/policies/<dataset>.toml   what the agency decided about it

A dataset that was replaced, or a policy that was changed, is taken up at the next question. A dataset without
a policy answers nothing.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path

from lustrum._version import __version__
from lustrum.model import (
    Dataset,
    DatasetError,
    Decision,
    InputError,
    LustrumError,
    PolicyError,
    QueryError,
    TableQuery,
)
from lustrum.model.errors import NotReadyError, choices
from lustrum.policy import Policy, check_names, read_policy
from lustrum.release.open_datasets import OpenDatasets
from lustrum.release.pipeline import answer
from lustrum.release.precheck import Precheck, precheck
from lustrum.release.protected_input import ProtectedInput, prepared
from lustrum.tabulate import EmbeddedEngine, Store

__all__ = ["TableService"]


@dataclass(frozen=True)
class _Kept:
    stamp: tuple[str, int, int, int]
    policy: Policy


class TableService:
    """Answers questions about the datasets of one folder; safe to share between threads."""

    def __init__(self, root: Path, workers: int | None = None) -> None:
        self.store = Store(root)
        self._lock = threading.Lock()
        self._open = OpenDatasets(self.store, workers)
        self._policies: dict[str, _Kept] = {}
        self._preparing = threading.Lock()
        self._sources: dict[str, tuple[tuple[str, str], ProtectedInput]] = {}

    def policy_path(self, name: str) -> Path:
        """Where the policy of a dataset stands."""
        return self.store.root / "policies" / f"{name}.toml"

    def names(self) -> list[str]:
        """The datasets that have a policy and can be asked about."""
        return [name for name in self.store.names() if self.policy_path(name).is_file()]

    def datasets(self) -> list[Dataset]:
        """Their descriptions."""
        return [self.dataset(name) for name in self.names()]

    def dataset(self, name: str) -> Dataset:
        """The description of one; a clear error where there is none."""
        return self.engine(name).dataset

    def engine(self, name: str) -> EmbeddedEngine:
        """The engine over the version in force."""
        if name not in self.store.names():
            raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
        return self._open.engine(name)

    def check_in_background(self) -> None:
        """Check large datasets in the background from now on, as a server does."""
        self._open.background = True

    def states(self) -> dict[str, str]:
        """Of each dataset, whether it is ``ready``, still ``checking`` or ``unavailable``."""
        found = {}
        for name in self.names():
            try:
                engine, _ = self.in_force(name)
                self.store.secret_of(engine.secret)
                found[name] = "ready"
            except NotReadyError:
                found[name] = "checking"
            except LustrumError:
                found[name] = "unavailable"
        return found

    def policy(self, name: str) -> Policy:
        """The policy in force; read again when the file or the dataset changed."""
        engine, path = self.engine(name), self.policy_path(name)
        try:
            status = path.stat()
        except OSError:
            raise DatasetError(
                f"Dataset {name!r} has no policy, so nothing about it is published; write {path}."
            ) from None
        stamp = (engine.version, status.st_mtime_ns, status.st_size, status.st_ino)
        with self._lock:
            kept = self._policies.get(name)
        if kept is None or kept.stamp != stamp:
            kept = _Kept(stamp, read_policy(path))
            check_names(kept.policy, engine.dataset, str(path))
            with self._lock:
                self._policies[name] = kept
        return kept.policy

    def in_force(self, name: str) -> tuple[EmbeddedEngine, Policy]:
        """The engine with the policy that was checked against the very same version of the data."""
        while True:
            engine = self.engine(name)
            policy = self.policy(name)
            if self.engine(name).version == engine.version:
                return engine, policy

    def check_replacement(self, dataset: Dataset) -> None:
        """Refuse a new description of a dataset where the policy in force names what it does not have."""
        path = self.policy_path(dataset.name)
        if path.is_file():
            check_names(read_policy(path), dataset, str(path))

    def answer(self, query: TableQuery) -> Decision:
        """An answer or a refusal, under the policy in force."""
        engine, policy = self.in_force(query.dataset)
        decision = answer(query, engine, policy, self.source(engine, policy))
        # Files that were cut or changed meanwhile may have been read so; such an answer never leaves.
        engine.require_unchanged()
        return decision

    def mark(self, name: str) -> str:
        """Names the data and the policy in force: while it is the same, a question has the same answer."""
        engine, policy = self.in_force(name)
        digest = hashlib.sha256(policy.model_dump_json().encode()).hexdigest()[:16]
        return f"{engine.version} {digest} {__version__}"

    def precheck(self, query: TableQuery, *, count: bool = True) -> Precheck:
        """What the preliminary rules would say."""
        engine, policy = self.in_force(query.dataset)
        source = self.source(engine, policy) if count else None
        found = precheck(query, engine, policy, source, count=count)
        engine.require_unchanged()
        return found

    def source(self, engine: EmbeddedEngine, policy: Policy) -> ProtectedInput:
        """What tables are counted from: the data, or what the policy made of them beforehand.

        That is made once for each version of the data; whoever asks meanwhile waits for it.
        """
        secret = self.store.secret_of(engine.secret)
        if not policy.before:
            return ProtectedInput(engine, secret=secret)
        name = engine.dataset.name
        mark = (engine.version, json.dumps([step.model_dump() for step in policy.before]))
        with self._preparing:
            kept = self._sources.get(name)
            if kept is None or kept[0] != mark:
                try:
                    made = prepared(engine, policy.before, secret)
                except InputError as error:  # a mistake of the policy, not of the question
                    raise PolicyError(
                        f"The policy of {name!r} cannot protect the input: {error}"
                    ) from None
                engine.require_unchanged()
                kept = self._sources[name] = (mark, made)
            return kept[1]
