"""Quick patterns, the choice between algorithms, and attacks on parts of a pattern."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

import lustrum.protect.suppression.solve as solving
from examples import examples
from lustrum.model import InputError
from lustrum.protect.suppression import (
    AxisSums,
    Suppression,
    SuppressionProblem,
    audit_pattern,
    choose,
    singleton_views,
    suppress,
)
from lustrum.protect.suppression.problem import ContributorView
from lustrum.protect.suppression.search import start
from lustrum.protect.suppression.search.attacks import attack
from lustrum.protect.suppression.search.attacks.attack import LocalPrograms, ProgramAttacks
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from protect.suppression.test_boxes import FLAT, TREE, table
from protect.suppression.test_merge import chained
from protect.suppression.test_optimum import FLAT2, FLAT3, NESTED, OVERLAP, Sums, optimum, small
from protect.suppression.test_suppress import two_way

TABLES: tuple[tuple[Sums, ...], ...] = (
    (FLAT3, FLAT3), (NESTED, FLAT3), (FLAT2, FLAT2, FLAT2), (NESTED, NESTED), (OVERLAP, FLAT3),
)  # fmt: skip


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


@settings(max_examples=examples(5, 100), deadline=None)
@given(KINDS, st.integers(0, 5000), st.booleans())
def test_a_quick_pattern_keeps_all_levels_for_every_attacker(
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
    width = np.where(problem.primary, problem.upper + problem.lower + 2, 0)
    problem = replace(problem, views=views, sliding=width if sliding else problem.sliding)
    pattern = suppress(problem, algorithm="quick")
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
    pattern = suppress(problem, algorithm="quick")
    assume(not pattern.unprotectable)
    least = optimum(problem)
    assert pattern.lower_bound <= least + 1e-6
    assert least <= pattern.cost + 1e-6


@pytest.mark.parametrize("axes", [(FLAT, FLAT), (TREE, FLAT), (TREE, TREE), (FLAT, FLAT, FLAT)])
@pytest.mark.parametrize("algorithm", ["quick", "exact"])
def test_the_order_of_relations_and_workers_do_not_matter(
    axes: tuple[AxisSums, ...], algorithm: Any
) -> None:
    problem = table(axes, 4)
    order = np.random.default_rng(1).permutation(problem.relations.shape[0])
    turned = replace(problem, relations=sparse.csr_array(problem.relations[order]))
    first = suppress(problem, algorithm=algorithm, workers=1)
    second = suppress(turned, algorithm=algorithm, workers=2)
    assert first.safe
    assert np.array_equal(first.suppressed, second.suppressed)


def test_a_quick_pattern_of_a_large_network_uses_few_cells_where_they_suffice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values, relations = two_way(np.random.default_rng(8).integers(1, 60, (8, 9)))
    problem = SuppressionProblem.of(values, relations, [0, 11, 33], [40, 30, 20], [0, 0, 0])
    whole = suppress(problem, algorithm="quick")
    monkeypatch.setattr(start, "_NARROWED", 0)
    monkeypatch.setattr(start, "_LAYERS", 2)
    few = suppress(problem, algorithm="quick")
    assert few.safe
    assert whole.safe
    # The cells that are left must be able to carry the levels; otherwise all are looked at.
    monkeypatch.setattr(start, "_carriers", lambda attacks: np.flatnonzero(problem.fixed))
    alone = suppress(problem, algorithm="quick")
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


def test_large_tables_with_hierarchies_are_attacked_part_by_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attack, "_LOCAL", 10)
    monkeypatch.setattr(solving, "_ON", 10)
    problem = table((TREE, TREE), 6)
    found = suppress(problem)
    assert found.safe
    assert audit_pattern(problem, np.asarray(found.suppressed)).safe


def test_more_work_makes_the_pattern_of_a_network_no_dearer() -> None:
    values, relations = two_way(np.random.default_rng(2).integers(1, 60, (7, 8)))
    problem = SuppressionProblem.of(values, relations, [0, 11, 22], [9, 8, 7], [0, 0, 0])
    told: list[tuple[str, float]] = []
    costs = [
        suppress(
            problem,
            algorithm="quick",
            work=work,
            progress=lambda what, cost, bound: told.append((what, cost)),
        ).cost
        for work in (0, 50, 2000)
    ]
    assert costs[0] == dict(told)["cleaned up"]
    assert costs[0] >= costs[1] >= costs[2] >= suppress(problem, algorithm="exact").cost


def test_what_was_suppressed_before_is_kept_where_it_costs_little() -> None:
    problem = table((FLAT, FLAT), 2)
    first = suppress(problem, algorithm="quick")
    again = suppress(problem, algorithm="quick", previous=first.suppressed, discount=1.0)
    assert again.safe
    assert not again.changes.added.size


@pytest.mark.parametrize(
    ("axes", "taken"), [((FLAT, FLAT), "quick"), ((TREE, FLAT), "quick"), ((TREE, TREE), "boxes")]
)
def test_large_tables_get_quick_patterns_where_they_are_networks(
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
    assert pattern.algorithm == "exact"
    assert "from the top down" in pattern.why
    assert pattern.cost <= suppress(problem, algorithm="boxes").cost
    assert suppress(table((TREE, TREE, FLAT), 3)).algorithm == "boxes"


@pytest.mark.parametrize(
    ("word", "now"), [("decomposition", "exact"), ("elimination", "quick"), ("heuristic", "quick")]
)
def test_earlier_names_of_algorithms_warn_and_stand_for_what_took_their_place(
    word: str, now: str
) -> None:
    problem = table((TREE, TREE), 1)
    with pytest.warns(FutureWarning, match=f"'{word}' of suppression is now '{now}'") as told:
        pattern = suppress(problem, algorithm=word)  # type: ignore[arg-type]
    assert len(told) == 1
    assert np.array_equal(pattern.suppressed, suppress(problem, algorithm=now).suppressed)  # type: ignore[arg-type]
    with pytest.warns(FutureWarning, match="name that one"):
        spec = Suppression(algorithm=word)  # type: ignore[arg-type]
    assert spec == Suppression(algorithm=now)  # type: ignore[arg-type]
    assert spec.to_mapping()["algorithm"] == now
    with pytest.raises(InputError, match="'algorithm' of suppression cannot be 'best'"):
        suppress(problem, algorithm="best")  # type: ignore[arg-type]
