"""Patterns of every algorithm: the cheapest where that is claimed, and safe by brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from examples import examples
from lustrum.model import InputError
from lustrum.protect.suppression import SuppressionProblem, singleton_views, suppress
from lustrum.protect.suppression.check import audit_pattern

ALGORITHMS = ("exact", "quick", "auto")


def two_way(inner: np.ndarray) -> tuple[np.ndarray, list[tuple[int, list[int]]]]:
    """The cells of a two-way table with its totals, row by row, and its relations."""
    rows, columns = inner.shape
    full = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    full[:rows, :columns] = inner
    full[rows] = full[:rows].sum(axis=0)
    full[:, columns] = full[:, :columns].sum(axis=1)
    number = np.arange(full.size).reshape(full.shape)
    relations = [(int(number[r, columns]), number[r, :columns].tolist()) for r in range(rows + 1)]
    relations += [(int(number[rows, c]), number[:rows, c].tolist()) for c in range(columns + 1)]
    return full.ravel(), relations


def three_way(inner: np.ndarray) -> tuple[np.ndarray, list[tuple[int, list[int]]]]:
    """The same for a table of three variables, which is no network."""
    full = inner
    for axis in range(3):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    number = np.arange(full.size).reshape(full.shape)
    relations = []
    for axis in range(3):
        lines = np.moveaxis(number, axis, -1).reshape(-1, full.shape[axis])
        relations += [(int(line[-1]), line[:-1].tolist()) for line in lines]
    return full.ravel(), relations


def protects(problem: SuppressionProblem, suppressed: np.ndarray) -> bool:
    """Whether a pattern keeps all levels, by scipy's linear programs and nothing of ours."""
    views = [None, *problem.views]
    for view in views:
        low = np.where(suppressed, problem.low, problem.values).astype(float)
        high = np.where(suppressed, problem.high, problem.values).astype(float)
        targets = problem.primary.copy()
        if view is not None:
            low[view.cells] = np.maximum(
                low[view.cells], np.minimum(view.low, problem.values[view.cells])
            )
            high[view.cells] = np.minimum(
                high[view.cells], np.maximum(view.high, problem.values[view.cells])
            )
            targets[view.cells] = False
        for cell in np.flatnonzero(targets):
            ends = []
            for sign in (1.0, -1.0):
                cost = np.zeros(problem.values.size)
                cost[cell] = sign
                found = linprog(
                    cost,
                    A_eq=problem.relations.toarray(),
                    b_eq=np.zeros(problem.relations.shape[0]),
                    bounds=np.column_stack([low, high]),
                )
                ends.append(sign * found.fun)
            value = problem.values[cell]
            if ends[0] > value - problem.lower[cell] + 1e-6:
                return False
            if ends[1] < value + problem.upper[cell] - 1e-6:
                return False
            if ends[1] - ends[0] < problem.sliding[cell] - 1e-6:
                return False
    return True


def cheapest(problem: SuppressionProblem) -> float:
    """The cost of the cheapest pattern, by trying all in the order of their cost."""
    choice = np.flatnonzero(problem.choice)
    patterns = [
        (float(problem.cost[list(some)].sum()), some)
        for size in range(choice.size + 1)
        for some in combinations(choice.tolist(), size)
    ]
    for cost, some in sorted(patterns):
        mask = problem.fixed.copy()
        mask[list(some)] = True
        # A primary cell alone in a relation follows from it; most patterns fail that way.
        alone = abs(problem.relations) @ mask.astype(int) == 1
        if (alone & (abs(problem.relations) @ problem.primary.astype(int) == 1)).any():
            continue
        if protects(problem, mask):
            return cost
    return np.inf


def small_problem(seed: int, sliding: bool = False) -> SuppressionProblem:
    rng = np.random.default_rng(seed)
    values, relations = two_way(rng.integers(0, 12, (2, 3)))
    inner = [0, 1, 2, 4, 5, 6]
    primary = [c for c in rng.choice(inner, rng.integers(1, 3), replace=False) if values[c] > 0]
    if not primary:
        values, relations = two_way(np.array([[3, 5, 8], [4, 9, 2]]))
        primary = [0]
    level = np.minimum(rng.integers(1, 5, len(primary)), values[primary])
    frozen = [11] if seed % 3 else []
    return SuppressionProblem.of(
        values,
        relations,
        primary,
        level,
        sliding=3 * level if sliding else None,
        frozen=frozen,
        cost=rng.integers(1, 20, values.size) if seed % 2 else None,
    )


