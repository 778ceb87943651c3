"""Errors that are said are true: margins cover counts of every size, and no controlled error stays large."""

from __future__ import annotations

from itertools import combinations, product
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.demo import description_path, people
from lustrum.model.finest import FinestCells
from lustrum.policy import Policy
from lustrum.policy.explain import warnings
from lustrum.protect.population.agency import Coverage
from lustrum.protect.population.measure import MeasuredTable, report_of
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.public import MARGIN_ENDS, coarse_largest, margin_class
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.search.run import search
from lustrum.protect.population.search.stages import Stage
from lustrum.protect.population.support import Support
from lustrum.tabulate import FrameEngine, Secret, finest_cells, read_description
from protect.population.test_large_errors import FLAT, crowd, largest
from protect.population.worlds import KEY

NONE = np.zeros((5, 8), dtype=np.int64)
KEYS = [bytes([k]) * 32 for k in (1, 2, 3)]


def counted(cells: FinestCells, groups: dict[str, np.ndarray]) -> np.ndarray:
    """A table by groups of codes, counted cell by cell."""
    table = np.zeros([int(group.max()) + 1 for group in groups.values()], dtype=np.int64)
    columns = cells.columns()
    np.add.at(table, tuple(group[columns[name]] for name, group in groups.items()), cells.counts)
    return table


def covered(true: FinestCells, result: PopulationResult) -> dict[tuple[int, int], tuple[int, int]]:
    """For each number of variables and size of true counts: cells, and those within the margin, by hand."""
    levels = controlled_levels(true.dataset)
    found: dict[tuple[int, int], list[int]] = {}
    for variables in (1, 2, 3):
        for names in combinations(levels, variables):
            for chosen in product(*(levels[name] for name in names)):
                groups = {one.variable: one.group_of for one in chosen}
                before, after = counted(true, groups), counted(result.cells, groups)
                seen = (before > 0) | (after > 0)
                for n, shown in zip(before[seen].tolist(), after[seen].tolist(), strict=True):
                    size = sum(n >= end for end in MARGIN_ENDS)
                    counts = found.setdefault((variables, size), [0, 0])
                    counts[0] += 1
                    counts[1] += abs(shown - n) <= result.public.margin(variables, shown=shown)
    return {kind: (cells, within) for kind, (cells, within) in found.items()}


@pytest.fixture(scope="module")
def census() -> FinestCells:
    """A small census by its coarse variables, with all their levels."""
    dataset = read_description(description_path("demo"))
    kept = ("region", "sex", "age", "employment", "education", "citizenship")
    small = {
        **dataset.source,
        "variables": [v for v in dataset.source["variables"] if v["name"] in kept],
    }
    small.pop("structural_zeros", None)
    small.pop("maps", None)
    small["dataset"] = {**small["dataset"], "identifiers": []}
    made = type(dataset).from_mapping(small)
    return finest_cells(FrameEngine(people(30_000, 3), made, Secret(b"tests" * 8)))


@pytest.mark.parametrize("key", KEYS, ids=("first", "second", "third"))
def test_at_least_95_of_100_counts_of_every_size_are_within_the_margin(
    census: FinestCells, key: bytes
) -> None:
    result = ProtectedPopulation(sweeps=1, extra_tables=50).protect(census, key)
    groups = covered(census, result)
    assert {size for _, size in groups} == set(range(5)), "the largest counts too"
    for kind, (cells, within) in groups.items():
        assert within >= 0.95 * cells or cells < 40, (kind, cells, within)
    # The agency's report has measured the same; it counts the total with tables by one variable.
    said = {
        (one.variables, sum(one.least >= e for e in MARGIN_ENDS)): one
        for one in result.agency.coverage
    }
    for (variables, size), (cells, within) in groups.items():
        one = said[variables, size]
        total = variables == 1 and size == 4
        assert one.cells - total == cells
        assert one.within - within in ((0, 1) if total else (0,))
        assert not one.is_short
    assert result.agency.to_mapping()["coverage"][0]["share"] >= 0.95


def measured(groups: dict[tuple[int, int], list[int]]) -> dict[int, list[MeasuredTable]]:
    """Tables whose cells of a number of variables and a size err by so much."""
    kinds: dict[int, list[MeasuredTable]] = {variables: [] for variables, _ in groups}
    for (variables, size), errors in groups.items():
        rows = np.array([[size, error, 1] for error in errors], dtype=np.int64).reshape(-1, 3)
        kinds[variables].append(MeasuredTable(float(len(errors)), len(errors), NONE, rows))
    return kinds


ERRORS = st.integers(0, 600).flatmap(
    lambda n: st.integers(0, 2**32).map(
        lambda seed: (
            np.abs(np.random.default_rng(seed).normal(0, 1 + seed % 40, n)).astype(int).tolist()
        )
    )
)


