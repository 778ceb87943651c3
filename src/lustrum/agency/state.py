"""How a dataset stands: records, policy and the seal on it, protected numbers, whether it can be served."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from lustrum.answer import TableService
from lustrum.answer.replay import Change, replay
from lustrum.model import (
    Axis,
    Dataset,
    DatasetError,
    Decision,
    Filter,
    InputError,
    LustrumError,
    TableQuery,
)
from lustrum.model.errors import choices
from lustrum.policy import Policy, check_names
from lustrum.policy.read import END, is_sealed, parse_policy
from lustrum.public.bundle.files import bundle_digest
from lustrum.runtime.data_folder import BUNDLES, MANIFEST, POLICIES, REPORTS, standing
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
        return self.dataset.title if self.dataset is not None else self.name


def policy_path(data: Path, name: str) -> Path:
    return data / POLICIES / f"{name}.toml"


def draft_path(data: Path, name: str) -> Path:
    """Where the draft of a policy stands: no server reads it."""
    return data / POLICIES / f"{name}.toml.draft"


def bundle_path(data: Path, name: str) -> Path:
    return data / BUNDLES / name


def states(data: Path, service: TableService) -> list[DatasetState]:
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


# --- What a policy would change: chosen questions, answered under it from numbers that are protected already
# No record is opened for it. A policy that asks for another protection than the numbers have cannot be tried
# so; that is said instead.

MOST = 20
"""So many questions are tried at once."""

_READABLE = 25


@dataclass(frozen=True)
class Ended:
    """How a question ended: a word, and what is to be said about it."""

    word: str
    said: str


@dataclass(frozen=True)
class Tried:
    """One question under the policy in force and under the draft."""

    question: str
    now: Ended
    then: Ended
    same: bool


@dataclass(frozen=True)
class Effect:
    """What a draft changes; ``sentence`` says why nothing could be tried."""

    tried: tuple[Tried, ...] = ()
    sentence: str = ""

    @property
    def changed(self) -> int:
        return sum(not one.same for one in self.tried)


def effect(
    data: Path, name: str, now: Policy | None, then: Policy, questions: Sequence[str]
) -> Effect:
    """Try questions under two policies; the mistakes of a question are those of its line."""
    bundle = bundle_path(data, name)
    if bundle_digest(bundle) is None:
        return Effect(
            sentence="There are no protected numbers yet; what the policy changes is shown after the dataset "
            "was protected once."
        )
    service = TableService(bundles=[bundle], workers=1)
    try:
        dataset = service.description(name)
        asked = [question_of(line, dataset) for line in questions if line.strip()]
        if len(asked) > MOST:
            raise InputError(f"At most {MOST} questions are tried at once; remove some.")
        try:
            service.under(name, then)
        except LustrumError as error:
            return Effect(sentence=f"Nothing can be tried from the numbers that are there. {error}")
        if now is not None:
            try:
                service.under(name, now)
            except LustrumError:
                now = None  # the policy in force has no numbers yet: those of the bundle have one
        changes = list(replay(service, then, asked, now=now))
        return Effect(tuple(_tried(change) for change in changes))
    finally:
        service.close()


def question_of(line: str, dataset: Dataset) -> TableQuery:
    """A question as it is written on the page: ``age:ten-year, sex where region=1,2``.

    A comma after ``where`` goes on with codes of the variable before, ``and`` begins another one.
    """
    by, _, where = line.partition(" where ")
    axes = []
    for word in filter(None, (part.strip() for part in by.split(","))):
        variable, _, level = word.partition(":")
        _require(variable, dataset)
        axes.append(Axis(variable, level or None, total=True))
    filters = []
    for part in filter(None, (part.strip() for part in where.split(" and "))):
        variable, equals, codes = part.partition("=")
        if not equals:
            raise InputError(
                f"{line.strip()!r} cannot be read; write it as 'age, sex where region=1'."
            )
        _require(variable.strip(), dataset)
        filters.append(Filter(variable.strip(), tuple(code.strip() for code in codes.split(","))))
    for axis in axes:
        axis.categories(dataset.variable(axis.variable))
    for item in filters:
        item.members(dataset.variable(item.variable))
    return TableQuery(dataset.name, tuple(axes), tuple(filters))


def usual_questions(dataset: Dataset) -> list[str]:
    """Questions to begin with: some variables alone and crossed, and all areas or the like by another one."""
    axes = []
    for variable in dataset.variables:
        level = ""
        if len(variable.codes) > _READABLE and variable.levels:
            level = f":{min(variable.levels, key=lambda candidate: len(candidate.categories)).name}"
        axes.append(f"{variable.name}{level}")
    largest = max(dataset.variables, key=lambda candidate: len(candidate.codes))
    second = next((word for word in axes if word.partition(":")[0] != largest.name), None)
    questions = [axes[0], ", ".join(axes[:2]), ", ".join(axes[:3]), ", ".join(axes[:4])]
    if second is not None:
        questions.append(f"{largest.name}, {second}")
    return list(dict.fromkeys(questions))


def _require(name: str, dataset: Dataset) -> None:
    known = [variable.name for variable in dataset.variables]
    if name not in known:
        raise InputError(f"There is no variable {name!r}; {choices(name, known)}.")


def _tried(change: Change) -> Tried:
    same = change.kind == "same" and _figures(change.now) == _figures(change.then)
    return Tried(_as_asked(change.query), _ended(change.now), _ended(change.then), same)


def _as_asked(query: TableQuery) -> str:
    by = ", ".join(a.variable if a.level is None else f"{a.variable}:{a.level}" for a in query.by)
    where = " and ".join(f"{f.variable}={','.join(f.codes)}" for f in query.where)
    return f"{by} where {where}" if where else by


def _ended(end: Decision | str) -> Ended:
    if isinstance(end, str):
        return Ended("error", end)
    reasons = " ".join(reason.text for reason in end.reasons)
    if end.release is None:
        return Ended("refused", reasons)
    said = "; ".join([*_figures(end), *([reasons] if reasons else [])])
    return Ended("in part" if end.reasons else "answered", said)


def _figures(end: Decision | str) -> list[str]:
    if isinstance(end, str) or end.release is None:
        return []
    return list(_measured(end))


def _measured(end: Decision) -> Iterator[str]:
    assert end.release is not None
    yield f"{end.release.numbers.size:,} cells"
    margins = end.release.error_margins
    if margins is not None and (margins >= 0).any():
        yield f"margin {int(margins.max()):,}"
    if end.risk_after is not None:
        yield f"risk {end.risk_after:.3f}"
