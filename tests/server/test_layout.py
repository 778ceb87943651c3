"""Every published value stands once on the page, under its own headers, whatever the number of variables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Category, Release, TableAxis
from lustrum.server.layout import THIN_SPACE, WIDEST, lay_out, number


def axis(name: str, size: int, total: bool = False) -> TableAxis:
    own = tuple(Category(f"{i}", f"{name}{i}", (i,)) for i in range(size))
    whole = (Category("_T", "Total", tuple(range(size))),) if total else ()
    return TableAxis(name, name.title(), own + whole)


def release(*axes: TableAxis, hidden: tuple[int, ...] | None = None) -> Release:
    shape = tuple(len(a) for a in axes)
    status = np.full(shape, "F")
    if hidden is not None:
        status[hidden] = "A"
    values = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) * 1000
    return Release(axes, values, status, {"method": "none"}, unit="people")


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.booleans())
def test_every_value_is_shown_once_and_in_its_place(sizes: list[int], total: bool) -> None:
    axes = tuple(axis("abcd"[i], n, total and n > 1) for i, n in enumerate(sizes))
    shown = lay_out(release(*axes))
    over = bool(shown.groups)
    cutting = axes[3:] if over else axes[2:]
    texts = np.array([[[c.text for c in row.cells] for row in b.rows] for b in shown.blocks])
    # Blocks run over the cutting variables, rows over the first, columns over the second within the third.
    cut = tuple(len(a) for a in cutting)
    across = [len(a) for a in axes[1:2]]
    spread = texts.reshape(*cut, len(axes[0]), *([len(axes[2])] if over else []), *across)
    values = np.array([number(int(v)) for v in release(*axes).published.ravel()])
    cube = values.reshape(release(*axes).shape)
    rows, columns = len(cut), len(cut) + 1
    if over:
        back = np.moveaxis(spread, (rows, columns + 1, columns), (0, 1, 2))
    elif len(axes) > 1:
        back = np.moveaxis(spread, (rows, columns), (0, 1))
    else:
        back = spread.reshape(cube.shape)
    assert np.array_equal(back, cube)


def test_a_third_variable_stands_above_the_columns_while_that_is_readable() -> None:
    narrow = lay_out(release(axis("a", 4), axis("b", 3), axis("c", 5)))
    assert [g.label for g in narrow.groups] == ["c0", "c1", "c2", "c3", "c4"]
    assert narrow.width == 15
    wide = lay_out(release(axis("a", 4), axis("b", WIDEST), axis("c", 2)))
    assert wide.groups == ()
    assert [b.label for b in wide.blocks] == ["C: c0", "C: c1"]


def test_totals_are_told_apart() -> None:
    grid = lay_out(release(axis("a", 2, True), axis("b", 2, True)))
    assert [row.total for row in grid.blocks[0].rows] == [False, False, True]
    assert [head.total for head in grid.columns] == [False, False, True]
    assert [cell.total for cell in grid.blocks[0].rows[0].cells] == [False, False, True]


def test_a_suppressed_cell_shows_its_letter_and_no_figure() -> None:
    grid = lay_out(release(axis("a", 2), axis("b", 2), hidden=(1, 1)))
    cell = grid.blocks[0].rows[1].cells[1]
    assert cell.text == "A"
    assert cell.hidden == "suppressed: few contributors"
    assert grid.legend == (("A", "suppressed: few contributors"),)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(0, 0, "0"), (999, 0, "999"), (1000, 0, "1 000"), (-1234567, 0, "-1 234 567"), (5, 2, "0.05")],
)
def test_figures_have_thin_spaces(value: int, decimals: int, text: str) -> None:
    assert number(value, decimals) == text.replace(" ", THIN_SPACE)
