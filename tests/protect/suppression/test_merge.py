"""Cells that always move together are one cell: the small problem has the patterns of the original."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.protect.suppression import (
    ContributorView,
    SuppressionProblem,
    audit_pattern,
    singleton_views,
    suppress,
)
from lustrum.protect.suppression.search.parts import merged_problem
from protect.suppression.test_suppress import cheapest, three_way, two_way


def chained(seed: int, *, views: bool = False) -> SuppressionProblem:
    """A small table some of whose cells are the only part of another, with cells that must stay as they are."""
    rng = np.random.default_rng(seed)
    cube = bool(seed % 2)
    make = (
        three_way(rng.integers(1, 12, (2, 2, 2))) if cube else two_way(rng.integers(1, 12, (2, 3)))
    )
    values, relations = make
    copies = rng.choice(values.size, 3, replace=False)
    for one in copies.tolist():
        relations.append((values.size, [int(one)]))
        values = np.append(values, values[one])
    cells = rng.permutation(values.size)
    primary, frozen, never = cells[:2], cells[2 : 2 + int(rng.integers(0, 4))], cells[6:7]
    level = np.maximum(values[primary] // 3, 1)
    level = np.minimum(level, values[primary])
    known: tuple[ContributorView, ...] = ()
    if views:
        alone = np.zeros(values.size, dtype=np.bool_)
        alone[cells[[0, 8]]] = True
        known = singleton_views(values, alone)
    return SuppressionProblem.of(
        values,
        relations,
        primary,
        level,
        sliding=2 * level + 1 if seed % 3 == 0 else None,
        frozen=frozen,
        never=never if seed % 5 == 0 else None,
        views=known,
    )


@settings(max_examples=examples(20, 160), deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_a_small_pattern_protects_exactly_where_its_spread_does(seed: int, views: bool) -> None:
    problem = chained(seed, views=views)
    merged = merged_problem(problem)
    assume(merged is not None)
    small = merged.problem
    assert len(small) < len(problem)
    rng = np.random.default_rng(seed)
    for share in (0.3, 0.6, 0.9, 1.0):
        mask = small.fixed | (small.choice & (rng.random(len(small)) < share))
        wide = merged.spread(problem, mask)
        assert not (wide & problem.frozen).any()
        assert audit_pattern(small, mask).safe == audit_pattern(problem, wide).safe
        # What never moves is given away anyway, so it costs nothing to publish it.
        assert problem.total_cost(wide) == small.total_cost(mask) + merged.constant


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2_000))
def test_the_cheapest_pattern_is_found_among_merged_cells(seed: int) -> None:
    values, relations = two_way(np.random.default_rng(seed).integers(1, 12, (2, 2)))
    for one in (0, 5):
        relations.append((values.size, [one]))
        values = np.append(values, values[one])
    problem = SuppressionProblem.of(values, relations, [0], [1], frozen=[8] if seed % 2 else None)
    pattern = suppress(problem, algorithm="exact")
    assert merged_problem(problem) is not None
    assert pattern.safe
    assert pattern.cost == pattern.lower_bound == pytest.approx(cheapest(problem))
    # The copy of a primary cell would give it away.
    assert pattern.suppressed[9]
    assert "move by themselves" in pattern.why


def test_two_cells_beside_published_ones_move_against_each_other() -> None:
    # The first two cells add up to 10, whatever else there is.
    problem = SuppressionProblem.of(
        [4, 6, 10, 7, 17], [(2, [0, 1]), (4, [2, 3])], [0], [2], frozen=[2]
    )
    merged = merged_problem(problem)
    assert merged.number.tolist() == [0, 0, -1, 1, 1]
    small = merged.problem
    # The first can rise by what the second can fall.
    assert (small.high[0], -small.low[0]) == (6, 4)
    assert merged.constant == 6.0


def test_what_cannot_be_protected_is_left_to_the_original() -> None:
    problem = SuppressionProblem.of([4, 4, 9, 13], [(1, [0]), (3, [1, 2])], [0], [2], frozen=[1])
    assert merged_problem(problem) is None
    pattern = suppress(problem)
    assert not pattern.safe
    assert [u.cell for u in pattern.unprotectable] == [0]


def test_members_that_a_contributor_must_not_find_out_apart_are_not_merged() -> None:
    values = [4, 4, 9, 13]
    view = ContributorView("holding 1", np.array([0]), np.array([4]), np.array([4]))
    problem = SuppressionProblem.of(values, [(1, [0]), (3, [1, 2])], [0, 1], [2, 1], views=(view,))
    # The contributor of the first cell knows the second too, which must be protected from it.
    assert merged_problem(problem) is None
