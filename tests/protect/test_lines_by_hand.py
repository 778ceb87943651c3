"""Bounds narrowed along lines, against all tables within them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lustrum.model import Category, TableAxis
from lustrum.protect.totals.safe import (
    added_up,
    line_totals,
    narrow_lines,
    narrow_relations,
    pinned,
)


def axis(*members: tuple[int, ...]) -> TableAxis:
    return TableAxis("v", "v", tuple(Category(str(i), str(i), m) for i, m in enumerate(members)))


@pytest.mark.parametrize(
    ("members", "place"),
    [
        (((0,), (1,), (0, 1)), 2),
        (((0, 1, 2), (0,), (1, 2)), 0),
        (((0,), (1,), (2,)), -1),
        (((0,), (1,), (0, 1), (2,), (0, 1, 2)), None),  # a subtotal
        (((0,), (0, 1)), None),  # a part is missing
        (((0,), (1,), (0, 1, 2)), None),  # so it is here
        (((0,), (1, 2), (2,), (0, 1, 2)), None),  # parts overlap
        (((0,), (0,)), None),
        ((), -1),
        (((0,), (1,), (), (0, 1)), None),  # a part that is empty
    ],
)
def test_a_plain_axis_has_parts_that_make_up_its_total_or_no_total(
    members: tuple[tuple[int, ...], ...], place: int | None
) -> None:
    assert line_totals([axis(*members)]) == (None if place is None else [place])
    assert line_totals([axis((0,), (1,)), axis(*members)]) == (
        None if place is None else [-1, place]
    )


def test_totals_are_added_up_along_every_axis_that_has_one() -> None:
    array = np.array([[9, 1, 2], [9, 3, 4], [9, 9, 9]])
    assert added_up(array, [2, 0]).tolist() == [[3, 1, 2], [7, 3, 4], [10, 4, 6]]
    assert added_up(array, [-1, 1]).tolist() == [[9, 11, 2], [9, 13, 4], [9, 18, 9]]
    assert array[0, 0] == 9  # the caller's array is left alone


def lines(seed: int, many: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """Bounds of a few parts and their total, numbers that are shown, and the place of the total."""
    rng = np.random.default_rng(seed)
    found = []
    while len(found) < many:
        size = int(rng.integers(3, 5))
        low = rng.integers(0, 2, size)
        high = low + rng.integers(0, 4, size)
        found.append((low, high, rng.integers(0, 3, size), int(rng.integers(0, size))))
    return found


def tables(low: np.ndarray, high: np.ndarray, shown: np.ndarray | None, total: int) -> np.ndarray:
    """All tables within the bounds; a part that shows another number than the total is less than it."""
    boxes = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
    kept = [
        x
        for x in product(*boxes)
        if sum(x) == 2 * x[total]
        and (shown is None or all(s == shown[total] or v < x[total] for v, s in zip(x, shown, strict=True)))
    ]  # fmt: skip
    return np.array(kept).reshape(-1, low.size)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_a_cell_is_pinned_exactly_where_all_tables_agree_on_it(seed: int, keyed: bool) -> None:
    decided = set()
    for low, high, numbers, total in lines(seed, 40):
        shown = numbers if keyed else None
        left = tables(low, high, shown, total)
        if len(left) == 0:
            continue
        wanted = low < high
        wanted[total] = False
        alone = (left.min(axis=0) == left.max(axis=0)) & wanted
        assert pinned(low, high, wanted, [total], shown) == alone.any()
        # The same relation, written down.
        cells = np.array([total, *np.delete(np.arange(low.size), total)], dtype=np.int64)
        assert narrow_relations(
            low.copy(), high.copy(), wanted, np.array([0, low.size]), cells, numbers, keyed, 99
        ) == bool(alone.any())
        assert not pinned(low, high, np.zeros(low.size, dtype=np.bool_), [total], shown)
        decided.add(bool(alone.any()))
    assert decided == {False, True}


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_one_relation_end_as_narrow_as_they_can(seed: int, keyed: bool) -> None:
    for low, high, numbers, total in lines(10 + seed, 40):
        left = tables(low, high, numbers if keyed else None, total)
        if len(left) == 0:
            continue
        cells = np.array([total, *np.delete(np.arange(low.size), total)], dtype=np.int64)
        none = np.zeros(low.size, dtype=np.bool_)
        narrow_relations(low, high, none, np.array([0, low.size]), cells, numbers, keyed, 99)
        assert low.tolist() == left.min(axis=0).tolist()
        assert high.tolist() == left.max(axis=0).tolist()


def test_lines_of_a_grid_and_written_relations_narrow_alike() -> None:
    rng = np.random.default_rng(5)
    rows = [[2, 0, 1], [5, 3, 4], [8, 6, 7], [6, 0, 3], [7, 1, 4], [8, 2, 5]]  # the total first
    cells, indptr = np.array(rows).ravel(), np.arange(0, 19, 3)
    decided = []
    for _ in range(60):
        value = added_up(np.pad(rng.integers(0, 3, (2, 2)), (0, 1)), [2, 2])
        low = value - rng.integers(0, 2, (3, 3)) * (value > 0)
        high = value + rng.integers(0, 3, (3, 3))
        wanted = (low < high) & np.pad(np.ones((2, 2), dtype=np.bool_), (0, 1))
        keyed = bool(rng.random() < 0.5)
        shown = value if keyed else None
        found = pinned(low, high, wanted, [2, 2], shown)
        assert found == narrow_relations(
            low.flatten(), high.flatten(), wanted.ravel(), indptr, cells, value.ravel(), keyed, 99
        )
        decided.append(found)
        box = [range(a, b + 1) for a, b in zip(low[:2, :2].flat, high[:2, :2].flat, strict=True)]
        left = []
        for x in product(*box):
            grid = added_up(np.pad(np.array(x).reshape(2, 2), (0, 1)), [2, 2])
            if ((low <= grid) & (grid <= high)).all():
                left.append(x)
        apart = np.ptp(np.array(left), axis=0) > 0
        if found and not keyed:
            assert not apart[wanted[:2, :2].ravel()].all()
        # A total that is not first along its axis, and an axis without one.
        turned = pinned(
            low[::-1], high[::-1], wanted[::-1], [0, 2], None if shown is None else shown[::-1]
        )
        assert turned == found
        flat = pinned(low[:2], high[:2], wanted[:2], [-1, 2], None if shown is None else shown[:2])
        assert found or not flat
    assert 5 < sum(decided) < 55


def test_the_order_of_axes_does_not_matter() -> None:
    """Parts and total in the middle of three axes, so that lines start apart and step over cells."""
    rng = np.random.default_rng(9)
    decided = []
    for _ in range(20):
        value = added_up(
            np.pad(rng.integers(0, 3, (2, 2, 2)), ((0, 0), (0, 1), (0, 0))), [-1, 2, -1]
        )
        low = value - rng.integers(0, 2, value.shape) * (value > 0)
        high = value + rng.integers(0, 2, value.shape)
        wanted = low < high
        wanted[:, 2] = False
        found = pinned(low, high, wanted, [-1, 2, -1])
        single = [
            pinned(low[i, :, j], high[i, :, j], wanted[i, :, j], [2])
            for i, j in product(range(2), repeat=2)
        ]
        assert found == any(single)
        first, last = (np.moveaxis(a, 1, 0) for a in (low, high)), [2, -1, -1]
        assert pinned(*first, np.moveaxis(wanted, 1, 0), last) == found
        decided.append(found)
    assert 0 < sum(decided) < 20


def test_bounds_that_still_change_when_the_rounds_run_out_count_as_pinned() -> None:
    low, high = np.array([0, 0, 0]), np.array([9, 9, 5])
    open_cells, rows = np.array([True, True, False]), (np.array([0, 3]), np.array([2, 0, 1]))
    for rounds, undecided in ((1, True), (2, False)):
        ends = low.copy(), high.copy()
        assert narrow_relations(*ends, open_cells, *rows, low, False, rounds) == undecided
        assert ends[1].tolist() == [5, 5, 5]
        lines_of = np.array([3]), np.array([2])
        ends = low.copy(), high.copy()
        assert narrow_lines(*ends, open_cells, *lines_of, low, False, rounds) == undecided
