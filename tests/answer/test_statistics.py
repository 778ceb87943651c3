"""Statistics are worked out from protected numbers alone, exactly, with bounds that hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from answer.conftest import SECRET, answered, people, town
from lustrum.answer import TableService, answer
from lustrum.answer.statistics import quantities
from lustrum.model import (
    Dataset,
    Decision,
    PolicyError,
    Quantity,
    Release,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.model.variable import TOTAL_CODE
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
        numbers=np.array(values),
        status=np.array(status or ["F"] * len(values)),
        method={"method": "x"},
        least=None if bounds is None else np.array(bounds[0]),
        most=None if bounds is None else np.array(bounds[1]),
        decimals=decimals,
    )


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
        count, total, mean = np.moveaxis(found.published, -1, 0)
        assert found.decimals == 1
        known = found.known[..., 2]
        assert known.any()
        expected = np.rint(total[known] / count[known] * 10)
        assert np.abs(mean[known] - expected).max() <= 1
        alone = answered(self._asked(by=["sex", "job"], measure="income"), engine, keyed)
        assert alone.release.unit == "euro"
        assert (alone.release.published * 10).tolist() == total[:2, :4].tolist()

    def test_true_sums_lie_within_the_bounds(self, engine: EmbeddedEngine, keyed: Policy) -> None:
        query = self._asked(by=["age", "sex"], measure="income")
        decision = answered(query, engine, keyed)
        true = engine.tabulate(query).values
        low, high = decision.release.least, decision.release.most
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
        assert decision.release.axes[0].codes == ("n", "s")
        # Figures beside the answer say nothing about an area that is not in it.
        (figures,) = decision.sums
        shown = set(decision.release.published[..., 1].ravel().tolist())
        assert {int(one.published) for one in figures.attackers} <= shown
        assert sum(size.cells for size in figures.errors) == np.sum(
            decision.release.published[..., 1] > 0
        )


@pytest.mark.parametrize(
    "weak", [{"method": "cell-key-magnitude"}, {**SUMS, "large": 0.05}, {**SUMS, "scale": "mean"}]
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
