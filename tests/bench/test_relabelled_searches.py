"""The bench divides work among searches of relabelled problems; they must be the same problem."""

from __future__ import annotations

import numpy as np
import pytest

from bench.conftest import bench as load_bench
from lustrum.protect.suppression import ContributorView, Pattern, SuppressionProblem, suppress

bench = load_bench("suppression")
TABLES = {
    "two-way": bench.large_table((bench.flat(4), bench.flat(5)), 0.1),
    "groups": bench.large_table((bench.grouped(2, 2), bench.flat(3)), 0.1),
    "no table": SuppressionProblem.of(
        [4, 6, 10, 5, 9, 14, 9, 15, 24],
        [(2, [0, 1]), (5, [3, 4]), (8, [6, 7]), (6, [0, 3]), (7, [1, 4]), (8, [2, 5])],
        primary=[0],
        upper=[2],
        views=[ContributorView("the firm in cell 4", np.array([4]), np.array([9]), np.array([9]))],
    ),
}


def rows_of(problem: SuppressionProblem) -> list[tuple[int, ...]]:
    """What each relation adds up, by values, which do not depend on the order of cells."""
    matrix = problem.relations
    signed = [
        matrix.data[a:b] * problem.values[matrix.indices[a:b]]
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
    return sorted(tuple(np.sort(row).tolist()) for row in signed)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("counter", [1, 2])
def test_a_relabelled_problem_has_the_same_cells_relations_and_optimum(
    name: str, counter: int
) -> None:
    problem = TABLES[name]
    other = bench.relabelled(problem, counter)
    assert not np.array_equal(other.values, problem.values)
    assert rows_of(other) == rows_of(problem)
    for kind in ("values", "cost", "upper", "lower", "high"):
        assert np.array_equal(np.sort(getattr(other, kind)), np.sort(getattr(problem, kind)))
    assert sorted(other.values[other.primary]) == sorted(problem.values[problem.primary])
    for one, two in zip(problem.views, other.views, strict=True):
        assert sorted(other.values[two.cells]) == sorted(problem.values[one.cells])
    if other.axes is not None:
        made = SuppressionProblem.of(
            other.values, bench.relations_of(other.axes), other.primary, other.upper[other.primary]
        )
        assert rows_of(made) == rows_of(other)
    found, again = suppress(problem, workers=1), suppress(other, workers=1)
    assert found.optimal
    assert again.optimal
    assert found.cost == again.cost


def test_the_same_counter_gives_the_same_order_and_0_leaves_it() -> None:
    problem = TABLES["two-way"]
    assert bench.relabelled(problem, 0) is problem
    one, two = (bench.relabelled(problem, 3) for _ in range(2))
    assert np.array_equal(one.values, two.values)


def test_the_cheapest_pattern_and_the_best_bound_are_kept_though_they_are_of_different_searches() -> (
    None
):
    outcomes = iter([(12.0, 7.0), (10.0, 6.0), (11.0, 8.0)])

    def search(problem: SuppressionProblem) -> Pattern:
        cost, bound = next(outcomes)
        none = np.zeros(len(problem), dtype=np.bool_)
        return Pattern(
            suppressed=none,
            primary=none,
            secondary=none,
            cost=cost,
            lower_bound=bound,
            algorithm="exact",
            why="",
            steps=1,
            safe=True,
            audited=0,
            unprotectable=(),
            changes=None,
        )

    best, bound = bench.best_of(TABLES["two-way"], 3, search)
    assert (best.cost, bound) == (10.0, 8.0)


def test_no_further_search_begins_once_the_cheapest_pattern_is_proven() -> None:
    seen = []

    def search(problem: SuppressionProblem) -> Pattern:
        seen.append(problem)
        return suppress(problem, workers=1)

    best, bound = bench.best_of(TABLES["no table"], 4, search)
    assert len(seen) == 1
    assert best.cost == bound
