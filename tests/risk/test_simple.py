from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from examples import examples
from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.risk.simple import (
    SmallCells,
    SparseLines,
    Uniques,
    Zeros,
    share_of_small_cells,
    share_of_sparse_lines,
    share_of_uniques,
    share_of_zeros,
)

QUICK = settings(deadline=None, max_examples=examples(30, 240))
counts = npst.arrays(
    np.int64,
    npst.array_shapes(min_dims=1, max_dims=3, min_side=2, max_side=4),
    elements=st.integers(0, 4),
)


@QUICK
@given(counts, st.integers(1, 3))
def test_shares_of_cells_are_what_loops_make_them(array: np.ndarray, most: int) -> None:
    cells = array.ravel().tolist()
    assert share_of_uniques(array) == pytest.approx(cells.count(1) / len(cells))
    assert share_of_zeros(array) == pytest.approx(cells.count(0) / len(cells))
    small = sum(1 for c in cells if 1 <= c <= most)
    assert share_of_small_cells(array, most) == pytest.approx(small / len(cells))
    assert SmallCells(most).before(Table.from_counts(array)) == share_of_small_cells(array, most)
    assert Uniques().before(Table.from_counts(array)) == share_of_uniques(array)
    assert Zeros().before(Table.from_counts(array)) == share_of_zeros(array)


@QUICK
@given(counts, st.integers(1, 3))
def test_shares_of_lines_are_what_loops_make_them_along_every_axis(
    array: np.ndarray, populated: int
) -> None:
    table = Table.from_counts(array, names="abc"[: array.ndim])
    sparse_of_all, lines_of_all = 0, 0
    for axis in range(array.ndim):
        others = [range(n) for a, n in enumerate(array.shape) if a != axis]
        sparse = 0
        for place in itertools.product(*others):
            line = [int(array[(*place[:axis], i, *place[axis:])]) for i in range(array.shape[axis])]
            filled = sum(1 for c in line if c)
            sparse += 1 <= filled <= populated and filled < len(line)
        lines = int(np.prod([len(r) for r in others]))
        assert share_of_sparse_lines(array, axis, populated) == pytest.approx(sparse / lines)
        assert SparseLines("abc"[axis], populated).before(table) == pytest.approx(sparse / lines)
        sparse_of_all, lines_of_all = sparse_of_all + sparse, lines_of_all + lines
    assert SparseLines(populated=populated).before(table) == pytest.approx(
        sparse_of_all / lines_of_all
    )


def test_structural_zeros_and_totals_are_not_measured() -> None:
    parts = tuple(Category(str(i), str(i), (i,)) for i in range(3))
    axis = TableAxis("a", "a", (*parts, Category("all", "all", (0, 1, 2))))
    structural = np.array([True, False, False, False])
    table = Table(axes=(axis,), values=np.array([0, 1, 0, 1]), structural=structural)
    assert Uniques().before(table) == 0.5
    assert Zeros().before(table) == 0.5
    assert SmallCells().before(table) == 0.5
    assert SparseLines().before(table) == 1.0


def test_a_line_whose_possible_cells_are_all_populated_is_not_sparse() -> None:
    table = Table.from_counts([[5, 0, 7]])
    structural = np.array([[False, True, False]])
    table = Table(axes=table.axes, values=table.values, structural=structural)
    assert SparseLines("v2").before(table) == 0.0


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ([], "without cells"),
        ([0.5], "whole numbers"),
        ([float("nan")], "whole numbers"),
        (["x"], "whole numbers"),
        ([-1], "negative"),
    ],
)
def test_wrong_counts_are_one_sentence(wrong: list[object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        share_of_uniques(wrong)


def test_wrong_questions_are_one_sentence() -> None:
    table = Table.from_counts([[1, 2], [3, 4]], names=["sex", "age"])
    with pytest.raises(InputError, match="did you mean 'sex'"):
        SparseLines("sexx").before(table)
    with pytest.raises(InputError, match="no axis 2"):
        share_of_sparse_lines([[1, 2]], 2)
    with pytest.raises(InputError, match="no lines"):
        share_of_sparse_lines([[1, 2]], 0)
    with pytest.raises(InputError, match="no lines"):
        SparseLines().before(Table.from_counts([1]))
    with pytest.raises(InputError, match="1 or more"):
        SmallCells(0)
    with pytest.raises(InputError, match="1 or more"):
        SparseLines(populated=0)
    money = Table(axes=table.axes, values=table.values, kind="magnitude")
    with pytest.raises(InputError, match="whole counts"):
        Zeros().before(money)
