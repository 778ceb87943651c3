"""Whatever a file carries beside its cells is named, and is a question before the file is judged."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
import xlsxwriter
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill
from openpyxl.workbook.defined_name import DefinedName
from pyarrow import parquet

from lustrum.formats.jsonstat import JsonStat
from lustrum.model import InputError, Release, TableAxis
from lustrum.readers.container import clean_file, read_container
from lustrum.readers.judge import judge, open_file
from lustrum.readers.layout import layout_of_text
from lustrum.readers.propose import propose

ROLES = """kind = "counts"
[symbols]
x = "hidden"
"" = "hidden"
[[tables]]
sheet = "Sheet"
[tables.columns]
area = { role = "code" }
value = { role = "value" }
[dimensions.area]
totals.Total = ["n", "s", "w"]
"""
ROWS = [("area", "value"), ("Total", 90), ("n", "x"), ("s", "x"), ("w", 20)]


def workbook(path: Path, change: Callable[[Any], None] = lambda book: None) -> Path:
    """A harmless workbook with one change."""
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append(row)
    change(book)
    book.save(path)
    return path


def code(path: Path) -> int:
    return judge([open_file(path, layout_of_text(ROLES, "l.toml"))]).report.exit


def test_a_plain_workbook_is_cleared(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx")
    assert read_container(path).unread == ()
    assert code(path) == 0


def _set(cell: str, name: str, value: object) -> Callable[[Any], None]:
    return lambda book: setattr(book.active[cell], name, value)


def _number_behind(number_format: str) -> Callable[[Any], None]:
    def change(book: Any) -> None:
        book.active["B3"] = 41
        book.active["B3"].number_format = number_format

    return change


def _white(book: Any) -> None:
    book.active["D9"] = 41
    book.active["D9"].font = Font(color="FFFFFFFF")


def _same_as_fill(book: Any) -> None:
    book.active["D9"] = 41
    book.active["D9"].font = Font(color="FF336699")
    book.active["D9"].fill = PatternFill("solid", fgColor="FF336699")


def _hidden_row(book: Any) -> None:
    book.active.append(("memo", 41))
    book.active.row_dimensions[6].hidden = True


def _hidden_sheet(book: Any) -> None:
    book.create_sheet("more")["A1"] = 41
    book["more"].sheet_state = "veryHidden"


def _colours(book: Any) -> None:
    for cell, colour in (("B3", "FFAA4100"), ("B4", "FF000900")):
        book.active[cell].fill = PatternFill("solid", fgColor=colour)


def _scenario(book: Any) -> None:
    from openpyxl.worksheet.scenario import InputCells, Scenario, ScenarioList

    cell = InputCells(r="B3", val="41")
    book.active.scenarios = ScenarioList(scenario=[Scenario(name="north", inputCells=[cell])])


def _chart(book: Any) -> None:
    from openpyxl.chart import BarChart, Reference

    chart = BarChart()
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=5))
    book.active.add_chart(chart, "F2")


@pytest.mark.parametrize(
    "change",
    [
        _set("B3", "comment", Comment("it is 41", "me")),
        _set("B3", "value", "=20+21"),
        _number_behind('"x"'),
        _number_behind(";;;"),
        _white,
        _same_as_fill,
        _hidden_row,
        _hidden_sheet,
        _chart,
        _colours,
        _scenario,
        _set("B3", "hyperlink", "https://example.org/41"),
        lambda book: setattr(book.properties, "creator", "north is 41"),
        lambda book: book.defined_names.add(DefinedName("north", attr_text="41")),
        lambda book: setattr(book.properties, "description", "north is 41"),
        lambda book: setattr(book.active.oddFooter.center, "text", "north is 41"),
        lambda book: book.active.column_dimensions.__getitem__("H").__setattr__("hidden", True),
    ],
)
def test_every_other_part_of_a_workbook_is_a_question(
    tmp_path: Path, change: Callable[[Any], None]
) -> None:
    path = workbook(tmp_path / "t.xlsx", change)
    assert read_container(path).unread
    assert code(path) != 0
    left_out = clean_file(path, tmp_path / "clean.xlsx")
    assert left_out
    assert read_container(tmp_path / "clean.xlsx").unread == ()
    with zipfile.ZipFile(tmp_path / "clean.xlsx") as parts:
        assert not any(b"41" in parts.read(name) for name in parts.namelist() if "sheet" in name)


def test_cleaned_workbooks_hold_nothing_of_rows_and_columns_that_nobody_sees(
    tmp_path: Path,
) -> None:
    """Whether hidden one by one, several at once, by their size or by default; merged cells are none."""

    def change(book: Any) -> None:
        sheet = book.active
        for column in "DEFG":
            sheet[f"{column}2"] = 4141
        sheet.append(("memo", 4141))
        sheet.column_dimensions.group("D", "F", hidden=True)
        sheet.column_dimensions["G"].width = 0.5
        sheet.row_dimensions[6].height = 0.5
        sheet.merge_cells("A8:B9")

    for name, zero in (("some", False), ("all", True)):
        path = workbook(tmp_path / f"{name}.xlsx", change)
        if zero:
            book = openpyxl.load_workbook(path)
            book.active.sheet_format.zeroHeight = True
            book.save(path)
        left = clean_file(path, tmp_path / f"{name}-clean.xlsx")
        assert {"hidden row", "hidden column"} <= {part.what for part in left}
        clean = openpyxl.load_workbook(tmp_path / f"{name}-clean.xlsx").active
        values = {cell.value for row in clean.iter_rows() for cell in row} - {None}
        assert values == (set() if zero else {x for row in ROWS for x in row})


def test_a_text_that_no_cell_uses_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("Sheet")
        for number, row in enumerate(ROWS):
            sheet.write_row(number, 0, row)
    assert code(path) == 0
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "xl/sharedStrings.xml":
                content = content.replace(b"</sst>", b"<si><t>north was 41</t></si></sst>")
            new.writestr(name, content)
        new.writestr("xl/customXml/item1.xml", "<a>41</a>")
    path.write_bytes(buffer.getvalue())
    assert {part.what for part in read_container(path).unread} == {
        "text that no cell uses",
        "part of the workbook",
    }
    assert code(path) == 4


@pytest.mark.parametrize("fault", ["twice", "comment", "behind", "before", "xml"])
def test_every_byte_of_a_workbook_belongs_to_one_part(tmp_path: Path, fault: str) -> None:
    path = workbook(tmp_path / "t.xlsx")
    with zipfile.ZipFile(path) as parts:
        held = {name: parts.read(name) for name in parts.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    if fault == "xml":
        held[sheet] = held[sheet].replace(b"<sheetData>", b"<!-- 41 --><sheetData>")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as parts:
        for name, content in held.items():
            parts.writestr(name, content)
        if fault == "twice":
            with pytest.warns(UserWarning, match="Duplicate"):
                parts.writestr(sheet, held[sheet])
        if fault == "comment":
            parts.comment = b"41"
    whole = buffer.getvalue()
    path.write_bytes({"behind": whole + b"41", "before": b"41" + whole}.get(fault, whole))
    assert read_container(path).unread
    assert code(path) == 4
    clean_file(path, tmp_path / "clean.xlsx")
    assert read_container(tmp_path / "clean.xlsx").unread == ()


def test_bands_of_colour_tell_nothing_of_hidden_cells(tmp_path: Path) -> None:
    def bands(book: Any) -> None:
        for number in (3, 5):
            for cell in book.active[number]:
                cell.fill = PatternFill("solid", fgColor="FFDDDDDD")

    assert read_container(workbook(tmp_path / "t.xlsx", bands)).unread == ()


def test_statistics_and_metadata_of_parquet_are_looked_at(tmp_path: Path) -> None:
    table = pa.table({"area": ["Total", "n"], "value": [90, None]})
    parquet.write_table(table, tmp_path / "plain.parquet")
    assert read_container(tmp_path / "plain.parquet").unread == ()
    parquet.write_table(
        table.replace_schema_metadata({"note": "n is 41"}), tmp_path / "note.parquet"
    )
    assert [part.what for part in read_container(tmp_path / "note.parquet").unread] == ["metadata"]
    assert clean_file(tmp_path / "note.parquet", tmp_path / "clean.parquet")
    assert b"n is 41" not in (tmp_path / "clean.parquet").read_bytes()
    assert parquet.read_table(tmp_path / "clean.parquet").equals(table)
    schema = pa.schema([table.schema.field(0), table.schema.field(1).with_metadata({"n": "41"})])
    parquet.write_table(table.cast(schema), tmp_path / "field.parquet")
    assert [part.what for part in read_container(tmp_path / "field.parquet").unread] == ["metadata"]
    frame = table.to_pandas()
    frame.to_parquet(tmp_path / "frame.parquet")
    assert read_container(tmp_path / "frame.parquet").unread == ()
    frame.attrs["n"] = 41
    frame.to_parquet(tmp_path / "attributes.parquet")
    attributes = read_container(tmp_path / "attributes.parquet").unread
    assert {part.where for part in attributes} == {"key 'pandas'", "key 'PANDAS_ATTRS'"}
    with pytest.raises(InputError, match="take notes out of other files by hand"):
        clean_file(tmp_path / "t.csv", tmp_path / "clean.csv")


def test_members_of_a_jsonstat_dataset_that_are_no_cells_are_named(tmp_path: Path) -> None:
    axes = (TableAxis.plain("area", ["n", "s"]),)
    release = Release(axes, np.array([3, 4]), np.array(["F", "F"]), {"method": "none"})
    data = json.loads(JsonStat().write(release, "people"))
    (tmp_path / "t.json").write_text(json.dumps(data))
    before = {part.where for part in read_container(tmp_path / "t.json").unread}
    area = data["dimension"]["area"]
    data["extension"] = area["extension"] = data["dimension"]["true"] = {"true": [4141]}
    area["category"]["note"] = {"n": ["4141 people"]}
    (tmp_path / "t.json").write_text(json.dumps(data))
    named = {"extension", "area.extension", "true", "area.category.note"}
    assert {part.where for part in read_container(tmp_path / "t.json").unread} - before == named
    clean_file(tmp_path / "t.json", tmp_path / "clean.json")
    assert "4141" not in (tmp_path / "clean.json").read_text()
    one, other = (read_container(tmp_path / name) for name in ("t.json", "clean.json"))
    assert (one.grids[0].lines, other.unread) == (other.grids[0].lines, ())


def test_a_jsonstat_file_that_says_a_thing_twice_or_of_nothing_is_no_plain_one(
    tmp_path: Path,
) -> None:
    category = {"index": ["T", "a", "b"], "child": {"T": ["a", "b"]}, "label": {"z": "41"}}
    size = {"id": ["x"], "size": [3], "dimension": {"x": {"category": category}}}
    text = json.dumps({"version": "2.0", "class": "dataset", **size, "value": [90, None, None]})
    path = tmp_path / "t.json"
    path.write_text(text)
    assert [part.what for part in read_container(path).unread] == ["category that is not there"]
    path.write_text(text.replace('"value"', '"value": [90, 41, 49], "value"'))
    with pytest.raises(InputError, match="not a dataset of JSON-stat"):
        read_container(path)


@pytest.mark.parametrize(("last", "asked"), [(27, False), (28, True)])
def test_sums_that_a_jsonstat_file_states_need_one_line_that_shows_them(
    tmp_path: Path, last: int, asked: bool
) -> None:
    """A file may put codes under others that do not add up, so its word alone is not enough."""
    values = [70, 121, 191, 18, 42, 60, None, None, 104, None, None, last]
    dimension = {
        "area": {"category": {"index": ["T", "a", "b", "c"], "child": {"T": ["a", "b", "c"]}}},
        "sex": {"category": {"index": ["m", "f", "t"]}},
    }
    dataset = {"version": "2.0", "class": "dataset", "id": ["area", "sex"], "size": [4, 3]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({**dataset, "dimension": dimension, "value": values}))
    questions = {question.role for question in propose(read_container(path)).questions}
    assert ("codes:area" in questions) is asked