@settings(max_examples=examples(30, 300), deadline=None)
@given(
    st.dictionaries(st.tuples(st.integers(1, 5), st.integers(0, 4)), ERRORS, min_size=1),
    st.binary(min_size=16, max_size=16),
)
def test_margins_cover_every_group_and_name_no_single_error(
    groups: dict[tuple[int, int], list[int]], secret: bytes
) -> None:
    kinds = measured(groups)
    words = {"max_variables": 3}
    report = report_of(words, Support(3), 0.5, kinds, kinds, secret)
    for margins, step in ((report.margins, 2), (report.group_margins, 3)):
        for (variables, size), errors in groups.items():
            within = sum(error <= margins[variables][size] for error in errors)
            assert within >= 0.95 * len(errors) or len(errors) < 40
        rows = np.array([margins[v] for v in sorted(margins)])
        assert (np.diff(rows, axis=0) >= 0).all()
        assert (np.diff(rows, axis=1) >= 0).all()
        assert ((rows % step == 0) | (rows == 1)).all()
    # The largest error of every group can be any other large one.
    larger = {kind: sorted(errors)[:-1] + [10**6] * bool(errors) for kind, errors in groups.items()}
    again = report_of(words, Support(3), 0.5, measured(larger), measured(larger), secret)
    for kind, errors in groups.items():
        if len(errors) >= 40 and all(len(other) >= 40 for other in groups.values()):
            assert again.margins[kind[0]][kind[1]] < 10**6


def test_a_group_of_few_cells_does_not_decide_a_margin_by_itself() -> None:
    """Its largest error would be told; joined with the next kind it is one of many."""
    kinds = measured({(1, 2): [500] * 10, (2, 2): [3] * 500})
    report = report_of({"max_variables": 3}, Support(3), 0.5, kinds, kinds, b"s" * 16)
    assert report.margins[1] == report.margins[2]
    assert 3 <= report.margins[1][2] < 10
    # Sizes without cells have the margin of the next larger ones that have some, or of all smaller ones.
    assert len(set(report.margins[1])) == 1


def test_where_all_cells_are_few_the_margin_is_twice_the_typical_error() -> None:
    kinds = measured({(1, 0): [4] * 5, (2, 1): [4] * 9})
    report = report_of({"max_variables": 3}, Support(3), 0.5, kinds, kinds, b"s" * 16)
    for margins, errors in (
        (report.margins, report.errors),
        (report.group_margins, report.group_errors),
    ):
        assert 2 * errors[2] <= margins[1][0] == margins[2][4] <= 2 * errors[2] + 2


def test_the_key_draws_where_the_steps_of_a_margin_begin() -> None:
    kinds = measured({(1, 0): [7] * 500})
    stated = {
        report_of({"max_variables": 3}, Support(3), 0.5, kinds, kinds, bytes([k]) * 16).margins[1][
            0
        ]
        for k in range(40)
    }
    assert stated == {8, 10}, "7 is never told from 8"


@given(st.integers(0, 10**7), st.integers(1, 300), st.binary(min_size=1, max_size=8))
def test_the_largest_error_is_stated_as_a_class_where_it_is_beyond_the_goal(
    error: int, goal: int, key: bytes
) -> None:
    stated = coarse_largest(error, goal, key)
    assert (stated is None) == (error <= goal)
    if stated is not None:
        assert error <= stated <= 4 * error
        assert log2(stated / goal) % 1 == 0


@given(st.integers(0, 10**9))
def test_sizes_begin_at_powers_of_ten(number: int) -> None:
    assert int(margin_class(number)) == min(len(str(number)) - 1, 4)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_last_stage_takes_away_what_a_hot_search_leaves(seed: int) -> None:
    """The stages are private: the claim is what the last of them adds, whatever comes before it."""
    cells = crowd(seed, (40, 9, 4, 3, 2), 0.8)
    last = ProtectedPopulation(sweeps=1, extra_tables=20)._stages(cells)[-1]
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=0.1).problem
    hot = Stage(last.plan, 1, 3.0, 3.0, FLAT)
    assert largest(last.plan, search(problem, [hot], seed, workers=1).errors) > 40
    assert largest(last.plan, search(problem, [hot, last], seed, workers=1).errors) <= 30


@pytest.mark.parametrize("mean", [0.5, 3.0, 5.0])
def test_no_controlled_error_is_beyond_ten_bases(mean: float) -> None:
    """In a dense file there are fewer empty cells than should show somebody; totals are right all the same."""
    for key in KEYS:
        method = ProtectedPopulation(sweeps=1, extra_tables=20)
        result = method.protect(crowd(1, (40, 9, 4, 3, 2), mean), key)
        assert result.agency.over()["largest"] <= 30
        assert result.public.largest is None


def test_large_errors_that_are_left_are_said(
    census: FinestCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lustrum.protect.population.schedule._END", 1)
    monkeypatch.setattr("lustrum.protect.population.schedule._END_WALK", 0)
    monkeypatch.setattr("lustrum.protect.population.schedule.LARGEST", 1)
    monkeypatch.setattr("lustrum.protect.population.measure.LARGEST", 1)
    result = ProtectedPopulation(sweeps=1, extra_tables=0).protect(census, KEY)
    error = result.agency.over()["largest"]
    assert error > 3
    assert result.public.largest >= error


def test_a_group_that_falls_short_is_said_to_the_agency() -> None:
    assert Coverage(2, 10, 100, 100, 94).is_short
    assert not Coverage(2, 10, 100, 100, 95).is_short
    assert not Coverage(2, 10, 100, 39, 0).is_short


@pytest.mark.parametrize(("sweeps", "extra", "said"), [(1, 0, 1), (1, 1, 0), (2, 0, 0)])
def test_one_sweep_without_extra_tables_is_warned_about(sweeps: int, extra: int, said: int) -> None:
    method = {"method": "protected-population", "sweeps": sweeps, "extra_tables": extra}
    policy = Policy.model_validate({"before": [method], "protect": {"method": "none"}})
    found = list(warnings(policy))
    assert len(found) == said
    assert all("raise 'sweeps' or 'extra_tables'" in sentence for sentence in found)
