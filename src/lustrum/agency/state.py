"""How a dataset stands: records, policy and the seal on it, protected numbers, whether it can be served."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from lustrum.answer import TableService
from lustrum.model import Dataset, DatasetError, LustrumError
from lustrum.model.errors import choices
from lustrum.policy import Policy, check_names
from lustrum.policy.read import END, is_sealed, parse_policy
from lustrum.public.bundle.files import bundle_digest
from lustrum.public.bundle.place import MANIFEST, standing
from lustrum.runtime.data_folder import BUNDLES, POLICIES, REPORTS
from lustrum.runtime.durable import outages
from lustrum.tabulate import Store


@dataclass(frozen=True)
class PolicyState:
    """A policy file: ``missing``, ``invalid``, ``open`` (valid, without a seal) or ``sealed``."""

    kind: str
    sentence: str
    text: str = ""
    policy: Policy | None = None


@dataclass(frozen=True)
class DatasetState:
    """What the agency's pages say of a dataset."""

    name: str
    dataset: Dataset | None
    records: int | None
    policy: PolicyState
    digest: str | None
    bundle_date: date | None
    served: bool
    why: str
    report: bool
    draft: bool

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.dataset.title if self.dataset is not None else self.name


def policy_path(data: Path, name: str) -> Path:
    """Where the policy of a dataset stands."""
    return data / POLICIES / f"{name}.toml"


def draft_path(data: Path, name: str) -> Path:
    """Where the draft of a policy stands: no server reads it."""
    return data / POLICIES / f"{name}.toml.draft"


def bundle_path(data: Path, name: str) -> Path:
    """Where the protected numbers of a dataset stand."""
    return data / BUNDLES / name


def states(data: Path, service: TableService) -> list[DatasetState]:
    """All datasets of a data folder."""
    return [state_of(data, service, name) for name in service.described()]


def state_of(data: Path, service: TableService, name: str) -> DatasetState:
    """One dataset; a name that no dataset has is a mistake."""
    known = service.described()
    if name not in known:
        raise DatasetError(f"There is no dataset {name!r}; {choices(name, known)}.")
    dataset, why, served = None, "", False
    try:
        dataset = service.description(name)
    except LustrumError as error:
        why = str(error)
    policy = read_state(policy_path(data, name), dataset)
    if not why and policy.kind in ("missing", "invalid"):
        why = policy.sentence
    if not why:
        try:
            service.snapshot(name)
            served = True
        except LustrumError as error:
            why = str(error)
    bundle = bundle_path(data, name)
    digest = bundle_digest(bundle)
    return DatasetState(
        name=name,
        dataset=dataset,
        records=_records(data, name),
        policy=policy,
        digest=digest,
        bundle_date=None if digest is None else _written(standing(bundle) / MANIFEST),
        served=served,
        why=why,
        report=report_path(data, name).is_file(),
        draft=draft_path(data, name).is_file(),
    )


def read_state(path: Path, dataset: Dataset | None) -> PolicyState:
    """How a policy file stands, also beside the dataset that it is for."""
    with outages(path):
        if not path.is_file():
            return PolicyState("missing", "It has no policy, so nothing about it is published.")
        raw = path.read_bytes()
    text = raw.decode("utf-8", "replace")
    try:
        policy = parse_policy(raw, path.name)
        if dataset is not None:
            check_names(policy, dataset, path.name)
    except LustrumError as error:
        return PolicyState("invalid", str(error), text)
    if is_sealed(raw):
        return PolicyState("sealed", "A change to it is noticed and refused.", text, policy)
    return PolicyState(
        "open", "It has no seal, so a line lost from it goes unnoticed.", text, policy
    )


def unsealed(text: str) -> str:
    """The text of a policy to be edited: its last line says that it is whole, and seals nothing.

    >>> unsealed('dataset = "*"\\r\\nend = "sha256:12"\\r\\n')
    'dataset = "*"\\nend = true\\n'
    """
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    if lines[-1].replace(" ", "").startswith('end="sha256:'):
        lines[-1] = END
    return "\n".join(lines) + "\n"


def report_path(data: Path, name: str) -> Path:
    """The agency's report of a protected population, as figures."""
    return data / REPORTS / name / "report.json"


def read_report(data: Path, name: str) -> dict[str, Any]:
    """The figures of the report; a clear sentence where there are none."""
    path = report_path(data, name)
    try:
        figures = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DatasetError(
            f"There is no report of {name!r} yet; protecting the dataset makes it."
        ) from None
    except (OSError, ValueError):
        raise DatasetError(f"{path} cannot be read; protect the dataset again.") from None
    if not isinstance(figures, dict):
        raise DatasetError(f"{path} cannot be read; protect the dataset again.")
    return figures


def _records(data: Path, name: str) -> int | None:
    """How many records there are; nothing where they stay in a database, or cannot be read."""
    store = Store(data)
    if name not in store.names():
        return None
    try:
        files = store.look(name)
    except LustrumError:
        return None
    try:
        return files.manifest.rows
    finally:
        files.close()


def _written(path: Path) -> date | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
    except OSError:
        return None
