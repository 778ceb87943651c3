"""Patterns by publishing: the space of deviations, joint witnesses, and what comes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from examples import examples
from lustrum.protect.suppression import SuppressionProblem, singleton_views, suppress
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.search.attacks.space import DeviationSpace, deviation_basis
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.greedy import Publisher


def cube(shape: tuple[int, int, int], seed: int, share: float = 0.1) -> SuppressionProblem:
    """A table of three variables with all totals, some of its inner cells primary."""
    rng = np.random.default_rng(seed)
    full = rng.integers(5, 200, shape)
    for axis in range(3):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    number = np.arange(full.size).reshape(full.shape)
    relations = []
    for axis in range(3):
        lines = np.moveaxis(number, axis, -1).reshape(-1, full.shape[axis])
        relations += [(int(line[-1]), line[:-1].tolist()) for line in lines]
    inner = number[tuple(slice(0, -1) for _ in shape)].ravel()
    primary = np.sort(rng.choice(inner, max(int(share * inner.size), 2), replace=False))
    level = np.maximum(full.ravel()[primary] // 10, 1)
    return SuppressionProblem.of(full.ravel(), relations, primary, level)


def random_relations(seed: int) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    height, width = int(rng.integers(2, 9)), int(rng.integers(6, 14))
    dense = rng.choice([-1, 0, 0, 1, 2], (height, width))
    dense[-1] = dense[0] + dense[-2]  # one that follows from others
    return sparse.csr_array(dense)


@settings(max_examples=examples(20, 160), deadline=None)
@given(st.integers(0, 10_000))
def test_the_basis_holds_all_deviations_and_nothing_else(seed: int) -> None:
    relations = random_relations(seed)
    basis = deviation_basis(relations)
    assert basis is not None
    assert np.abs(relations @ basis).max(initial=0.0) < 1e-6
    rank = np.linalg.matrix_rank(relations.toarray())
    assert basis.shape[1] == relations.shape[1] - rank
    assert np.linalg.matrix_rank(basis) == basis.shape[1]


@settings(max_examples=examples(20, 160), deadline=None)
@given(st.integers(0, 10_000))
def test_publishing_leaves_what_elimination_from_scratch_leaves(seed: int) -> None:
    relations = random_relations(seed)
    width = relations.shape[1]
    rng = np.random.default_rng(seed)
    unit = rng.uniform(0.5, 20.0, width)
    space = DeviationSpace.of(relations, unit)
    assert space is not None
    published: list[int] = []
    for cell in rng.permutation(width)[: width // 2].tolist():
        if space.dimension == 0 or space.idle()[cell]:
            continue
        rest = np.setdiff1d(np.arange(width), [*published, cell])
        plain = linalg.null_space(
            np.concatenate([relations.toarray(), np.eye(width)[[*published, cell]]])
        )
        known = np.abs(plain).max(axis=1, initial=0.0) < 1e-9
        moving = ~space.idle()
        targets = rest[moving[rest]]
        shadow = space.shadow(cell)
        # A cell is given away if nothing is left that moves it.
        assert space.gives_away(cell, shadow, targets) == bool(known[targets].any())
        step = space.direction(cell, shadow)
        assert step[cell] == pytest.approx(1.0)
        assert np.abs(relations @ step).max(initial=0.0) < 1e-6
        space.publish(cell, shadow)
        published.append(cell)
        assert space.dimension == plain.shape[1]
        assert np.array_equal(space.idle(), known)
        assert np.abs(space.basis @ space.basis.T - np.eye(space.dimension)).max(initial=0) < 1e-9


def test_cells_that_move_in_proportion_are_one_group() -> None:
    relations = sparse.csr_array([[1, 1, -1, 0, 0], [0, 0, 0, 1, -1]])
    space = DeviationSpace.of(relations, np.array([1.0, 1.0, 3.0, 2.0, 5.0]))
    assert space is not None
    one = space.groups(np.arange(5), np.random.default_rng(0))
    assert one[3] == one[4]
    assert len(set(one.tolist())) == 4


@pytest.mark.parametrize("seed", range(3))
def test_published_patterns_are_safe_and_need_every_cell(seed: int) -> None:
    problem = cube((4, 4, 3), seed)
    publisher = Publisher.of(Tasks.of(problem), np.arange(len(problem)), 500)
    assert publisher is not None
    found = publisher.first()
    assert found is not None
    better = publisher.improve(found, 2_000, lambda cost: None)
    assert better.cost <= found.cost
    for one in (found, better):
        pattern = publisher.pattern(one)
        assert audit_pattern(problem, pattern).safe
        for cell in np.flatnonzero(pattern & ~problem.fixed):
            less = pattern.copy()
            less[cell] = False
            assert not audit_pattern(problem, less).safe


@pytest.mark.parametrize("seed", range(3))
def test_witnesses_move_suppressed_cells_within_bounds_to_the_levels(seed: int) -> None:
    problem = cube((4, 3, 3), seed, 0.15)
    publisher = Publisher.of(Tasks.of(problem), np.arange(len(problem)), 500)
    assert publisher is not None
    found = publisher.first()
    assert found is not None
    (rows,) = found.pool
    assert np.abs(rows[:, found.shut]).max() == 0.0
    assert np.abs(problem.relations @ rows.T).max() < 1e-6
    tasks = publisher.tasks
    supports = publisher.supports(found)
    pattern = publisher.pattern(found)
    for task, cells in enumerate(supports):
        assert tasks.cell[task] in cells
        assert pattern[cells].all()
        # A witness alone is enough: with these cells suppressed and no other, the task is fulfilled.
        alone = np.isin(np.arange(len(problem)), cells) | problem.primary
        short = audit_pattern(problem, alone).short
        assert int(tasks.cell[task]) not in {cell for cell, _ in short}


def test_publishing_is_close_to_the_cheapest_and_repeatable() -> None:
    problem = cube((3, 3, 3), 4)
    best = suppress(problem, algorithm="exact")
    one, two = (suppress(problem, algorithm="quick", workers=w) for w in (1, 2))
    assert best.optimal
    assert one.safe
    assert best.cost <= one.cost <= 1.5 * best.cost
    assert np.array_equal(one.suppressed, two.suppressed)


def test_the_order_of_relations_does_not_change_the_pattern() -> None:
    problem = cube((4, 4, 3), 7)
    turned = SuppressionProblem.of(
        problem.values,
        problem.relations[::-1],
        np.flatnonzero(problem.primary)[::-1],
        problem.upper[problem.primary][::-1],
    )
    one, two = (suppress(p, algorithm="quick") for p in (problem, turned))
    assert np.array_equal(one.suppressed, two.suppressed)


@pytest.mark.parametrize("seed", range(3))
def test_the_pattern_does_not_depend_on_which_basis_the_machine_finds(seed: int) -> None:
    # Another library for linear algebra finds another orthonormal basis of the same space.
    plain = cube((4, 4, 3), seed, 0.15)
    problem = plain.with_cost(np.ones(len(plain)))  # many groups cost the same
    tasks, cells = Tasks.of(problem), np.arange(len(problem))
    found = []
    for turn in range(3):
        publisher = Publisher.of(tasks, cells, 500)
        assert publisher is not None
        if turn:
            noise = np.random.default_rng(turn).standard_normal((publisher.space.dimension,) * 2)
            turned, _ = np.linalg.qr(noise)
            publisher.space = DeviationSpace(turned @ publisher.space.basis, publisher.space.unit)
        first = publisher.first()
        assert first is not None
        later = publisher.improve(first, 1_000, lambda cost: None)
        found.append((publisher.pattern(first), publisher.pattern(later)))
    for first_pattern, later_pattern in found[1:]:
        assert np.array_equal(first_pattern, found[0][0])
        assert np.array_equal(later_pattern, found[0][1])


def test_groups_are_numbered_by_their_first_cells_in_any_basis() -> None:
    relations = sparse.csr_array([[1, 1, -1, 0, 0], [0, 0, 0, 1, -1]])
    space = DeviationSpace.of(relations, np.array([1.0, 1.0, 3.0, 2.0, 5.0]))
    assert space is not None
    turned, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))
    other = DeviationSpace(turned @ space.basis, space.unit)
    for one in (space, other):
        for luck in range(20):
            numbers = one.groups(np.arange(5), np.random.default_rng(luck))
            assert numbers.tolist() == [0, 1, 2, 3, 3]


def test_attackers_that_know_cells_need_witnesses_of_their_own() -> None:
    problem = cube((3, 3, 3), 2, 0.2)
    primary = np.flatnonzero(problem.primary)
    alone = np.isin(np.arange(len(problem)), primary[:2])
    guarded = SuppressionProblem.of(
        problem.values,
        problem.relations,
        primary,
        problem.upper[primary],
        sliding=3 * problem.upper[primary],
        views=singleton_views(problem.values, alone),
    )
    publisher = Publisher.of(Tasks.of(guarded), np.arange(len(guarded)), 500)
    assert publisher is not None
    found = publisher.first()
    assert found is not None
    assert len(found.pool) == 3
    for known, rows in zip(publisher.joint.known, found.pool, strict=True):
        if known.view >= 0:
            assert rows.shape[0] > 0
    assert audit_pattern(guarded, publisher.pattern(found)).safe


def test_a_cell_that_nothing_protects_leaves_no_pattern() -> None:
    problem = cube((3, 3, 3), 1)
    cell = int(np.flatnonzero(problem.primary)[0])
    row = problem.relations[[int(np.flatnonzero(problem.relations[:, [cell]].toarray())[0])]]
    others = row.indices[row.indices != cell]
    bound = SuppressionProblem.of(
        problem.values,
        problem.relations,
        [cell],
        [1],
        frozen=others,
    )
    publisher = Publisher.of(Tasks.of(bound), np.flatnonzero(~bound.frozen), 500)
    assert publisher is None or publisher.first() is None
    assert not suppress(bound).safe


def test_empty_cells_are_used_where_nothing_else_protects() -> None:
    problem = cube((3, 3, 3), 3)
    values = np.array(problem.values)
    inner = values.reshape(4, 4, 4)[:-1, :-1, :-1].copy()
    inner[0, 0, 1:] = 0
    full = inner
    for axis in range(3):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    line = np.arange(64).reshape(4, 4, 4)[0, 0]
    total, empty = int(line[-1]), line[1:-1]
    # With the total published, the cell can fall where an empty one rises, but never rise.
    falls, rises = (
        SuppressionProblem.of(full.ravel(), problem.relations, [0], up, down, frozen=[total])
        for up, down in (([0], [1]), ([1], [0]))
    )
    for algorithm in ("quick", "exact"):
        pattern = suppress(falls, algorithm=algorithm)  # type: ignore[arg-type]
        assert pattern.safe
        assert np.asarray(pattern.suppressed)[empty].any()
    assert not suppress(rises).safe


@pytest.mark.parametrize("seed", [1, *(pytest.param(s, marks=pytest.mark.deep) for s in (2, 3))])
def test_a_quick_pattern_is_safe_minimal_and_not_far_from_the_cheapest(seed: int) -> None:
    problem = cube((5, 4, 4), seed)
    quick = suppress(problem, algorithm="quick")
    assert quick.safe
    assert quick.algorithm == "quick"
    # No cell is there without a reason: each one published again leaves some level short.
    for cell in np.flatnonzero(quick.secondary).tolist():
        fewer = quick.suppressed.copy()
        fewer[cell] = False
        assert not audit_pattern(problem, fewer).safe
    best = suppress(problem, algorithm="exact", work=500)
    assert best.lower_bound <= quick.cost <= 1.5 * best.cost
    assert quick.lower_bound <= best.cost
    alone = np.zeros(problem.values.size, dtype=bool)
    alone[np.flatnonzero(problem.primary)[:2]] = True
    guarded = replace(problem, views=singleton_views(problem.values, alone))
    assert suppress(guarded, algorithm="quick").safe


def test_a_quick_pattern_explains_what_no_pattern_protects() -> None:
    problem = cube((4, 3, 3), 4)
    cell = int(np.flatnonzero(problem.primary)[0])
    frozen = ~problem.primary
    frozen[cell] = False
    found = suppress(replace(problem, frozen=frozen), algorithm="quick")
    assert not found.safe
    assert cell in [u.cell for u in found.unprotectable]
    assert "cannot be protected from an outsider" in str(found.unprotectable[0])
