"""Workbooks, small and large, tell of each cell what the release tells, in every sheet."""

from __future__ import annotations

import io
import re
import zipfile
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xlsxwriter.utility import xl_rowcol_to_cell

from formats.told_cells import (
    AGE,
    AREA,
    HIDDEN,
    OPEN,
    RELEASES,
    SEX,
    axis,
    decimals_of,
    made,
    names_beside,
    number,
    told,
)
from lustrum.formats import Xlsx, xlsx, xlsx_large
from lustrum.formats.cell_text import Placing, usual_placing
from lustrum.model import Category, CellStatus, InputError, Release, TableAxis

Value = Decimal | str | None
ODD = {
    "odd texts": made(
        axis("<area>", "<b>&amp;</b> =1+1 _x0041_ <r><t>x</t></r> {=2} 'quoted"),
        SEX,
        values=range(12),
        status=["F"] * 11 + ["N"],
        unit="=unit",
        notes=("=note",),
    ),
    "no text at all": made(axis("a", "x"), values=[1], unit=""),
}
EVERY = {**RELEASES, **ODD}


def opened(release: Release, large: bool, **words: Any) -> dict[str, list[list[Any]]]:
    """The sheets of a workbook as rows of (value, number format, bold, italic)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xlsx, "KEPT_IN_MEMORY", -1 if large else 10**9)
        patch.setattr(xlsx_large, "_PIECE", 5)
        patch.setattr(xlsx_large, "_ACROSS", 4)
        data = Xlsx().write(release, **words)
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        assert parts.testzip() is None
        names = parts.namelist()
        texts = "".join(parts.read(n).decode() for n in names)
    assert len(set(names)) == len(names)
    assert str(HIDDEN) not in re.sub(r"[.,]", "", texts)
    assert "<f>" not in texts
    assert "\0" not in texts
    book = openpyxl.load_workbook(io.BytesIO(data))
    return {
        sheet.title: [
            [(c.value, c.number_format, bool(c.font.b), bool(c.font.i)) for c in row]
            for row in sheet
        ]
        for sheet in book
    }


def plain(rows: list[list[Any]]) -> list[list[Any]]:
    return [[cell[0] for cell in row] for row in rows]


def as_number(value: Any) -> Any:
    return Decimal(str(value)) if isinstance(value, (int, float)) else value or None


def in_sheet(value: Decimal | None, otherwise: Value, decimals: int) -> Value:
    """How a number stands in a sheet: those of more than 15 digits as texts."""
    if value is None:
        return otherwise
    return f"{value:f}" if abs(value.scaleb(decimals)) >= 10**15 else value


def letter_of(cell: dict[str, Any]) -> str:
    """What stands where no number does: the letter, or a dash where there is no such number."""
    return "\u2013" if cell["status"] == "F" else cell["status"]


def end_of(release: Release, ends: Any, at: tuple[int, ...], cell: dict[str, Any]) -> Value:
    """An end of what is known: of a shown number always, of a hidden one where it is stated."""
    if ends is None or (cell["value"] is None and cell["low"] is None):
        return None
    if abs(int(ends[at])) >= OPEN:
        return None  # "not known" beside a number with a margin of error would say the opposite
    return in_sheet(number(release, ends[at], cell["decimals"]), None, cell["decimals"])


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_the_sheet_of_cells_tells_of_each_what_the_release_tells(name: str, large: bool) -> None:
    release = EVERY[name]
    called = names_beside(release)
    sheet = opened(release, large)["Cells"]
    assert not any(cell[2] for row in sheet[1:] for cell in row)
    head, *rows = plain(sheet)
    names = [n for own in release.axes for n in (own.name, called[f"{own.name}_label"])]
    facts = ["value", "status", "low", "high", *(["unit"] if release.label else [])]
    graded = release.errors is not None and release.grades is not None
    facts += ["standard_error", "reliability"] if graded else []
    with_margin = release.margin is not None or release.margins is not None
    facts += ["margin"] if with_margin else []
    assert head == [*names, *(called[fact] for fact in facts)]
    cells = told(release)
    assert len(rows) == len(cells)
    for row, cell in zip(rows, cells, strict=True):
        at = cell["at"]
        wanted: list[Any] = [
            text for pair in zip(cell["codes"], cell["labels"], strict=True) for text in pair
        ]
        wanted += [in_sheet(cell["value"], letter_of(cell), cell["decimals"]), cell["status"]]
        wanted += [end_of(release, ends, at, cell) for ends in (release.least, release.most)]
        wanted += [cell["unit"] or None] if release.label else []
        if graded:
            wanted += [cell["standard_error"], cell["reliability"]]
        wanted += [cell["margin"]] if with_margin else []
        assert [as_number(v) for v in row] == wanted


def table_wanted(release: Release) -> tuple[list[list[Any]], list[list[tuple[str, bool] | None]]]:
    """The rows below the title, as a page shows the table, and the looks of its numbers."""
    shape = release.shape
    cells = {cell["at"]: cell for cell in told(release)}
    down, across, parts = (0,), tuple(range(1, min(len(shape), 2))), tuple(range(2, len(shape)))
    if len(shape) > 2 and shape[1] * shape[2] <= 30:
        across, parts = (2, 1), tuple(range(3, len(shape)))
    if not shape:
        down = ()
    columns = list(product(*(range(shape[i]) for i in across)))
    rows: list[list[Any]] = []
    looks: list[list[tuple[str, bool] | None]] = []
    for level, i in enumerate(across):
        row: list[Any] = [release.axes[i].label]
        if level == len(across) - 1:
            row[0] = f"{release.axes[0].label} \\ {row[0]}"
        for k, column in enumerate(columns):
            again = k > 0 and columns[k - 1][: level + 1] == column[: level + 1]
            row.append(None if again else release.axes[i].labels[column[level]])
        rows.append(row)
        looks.append([None] * len(row))
    if not across:
        said = f"{release.label} ({release.unit})" if release.label else release.unit.capitalize()
        rows.append([release.axes[0].label if shape else None, said or None])
        looks.append([None, None])
    for part in product(*(range(shape[i]) for i in parts)):
        if parts:
            named = [
                f"{release.axes[i].label}: {release.axes[i].labels[p]}"
                for i, p in zip(parts, part, strict=True)
            ]
            rows += [[], [", ".join(named)]]
            looks += [[], [None]]
        for first in product(*(range(shape[i]) for i in down)):
            row = [release.axes[0].labels[first[0]] if shape else release.unit or None]
            own: list[tuple[str, bool] | None] = [None]
            for column in columns:
                places = dict(zip((*parts, *down, *across), (*part, *first, *column), strict=True))
                at = tuple(places[i] for i in range(len(shape)))
                cell = cells[at]
                row.append(in_sheet(cell["value"], letter_of(cell), cell["decimals"]))
                digits = decimals_of(release, at)
                total = any(release.axes[i].labels[p] == "Total" for i, p in enumerate(at))
                look = "#,##0" + ("." + "0" * digits if digits else "")
                own.append((look, total) if cell["value"] is not None else None)
            rows.append(row)
            looks.append(own)
    return rows, looks


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_the_sheet_of_the_table_tells_of_each_cell_what_the_release_tells(
    name: str, large: bool
) -> None:
    release = EVERY[name]
    sheet = opened(release, large, label="A title")["Table"]
    assert sheet[0][0][0] == "A title"
    wanted, looks = table_wanted(release)
    found = sheet[2:]
    assert len(found) == len(wanted)
    for row, want, look in zip(found, wanted, looks, strict=True):
        values = [as_number(cell[0]) for cell in row]
        assert values == [*want, *[None] * (len(values) - len(want))]
        for cell, own in zip(row, look, strict=False):
            if own is not None:
                assert cell[1:3] == own
            # A letter or a dash in place of a number is told from a label by its look.
            assert cell[3] == (cell[0] in ("\u2013", *"ADNO") and cell is not row[0])


@pytest.mark.parametrize("large", [False, True])
def test_the_notes_say_what_has_to_be_known(large: bool) -> None:
    def notes(name: str, **words: Any) -> list[tuple[Any, Any]]:
        return [tuple(row[:2]) for row in plain(opened(EVERY[name], large, **words)["Notes"])]

    assert notes("counts", label="People", about={"Licence": "CC BY", "Risk": 0.25}) == [
        ("Title", "People"),
        ("Unit", "people"),
        ("Variable", "Area (area)"),
        ("Variable", "Sex (sex)"),
        ("Note", "Rounded."),
        ("Protected by", "by hand (base 3)"),
        ("Licence", "CC BY"),
        ("Risk", 0.25),
    ]
    ends = (
        "In the sheet Cells: what anybody can know of each true value from its cell and the method; empty "
        "where nothing bounds it with certainty."
    )
    assert notes("intervals") == [
        ("Statistic", "Turnover"),
        ("Unit", "euro"),
        ("Variable", "Area (area)"),
        ("Variable", "Sex (sex)"),
        ("Protected by", "by hand (base 3)"),
        *((f"Symbol {s}", f"{CellStatus(s).meaning}; not zero") for s in "ADN"),
        ("low, high", ends),
    ]
    assert notes("statistics")[:4] == [
        ("Statistic", "Firms; unit: firms"),
        ("Statistic", "Turnover; unit: 1000 euro"),
        ("Statistic", "Mean; unit: euro"),
        ("Symbol \u2013", "does not exist, since the number to divide by is 0; not zero"),
    ]
    for name in ("a lower end alone", "an upper end alone"):
        assert "low, high" not in [n for n, _ in notes(name)]
    plainly = made(TableAxis.plain("a", ["1"]), values=[1])
    assert ["Variable", "a"] in [r[:2] for r in plain(opened(plainly, large)["Notes"])]
    assert ("Symbol \u2013") not in [n for n, _ in notes("intervals")]
    bare = Release((), np.array(1), np.array("F"), {})
    assert plain(opened(bare, large)["Notes"]) in ([], [[None]])
    alone = Release((), np.array(1), np.array("F"), {"method": "none"})
    assert plain(opened(alone, large)["Notes"]) == [["Protected by", "none"]]
    same = made(axis("a", "x"), values=[1])
    assert ("Variable", "A (a)") in [tuple(r[:2]) for r in plain(opened(same, large)["Notes"])]


def test_a_workbook_is_made_of_a_release_only() -> None:
    with pytest.raises(InputError, match="A workbook needs a lustrum Release, not a list"):
        Xlsx().write([1])  # type: ignore[arg-type]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", ["hidden", "intervals", "statistics", "estimates"])
def test_the_bytes_do_not_depend_on_what_is_not_told(
    name: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "KEPT_IN_MEMORY", -1 if large else 10**9)
    release = RELEASES[name]
    cells = told(release)
    hidden = np.array([cell["value"] is None for cell in cells]).reshape(release.shape)
    silent = hidden & np.array([cell["low"] is None for cell in cells]).reshape(release.shape)
    fields = {f: getattr(release, f) for f in release.__dataclass_fields__}
    fields["numbers"] = np.where(hidden, 10**16, release.numbers)
    if release.errors is not None:
        fields["errors"] = np.where(hidden, 3, release.errors)
        unsaid = hidden | (release.errors < 0)
        fields["grades"] = np.where(unsaid, release.grades.ravel()[0], release.grades)
    if release.least is not None:
        fields["least"] = np.where(silent, 5, release.least)
        fields["most"] = np.where(silent, 5, release.most)
    assert Xlsx().write(Release(**fields), "A") == Xlsx().write(release, "A")


@pytest.mark.parametrize(
    ("sizes", "placing"),
    [
        ([], Placing((), (), ())),
        ([3], Placing((0,), (), ())),
        ([3, 99], Placing((0,), (1,), ())),
        ([9, 5, 6], Placing((0,), (2, 1), ())),
        ([9, 6, 5, 2], Placing((0,), (2, 1), (3,))),
        ([9, 1, 31], Placing((0,), (1,), (2,))),
        ([9, 31, 1, 2], Placing((0,), (1,), (2, 3))),
    ],
)
def test_variables_stand_where_a_page_has_them(sizes: list[int], placing: Placing) -> None:
    assert usual_placing(sizes) == placing


def test_a_sheet_ends_where_no_more_fits_and_the_notes_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A spreadsheet would not open a file with more; what fits is whole and in its place."""
    own = axis("own", " ".join(map(str, range(20))))
    told_more = {"label": "Turnover", "unit": "euro", "errors": [1] * 180, "grades": ["a"] * 180}
    release = made(AREA, AGE, own, values=range(180), **told_more)
    whole = {n: plain(rows) for n, rows in opened(release, True).items()}
    said = [
        "Not complete",
        "A sheet cannot hold all rows or columns of this table; CSV and Parquet do.",
    ]
    assert said not in [row[:2] for row in whole["Notes"]]
    # The table has 2 rows above its header and 20 parts of 5 rows each, the sheet of cells 181 rows.
    for most, whole_table, whole_cells in (
        (10, False, False),
        *((most, False, False) for most in range(45, 51)),
        (102, False, False),
        (103, True, False),
        (180, True, False),
        (181, True, True),
    ):
        monkeypatch.setattr(xlsx_large, "MOST_ROWS", most)
        cut = {n: plain(rows) for n, rows in opened(release, True).items()}
        for name, complete in (("Table", whole_table), ("Cells", whole_cells)):
            assert most - 2 <= len(cut[name]) <= most or complete
            assert cut[name] == whole[name][: len(cut[name])]
            assert (cut[name] == whole[name]) == complete
        assert (said in [row[:2] for row in cut["Notes"]]) != (whole_table and whole_cells)
    monkeypatch.setattr(xlsx_large, "MOST_COLUMNS", 3)
    cut = {n: plain(rows) for n, rows in opened(release, True).items()}
    rows = cut["Table"][4:]
    assert [row[:3] for row in rows] == [row[:3] for row in whole["Table"][4:]]
    assert all(value is None for row in rows for value in row[3:])
    assert said in [row[:2] for row in cut["Notes"]]


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [
        ((), 4, 1), ((7,), 10, 1), ((7, 5), 10, 5), ((7, 5, 6), 11, 30), ((7, 5, 7), 66, 5),
        ((7, 5, 6, 2), 22, 30), ((1, 1, 1, 3), 13, 1),
    ],
)  # fmt: skip
def test_a_table_fits_where_its_rows_its_columns_and_its_cells_do(
    shape: tuple[int, ...], rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = [axis(f"v{i}", " ".join(map(str, range(n)))) for i, n in enumerate(shape)]
    release = made(*axes, values=np.zeros(shape, dtype=int))
    sheet = opened(release, False)["Table"]
    assert len(sheet) == rows
    assert max(map(len, sheet)) == columns + 1
    most = max(rows, release.published.size + 1)
    for spare_rows, spare_columns in ((0, 0), (-1, 0), (0, -1)):
        monkeypatch.setattr(xlsx_large, "MOST_ROWS", most + spare_rows)
        monkeypatch.setattr(xlsx_large, "MOST_COLUMNS", columns + 1 + spare_columns)
        assert xlsx_large.fits(release) == (spare_rows == spare_columns == 0)


def test_a_sheet_ends_at_the_last_cell_of_spreadsheets() -> None:
    assert xl_rowcol_to_cell(xlsx_large.MOST_ROWS - 1, xlsx_large.MOST_COLUMNS - 1) == "XFD1048576"


NASTY = (
    "=1+1", "+1", "-1", "@SUM(A1)", "{=1}", "http://example.org/", "mailto:x@example.org", "007",
)  # fmt: skip


def test_no_text_becomes_a_formula_a_link_or_a_number() -> None:
    nasty = TableAxis("=x", "=y", tuple(Category(t, t, (i,)) for i, t in enumerate(NASTY)))
    data = Xlsx().write(made(nasty, values=range(8), unit="=z", notes=NASTY), "=1+1", {"=k": "=v"})
    for sheet in openpyxl.load_workbook(io.BytesIO(data)).worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type in ("s", "n", "inlineStr")
                assert cell.hyperlink is None
                if cell.data_type == "n":
                    assert cell.value is None or isinstance(cell.value, int)
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        assert not any("hyperlink" in parts.read(n).decode() for n in parts.namelist())
    assert [
        row[0] for row in list(openpyxl.load_workbook(io.BytesIO(data))["Cells"].values)[1:]
    ] == list(NASTY)


@pytest.mark.parametrize("kept", [0, 1000])
def test_the_same_table_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setattr(xlsx, "KEPT_IN_MEMORY", kept)
    release = RELEASES["four variables"]
    first = Xlsx().write(release, "A")
    assert first == Xlsx().write(release, "A")
    with zipfile.ZipFile(io.BytesIO(first)) as parts:
        assert {info.date_time[0] for info in parts.infolist()} == {1980}
        assert b"2000-01-01" in parts.read("docProps/core.xml")


@given(st.lists(st.integers(1, 40), max_size=5))
def test_every_variable_has_one_place(sizes: list[int]) -> None:
    placing = usual_placing(sizes)
    assert sorted((*placing.rows, *placing.columns, *placing.layers)) == list(range(len(sizes)))
