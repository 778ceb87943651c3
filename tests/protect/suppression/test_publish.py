"""Patterns by publishing: the space of deviations, joint witnesses, and what attempts in vain teach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import linalg, sparse

from examples import examples
from lustrum.numeric.solve import deviations
from lustrum.numeric.solve.cutting import Cut
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.protect.suppression import SuppressionProblem, singleton_views, suppress
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.search.attacks.attack import ProgramAttacks
from lustrum.protect.suppression.search.attacks.cuts import Needs, Slack
from lustrum.protect.suppression.search.attacks.space import DeviationSpace, deviation_basis
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.greedy import Publisher
from lustrum.protect.suppression.search.start import published_pattern


def cube(shape: tuple[int, ...], seed: int, share: float = 0.1) -> SuppressionProblem:
    """A table with all totals, some of its inner cells primary."""
    rng = np.random.default_rng(seed)
    full = rng.integers(5, 200, shape)
    for axis in range(len(shape)):
        full = np.concatenate([full, full.sum(axis=axis, keepdims=True)], axis=axis)
    number = np.arange(full.size).reshape(full.shape)
    relations = []
    for axis in range(len(shape)):
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
    one = space.groups(np.arange(5), np.random.default_rng(0))
    assert one[3] == one[4]
    assert len(set(one.tolist())) == 4


@pytest.mark.parametrize("seed", range(3))
def test_published_patterns_are_safe_and_need_every_cell(seed: int) -> None:
    problem = cube((4, 4, 3), seed)
    publisher = Publisher.of(Tasks.of(problem), np.arange(len(problem)), 500)
    found = publisher.first()
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
    found = publisher.first()
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


@pytest.mark.parametrize("seed", range(3))
def test_the_pattern_does_not_depend_on_which_basis_the_machine_finds(seed: int) -> None:
    # Another library for linear algebra finds another orthonormal basis of the same space.
    plain = cube((4, 4, 3), seed, 0.15)
    problem = plain.with_cost(np.ones(len(plain)))  # many groups cost the same
    tasks, cells = Tasks.of(problem), np.arange(len(problem))
    found = []
    for turn in range(3):
        publisher = Publisher.of(tasks, cells, 500)
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
    found = publisher.first()
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
    bound = SuppressionProblem.of(problem.values, problem.relations, [cell], [1], frozen=others)
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


@settings(max_examples=examples(5, 32), deadline=None)
@given(st.integers(0, 10_000))
def test_every_safe_pattern_satisfies_what_was_learnt(seed: int) -> None:
    problem = cube((3, 3, 3), seed, 0.12)
    tasks = Tasks.of(problem)
    needs = Needs(tasks)
    plain = len(needs.cuts)
    publisher = Publisher.of(tasks, np.arange(len(problem)), 500, needs)
    best = publisher.first()
    assume(best is not None)
    for _ in range(3):
        publisher.again(best)
    assert plain > 0
    luck = np.random.default_rng(seed)
    safe = 0
    for share in np.linspace(0.2, 0.9, 12):
        pattern = problem.fixed | (publisher.pattern(best) & (share > 0.5))
        pattern |= luck.random(len(problem)) < share
        if not audit_pattern(problem, pattern).safe:
            continue
        safe += 1
        for cut in needs.cuts:
            assert cut.lacks(pattern.astype(np.float64)) < 1e-6
    assert safe > 0


def test_slack_refuses_exactly_what_violates_an_inequality() -> None:
    problem = cube((3, 3), 1, 0.3)
    needs = Needs(Tasks.of(problem))
    cells = np.arange(len(problem))
    luck = np.random.default_rng(5)
    for turn in range(60):
        # The later inequalities are learnt while the slack is in use.
        if turn % 2:
            columns = np.sort(luck.choice(len(problem), 5, replace=False))
            needs.cuts.append(Cut(columns.astype(np.intp), luck.uniform(0.2, 1.0, 5), 1.0))
        if turn % 20 == 0:
            shut = luck.random(len(problem)) < 0.1
            slack = Slack(needs, cells, shut)
        shut = shut | (luck.random(len(problem)) < 0.02)
        slack.publish(shut)
        some = luck.choice(len(problem), 2, replace=False)
        open_cells = (~shut).astype(np.float64)
        before = [cut.lacks(open_cells) for cut in needs.cuts]
        open_cells[some] = 0.0
        after = [cut.lacks(open_cells) for cut in needs.cuts]
        forbidden = any(b > 1e-5 and b > a for a, b in zip(before, after, strict=True))
        places = some[~shut[some]]
        assert slack.allowed([places], 2) == ([] if forbidden else [0])
        # A second group is judged as if the first were published already.
        if not forbidden and places.size == 2:
            assert slack.allowed([places[:1], places[1:]], 2) == [0, 1]
            assert slack.allowed([places[:1], places[1:]], 1) == [0]


@pytest.mark.parametrize("seed", [5, 9])
def test_a_pattern_is_given_up_only_if_it_costs_more_than_the_limit(seed: int) -> None:
    problem = cube((4, 4, 4), seed, 0.12)
    tasks = Tasks.of(problem)
    publisher = Publisher.of(tasks, np.arange(len(problem)), 500)
    best = publisher.first()
    assert best is not None
    given_up = 0
    for number in range(8):
        made = []
        limits = (np.inf, best.cost, 0.9 * best.cost)
        for limit in limits:
            publisher.luck = np.random.default_rng(number)
            made.append(publisher.again(best, limit))
        plain = made[0]
        assert plain is not None
        for limit, other in zip(limits[1:], made[1:], strict=True):
            if other is None:
                given_up += 1
                assert plain.cost > limit
            else:
                assert (other.shut == plain.shut).all()
    assert given_up > 0


def test_patterns_made_anew_in_both_ways_are_safe_and_repeatable() -> None:
    problem = cube((5, 5, 5), 4, 0.1)
    point = np.random.default_rng(1).random(len(problem))
    made = []
    for _ in range(2):
        attacks = ProgramAttacks(Tasks.of(problem))
        state, first = published_pattern(attacks, 1, lambda what, cost, bound: None)
        assert first is not None
        patterns, ways = [state.suppressed], set()
        for _ in range(8):
            turns = list(first.anew._turns)
            other = first.anew.pattern(patterns[-1], point)
            patterns.append(other.suppressed)
            ways.add(int(first.anew._turns[1] > turns[1]))
        assert ways == {0, 1}
        made.append(np.array(patterns))
    assert (made[0] == made[1]).all()
    assert len({row.tobytes() for row in made[0]}) > 2
    for pattern in made[0]:
        assert audit_pattern(problem, pattern).safe


def test_a_program_that_goes_in_circles_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    luck = np.random.default_rng(3)
    matrix = sparse.csr_array(luck.choice([-1, 0, 0, 1], (6, 15)))
    ends = luck.uniform(0.5, 3.0, (8, 15))

    def reaches(program: DeviationProgram) -> list[float]:
        every = matrix.T.tocsr()
        return [program.reasons(every, k, (k, 1, -e, e, 9.0))[0] for k, e in enumerate(ends)]

    plain = DeviationProgram(matrix)
    expected = reaches(plain)
    assert plain.restarts == 0
    monkeypatch.setattr(deviations, "_LEAST_PIVOTS", 0)
    monkeypatch.setattr(deviations, "_PIVOTS_EACH", 0)
    short = DeviationProgram(matrix)
    assert np.allclose(reaches(short), expected)
    assert short.restarts > 0
