"""Additivity with the least change: by a second solver, by enumeration, and with bounds that hold."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.model.channel import MatrixChannel
from lustrum.model.table import inner_cells
from lustrum.numeric.structure import Structure, complete_relations
from lustrum.protect.cell_key import Additive, CellKey, restore
from lustrum.protect.cell_key.additive import _Problem, descend, inner_places, widened
from lustrum.protect.perturbation.design import design
from small import with_total, with_totals
from tabulate.worlds import quick

LIVELY = MatrixChannel([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]], residue_base=1)


def noisy(
    shape: tuple[int, ...], rng: np.random.Generator, size: int = 2
) -> tuple[tuple[TableAxis, ...], Any]:
    """A table whose every cell was moved by itself."""
    axes = tuple(with_total(f"v{i}", n) for i, n in enumerate(shape))
    true = with_totals(rng.poisson(4, shape))
    return axes, np.maximum(true + rng.integers(-size, size + 1, true.shape), 0)


def least_cost(axes: Any, y: Any, shift: int, fixed: Any = None) -> float | None:
    """The same program by scipy's solver: the cost, or None where nothing is allowed."""
    a = Structure.of_tables([axes]).relations.matrix.astype(float)
    flat = y.ravel().astype(float)
    free = np.ones(flat.size) if fixed is None else (~fixed.ravel()).astype(float)
    top = np.concatenate([free * shift, free * np.minimum(flat, shift)])
    found = optimize.milp(
        np.ones(2 * flat.size),
        constraints=optimize.LinearConstraint(sparse.hstack([a, -a]).tocsr(), *([-(a @ flat)] * 2)),
        bounds=optimize.Bounds(0, top),
        integrality=np.ones(2 * flat.size),
        options={"mip_rel_gap": 0},
    )
    return None if found.x is None else float(found.fun)


def adds_up(axes: Any, z: Any) -> bool:
    relations = complete_relations(Structure.of_tables([axes]))
    return not (relations.matrix.astype(np.int64) @ z.ravel()).any()


@given(
    shape=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    seed=st.integers(0, 10_000),
    shift=st.integers(1, 6),
)
@quick(30)
def test_the_change_is_the_least_by_a_second_solver(
    shape: list[int], seed: int, shift: int
) -> None:
    rng = np.random.default_rng(seed)
    axes, y = noisy(tuple(shape), rng)
    found = restore(axes, y, max_shift=shift)
    assert adds_up(axes, found.values)
    assert (found.values >= 0).all()
    expected = least_cost(axes, y, shift)
    if expected is None:
        assert found.way == "sums"
        inner = inner_cells(axes)
        assert (found.values[inner] == y[inner]).all()
        return
    assert found.way in ("linear", "integer")
    assert found.optimal
    assert found.cost == pytest.approx(expected)
    assert found.cost == pytest.approx(float(np.abs(found.values - y).sum()))
    assert np.abs(found.values - y).max() <= shift
    assert found.moved == pytest.approx((found.values != y).mean())


def test_the_least_change_of_a_line_by_enumeration() -> None:
    axes = (with_total("a", 2),)
    for y in itertools.product(range(4), range(4), range(7)):
        costs = [
            abs(a - y[0]) + abs(b - y[1]) + abs(a + b - y[2])
            for a, b in itertools.product(range(9), repeat=2)
        ]
        found = restore(axes, np.array(y), max_shift=9)
        assert found.cost == min(costs)
        assert found.values[0] + found.values[1] == found.values[2]


def test_tables_of_two_dimensions_need_no_branching() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        axes, y = noisy((5, 6), rng, 3)
        assert restore(axes, y, max_shift=20).way == "linear"


def test_what_adds_up_already_stays() -> None:
    axes = (with_total("a", 2), with_total("b", 3))
    y = with_totals(np.array([[1, 2, 3], [0, 5, 1]]))
    found = restore(axes, y, max_shift=2)
    assert found.values.tolist() == y.tolist()
    assert (found.cost, found.moved, found.optimal) == (0.0, 0.0, True)


def test_cells_that_cannot_hold_anybody_stay_empty() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        axes, y = noisy((3, 3), rng)
        fixed = np.zeros(y.shape, bool)
        fixed[0, 0] = fixed[1, 2] = True
        y = np.where(fixed, 0, y)
        found = restore(axes, y, max_shift=9, structural=fixed)
        assert not found.values[fixed].any()
        assert adds_up(axes, found.values)
        assert found.cost == pytest.approx(least_cost(axes, y, 9, fixed))


