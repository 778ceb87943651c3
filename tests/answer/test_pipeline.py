"""The five steps: what they let through, what they refuse, and what neither ever tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from answer.conftest import SECRET, answered, people, town
from lustrum.local import local_service
from lustrum.model import Decision, QueryError, TableQuery, Verdict
from lustrum.policy import Policy
from lustrum.protect import RandomRounding
from lustrum.tabulate import EmbeddedEngine, FrameEngine, FrameSource, Secret, Store, ingest
from small import described


def ask(engine: EmbeddedEngine, policy: Policy, **words: Any) -> Decision:
    return answered(TableQuery.from_mapping({"dataset": "town"} | words), engine, policy)


def rules(decision: Decision) -> list[str]:
    return [reason.rule for reason in decision.reasons]


def test_an_answer_has_a_protected_table_and_its_figures(
    engine: EmbeddedEngine, policy: Any
) -> None:
    decision = ask(engine, policy(), by=["age", "job", "area"])
    assert decision.verdict is Verdict.ANSWER
    assert np.all(decision.release.published % 3 == 0)
    assert decision.risk_after < decision.risk_before
    assert 0.9 < decision.utility <= 1
    assert [step.step for step in decision.trace] == [
        "question", "numbers", "rules", "risk", "answer",
    ]  # fmt: skip


def test_the_published_table_is_near_the_true_one(engine: EmbeddedEngine, policy: Any) -> None:
    query = TableQuery.from_mapping({"dataset": "town", "by": ["age", "sex"]})
    decision = answered(query, engine, policy())
    assert np.abs(decision.release.published - engine.tabulate(query).values).max() < 3


@pytest.mark.parametrize(
    ("part", "words", "rule"),
    [
        ({"max_dimensions": 1}, {"by": ["age", "sex"]}, "dimensions"),
        ({"max_cells": 15}, {"by": ["age", "sex"]}, "cells"),
        ({"min_population": 1000}, {"by": ["sex"], "where": {"area": ["w"]}}, "population"),
        ({"min_mean_cell_size": 5000.0}, {"by": ["age", "sex"]}, "mean-cell-size"),
        ({"max_small_share": 0.01}, {"by": ["age", "job", "area"]}, "small-cells"),
        ({}, {"by": [{"variable": "age", "level": "school"}]}, "nested"),
        (
            {},
            {"by": [{"variable": "age", "groups": [{"label": "mine", "members": ["1", "2"]}]}]},
            "nested",
        ),
        ({}, {"by": ["sex"], "where": {"age": ["1", "2"]}}, "nested"),
    ],
)
def test_every_preliminary_rule_refuses_with_a_way_forward(
    engine: EmbeddedEngine, policy: Any, part: Any, words: Any, rule: str
) -> None:
    decision = ask(engine, policy(rules=part), **words)
    assert decision.verdict is Verdict.REFUSAL
    assert rules(decision) == [rule]
    assert decision.reasons[0].way_forward
    assert decision.release is None
    assert decision.risk_before is decision.risk_after is decision.utility is None


def test_an_empty_table_and_a_table_of_one_cell_are_refused_alike(
    engine: EmbeddedEngine, policy: Any
) -> None:
    one = ask(engine, policy(), by=[{"variable": "age", "codes": ["1"]}])
    empty = ask(
        engine, policy(), by=[{"variable": "job", "codes": ["b", "c"]}], where={"age": ["1"]}
    )
    assert rules(one) == rules(empty) == ["too-little"]
    assert one.reasons == empty.reasons


def test_a_refusal_tells_no_number_but_the_limits(engine: EmbeddedEngine, policy: Any) -> None:
    part = {"min_population": 987, "min_mean_cell_size": 765.0, "max_small_share": 0.03}
    allowed = {"987", "765", "3"}
    for words in (
        {"by": ["sex"], "where": {"area": ["w"]}},
        {"by": ["age", "job", "area"]},
        {"by": ["age", "job"], "where": {"area": ["w"]}},
    ):
        decision = ask(engine, policy(rules=part), **words)
        assert decision.verdict is Verdict.REFUSAL
        texts = [r.text + r.way_forward for r in decision.reasons] + [
            t.text for t in decision.trace
        ]
        assert set(re.findall(r"\d+", " ".join(texts))) <= allowed


def test_rules_decide_by_protected_numbers(engine: EmbeddedEngine, policy: Any) -> None:
    """The population rule turns exactly where the published number passes the limit."""
    query = TableQuery.from_mapping({"dataset": "town", "by": ["sex"], "where": {"area": ["w"]}})
    free = answered(query, engine, policy())
    people_told = int(free.release.published.sum())
    at = answered(query, engine, policy(rules={"min_population": people_told}))
    above = answered(query, engine, policy(rules={"min_population": people_told + 1}))
    assert at.released
    assert rules(above) == ["population"]


def test_the_desk_takes_up_a_replaced_dataset_and_a_changed_policy(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ingest(FrameSource(people(2000)), town(), store, secret=SECRET)
    service = local_service(tmp_path)
    query = TableQuery.from_mapping({"dataset": "town", "by": ["age", "sex"]})
    assert service.names() == []
    service.policy_path("town").parent.mkdir()
    head, tail = (
        'dataset = "town"\n[rules]\n',
        ('[risk]\nlimit = 1.0\n[protect]\nmethod = "random-rounding"\nend = true\n'),
    )
    service.policy_path("town").write_text(head + tail)
    assert service.names() == ["town"]
    before = service.answer(query)
    ingest(FrameSource(people(4000)), town(), store, secret=SECRET)
    after = service.answer(query)
    assert after.release.published.sum() > before.release.published.sum()
    service.policy_path("town").write_text(f"{head}max_dimensions = 1\n{tail}")
    assert rules(service.answer(query)) == ["dimensions"]
    with pytest.raises(QueryError, match="no dataset 'village'"):
        service.answer(TableQuery.from_mapping({"dataset": "village", "by": ["age"]}))


def test_a_refusal_does_not_tell_a_true_zero_from_a_rounded_one(policy: Any) -> None:
    """Two people, who are rounded to 0 or to 3: what decides is what would be shown."""
    frame = {"sex": ["1", "2"], "job": ["a", "b"]}
    dataset = described("two", {"sex": "12", "job": "ab"})
    query = TableQuery.from_mapping({"dataset": "two", "by": ["sex", "job"]})
    seen = set()
    for seed in range(40):
        engine = FrameEngine(frame, dataset, Secret(bytes([seed]) * 32))
        shown = RandomRounding().apply(engine.tabulate(query)).published
        decision = answered(query, engine, policy())
        assert (rules(decision) == ["too-little"]) == (not shown.any())
        seen.add(bool(shown.any()))
    assert seen == {True, False}
