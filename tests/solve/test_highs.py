"""HiGHS kept warm answers as the cold one does, and bounds hold whatever a solver does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from examples import examples
from lustrum.numeric.solve import Highs, LinearProblem, Outcome, lower_bound
from solve.scipy_highs import ScipyHighs


def problem(rows, row_low, row_high, low, high) -> LinearProblem:
    matrix = sparse.csr_array(np.array(rows, dtype=float).reshape(len(row_low), len(low)))
    return LinearProblem(matrix, row_low, row_high, low, high)


def costs(count: int):
    return [s * np.eye(count)[i] for i in range(count) for s in (1.0, -1.0)]


small = st.integers(-3, 3)


@settings(deadline=None, max_examples=examples(20, 160))
@given(
    st.lists(st.lists(small, min_size=4, max_size=4), min_size=1, max_size=3),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.integers(0, 2),
)
def test_each_question_after_another_is_answered_as_if_it_were_the_first(rows, inside, width):
    sums = np.array(rows) @ np.array(inside)
    of = problem(rows, sums, sums + width, [0] * 4, [3] * 4)
    fits = [
        p
        for p in map(np.array, itertools.product(range(4), repeat=4))
        if np.all((of.row_low <= of.matrix @ p) & (of.matrix @ p <= of.row_high))
    ]
    hot, cold = Highs().load(of), ScipyHighs().load(of)
    for cost in [*costs(4), np.array([1.0, -2.0, 0.0, 3.0])]:
        warm, plain = hot.minimise(cost), cold.minimise(cost)
        least = min(float(cost @ p) for p in fits)
        assert warm.outcome is plain.outcome is Outcome.OPTIMAL
        assert warm.bound == pytest.approx(plain.bound, abs=1e-6)
        assert warm.bound <= least
        assert warm.multipliers is not None
        assert lower_bound(of, cost, warm.multipliers) == warm.bound
        assert hot.again().minimise(cost).bound == pytest.approx(plain.bound, abs=1e-6)
        whole = hot.minimise(cost, whole=True)
        assert whole.bound == pytest.approx(least, abs=1e-5)
        assert whole.point @ cost == pytest.approx(least, abs=1e-5)


@pytest.mark.parametrize("whole", [False, True])
def test_what_cannot_be_is_infeasible_and_the_multipliers_prove_it(whole):
    torn = problem([[1, 1, 0], [0, 1, 1]], [5, 1], [5, 2], [0, 0, 0], [2, 2, 2])
    found = Highs().load(torn).minimise(np.zeros(3), whole=whole)
    assert found.outcome is Outcome.INFEASIBLE
    assert found.bound == np.inf
    if not whole:
        assert found.multipliers is not None
        assert lower_bound(torn, np.zeros(3), found.multipliers) > 0
    crossed = problem([[1]], [0], [9], [4], [3])
    empty = problem([[0]], [1], [2], [0], [9])
    assert Highs().load(empty).minimise(np.ones(1), whole=whole).outcome is Outcome.INFEASIBLE
    assert Highs().load(crossed).minimise(np.ones(1), whole=whole).outcome is Outcome.INFEASIBLE


def test_a_value_without_end_proves_nothing_and_spoils_nothing():
    free = problem([[1, -1]], [0], [0], [0, 0], [np.inf, np.inf])
    loaded = Highs().load(free)
    assert loaded.minimise(np.array([-1.0, 0.0])).outcome is Outcome.UNBOUNDED
    assert loaded.minimise(np.array([1.0, 0.0])).bound == pytest.approx(0.0, abs=2e-6)


def test_a_problem_without_rows_has_its_bounds_only():
    loaded = Highs().load(problem([], [], [], [2, 1], [3, 4]))
    assert loaded.minimise(np.array([1.0, -1.0])).bound == pytest.approx(-2.0)


def test_trillions_are_scaled_and_come_back_to_the_unit():
    great = 10**12
    of = problem([[1, 1], [1, -1]], [great + 1, 3], [great + 1, great], [0, 0], [np.inf, np.inf])
    found = Highs().load(of).minimise(np.array([0.0, -1.0]))
    assert -found.bound == pytest.approx((great - 2) / 2, abs=1e-3)
    assert found.point[1] == pytest.approx((great - 2) / 2, abs=1e-3)


def test_a_search_ends_at_its_target():
    of = problem([[2, 2, 2, 1]], [9], [9], [0] * 4, [9] * 4)
    loaded = Highs().load(of)
    least = loaded.minimise(np.array([0.0, 0.0, 0.0, 1.0]), whole=True)
    assert least.bound == pytest.approx(1.0, abs=1e-5)
    early = loaded.minimise(np.array([0.0, 0.0, 0.0, 1.0]), whole=True, target=9.0)
    assert early.point[3] <= 9
    assert early.bound <= 1 + 1e-5


def test_when_steps_are_used_up_a_bound_is_still_true():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (60, 300))
    inside = rng.integers(0, 50, 300)
    sums = rows @ inside
    of = problem(rows, sums, sums, [0] * 300, [50] * 300)
    cost = rng.integers(-5, 6, 300).astype(float)
    loaded = Highs().load(of)
    cut, full = loaded.minimise(cost, steps=0), loaded.minimise(cost)
    assert full.outcome is Outcome.OPTIMAL
    assert cut.bound <= full.bound + 1e-6
    assert loaded.minimise(cost, whole=True, steps=5).bound <= float(cost @ inside)


def test_a_program_that_the_solver_does_not_take_is_an_error_and_never_an_empty_answer() -> None:
    from lustrum.numeric.solve.highs import Program

    ends = np.zeros(1), np.ones(1)
    with pytest.raises(RuntimeError, match="did not take the program"):
        Program(sparse.csr_array([[1e30]]), ends, ends)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("low", [0.0], "must be"), ("high", [np.nan, 1.0], "NaN"), ("row_low", [], "must be")],
)
def test_a_misshapen_problem_is_refused(name, value, says):
    ends = {"row_low": [0.0], "row_high": [1.0], "low": [0.0, 0.0], "high": [1.0, 1.0]}
    with pytest.raises(ValueError, match=says):
        LinearProblem(sparse.csr_array([[1.0, 1.0]]), **{**ends, name: value})


@settings(deadline=None, max_examples=examples(40, 320))
@given(
    st.lists(st.lists(small, min_size=3, max_size=3), min_size=1, max_size=3),
    st.lists(small, min_size=3, max_size=3),
    st.lists(st.floats(-4, 4), min_size=3, max_size=3),
    st.integers(0, 3),
)
def test_no_multipliers_prove_more_than_is_true(rows, cost, y, width):
    box = [range(4)] * 3
    sums = np.array(rows) @ np.array([1, 2, 0])
    of = problem(rows, sums, sums + width, [0] * 3, [3] * 3)
    points = [np.array(p) for p in itertools.product(*box)]
    fits = [
        p for p in points if np.all((of.row_low <= of.matrix @ p) & (of.matrix @ p <= of.row_high))
    ]
    least = min(float(np.dot(cost, p)) for p in fits)
    multipliers = np.array(y)[: len(rows)]
    assert lower_bound(of, np.array(cost, dtype=float), multipliers) <= least
    found = ScipyHighs().load(of).minimise(np.array(cost, dtype=float))
    assert found.outcome is Outcome.OPTIMAL
    assert found.bound <= least
    assert found.bound == pytest.approx(float(np.dot(cost, found.point)), abs=1e-6)


def test_multipliers_on_an_open_row_are_left_out():
    half_open = problem([[1.0]], [-np.inf], [5.0], [0.0], [9.0])
    assert lower_bound(half_open, np.array([1.0]), np.array([1.0])) == 0.0
    nothing = problem([[1.0]], [0.0], [np.inf], [-np.inf], [np.inf])
    assert lower_bound(nothing, np.array([1.0]), np.array([0.5])) == -np.inf


def test_thirds_keep_their_rounding_error_on_the_safe_side():
    thirds = problem([[3, 3, 3]], [1], [1], [0, 0, 0], [1e6, 1e6, 1e6])
    proven = lower_bound(thirds, np.ones(3), np.array([1 / 3]))
    assert proven <= 1 / 3
    assert proven == pytest.approx(1 / 3, abs=1e-6)