@settings(max_examples=examples(13, 100), deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_the_exact_answer_is_the_cheapest_of_all_patterns(seed: int, sliding: bool) -> None:
    problem = small_problem(seed, sliding)
    best = cheapest(problem)
    pattern = suppress(problem, algorithm="exact")
    if np.isinf(best):
        assert not pattern.safe
        assert pattern.unprotectable
        return
    assert pattern.safe
    assert pattern.cost == pytest.approx(best)
    assert pattern.lower_bound == pytest.approx(best)
    assert pattern.optimal


@settings(max_examples=examples(6, 48), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(ALGORITHMS), st.booleans())
def test_every_pattern_survives_attackers_that_know_their_own_cells(
    seed: int, algorithm: str, three: bool
) -> None:
    rng = np.random.default_rng(seed)
    make = three_way if three else two_way
    values, relations = make(rng.integers(1, 30, (3, 3, 2) if three else (4, 4)))
    number = np.arange(values.size).reshape((4, 4, 3) if three else (5, 5))
    inner = number[(slice(0, -1),) * number.ndim].ravel()
    primary = rng.choice(inner, 3, replace=False)
    alone = np.zeros(values.size, dtype=bool)
    alone[primary[:2]] = True
    problem = SuppressionProblem.of(
        values,
        relations,
        primary,
        np.minimum(values[primary], 3),
        views=singleton_views(values, alone),
    )
    pattern = suppress(problem, algorithm=algorithm)  # type: ignore[arg-type]
    assert pattern.safe
    assert protects(problem, np.asarray(pattern.suppressed))
    assert pattern.lower_bound <= pattern.cost + 1e-9


def test_work_that_is_cut_short_still_gives_a_safe_pattern_and_a_true_bound() -> None:
    rng = np.random.default_rng(6)
    values, relations = three_way(rng.integers(3, 60, (4, 4, 3)))
    problem = SuppressionProblem.of(values, relations, [0, 7, 21], [3, 3, 3])
    full, cut = suppress(problem, algorithm="exact"), suppress(problem, algorithm="exact", work=40)
    assert full.optimal
    assert cut.safe
    assert cut.lower_bound <= full.cost <= cut.cost


def test_last_periods_pattern_is_preferred_and_changes_are_named() -> None:
    values, relations = two_way(np.array([[9, 20, 21], [20, 50, 50], [21, 50, 50]]))
    problem = SuppressionProblem.of(values, relations, [0], [3])
    first = suppress(problem, algorithm="exact")
    other = np.isin(np.arange(values.size), [0, 2, 8, 10])
    kept = suppress(problem, algorithm="exact", previous=other, discount=0.5)
    assert np.flatnonzero(first.suppressed).tolist() == [0, 1, 4, 5]
    assert np.flatnonzero(kept.suppressed).tolist() == [0, 2, 8, 10]
    assert kept.changes.added.size == kept.changes.dropped.size == 0


@pytest.mark.parametrize("seed", [38, 39])
def test_a_pattern_proven_best_at_discounted_costs_did_not_end_at_a_limit(seed: int) -> None:
    """Sums of discounted costs have rounding errors, which must not keep the search going."""
    rng = np.random.default_rng(seed)
    values, relations = two_way(rng.integers(1000, 99_999, (3, 3)))
    before = np.isin(np.arange(values.size), rng.choice(values.size, 7, replace=False))
    problem = SuppressionProblem.of(values, relations, [5], [values[5] // 10])
    found = suppress(problem, algorithm="exact", previous=before, discount=0.3)
    assert found.optimal
    assert "limit" not in found.why
    assert found.steps < 1000


def test_a_cell_that_cannot_be_protected_is_explained() -> None:
    values, relations = two_way(np.array([[5, 6], [7, 8]]))
    problem = SuppressionProblem.of(
        values, relations, [0], [2], frozen=[1, 2], names=[f"c{i}" for i in range(9)]
    )
    pattern = suppress(problem)
    assert not pattern.safe
    (lost,) = pattern.unprotectable
    assert lost.cell == 0
    assert set(lost.because) == {1, 2}
    assert "c1, c2" in str(lost)
    bounded = SuppressionProblem.of(
        values, relations, [0], [2], high=values.clip(26) * 0 + 26, low=4
    )
    assert suppress(bounded).unprotectable[0].because == ()


def test_the_audit_finds_a_pattern_that_misses_a_cell() -> None:
    rng = np.random.default_rng(8)
    values, relations = two_way(rng.integers(5, 60, (5, 5)))
    problem = SuppressionProblem.of(values, relations, [0, 7, 14], [4, 4, 4])
    pattern = suppress(problem, algorithm="exact")
    assert audit_pattern(problem, np.asarray(pattern.suppressed)).safe
    for cell in np.flatnonzero(pattern.suppressed):
        less = np.array(pattern.suppressed)
        less[cell] = False
        # An optimal pattern can do without none of its cells.
        assert not audit_pattern(problem, less).safe


def test_wrong_words_get_one_sentence() -> None:
    problem = small_problem(1)
    with pytest.raises(InputError, match="cannot be 'swift'"):
        suppress(problem, algorithm="swift")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="does not add up"):
        SuppressionProblem.of([1, 2, 4], [(2, [0, 1])], [0], [1])
    with pytest.raises(InputError, match="Primary cell 1 has a level of 0"):
        SuppressionProblem.of([5, 3, 8], [(2, [0, 1])], primary=[0, 1], upper=[1, 0])
    assert SuppressionProblem.of([5, 3, 8], [(2, [0, 1])], [1], upper=0, sliding=1).primary[1]
    with pytest.raises(InputError, match="must be published and must not"):
        SuppressionProblem.of([1, 2, 3], [(2, [0, 1])], [0], [1], frozen=[0])
    with pytest.raises(InputError, match="do not hold its value"):
        SuppressionProblem.of([1, 2, 3], [(2, [0, 1])], [0], [1], high=2)
