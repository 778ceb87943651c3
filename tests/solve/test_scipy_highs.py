"""The linear solver, and the bounds that hold whatever it does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from examples import examples
from lustrum.numeric.solve import LinearProblem, Outcome, lower_bound
from solve.scipy_highs import ScipyHighs


def problem(rows, row_low, row_high, low, high) -> LinearProblem:
    matrix = sparse.csr_array(np.array(rows, dtype=float).reshape(len(row_low), len(low)))
    return LinearProblem(matrix, row_low, row_high, low, high)


def minimum(of: LinearProblem, cost, **options):
    return ScipyHighs().load(of).minimise(np.array(cost, dtype=float), **options)


def test_an_equation_and_two_inequalities_meet_at_the_minimum():
    found = minimum(
        problem([[1, 1, 0], [0, 1, 1]], [5, 2], [5, 4], [0, 0, 0], [9, 9, 9]), [1, 0, 2]
    )
    assert found.outcome is Outcome.OPTIMAL
    assert found.bound == pytest.approx(1.0)
    assert found.point == pytest.approx([1, 4, 0])


def test_the_least_whole_value_may_lie_above_the_least_value():
    half = problem([[2, 2]], [3], [3.5], [0, 0], [9, 9])
    assert minimum(half, [1, 1]).bound == pytest.approx(1.5)
    assert minimum(half, [1, 1], whole=True).outcome is Outcome.INFEASIBLE
    odd = problem([[2, 0], [0, 1]], [3, 0], [9, 1], [0, 0], [9, 9])
    assert minimum(odd, [1, 0]).bound == pytest.approx(1.5)
    assert minimum(odd, [1, 0], whole=True).bound == pytest.approx(2.0, abs=1e-5)


@pytest.mark.parametrize("whole", [False, True])
def test_what_cannot_be_is_said_to_be_infeasible(whole):
    torn = problem([[1, 1]], [5], [5], [0, 0], [2, 2])
    crossed = problem([[1]], [0], [9], [4], [3])
    for impossible in (torn, crossed):
        cost = np.ones(impossible.low.size)
        found = minimum(impossible, cost, whole=whole)
        assert found.outcome is Outcome.INFEASIBLE
        assert found.bound == np.inf


def test_a_value_without_end_proves_nothing():
    free = problem([[1, -1]], [0], [0], [0, 0], [np.inf, np.inf])
    found = minimum(free, [-1, 0])
    assert found.outcome is Outcome.UNBOUNDED
    assert found.bound == -np.inf


def test_a_problem_without_rows_has_its_bounds_only():
    assert minimum(problem([], [], [], [2, 1], [3, 4]), [1, -1]).bound == pytest.approx(-2.0)
    assert minimum(problem([], [], [], [2], [3]), [1], whole=True).bound == pytest.approx(
        2.0, abs=1e-5
    )


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("low", [0.0], "must be"), ("high", [np.nan, 1.0], "NaN"), ("row_low", [], "must be")],
)
def test_a_misshapen_problem_is_refused(name, value, says):
    ends = {"row_low": [0.0], "row_high": [1.0], "low": [0.0, 0.0], "high": [1.0, 1.0]}
    with pytest.raises(ValueError, match=says):
        LinearProblem(sparse.csr_array([[1.0, 1.0]]), **{**ends, name: value})


small = st.integers(-3, 3)


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
    found = minimum(of, cost)
    assert found.outcome is Outcome.OPTIMAL
    assert found.bound <= least
    assert found.bound == pytest.approx(float(np.dot(cost, found.point)), abs=1e-6)
    assert minimum(of, cost, whole=True).bound == pytest.approx(least, abs=1e-5)


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
