"""Rules exactly at their limits, on protected numbers that are written down: what passes and what does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from lustrum.answer.figures import expected_figures
from lustrum.answer.pipeline import answer, is_disclosive
from lustrum.answer.preliminary import (
    advice,
    coarser,
    failing_areas,
    inner_count,
    number_rules,
    question_rules,
)
from lustrum.answer.snapshot import precheck
from lustrum.model import (
    Axis,
    Category,
    Dataset,
    Group,
    QueryError,
    Release,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.policy import Audit, Policy
from lustrum.public.numbers import CannotProtectError, Views
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
from small import described

DATASET = described(
    "d",
    {
        "a": {"codes": "1234", "label": "A"},
        "b": {"codes": "xy", "label": "B"},
        "c": {"codes": "pq", "label": "C"},
    },
)


def query(**words: Any) -> TableQuery:
    return TableQuery.from_mapping({"dataset": "d", **words})


def policy(**parts: Any) -> Policy:
    return Policy.model_validate({"dataset": "d", **parts})


def axis(name: str, *codes: str) -> TableAxis:
    """An axis whose last category is the total, if it is called _T."""
    inner = [c for c in codes if c != "_T"]
    places = {c: (i,) for i, c in enumerate(inner)} | {"_T": tuple(range(len(inner)))}
    return TableAxis(name, name.upper(), tuple(Category(c, c, places[c]) for c in codes))


def released(values: Any, *axes: TableAxis, **more: Any) -> Release:
    values = np.asarray(values)
    given = axes or (axis("a", *(str(i + 1) for i in range(values.size))),)
    status = more.pop("status", np.full(values.shape, "F"))
    return Release(given, values, status, {"method": "made-up"}, **more)


def reasons(release: Release, **rules: Any) -> list[str]:
    found = number_rules(release, "here", query(by=["a"]), DATASET, policy(rules=rules).rules)
    return [reason.rule for reason in found]


def test_totals_are_not_counted_again() -> None:
    table = released([4, 6, 10], axis("a", "1", "2", "_T"))
    assert reasons(table, min_population=10) == []
    assert reasons(table, min_population=11) == ["population"]
    assert reasons(table, min_mean_cell_size=5.0) == []
    assert reasons(table, max_small_share=0.5, small_up_to=4) == []
    assert reasons(table, max_small_share=0.49, small_up_to=4) == ["small-cells"]


def test_cells_that_cannot_hold_anybody_are_not_small_in_a_table_or_an_area() -> None:
    known = released([5, 6, 0, 9], structural=np.array([False, False, True, False]))
    assert reasons(known, max_small_share=0.0, small_up_to=4) == []
    assert reasons(known, max_small_share=0.33, small_up_to=5) == ["small-cells"]
    assert reasons(released([0, 0], structural=np.array([True, True])), max_small_share=0.0) == []
    axes = axis("a", "1", "2", "3", "_T"), axis("b", "x", "y", "_T")
    values = np.array([[4, 4, 8], [1, 9, 10], [5, 2, 7], [10, 15, 25]])
    mask = values == 1
    for structural, few in ((None, {"2"}), (mask, set())):
        table = released(values, *axes, structural=structural)
        for limits, failing in (
            ({"max_small_share": 0.0, "small_up_to": 1}, few),
            ({"min_mean_cell_size": 3.5}, set()),
            ({"min_mean_cell_size": 3.51}, {"3"}),
            # Cells that cannot hold anybody count as cells: a mean over the others alone would look large.
            ({"min_mean_cell_size": 5.01}, {"1", "2", "3"}),
        ):
            rules = policy(rules={"per_area": "a", **limits}).rules
            assert failing_areas(table, rules) == failing
        # Where areas are judged one by one, a table as a whole is judged by its population alone.
        assert reasons(table, per_area="a", min_mean_cell_size=99.0, max_small_share=0.0) == []


def test_questions_at_the_limits_of_the_rules_pass() -> None:
    def against(asked: TableQuery, **rules: Any) -> list[str]:
        limits = policy(rules={"nested_only": False, **rules}).rules
        return [reason.rule for reason in question_rules(asked, DATASET, limits)]

    two = query(by=["a", "b"], where={"c": ["p"]})
    assert against(two, max_dimensions=2, max_filters=1, max_cells=8) == []
    assert against(two, max_dimensions=1) == ["dimensions"]
    assert against(two, max_filters=0) == ["filters"]
    assert against(two, max_cells=7) == ["cells"]
    assert against(two, disallowed=[["a", "b"]]) == ["combination"]
    assert against(two, disallowed=[["a", "c"], ["b"]]) == ["combination", "combination"]
    assert against(query(by=["a"]), disallowed=[["a", "b"]]) == []
    assert against(two, at_most_one=[["a", "c"]]) == ["one-of"]
    assert against(query(by=["a", "b"]), at_most_one=[["a", "c"]]) == []
    assert inner_count(query(by=["a", "b"], totals=True), DATASET) == 8


@dataclass
class Written:
    """Protected numbers that were written down."""

    shown: Release
    everybody: Release | None = None
    selected: Release | None = None
    broken: bool = False
    asked: list[TableQuery] = field(default_factory=list)
    dataset: Dataset = DATASET
    mark: str = "m"
    measures: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    weighted_measures: tuple[str, ...] = ()

    def sum_noise(self, measure: str) -> None:
        """Nothing is said of the noise of sums."""

    def views(self, asked: TableQuery) -> Views:
        self.asked.append(asked)
        if self.broken:
            raise CannotProtectError("no such table")
        return Views(self.everybody or self.shown, self.selected, self.shown)


LARGE = released([40, 60, 30, 20])
SMALL = released([4, 6, 3, 2])


def rules_of(numbers: Written, asked: TableQuery | None = None, **parts: Any) -> list[str]:
    decision = answer(asked or query(by=["a"]), numbers, policy(**parts))
    assert decision.released == (decision.verdict is not Verdict.REFUSAL)
    if not decision.released:
        assert decision.release is None
    return [reason.rule for reason in decision.reasons]


def test_a_table_without_two_open_cells_or_with_zeros_alone_is_too_little() -> None:
    assert rules_of(Written(released([0, 1]))) == []
    totals = released([7, 7], axis("a", "1", "_T"))
    assert rules_of(Written(totals)) == ["too-little"]


def test_what_cannot_be_protected_or_asked_is_refused() -> None:
    assert rules_of(Written(LARGE, broken=True)) == ["method"]
    with pytest.raises(QueryError, match="The policy is for 'other', not for 'd'"):
        answer(query(by=["a"]), Written(LARGE), policy(dataset="other"))
    assert answer(query(by=["a"]), Written(LARGE), policy(dataset="*")).released
    closed = Written(LARGE)
    assert rules_of(closed, rules={"disallowed": [["a"]]}) == ["combination"]
    assert closed.asked == []


def test_areas_that_fail_are_left_out_of_what_is_shown() -> None:
    area = axis("a", "1", "2", "3", "4", "_T")
    table = released([40, 6, 30, 2, 78], area)
    limit = {"rules": {"per_area": "a", "min_area_population": 7}}
    decision = answer(query(by=["a"], totals=True), Written(table), policy(**limit))
    assert decision.verdict is Verdict.PARTIAL
    assert decision.release.axes[0].codes == ("1", "3", "_T")
    assert decision.release.published.tolist() == [40, 30, 78]
    assert decision.reasons[0].text.startswith("2 of 4 categories of A can be shown")
    assert decision.reasons[0].text.endswith("2, 4.")
    # An area that fails in the selected population alone is left out too.
    beside = Written(released([40, 60, 30, 20, 150], area), selected=table)
    decision = answer(query(by=["a"], totals=True), beside, policy(**limit))
    assert decision.release.axes[0].codes == ("1", "3", "_T")
    none = {"rules": {"per_area": "a", "min_area_population": 99}}
    assert rules_of(Written(table), query(by=["a"], totals=True), **none) == ["areas"]
    for dataset, help_ in ((DATASET, "Choose fewer variables."), (RICH, ADVICE)):
        for limits in (limit, none):
            asked = query(by=["a"], totals=True)
            refused = answer(asked, Written(table, dataset=dataset), policy(**limits))
            assert str(refused.reasons[0].way_forward) == help_


def test_a_precheck_says_what_the_answer_would_without_the_risk() -> None:
    numbers = Written(SMALL)
    strict = policy(rules={"min_population": 100, "max_cells": 4})
    found = precheck(query(by=["a"]), numbers, strict)
    assert (found.cells, found.passes) == (4, False)
    assert [reason.rule for reason in found.reasons] == ["population"]
    assert len(numbers.asked) == 1
    unasked = precheck(query(by=["a"]), numbers, strict, count=False)
    assert (unasked.cells, unasked.passes, unasked.reasons) == (4, True, ())
    assert len(numbers.asked) == 1
    over = precheck(query(by=["a", "b"]), numbers, strict)
    assert (over.cells, over.passes) == (8, False)
    assert [reason.rule for reason in over.reasons] == ["cells"]
    assert len(numbers.asked) == 1
    fine = precheck(query(by=["a"]), Written(LARGE), strict)
    assert (fine.cells, fine.passes, fine.reasons) == (4, True, ())
    area = axis("a", "1", "2", "3", "4")
    some = policy(rules={"per_area": "a", "min_area_population": 4})
    partly = precheck(query(by=["a"]), Written(released([4, 6, 3, 2], area)), some)
    assert partly.passes
    assert [reason.rule for reason in partly.reasons] == ["areas"]


def test_a_risk_above_the_limit_is_refused_and_at_the_limit_passes() -> None:
    decision = answer(query(by=["a"]), Written(LARGE), policy())
    at = {"risk": {"limit": decision.risk_after}}
    below = {"risk": {"limit": decision.risk_after * 0.999}}
    assert rules_of(Written(LARGE), **at) == []
    assert rules_of(Written(LARGE), **below) == ["risk"]


def bounded(values: Any, low: Any, high: Any, **more: Any) -> Release:
    return released(values, least=np.asarray(low), most=np.asarray(high), **more)


def test_an_audit_finds_a_cell_with_too_few_values_left() -> None:
    outsider = {"attackers": ["outsider"]}

    def found(release: Release, **words: Any) -> bool:
        return is_disclosive(release, Audit.model_validate({**outsider, **words}))

    open_ = bounded([3, 9], [2, 8], [4, 10])
    assert not found(open_)
    assert not found(open_, min_values=3)
    assert found(open_, min_values=4)
    pinned = bounded([3, 9], [3, 8], [3, 10])
    assert found(pinned)
    assert found(pinned, up_to=3)
    assert not found(pinned, up_to=2)
    assert not is_disclosive(pinned, Audit())
    hidden = bounded([3, 9], [3, 8], [3, 10], status=np.array(["A", "F"]))
    assert not found(hidden)
    known = bounded([0, 9], [0, 8], [0, 10], structural=np.array([True, False]))
    assert not found(known)
    insider = Audit.model_validate({"attackers": ["insider"], "min_values": 2})
    assert is_disclosive(bounded([1, 9], [0, 8], [1, 10]), insider)
    assert not is_disclosive(bounded([1, 9], [0, 8], [2, 10]), insider)


def test_a_table_that_takes_more_programs_than_allowed_counts_as_disclosive() -> None:
    axes = (axis("a", "1", "2", "3", "_T"), axis("b", "x", "y", "_T"))
    values = np.array([[3, 3, 6], [3, 3, 6], [3, 3, 6], [9, 9, 18]])
    release = Release(
        axes, values, np.full(values.shape, "F"), {"method": "made-up"},
        least=values - 2, most=values + 2,
    )  # fmt: skip
    audit = {"attackers": ["outsider"]}
    assert not is_disclosive(release, Audit.model_validate(audit))
    assert is_disclosive(release, Audit.model_validate({**audit, "programs": 1}))


# Sums, weights, classes and earlier periods are judged like the table itself

ADVICE = "Use the level 'Wide' of A."
GROUPS = [
    {"code": "lo", "label": "Low", "members": ["1", "2"]},
    {"code": "hi", "label": "High", "members": ["3", "4"]},
]
RICH = described(
    "d",
    {
        "a": {
            "codes": "1234",
            "label": "A",
            "hierarchies": [
                {"name": "h", "levels": [{"name": "wide", "label": "Wide", "groups": GROUPS}]}
            ],
        },
        "year": {"codes": "12", "label": "Year"},
        "age": {"codes": "yo", "label": "Age", "edges": [0, 10, 20]},
    },
    measures=[{"name": "m", "label": "M", "unit": "euro"}],
    weights=[{"name": "w", "label": "W"}],
)


@dataclass
class Rich:
    """Protected numbers by what is asked: of classes, of the earlier year, at the wide level, or of all."""

    now: Release = field(default_factory=lambda: LARGE)
    before: Release = field(default_factory=lambda: LARGE)
    classes: Release = field(
        default_factory=lambda: released(
            np.full((4, 2), 30), axis("a", "1", "2", "3", "4"), axis("age", "y", "o")
        )
    )
    wide: Release = field(default_factory=lambda: released([100, 50], axis("a", "lo", "hi")))
    sums: Release = field(default_factory=lambda: released([1, 2, 3, 4]))
    measures: tuple[str, ...] = ("m",)
    weights: tuple[str, ...] = ("w",)
    weighted_measures: tuple[str, ...] = ()
    dataset: Dataset = RICH
    mark: str = "m"
    asked: list[TableQuery] = field(default_factory=list)
    only: str = ""  # the one view that is as said; the others are large

    def sum_noise(self, measure: str) -> None:
        """Nothing is said of the noise of sums."""

    def views(self, asked: TableQuery) -> Views:
        self.asked.append(asked)
        if asked.measure is not None:
            chosen = self.sums
        elif "age" in [a.variable for a in asked.by]:
            chosen = self.classes
        elif any(a.level == "wide" for a in asked.by):
            chosen = self.wide
        elif any(f.variable == "year" and f.codes == ("1",) for f in asked.where):
            chosen = self.before
        else:
            chosen = self.now
        views = Views(chosen, chosen, chosen)
        return replace(Views(LARGE, LARGE, LARGE), **{self.only: chosen}) if self.only else views


def rule_names(numbers: Rich, asked: TableQuery, **parts: Any) -> list[str]:
    return [reason.rule for reason in answer(asked, numbers, policy(**parts)).reasons]  # type: ignore[arg-type]


def test_only_what_is_protected_can_be_asked_for() -> None:
    sums = query(by=["a"], statistics=["sum:m"])
    assert rule_names(Rich(), sums) == []
    assert rule_names(Rich(measures=()), sums) == ["method"]
    weighted = query(by=["a"], weight="w")
    assert rule_names(Rich(), weighted) == []
    assert rule_names(Rich(weights=()), weighted) == ["method"]
    both = query(by=["a"], weight="w", statistics=["sum:m"])
    assert rule_names(Rich(), both) == ["method"]
    lacking = answer(sums, Rich(measures=("n",)), policy())  # type: ignore[arg-type]
    assert str(lacking.reasons[0].text) == "There are no protected sums of 'm'."
    unasked = Rich(measures=())
    assert rule_names(unasked, sums) == ["method"]
    assert unasked.asked == []


def test_the_classes_of_a_quantile_are_one_more_variable_and_their_cells_are_judged() -> None:
    median = query(by=["a"], statistics=["median:age"])
    assert rule_names(Rich(), median, rules={"max_dimensions": 2, "max_cells": 8}) == []
    assert rule_names(Rich(), median, rules={"max_dimensions": 1}) == ["dimensions"]
    assert rule_names(Rich(), median, rules={"max_cells": 7}) == ["cells"]
    assert rule_names(Rich(), median, rules={"disallowed": [["a", "age"]]}) == ["combination"]
    few = released(np.full((4, 2), 2), axis("a", "1", "2", "3", "4"), axis("age", "y", "o"))
    limit = {"rules": {"min_mean_cell_size": 3.0}}
    assert rule_names(Rich(), median, **limit) == []
    assert rule_names(Rich(classes=few), median, **limit) == ["mean-cell-size"]
    assert rule_names(Rich(classes=few), query(by=["a"]), **limit) == []


def test_an_earlier_period_is_judged_like_the_present_one() -> None:
    growth = query(by=["a"], where={"year": ["2"]}, statistics=["growth:count:year=1"])
    limit = {"rules": {"min_population": 100}}
    assert rule_names(Rich(), growth, **limit) == []
    assert rule_names(Rich(before=SMALL), growth, **limit) == ["population"]
    for view in ("selected", "shown"):
        assert rule_names(Rich(before=SMALL, only=view), growth, **limit) == ["population"]
    assert rule_names(Rich(before=SMALL), query(by=["a"], where={"year": ["2"]}), **limit) == []


def test_a_coarser_table_is_tried_only_for_rules_that_it_may_satisfy() -> None:
    merge = {"fallback": [{"method": "merge"}]}
    asked = query(by=["a"])
    numbers = Rich(now=SMALL)
    decision = answer(asked, numbers, policy(rules={"min_mean_cell_size": 10.0}, **merge))  # type: ignore[arg-type]
    assert decision.verdict is Verdict.PARTIAL
    assert decision.release.axes[0].codes == ("lo", "hi")
    assert [reason.rule for reason in decision.reasons] == ["merged"]
    steps = [(step.step, step.outcome) for step in decision.trace]
    assert steps[:3] == [("question", "passed"), ("numbers", "protected"), ("rules", "refused")]
    assert ("fallback", "tried") in steps
    # What a coarser table cannot mend closes the case, and so does a coarser table that fails otherwise.
    for limits in ({"min_population": 16}, {"min_population": 16, "min_mean_cell_size": 10.0}):
        numbers = Rich(now=SMALL)
        assert rule_names(numbers, asked, rules=limits, **merge)[0] == "population"
        assert len(numbers.asked) == 1
    less = Rich(now=SMALL, wide=released([7, 7], axis("a", "lo", "hi")))
    limits = {"min_mean_cell_size": 6.0, "min_population": 15}
    assert rule_names(less, asked, rules=limits, **merge) == ["mean-cell-size"]
    assert len(less.asked) == 2
    still = Rich(now=SMALL, wide=released([5, 6], axis("a", "lo", "hi")))
    assert rule_names(still, asked, rules={"min_mean_cell_size": 6.0}, **merge) == [
        "mean-cell-size"
    ]
    fine = Rich()
    assert rule_names(fine, asked, **merge) == []
    assert len(fine.asked) == 1


def test_each_coarser_level_is_tried_until_one_passes_or_fails_for_good() -> None:
    codes = [str(i) for i in range(1, 9)]
    pairs = [{"code": f"p{i}", "members": codes[2 * i : 2 * i + 2]} for i in range(4)]
    halves = [{"code": f"h{i}", "members": codes[4 * i : 4 * i + 4]} for i in range(2)]
    levels = [{"name": "halves", "groups": halves}, {"name": "pairs", "groups": pairs}]
    deep = described(
        "d", {"a": {"codes": codes, "hierarchies": [{"name": "h", "levels": levels[::-1]}]}}
    )

    @dataclass
    class Levels(Written):
        paired: int = 0

        def views(self, asked: TableQuery) -> Views:
            self.asked.append(asked)
            level = asked.by[0].level
            values = {"pairs": [self.paired] * 4, "halves": [20] * 2}.get(level or "", [2] * 8)
            names = {"pairs": pairs, "halves": halves}.get(
                level or "", [{"code": c} for c in codes]
            )
            shown = released(values, axis("a", *(str(group["code"]) for group in names)))
            return Views(shown, None, shown)

    limits = policy(
        rules={"min_mean_cell_size": 6.0, "min_population": 14}, fallback=[{"method": "merge"}]
    )
    # Pairs of 5 are too small still, and halves pass; with pairs of 3 too few people are left.
    for paired, tried, shown in (
        (5, 3, ("h0", "h1")),
        (3, 2, None),
        (6, 2, ("p0", "p1", "p2", "p3")),
    ):
        numbers = Levels(SMALL, dataset=deep, paired=paired)
        decision = answer(query(by=["a"]), numbers, limits)
        assert len(numbers.asked) == tried
        assert (decision.release and decision.release.axes[0].codes) == shown
        if shown:
            assert [reason.rule for reason in decision.reasons] == ["merged"]


def test_a_question_that_makes_no_sense_is_refused_before_any_number_is_made() -> None:
    for step in (answer, precheck):
        numbers = Rich()
        with pytest.raises(QueryError, match="classes"):
            step(query(by=["a"], statistics=["median:year"]), numbers, policy())  # type: ignore[operator]
        assert numbers.asked == []


def test_each_method_of_an_answer_is_named_once() -> None:
    def text(numbers: Rich, *statistics: str) -> str:
        asked = query(by=["a"], statistics=list(statistics))
        return str(answer(asked, numbers, policy()).trace[1].text)  # type: ignore[arg-type]

    assert text(Rich(), "mean:m") == "Method: made-up."
    sums = replace(released([1, 2, 3, 4]), method={"method": "factors", "p": 5})
    both = "Method: made-up. Method: factors. p: 5."
    assert text(Rich(sums=sums), "mean:m") == both
    assert text(Rich(sums=sums), "sum:m", "count", "median:age") == both


def test_a_question_reports_its_steps_and_stops_between_them() -> None:
    heard: list[tuple[str, float]] = []
    with reporting_progress(lambda name, share: heard.append((name, share))):
        answer(query(by=["a"]), Written(LARGE), policy())
    names = ["question", "numbers", "judge", "measure", "finish"]
    assert [h for h in heard if h[0] in names] == [(n, i / 5) for i, n in enumerate(names)]
    numbers = Written(LARGE)
    with stopping(lambda: True), pytest.raises(Stopped):
        answer(query(by=["a"]), numbers, policy())
    assert numbers.asked == []


def test_only_categories_of_the_published_classification_may_be_asked_for() -> None:
    def against(asked: TableQuery, dataset: Dataset = RICH, nested: bool = True) -> list[Any]:
        limits = policy(rules={"nested_only": nested}).rules
        return list(question_rules(asked, dataset, limits))

    own = {"variable": "a", "groups": [{"label": "mine", "members": ["1", "3"]}]}
    level = {"variable": "a", "level": "wide"}
    assert [r.rule for r in against(query(by=[own]))] == ["nested"]
    assert against(query(by=[own]), nested=False) == []
    assert str(against(query(by=[own]))[0].way_forward).endswith("the level 'Wide'.")
    assert str(against(query(by=[own]), DATASET)[0].way_forward) == "Use single categories."
    for fine in (query(by=["a"]), query(by=[level]), query(by=["a"], totals=True)):
        assert against(fine) == []
    assert against(query(by=["year"], where={"a": ["1", "2"]})) == []
    assert against(query(by=["year"], where={"a": ["1"]})) == []
    assert [r.rule for r in against(query(by=["year"], where={"a": ["1", "3"]}))] == ["nested"]
    flat = against(query(by=["b"], where={"a": ["1", "2"]}), DATASET)
    assert [r.rule for r in flat] == ["nested"]
    nothing = list(question_rules(query(by=[]), RICH, policy().rules))
    assert [r.rule for r in nothing] == ["dimensions"]
    many = list(
        question_rules(
            query(by=["a", "year", "age"]), RICH, policy(rules={"max_dimensions": 2}).rules
        )
    )
    assert str(many[0].way_forward) == "Leave out 1 of: A, Year, Age."
    alone = list(question_rules(query(by=["a"]), RICH, policy(rules={"disallowed": [["a"]]}).rules))
    assert str(alone[0].text) == "A is not available."


def test_a_total_is_never_left_out_as_an_area() -> None:
    area = axis("a", "1", "2", "_T")
    odd = released([[4, 4], [5, 5], [1, 1]], area, axis("b", "x", "y"))
    limits = policy(rules={"per_area": "a", "min_area_population": 8}).rules
    assert failing_areas(odd, limits) == frozenset()


def test_help_names_a_level_where_there_is_one() -> None:
    for dataset, help_ in ((RICH, ADVICE), (DATASET, "Choose fewer variables")):
        limits = policy(rules={"min_mean_cell_size": 99.0}).rules
        found = list(number_rules(LARGE, "here", query(by=["a"]), dataset, limits))
        assert str(found[0].way_forward).startswith(help_)


def test_an_audit_looks_at_inner_cells_and_only_at_those_that_may_be_small() -> None:
    audit = Audit.model_validate({"attackers": ["outsider"], "up_to": 3})
    total = released(
        [9, 9, 18], axis("a", "1", "2", "_T"), least=np.array([9, 9, 18]), most=np.array([9, 9, 18])
    )
    assert not is_disclosive(total, audit)
    without = released([3, 9])
    assert is_disclosive(without, audit)
    exact = released(
        [1, 2, 3], axis("a", "1", "2", "_T"), least=np.array([0, 0, 3]), most=np.array([3, 3, 3])
    )
    assert not is_disclosive(exact, audit)


def test_an_insider_is_held_against_the_cell_with_its_own_contribution() -> None:
    """A cell that its total pins is disclosive up to the limit, the insider counted."""
    axes = axis("a", "1", "2", "_T")
    for total, pinned in ((12, True), (13, False)):  # the first cell is 5 or 6
        release = released(
            [4, 7, total], axes, least=np.array([0, 7, total]), most=np.array([10, 7, total])
        )
        for attacker in ("insider", "outsider"):
            audit = Audit.model_validate({"attackers": [attacker], "up_to": 5})
            assert is_disclosive(release, audit) == pinned


def test_a_precheck_leaves_the_risk_to_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    strict = policy(risk={"limit": 0.0})
    assert answer(query(by=["a"]), Written(LARGE), strict).verdict is Verdict.REFUSAL
    assert precheck(query(by=["a"]), Written(LARGE), strict).passes


def test_figures_reach_the_decision() -> None:
    decision = answer(query(by=["a"]), Written(LARGE), policy())
    figures = expected_figures(LARGE, policy().risk.spec)
    assert (decision.risk_before, decision.risk_after, decision.utility) == (
        figures.risk_before, figures.risk_after, figures.utility,
    )  # fmt: skip
    assert None not in (decision.risk_before, decision.risk_after, decision.utility)


def test_an_answer_shows_what_was_asked_and_rules_judge_counts_alone() -> None:
    means = query(by=["a"], statistics=["mean:m"])
    limit = policy(rules={"min_population": 100})
    decision = answer(means, Rich(), limit)  # type: ignore[arg-type]
    assert decision.released
    assert decision.release is not None
    shown = decision.release
    # 1 over 40, 2 over 60, 3 over 30 and 4 over 20
    assert (shown.published / 10**shown.decimals).round(1).tolist() == [0.0, 0.0, 0.1, 0.2]
    assert shown.unit == "euro"
    assert rule_names(Rich(measures=()), query(by=["a"], statistics=["count", "sum:m"])) == [
        "method"
    ]
    asked = Rich(now=released([40, 60, 30, 20, 150], axis("a", "1", "2", "3", "4", "_T")))
    share = answer(query(by=["a"], statistics=["share:count:total"]), asked, policy())  # type: ignore[arg-type]
    assert share.release.published.tolist() == [267, 400, 200, 133]
    assert any(a.total for one in asked.asked for a in one.by)
    offered = answer(query(by=["a"], statistics=["sum:m"]), Rich(measures=("n",)), policy())  # type: ignore[arg-type]
    assert str(offered.reasons[0].way_forward) == "Ask for one of: n."
    none = answer(query(by=["a"], statistics=["sum:m"]), Rich(measures=()), policy())  # type: ignore[arg-type]
    assert str(none.reasons[0].way_forward) == "Ask for counts."


def test_a_coarser_question_is_found_along_named_axes_or_the_longest_first() -> None:
    """Two variables of six codes with levels of four and two groups, one of eight, and one without levels."""

    def variable(name: str, codes: int) -> dict[str, Any]:
        words = [f"{name}{k}" for k in range(codes)]
        levels = [
            {
                "name": f"by {size}",
                "groups": [
                    {"code": f"{name}{size}{k}", "members": words[k::size]} for k in range(size)
                ],
            }
            for size in (4, 2)
        ]
        return {"name": name, "codes": words, "hierarchies": [{"name": "own", "levels": levels}]}

    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "d"},
            "variables": [
                variable("a", 6),
                variable("b", 6),
                variable("c", 8),
                {"name": "sex", "codes": ["f", "m"]},
            ],
        }
    )

    def found(*by: Axis, variables: tuple[str, ...] = ()) -> list[tuple[str, str]]:
        asked = TableQuery("d", by)
        out = []
        for one in coarser(asked, dataset, variables):
            changed = [a for a, b in zip(one.query.by, by, strict=True) if a != b]
            assert [(a.variable, a.level) for a in changed] == [(one.variable.name, one.level.name)]
            assert len(one.query.by) == len(by)
            out.append((one.variable.name, one.level.name))
        return out

    every = (Axis("a"), Axis("sex"), Axis("b"), Axis("c"))
    assert found(*every) == [("c", "by 4"), ("a", "by 4"), ("b", "by 4")]
    assert found(*every, variables=("b", "c")) == [("b", "by 4"), ("c", "by 4")]
    assert found(*every, variables=("c", "a", "b")) == [("c", "by 4"), ("a", "by 4"), ("b", "by 4")]
    assert found(Axis("a", "by 4"), Axis("b")) == [("b", "by 4"), ("a", "by 2")]
    # A total is no category that a level could do without.
    assert found(Axis("a", "by 4", total=True)) == [("a", "by 2")]
    assert found(Axis("a", "by 2", total=True), Axis("sex", total=True)) == []
    assert found(Axis("a", total=True), Axis("b", total=True)) == [("a", "by 4"), ("b", "by 4")]
    assert found(Axis("a", codes=("a0", "a1"))) == []
    assert found(Axis("a", groups=(Group("some", ("a0", "a1")),))) == []
    assert advice(TableQuery("d", every), dataset) == "Use the level 'by 4' of c."
    assert advice(TableQuery("d", (Axis("sex"),)), dataset) == ""
