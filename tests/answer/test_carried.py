"""What an answer carries beside its numbers: standard errors of weighted quotients, and figures of sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lustrum.answer.figures import sum_figures
from lustrum.answer.pipeline import answer
from lustrum.model import Dataset, Decision, Release, TableQuery
from lustrum.model.status import CellStatus
from lustrum.numeric.structure import UNBOUNDED, TableLayout
from lustrum.policy import Policy
from lustrum.protect.magnitudes.factors import needed_factors
from lustrum.protect.magnitudes.report import PublicFactors
from lustrum.public.noise import FactorNoise
from lustrum.public.numbers import Graded, Views
from lustrum.survey import Estimates
from small import described

DATASET = described(
    "d",
    {"a": {"codes": "123", "label": "A"}, "b": {"codes": "xy", "label": "B"}},
    measures=[
        {"name": "m", "label": "M", "unit": "euro"},
        {"name": "n", "label": "N", "unit": "euro"},
    ],
    weights=[{"name": "w", "label": "W"}],
)
FACTORS = PublicFactors(
    {"method": "protected-magnitudes", "p": 5.0},
    needed_factors(Fraction(1, 20), "known"),
    {"m": {1: 1.0, 2: 2.5}, "n": {1: 3.0}},
)
SCALES = {None: 10, "m": 3_000, "n": 500}


@dataclass
class Numbers:
    """Protected numbers of a survey: people, weighted people and sums, each with what is known of it."""

    errors: list[float] = field(default_factory=list)
    noisy: tuple[str, ...] = ()
    without: bool = False
    quotients_of: list[tuple[TableQuery, TableQuery, str | None]] = field(default_factory=list)
    noises_of: list[str] = field(default_factory=list)
    dataset: Dataset = DATASET
    mark: str = "m"
    measures: tuple[str, ...] = ("m", "n")
    weights: tuple[str, ...] = ("w",)
    weighted_measures: tuple[str, ...] = ("m", "n")

    def views(self, asked: TableQuery) -> Views:
        release = self.release(asked)
        return Views(release, None, release)

    def release(self, asked: TableQuery) -> Release:
        """Cell after cell as many as its categories have members, times a scale."""
        axes = TableLayout.of_query(asked, self.dataset).axes
        values = np.array(SCALES[asked.measure] * (7 if asked.weight else 1))
        for axis in axes:
            own = np.array([sum(m + 1 for m in c.members) for c in axis.categories])
            values = values[..., None] * own
        return Release(
            axes,
            values,
            np.full(values.shape, CellStatus.FREE.value),
            {"method": "made-up"},
            least=values - values // 10,
            most=values + values // 10,
            errors=np.arange(values.size).reshape(values.shape) if asked.weight else None,
            grades=np.full(values.shape, "own") if asked.weight else None,
        )

    def quotients(self, over: TableQuery, under: TableQuery, within: str | None) -> Graded | None:
        if self.without:
            return None
        self.quotients_of.append((over, under, within))
        errors = np.array(self.errors)
        estimates = Estimates(np.ones(errors.size), errors**2, np.full(errors.size, 50))
        return Graded(estimates, np.array([f"grade {i}" for i in range(errors.size)]))

    def sum_noise(self, measure: str) -> FactorNoise | None:
        self.noises_of.append(measure)
        return FactorNoise(FACTORS, measure) if measure in self.noisy else None


def asked(numbers: Numbers, *statistics: Any, rules: Any = None, **words: Any) -> Decision:
    query = TableQuery.from_mapping(
        {"dataset": "d", "by": ["a"], "statistics": list(statistics), **words}
    )
    policy = Policy.model_validate({"dataset": "d", "risk": {"limit": 1.0}, "rules": rules or {}})
    decision = answer(query, numbers, policy)
    assert decision.release is not None, decision.reasons
    return decision


def carried(numbers: Numbers, *statistics: Any, **words: Any) -> tuple[list[Any], list[Any]]:
    release = asked(numbers, *statistics, weight="w", **words).release
    return release.errors.tolist(), release.grades.tolist()


def test_the_error_of_a_weighted_mean_is_rounded_up_to_its_decimals() -> None:
    numbers = Numbers(errors=[0.12, 3.0, 0.0])
    errors, grades = carried(numbers, "mean:m")
    # A mean of whole euros has one decimal.
    assert errors == [2, 30, 0]
    assert grades == ["grade 0", "grade 1", "grade 2"]
    ((over, under, within),) = numbers.quotients_of
    assert (over.measure, over.weight) == ("m", "w")
    assert (under.measure, under.weight) == (None, "w")
    assert within is None


def test_the_error_of_a_weighted_ratio_is_that_of_its_two_sums() -> None:
    numbers = Numbers(errors=[0.5, 0.25, 0.0009])
    # Euros over euros are shown in tenths of a percent.
    assert carried(numbers, "ratio:m:n")[0] == [500, 250, 1]
    ((over, under, within),) = numbers.quotients_of
    assert (over.measure, under.measure, within) == ("m", "n", None)


@pytest.mark.parametrize("of", ["total", "b"])
def test_the_error_of_a_weighted_share_is_in_percent_of_the_totals(of: str) -> None:
    """Of six cells and their totals, which the question does not show."""
    within_b = of == "b"
    errors = np.arange(8 if within_b else 12) / 1_000
    numbers = Numbers(errors=errors.tolist())
    found, grades = carried(numbers, f"share:count:{of}", by=["a", "b"])
    shape = (4, 2) if within_b else (4, 3)
    inner = np.arange(errors.size).reshape(shape)[:3, :2]
    # One decimal of a percent is a thousandth.
    assert found == inner.tolist()
    assert grades == [[f"grade {i}" for i in row] for row in inner.tolist()]
    ((over, under, within),) = numbers.quotients_of
    assert over == under
    assert (over.measure, over.weight, within) == (None, "w", of)
    assert [axis.total for axis in over.by] == [True, not within_b]


def test_what_cannot_be_estimated_has_no_error_and_what_is_endless_the_largest() -> None:
    errors, _ = carried(Numbers(errors=[np.nan, np.inf, 1e30]), "ratio:m:n")
    assert errors == [-1, UNBOUNDED, UNBOUNDED]


def test_only_weighted_numbers_that_are_worked_out_ask_for_errors() -> None:
    plain = Numbers(errors=[1.0, 1.0, 1.0])
    release = asked(plain, "mean:m").release
    assert release.errors is None
    assert carried(plain, "sum:m") == ([0, 1, 2], ["own"] * 3)
    assert plain.quotients_of == []
    beside, grades = carried(plain, "sum:m", "mean:m")
    assert beside == [[0, 10], [10, 10], [20, 10]]
    assert grades == [["own", f"grade {i}"] for i in range(3)]
    assert len(plain.quotients_of) == 1
    # Beside a number with three decimals a mean has three, and what cannot be estimated has none still.
    finer = {"statistic": "mean", "measure": "n", "decimals": 3}
    two, _ = carried(Numbers(errors=[np.nan, 1.0, 2.0]), "mean:m", finer)
    assert two == [[-1, -1], [1000, 1000], [2000, 2000]]
    unable = asked(Numbers(without=True), "mean:m", weight="w").release
    assert unable.errors is None


def test_areas_that_are_left_out_are_left_out_of_the_errors() -> None:
    """The first area has ten people, the others twenty and thirty."""
    errors, grades = carried(
        Numbers(errors=[1.0, 2.0, 3.0]),
        "mean:m",
        rules={"per_area": "a", "min_area_population": 20},
    )
    assert (errors, grades) == ([20, 30], ["grade 1", "grade 2"])


def figures(numbers: Numbers, variables: int, **words: Any) -> Any:
    """Figures of the sums of a table, worked out from the same releases."""
    query = {"dataset": "d", "by": ["a"], **words}
    sums, counts = (
        numbers.release(TableQuery.from_mapping({**query, **measure}))
        for measure in ({"measure": "m"}, {})
    )
    return sum_figures(DATASET.measure("m"), sums, counts, FactorNoise(FACTORS, "m"), variables)


def test_every_sum_behind_an_answer_has_its_figures_once() -> None:
    numbers = Numbers(noisy=("m",))
    own = figures(numbers, 1)
    assert len(own.attackers) == 3
    for statistics in (["sum:m"], ["mean:m"], ["sum:m", "mean:m", "count"], ["ratio:n:m"]):
        numbers.noises_of.clear()
        assert asked(numbers, *statistics).sums == (own,)
        assert sorted(numbers.noises_of) == sorted({"n", "m"} if "ratio:n:m" in statistics else "m")
    assert asked(numbers, "sum:n").sums == ()
    assert asked(numbers, "count").sums == ()
    both = asked(Numbers(noisy=("m", "n")), "sum:n", "sum:m").sums
    assert [found.measure for found in both] == ["n", "m"]


def test_figures_are_those_of_the_variables_that_a_question_names() -> None:
    numbers = Numbers(noisy=("m",))
    two = figures(numbers, 2)
    assert two != figures(numbers, 1)
    assert asked(numbers, "sum:m", where={"b": ["x"]}).sums == (two,)
    once: Any = {"where": {"a": ["1"]}}
    assert asked(numbers, "sum:m", **once).sums == (figures(numbers, 1, **once),)
    crossed = asked(numbers, "sum:m", by=["a", "b"]).sums
    assert crossed == (figures(numbers, 2, by=["a", "b"]),)


def test_weighted_sums_have_errors_and_no_figures_of_noise() -> None:
    numbers = Numbers(noisy=("m",))
    assert asked(numbers, "sum:m", weight="w").sums == ()
    assert numbers.noises_of == []
