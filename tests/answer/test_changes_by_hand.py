"""What a replay calls a change, from decisions that are written down."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.answer.replay import Change, read_questions, replay
from lustrum.model import InputError, TableQuery

QUERY = TableQuery("demo", ())


def decision(verdict: str, *, numbers: Any = None, status: Any = None, rules: Any = ()) -> Any:
    """A decision of which only the verdict, the numbers and the reasons count."""
    release = None
    if numbers is not None:
        published = np.array(numbers)
        letters = np.array(status) if status else np.full(published.shape, "F")
        release = SimpleNamespace(numbers=published, status=letters, shape=published.shape)
    return SimpleNamespace(
        verdict=VERDICTS[verdict],
        release=release,
        reasons=[SimpleNamespace(rule=rule) for rule in rules],
    )


VERDICTS = {name: SimpleNamespace(value=name) for name in ("answer", "partial", "refusal")}


@pytest.mark.parametrize(
    ("now", "then", "kind"),
    [
        ("Broken.", "Broken.", "same"),
        ("Broken.", "Burnt.", "other error"),
        ("Broken.", decision("answer", numbers=[1]), "no longer an error"),
        (decision("answer", numbers=[1]), "Broken.", "now an error"),
        (
            decision("answer", numbers=[1]),
            decision("refusal", rules=["risk"]),
            "answer becomes refusal",
        ),
        (
            decision("refusal", rules=["risk"]),
            decision("partial", numbers=[1]),
            "refusal becomes partial",
        ),
        (decision("refusal", rules=["a", "b"]), decision("refusal", rules=["b", "a"]), "same"),
        (
            decision("refusal", rules=["a"]),
            decision("refusal", rules=["b"]),
            "refused for another reason",
        ),
        (
            decision("partial", numbers=[1], rules=["a"]),
            decision("partial", rules=["b"]),
            "refused for another reason",
        ),
        (decision("answer", numbers=[1, 2]), decision("answer", numbers=[1]), "other categories"),
        (decision("answer", numbers=[1, 2]), decision("answer", numbers=[1, 2]), "same"),
        (decision("answer", numbers=[1, 2]), decision("answer", numbers=[1, 3]), "other numbers"),
        (
            decision("answer", numbers=[1, 2], status=["F", "C"]),
            decision("answer", numbers=[1, 2]),
            "other numbers",
        ),
    ],
)
def test_a_change_is_named_by_what_differs_first(now: Any, then: Any, kind: str) -> None:
    assert Change(QUERY, now, then).kind == kind


class Asked:
    """A service that answers nothing and counts."""

    def answer(self, query: TableQuery) -> str:
        return "an answer"

    def under(self, dataset: str, policy: object) -> object:
        raise InputError("There is no such table.")


def test_every_question_is_counted_once_it_is_asked() -> None:
    counted: list[int] = []
    service: Any = Asked()
    policy: Any = object()
    found = list(replay(service, policy, [QUERY, QUERY], counted.append))
    assert counted == [1, 2]
    assert [(c.now, c.then) for c in found] == [("an answer", "There is no such table.")] * 2
    assert len(list(replay(service, policy, [QUERY]))) == 1


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_questions(tmp_path / "none")
    other = tmp_path / "latin"
    other.write_bytes(b'{"dataset": "caf\xe9"}')
    with pytest.raises(InputError, match="it is not UTF-8"):
        read_questions(other)
    spaced = tmp_path / "spaced"
    spaced.write_text('\n  \n{"dataset": "town"}\n\n{"dataset": 7}')
    with pytest.raises(InputError, match="line 5"):
        read_questions(spaced)
    spaced.write_text('\n  \n{"dataset": "town"}\n\n')
    assert [q.dataset for q in read_questions(spaced)] == ["town"]
    listed = tmp_path / "list"
    listed.write_text('  [{"dataset": "town"}, {"other": 1}, 5]')
    with pytest.raises(InputError, match="question 3: a question is a JSON object"):
        read_questions(listed)
