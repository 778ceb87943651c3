"""Where a question is refused, what is shown instead was asked and answered."""

from __future__ import annotations

import time

import pytest

from lustrum.model import Axis, Filter, Group, TableQuery
from lustrum.policy import Policy
from lustrum.release import Desk, answer
from lustrum.server.offer import Offer
from lustrum.server.suggest import advice, passing, suggestions

REFUSED = [
    TableQuery("demo", (Axis("area"), Axis("age"))),
    TableQuery("demo", (Axis("area"), Axis("age"), Axis("occupation"))),
    TableQuery("demo", (Axis("sex"), Axis("age"), Axis("region"), Axis("education"))),
    TableQuery("demo", (Axis("age", "labour-market"), Axis("sex"))),
    TableQuery("demo", (Axis("age", groups=(Group("x", ("1", "2")),)),)),
    TableQuery("demo", (Axis("sex"),), (Filter("area", ("1-04-005",)),)),
    TableQuery("demo", (Axis("sex"),), (Filter("area", ("1-01",)), Filter("age", ("1",)))),
    TableQuery("demo", (Axis("sex"), Axis("age")), (Filter("age", ("1", "2", "5")),)),
]


def offer(desk: Desk, **rules: object) -> Offer:
    policy = desk.policy("demo")
    changed = policy.model_copy(update={"rules": policy.rules.model_copy(update=rules)})
    return Offer(desk.dataset("demo"), changed, Under(desk, changed))


class Under(Desk):
    """The desk under another policy."""

    def __init__(self, desk: Desk, policy: Policy) -> None:
        self._desk = desk
        self._policy = policy
        self.asked: list[TableQuery] = []
        self.wait = 0.0

    def answer(self, query: TableQuery):  # type: ignore[no-untyped-def]
        self.asked.append(query)
        time.sleep(self.wait)
        return answer(query, self._desk.engine("demo"), self._policy)


@pytest.mark.parametrize("query", REFUSED)
def test_every_suggestion_is_answered(desk: Desk, query: TableQuery) -> None:
    decision = desk.answer(query)
    assert decision.release is None
    found = passing(decision, offer(desk), seconds=30)
    assert 1 <= len(found) <= 3
    assert len({s.query for s in found}) == len(found)
    for suggestion in found:
        assert desk.answer(suggestion.query).release is not None
        assert suggestion.text


def test_a_suggestion_says_all_that_it_changes(desk: Desk) -> None:
    query = TableQuery("demo", (Axis("area"), Axis("age"), Axis("occupation")))
    for suggestion in passing(desk.answer(query), offer(desk), seconds=30):
        changes = sum(a != b for a, b in zip(query.by, suggestion.query.by, strict=False))
        if len(suggestion.query.by) == len(query.by):
            assert suggestion.text.count(";") == changes - 1


def test_no_more_is_tried_than_is_allowed(desk: Desk) -> None:
    decision = desk.answer(REFUSED[0])
    strict = offer(desk, min_population=10**9)
    assert passing(decision, strict, seconds=30, tries=5) == ()
    assert isinstance(strict.desk, Under)
    assert len(strict.desk.asked) == 5


def test_the_search_ends_when_its_time_is_over(desk: Desk) -> None:
    decision = desk.answer(REFUSED[0])
    slow = offer(desk, min_population=10**9)
    assert isinstance(slow.desk, Under)
    slow.desk.wait = 0.2
    started = time.monotonic()
    assert passing(decision, slow, seconds=0.3, tries=100) == ()
    assert time.monotonic() - started < 2.5
    assert len(slow.desk.asked) <= 3


def test_variables_that_may_not_meet_are_taken_apart(desk: Desk) -> None:
    rules = offer(desk, disallowed=[["sex", "age"], ["region"]], at_most_one=[["age", "education"]])
    assert isinstance(rules.desk, Under)
    for query in (
        TableQuery("demo", (Axis("age", "life-stage"), Axis("sex"))),
        TableQuery("demo", (Axis("age", "life-stage"), Axis("education", "broad"))),
        TableQuery("demo", (Axis("sex"),), (Filter("region", ("1",)),)),
    ):
        decision = rules.desk.answer(query)
        assert decision.release is None
        found = passing(decision, rules, seconds=30)
        assert found
        for suggestion in found:
            assert rules.desk.answer(suggestion.query).release is not None


def test_a_selection_is_widened_before_it_is_dropped(desk: Desk) -> None:
    query = TableQuery("demo", (Axis("sex"),), (Filter("area", ("1-04-005",)),))
    texts = [s.text for s in suggestions(query, desk.answer(query).reasons, offer(desk))]
    assert "area is Lakes" in texts[0]
    assert texts[-1] == "Count all people"


def test_advice_passes_the_preliminary_rules(desk: Desk) -> None:
    query = REFUSED[0]
    seen = desk.foresee(query)
    found = advice(query, seen.reasons, offer(desk), desk.foresee)
    assert found is not None
    assert desk.foresee(found.query).passes
