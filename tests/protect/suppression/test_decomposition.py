"""Hierarchies taken apart: what sub-tables promise is checked against the whole table, and bounds add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.protect.suppression import (
    AxisSums,
    SuppressionProblem,
    audit_pattern,
    singleton_views,
    suppress,
)
from lustrum.protect.suppression.search.attacks.attack import attacks_on
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.decomposition import (
    bound_by_parts,
    protect_top_down,
    subtables_of,
)
from lustrum.protect.suppression.solve import SearchRequest, solve
from protect.suppression.test_boxes import FLAT, TREE, table
from protect.suppression.test_optimum import FLAT2, FLAT3, NESTED, OVERLAP, Sums, optimum, small

HIERARCHIES: tuple[tuple[Sums, ...], ...] = (
    (NESTED, NESTED),
    (OVERLAP, FLAT3),
    (NESTED, FLAT2, FLAT2),
)


def small_hierarchy(sums: tuple[Sums, ...], seed: int) -> SuppressionProblem:
    """A small table that knows its axes."""
    axes = tuple(AxisSums(min(total for total, _ in own) + len(own), own) for own in sums)
    return replace(small(sums, seed), axes=axes)


def optimum_of(part: SuppressionProblem) -> np.ndarray:
    quiet = SearchRequest("exact", 500, lambda what, cost, bound: None)
    return solve(part, attacks_on(Tasks.of(part)), quiet).suppressed


def test_every_relation_is_in_a_sub_table_and_higher_ones_come_first() -> None:
    problem = table((TREE, TREE, FLAT), 0)
    subtables = subtables_of(problem)
    assert len(subtables) == 9
    assert [sub.depth for sub in subtables] == [0, 1, 1, 1, 1, 2, 2, 2, 2]
    assert set(np.concatenate([sub.rows for sub in subtables])) == set(
        range(problem.relations.shape[0])
    )
    for sub in subtables:
        assert np.isin(problem.relations[sub.rows].indices, sub.cells).all()
        # One total and its parts along every axis: each line is one relation.
        assert sub.cells.size in (3 * 3 * 4,)
    assert subtables_of(table((FLAT, FLAT), 0)) is None
    assert subtables_of(replace(problem, axes=None)) is None


@pytest.mark.parametrize(
    ("sums", "seed"), [((NESTED, NESTED), 46), ((NESTED, NESTED), 64), ((OVERLAP, FLAT3), 4)]
)
def test_what_sub_tables_leave_open_is_repaired_in_the_whole_table(
    sums: tuple[Sums, ...], seed: int
) -> None:
    problem = small_hierarchy(sums, seed)
    subtables = subtables_of(problem)
    assert subtables is not None
    alone = protect_top_down(problem, subtables, optimum_of)
    assert not audit_pattern(problem, alone).safe
    pattern = solve(
        problem,
        attacks_on(Tasks.of(problem)),
        SearchRequest("exact", None, lambda what, cost, bound: None),
    )
    # Before the audit of 'suppress' could repair anything.
    assert audit_pattern(problem, pattern.suppressed).safe


@settings(max_examples=examples(5, 32), deadline=None)
@given(st.sampled_from(HIERARCHIES), st.integers(0, 400))
def test_sub_tables_are_safe_together_and_their_bounds_add_up(
    sums: tuple[Sums, ...], seed: int
) -> None:
    problem = small_hierarchy(sums, seed)
    subtables = subtables_of(problem)
    pattern = suppress(problem, algorithm="exact")
    assume(not pattern.unprotectable)
    least = optimum(problem)
    assert pattern.safe
    assert audit_pattern(problem, np.asarray(pattern.suppressed)).safe
    assert pattern.lower_bound <= least + 1e-6
    assert least <= pattern.cost + 1e-6
    for order in (subtables, subtables[::-1]):
        assert bound_by_parts(problem, order)[0] <= least + 1e-6
    assert suppress(problem).cost == pytest.approx(least)


def test_sub_tables_raise_the_bound_of_a_search_that_ends_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Sub-tables of three variables are no networks, so the table is searched as a whole.
    monkeypatch.setattr("lustrum.protect.suppression.search.exact._AT_LEAST", 0)
    problem = table((TREE, FLAT, FLAT), 3)
    subtables = subtables_of(problem)
    assert subtables is not None
    by_parts, _ = bound_by_parts(problem, subtables)
    alone = suppress(replace(problem, axes=None), work=1)
    both = suppress(problem, work=1)
    assert alone.lower_bound < by_parts < both.cost
    assert both.lower_bound == pytest.approx(by_parts)


def test_only_larger_tables_of_three_variables_are_taken_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = table((TREE, FLAT, FLAT), 3)
    apart = "from the top down"
    monkeypatch.setattr("lustrum.protect.suppression.solve._WHOLE", len(problem))
    assert apart not in suppress(problem).why
    monkeypatch.setattr("lustrum.protect.suppression.solve._WHOLE", len(problem) - 1)
    assert apart in suppress(problem).why


def test_a_cell_above_is_suppressed_where_the_sub_table_cannot_do_without() -> None:
    # All cells below the total of the first group are frozen except the primary one and the subtotals above it.
    problem = table((TREE, FLAT), 1)
    first = int(np.flatnonzero(problem.primary)[0])
    shape = (TREE.size, FLAT.size)
    row, column = np.unravel_index(first, shape)
    mate = {0: 1, 1: 0, 2: 3, 3: 2}[int(row)]
    frozen = np.zeros(shape, dtype=np.bool_)
    frozen[mate] = True
    only = np.zeros(problem.values.size, dtype=np.bool_)
    only[first] = True
    one = replace(
        problem,
        primary=only,
        upper=np.where(only, problem.upper, 0),
        lower=np.where(only, problem.lower, 0),
        frozen=frozen.ravel() & ~only,
    )
    subtables = subtables_of(one)
    assert subtables is not None
    made = protect_top_down(one, subtables, optimum_of).reshape(shape)
    above = 4 if row < 2 else 5
    assert made[above, column]
    assert made[9 - above, column] or made[6, column]
    assert suppress(one, algorithm="exact").safe


def test_singletons_are_attackers_of_sub_tables_too() -> None:
    problem = table((TREE, TREE), 3)
    alone = np.isin(np.arange(problem.values.size), np.flatnonzero(problem.primary)[:2])
    guarded = replace(problem, views=singleton_views(problem.values, alone))
    pattern = suppress(guarded, algorithm="exact")
    assert pattern.safe
    assert audit_pattern(guarded, np.asarray(pattern.suppressed)).safe


def test_a_cell_that_cannot_be_protected_is_found_in_its_sub_table() -> None:
    problem = table((TREE, TREE), 2)
    shut = replace(problem, frozen=~problem.primary)
    subtables = subtables_of(shut)
    assert subtables is not None
    with pytest.raises(InfeasibleError):
        protect_top_down(shut, subtables, optimum_of)
    pattern = suppress(shut, algorithm="exact")
    assert not pattern.safe
    assert pattern.unprotectable
