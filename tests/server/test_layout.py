"""Every published value stands once on the page, under its own headers, however the table is turned."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Category, QueryError, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.server.table_view import layout
from lustrum.server.table_view.arrange import arrange
from lustrum.server.table_view.figures import Signs, figures
from lustrum.server.table_view.layout import WIDEST, Grid, lay_out, number
from lustrum.server.table_view.percentages import sums
from lustrum.server.urls.display import TableView


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


# Four variables of six categories and a total make 2,401 cells, which one page holds.


def test_a_third_variable_stands_above_the_columns_while_that_is_readable() -> None:
    narrow = lay_out(release(axis("a", 4), axis("b", 3), axis("c", 5)))
    assert [g.label for g in narrow.groups] == ["c0", "c1", "c2", "c3", "c4"]
    assert narrow.width == 15
    wide = lay_out(release(axis("a", 4), axis("b", WIDEST), axis("c", 2)))
    assert wide.groups == ()
    assert [b.labels for b in wide.blocks] == [(("C", "c0"),), (("C", "c1"),)]


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
    [(0, 0, "0"), (999, 0, "999"), (1000, 0, "1,000"), (-1234567, 0, "−1,234,567"), (5, 2, "0.05")],
)
def test_figures_are_written_as_sentences_of_the_language_write_them(
    value: int, decimals: int, text: str
) -> None:
    assert number(value, decimals) == text
    french = text.replace(",", "\u202f").replace(".", ",")
    assert number(value, decimals, Signs(",", "\u202f")) == french
    german = text.translate({ord(","): ".", ord("."): ","})
    assert number(value, decimals, Signs(",", ".")) == german


def of(*axes: TableAxis, values: Any, status: Any = None, **more: Any) -> Release:
    array = np.asarray(values, dtype=np.int64)
    letters = np.full(array.shape, "F") if status is None else np.asarray(status)
    return Release(axes, array, letters, {"method": "none"}, unit="people", **more)


def found(grid: Grid) -> dict[frozenset[str], str]:
    """The text of each cell by the labels of all its headers."""
    texts = {}
    for block in grid.blocks:
        for row in block.rows:
            for column, cell in enumerate(row.cells):
                above = [
                    next(
                        h.label
                        for i, h in enumerate(level)
                        if sum(x.span for x in level[: i + 1]) > column
                    )
                    for level in grid.levels
                ]
                heads = [label for _, label in block.labels]
                key = frozenset([row.label, *heads, *above]) - {"People"}
                assert key not in texts
                texts[key] = cell.text
    return texts


def expected(release: Release) -> dict[frozenset[str], str]:
    return {
        frozenset(a.labels[i] for a, i in zip(release.axes, at, strict=True)): number(
            int(release.published[at])
        )
        for at in np.ndindex(*release.shape)
    }


PLACES = st.sampled_from(["rows", "columns", "layers"])


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(PLACES, min_size=4, max_size=4),
    st.permutations(range(4)),
)
def test_a_turned_table_holds_every_value_under_its_own_headers(
    sizes: list[int], places: list[str], order: list[int]
) -> None:
    made = release(*(axis("abcd"[i], n) for i, n in enumerate(sizes)))
    pivot = tuple(("abcd"[i], places[i]) for i in order if i < len(sizes))
    assert found(lay_out(made)) == found(lay_out(made, TableView(pivot=pivot))) == expected(made)


def test_outer_rows_head_blocks_and_outer_columns_stand_above() -> None:
    made = release(axis("a", 2), axis("b", 2), axis("c", 2))
    deep = lay_out(made, TableView(pivot=(("c", "rows"), ("a", "rows"), ("b", "columns"))))
    assert [b.labels for b in deep.blocks] == [(("C", "c0"),), (("C", "c1"),)]
    assert deep.corner == "A"
    wide = lay_out(made, TableView(pivot=(("b", "columns"), ("a", "columns"), ("c", "columns"))))
    assert [len(level) for level in wide.levels] == [2, 4, 8]
    assert wide.across == "C within a within b"
    assert [row.label for row in wide.blocks[0].rows] == ["People"]


def test_one_layer_can_be_shown_alone() -> None:
    made = release(axis("a", 2), axis("b", 2), axis("c", 2))
    view = TableView(pivot=(("c", "layers"),), layer=(("c", "1"),))
    grid = lay_out(made, view)
    assert [b.labels for b in grid.blocks] == [(("C", "c1"),)]
    assert [c.text for c in grid.blocks[0].rows[1].cells] == [number(5000), number(7000)]
    moved = lay_out(made, TableView(layer=(("c", "1"),)))
    assert moved.width == 4


AXES = (axis("a", 2, True), axis("b", 2, True))
COUNTS = [[1, 2, 3], [3, 3, 6], [6, 6, 9]]


def texts(grid: Grid) -> list[list[str]]:
    return [[c.text for c in row.cells] for block in grid.blocks for row in block.rows]


def test_percentages_are_of_published_totals_even_where_these_do_not_add_up() -> None:
    made = of(*AXES, values=COUNTS)
    rows = lay_out(made, TableView(show="row-percent"))
    assert texts(rows) == [
        ["33.3", "66.7", "100.0"],
        ["50.0", "50.0", "100.0"],
        ["66.7", "66.7", "100.0"],
    ]
    assert rows.percentages == {"total"}
    columns = lay_out(made, TableView(show="column-percent", decimals=0))
    assert texts(columns)[0] == ["17", "33", "33"]
    whole = lay_out(made, TableView(show="whole-percent", decimals=2), signs=Signs(",", "."))
    assert texts(whole)[0] == ["11,11", "22,22", "33,33"]


@given(
    st.lists(st.integers(0, 9), min_size=12, max_size=12),
    st.sampled_from(["row-percent", "column-percent", "whole-percent"]),
    st.integers(0, 3),
)
def test_percentages_without_totals_are_of_sums(
    counts: list[int], show: str, decimals: int
) -> None:
    values = np.array(counts).reshape(2, 3, 2)
    made = of(axis("a", 2), axis("b", 3), axis("c", 2), values=values)
    over = {"row-percent": (1, 2), "column-percent": (0,), "whole-percent": (0, 1, 2)}[show]
    shares = figures(made, show, over, decimals)
    for at in product(range(2), range(3), range(2)):
        base = sum(
            int(values[other])
            for other in product(range(2), range(3), range(2))
            if all(other[i] == at[i] for i in range(3) if i not in over)
        )
        assert bool(shares.known[at]) == (base > 0)
        if base:
            exact = Fraction(100 * 10**decimals * int(values[at]), base)
            assert abs(int(shares.units[at]) - exact) <= Fraction(1, 2) + Fraction(1, 10**6)
    assert shares.based_on == {"sum"}


def test_no_percentage_of_nothing_or_of_what_is_not_shown() -> None:
    status = [["F", "F", "F"], ["F", "A", "F"], ["F", "F", "N"]]
    made = of(*AXES, values=[[0, 0, 0], [3, 3, 6], [3, 3, 6]], status=status)
    grid = lay_out(made, TableView(show="row-percent"))
    assert texts(grid) == [["–", "–", "–"], ["50.0", "A", "100.0"], ["50.0", "50.0", "N"]]
    assert [letter for letter, _ in grid.legend] == ["A", "N", "–"]
    assert "0 or not shown" in grid.blocks[0].rows[0].cells[0].hidden


def test_a_sum_with_a_suppressed_part_is_no_base() -> None:
    made = of(axis("a", 1), axis("b", 2), values=[[1, 2]], status=[["F", "D"]])
    assert texts(lay_out(made, TableView(show="row-percent"))) == [["–", "D"]]


def test_categories_that_overlap_partly_have_no_sum() -> None:
    mixed = TableAxis("b", "B", (Category("x", "X", (0, 1)), Category("y", "Y", (1, 2))))
    made = of(axis("a", 1), mixed, values=[[1, 2]])
    assert texts(lay_out(made, TableView(show="row-percent"))) == [["–", "–"]]


def test_totals_can_be_left_out_and_percentages_stay() -> None:
    made = of(*AXES, values=COUNTS)
    grid = lay_out(made, TableView(margins="off", show="row-percent"))
    assert texts(grid) == [["33.3", "66.7"], ["50.0", "50.0"]]


def labels(grid: Grid) -> list[str]:
    return [row.label for block in grid.blocks for row in block.rows]


def test_rows_are_sorted_by_a_column_with_totals_last_and_unknown_before_them() -> None:
    values = [[5, 1], [9, 2], [7, 3], [1, 9], [99, 99]]
    status = [["F", "F"], ["F", "F"], ["A", "F"], ["F", "F"], ["F", "F"]]
    made = of(axis("a", 4, True), axis("b", 2), values=values, status=status)
    assert labels(lay_out(made, TableView(sort="-b:0"))) == ["a1", "a0", "a3", "a2", "Total"]
    assert labels(lay_out(made, TableView(sort="b:0"))) == ["a3", "a0", "a1", "a2", "Total"]
    assert labels(lay_out(made, TableView(sort="-b:1"))) == ["a3", "a2", "a1", "a0", "Total"]
    assert labels(lay_out(made, TableView(sort="-label"))) == ["a3", "a2", "a1", "a0", "Total"]


def test_each_block_is_sorted_by_itself() -> None:
    made = of(axis("a", 2), axis("b", 2), values=[[1, 9], [5, 3]])
    view = TableView(pivot=(("b", "layers"),), sort="-value")
    assert labels(lay_out(made, view)) == ["a1", "a0", "a0", "a1"]


def test_labels_are_sorted_by_letters_whatever_their_accents_and_by_size_of_numbers() -> None:
    words = ("Zug", "éclair", "10 to 14", "Eagle", "5 to 9")
    named = TableAxis("a", "A", tuple(Category(f"{i}", w, (i,)) for i, w in enumerate(words)))
    made = of(named, values=range(5))
    assert labels(lay_out(made, TableView(sort="label"))) == [
        "5 to 9",
        "10 to 14",
        "Eagle",
        "éclair",
        "Zug",
    ]


def test_a_row_is_empty_only_if_every_published_cell_of_the_table_is_zero() -> None:
    values = np.zeros((4, 2, 2), dtype=int)
    values[1, 0, 1] = 3
    status = np.full((4, 2, 2), "F")
    status[2, 1, 1] = "A"
    axes = (axis("a", 3, True), axis("b", 2), axis("c", 2))
    made = of(*axes, values=values, status=status)
    view = TableView(empty="hide", pivot=(("c", "layers"),))
    grid = lay_out(made, view)
    # a0 is empty. a1 is not, though it is in the first part; a2 holds a suppressed cell; a total stays.
    assert labels(grid) == ["a1", "a2", "Total"] * 2
    assert grid.empty_rows == 1
    alone = lay_out(made, TableView(empty="hide", pivot=(("c", "layers"),), layer=(("c", "0"),)))
    assert labels(alone) == ["a1", "a2", "Total"]
    nested = lay_out(made, TableView(empty="hide", pivot=(("c", "rows"), ("a", "rows"))))
    assert labels(nested) == ["Total", "a1", "a2", "Total"]
    assert nested.empty_rows == 4


def test_a_table_of_nothing_but_zeros_keeps_its_rows() -> None:
    grid = lay_out(of(axis("a", 2), values=[0, 0]), TableView(empty="hide"))
    assert len(labels(grid)) == 2
    assert grid.empty_rows == 0


def test_categories_stand_by_label_by_code_or_both() -> None:
    made = of(axis("a", 1), values=[1])
    assert labels(lay_out(made, TableView(names="codes"))) == ["0"]
    assert labels(lay_out(made, TableView(names="both"))) == ["0 a0"]


def test_bounds_stand_beside_their_figures_but_never_beside_a_suppressed_one() -> None:
    values = np.array([3, 6, 0, 9, 1500])
    low = np.array([1, -UNBOUNDED, 0, 8, 1498])
    high = np.array([5, UNBOUNDED, 0, UNBOUNDED, 1502])
    made = of(axis("a", 5), values=values, least=low, most=high, status=["F", "F", "F", "F", "A"])
    cells = [row.cells[0] for row in lay_out(made, TableView(bounds="on")).blocks[0].rows]
    assert [cell.span for cell in cells] == ["1–5", "not known", "0", "at least 8", ""]
    assert lay_out(made).blocks[0].rows[0].cells[0].span == ""


@given(
    st.lists(st.integers(0, 30), min_size=6, max_size=6), st.lists(st.integers(0, 4), min_size=24)
)
def test_the_bounds_of_a_percentage_hold_the_true_one(true: list[int], slack: list[int]) -> None:
    truth = np.array(true).reshape(2, 3)
    extra = np.array(slack[:24]).reshape(4, 2, 3)
    low, high = np.maximum(truth - extra[0], 0), truth + extra[1]
    made = of(axis("a", 2), axis("b", 3), values=low + (high - low) // 2, least=low, most=high)
    shares = figures(made, "row-percent", (1,), 1)
    assert shares.low is not None
    assert shares.high is not None
    for i, j in product(range(2), range(3)):
        if truth[i].sum():
            exact = Fraction(1000 * int(truth[i, j]), int(truth[i].sum()))
            assert shares.low[i, j] <= exact <= shares.high[i, j]


def test_a_long_table_comes_page_by_page_and_loses_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "CELLS", 20)
    monkeypatch.setattr(layout, "FEWEST_ROWS", 3)
    made = release(axis("a", 13), axis("b", 2), axis("c", 2))
    view = TableView(pivot=(("c", "layers"),))
    pages = [lay_out(made, view.but(page=n)) for n in (1, 2, 3)]
    assert [(p.first, p.last, p.rows, p.pages) for p in pages] == [
        (1, 10, 26, 3),
        (11, 20, 26, 3),
        (21, 26, 26, 3),
    ]
    assert [b.continued for b in pages[1].blocks] == [True, False]
    parts: dict[frozenset[str], str] = {}
    for page in pages:
        parts |= found(page)
    assert parts == expected(made) == found(lay_out(made, view.but(page=None)))
    assert lay_out(made, view.but(page=99)).first == 21


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        (TableView(pivot=(("x", "rows"),)), "'pivot' names 'x'"),
        (TableView(layer=(("x", "1"),)), "'layer' names 'x'"),
        (TableView(layer=(("a", "9"),)), "'a' has no code '9' here"),
        (TableView(sort="x:1"), "'sort' names 'x'"),
        (TableView(sort="-b:9"), "'b' has no code '9' here"),
        (TableView(sort="b"), "'sort' must be label, value or a column"),
    ],
)
def test_what_is_not_in_the_table_is_a_mistake(view: TableView, sentence: str) -> None:
    with pytest.raises(QueryError, match=sentence):
        arrange(release(axis("a", 2), axis("b", 2)), view)


def test_a_sorting_of_a_column_that_was_moved_is_passed_over() -> None:
    made = release(axis("a", 2), axis("b", 2))
    for sort in ("-b:1", "-value"):
        pivot = (("b", "rows"), ("a", "columns")) if sort == "-b:1" else ()
        assert (
            arrange(made, TableView(sort=sort, pivot=pivot)).lines
            == arrange(made, TableView(pivot=pivot)).lines
        )


def test_totals_are_compared_with_the_sums_of_their_parts() -> None:
    exact = sums(of(*AXES, values=[[1, 2, 3], [3, 3, 6], [4, 5, 9]]), {})
    assert (exact.compared, exact.differing, exact.largest) == (6, 0, 0)
    off = sums(of(*AXES, values=COUNTS), {})
    assert (off.compared, off.differing, off.largest) == (6, 3, 3)
    status = [["F", "F", "F"], ["A", "F", "F"], ["F", "F", "F"]]
    assert sums(of(*AXES, values=COUNTS, status=status), {}).compared == 4


def test_a_total_that_holds_more_than_is_shown_is_named() -> None:
    wider = TableAxis("a", "A", (Category("0", "a0", (0,)), Category("_T", "Total", (0, 1))))
    found_sums = sums(of(wider, values=[1, 5]), {})
    assert found_sums.wider == ("A",)
    assert found_sums.compared == 0


def test_the_same_table_has_the_same_address() -> None:
    made = release(axis("a", 2), axis("b", 2))
    said = TableView(
        pivot=(("a", "rows"), ("b", "columns")), layer=(("b", "1"),), sort="value", decimals=3
    )
    assert arrange(made, said).view == TableView()
    kept = TableView(
        pivot=(("b", "rows"), ("a", "columns")), sort="-a:1", show="row-percent", decimals=3
    )
    assert arrange(made, kept).view == kept


@settings(max_examples=examples(300, 3000))
@given(st.data(), st.booleans(), st.integers(0, 6))
def test_where_numbers_keep_their_margin_so_does_all_that_is_worked_out_from_them(
    data: st.DataObject, totals: bool, margin: int
) -> None:
    """True counts with their totals, each published with an error up to the margin."""
    axes = axis("a", 3, totals), axis("b", 2, totals)
    inner = data.draw(st.lists(st.integers(0, 60), min_size=6, max_size=6))
    true = np.array(inner, dtype=np.int64).reshape(3, 2)
    if totals:
        true = np.vstack([true, true.sum(axis=0)])
        true = np.hstack([true, true.sum(axis=1, keepdims=True)])
    error = st.sampled_from((-margin, margin)) | st.integers(-margin, margin)
    errors = st.lists(error, min_size=true.size, max_size=true.size)
    shown = np.maximum(true + np.array(data.draw(errors)).reshape(true.shape), 0)
    published, truth = (of(*axes, values=v, margin=margin) for v in (shown, true))
    for show, over in {
        "row-percent": (1,), "column-percent": (0,), "whole-percent": (0, 1),
        "difference": (1,), "index": (1,),
    }.items():  # fmt: skip
        stated, exact = (figures(one, show, over, 3) for one in (published, truth))
        assert stated.margins is not None
        both = stated.known & exact.known & np.isfinite(stated.margins)
        # What is compared with is itself rounded to its last decimal.
        gap = np.abs(stated.units - exact.units)[both] - 0.5
        assert (gap <= stated.margins[both]).all(), show


@pytest.mark.parametrize("totals", [True, False])
def test_shares_of_estimates_are_rarely_further_off_than_they_say(totals: bool) -> None:
    """Seed 46; where shares keep two standard errors this fails less than once in a million."""
    draws = 4000
    means, spread = np.array([10_000, 30_000, 60_000]), np.array([300, 500, 700])
    parts = np.rint(np.random.default_rng(46).normal(means, spread, (draws, 3))).astype(np.int64)
    errors = np.broadcast_to(spread, parts.shape)
    if totals:
        parts = np.hstack([parts, parts.sum(axis=1, keepdims=True)])
        whole = round(float(np.sqrt((spread**2).sum())))
        errors = np.hstack([errors, np.full((draws, 1), whole)])
    axes = axis("a", draws), axis("b", 3, totals)
    grades = np.full(parts.shape, "")
    stated = figures(of(*axes, values=parts, errors=errors, grades=grades), "row-percent", (1,), 3)
    assert stated.margins is not None
    true = 100_000 * means / means.sum()
    kept = (np.abs(stated.units[:, :3] - true) <= stated.margins[:, :3] + 0.5).mean(axis=0)
    assert (kept > 0.935).all()
    if totals:
        assert (kept < 0.975).all()  # no wider than it has to be
        assert (stated.margins[:, 3] == 0).all()  # all of them are all of them
