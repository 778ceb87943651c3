"""What would change: the same questions under the policy in force and under another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.answer.pipeline import answer
from lustrum.answer.table_service import TableService
from lustrum.model import Decision, InputError, LustrumError, QueryError, TableQuery
from lustrum.policy import Policy


@dataclass(frozen=True)
class Change:
    """One question, and how it ended under either policy; an error is a sentence instead."""

    query: TableQuery
    now: Decision | str
    then: Decision | str

    @property
    def kind(self) -> str:
        """``same``, or in a word what is different.

        >>> Change(TableQuery("demo", ()), "It is broken.", "It is broken.").kind
        'same'
        """
        now, then = self.now, self.then
        if isinstance(now, str) or isinstance(then, str):
            if isinstance(now, str) and isinstance(then, str):
                return "same" if now == then else "other error"
            return "now an error" if isinstance(then, str) else "no longer an error"
        if now.verdict is not then.verdict:
            return f"{now.verdict.value} becomes {then.verdict.value}"
        if now.release is None or then.release is None:
            rules = [{reason.rule for reason in d.reasons} for d in (now, then)]
            return "same" if rules[0] == rules[1] else "refused for another reason"
        if now.release.shape != then.release.shape:
            return "other categories"
        same = np.array_equal(now.release.numbers, then.release.numbers) and np.array_equal(
            now.release.status, then.release.status
        )
        return "same" if same else "other numbers"


def replay(
    service: TableService,
    policy: Policy,
    questions: Iterable[TableQuery],
    progress: Callable[[int], object] | None = None,
    now: Policy | None = None,
) -> Iterator[Change]:
    """Ask every question twice. Nothing is written down and nothing is let out.

    ``now`` is the policy to compare with; without it, that in force.
    """
    for number, query in enumerate(questions, start=1):
        yield Change(query, _asked(service, query, now), _asked(service, query, policy))
        if progress is not None:
            progress(number)


def read_questions(path: Path) -> list[TableQuery]:
    """Questions from a file: a JSON list, or a line each, as questions or as lines of a log that hold one."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {why}.") from None
    queries: list[TableQuery] = []
    for line, entry in _entries(text, path):
        raw = entry.get("query", entry) if isinstance(entry, dict) else entry
        if isinstance(entry, dict) and "dataset" not in entry and "query" not in entry:
            continue  # a line of a log that is about something else
        try:
            if not isinstance(raw, dict):
                raise QueryError("a question is a JSON object")
            queries.append(TableQuery.from_mapping(raw))
        except QueryError as error:
            raise InputError(f"{path}, {line}: {error}") from None
    if not queries:
        raise InputError(f"{path} holds no question; it should hold one on each line, as JSON.")
    return queries


def _entries(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    try:
        if text.lstrip().startswith("["):
            for number, entry in enumerate(json.loads(text), start=1):
                yield f"question {number}", entry
            return
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                yield f"line {number}", json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{path} is not valid JSON: {error.msg}, line {error.lineno}.") from None


def _asked(service: TableService, query: TableQuery, policy: Policy | None) -> Decision | str:
    try:
        if policy is None:
            return service.answer(query)
        return answer(query, service.under(query.dataset, policy), policy)
    except LustrumError as error:
        return str(error)
