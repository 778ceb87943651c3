"""A decision that was written down is the same when it is read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from answer.conftest import answered
from lustrum.answer.archive import read_decision, write_decision
from lustrum.model import InputError, TableQuery
from lustrum.model.text import Message
from lustrum.tabulate import EmbeddedEngine


@pytest.mark.parametrize(
    ("words", "rules"),
    [
        ({"by": ["age", "sex"]}, {}),
        ({"by": [{"variable": "area", "total": True}, "age"], "where": {"sex": ["1"]}}, {}),
        ({"by": ["area", "age"]}, {"per_area": "area", "min_mean_cell_size": 10.0}),
        ({"by": ["age", "job"]}, {"min_mean_cell_size": 1e6}),
        ({"by": [{"variable": "age", "groups": [{"label": "x", "members": ["1"]}]}]}, {}),
    ],
)
def test_a_decision_survives_being_written_down(
    engine: EmbeddedEngine, policy: Any, words: dict[str, Any], rules: dict[str, Any]
) -> None:
    query = TableQuery.from_mapping({"dataset": "town"} | words)
    made = answered(query, engine, policy(rules=rules))
    read = read_decision(write_decision(made))
    assert (read.query, read.verdict, read.reasons, read.trace) == (
        made.query, made.verdict, made.reasons, made.trace,
    )  # fmt: skip
    assert (read.risk_before, read.risk_after, read.utility) == (
        made.risk_before, made.risk_after, made.utility,
    )  # fmt: skip
    assert all(isinstance(step.text, Message) for step in read.trace)
    if made.release is None:
        assert read.release is None
        return
    assert read.release is not None
    assert read.release.axes == made.release.axes
    for name in ("published", "low", "high", "status"):
        assert np.array_equal(getattr(read.release, name), getattr(made.release, name))
    assert read.release.notes == made.release.notes
    assert read.release.method == dict(made.release.method)


def test_what_another_version_wrote_is_one_sentence() -> None:
    with pytest.raises(InputError, match="another version"):
        read_decision('{"format": 99}')


def test_a_damaged_answer_is_never_shown(engine: EmbeddedEngine, policy: Any) -> None:
    query = TableQuery.from_mapping({"dataset": "town", "by": ["age"]})
    text = write_decision(answered(query, engine, policy()))
    read_decision(text)
    for place in range(0, len(text), 3):
        other = "7" if text[place] != "7" else "8"
        with pytest.raises(InputError):
            read_decision(text[:place] + other + text[place + 1 :])
        with pytest.raises(InputError):
            read_decision(text[:place])
