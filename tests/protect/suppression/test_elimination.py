"""Elimination beside one in fractions that publishes cell after cell, and ranges that are repaired."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import lustrum.protect.suppression.solve as solving
from examples import examples
from lustrum.model import InputError
from lustrum.protect.suppression import (
    AxisSums,
    SuppressionProblem,
    audit_pattern,
    choose,
    coalition,
    singleton_views,
    suppress,
)
from lustrum.protect.suppression.elimination import pattern as by_elimination
from lustrum.protect.suppression.elimination import publish
from lustrum.protect.suppression.elimination.layers import layers_of
from lustrum.protect.suppression.elimination.publish import undisclosed_pattern
from lustrum.protect.suppression.problem import ContributorView
from lustrum.protect.suppression.search.attacks import attack
from lustrum.protect.suppression.search.attacks.attack import (
    FlowAttacks,
    ProgramAttacks,
    attacks_on,
)
from lustrum.protect.suppression.search.attacks.local import LocalPrograms
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from protect.suppression.test_boxes import FLAT, TREE, table
from protect.suppression.test_merge import chained
from protect.suppression.test_optimum import FLAT2, FLAT3, NESTED, OVERLAP, Sums, optimum, small
from protect.suppression.test_suppress import three_way, two_way

TABLES: tuple[tuple[Sums, ...], ...] = (
    (FLAT3, FLAT3),
    (NESTED, FLAT3),
    (FLAT2, FLAT2, FLAT2),
    (NESTED, NESTED),
    (OVERLAP, FLAT3),
)


def linked(seed: int) -> SuppressionProblem:
    """Two tables that share a margin: their cells are one problem."""
    rng = np.random.default_rng(seed)
    one, first = two_way(rng.integers(1, 20, (2, 3)))
    parts = np.array([rng.multinomial(total, [0.5, 0.5]) for total in one[8:11]]).T
    two, second = two_way(parts)
    relations = first + [(t + one.size, [p + one.size for p in own]) for t, own in second]
    # The totals by column are the same cells; the second copy is tied to the first.
    relations += [(8 + k, [one.size + 8 + k]) for k in range(3)]
    values = np.concatenate([one, two])
    primary = rng.choice(np.flatnonzero(values[:8] > 0), 2, replace=False)
    level = np.minimum(3, values[primary])
    return SuppressionProblem.of(values, relations, primary, level)


def problem_of(kind: int, seed: int) -> SuppressionProblem:
    """A small problem of one of several kinds."""
    if kind < len(TABLES):
        return small(TABLES[kind], seed)
    return linked(seed) if kind == len(TABLES) else chained(seed)


KINDS = st.integers(0, len(TABLES) + 1)


def disclosed(matrix: np.ndarray, suppressed: np.ndarray) -> set[int]:
    """The cells that follow from the relations: their unit vectors are combinations of the rows."""
    rows = [
        {int(c): Fraction(int(row[c])) for c in np.flatnonzero(row * suppressed)} for row in matrix
    ]
    done: dict[int, dict[int, Fraction]] = {}
    for row in rows:
        for cell in list(row):
            if cell in done and row.get(cell):
                times = row[cell]
                for other, weight in done[cell].items():
                    row[other] = row.get(other, Fraction(0)) - times * weight
        row = {c: w for c, w in row.items() if w}
        if not row:
            continue
        cell = min(row)
        row = {c: w / row[cell] for c, w in row.items()}
        for other in done.values():
            times = other.get(cell, Fraction(0))
            if times:
                for c, w in row.items():
                    other[c] = other.get(c, Fraction(0)) - times * w
        done[cell] = row
        done = {pivot: {c: w for c, w in own.items() if w} for pivot, own in done.items()}
    return {cell for cell, row in done.items() if len(row) == 1}


def published_one_by_one(problem: SuppressionProblem) -> np.ndarray:
    """Publish the dearest cell first, unless a primary cell would follow that did not before."""
    matrix = problem.relations.toarray()
    moves = ~problem.frozen & (problem.low < problem.high)
    mask = moves.copy()
    asked = {
        int(c)
        for c in np.flatnonzero(problem.primary & moves)
        if problem.upper[c] + problem.lower[c] + problem.sliding[c] > 0
    }
    asked -= disclosed(matrix, mask)
    choice = np.flatnonzero(problem.choice & moves)
    for cell in choice[np.argsort(-problem.cost[choice], kind="stable")].tolist():
        mask[cell] = False
        if asked & disclosed(matrix, mask):
            mask[cell] = True
    return mask | problem.fixed


@settings(max_examples=examples(12, 200), deadline=None)
@given(KINDS, st.integers(0, 5000))
def test_the_pattern_is_that_of_publishing_one_by_one_in_fractions(kind: int, seed: int) -> None:
    problem = problem_of(kind, seed)
    tasks = Tasks.of(problem)
    expected = published_one_by_one(problem)
    every = attacks_on(tasks)
    for attacks in {type(every): every, ProgramAttacks: ProgramAttacks(tasks)}.values():
        found = undisclosed_pattern(attacks)
        assert found is not None
        assert np.array_equal(found.suppressed, expected)


@pytest.mark.parametrize("inner", [(6, 7), (3, 3, 4)])
def test_larger_tables_are_published_as_one_by_one(inner: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    make = two_way if len(inner) == 2 else three_way
    values, relations = make(rng.integers(1, 100, inner))
    primary = rng.choice(np.flatnonzero(values < 100), 4, replace=False)
    problem = SuppressionProblem.of(values, relations, primary, [1] * 4)
    attacks = attacks_on(Tasks.of(problem))
    assert isinstance(attacks, FlowAttacks if len(inner) == 2 else ProgramAttacks)
    found = undisclosed_pattern(attacks)
    assert found is not None
    # Against the rank of the relations, in floating-point numbers.
    matrix = problem.relations.toarray().astype(float)

    def follows(mask: np.ndarray) -> bool:
        rank = np.linalg.matrix_rank(matrix[:, mask])
        return any(
            np.linalg.matrix_rank(matrix[:, mask & (np.arange(mask.size) != cell)]) < rank
            for cell in primary
        )

    mask = np.ones(values.size, dtype=np.bool_)
    choice = np.flatnonzero(problem.choice)
    for cell in choice[np.argsort(-problem.cost[choice], kind="stable")].tolist():
        mask[cell] = False
        mask[cell] = follows(mask)
    assert np.array_equal(found.suppressed, mask)


@settings(max_examples=examples(5, 100), deadline=None)
@given(KINDS, st.integers(0, 5000), st.booleans())
def test_after_repair_the_audit_finds_all_levels_kept_for_every_attacker(
    kind: int, seed: int, sliding: bool
) -> None:
    problem = problem_of(kind, seed)
    rng = np.random.default_rng(seed)
    values = problem.values
    alone = np.isin(np.arange(values.size), rng.choice(values.size, 3, replace=False))
    views = singleton_views(values, alone & (values > 0))
    some = rng.choice(values.size, 2, replace=False)
    holding = ContributorView("a holding", some, values[some] // 2, problem.high[some])
    views = (*views, holding)
    if len(views) > 1:
        views = (*views, coalition("two of them", views[:2]))
    width = np.where(problem.primary, problem.upper + problem.lower + 2, 0)
    problem = replace(problem, views=views, sliding=width if sliding else problem.sliding)
    pattern = suppress(problem, algorithm="elimination")
    suppressed = np.asarray(pattern.suppressed)
    assert not (suppressed & problem.frozen).any()
    lost = {cell.cell for cell in pattern.unprotectable}
    # Cells that no pattern protects are explained; all others keep their levels.
    audit = audit_pattern(problem, suppressed)
    assert {cell for cell, _ in audit.short} <= lost
    assert pattern.safe == (audit.safe and not lost)
    everything = audit_pattern(problem, ~problem.frozen)
    assert bool(lost) == bool(everything.short)


@settings(max_examples=examples(4, 60), deadline=None)
@given(st.integers(0, len(TABLES) - 1), st.integers(0, 400))
def test_no_pattern_costs_less_than_the_bound_nor_this_one_less_than_the_optimum(
    kind: int, seed: int
) -> None:
    problem = problem_of(kind, seed)
    pattern = suppress(problem, algorithm="elimination")
    if not pattern.unprotectable:
        least = optimum(problem)
        assert pattern.algorithm == "elimination" or pattern.cost == 0
        assert pattern.lower_bound <= least + 1e-6
        assert least <= pattern.cost + 1e-6


def test_only_cells_of_two_layers_are_left_to_decide_about() -> None:
    values, relations = two_way(np.random.default_rng(3).integers(1, 50, (5, 6)))
    problem = SuppressionProblem.of(values, relations, [0, 8], [1, 1])
    attacks = attacks_on(Tasks.of(problem))
    assert isinstance(attacks, FlowAttacks)
    rising = np.argsort(np.where(problem.primary, -1, problem.cost), kind="stable")
    forests = layers_of(attacks, rising, 3)
    bases = layers_of(ProgramAttacks(attacks.tasks), rising, 3)
    assert forests is not None
    assert bases is not None
    # Five rows and six columns with a total each make twelve independent relations.
    assert np.bincount(forests).tolist() == [12, 12, 12, 6]
    assert np.array_equal(forests, bases)


@pytest.mark.parametrize("axes", [(FLAT, FLAT), (TREE, FLAT), (TREE, TREE), (FLAT, FLAT, FLAT)])
def test_the_order_of_relations_and_workers_do_not_matter(axes: tuple[AxisSums, ...]) -> None:
    problem = table(axes, 4)
    order = np.random.default_rng(1).permutation(problem.relations.shape[0])
    turned = replace(problem, relations=sparse.csr_array(problem.relations[order]))
    first = suppress(problem, algorithm="elimination", workers=1)
    second = suppress(turned, algorithm="elimination", workers=2)
    assert first.safe
    assert np.array_equal(first.suppressed, second.suppressed)


def test_a_network_repaired_among_few_cells_is_repaired_among_all_where_they_do_not_suffice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values, relations = two_way(np.random.default_rng(8).integers(1, 60, (8, 9)))
    problem = SuppressionProblem.of(values, relations, [0, 11, 33], [40, 30, 20], [0, 0, 0])
    whole = suppress(problem, algorithm="elimination")
    told: list[str] = []
    monkeypatch.setattr(by_elimination, "_FEW", 0)
    few = suppress(
        problem, algorithm="elimination", progress=lambda what, cost, bound: told.append(what)
    )
    assert told.count("repaired") == 1
    assert few.safe
    assert whole.safe
    monkeypatch.setattr(by_elimination, "carriers", lambda attacks, layers: problem.fixed)
    alone = suppress(problem, algorithm="elimination")
    assert np.array_equal(alone.suppressed, whole.suppressed)


@settings(max_examples=examples(8, 60), deadline=None)
@given(st.integers(2, len(TABLES) - 1), st.integers(0, 5000))
def test_attacks_on_parts_of_a_pattern_reach_as_far_as_on_all_of_it(kind: int, seed: int) -> None:
    problem = problem_of(kind, seed)
    tasks = Tasks.of(problem)
    whole, parts = ProgramAttacks(tasks), ProgramAttacks(tasks)
    parts._local = LocalPrograms(parts.rows)
    every = np.arange(len(tasks))
    rng = np.random.default_rng(seed)
    for share in (0.2, 0.5, 1.0):
        mask = problem.fixed | (~problem.frozen & (rng.random(len(problem)) < share))
        one, other = whole.reach(every, mask), parts.reach(every, mask)
        assert np.allclose(one[0], other[0], atol=1e-6)
        for moved in other[1]:
            assert mask[moved].all()
    for task in every.tolist():
        cells = parts.cheapest(task, problem.cost, ~problem.frozen)
        assert (cells is None) == (whole.cheapest(task, problem.cost, ~problem.frozen) is None)
        if cells is not None:
            mask = problem.fixed.copy()
            mask[cells] = True
            assert whole.reach(np.array([task]), mask)[0][0] > 1 - 1e-6


def test_large_tables_with_hierarchies_are_repaired_part_by_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attack, "_LOCAL", 10)
    monkeypatch.setattr(by_elimination, "_LARGE", 10)
    problem = table((TREE, TREE), 6)
    told: list[str] = []
    found = suppress(
        problem, algorithm="elimination", progress=lambda what, cost, bound: told.append(what)
    )
    assert "cleaned up" in told
    assert found.safe
    assert audit_pattern(problem, np.asarray(found.suppressed)).safe


def test_more_work_makes_the_pattern_of_a_network_no_dearer() -> None:
    values, relations = two_way(np.random.default_rng(2).integers(1, 60, (7, 8)))
    problem = SuppressionProblem.of(values, relations, [0, 11, 22], [9, 8, 7], [0, 0, 0])
    told: list[tuple[str, float]] = []
    costs = [
        suppress(
            problem,
            algorithm="elimination",
            work=work,
            progress=lambda what, cost, bound: told.append((what, cost)),
        ).cost
        for work in (0, 50, 2000)
    ]
    assert costs[0] == dict(told)["cleaned up"]
    assert costs[0] >= costs[1] >= costs[2] >= suppress(problem, algorithm="exact").cost


def test_what_was_suppressed_before_is_kept_where_it_costs_little() -> None:
    problem = table((FLAT, FLAT), 2)
    first = suppress(problem, algorithm="elimination")
    again = suppress(problem, algorithm="elimination", previous=first.suppressed, discount=1.0)
    assert again.safe
    assert again.changes is not None
    assert not again.changes.added.size


def test_a_cell_that_cannot_be_protected_is_explained() -> None:
    problem = table((TREE, TREE), 2)
    found = suppress(replace(problem, frozen=~problem.primary), algorithm="elimination")
    assert not found.safe
    assert found.unprotectable


def test_relations_that_fill_in_too_much_are_refused_with_a_way_forward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(publish, "_STEPS", 10)
    with pytest.raises(InputError, match="use 'boxes' or 'quick'"):
        suppress(table((FLAT, FLAT, FLAT), 1), algorithm="elimination")
    monkeypatch.setattr(choose, "_LARGE", 10)
    with pytest.raises(InputError, match="more than two variables fill in too much"):
        suppress(table((FLAT, FLAT, FLAT), 1), algorithm="elimination")


@pytest.mark.parametrize(
    ("axes", "taken"),
    [((FLAT, FLAT), "elimination"), ((TREE, FLAT), "elimination"), ((TREE, TREE), "boxes")],
)
def test_large_tables_are_eliminated_where_they_are_networks(
    axes: tuple[AxisSums, ...], taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "_LARGE", 10)
    monkeypatch.setattr(choose, "_APART", 10)
    pattern = suppress(table(axes, 3))
    assert pattern.safe
    assert pattern.algorithm == taken
    assert "more than 10 cells" in pattern.why


def test_sub_tables_of_a_large_table_with_two_axes_are_protected_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choose, "_LARGE", 10)
    monkeypatch.setattr(solving, "_ON", 10)
    problem = table((TREE, TREE), 3)
    pattern = suppress(problem)
    assert pattern.safe
    assert pattern.algorithm == "decomposition"
    assert pattern.cost <= suppress(problem, algorithm="boxes").cost
    assert suppress(table((TREE, TREE, FLAT), 3)).algorithm == "boxes"
