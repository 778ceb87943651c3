"""A decision that was written down is the same when it is read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from answer.conftest import answered
from lustrum.answer.archive import read_decision, write_decision
from lustrum.model import (
    AttackerFigures,
    Category,
    Decision,
    DescribedStatistic,
    InputError,
    Release,
    SizeFigures,
    SumFigures,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.model.text import Label, Message, say
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
    assert read.release.axes == made.release.axes
    for name in ("numbers", "least", "most", "status"):
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


@pytest.mark.parametrize("hidden", ["A", "D", "N"])
def test_a_hidden_cell_stays_hidden_and_has_no_value_when_it_is_read_again(hidden: str) -> None:
    axes = (TableAxis.plain("sex", ["f", "m"]),)
    release = Release(axes, np.array([7, 0]), np.array(["F", hidden]), {"method": "suppression"})
    query = TableQuery.from_mapping({"dataset": "town", "by": ["sex"]})
    read = read_decision(write_decision(Decision(query, Verdict.ANSWER, release=release))).release
    assert read.status.tolist() == ["F", hidden]
    assert read.shown.tolist() == [True, False]


def test_every_part_of_a_release_is_read_as_it_was_written() -> None:
    inside = Message("of {n} people", {"n": 3}, inside=True)
    axes = (TableAxis("sex", say("Sex"), TableAxis.plain("sex", ["f", "m"]).categories),)
    made = Release(
        axes,
        np.array([7, -4]),
        np.array(["F", "F"]),
        {"method": "none"},
        least=np.array([6, -9]),
        most=np.array([8, -1]),
        decimals=2,
        unit="EUR",
        notes=(say("Rounded to {base}.", base=3), "plain", inside),
        undefined=np.array([False, True]),
        structural=np.array([True, False]),
        errors=np.array([1, -1]),
        grades=np.array(["A", "C"]),
        statistics=(DescribedStatistic("mean", say("Mean"), "EUR", 1),),
        label=say("Mean pay"),
        additive=False,
    )
    figures = SumFigures(
        "pay",
        "Pay",
        "EUR",
        5.0,
        (AttackerFigures("one", 9.0, 3.0, 1.0, 4.0, 2.5, 0.4, 0.1, None),),
        (SizeFigures(0.0, 10.0, 3, 1.5),),
        2.0,
    )
    query = TableQuery.from_mapping({"dataset": "town", "by": ["sex"]})
    text = write_decision(Decision(query, Verdict.ANSWER, release=made, sums=(figures,)))
    kept = read_decision(text)
    read = kept.release
    assert kept.sums == (figures,)
    arrays = ("numbers", "status", "least", "most", "undefined", "structural", "errors", "grades")
    for name in arrays:
        assert np.array_equal(getattr(read, name), getattr(made, name))
    for name in ("axes", "decimals", "unit", "notes", "statistics", "label", "additive"):
        assert getattr(read, name) == getattr(made, name)
    assert isinstance(read.notes[2], Message)
    assert read.notes[2].inside
    assert isinstance(read.notes[0], Message)
    assert read.notes[0].inside is False
    assert isinstance(read.label, Message)
    assert isinstance(read.statistics[0].label, Message)
    assert isinstance(read.axes[0].label, Message)
    bare = Release(axes, np.array([7, 4]), np.array(["F", "F"]), {"method": "none"})
    read = read_decision(write_decision(Decision(query, Verdict.ANSWER, release=bare))).release
    assert read.least is read.most is read.errors is read.grades is read.undefined is None
    assert read.structural is None
    assert read.additive


def test_labels_keep_their_languages_own_groups_their_words_and_counts_their_margin() -> None:
    label = Label("Young", {"fr": "Jeunes", "de": "Junge"})
    groups = (
        Category("y", label, (0, 1), "0 to 9"),
        Category("o", "Old", (2,), Label("10", {"fr": "dix"})),
    )
    made = Release(
        (TableAxis("age", Label("Age", {"fr": "Âge"}), groups),),
        np.array([7, 4]),
        np.array(["F", "F"]),
        {"method": "none"},
        unit=Label("people", {"fr": "personnes"}),
        margin=9,
    )
    query = TableQuery.from_mapping({"dataset": "town", "by": ["age"]})
    read = read_decision(write_decision(Decision(query, Verdict.ANSWER, release=made))).release
    assert read.margin == 9
    (axis,) = read.axes
    assert isinstance(axis.label, Label)
    assert axis.label.others == {"fr": "Âge"}
    assert isinstance(read.unit, Label)
    assert read.unit.others == {"fr": "personnes"}
    assert [(c.label, c.note) for c in axis.categories] == [("Young", "0 to 9"), ("Old", "10")]
    assert isinstance(axis.categories[0].label, Label)
    assert axis.categories[0].label.others == label.others
    assert isinstance(axis.categories[1].note, Label)
