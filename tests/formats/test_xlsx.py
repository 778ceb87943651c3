"""A workbook read back holds published values as numbers, suppressed ones as letters, and no formula."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.formats import xlsx
from lustrum.formats.placing import WIDEST, usual_placing
from lustrum.formats.xlsx import Xlsx
from lustrum.model import Category, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED

NASTY = (
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "{=1}",
    "http://example.org/",
    "mailto:x@example.org",
    "007",
)


def axis(name: str, size: int, total: bool = False) -> TableAxis:
    own = tuple(Category(f"{i}", f"{name}{i}", (i,)) for i in range(size))
    whole = (Category("_T", "Total", tuple(range(size))),) if total else ()
    return TableAxis(name, name.title(), own + whole)


def release(*axes: TableAxis, **more: Any) -> Release:
    shape = tuple(len(a) for a in axes)
    values = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) * 7
    status = np.full(shape, "F")
    return Release(
        axes, more.pop("values", values), more.pop("status", status), {"method": "none"}, **more
    )


def opened(data: bytes) -> Any:
    return openpyxl.load_workbook(io.BytesIO(data))


def rows(sheet: Any) -> list[list[Any]]:
    return [list(row) for row in sheet.iter_rows(values_only=True)]


@settings(max_examples=examples(8, 100))
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans())
def test_every_cell_stands_once_in_the_sheet_of_cells(sizes: list[int], total: bool) -> None:
    axes = tuple(axis("abcd"[i], n, total and n > 1) for i, n in enumerate(sizes))
    made = release(*axes, unit="people")
    head, *cells = rows(opened(Xlsx().write(made))["Cells"])
    names = [text for a in axes for text in (a.name, f"{a.name}_label")]
    assert head == [*names, "value", "status", "low", "high"]
    found = {
        tuple(row[: 2 * len(axes) : 2]): (row[1 : 2 * len(axes) : 2], row[2 * len(axes)])
        for row in cells
    }
    assert len(found) == len(cells) == made.published.size
    for at in np.ndindex(*made.shape):
        codes = tuple(a.codes[i] for a, i in zip(axes, at, strict=True))
        labels = [a.labels[i] for a, i in zip(axes, at, strict=True)]
        assert found[codes] == (labels, int(made.published[at]))


def test_the_table_stands_as_on_the_page() -> None:
    made = release(axis("a", 2, True), axis("b", 2), axis("c", 2), unit="people")
    sheet = rows(opened(Xlsx().write(made, "A by b and c"))["Table"])
    assert sheet[0][0] == "A by b and c"
    assert sheet[2] == ["C", "c0", None, "c1", None]
    assert sheet[3] == ["A \\ B", "b0", "b1", "b0", "b1"]
    assert sheet[4] == ["a0", 0, 14, 7, 21]
    assert sheet[6] == ["Total", 56, 70, 63, 77]


def test_what_does_not_fit_across_stands_in_parts() -> None:
    made = release(axis("a", 2), axis("b", WIDEST), axis("c", 2))
    sheet = rows(opened(Xlsx().write(made))["Table"])
    starts = [i for i, row in enumerate(sheet) if row[0] in ("C: c0", "C: c1")]
    assert len(starts) == 2
    assert sheet[starts[0] + 1][:3] == ["a0", 0, 14]
    assert sheet[starts[1] + 2][:3] == ["a1", 7 * (WIDEST * 2 + 1), 7 * (WIDEST * 2 + 3)]


def test_one_variable_and_none_have_a_column_of_their_own() -> None:
    sheet = rows(opened(Xlsx().write(release(axis("a", 2), unit="people")))["Table"])
    assert sheet[2:] == [["A", "People"], ["a0", 0], ["a1", 7]]
    alone = Release((), np.array(42), np.array("F"), {"method": "none"}, unit="people")
    assert rows(opened(Xlsx().write(alone))["Table"])[3] == ["people", 42]


def test_a_suppressed_cell_is_a_letter_and_tells_no_bounds() -> None:
    status = np.array([["F", "A"], ["D", "F"]])
    values = np.array([[5, 3], [4, 0]])
    made = release(
        axis("a", 2), axis("b", 2), values=values, status=status, low=values, high=values
    )
    book = opened(Xlsx().write(made))
    assert rows(book["Table"])[3:] == [["a0", 5, "A"], ["a1", "D", 0]]
    assert [row[4:] for row in rows(book["Cells"])[1:]] == [
        [5, "F", 5, 5],
        ["A", "A", None, None],
        ["D", "D", None, None],
        [0, "F", 0, 0],
    ]
    notes = dict(row[:2] for row in rows(book["Notes"]))
    assert notes["Symbol A"] == "suppressed: few contributors; not zero"
    assert "Symbol F" not in notes


def test_no_text_becomes_a_formula_a_link_or_a_number() -> None:
    nasty = TableAxis("=x", "=y", tuple(Category(t, t, (i,)) for i, t in enumerate(NASTY)))
    data = Xlsx().write(release(nasty, unit="=z", notes=NASTY), "=1+1", {"=k": "=v"})
    for sheet in opened(data).worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type in ("s", "n", "inlineStr")
                assert cell.hyperlink is None
                if cell.data_type == "n":
                    assert cell.value is None or isinstance(cell.value, int)
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        assert not any("hyperlink" in parts.read(n).decode() for n in parts.namelist())
    assert [row[0] for row in rows(opened(data)["Cells"])[1:]] == list(NASTY)


def test_decimals_and_bounds_that_are_not_known() -> None:
    values = np.array([125, -250])
    high = np.array([200, UNBOUNDED])
    made = release(
        axis("a", 2), values=values, decimals=2, low=np.array([0, -UNBOUNDED]), high=high
    )
    cells = rows(opened(Xlsx().write(made))["Cells"])[1:]
    assert [row[2:] for row in cells] == [
        [1.25, "F", 0, 2],
        [-2.5, "F", "not known", "not known"],
    ]


def test_a_number_with_more_digits_than_a_spreadsheet_keeps_is_text() -> None:
    large = 1_234_567_890_123_456_789
    made = release(axis("a", 2), values=np.array([large, -large]), decimals=2)
    found = [row[2] for row in rows(opened(Xlsx().write(made))["Cells"])[1:]]
    assert found == ["12345678901234567.89", "-12345678901234567.89"]


def test_the_notes_say_what_has_to_be_known() -> None:
    made = release(axis("a", 2), notes=("Rounded.", "Synthetic."), unit="people")
    data = Xlsx().write(made, "A", {"Citation": "Census: A.", "Risk after protection": 0.05})
    found = [(row[0], row[1]) for row in rows(opened(data)["Notes"])]
    assert ("Title", "A") in found
    assert ("Unit", "people") in found
    assert ("Note", "Rounded.") in found
    assert ("Note", "Synthetic.") in found
    assert ("Protected by", "none") in found
    assert found[-2:] == [("Citation", "Census: A."), ("Risk after protection", 0.05)]


@pytest.mark.parametrize("kept", [0, 1000])
def test_the_same_table_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr(xlsx, "KEPT_IN_MEMORY", kept)
    made = release(axis("a", 3), axis("b", 3), axis("c", 3))
    first = Xlsx().write(made, "A")
    assert first == Xlsx().write(made, "A")
    with zipfile.ZipFile(io.BytesIO(first)) as parts:
        assert {info.date_time[0] for info in parts.infolist()} == {1980}
        assert b"2000-01-01" in parts.read("docProps/core.xml")


def test_large_and_small_workbooks_hold_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = release(axis("a", 3, True), axis("b", WIDEST), axis("c", 2), notes=("N",))
    small = opened(Xlsx().write(made, "A"))
    monkeypatch.setattr(xlsx, "KEPT_IN_MEMORY", 0)
    large = opened(Xlsx().write(made, "A"))
    for name in ("Table", "Cells", "Notes"):
        assert rows(small[name]) == rows(large[name])


@given(st.lists(st.integers(1, 40), max_size=5))
def test_every_variable_has_one_place(sizes: list[int]) -> None:
    placing = usual_placing(sizes)
    assert sorted((*placing.rows, *placing.columns, *placing.wafers)) == list(range(len(sizes)))
