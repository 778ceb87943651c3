"""Patterns for very large tables: each box is a deviation, and no wrong one passes the audit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError
from lustrum.protect.suppression import (
    AxisSums,
    SuppressionProblem,
    audit_pattern,
    singleton_views,
    suppress,
)
from lustrum.protect.suppression.check import audit_deviations
from lustrum.protect.suppression.search import boxes
from lustrum.protect.suppression.search.boxes import axis_moves, protect_by_boxes
from lustrum.protect.suppression.search.decomposition import simple_bound
from protect.suppression.test_suppress import cheapest, small_problem

TREE = AxisSums(7, ((4, (0, 1)), (5, (2, 3)), (6, (4, 5))))
FLAT = AxisSums(4, ((3, (0, 1, 2)),))


def table(axes: tuple[AxisSums, ...], seed: int, **options: object) -> SuppressionProblem:
    """A table with hierarchies, whose smallest inner cells are primary."""
    rng = np.random.default_rng(seed)
    shape = tuple(axis.size for axis in axes)
    leaves = [np.array([c for c in range(axis.size) if c not in dict(axis.sums)]) for axis in axes]
    full = np.zeros(shape, dtype=np.int64)
    full[np.ix_(*leaves)] = rng.integers(4, 90, [leaf.size for leaf in leaves])
    relations = []
    number = np.arange(full.size).reshape(shape)
    for place, axis in enumerate(axes):
        lines, places = np.moveaxis(full, place, -1), np.moveaxis(number, place, -1)
        for total, parts in axis.sums:
            lines[..., total] = lines[..., list(parts)].sum(axis=-1)
            for line in places.reshape(-1, axis.size):
                relations.append((int(line[total]), line[list(parts)].tolist()))
    inner = number[np.ix_(*leaves)].ravel()
    primary = inner[np.argsort(full.ravel()[inner], kind="stable")[:4]]
    return SuppressionProblem.of(
        full.ravel(),
        relations,
        primary,
        [3] * 4,
        axes=axes,
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("axes", [(TREE, FLAT), (TREE, TREE, FLAT)])
def test_boxes_are_safe_by_both_audits(axes: tuple[AxisSums, ...], seed: int) -> None:
    problem = table(axes, seed)
    pattern = suppress(problem, algorithm="boxes")
    assert pattern.safe
    assert audit_pattern(problem, np.asarray(pattern.suppressed)).safe
    exact = suppress(problem, algorithm="exact", work=300)
    assert pattern.lower_bound <= exact.cost <= pattern.cost


def with_many_primary_cells(seed: int) -> SuppressionProblem:
    problem = table((TREE, TREE, FLAT), seed)
    many = np.zeros(problem.values.size, dtype=np.bool_)
    many[np.argsort(problem.values, kind="stable")[:16]] = True
    level = np.where(many, 3, 0)
    return replace(problem, primary=many, upper=level, lower=level)


def test_boxes_are_chosen_anew_where_that_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [with_many_primary_cells(seed) for seed in range(4)]
    anew = [protect_by_boxes(problem, lambda *_: None) for problem in problems]
    monkeypatch.setattr(boxes, "_TURNS", 0)
    before = [protect_by_boxes(problem, lambda *_: None) for problem in problems]
    cheaper = 0
    for problem, one, other in zip(problems, anew, before, strict=True):
        assert other is not None
        used = np.zeros(problem.values.size, dtype=np.bool_)
        used[one.deviations.cells] = True
        # Whatever is suppressed is primary or in a box, and every box of the pattern is one of its deviations.
        assert np.array_equal(one.suppressed, used | problem.fixed)
        assert audit_deviations(problem, one.suppressed, one.deviations).safe
        costs = [problem.total_cost(found.suppressed) for found in (one, other)]
        assert costs[0] <= costs[1]
        cheaper += costs[0] < costs[1]
    assert cheaper > 0


def test_every_move_keeps_the_sums_of_its_axis() -> None:
    moves = axis_moves(TREE, np.ones(7))
    assert moves is not None
    for category, own in enumerate(moves):
        assert own
        for move in own:
            assert move[0] == (category, 1)
            v = np.zeros(7)
            for place, sign in move:
                v[place] = sign
            assert all(v[total] == v[list(parts)].sum() for total, parts in TREE.sums)
    assert axis_moves(AxisSums(4, ((2, (0, 1)), (3, (0,)))), np.ones(4)) is None


def test_singletons_are_not_needed_to_protect_others() -> None:
    problem = table((TREE, FLAT), 3)
    cells = np.flatnonzero(problem.primary)[:2]
    alone = np.isin(np.arange(problem.values.size), cells)
    guarded = replace(problem, views=singleton_views(problem.values, alone))
    pattern = suppress(guarded, algorithm="boxes")
    assert pattern.safe
    assert audit_pattern(guarded, np.asarray(pattern.suppressed)).safe


def test_the_audit_of_deviations_rejects_wrong_ones() -> None:
    problem = table((TREE, FLAT), 1)
    boxed = protect_by_boxes(problem, lambda *_: None)
    shown = boxed.deviations
    assert audit_deviations(problem, boxed.suppressed, shown).safe
    for name in ("amounts", "lower"):
        moved = np.array(getattr(shown, name))
        moved[1] += 1
        assert not audit_deviations(problem, boxed.suppressed, replace(shown, **{name: moved})).safe
        assert not audit_deviations(
            problem, boxed.suppressed, replace(shown, **{name: getattr(shown, name) // 3})
        ).safe
        # Far beyond the bounds of the attacker.
        huge = getattr(shown, name) * 10**6
        assert not audit_deviations(problem, boxed.suppressed, replace(shown, **{name: huge})).safe
    for cell in np.flatnonzero(boxed.suppressed):
        less = boxed.suppressed.copy()
        less[cell] = False
        assert not audit_deviations(problem, less, shown).safe
    known = singleton_views(problem.values, np.isin(np.arange(problem.values.size), shown.cells[1]))
    if shown.cells[1] != shown.target[0]:
        assert not audit_deviations(replace(problem, views=known), boxed.suppressed, shown).safe


@settings(max_examples=examples(6, 48), deadline=None)
@given(st.integers(0, 10_000))
def test_no_pattern_costs_less_than_the_simple_bound(seed: int) -> None:
    problem = small_problem(seed)
    assert simple_bound(problem) <= cheapest(problem) + 1e-6


def test_a_cell_without_a_level_needs_no_box() -> None:
    """Levels of cells that cannot be protected are dropped, and the others are protected all the same."""
    problem = table((FLAT, FLAT), 0)
    first, *others = np.flatnonzero(problem.primary).tolist()
    lost = np.arange(problem.values.size) == first
    upper, lower = (np.where(lost, 0, level) for level in (problem.upper, problem.lower))
    pattern = suppress(replace(problem, upper=upper, lower=lower), algorithm="boxes")
    assert pattern.safe
    assert pattern.suppressed[[first, *others]].all()


def test_boxes_need_a_table() -> None:
    problem = SuppressionProblem.of([1, 2, 3], [(2, [0, 1])], [0], [1])
    with pytest.raises(InputError, match="nest"):
        suppress(problem, algorithm="boxes")
