"""The core of a problem has the same solutions, and bounds proven for it hold for the problem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from examples import examples
from lustrum.numeric.solve import Highs, LinearProblem, Outcome, Substituted, core_of


@st.composite
def problems(draw: st.DrawFn) -> tuple[LinearProblem, np.ndarray]:
    """Equations and ranges of whole numbers that some whole point satisfies, and the point."""
    width = draw(st.integers(2, 7))
    point = np.array(draw(st.lists(st.integers(0, 6), min_size=width, max_size=width)))
    rows, ends = [], []
    for _ in range(draw(st.integers(1, 5))):
        weights = draw(
            st.lists(st.sampled_from([-2, -1, 0, 0, 1, 1, 1]), min_size=width, max_size=width)
        )
        total = int(np.dot(weights, point))
        slack = draw(st.sampled_from([0, 0, 0, 2]))
        rows.append(weights)
        ends.append((total - slack, total + slack))
    below = np.array(draw(st.lists(st.integers(0, 4), min_size=width, max_size=width)))
    above = np.array(draw(st.lists(st.integers(0, 4), min_size=width, max_size=width)))
    low, high = np.array(ends, dtype=np.float64).T
    matrix = sparse.csr_array(np.array(rows, dtype=np.float64))
    return LinearProblem(matrix, low, high, point - below, point + above), point


def plain(problem: LinearProblem, cost: np.ndarray) -> float:
    """The least cost by a solver that knows nothing of cores."""
    matrix = problem.matrix.toarray()
    found = linprog(
        cost,
        A_ub=np.vstack([matrix, -matrix]),
        b_ub=np.concatenate([problem.row_high, -problem.row_low]),
        bounds=list(zip(problem.low, problem.high, strict=True)),
    )
    assert found.status == 0
    return float(found.fun)


@settings(max_examples=examples(15, 120))
@given(problems())
def test_every_bound_by_the_core_is_that_of_a_plain_program(
    made: tuple[LinearProblem, np.ndarray],
) -> None:
    problem, _ = made
    loaded = Substituted().load(problem)
    for column in range(problem.low.size):
        for sign in (1.0, -1.0):
            cost = np.zeros(problem.low.size)
            cost[column] = sign
            least = plain(problem, cost)
            found = loaded.minimise(cost)
            assert found.outcome is Outcome.OPTIMAL
            assert found.bound <= least + 1e-9
            assert found.bound == pytest.approx(least, abs=1e-6)
            sums = problem.matrix @ found.point
            assert (problem.row_low - 1e-6 <= sums).all()
            assert (sums <= problem.row_high + 1e-6).all()
            assert (problem.low - 1e-6 <= found.point).all()
            assert (found.point <= problem.high + 1e-6).all()
            assert cost @ found.point == pytest.approx(least, abs=1e-6)


@settings(max_examples=examples(15, 120))
@given(problems())
def test_a_point_of_the_problem_is_a_point_of_the_core(
    made: tuple[LinearProblem, np.ndarray],
) -> None:
    problem, point = made
    core = core_of(problem)
    assume(core is not None)
    u, *_ = np.linalg.lstsq(core.map.toarray(), point - core.offset, rcond=None)
    assert core.offset + core.map @ u == pytest.approx(point, abs=1e-9)
    sums = core.problem.matrix @ u
    assert (core.problem.row_low - 1e-6 <= sums).all()
    assert (sums <= core.problem.row_high + 1e-6).all()
    assert (core.problem.low - 1e-6 <= u).all()
    assert (u <= core.problem.high + 1e-6).all()
    assert core.problem.low.size < problem.low.size


def test_a_total_and_its_parts_leave_no_equation() -> None:
    """The total follows from its parts; the second total passes its bounds to the first."""
    rows = sparse.csr_array([[-1.0, 0, 1, 1], [1.0, 1, 0, 0]])
    problem = LinearProblem(rows, [0, 10], [0, 10], [0, 0, 0, 0], [9, 10, 4, 5])
    core = core_of(problem)
    assert core.problem.low.size == 2
    found = [Substituted().load(problem).minimise(np.eye(4)[c]).bound for c in range(4)]
    assert found == pytest.approx([0, 1, 0, 0])


def test_bounds_that_do_not_follow_keep_their_column() -> None:
    rows = sparse.csr_array([[1.0, 1, 1]])
    assert core_of(LinearProblem(rows, [6], [6], [-9, 2, 2], [9, 5, 5])) is not None
    assert core_of(LinearProblem(rows, [6], [6], [0, 0, 0], [3, 3, 3])) is None


def test_fractions_have_no_core_and_are_solved_all_the_same() -> None:
    rows = sparse.csr_array([[0.5, 1.0]])
    problem = LinearProblem(rows, [1.5], [1.5], [0, 0], [9, 9])
    assert core_of(problem) is None
    assert Substituted().load(problem).minimise(np.array([-1.0, 0.0])).bound == pytest.approx(-3)


def test_an_equation_that_cannot_hold_is_infeasible() -> None:
    rows = sparse.csr_array([[1.0, 1.0], [1.0, 1.0]])
    problem = LinearProblem(rows, [3, 4], [3, 4], [0, 0], [9, 9])
    assert Substituted().load(problem).minimise(np.zeros(2)).outcome is Outcome.INFEASIBLE


def test_whole_points_and_costs_with_fractions_go_to_the_solver_itself() -> None:
    rows = sparse.csr_array([[2.0, 1.0, -1.0], [0.0, 1.0, 1.0]])
    problem = LinearProblem(rows, [3, 5], [3, 5], [0, 0, 0], [9, 9, 9])
    ours, theirs = Substituted().load(problem), Highs().load(problem)
    for cost in ([0.25, 0.0, 1.0], [-1.0, 0.5, 0.0]):
        assert ours.minimise(np.array(cost)).bound == pytest.approx(
            theirs.minimise(np.array(cost)).bound
        )
    whole = ours.minimise(np.array([1.0, 0, 0]), whole=True)
    assert whole.bound == pytest.approx(theirs.minimise(np.array([1.0, 0, 0]), whole=True).bound)
    again = ours.again()
    assert again.minimise(np.array([1.0, 0, 0])).bound == pytest.approx(-0, abs=1e-6)