def test_the_search_for_large_tables_is_additive_within_the_shift_and_near_the_best() -> None:
    rng = np.random.default_rng(3)
    ratios = []
    for _ in range(12):
        axes, y = noisy((4, 4, 3), rng)
        exact = restore(axes, y, max_shift=6)
        quick_one = restore(axes, y, max_shift=6, large=0)
        assert adds_up(axes, quick_one.values)
        assert quick_one.way in ("search", "sums")
        assert (quick_one.values >= 0).all()
        if quick_one.way == "search":
            assert np.abs(quick_one.values - y).max() <= 6
            assert quick_one.cost >= exact.cost - 1e-9
            ratios.append(quick_one.cost / exact.cost)
    assert len(ratios) >= 6
    assert np.mean(ratios) < 1.5


def test_the_search_ends_where_no_single_step_helps_compiled_or_not() -> None:
    rng = np.random.default_rng(6)
    for _ in range(10):
        axes, y = noisy((3, 3), rng, 3)
        problem = _Problem(axes, y.ravel(), np.zeros(y.size, bool), 50)
        matrix = problem.structure.matrix.tocsc()
        inner = inner_places(axes, problem.structure)
        found = []
        for loop in (descend, descend.py_func):  # type: ignore[attr-defined]
            z = problem._sums().copy()
            starts, rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
            loop(starts, rows, inner, y.ravel(), problem.fixed, 50, 1e3, z)
            found.append(z.tolist())
        assert found[0] == found[1]
        cost = np.abs(z - y.ravel()).sum()
        for j, step in itertools.product(range(inner.size), (1, -1)):
            moved = z + step * matrix[:, [j]].toarray().ravel().astype(np.int64)
            assert moved.min() < 0 or np.abs(moved - y.ravel()).sum() >= cost


def test_subtotals_add_up_too() -> None:
    sets = [{0}, {1}, {2}, {3}, {0, 1}, {2, 3}, {0, 1, 2, 3}]
    tree = TableAxis("a", "a", tuple(Category(str(s), "", tuple(sorted(s))) for s in sets))
    rng = np.random.default_rng(4)
    for large in (10**6, 0):
        for _ in range(20):
            y = rng.integers(0, 9, (7, 4))
            found = restore((tree, with_total("b", 3)), y, max_shift=30, large=large)
            assert adds_up((tree, with_total("b", 3)), found.values)


def test_groups_that_are_no_sums_of_inner_cells_need_room() -> None:
    sets = [{0, 1}, {1, 2}, {0, 1, 2}, {1}]
    odd = TableAxis("a", "a", tuple(Category(str(s), "", tuple(sorted(s))) for s in sets))
    y = np.array([5, 5, 5, 1])
    found = restore((odd,), y, max_shift=4)
    assert found.values[0] + found.values[1] == found.values[2] + found.values[3]
    with pytest.raises(InputError, match="allow a larger shift"):
        restore((odd,), y, max_shift=0)


@pytest.mark.parametrize("channel", [design(2, 1.0), design(3, 1.5, (1,)), LIVELY])
@pytest.mark.parametrize("shift", [0, 1, 3])
def test_widened_bounds_are_the_union_over_all_shifts(channel: MatrixChannel, shift: int) -> None:
    published = np.arange(25)
    low, high = widened(published, channel, shift)
    for z in published.tolist():
        behind = [
            n
            for n in range(60)
            for p in channel.transitions(np.array([n])).published.tolist()
            if abs(p - z) <= shift
        ]
        if behind:
            assert (low[z], high[z]) == (min(behind), max(behind))


@given(seed=st.integers(0, 10_000), shift=st.integers(0, 4), zeros=st.booleans())
@quick(30)
def test_bounds_of_an_additive_release_hold_whatever_way_it_took(
    seed: int, shift: int, zeros: bool
) -> None:
    rng = np.random.default_rng(seed)
    axes = (with_total("a", 3), with_total("b", 3))
    inner = rng.poisson(2, (3, 3))
    keys = np.where(inner > 0, rng.integers(0, 2**64, (3, 3), dtype=np.uint64), 0)
    table = Table(axes=axes, values=with_totals(inner), keys=with_totals(keys))
    ptable: Any = LIVELY if zeros else design(3, 1.5, (1,))
    method = CellKey(ptable=ptable, totals=Additive(max_shift=shift))
    release = method.apply(table, rng if zeros else None)
    assert adds_up(axes, release.published)
    assert release.channel is None
    assert ((release.least <= table.values) & (table.values <= release.most)).all()
    assert any(f"at most {shift}" in note for note in release.notes)
    assert release.method["max_shift"] == shift


def test_the_same_table_is_restored_alike_every_time() -> None:
    rng = np.random.default_rng(5)
    axes, y = noisy((4, 3, 3), rng)
    assert len({restore(axes, y, max_shift=8).values.tobytes() for _ in range(5)}) == 1


@pytest.mark.parametrize(("more", "message"), [({"max_shift": -1}, "whole number from 0 up")])
def test_wrong_words_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        restore((with_total("a", 2),), np.array([1, 2, 3]), **more)
