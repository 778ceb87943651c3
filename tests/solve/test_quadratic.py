"""Convex quadratic programs: the optimality conditions hold, and other solvers agree."""

from __future__ import annotations

from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from examples import examples
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.quadratic import QuadraticOptimum, QuadraticProblem, minimise_quadratic


def drawn(seed: int, rows: int, columns: int) -> QuadraticProblem:
    """A feasible program with some bounds that bind, some infinite, and some columns held."""
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, 2, (rows, columns)).astype(np.float64)
    inside = rng.normal(0, 2, columns)
    low = np.where(rng.random(columns) < 0.7, inside - rng.random(columns), -np.inf)
    high = np.where(rng.random(columns) < 0.5, inside + rng.random(columns), np.inf)
    held = rng.random(columns) < 0.1
    low, high = np.where(held, inside, low), np.where(held, inside, high)
    return QuadraticProblem(
        rng.uniform(0.1, 3.0, columns),
        rng.normal(0, 3, columns),
        sparse.csr_array(matrix),
        matrix @ inside,
        low,
        high,
    )


def assert_optimal(problem: QuadraticProblem, found: QuadraticOptimum, to: float = 1e-5) -> None:
    """The conditions of Karush, Kuhn and Tucker, from the answer alone."""
    assert found.outcome is Outcome.OPTIMAL
    assert found.point is not None
    assert found.multipliers is not None
    x = found.point
    assert np.all(x >= problem.low - to)
    assert np.all(x <= problem.high + to)
    slope = problem.curvature * x + problem.cost
    if problem.span is None:
        assert np.abs(problem.matrix @ x - problem.target).max(initial=0) < to
        off = slope - found.pressure - problem.matrix.T @ found.multipliers
    else:
        off = problem.span.T @ (slope - found.pressure) - problem.matrix.T @ found.multipliers
    assert np.abs(off).max(initial=0) < to * (1 + np.abs(slope).max(initial=0))
    pushed_up = found.pressure > to
    assert np.allclose(x[pushed_up], problem.low[pushed_up], atol=1e-2)
    pushed_down = found.pressure < -to
    assert np.allclose(x[pushed_down], problem.high[pushed_down], atol=1e-2)
    weighted = np.abs(found.pressure) * np.minimum(
        np.where(found.pressure > 0, x - problem.low, np.inf),
        np.where(found.pressure < 0, problem.high - x, np.inf),
        where=np.abs(found.pressure) > 0,
        out=np.zeros(x.size),
    )
    assert np.abs(weighted).sum() < to * (1 + abs(found.value))


@settings(max_examples=examples(30, 240))
@given(seed=st.integers(0, 10**6), rows=st.integers(0, 5), columns=st.integers(1, 12))
def test_the_optimality_conditions_hold(seed: int, rows: int, columns: int) -> None:
    problem = drawn(seed, rows, columns)
    assert_optimal(problem, minimise_quadratic(problem))


def by_enumeration(problem: QuadraticProblem) -> float:
    """The least value over all faces: every column at its lower end, at its upper end, or in between."""
    columns, rows = problem.cost.size, problem.matrix.toarray()
    best = np.inf
    for state in product((0, 1, 2), repeat=columns):
        ends = np.array([problem.low, problem.high, np.zeros(columns)])[state, range(columns)]
        if not np.isfinite(ends).all():
            continue
        free = np.array(state) == 2
        part = rows[:, free]
        system = np.block(
            [[np.diag(problem.curvature[free]), part.T], [part, np.zeros((len(rows), len(rows)))]]
        )
        right = np.concatenate([-problem.cost[free], problem.target - rows[:, ~free] @ ends[~free]])
        point = ends.copy()
        point[free] = np.linalg.lstsq(system, right, rcond=None)[0][: int(free.sum())]
        inside = np.all(point >= problem.low - 1e-9) and np.all(point <= problem.high + 1e-9)
        if inside and np.allclose(rows @ point, problem.target, atol=1e-8):
            best = min(best, problem.value(point))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_no_face_of_the_bounds_holds_anything_better(seed: int) -> None:
    problem = drawn(seed, 2, 5)
    found = minimise_quadratic(problem)
    best = by_enumeration(problem)
    assert found.value == pytest.approx(best, abs=1e-6 * (1 + abs(best)))


@pytest.mark.parametrize("seed", range(5))
def test_a_span_gives_the_same_optimum_as_its_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    span = np.vstack([np.eye(4), rng.integers(0, 2, (5, 4))]).astype(np.float64)
    matrix = np.hstack([span[4:], -np.eye(5)])
    low, high = rng.uniform(-3, 0, 9), rng.uniform(0, 3, 9)
    low[0], high[5] = 0.7, -0.2
    curvature, none = rng.uniform(0.5, 2, 9), np.zeros(9)
    plain = QuadraticProblem(curvature, none, sparse.csr_array(matrix), np.zeros(5), low, high)
    spanned = QuadraticProblem(
        curvature, none, sparse.csr_array((0, 4)), [], low, high, span=sparse.csr_array(span)
    )
    one, other = minimise_quadratic(plain), minimise_quadratic(spanned)
    assert one.outcome is other.outcome
    if one.outcome is Outcome.OPTIMAL:
        assert_optimal(spanned, other)
        assert one.value == pytest.approx(other.value, rel=1e-6)


