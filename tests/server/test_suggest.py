"""Where a question is refused, what is shown instead was asked and answered."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from clocks import bend_clock
from lustrum.answer import Snapshot, TableService
from lustrum.model import Axis, Decision, Filter, Group, TableQuery
from lustrum.runtime.stop import Stopped, stopping
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.service.suggestions import advice, estimate, passing, suggestions

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


def offer(service: TableService, **rules: object) -> ServedDataset:
    policy = service.policy("demo")
    changed = policy.model_copy(update={"rules": policy.rules.model_copy(update=rules)})
    return ServedDataset.of(Asked(service.under("demo", changed), changed))


@dataclass(frozen=True, eq=False)
class Asked(Snapshot):
    """A snapshot that remembers what it was asked."""

    asked: list[TableQuery] = field(default_factory=list)

    def answer(self, query: TableQuery) -> Decision:
        self.asked.append(query)
        return super().answer(query)


@pytest.mark.parametrize("query", REFUSED)
def test_every_suggestion_is_answered(service: TableService, query: TableQuery) -> None:
    decision = service.answer(query)
    assert decision.release is None
    found = passing(decision, offer(service))
    assert 1 <= len(found) <= 3
    assert len({s.query for s in found}) == len(found)
    for suggestion in found:
        assert service.answer(suggestion.query).release is not None
        assert suggestion.text


def test_a_suggestion_says_all_that_it_changes(service: TableService) -> None:
    query = TableQuery("demo", (Axis("area"), Axis("age"), Axis("occupation")))
    for suggestion in passing(service.answer(query), offer(service)):
        changes = sum(a != b for a, b in zip(query.by, suggestion.query.by, strict=False))
        if len(suggestion.query.by) == len(query.by):
            assert suggestion.text.count(";") == changes - 1


def test_no_more_is_tried_than_is_allowed(service: TableService) -> None:
    decision = service.answer(REFUSED[0])
    strict = offer(service, min_population=10**9)
    assert passing(decision, strict, tries=5) == ()
    assert isinstance(strict.snapshot, Asked)
    assert len(strict.snapshot.asked) == 5


def test_the_search_ends_when_enough_cells_were_tried(service: TableService) -> None:
    decision = service.answer(REFUSED[0])
    strict = offer(service, min_population=10**9)
    assert isinstance(strict.snapshot, Asked)
    assert passing(decision, strict, cells=300, tries=100) == ()
    tried = [estimate(query, strict.dataset).cells for query in strict.snapshot.asked]
    assert tried
    assert sum(tried) <= 300


def test_a_slow_machine_finds_the_same_suggestions(
    service: TableService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that runs far too fast stands for a machine that is far too slow."""
    expected = [passing(service.answer(query), offer(service)) for query in REFUSED[:3]]
    bend_clock(monkeypatch)
    assert [passing(service.answer(query), offer(service)) for query in REFUSED[:3]] == expected
    assert all(expected)


def test_the_search_ends_when_its_asker_has_left(service: TableService) -> None:
    decision = service.answer(REFUSED[0])
    strict = offer(service, min_population=10**9)
    with stopping(lambda: True), pytest.raises(Stopped):
        passing(decision, strict)


def test_variables_that_may_not_meet_are_taken_apart(service: TableService) -> None:
    rules = offer(
        service, disallowed=[["sex", "age"], ["region"]], at_most_one=[["age", "education"]]
    )
    assert isinstance(rules.snapshot, Asked)
    for query in (
        TableQuery("demo", (Axis("age", "life-stage"), Axis("sex"))),
        TableQuery("demo", (Axis("age", "life-stage"), Axis("education", "broad"))),
        TableQuery("demo", (Axis("sex"),), (Filter("region", ("1",)),)),
    ):
        decision = rules.snapshot.answer(query)
        assert decision.release is None
        found = passing(decision, rules)
        assert found
        for suggestion in found:
            assert rules.snapshot.answer(suggestion.query).release is not None


def test_a_selection_is_widened_before_it_is_dropped(service: TableService) -> None:
    query = TableQuery("demo", (Axis("sex"),), (Filter("area", ("1-04-005",)),))
    texts = [s.text for s in suggestions(query, service.answer(query).reasons, offer(service))]
    assert "area is Lakes" in texts[0]
    assert texts[-1] == "Count all people"


def test_advice_passes_the_preliminary_rules(service: TableService) -> None:
    query = REFUSED[0]
    seen = service.precheck(query)
    found = advice(query, seen.reasons, offer(service), service.precheck)
    assert found is not None
    assert service.precheck(found.query).passes
