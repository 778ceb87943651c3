"""Statistics are worked out from protected numbers alone, exactly, with bounds that hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.conftest import SECRET, answered, people, town
from examples import examples
from lustrum.answer import TableService, answer
from lustrum.answer.statistics import compose, quantities, share_totals
from lustrum.model import (
    Dataset,
    Decision,
    PolicyError,
    Quantity,
    Release,
    TableAxis,
    TableQuery,
    Verdict,
    describe_statistics,
)
from lustrum.model.variable import TOTAL_CODE
from lustrum.numeric.structure import UNBOUNDED
from lustrum.policy import Policy, check_names
from lustrum.protect.cell_key import CellKeyMagnitude
from lustrum.public.noise import KeyedNoise
from lustrum.public.numbers import Views
from lustrum.publish.records import EngineNumbers
from lustrum.tabulate import EmbeddedEngine, FrameSource, Store, ingest

SUMS = {"method": "cell-key-magnitude", "p_percent": 10.0, "extra": 1.0, "large": 0.1}
KEYED = {"protect": {"method": "cell-key"}, "sums": SUMS, "risk": {"limit": 1.0}}

FIRMS = Dataset.from_mapping(
    {
        "dataset": {"name": "firms", "unit": "firm", "units": "firms"},
        "variables": [{"name": "area", "label": "Area", "codes": ["a", "b", "c"]}],
        "measures": [
            {"name": "t", "label": "Turnover", "unit": "euro", "decimals": 1},
            {"name": "e", "label": "Employees", "unit": "people"},
        ],
    }
)


def asked(*statistics: str, by: Any = ("area",)) -> TableQuery:
    return TableQuery.from_mapping({"dataset": "firms", "by": list(by), "statistics": statistics})


def release(
    values: list[int],
    decimals: int = 0,
    bounds: tuple[list[int], list[int]] | None = None,
    status: list[str] | None = None,
) -> Release:
    codes = ["a", "b", "c", TOTAL_CODE][: len(values)]
    return Release(
        axes=(TableAxis.plain("area", codes),),
        published=np.array(values),
        status=np.array(status or ["F"] * len(values)),
        method={"method": "x"},
        low=None if bounds is None else np.array(bounds[0]),
        high=None if bounds is None else np.array(bounds[1]),
        decimals=decimals,
    )


def worked_out(query: TableQuery, parts: dict[Quantity, Release]) -> Release:
    return compose(query, parts, describe_statistics(query, FIRMS))


class TestNumbers:
    def test_a_mean_is_the_quotient_of_two_protected_numbers(self) -> None:
        parts = {Quantity(): release([3, 0, 7]), Quantity("t"): release([100, 50, -35], 1)}
        found = worked_out(asked("mean:t"), parts)
        # 10.0 / 3 and -3.5 / 7, with one decimal more than the measure.
        assert found.published.tolist() == [333, 0, -50]
        assert found.decimals == 2
        assert found.known.tolist() == [True, False, True]
        assert found.shown.all()

    def test_a_ratio_in_one_unit_is_a_percentage(self) -> None:
        both = replace(FIRMS, measures=(FIRMS.measures[0], replace(FIRMS.measures[1], unit="euro")))
        parts = {
            Quantity(): release([1, 1, 1]),
            Quantity("t"): release([100, 15, 0], 1),
            Quantity("e"): release([20, -3, 0]),
        }
        query = asked("ratio:t:e")
        found = compose(query, parts, describe_statistics(query, both))
        assert (found.unit, found.published.tolist()) == ("%", [500, -500, 0])
        assert found.known.tolist() == [True, True, False]

    def test_growth_needs_something_to_grow_from(self) -> None:
        dataset = replace(
            FIRMS, measures=(*FIRMS.measures, replace(FIRMS.measures[0], name="u", decimals=0))
        )
        query = asked("growth:t:u")
        parts = {
            Quantity(): release([1, 1, 1]),
            Quantity("t"): release([110, 50, 50], 1),
            Quantity("u"): release([10, 0, -5]),
        }
        found = compose(query, parts, describe_statistics(query, dataset))
        assert found.published[0] == 100  # 10.0 %
        assert found.known.tolist() == [True, False, False]

    def test_shares_are_of_the_published_total_which_stays_out_of_the_table(self) -> None:
        query = asked("share:count:total")
        assert share_totals(query) == ("area",)
        found = worked_out(query, {Quantity(): release([1, 2, 1, 3])})
        assert found.published.tolist() == [333, 667, 333]
        assert found.axes[0].codes == ("a", "b", "c")

    def test_several_statistics_stand_along_the_last_axis_in_one_scale(self) -> None:
        parts = {Quantity(): release([3, 0, 7]), Quantity("t"): release([100, 50, 70], 1)}
        found = worked_out(asked("count", "sum:t", "mean:t"), parts)
        assert found.axes[-1].codes == ("count", "sum:t", "mean:t")
        assert found.decimals == 2
        assert found.published[0].tolist() == [300, 1000, 333]
        assert [s.decimals for s in found.statistics] == [0, 1, 2]
        assert [found.unit_at(i) for i in range(3)] == ["firms", "euro", "euro"]
        assert found.known[1].tolist() == [True, True, False]

    def test_what_is_suppressed_in_a_part_is_suppressed_in_all_that_it_makes(self) -> None:
        parts = {
            Quantity(): release([3, 4, 5], status=["F", "A", "F"]),
            Quantity("t"): release([100, 50, 70], 1, ([0, 0, 0], [200, 90, 90]), ["F", "F", "O"]),
        }
        found = worked_out(asked("sum:t", "mean:t"), parts)
        assert found.status.tolist() == [["F", "F"], ["F", "A"], ["O", "O"]]
        assert found.published[1, 1] == found.published[2, 0] == found.published[2, 1] == 0
        assert not found.stated[1, 1]
        assert not found.known[2].any()


@st.composite
def _interval(draw: Any, least: int) -> tuple[int, int, int]:
    """The low end, the published value and the high end."""
    ends = sorted(draw(st.lists(st.integers(least, 400), min_size=3, max_size=3)))
    low, shown, high = ends
    return (
        draw(st.sampled_from([low, -UNBOUNDED])) if least < 0 else low,
        shown,
        draw(st.sampled_from([high, UNBOUNDED])),
    )


@settings(max_examples=examples(100, 1000), deadline=None)
@given(_interval(-400), _interval(0), st.data())
def test_no_true_numbers_within_the_bounds_of_the_parts_leave_those_of_a_mean(
    top: tuple[int, int, int], bottom: tuple[int, int, int], data: st.DataObject
) -> None:
    """The oracle: any true sum and count that the parts allow, divided as fractions."""
    parts = {
        Quantity(): release([bottom[1]], 0, ([bottom[0]], [bottom[2]])),
        Quantity("t"): release([top[1]], 1, ([top[0]], [top[2]])),
    }
    found = worked_out(asked("mean:t"), parts)
    assert found.low is not None
    assert found.high is not None
    if not found.known[0]:
        assert bottom[1] == 0
        assert found.low[0] == -UNBOUNDED
        assert found.high[0] == UNBOUNDED
        return
    exact = Fraction(top[1], 10) / bottom[1]
    assert abs(Fraction(int(found.published[0]), 100) - exact) <= Fraction(1, 200)
    for _ in range(10):
        over = data.draw(st.integers(max(top[0], -1000), min(top[2], 1000)))
        under = data.draw(st.integers(max(bottom[0], 1), max(min(bottom[2], 1000), 1)))
        true = Fraction(over, 10) / under
        if found.low[0] > -UNBOUNDED:
            assert Fraction(int(found.low[0]), 100) <= true
        if found.high[0] < UNBOUNDED:
            assert true <= Fraction(int(found.high[0]), 100)


def test_numbers_that_leave_64_bits_are_still_exact() -> None:
    parts = {
        Quantity(): release([3, 1, 1]),
        Quantity("t"): release([2**60, 2**61 - 1, -(2**60)], 1, ([1, 1, -(2**60)], [2**61] * 3)),
    }
    found = worked_out(asked("mean:t"), parts)
    assert found.published[0] == round(Fraction(2**60 * 10, 3))
    assert found.high is None or found.high[1] <= UNBOUNDED


@pytest.fixture
def keyed() -> Policy:
    return Policy.model_validate(KEYED)


class TestKeyedPolicies:
    """Sums by record keys, through all five steps."""

    def _asked(self, **words: Any) -> TableQuery:
        return TableQuery.from_mapping({"dataset": "town", **words})

    def test_sums_means_and_counts_are_answered(
        self, engine: EmbeddedEngine, keyed: Policy
    ) -> None:
        query = self._asked(
            by=["sex", "job"], statistics=["count", "sum:income", "mean:income"], totals=True
        )
        decision = answered(query, engine, keyed)
        assert decision.verdict is Verdict.ANSWER
        found = decision.release
        assert found is not None
        count, total, mean = np.moveaxis(found.published, -1, 0)
        assert found.decimals == 1
        known = found.known[..., 2]
        assert known.any()
        expected = np.rint(total[known] / count[known] * 10)
        assert np.abs(mean[known] - expected).max() <= 1
        alone = answered(self._asked(by=["sex", "job"], measure="income"), engine, keyed)
        assert alone.release is not None
        assert alone.release.unit == "euro"
        assert (alone.release.published * 10).tolist() == total[:2, :4].tolist()

    def test_true_sums_lie_within_the_bounds(self, engine: EmbeddedEngine, keyed: Policy) -> None:
        query = self._asked(by=["age", "sex"], measure="income")
        decision = answered(query, engine, keyed)
        assert decision.release is not None
        true = engine.tabulate(query).values
        low, high = decision.release.low, decision.release.high
        assert low is not None
        assert high is not None
        assert (low <= true).all()
        assert (true <= high).all()
        assert (decision.release.published != true).mean() > 0.5

    @pytest.mark.parametrize("measure", ["age", "colour"])
    def test_a_measure_without_protected_sums_is_refused_with_the_ones_there_are(
        self, engine: EmbeddedEngine, keyed: Policy, measure: str
    ) -> None:
        decision = answered(self._asked(by=["sex"], measure=measure), engine, keyed)
        assert decision.verdict is Verdict.REFUSAL
        (reason,) = decision.reasons
        assert reason.text == f"There are no protected sums of '{measure}'."
        assert reason.way_forward == "Ask for one of: income."

    def test_a_policy_for_counts_offers_counts(self, engine: EmbeddedEngine) -> None:
        policy = Policy.model_validate({"protect": {"method": "cell-key"}})
        decision = answered(self._asked(by=["sex"], statistics=["mean:income"]), engine, policy)
        assert decision.reasons[0].way_forward == "Ask for counts."

    def test_the_same_people_show_one_sum_however_they_are_asked_for(
        self, engine: EmbeddedEngine, keyed: Policy
    ) -> None:
        """Padding, another order, totals, groups and filters draw nothing anew."""

        def income(**words: Any) -> Release:
            found = answered(self._asked(**words), engine, keyed).release
            assert found is not None
            return found

        plain = income(by=["sex", "job"], measure="income", totals=True)
        turned = income(by=["job", "sex"], measure="income", totals=True)
        assert np.array_equal(plain.published, turned.published.T)
        women = plain.published[1, :-1]
        filtered = income(by=["job"], where={"sex": ["2"]}, measure="income")
        assert np.array_equal(women, filtered.published)
        beside = income(by=["sex", "job"], statistics=["mean:income", "sum:income"])
        scale = 10 ** (beside.decimals - plain.decimals)
        assert np.array_equal(beside.published[..., 1], plain.published[:-1, :-1] * scale)
        chosen = income(
            by=[{"variable": "job", "codes": ["b", "c"]}], where={"sex": ["2"]}, measure="income"
        )
        assert chosen.published[0] == women[1]

    def test_areas_that_fail_the_rules_for_counts_leave_no_sum_either(
        self, engine: EmbeddedEngine
    ) -> None:
        policy = Policy.model_validate(
            {**KEYED, "rules": {"per_area": "area", "min_area_population": 200}}
        )
        decision = answered(
            self._asked(by=["area", "sex"], statistics=["count", "sum:income"]), engine, policy
        )
        assert decision.verdict is Verdict.PARTIAL
        assert decision.release is not None
        assert decision.release.axes[0].codes == ("n", "s")
        # Figures beside the answer say nothing about an area that is not in it.
        (figures,) = decision.sums
        shown = set(decision.release.published[..., 1].ravel().tolist())
        assert {int(one.published) for one in figures.attackers} <= shown
        assert sum(size.cells for size in figures.errors) == np.sum(
            decision.release.published[..., 1] > 0
        )


@pytest.mark.parametrize(
    "weak",
    [
        {"method": "cell-key-magnitude"},
        {**SUMS, "large": 0.05},
        {**SUMS, "scale": "mean"},
    ],
)
def test_a_policy_whose_sums_could_show_one_contributor_is_refused(weak: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="could show the largest contributor too closely"):
        Policy.model_validate({**KEYED, "sums": weak})


def test_a_sum_of_one_contributor_always_moves_by_p_percent(engine: EmbeddedEngine) -> None:
    query = TableQuery.from_mapping(
        {"dataset": "town", "by": ["age", "sex", "area", "job"], "measure": "income"}
    )
    policy = Policy.model_validate({**KEYED, "rules": {"max_dimensions": 4}})
    found = answered(query, engine, policy).release
    assert found is not None
    true = engine.tabulate(query).values
    alone = (engine.tabulate(query.part(Quantity())).values == 1) & (true > 100)
    assert alone.sum() >= 5
    moved = np.abs(found.published[alone] / true[alone] - 1)
    assert moved.min() >= 0.1 - 0.01  # up to the rounding of small sums


class _Sums:
    """Protected numbers that differ from the truth: a stand-in for numbers with several measures."""

    measures = ("t", "e")
    weights = ()
    mark = "stand-in"
    dataset = FIRMS

    def __init__(self, counts: list[int], sums: dict[str, list[int]]) -> None:
        self.counts, self.sums, self.asked = counts, sums, list[TableQuery]()

    def views(self, query: TableQuery) -> Views:
        self.asked.append(query)
        assert not query.statistics
        values = self.counts if query.measure is None else self.sums[query.measure]
        if any(axis.total for axis in query.by):
            values = [*values, sum(values)]
        made = release(values, 1 if query.measure == "t" else 0)
        return Views(made, None, made)

    def sum_noise(self, measure: str) -> KeyedNoise:
        return KeyedNoise(CellKeyMagnitude(), 0)


class TestNonInterference:
    POLICY = Policy.model_validate({"protect": {"method": "cell-key"}})

    def _answer(self, numbers: Any, *statistics: str) -> Decision:
        return answer(asked(*statistics), numbers, self.POLICY)

    def test_answers_follow_from_protected_numbers_alone(self) -> None:
        counts, sums = [30, 40, 50], {"t": [100, 200, 300], "e": [7, 8, 9]}
        first = self._answer(_Sums(counts, sums), "mean:t", "ratio:t:e", "share:t:total")
        second = self._answer(_Sums(counts, dict(sums)), "mean:t", "ratio:t:e", "share:t:total")
        assert first.release is not None
        assert second.release is not None
        assert np.array_equal(first.release.published, second.release.published)
        assert (first.risk_after, first.utility) == (second.risk_after, second.utility)
        assert [figures.measure for figures in first.sums] == ["t", "e"]
        assert first.sums == second.sums

    def test_only_protected_quantities_are_asked_for(self) -> None:
        numbers = _Sums([30, 40, 50], {"t": [100, 200, 300], "e": [7, 8, 9]})
        self._answer(numbers, "mean:t", "ratio:t:e", "count")
        assert [q.measure for q in numbers.asked] == [None, "t", "e"]

    def test_a_count_that_was_rounded_up_does_not_multiply_a_sum(self) -> None:
        """A business that is shown as 3 keeps its own turnover; only the mean is that of three."""
        numbers = _Sums([3, 3, 3], {"t": [1000, 1000, 1000], "e": [1, 1, 1]})
        decision = self._answer(numbers, "sum:t", "mean:t", "count")
        assert decision.release is not None
        total, mean, count = decision.release.published[0].tolist()
        assert total == 1000 * 10
        assert mean * count // 100 != total
        assert abs(mean * count // 100 - total) <= 3  # up to the rounding of the mean

    def test_one_quantity_is_asked_for_once(self) -> None:
        query = asked("mean:t", "sum:t", "share:t:total", "count")
        assert quantities(query) == (Quantity(), Quantity("t"))


def test_the_separate_process_gives_protected_sums_and_nothing_else(tmp_path: Any) -> None:
    """The records service in a separate process answers sums, and the pipe carries releases alone."""
    store = Store(tmp_path)
    ingest(FrameSource(people(800)), town(), store, secret=SECRET)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "town.toml").write_text(
        'dataset = "town"\nprotect = {method = "cell-key"}\nsums = {method = "cell-key-magnitude", '
        "p_percent = 10.0, extra = 1.0, large = 0.1}\n"
        "rules = {}\nrisk = {limit = 1.0}\nend = true\n"
    )
    service = TableService(tmp_path)
    try:
        query = TableQuery.from_mapping(
            {"dataset": "town", "by": ["sex"], "statistics": ["sum:income", "mean:income"]}
        )
        decision = service.answer(query)
        assert decision.release is not None
        numbers = service.snapshot("town").numbers
        assert numbers.measures == ("income",)
        views = numbers.views(query.part(Quantity("income")))
        assert set(vars(views)) == {"everybody", "selected", "shown"}
        assert not views.shown.provenance
        near = EngineNumbers(store.open("town"), service.policy("town"))
        true = store.open("town").tabulate(query.part(Quantity("income"))).values
        assert not np.array_equal(views.shown.published, true)
        assert near.measures == ("income",)
    finally:
        service.close()


@pytest.mark.parametrize("unit", ["", "euro"])
def test_a_measure_without_a_unit_cannot_be_summed(unit: str) -> None:
    """A number without a unit says nothing, so the policy that would publish it is refused in a sentence."""
    dataset = replace(FIRMS, measures=(replace(FIRMS.measures[0], unit=unit),))
    policy = Policy.model_validate(KEYED)
    if unit:
        check_names(policy, dataset, "policy")
        return
    with pytest.raises(PolicyError, match="the measure 't' would be published without a unit"):
        check_names(policy, dataset, "policy")
