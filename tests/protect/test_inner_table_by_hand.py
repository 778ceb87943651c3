"""The inner cells of a table and what adds up from them, against sums over sets and all tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.protect.totals.inner_table import InnerTable
from lustrum.protect.totals.summed import AxisParts


def axis(name: str, *members: tuple[int, ...]) -> TableAxis:
    return TableAxis(name, name, tuple(Category("".join(map(str, m)), "", m) for m in members))


ROWS = axis("b", (0, 1), (1,), (0,))  # the total first, and codes out of order
COLUMNS = axis("a", (0,), (1,), (2,), (1, 2), (0, 1, 2))  # a subtotal and a total
PLAIN = axis("c", (0,), (1,))


def cells(axes: tuple[TableAxis, ...]) -> list[list[tuple[int, ...]]]:
    """For each cell of the table, the places of the finest cells that it holds."""
    return [
        list(product(*(c.members for c in place)))
        for place in product(*(a.categories for a in axes))
    ]


@pytest.mark.parametrize(
    "axes", [(ROWS, COLUMNS), (COLUMNS, PLAIN), (PLAIN, ROWS, COLUMNS), (ROWS,)]
)
def test_every_cell_is_the_sum_of_what_it_holds(axes: tuple[TableAxis, ...]) -> None:
    rng = np.random.default_rng(len(axes))
    finest = rng.integers(0, 9, tuple(max(max(c.members) for c in a.categories) + 1 for a in axes))
    values = np.array([sum(finest[p] for p in held) for held in cells(axes)])
    values = values.reshape(tuple(len(a) for a in axes))
    inner = InnerTable.of(axes, "A method")
    assert inner.added_up(inner.take(values)).tolist() == values.tolist()
    table = Table(axes=axes, values=values)
    assert inner.counts(table).tolist() == inner.take(values).tolist()
    assert inner.possible(table) is None
    marked = rng.random(values.shape) < 0.4
    holders = np.zeros(finest.shape, dtype=np.int64)
    for held, mark in zip(cells(axes), marked.ravel(), strict=True):
        for place in held if mark else ():
            holders[place] += 1
    # The inner cells of these tables are the finest cells, sorted by code.
    assert inner.holders(marked).tolist() == holders.transpose(inner.order).tolist()


def test_structural_zeros_close_inner_cells() -> None:
    inner = InnerTable.of((PLAIN,), "A method")
    for structural, possible in (([False, True], [True, False]), ([False, False], None)):
        table = Table(axes=(PLAIN,), values=np.array([3, 0]), structural=np.array(structural))
        found = inner.possible(table)
        assert (None if found is None else found.tolist()) == possible


def test_margins_to_keep_are_those_named_or_the_totals_shown() -> None:
    inner = InnerTable.of((ROWS, COLUMNS, PLAIN), "A method")
    assert inner.cliques((("a",), ("a", "c"), ("c",), ("b",), ("c", "a"))) == ((0, 2), (1,))
    # Totals over a and over b are shown, none over c.
    assert inner.cliques(()) == ((0, 2), (1, 2))
    bare = InnerTable.of((PLAIN, axis("d", (0,), (1,))), "A method")
    assert bare.cliques(()) == ((0,), (1,))
    # A single category holds everything along its axis without being a total that is shown.
    assert InnerTable.of((axis("x", (0,)), PLAIN), "A method").cliques(()) == ((0,), (1,))
    with pytest.raises(InputError, match="does not have"):
        inner.cliques((("a", "z"),))


def test_cells_are_told_apart_by_the_axes_along_which_they_are_not_everything() -> None:
    inner = InnerTable.of((ROWS, COLUMNS), "A method")
    found = {axes: mask.tolist() for axes, mask in inner.classes()}
    part, whole = [False] * 4 + [False], [False] * 4 + [True]
    assert found == {
        (0, 1): [part, [True] * 4 + [False], [True] * 4 + [False]],
        (0,): [[True] * 4 + [False], part, part],
        (1,): [part, whole, whole],
        (): [whole, part, part],
    }
    assert [axes for axes, _ in inner.classes()] == [(0, 1), (1,), (0,), ()]
    # A category that is alone along its axis is no total.
    alone = InnerTable.of((axis("x", (0,)), PLAIN), "A method")
    assert [axes for axes, _ in alone.classes()] == [(0, 1)]


def tables(counts: np.ndarray, margins: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """All tables of whole numbers with the same sums over the given axes."""
    boxes = [range(int(counts.sum()) + 1)] * counts.size
    sums = [counts.sum(axis=tuple(set(range(counts.ndim)) - set(m))) for m in margins]
    kept = []
    for x in product(*boxes):
        if sum(x) != counts.sum():
            continue
        made = np.array(x).reshape(counts.shape)
        if all(
            (made.sum(axis=tuple(set(range(counts.ndim)) - set(m))) == s).all()
            for m, s in zip(margins, sums, strict=True)
        ):
            kept.append(made)
    return np.array(kept)


TOTALED = (axis("a", (0,), (1,), (0, 1)), axis("b", (0,), (1,), (0, 1)))


@pytest.mark.parametrize("counts", [[[2, 1], [0, 3]], [[1, 1], [1, 1]], [[0, 4], [2, 0]]])
@pytest.mark.parametrize("margins", [((0,), (1,)), ((0,),), ((0, 1),), ((),)])
def test_kept_margins_leave_each_cell_the_range_of_all_tables(
    counts: list[list[int]], margins: tuple[tuple[int, ...], ...]
) -> None:
    inner = InnerTable.of(TOTALED, "A method")
    array = np.array(counts)
    every = np.array([inner.added_up(t) for t in tables(array, margins)])
    low, high = inner.ends(array, margins)
    assert low.tolist() == every.min(axis=0).tolist()
    assert high.tolist() == every.max(axis=0).tolist()
    exact = inner.exact(margins)
    assert (low[exact] == high[exact]).all()
    assert exact[-1, -1]
    assert exact[0, -1] == exact[1, -1] == any(0 in m for m in margins)
    assert exact[-1, 0] == exact[-1, 1] == any(1 in m for m in margins)
    assert exact[0, 0] == ((0, 1) in margins)


def test_margins_that_form_a_circle_leave_bounds_that_hold() -> None:
    axes = tuple(axis(name, (0,), (1,)) for name in "abc")
    inner = InnerTable.of(axes, "A method")
    counts = np.array([[[1, 0], [0, 1]], [[1, 1], [0, 0]]])
    margins = ((0, 1), (0, 2), (1, 2))
    # Tables with the same sums over pairs of axes differ by a multiple of one pattern of signs.
    signs = (-1) ** np.indices((2, 2, 2)).sum(axis=0)
    every = np.array([t for k in range(-4, 5) if ((t := counts + k * signs) >= 0).all()])
    low, high = inner.ends(counts, margins)
    assert (low <= every.min(axis=0)).all()
    assert (high >= every.max(axis=0)).all()
    # Of two margins at a time the Fréchet bound counts what both hold beyond what they share.
    pairs = [counts.sum(axis=k, keepdims=True) for k in range(3)]
    assert (
        high.tolist()
        == np.minimum(np.minimum(*np.broadcast_arrays(pairs[0], pairs[1])), pairs[2]).tolist()
    )
    least = np.zeros_like(counts)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        shared = counts.sum(axis=(i, j), keepdims=True)
        least = np.maximum(least, pairs[i] + pairs[j] - shared)
    assert low.tolist() == least.tolist()


@pytest.mark.parametrize("margins", [((0,), (1,)), ((0,), (1,), (2,)), ((0, 1), (2,))])
@pytest.mark.parametrize("people", [[(0, 0, 0)] * 3, [(0, 0, 0), (0, 0, 0), (0, 0, 1)]])
def test_margins_of_single_axes_leave_the_range_of_all_tables(
    people: list[tuple[int, ...]], margins: tuple[tuple[int, ...], ...]
) -> None:
    inner = InnerTable.of(tuple(axis(name, (0,), (1,)) for name in "abc"), "A method")
    counts = np.zeros((2, 2, 2), dtype=np.int64)
    np.add.at(counts, tuple(np.array(people).T), 1)
    every = []
    for places in product(product(range(2), repeat=3), repeat=3):
        made = np.zeros_like(counts)
        np.add.at(made, tuple(np.array(places).T), 1)
        if all(
            (made.sum(axis=rest) == counts.sum(axis=rest)).all()
            for rest in (tuple({0, 1, 2} - set(m)) for m in margins)
        ):
            every.append(made)
    low, high = inner.ends(counts, margins)
    assert (low <= np.min(every, axis=0)).all()
    assert high.tolist() == np.max(every, axis=0).tolist()
    if {a for m in margins for a in m} == {0, 1, 2}:
        assert low.tolist() == np.min(every, axis=0).tolist()


def test_overlaps_and_totals_of_something_else_are_refused() -> None:
    with pytest.raises(InputError, match="overlap"):
        InnerTable.of((axis("x", (0, 1), (1, 2)),), "A method")
    more = axis("x", (0,), (1,), (0, 1, 2))
    with pytest.raises(InputError, match="'012' of 'x'"):
        InnerTable.of((more,), "A method")
    part = InnerTable.of((more,), "A method", partial=True)
    assert part.added_up(np.array([3, 4])).tolist() == [3, 4, 7]


def test_parts_of_an_axis_hold_each_member_once() -> None:
    parts = AxisParts.of(axis("x", (0,), (1, 2), (0, 1, 2), (0, 1, 2, 3), (1,)))
    assert parts.inner.tolist() == [0, 4]
    assert parts.held == ((0,), (1,), (0, 1), (0, 1), (1,))
    assert (parts.whole.tolist(), parts.disjoint) == ([True, False, False, False, True], True)
    overlapping = AxisParts.of(axis("x", (0, 1), (1, 2), (0, 1, 2)))
    assert (overlapping.whole.tolist(), overlapping.disjoint) == ([True, True, False], False)
    # Two parts of two members share one, so they make up three of the four.
    assert AxisParts.of(axis("x", (0, 1), (1, 2), (0, 1, 2, 3))).whole.tolist() == [
        True,
        True,
        False,
    ]
    given = AxisParts.of(axis("x", (0,), (1,), (0, 1)), [1, 0])
    assert (given.inner.tolist(), given.held) == ([1, 0], ((1,), (0,), (0, 1)))
    empty = AxisParts.of(axis("x", (0,), (), (0,)))
    assert empty.whole.all()


def test_chance_follows_from_the_records_and_nothing_else() -> None:
    keys = np.array([[7, 9, 2], [5, 1, 8]], dtype=np.uint64)
    values = np.array([[1, 2, 1], [1, 1, 3]])
    axes = (axis("a", (0,), (1,)), axis("b", (0,), (1,), (2,)))
    plain = Table(axes=axes, values=values, keys=keys)
    turned = Table(axes=axes[::-1], values=values.T, keys=keys.T)
    draws = []
    for table in (plain, turned):
        inner = InnerTable.of(table.axes, "A method")
        draws.append(inner.generator(table, None, "swap").integers(0, 2**62))
    assert draws[0] == draws[1]
    assert draws[0] == 632562597683512072  # the same in every version
    inner = InnerTable.of(axes, "A method")
    assert inner.generator(plain, None, "other").integers(0, 2**62) != draws[0]
    other = Table(axes=axes, values=values, keys=keys + np.uint64(1))
    assert inner.generator(other, None, "swap").integers(0, 2**62) != draws[0]
    mine = np.random.default_rng(1)
    assert inner.generator(plain, mine, "swap") is mine
    with pytest.raises(InputError, match="record keys"):
        inner.generator(Table(axes=axes, values=values), None, "swap")
