"""What a policy would change: chosen questions, answered under it from numbers that are protected already.

No record is opened for it. A policy that asks for another protection than the numbers have cannot be tried so;
that is said instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lustrum.agency.state import bundle_path
from lustrum.answer import TableService
from lustrum.answer.replay import Change, replay
from lustrum.model import Axis, Dataset, Decision, Filter, InputError, LustrumError, TableQuery
from lustrum.model.errors import choices
from lustrum.policy import Policy
from lustrum.public.bundle.files import bundle_digest

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
        """How many questions would end in another way."""
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
    return Tried(_written(change.query), _ended(change.now), _ended(change.then), same)


def _written(query: TableQuery) -> str:
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
    yield f"{end.release.published.size:,} cells"
    if end.release.margin is not None:
        yield f"margin {end.release.margin:,}"
    if end.risk_after is not None:
        yield f"risk {end.risk_after:.3f}"
