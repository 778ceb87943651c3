"""What a policy can decide beyond limits: combinations, areas one by one, what is tried next, attackers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from answer.conftest import SECRET, answered
from lustrum.answer import pipeline
from lustrum.answer.pipeline import is_disclosive
from lustrum.model import Decision, Release, TableAxis, TableQuery, Verdict
from lustrum.policy import Policy
from lustrum.protect import RandomRounding
from lustrum.protect.totals.summed import Totals
from lustrum.protect.unchanged import Unchanged
from lustrum.publish.records import prepared
from lustrum.tabulate import EmbeddedEngine


def ask(engine: EmbeddedEngine, policy: Policy, **words: Any) -> Decision:
    source = prepared(engine, policy.before, SECRET)
    return answered(TableQuery.from_mapping({"dataset": "town"} | words), engine, policy, source)


def rules(decision: Decision) -> list[str]:
    return [reason.rule for reason in decision.reasons]


def test_a_table_that_fails_is_merged_where_the_policy_says_so(
    engine: EmbeddedEngine, policy: Any
) -> None:
    limits = {"min_mean_cell_size": 300.0}
    refused = ask(engine, policy(rules=limits), by=["age", "job"])
    assert rules(refused) == ["mean-cell-size"]
    merged = ask(engine, policy(rules=limits, fallback=[{"method": "merge"}]), by=["age", "job"])
    assert merged.verdict is Verdict.PARTIAL
    assert merged.release.axes[0].codes == ("Y", "O")
    assert merged.query.by[0].level == "broad"
    assert rules(merged) == ["merged"]
    assert [s.step for s in merged.trace].count("fallback") == 1
    only_sex = policy(rules=limits, fallback=[{"method": "merge", "variables": ["sex"]}])
    assert ask(engine, only_sex, by=["age", "job"]).verdict is Verdict.REFUSAL


def test_merging_does_not_mend_what_is_not_allowed_at_all(
    engine: EmbeddedEngine, policy: Any
) -> None:
    strict = policy(rules={"disallowed": [["age", "job"]]}, fallback=[{"method": "merge"}])
    assert rules(ask(engine, strict, by=["age", "job"])) == ["combination"]


def test_the_input_can_be_protected_before_anything_is_counted(
    engine: EmbeddedEngine, policy: Any
) -> None:
    pre = policy(before=[{"method": "random-rounding", "base": 3}], protect={"method": "none"})
    decision = ask(engine, pre, by=["age", "sex"])
    true = engine.tabulate(decision.query).values
    assert not np.array_equal(decision.release.published, true)
    assert np.all(decision.release.published % 3 == 0)
    assert decision.release.method["before"] == [{"method": "random-rounding", "base": 3}]
    assert any("beforehand" in note for note in decision.release.notes)
    again = ask(engine, pre, by=["age", "sex"])
    assert np.array_equal(again.release.published, decision.release.published)
    # Tables made from one protected input add up, and nothing about a cell is claimed.
    total = ask(engine, pre, by=["sex"])
    assert np.array_equal(total.release.published, decision.release.published.sum(axis=0))
    assert not decision.release.least.any()


def test_an_attacker_of_the_policy_keeps_a_table_back(engine: EmbeddedEngine, policy: Any) -> None:
    by = ["age", "job", "area"]
    for words, found in (
        ({"attackers": ["outsider"]}, False),
        ({"attackers": ["outsider"], "min_values": 4}, True),
        ({"attackers": ["insider"], "min_values": 3}, True),
        ({"attackers": [], "min_values": 9}, False),
    ):
        decision = ask(engine, policy(audit=words), by=by)
        assert (rules(decision) == ["audit"]) is found, words


def test_the_audit_looks_at_the_release_alone(engine: EmbeddedEngine, policy: Any) -> None:
    """A table that is shown as it is discloses every small cell to every reader."""
    table = engine.tabulate(TableQuery.from_mapping({"dataset": "town", "by": ["age", "area"]}))
    release = Unchanged().apply(table)
    assert is_disclosive(release, policy(audit={"attackers": ["outsider"], "up_to": 5}).audit)
    calm = policy(audit={"attackers": ["outsider"], "up_to": 0}).audit
    assert is_disclosive(release, calm) == bool((table.values == 0).any())


PARTIAL: list[list[Any]] = [
    [{"variable": "age", "codes": ["6", "8"], "total": True}, "job"],
    [{"variable": "age", "codes": ["8", "O", "2"]}, "job"],  # a group beside one of its codes
    [{"variable": "job", "codes": ["d", "c"], "total": True},
     {"variable": "area", "codes": ["w", "s"], "total": True}],
]  # fmt: skip


@pytest.mark.parametrize("by", PARTIAL)
def test_a_total_is_protected_beside_all_its_parts_also_those_not_asked_for(
    engine: EmbeddedEngine, policy: Any, by: list[Any]
) -> None:
    """Otherwise two rounded parts beside a small total of many could be worked out."""
    query = TableQuery.from_mapping({"dataset": "town", "by": by})
    completed, asked = engine.cube(query, unfiltered=True).completed()
    totals = Totals.of(completed.axes)
    assert (totals.covered | completed.inner).all()
    assert completed.take(asked).axes == engine.tabulate(query).axes
    assert np.array_equal(completed.take(asked).values, engine.tabulate(query).values)
    decision = ask(engine, policy(), by=by)
    whole = RandomRounding(base=3).apply(completed)
    assert np.array_equal(decision.release.published, whole.take(asked).published)
    assert "not shown" not in str(decision.release.axes)


def test_a_table_whose_totals_have_all_their_parts_is_complete_as_it_is(
    engine: EmbeddedEngine,
) -> None:
    for by in (["age", "sex"], [{"variable": "age", "level": "broad", "total": True}, "job"],
               [{"variable": "age", "codes": ["1", "2"]}]):  # fmt: skip
        query = TableQuery.from_mapping({"dataset": "town", "by": by})
        completed, _ = engine.cube(query).completed()
        assert completed.axes == engine.tabulate(query).axes


def test_what_is_left_of_a_table_without_some_areas_shows_the_numbers_of_the_whole(
    engine: EmbeddedEngine, policy: Any
) -> None:
    by = [{"variable": "area", "total": True}, "age"]
    whole = ask(engine, policy(), by=by).release
    rules_ = {"per_area": "area", "min_mean_cell_size": 10.0}
    some = ask(engine, policy(rules=rules_), by=by).release
    assert np.array_equal(some.published, whole.published[[0, 1, 3]])


def test_parts_are_cut_like_the_answer_also_where_it_shares_an_axis_with_them() -> None:
    """Numbers of an area that is left out go into no mean, share or sum of the answer."""
    axes = (TableAxis.plain("area", ["n", "s", "w"]), TableAxis.plain("sex", ["1", "2"]))
    part = Release(axes, np.arange(6).reshape(3, 2), np.full((3, 2), "F"), {"method": "none"})
    cut = part.take([[0, 2], [0, 1]])
    left = replace(cut, axes=(cut.axes[0], axes[1]))
    for shown, wanted in ((left, [[0, 1], [4, 5]]), (part, [[0, 1], [2, 3], [4, 5]])):
        case: Any = SimpleNamespace(release=shown)
        assert pipeline._kept(case, part).published.tolist() == wanted