def test_an_equation_beside_a_span_is_met() -> None:
    span = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    row = sparse.csr_array([[1.0, -2.0]])
    problem = QuadraticProblem(
        np.ones(3), np.zeros(3), row, [0.0], [1.0, -9, -9], [9.0] * 3, span=span
    )
    found = minimise_quadratic(problem)
    assert found.point is not None
    assert np.allclose(found.point, [1.0, 0.5, 1.5], atol=1e-6)


def test_equations_that_repeat_each_other_do_no_harm() -> None:
    rows = np.array([[1.0, 1, 1, 0], [0, 0, 1, 1], [1, 1, 2, 1], [1, 1, 1, 0]])
    target = np.array([6.0, 5, 11, 6])
    problem = QuadraticProblem(
        np.ones(4), np.zeros(4), sparse.csr_array(rows), target, np.zeros(4), np.full(4, 9.0)
    )
    independent = QuadraticProblem(
        np.ones(4), np.zeros(4), sparse.csr_array(rows[:2]), target[:2], np.zeros(4), [9.0] * 4
    )
    found, other = minimise_quadratic(problem), minimise_quadratic(independent)
    assert found.outcome is Outcome.OPTIMAL
    assert found.value == pytest.approx(other.value, rel=1e-6)


def test_a_large_sparse_program_is_solved_to_the_end() -> None:
    rng = np.random.default_rng(3)
    matrix = sparse.random_array((300, 900), density=0.01, rng=rng, format="csr")
    inside = rng.random(900)
    problem = QuadraticProblem(
        rng.uniform(0.01, 1, 900),
        rng.normal(size=900),
        matrix,
        matrix @ inside,
        np.zeros(900),
        np.full(900, np.inf),
    )
    found = minimise_quadratic(problem)
    assert_optimal(problem, found)
    assert found.residual < 1e-7


def test_where_nothing_pushes_the_optimum_is_known_as_one() -> None:
    none = np.zeros(2)
    still = minimise_quadratic(one_row(target=[0.0], low=[-3.0, -1e6], high=[np.inf] * 2))
    assert still.outcome is Outcome.OPTIMAL
    assert still.point == pytest.approx(none, abs=1e-6)
    # The slope is 0 though its parts are not.
    free = QuadraticProblem(
        [2.0, 1.0], [-6.0, 10.0], sparse.csr_array((0, 2)), [], [0, -1e9], [np.inf] * 2
    )
    found = minimise_quadratic(free)
    assert found.outcome is Outcome.OPTIMAL
    assert found.point == pytest.approx([3.0, -10.0], rel=1e-5)


@pytest.mark.parametrize("needed", [1.0, 1e3, 1e11])
@pytest.mark.parametrize("room", [2.0, 1e3, 1e12])
@pytest.mark.parametrize("price", [1.0, 1e-7])
def test_neither_long_ways_nor_far_bounds_nor_low_costs_hide_the_optimum(
    needed: float, room: float, price: float
) -> None:
    row = sparse.csr_array([[1.0, 1.0, -1.0]])
    far = needed * room
    found = minimise_quadratic(
        QuadraticProblem(
            price * np.array([1.0, 2, 2]), np.zeros(3), row, [0.0], [needed, -far, -far], [far] * 3
        )
    )
    assert found.outcome is Outcome.OPTIMAL
    assert found.point / needed == pytest.approx([1.0, -0.5, 0.5], abs=1e-6)


def one_row(**changes: Any) -> QuadraticProblem:
    parts: dict[str, Any] = {
        "curvature": np.ones(2),
        "cost": np.zeros(2),
        "matrix": sparse.csr_array([[1.0, 1.0]]),
        "target": [3.0],
        "low": [0.0, 0.0],
        "high": [2.0, 2.0],
    }
    return QuadraticProblem(**(parts | changes))


def test_what_has_no_optimum_is_told_apart() -> None:
    assert minimise_quadratic(one_row(target=[5.0])).outcome is Outcome.INFEASIBLE
    crossed = one_row(low=[1.0, 1.0], high=[0.0, 2.0])
    assert minimise_quadratic(crossed).outcome is Outcome.INFEASIBLE
    falling = one_row(curvature=np.zeros(2), cost=[1.0, 0.0], low=[-np.inf] * 2, high=[np.inf] * 2)
    assert minimise_quadratic(falling).outcome is Outcome.UNBOUNDED
    assert minimise_quadratic(drawn(2, 2, 7), steps=1).outcome is Outcome.CUT_SHORT


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"curvature": [-1.0, 1.0]}, "below 0"),
        ({"cost": [np.nan, 1.0]}, "NaN"),
        ({"low": [0.0]}, "shape"),
        ({"span": sparse.eye_array(3)}, "span"),
    ],
)
def test_a_wrong_program_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        one_row(**changes)
    assert repr(one_row()) == "QuadraticProblem(1 rows, 2 columns)"
