"""The service: where questions come in, with the datasets and policies behind it.

::

    <root>/policies/<dataset>.toml   what the agency decided about a dataset
    <root>/<dataset>/...             its records, which only the desk opens, see lustrum.release.records

A dataset that was replaced, or a policy that was changed, is taken up at the next question. A dataset without
a policy answers nothing. The service itself never opens a record: it asks a desk for protected numbers, by
default one in a process of its own.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from pathlib import Path

from lustrum._version import __version__
from lustrum.durable import outages
from lustrum.model import Dataset, DatasetError, Decision, LustrumError, QueryError, TableQuery
from lustrum.model.errors import NotReadyError, choices
from lustrum.policy import Policy, check_names, read_policy
from lustrum.release.apart import DeskApart
from lustrum.release.numbers import Described, Desk, KeyedNumbers, ProtectedNumbers
from lustrum.release.pipeline import answer
from lustrum.release.precheck import Precheck, precheck

__all__ = ["TableService"]


@dataclass(frozen=True)
class _Kept:
    stamp: tuple[str, int, int, int]
    policy: Policy


class TableService:
    """Answers questions about the datasets of one folder; safe to share between threads."""

    def __init__(self, root: Path, workers: int | None = None, *, desk: Desk | None = None) -> None:
        self.root = root
        self._desk = desk or DeskApart(root, workers)
        self._lock = threading.Lock()
        self._policies: dict[str, _Kept] = {}

    @property
    def folder(self) -> Path:
        """Where the server may keep what it needs between two starts."""
        return self.root

    def close(self) -> None:
        """Let go of the desk, and of its process if it has one."""
        self._desk.close()

    def check_in_background(self) -> None:
        """Check large datasets in the background from now on, as a server does."""
        self._desk.check_in_background()

    def states(self) -> dict[str, str]:
        """Of each dataset, whether it is ``ready``, still ``checking`` or ``unavailable``."""
        found = {}
        for name in self.names():
            try:
                self.in_force(name)
                found[name] = "ready"
            except NotReadyError:
                found[name] = "checking"
            except LustrumError:
                found[name] = "unavailable"
        return found

    def policy_path(self, name: str) -> Path:
        """Where the policy of a dataset stands."""
        return self.root / "policies" / f"{name}.toml"

    def described(self) -> list[str]:
        """All datasets that are there, with a policy or without."""
        return self._desk.names()

    def names(self) -> list[str]:
        """The datasets that have a policy and can be asked about."""
        with outages(self.root):
            written = {path.stem for path in (self.root / "policies").glob("*.toml")}
        return [name for name in self._desk.names() if name in written] if written else []

    def datasets(self) -> list[Dataset]:
        """Their descriptions."""
        return [self.dataset(name) for name in self.names()]

    def dataset(self, name: str) -> Dataset:
        """The description of one; a clear error where there is none."""
        return self._describe(name).dataset

    def policy(self, name: str) -> Policy:
        """The policy in force; read again when the file or the dataset changed."""
        described, path = self._describe(name), self.policy_path(name)
        try:
            status = path.stat()
        except OSError:
            raise DatasetError(
                f"Dataset {name!r} has no policy, so nothing about it is published; write {path}."
            ) from None
        stamp = (described.version, status.st_mtime_ns, status.st_size, status.st_ino)
        with self._lock:
            kept = self._policies.get(name)
        if kept is None or kept.stamp != stamp:
            kept = _Kept(stamp, read_policy(path))
            check_names(kept.policy, described.dataset, str(path))
            with self._lock:
                self._policies[name] = kept
        return kept.policy

    def in_force(self, name: str) -> tuple[ProtectedNumbers, Policy]:
        """The numbers with the policy that was checked against the very same version of the data."""
        while True:
            described, policy = self._describe(name), self.policy(name)
            if self._describe(name).version == described.version:
                return KeyedNumbers(self._desk, policy, described), policy

    def under(self, name: str, policy: Policy) -> ProtectedNumbers:
        """The protected numbers of a dataset under another policy."""
        return KeyedNumbers(self._desk, policy, self._describe(name))

    def check_replacement(self, dataset: Dataset) -> None:
        """Refuse a new description of a dataset where the policy in force names what it does not have."""
        path = self.policy_path(dataset.name)
        with outages(path):
            there = path.is_file()
        if there:
            check_names(read_policy(path), dataset, str(path))

    def forget_policies(self) -> None:
        """Read every policy again before the next question, even if its file looks the same."""
        with self._lock:
            self._policies.clear()

    def answer(self, query: TableQuery) -> Decision:
        """An answer or a refusal, under the policy in force."""
        return answer(query, *self.in_force(query.dataset))

    def mark(self, name: str) -> str:
        """Names the numbers and the policy in force: while it is the same, a question has the same answer."""
        numbers, policy = self.in_force(name)
        digest = hashlib.sha256(policy.model_dump_json().encode()).hexdigest()[:16]
        return f"{numbers.mark} {digest} {__version__}"

    def precheck(self, query: TableQuery, *, count: bool = True) -> Precheck:
        """What the rules would say."""
        return precheck(query, *self.in_force(query.dataset), count=count)

    def _describe(self, name: str) -> Described:
        if name not in self._desk.names():
            raise QueryError(f"There is no dataset {name!r}; {choices(name, self.names())}.")
        return self._desk.describe(name)
