"""Files as people bring them: where the table is, which column is what, what stands beside the values."""

from __future__ import annotations

import gzip
import json
import re
import zipfile
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font
from openpyxl.worksheet.formula import ArrayFormula
from pyarrow import parquet

from lustrum.formats.jsonstat import JsonStat
from lustrum.formats.write import (
    check_ending,
    plain_letters,
    release_as_arrow,
    release_as_csv,
    release_as_parquet,
    write_csv,
    write_release,
)
from lustrum.model import Category, DescribedStatistic, InputError, Release, TableAxis
from lustrum.model.errors import NotJudgedError
from lustrum.readers import (
    ColumnNames,
    Reading,
    StatedTotals,
    TableFile,
    read_table,
    recognise,
    releases_of,
    table_of_csv,
)
from lustrum.readers.columns import FileColumns, _variables, find_columns, value_column
from lustrum.readers.published.formulas import Formula, Sheet
from lustrum.readers.published.layouts import decoded, filled_down, published_rows
from lustrum.readers.published.reading import said_symbols
from lustrum.readers.published.values import is_numeric
from lustrum.readers.rows import Rows, read_rows, rows_of_csv

OPEN = StatedTotals(none=frozenset({""}))


def read(text: str, named: ColumnNames = ColumnNames(), **said: Any) -> TableFile:  # noqa: B008
    return table_of_csv(text, "x.csv", named, reading=Reading(published=True, **said))


def asked(file: TableFile, words: str) -> bool:
    return any(words in doubt for doubt in file.doubts)


def columns(text: str, published: bool = False, **named: Any) -> FileColumns:
    figures = named.pop("figures", ())
    rows = rows_of_csv(text, "x.csv")
    return find_columns(rows, ColumnNames(**named), published=published, figures=figures)


# Which column is what.


def test_columns_by_their_usual_names() -> None:
    found = columns(
        "a,a_label,value,status,n,x2,x1,h1,h2,lower,upl,primary,low,high,note\n"
        "p,one,5,F,2,2,3,f,g,1,1,0,4,6,late\nq,two,6,F,2,2,4,f,g,1,1,0,5,7,\n"
    )
    assert found.dimensions == ("a", "note")
    assert found.labels == {"a": "a_label"}
    assert found.status == {"value": "status"}
    assert (found.count, found.largest, found.holdings) == ("n", ("x1", "x2"), ("h1", "h2"))
    assert (found.lower, found.upper, found.primary) == ("lower", "upl", "primary")
    assert found.interval == ("low", "high")
    assert found.ignored == ()
    plain = columns("a,value\n1,5\n")
    assert plain == FileColumns(("a",), ("value",), {"value": None}, None, (), (), None, None, None)
    assert columns("a,value,low\n1,5,x\n2,6,y\n").interval is None
    ten = columns("a,value," + ",".join(f"x{i}" for i in range(1, 12)) + "\n1,5" + ",0" * 11 + "\n")
    assert ten.largest == tuple(f"x{i}" for i in range(1, 12)), "x10 stands behind x9"


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("value_status,CONF_STATUS,status", "value_status"),
        ("OBS_STATUS,status,CONF_STATUS", "CONF_STATUS"),
        ("status,obs_status", "obs_status"),
        ("Status", None),
        ("flag", None),
    ],
)
def test_the_column_of_letters_of_a_confidential_file(head: str, wanted: str | None) -> None:
    size = head.count(",") + 1
    lines = "".join(f"{i},{i}{',F' * size}\n" for i in (1, 2))
    assert columns(f"a,value,{head}\n{lines}").status == {"value": wanted}
    if wanted is None:
        published = columns(f"a,value,{head}\n{lines}", published=True)
        assert published.status == {"value": head}, "published files have more names for it"


def test_several_columns_of_values_have_their_own_letters() -> None:
    text = "a,u,v,u_status,status,v_flag\n1,5,6,F,A,c\n2,7,8,F,A,\n"
    assert columns(text, values=("u", "v")).status == {"u": "u_status", "v": None}
    found = columns(text, published=True, values=("u", "v"))
    assert found.status == {"u": "u_status", "v": "v_flag"}
    assert columns(text, values=("u", "v"), status="status").status == dict.fromkeys("uv", "status")
    assert columns("a,u,v,flag\np,5,6,b\nq,7,8,c\n", published=True, values=("u", "v")).status == {
        "u": None,
        "v": None,
    }
    # A second column of letters is no variable; one of words may be.
    twice = "a,value,status,flag\np,x,F,b\np,5,F,{}\n"
    assert columns(twice.format("c"), published=True).dimensions == ("a",)
    assert columns(twice.format("late news"), published=True).dimensions == ("a", "flag")
    mixed = "a,value,flag\np,5,b\nq,6,late news\n"
    assert columns(mixed, published=True).status == {"value": None}
    # A word is no letter, and a column that is named as one of codes is none.
    words = "a,value,flag\n1,5,late\n2,6,early\n"
    assert columns(words, published=True).status == {"value": None}
    letters = "a,value,flag\n1,5,b\n2,6,c\n"
    assert columns(letters, published=True).status == {"value": "flag"}
    assert columns(letters, published=True, by=("a", "flag")).status == {"value": None}
    assert columns("a,value,is_hidden\n1,5,1\n2,6,0\n", published=True).status == {
        "value": "is_hidden"
    }


@pytest.mark.parametrize(
    ("text", "named", "sentence"),
    [
        ("a,b\n1,2\n", {}, "there is no column 'value'"),
        ("a,value\n1,2\n", {"by": ("b",)}, "there is no column 'b'"),
        ("a,value\n1,2\n", {"status": "s"}, "there is no column 's'"),
        ("a,value\n1,2\n", {"count": "n"}, "there is no column 'n'"),
        ("a,value\n1,2\n", {"largest": ("x",)}, "there is no column 'x'"),
        ("a,value\n1,2\n", {"holdings": ("h",)}, "there is no column 'h'"),
        ("a,value\n1,2\n", {"beside": ("m",)}, "there is no column 'm'"),
        ("a,value\n1,2\n", {"by": ("value",)}, "'value' cannot be a dimension and a number"),
        ("n,value\n1,2\n", {"by": ("n",)}, "'n' cannot be a dimension and a number"),
        ("value,n\n1,2\n", {}, "there is no column of codes"),
        ("a,value,x1,x3\n1,9,5,2\n", {}, "there is a column 'x3' but no column x2"),
        ("a,value,x2\n1,9,5\n", {}, "there is a column 'x2' but no column x1"),
        ("a,value,x1,h2\n1,9,5,f\n", {}, "there is a column 'h2' but no column h1"),
        ("a,value,x1,x2,h1\n1,9,5,2,f\n", {}, "1 columns of holdings but 2 of largest"),
    ],
)
def test_columns_that_are_missing_or_contradict_each_other_are_refused(
    text: str, named: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        columns(text, **named)
    assert str(refused.value).startswith("x.csv: ")


def test_gaps_between_largest_contributions_count_only_in_confidential_files() -> None:
    assert columns("a,value,x1,x3\n1,9,5,2\n2,8,4,3\n", published=True).largest == ("x1", "x3")
    assert columns("a,value,x1,x3\n1,9,5,2\n", largest=("x1", "x3")).largest == ("x1", "x3")


def test_figures_labels_and_members_are_no_variables() -> None:
    text = "a,a_members,b,value,mean,b_label\n1,q,1,5,2,u\n1,q,2,6,3,v\n2,r,1,7,9,u\n2,r,2,7,8,v\n"
    found = columns(text)
    assert (found.dimensions, found.ignored) == (("a", "b"), ("a_members", "mean"))
    assert found.labels == {"b": "b_label"}
    # A column of numbers that tells rows apart is one of codes, and so is one of words.
    assert columns("a,b,value\n1,1,5\n1,2,6\n2,1,5\n2,2,6\n").dimensions == ("a", "b")
    assert columns("a,b,value\np,x,5\nq,y,6\n").dimensions == ("a", "b")
    assert columns("a,m,value\n1,,5\n2,3.5,6\n").dimensions == ("a",)
    assert columns("a,m,value\n1,2,5\n").dimensions == ("a", "m"), "one row tells nothing"
    assert columns("a,m,value\n1,2,5\n2,3,6\n", figures=("m",)).dimensions == ("a",)
    assert columns("a,m,value\n1,2,5\n2,3,6\n", by=("a",)).ignored == ("m",)
    assert columns("a,m,value\n1,2,5\n2,3,6\n", by=("a",), beside=("m",)).ignored == ()


@pytest.mark.parametrize(
    ("text", "dimensions"),
    [
        # A second name of the codes behind them is none; before them it is the variable.
        ("a,name,value\n1,one,5\n2,two,6\n1,one,7\n", ("a",)),
        ("name,a,value\none,u,5\ntwo,v,6\n", ("name",)),
        # A property of the codes is none, a parent neither; numbers of rows are none.
        ("a,big,b,value\np,y,k,5\nq,n,k,6\nr,y,k,7\np,y,l,5\nq,n,l,6\nr,y,l,7\n", ("a", "b")),
        ("a,up,value\nT,,9\np,T,4\nq,T,5\n", ("a",)),
        ("id,a,value\n0,p,4\n1,q,5\n2,r,5\n", ("a",)),
        ("a,value,title\np,4,The table\nq,5,The table\n", ("a",)),
        ("a,value,year\np,4,2020\nq,5,2020\n", ("a",)),
        ("title,value\nThe table,4\n", ("title",)),
        ("a,value,title\np,4,The table\n", ("a",)),
        # The same where cells stand twice.
        ("a,big,b,value\np,y,k,5\nq,n,k,6\nr,y,k,7\np,y,l,5\np,y,l,x\n", ("a", "b")),
        ("id,a,value\n0,p,x\n1,p,5\n", ("a",)),
        # What every row needs to be told apart stays.
        ("a,b,value\np,k,4\np,l,5\nq,k,6\nq,l,7\n", ("a", "b")),
        # A remark that no row needs is none.
        ("a,b,note,value\np,k,u,4\np,l,v,5\nq,k,v,6\nq,l,w,7\n", ("a", "b")),
    ],
)
def test_variables_of_a_published_file_are_the_columns_that_tell_cells_apart(
    text: str, dimensions: tuple[str, ...]
) -> None:
    found = columns(text, published=True)
    assert found.dimensions == dimensions
    head = set(text.partition("\n")[0].split(","))
    assert set(found.ignored) == head - {*dimensions, "value"}


def test_the_column_of_values_is_told_by_name_or_by_its_numbers() -> None:
    def chosen(text: str) -> tuple[str | None, tuple[str, ...]]:
        rows = rows_of_csv(text, "x.csv")
        return value_column(rows, lambda name: is_numeric(rows, name, Reading(published=True)))

    assert chosen("a,OBS_VALUE,n\np,4,1\nq,5,2\n") == ("OBS_VALUE", ())
    assert chosen("a,count,freq\np,4,1\nq,5,2\n") == ("count", ())
    assert chosen("area,people\nnorthern,4\nsouthern,5\n") == ("people", ())
    assert chosen("area,year,people\nnorthern,2020,4\nsouthern,2021,5\n") == ("people", ())
    assert chosen("area,people\nnorthern,2019\nsouthern,5\n") == ("people", ())
    assert chosen("area,unit,people\nnorthern,7,4\nsouthern,7,5\n") == ("people", ())
    assert chosen("area,people,share\nnorthern,x,4\nsouthern,5,3\n") == ("people", ("share",))
    assert chosen("area,people,firms\nnorthern,8,4\nsouthern,5,3\n") == (None, ("people", "firms"))
    assert chosen("area,people,firms\nnorthern,x,4\nsouthern,5,x\n") == (None, ("people", "firms"))
    assert chosen("area,name\nnorthern,long words\nsouthern,more words\n") == (None, ())
    with pytest.raises(NotJudgedError, match=r"x\.csv: there is no column 'value', and several"):
        read("area,people,firms\nnorthern,8,4\nsouthern,5,3\n")
    found = read("area,people,share\nnorthern,x,4\nsouthern,5,3\nTotal,9,7\n")
    assert found.values["people"] == (None, 5, 9)
    assert any("the values are those of the column 'people'" in note for note in found.notes)
    assert asked(found, "'share'"), "a column of figures is not left out in silence"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["4", "x", ""], (1, 2)),
        (["4 p", "12%", "(3)"], (3, 0)),
        (["<5", "10-19", "4"], (1, 2)),
        (["12345", "words"], (1, 1)),
        (["12345", "letters"], (0, 0)),
        (["n.a.", "4"], (1, 1)),
        (["secret word", "4"], (0, 0)),
    ],
)
def test_a_column_is_numeric_if_nothing_in_it_is_a_word(
    texts: list[str], expected: tuple[int, int]
) -> None:
    rows = Rows("x", {"v": texts}, [""] * len(texts))
    assert is_numeric(rows, "v", Reading(published=True)) == expected
    grouped = Rows("x", {"v": ["1,234,567"]}, [""])
    assert is_numeric(grouped, "v", Reading(published=True)) == (1, 0)
    assert is_numeric(grouped, "v", Reading(published=True, thousands=".")) == (0, 0)
    if texts[0] == "secret word":
        said = Reading(published=True, symbols=said_symbols(["Secret Word"]))
        assert is_numeric(rows, "v", said) == (1, 1)


# Where the table is.


def test_lines_around_the_table_are_left_out_and_counted() -> None:
    table = "area,sex,value\nTotal,m,3\na,m,x\nb,m,2\n"
    for above, below in ((0, 0), (1, 0), (0, 2), (2, 1)):
        text = "A title\n" * above + table + "A note, with a comma\n" * below
        rows = published_rows(text, "x.csv")
        assert rows.columns["value"] == ["3", "x", "2"], (above, below)
        assert rows.places[0] == f"line {above + 2}"
        said = [f"{n} {word}" for n, word in ((above, "above"), (below, "below")) if n]
        assert (rows.notes == ()) == (not said) == (rows.doubts == ())
        if said:
            assert rows.notes == (f"lines that are not part of the table: {' and '.join(said)}.",)
            assert published_rows(text, "x.csv", notes_read=True).doubts == ()


def test_titles_and_notes_that_a_spreadsheet_filled_up_are_no_rows() -> None:
    table = "area,sex,value\nTotal,m,3\na,m,x\n"
    rows = published_rows(f"Title,,\nMore,,\n{table},,\nx: hidden,,\n", "x.csv")
    assert rows.columns == {"area": ["Total", "a"], "sex": ["m", "m"], "value": ["3", "x"]}
    assert rows.places == ["line 4", "line 5"]
    assert rows.notes == ("lines that are not part of the table: 2 above and 2 below.",)
    # A blank line between rows that are filled is nothing, and its rows stay.
    rows = published_rows("area,sex,value\nTotal,m,3\n,,\na,m,x\n", "x.csv")
    assert rows.columns["value"] == ["3", "x"]
    assert rows.doubts == ()
    # With two columns a row with one filled field may be a hidden value.
    rows = published_rows("area,value\nTotal,3\na,\nb,\n", "x.csv")
    assert rows.columns["value"] == ["3", "", ""]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # The separator that makes the most columns, of those that as many lines agree on.
        ("a;b;c\np;1;2,5\nq;2;3,5\n", {"a": "p q", "b": "1 2", "c": "2,5 3,5"}),
        ("a;b;c,d\np;1;2,5\nq;2;3,5\n", {"a": "p q", "b": "1 2", "c,d": "2,5 3,5"}),
        ("x,y\na,b,value\n", {"a": "", "b": "", "value": ""}),
        ("a,b;c,d\np,1;2,5\nq,2;3,5\n", {"a": "p q", "b;c": "1;2 2;3", "d": "5 5"}),
        # More titles than rows, and titles alone above.
        ("t1\nt2\nt3\nt4\na,value\np,3\n", {"a": "p", "value": "3"}),
        ("Title,,\narea,sex,value\n", {"area": "", "sex": "", "value": ""}),
        ("area,,value\np,m,3\n", {"area": "p", "": "m", "value": "3"}),
        ("area,\np,3\nq,4\n", {"area": "p q", "": "3 4"}),
        # Rows behind a blank line stay unless nothing but one field is filled in any of them.
        ("area,value\nT,3\n,\na,\nb,\n", {"area": "T a b", "value": "3  "}),
        ("area,sex,value\nT,m,3\n,,\na,m,\n", {"area": "T a", "sex": "m m", "value": "3 "}),
        ("a,value\np,3\n  \nq,4\n", {"a": "p q", "value": "3 4"}),
        ("a,value\rp,3\rq,4\r", {"a": "p q", "value": "3 4"}),
        # A line of symbols and numbers behind a shorter line is a row, one of words is none.
        ("u,v\np,..,x\nq,5,6\n", {"row": "p q", "u": ".. 5", "v": "x 6"}),
        ("u,v\narea,sex,val\nq,m,6\n", {"area": "q", "sex": "m", "val": "6"}),
        ("u,v\narea,sex,2020\nq,m,6\n", {"area": "q", "sex": "m", "2020": "6"}),
    ],
)
def test_where_the_table_begins_and_ends(text: str, expected: dict[str, str]) -> None:
    found = published_rows(text, "x.csv").columns
    assert {name: " ".join(own) for name, own in found.items()} == expected


def test_lines_that_fit_no_table_are_not_judged() -> None:
    with pytest.raises(NotJudgedError, match=r"x\.csv, line 2: there are 4 fields"):
        published_rows("a,b,value\n1,2,3,4\n1,3,3\n2,3,3\n", "x.csv")
    with pytest.raises(NotJudgedError, match="the column '' occurs twice"):
        published_rows("a,,\nb,,\n", "x.csv")


def test_the_separator_is_the_one_that_most_lines_agree_on() -> None:
    text = "area;value\nnorth, cold;3,5\nsouth;4,5\neast;5\n"
    rows = published_rows(text, "x.csv")
    assert (rows.delimiter, rows.columns["value"]) == (";", ["3,5", "4,5", "5"])
    rows = published_rows("a|b|value\n1|2|3\n1|3|4\n", "x.csv")
    assert (rows.delimiter, rows.columns["b"]) == ("|", ["2", "3"])
    assert published_rows("\ufeffa,value\n1,2\n", "x.csv").columns["a"] == ["1"]
    assert published_rows("a , value\n'=1, 2 \n", "x.csv").columns == {"a": ["=1"], "value": ["2"]}


def test_a_first_line_without_the_name_of_its_first_column() -> None:
    rows = published_rows('"u","v"\n"p",3,x\n"q",5,6\n', "x.csv")
    assert rows.columns == {"row": ["p", "q"], "u": ["3", "5"], "v": ["x", "6"]}
    assert rows.places == ["line 2", "line 3"]
    assert rows.notes[0].endswith("it is called 'row'.")
    # Words behind the first field could be names: then the line above is a title.
    rows = published_rows("u,v\narea,sex,value\nq,m,6\n", "x.csv")
    assert rows.columns["value"] == ["6"]
    with pytest.raises(
        NotJudgedError, match=r"x\.csv, line 4: there are 2 fields, but the line of names has 3"
    ):
        published_rows("a,b,value\n1,2,3\n1,3,3\n1,2\n2,3,3\n", "x.csv")
    with pytest.raises(NotJudgedError, match="the column 'b' occurs twice"):
        published_rows("a,b,b\n1,2,3\n", "x.csv")
    with pytest.raises(InputError, match="no line has two fields"):
        published_rows("", "x.csv")


def test_encodings() -> None:
    assert decoded("ü".encode()) == ("ü", "")
    assert decoded("ü".encode("utf-16")) == ("ü", "read as UTF-16.")
    assert decoded("ü€".encode("cp1252")) == (
        "ü€",
        "read as Windows-1252, because it is not UTF-8.",
    )
    assert decoded(b"\xfc\x81") == ("ü\x81", "read as Latin-1, because it is not UTF-8.")
    for wrong in (b"\xff\xfea", "ab".encode("utf-16-le")):
        with pytest.raises(InputError, match="save it as UTF-8"):
            decoded(wrong)


def test_eurostat_files_have_periods_across_and_flags_behind_values() -> None:
    text = "freq,geo\\TIME\t2020 \t2021 \nA,XX\t227 p\t: c\n\nA,XX1\t:\t4\n"
    rows = published_rows(text, "x.tsv")
    assert rows.columns == {
        "freq": ["A"] * 4,
        "geo": ["XX", "XX", "XX1", "XX1"],
        "TIME": ["2020", "2021"] * 2,
        "value": ["227", ":", ":", "4"],
        "OBS_FLAG": ["p", "c", "", ""],
    }
    assert rows.places == ["line 2, 2020", "line 2, 2021", "line 4, 2020", "line 4, 2021"]
    assert rows.notes == ("read as a Eurostat file, with periods across.",)
    for wrong in ("A\t1\t2\n", "A,XX\t1\n", "A,XX\t1\t2\t3\n"):
        with pytest.raises(NotJudgedError, match=r"x\.tsv, line 2: the fields do not fit"):
            published_rows("freq,geo\\TIME\t2020\t2021\n" + wrong, "x.tsv")


def test_merged_names_are_filled_down_only_where_rows_would_stand_twice() -> None:
    def down(*codes: str) -> list[str]:
        rows = Rows("x", {"a": list(codes), "b": ["T", "F"] * (len(codes) // 2)}, [""] * len(codes))
        return list(filled_down(rows, ["a", "b"]).columns["a"])

    assert down("n", "", "s", "", "", "") == ["n", "n", "s", "s", "s", "s"]
    assert down("n", "", "s", "s") == ["n", "", "s", "s"], "no row stands twice"
    assert down("", "", "", "") == [""] * 4, "the first name is missing"
    assert down("", "", "a", "") == ["", "", "a", ""]
    twice = Rows("x", {"a": ["n", "n"], "b": ["T", "T"]}, ["", ""])
    assert filled_down(twice, ["a", "b"]) is twice
    one = Rows("x", {"a": ["n", "", ""]}, ["", "", ""])
    assert filled_down(one, ["a"]) is one


def test_a_variable_across_the_columns_becomes_one() -> None:
    text = "area,name of area,2019,2020\np,area p,3,x\nq,area q,5,6\n"
    found = read(text, wide="year")
    assert found.cells[:2] == (("p", "area p", "2019"), ("p", "area p", "2020"))
    assert found.places[:2] == ["line 2, 2019", "line 2, 2020"]
    assert found.values["value"] == (3, None, 5, 6)
    by = read(text, ColumnNames(by=("area",), beside=("name of area",)), wide="year")
    assert by.cells[3] == ("q", "2020")
    some = read("area,u,v,w\np,1,2,3\nq,4,5,6\n", ColumnNames(values=("u", "w")), wide="k")
    assert some.cells == (("p", "u"), ("p", "w"), ("q", "u"), ("q", "w"))
    for named, wide in (
        ({"by": ("zone",)}, "k"),
        ({"values": ("u", "zone")}, "k"),
        ({}, "area"),
        ({"values": ("u",)}, "k"),
    ):
        with pytest.raises(InputError, match=r"x\.csv: (there is no column 'zone'|--wide names)"):
            read("area,u,v\np,1,2\nq,4,5\n", ColumnNames(**named), wide=wide)  # type: ignore[arg-type]


# Cells that stand twice, other letters, parents, units.


def test_rows_of_one_cell_are_taken_together() -> None:
    text = "a,value,share,status\nT,9,100,\np,x,,\nq,4,44,\np,{},55,{}\n"
    formula = ("share = 100 * value / value[T]",)
    found = read(text.format("<5", "A"), formulas=formula)
    assert found.cells == (("T",), ("p",), ("q",))
    assert found.bounds["value"][1] == (0, 4)
    assert found.places[1] == "line 3"
    assert found.status["value"] == ("", "A", "")
    assert [f.terms[0][1] for f in found.facts] == [("p",), ("p",), ("q",), ("q",)]
    assert any("stand twice" in note for note in found.notes)
    shown = read(text.format("5", "A"), formulas=formula, letters={"A": "hidden"})
    assert shown.values["value"] == (9, 5, 4)
    assert shown.standing["value"] == (1,)
    with pytest.raises(
        NotJudgedError, match=r"stands in line 3 and in line 5 with different values of 'value'"
    ):
        read(text.format("5", "").replace("p,x", "p,6"), formulas=formula)
    with pytest.raises(
        NotJudgedError, match=r"stands in line 3 and in line 5, and what they say about 'value'"
    ):
        read(text.format("<5", "").replace("p,x", "p,>9"), formulas=formula)
    with pytest.raises(NotJudgedError, match="cannot both be true"):
        read("a,value\nT,9\np,>9\np,<5\np,x\n")
    with pytest.raises(InputError, match="speaks of the column 'value%'"):
        read("a,value\nT,9\nT,9\np,x\n", formulas=("value% = 100 * value / value[T]",))
    same = read("a,value\nT,9\np,5\nq,4\np,5\n")
    assert (same.values["value"], same.standing["value"]) == ((9, 5, 4), ())
    zero = read("a,value\nT,9\nT,9\np,-\nq,(4)\n")
    assert (zero.maybe_zero["value"], zero.bracketed["value"]) == ((1,), (2,))
    shares = read(
        "a,value\nT,200\np,x\nq,20%\np,0%\n", formulas=("value% = 100 * value / value[T]",)
    )
    assert {f.terms[0][1] for f in shares.facts} == {("p",), ("q",)}


def test_a_second_column_of_letters_or_words_can_contradict_the_first() -> None:
    text = "a,value,status,{}\nT,9,F,{}\np,5,F,{}\nq,,A,{}\n"
    found = read(text.format("CONF_STATUS", "F", "A", "A").replace("status", "value_status"))
    assert found.standing["value"] == (1,)
    assert not found.doubts
    unclear = read(text.format("flag", "", "z", "z"))
    assert unclear.standing["value"] == ()
    assert asked(unclear, "numbers stand beside 'z' in the column 'flag'")
    words = read(text.format("remark", "", "Value suppressed", "Value suppressed"))
    assert asked(words, "beside 'Value suppressed' in the column 'remark'")
    assert not asked(read(text.format("remark", "", "", "Value suppressed")), "remark")
    assert not asked(read(text.format("remark", "", "Value late", "Value suppressed")), "remark")


def test_a_column_of_parents_names_codes_of_the_variable_and_never_the_code_itself() -> None:
    assert read("a,up,value\nT,,9\np,T,4\nq,T,5\n").parents == {"a": {"p": "T", "q": "T"}}
    assert read("a,up,value\nT,T,9\np,T,4\nq,T,5\n").parents == {}
    assert read("a,up,value\nT,,9\np,Z,4\nq,T,5\n").parents == {}
    assert read("a,up,value\nT,T,9\np,T,9\nq,p,5\n").parents == {}
    assert read("a,up,value\nT,,9\np,,4\nq,,5\n").parents == {}


def test_a_formula_settles_the_shares_of_its_own_values_only() -> None:
    named = ColumnNames(values=("u", "v"))
    text = "a,u,v\nT,200,300\np,12%,40%\nq,x,x\n"
    found = read(text, named, formulas=("v% = 100 * v / v[T]",))
    assert ["column 'u' holds shares" in doubt for doubt in found.doubts] == [True]


def test_units_and_names_that_say_that_values_are_rounded() -> None:
    assert read(
        "a,Turnover in thousand,b\np,4,k\nq,5,k\n", ColumnNames(values=("Turnover in thousand",))
    ).coarse
    assert read("a,value,UNIT_MULT\np,4,3\nq,5,3\n").coarse == {"value"}
    assert not read("a,value,UNIT_MULT\np,4,0\nq,5,0\n").coarse
    assert not read("a,value,UNIT_MULT\np,4,\nq,5,\n").coarse
    assert read("a,mio EUR\np,4\nq,5\n", ColumnNames(values=("mio EUR",))).coarse
    assert not read("a,milling\np,4\nq,5\n", ColumnNames(values=("milling",))).coarse


def test_other_names_of_a_variable_and_of_the_column_of_letters() -> None:
    found = read(
        "geo,value,mark\np,4,A\nq,5,A\n",
        aliases={"geo": "area"},
        status="mark",
        letters={"A": "hidden"},
    )
    assert found.dimensions == ("area",)
    assert found.standing["value"] == (0, 1)
    text = "a,value,mark\np,4,A\nq,5,A\n"
    for named in (
        ColumnNames(status="mark", status_list="confidentiality"),
        ColumnNames(status="mark"),
    ):
        found = read(text, named, letters={} if named.status_list else {"A": "hidden"})
        assert found.standing["value"] == (0, 1)
    points = read("a;value;copy\nT;9;1.234\np;x;\n", thousands=".", formulas=("copy = value",))
    assert [(fact.low, fact.high) for fact in points.facts] == [(F("1233.5"), F("1234.5"))]


def test_figures_that_tell_rows_apart_are_codes() -> None:
    found = read("area,size,people\nnorthern,1,x\nnorthern,2,5\nsouthern,1,7\nsouthern,2,8\n")
    assert found.dimensions == ("area", "size")
    flagged = read(
        "area,size,people,flag,share\nnorthern,1,x,c,40\nnorthern,2,5,,60\nsouthern,1,7,,70\nsouthern,2,8,,80\n",
        formulas=("share = 100 * people / people[size=2]",),
    )
    assert flagged.dimensions == ("area", "size")
    assert flagged.status["people"] == ("c", "", "", "")
    plain = read("area,people,share\nnorthern,x,4\nsouthern,5,3\nTotal,9,7\n", signed=True)
    assert (plain.dimensions, plain.ignored, plain.signed) == (("area",), ("share",), True)
    assert read("a,value\np,4\n").cells == (("p",),)
    with pytest.raises(InputError, match=r"x\.csv: there is no cell"):
        read("a,b,value\n")


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ("1,4", ""),
        (",4", ""),
        ("..,x", ""),
        ("low,4", "the column 'low' holds an end of an interval that is no number, such as 'low'"),
        ("1,<5", "the column 'high' holds an end of an interval that is no number, such as '<5'"),
    ],
)
def test_ends_of_intervals_that_cannot_be_read_are_asked_about(ends: str, words: str) -> None:
    text = f"a,value,low,high\nT,9,,\np,,{ends}\nq,4,,\n"
    found = read(text)
    assert [d.removeprefix("x.csv: ").partition(";")[0] for d in found.doubts] == (
        [words] if words else []
    )
    if "low" in ends:
        assert not read(text, symbols=said_symbols(["low"])).doubts


def test_intervals_of_hidden_values_hold_together_or_are_not_judged() -> None:
    def ends(text: str, **said: Any) -> list[tuple[int, int]]:
        file = read(text, **said)
        release = releases_of([file], recognise([file], OPEN, published=True))[0]
        assert release.low is not None
        assert release.high is not None
        return list(zip(release.low.tolist(), release.high.tolist(), strict=True))

    assert ends("a,value,low,high\nT,9,,\np,,2,4\nq,5,,\n")[1] == (2, 4)
    assert ends("a,value,low,high\nT,9,,\np,<4,2,5\nq,5,,\n")[1] == (2, 3)
    assert ends("a,value\nT,9\np,k\nq,5\n", symbols=said_symbols(["k=-5..5"]))[1] == (-5, 5)
    assert ends("a,value\nT,9\np,k\nq,5\n", symbols=said_symbols(["k=..5"]))[1] == (0, 5)
    assert ends("a,value\nT,9\np,k\nq,-5\n", symbols=said_symbols(["k=..5"]))[1][0] < -1000
    for text in (
        "a,value,low,high\nT,9,,\np,,5,4\nq,5,,\n",
        "a,value,low,high\nT,9,,\np,<4,5,6\nq,5,,\n",
    ):
        with pytest.raises(NotJudgedError, match=r"x\.csv, line 3: what the file states"):
            ends(text)


# Columns that nobody explained.


@pytest.mark.parametrize(
    ("column", "texts", "tells"),
    [
        ("mean", "1.5 2.5 3.5", True),
        ("mean", "7.5 7.5 7.5", True),
        ("mean", "7,5 7,5 7,5", True),
        ("year", "2020 2020 2020", False),
        ("date", "2020-01-02 2020-01-02 2020-01-02", False),
        ("note", "late late late", False),
        ("id", "0 1 2", False),
        ("id", "1 2 3", True),
        ("note", "5_people none none", True),
        ("up", "T T T", False),
    ],
)
def test_numbers_beside_values_are_a_doubt_unless_they_tell_nothing(
    column: str, texts: str, tells: bool
) -> None:
    rows = zip("Tpq", ("9", "", "4"), texts.split(), strict=True)
    fields = [(a, v, t.replace("_", " ")) for a, v, t in rows]
    text = f"a,value,{column}\n" + "".join(f'{a},{v},"{t}"\n' for a, v, t in fields)
    found = read(text, ColumnNames(by=("a",)))
    assert asked(found, f"nobody said what the numbers in the column {column!r}") == tells
    assert not read(text, ColumnNames(by=("a",), beside=(column,))).doubts


def test_several_columns_that_nobody_explained_are_listed_and_names_of_codes_are_not() -> None:
    text = "a,b,name,value,m,k\nT,u,All 3,9,1.5,2.5\np,u,Area 1,,2.5,1.5\n"
    text += "T,v,All 3,4,3.5,0.5\np,v,Area 1,2,4.5,9.5\n"
    found = read(text, ColumnNames(by=("a", "b")))
    assert [("columns 'm', 'k' are" in d, "--beside m" in d) for d in found.doubts] == [
        (True, True)
    ]
    # A name that differs between cells of one code is no name.
    other = read(
        text.replace("p,v,Area 1", "p,v,Area 2"), ColumnNames(by=("a", "b"), beside=("m", "k"))
    )
    assert asked(other, "'name'")
    strict = table_of_csv("a,value,n,lower\n1,5,3,1\n2,6,4,1\n", "x.csv")
    assert [("'lower'" in d, "'n'" in d) for d in strict.doubts] == [
        (False, False)
    ] or not strict.doubts


@pytest.mark.parametrize(
    ("texts", "tells"),
    [
        # Of cells p-k, p-l, q-k and q-l: numbers always tell, names of the codes of one variable never do.
        (("1.5", "1.5", "2.5", "2.5"), True),
        (("", "1.5", "", ""), True),
        (("Area 1", "Area 1", "Area 2", "Area 2"), False),
        (("1", "1", "Area 2", "Area 2"), False),
        (("Age 1", "Age 2", "Age 1", "Age 2"), False),
        (("Area 1", "Area 2", "Area 2", "Area 1"), True),
        (("Area 1", "Area 1", "Area 1", "Area 2"), True),
        (("5 are hidden",) * 4, True),
        # Names of its own codes, such as parents, tell nothing.
        (("", "", "p1", "p1"), False),
        (("", "p1", "q1", "p1"), False),
        (("", "p1", "q1", "5 people"), True),
        (("", "k1", "l1", "k1"), True),
    ],
)
def test_words_with_digits_beside_values(texts: tuple[str, ...], tells: bool) -> None:
    for codes in (("p1", "p1", "q1", "q1"), ("p1",) * 4):
        seconds = ("k1", "l1") * 2 if codes[3] == "q1" else ("k1", "l1", "m1", "n1")
        rows = zip(codes, seconds, (4, "", 5, 6), texts, strict=True)
        text = "a,b,value,m\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
        found = read(text, ColumnNames(by=("a", "b")))
        if codes[3] == "q1":
            assert asked(found, "in the column 'm' are") == tells
        elif len(set(texts)) == 1:
            assert asked(found, "in the column 'm' are"), "one remark on all cells of one code"


def test_a_name_for_every_cell_may_tell_and_so_does_an_upper_level() -> None:
    assert asked(read("a,value,m\np,4,Area 1\nq,,Area 2\n", ColumnNames(by=("a",))), "'m'")
    assert asked(read("a,value,upper\np,4,1.5\nq,,2.5\n"), "'upper'")


def test_a_confidential_file_is_read_strictly() -> None:
    text = "a,a_label,value,status,x1,h1,mean\np,the p,731,A,700,f,3\nq,q,GEHEIM,D,,,4\nr,r,N.A.,F,,,5\n"
    named = ColumnNames(by=("a",))
    file = table_of_csv(text, "x.csv", named, hidden=["Geheim"])
    assert file.values["value"] == (731, None, None)
    assert (file.holdings, file.ignored) == ((("f", "", ""),), ("mean",))
    assert file.labels["a", "p"] == "the p"
    assert file.standing["value"] == ()
    assert [doubt.startswith("x.csv: ") for doubt in file.doubts] == [True, True]
    assert asked(file, "'mean'")
    assert asked(file, "numbers stand beside 'A' in the column 'status'")
    said = ColumnNames(by=("a",), beside=("mean", "x1"), status_list="confidentiality")
    known = table_of_csv(text, "x.csv", said, hidden=["Geheim"])
    assert (known.standing["value"], known.doubts) == ((0,), ())
    with pytest.raises(InputError, match=r"x\.csv, line 4: the cell stands in line 2 already"):
        table_of_csv("a,value\np,3\nq,4\np,3\n", "x.csv")
    with pytest.raises(InputError, match=r"x\.csv: there is no cell"):
        table_of_csv("a,value\n", "x.csv")


# Numbers of a table.


def test_numbers_that_cannot_be_exact_are_refused_and_rounding_is_half_to_even() -> None:
    file = table_of_csv("a,value,x1\n1,2.25,1.35\n2,,0.5\n3,4.5,4\n", "x.csv")
    assert file.decimals == 2
    rounded = file.rounded(1)
    assert rounded.values["value"] == (Decimal("2.2"), None, Decimal("4.5"))
    assert rounded.largest[0] == (Decimal("1.4"), Decimal("0.5"), 4)
    assert file.rounded(3).values == file.values
    long = table_of_csv("a,value\n1,123456789012345.12345678901234567\n", "x.csv").rounded(14)
    assert long.values["value"] == (Decimal("123456789012345.12345678901235"),)
    values, known = file.dense(file.values["value"], 2)
    assert (values.tolist(), known.tolist()) == ([225, 0, 450], [True, False, True])
    edge = table_of_csv(f"a,value\n1,{2**53 / 10:.1f}\n2,0.1\n".replace("e+", "e"), "x.csv")
    assert edge.known_values[0][0].tolist() == [2**53, 1]
    over = table_of_csv("a,value\n1,900719925474099.3\n2,0.1\n", "x.csv")
    with pytest.raises(InputError, match=r"x\.csv: the numbers have more digits"):
        over.known_values  # noqa: B018
    stated = read("a,value\nT,9\n1,k\n2,4\n", symbols=said_symbols(["k=0.25..0.5"]))
    assert stated.decimals == 2
    low = read("a,value,low,high\nT,9,,\n1,,0.125,1\n2,4,,\n")
    assert low.decimals == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,value\n1,1_0\n", "line 2: the value of 'value'"),
        ("a,value\n1,5\n2,1e15\n", "line 3: the value of 'value'"),
        ("a,value\n1,-1e15\n", "line 2: the value of 'value'"),
        ("a,value\n1,1e-100\n", "line 2: the value of 'value'"),
        ("a,value,n\n1,5,three\n", "line 2: the value of 'n'"),
        ("a,value,primary\n1,5,0\n2,6,2\n", "line 3: 'primary' must be 0 or 1"),
        ("a,value,lower\n1,5,0\n2,6,x\n", "line 3: the level 'lower'"),
    ],
)
def test_what_is_no_number_is_refused_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=rf"x\.csv, {sentence}"):
        table_of_csv(text, "x.csv")


def test_marks_and_levels_of_a_confidential_file() -> None:
    text = "a,value,primary,lower,upper\n1,5,yes,0,2.5\n2,6,NO,,\n3,7,,1,1\n4,8,1,1,1\n"
    text += "5,8,true,1,1\n6,1,0,1,1\n"
    file = table_of_csv(text, "x.csv")
    assert file.primary == (True, False, False, True, True, False)
    assert file.lower == (0, None, 1, 1, 1, 1)
    assert file.upper is not None
    assert file.upper[0] == Decimal("2.5")
    assert repr(file) == "TableFile('x.csv', a, 6 cells)"


# Formulas.


def sheet(values: dict[str, list[Any]], **texts: list[str]) -> Sheet:
    cells = [("T",), ("p",), ("q",)]
    own = {
        n: [None if v is None else Decimal(str(v)) for v in column] for n, column in values.items()
    }
    return Sheet(
        "x.csv",
        ("a",),
        cells,
        own,
        texts,
        lambda name: [Decimal(t) if t else None for t in texts[name]],
    )


def facts(words: str, given: Sheet) -> list[tuple[dict[str, Fraction], Any, Any]]:
    return [
        ({f"{name}[{cell[0]}]": weight for name, cell, weight in fact.terms}, fact.low, fact.high)
        for fact in Formula.of(words).about(given.values).facts(given)
    ]


F = Fraction


def test_a_figure_bounds_the_value_it_was_computed_from() -> None:
    """A printed figure is right to half a unit of its last digit."""
    given = sheet(
        {"v": [9, None, 4]}, s=["100.0", "55.6", ""], m=["2.25", "", "1"], w=["4", "0", "-2"]
    )
    assert facts("s = 100 * v / v[T]", given) == [
        ({"v[p]": F(100), "v[T]": -F("55.55")}, F(0), None),
        ({"v[p]": F(100), "v[T]": -F("55.65")}, None, F(0)),
    ]
    assert facts("m = v / w", given) == [
        ({"v[T]": F(1)}, F("8.98"), F("9.02")),
        ({"v[q]": F(1)}, F("-2.01"), F("-1.99")),
    ]
    assert facts("m = v / 1000", given) == [
        ({"v[T]": F(1, 1000)}, F("2.245"), F("2.255")),
        ({"v[q]": F(1, 1000)}, F("0.995"), F("1.005")),
    ]
    assert facts("m = 2 * v - 1", given)[0] == ({"v[T]": F(2)}, F("3.245"), F("3.255"))
    assert facts("m = 2 * v + 1.5", given)[0] == ({"v[T]": F(2)}, F("0.745"), F("0.755"))
    assert facts("w = v", given) == [
        ({"v[T]": F(1)}, F("3.5"), F("4.5")),
        ({"v[p]": F(1)}, F("-0.5"), F("0.5")),
        ({"v[q]": F(1)}, F("-2.5"), F("-1.5")),
    ]
    assert facts("s = 100 * v / v[a = T]", given) == facts("s = 100 * v / v[T]", given)
    assert facts("s = 100 * v / v[Z]", given) == []
    # A figure over 0 says nothing, one over 1 does.
    over = sheet({"v": [9, None, 4]}, m=["9", "5", ""], w=["1", "0", ""])
    assert facts("m = v / w", over) == [({"v[T]": F(1)}, F("8.5"), F("9.5"))]


@pytest.mark.parametrize(("total", "part"), [(-9, -5), (-9, 4), (9, -5), (9, 5)])
def test_a_share_of_a_total_holds_for_the_true_part_whatever_its_sign(
    total: int, part: int
) -> None:
    share = str(round(Decimal(100) * part / total, 1))
    given = sheet({"v": [total, None, total - part]}, s=["", share, ""])
    (least, most) = facts("s = 100 * v / v[T]", given)

    def weighed(fact: Any, at: int | Fraction) -> Fraction:
        return fact[0]["v[p]"] * at + fact[0]["v[T]"] * total

    for at in (part - 1, part, part + 1):
        assert (weighed(least, at) >= 0 >= weighed(most, at)) == (at == part)


def test_a_share_of_a_total_of_unknown_sign_is_not_judged() -> None:
    shares = ["", "55.6", "44.4"]
    assert len(facts("s = 100 * v / v[T]", sheet({"v": [None, None, 4]}, s=shares))) == 4
    for unknown in (
        sheet({"v": [None, None, -4]}, s=shares),
        replace(sheet({"v": [None, None, 4]}, s=shares), signed=True),
    ):
        with pytest.raises(NotJudgedError, match="not shown and could be negative"):
            facts("s = 100 * v / v[T]", unknown)
    # Nothing is a share of 0, and a total of another column may be known where this one is not.
    assert facts("s = 100 * v / v[T]", sheet({"v": [0, None, 4]}, s=shares)) == []
    other = sheet({"v": [None, None, -4], "w": [9, None, None]}, s=shares)
    assert len(facts("s = 100 * v / w[T]", other)) == 4
    # What is not shown anywhere, or 0 elsewhere, is not negative; what counts is the cell that is meant.
    for positive in (sheet({"v": [None, None, 0]}, s=shares), sheet({"v": [1, None, 4]}, s=shares)):
        assert facts("s = 100 * v / v[T]", positive)[0][2] is None
    assert facts("s = 100 * v / w[T]", sheet({"v": [9, None, 4]}, s=shares, w=shares))[0][2] is None
    ((terms, low, high), _) = facts("s = 100 * v / v[q]", sheet({"v": [9, None, -4]}, s=shares))
    assert (terms, low, high) == ({"v[p]": F(100), "v[q]": -F("55.65")}, F(0), None)


def test_running_sums_bounds_and_classes() -> None:
    values = {"v": [9, None, 4], "u": [0.5, None, 1]}
    texts = {"r": ["9", "14", ""], "lo": ["1", "", "2.5"], "hi": ["", "", "7"]}
    given = sheet(values, **texts, c=["<5", "10-19", ""])
    assert facts("r = running v", given) == [
        ({"v[T]": F(1)}, F(9), F(9)),
        ({"v[T]": F(1), "v[p]": F(1)}, F(14), F(14)),
    ]
    assert facts("r = running u", given)[0] == ({"u[T]": F(1)}, F("8.5"), F("9.5"))
    tenths = sheet({"v": [9, None, 4]}, r=["9.0", "14.2", ""])
    assert facts("r = running v", tenths)[1] == (
        {"v[T]": F(1), "v[p]": F(1)},
        F("14.15"),
        F("14.25"),
    )
    assert facts("lo <= v <= hi", given) == [
        ({"v[T]": F(1)}, F(1), None),
        ({"v[q]": F(1)}, F("2.5"), F(7)),
    ]
    assert facts("v <= hi", given) == [({"v[q]": F(1)}, None, F(7))]
    assert facts("lo <= v", given)[0] == ({"v[T]": F(1)}, F(1), None)
    assert facts("v in c", given) == [({"v[T]": F(1)}, F(0), F(4)), ({"v[p]": F(1)}, F(10), F(19))]
    assert facts("u in c", given)[0] == ({"u[T]": F(1)}, F(0), F(5)), "values have decimals"
    zero = sheet({"v": [9, None, 0]}, c=["<5", "", ""])
    assert facts("v in c", zero) == [({"v[T]": F(1)}, F(0), F(4))]
    negative = sheet({"v": [9, None, -4]}, c=["<5", "", ""])
    assert facts("v in c", negative) == [({"v[T]": F(1)}, None, F(4))]
    assert facts("v in c", replace(zero, signed=True)) == [({"v[T]": F(1)}, None, F(4))]
    with pytest.raises(InputError, match=r"x\.csv: the column 'c' holds a field that is no class"):
        facts("v in c", sheet({"v": [9, None, 4]}, c=["<5", "many", ""]))


@pytest.mark.parametrize(
    ("words", "explains"),
    [
        ("s = 100 * v / v[T]", ("s",)),
        ("s = v / w", ("s", "w")),
        ("lo <= v <= hi", ("lo", "hi")),
        ("'my share' = v / `a b`", ("my share", "a b")),
        ("'2020' = running v", ("2020",)),
        ("v in c", ("c",)),
        ("value% = 100 * value / value[T]", ("value%",)),
    ],
)
def test_a_formula_says_which_columns_it_explains(words: str, explains: tuple[str, ...]) -> None:
    assert Formula.of(words).explains == explains


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("v", "cannot be read"),
        ("s = v * 2", "cannot be read"),
        ("2020 = v", "cannot be read"),
        ("s = 100 * z / z[T]", "speaks of the values 'z'"),
        ("z = v", "speaks of the column 'z'"),
        ("s = v / z", "speaks of the column 'z'"),
    ],
)
def test_a_formula_that_means_nothing_is_one_sentence(words: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        facts(words, sheet({"v": [9, None, 4]}, s=["1", "", ""]))


def test_a_part_of_several_variables_needs_the_name_of_one() -> None:
    own = [Decimal(4), None]
    given = Sheet(
        "x",
        ("a", "b"),
        [("T", "k"), ("p", "k")],
        {"v": own},
        {"s": ["", "5"]},
        lambda _: [None, Decimal(5)],
    )
    found = Formula.of("s = 10 * v / v[a=T]").facts(given)
    assert [term[1] for term in found[0].terms] == [("p", "k"), ("T", "k")]
    with pytest.raises(
        InputError, match=r"needs a variable and its code in brackets, such as \[b=Total\]"
    ):
        Formula.of("s = 10 * v / v[T]").facts(given)
    with pytest.raises(InputError, match="needs a variable and its code in brackets"):
        Formula.of("s = 10 * v / v[a]").facts(given)


def test_a_formula_may_speak_of_values_that_the_file_does_not_show() -> None:
    found = read(
        "a,value,share\nT,9,100\np,4,44\nq,5,56\n", formulas=("share = 100 * hours / hours[T]",)
    )
    assert found.values["hours"] == (None, None, None)
    assert found.status["hours"] == ("", "", "")
    assert len(found.facts) == 4
    assert not found.doubts


# Workbooks, Parquet, JSON-stat, compressed files.


def workbook(path: Path, rows: list[list[Any]], sheet: str = "Sheet") -> Path:
    book = openpyxl.Workbook()
    book.active.title = sheet  # type: ignore[union-attr]
    for row in rows:
        book.active.append(row)  # type: ignore[union-attr]
    book.save(path)
    return path


def test_a_workbook_is_read_as_it_is_shown(tmp_path: Path) -> None:
    path = workbook(
        tmp_path / "t.xlsx",
        [["a", "value", "status"], ["p", 1, "F"], ["q", "A", "A"], ["r", 2.5, "F"]],
    )
    file = read_table(path)
    assert file.values["value"] == (1, None, Decimal("2.5"))
    assert file.places == ["row 2", "row 3", "row 4"]
    digits = workbook(tmp_path / "d.xlsx", [["a", "value", "status"], ["p", 1, 1], ["q", 0, 0]])
    assert read_table(digits).values["value"] == (1, 0), (
        "a number beside the same digit is a number"
    )
    ends = workbook(
        tmp_path / "e.xlsx",
        [["a", "value", "low", "high"], ["p", None, "not known", 4], ["q", 3, None, None]],
    )
    assert read_table(ends).interval == ((None, None), (4, None))
    truth = workbook(tmp_path / "b.xlsx", [["a", "value"], ["p", True], ["q", 3]])
    with pytest.raises(InputError, match="row 2: the value of 'value' is not a number"):
        read_table(truth)
    gaps = workbook(
        tmp_path / "g.xlsx", [[], ["a", None, "value"], ["p", None, 3], [], ["q", None, "odd"]]
    )
    with pytest.raises(InputError, match="row 5: the value of 'value'"):
        read_table(gaps)
    book = openpyxl.Workbook()
    book.active.append(["notes"])  # type: ignore[union-attr]
    book.create_sheet("Cells").append(["a", "value"])
    book["Cells"].append(["p", 3])
    book.save(tmp_path / "c.xlsx")
    assert read_table(tmp_path / "c.xlsx").cells == (("p",),)


def test_a_formula_whose_result_is_not_stored_is_not_taken_for_a_blank(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", [["a", "value"], ["p", 3], ["q", "=1+2"]])
    for reading in (Reading(), Reading(published=True)):
        with pytest.raises(InputError, match="row 3: the result of a formula is not stored"):
            read_table(path, reading=reading)
    beside = workbook(tmp_path / "b.xlsx", [["a", None, "value"], ["p", None, "=1+2"]])
    with pytest.raises(InputError, match="row 2: the result of a formula is not stored"):
        read_table(beside)
    # A stored result that is an empty text is a blank.
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(tmp_path / "u.xlsx", "w") as other:
        for name in book.namelist():
            other.writestr(name, book.read(name).replace(b'<c r="B3">', b'<c r="B3" t="str">'))
    assert read_table(tmp_path / "u.xlsx").values["value"] == (3, None)


def test_a_workbook_that_states_a_wrong_size_is_read_whole(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", [["a", "value"], ["p", 3], ["q", 4]])
    book = openpyxl.load_workbook(path)
    book.create_sheet("Draft").append([None, 5])
    book.save(path)
    with zipfile.ZipFile(path) as made, zipfile.ZipFile(tmp_path / "u.xlsx", "w") as other:
        for name in made.namelist():
            other.writestr(
                name, re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1"', made.read(name))
            )
    found = read_table(tmp_path / "u.xlsx", reading=Reading(published=True))
    assert found.values["value"] == (3, 4)
    assert asked(found, "may show what is hidden ('Draft')")


def test_other_sheets_of_a_workbook_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    """The truth may stand on a second sheet."""
    path = workbook(tmp_path / "t.xlsx", [["a", "value"], ["T", 9], ["p", "x"], ["q", 4]], "Shown")
    assert not read_table(path, reading=Reading(published=True)).doubts
    book = openpyxl.load_workbook(path)
    book.create_sheet("Empty")["B2"].font = Font(bold=True)
    book.save(path)
    assert not read_table(path, reading=Reading(published=True)).doubts
    book.create_sheet("Sums")["B2"] = "=Shown!B2-Shown!B4"
    book.save(path)
    (doubt,) = read_table(path, reading=Reading(published=True)).doubts
    assert "may show what is hidden ('Sums')" in doubt, "though no result is stored"
    del book["Sums"]
    book.create_sheet("Draft").append(["p", 5])
    chart = BarChart()
    chart.add_data(Reference(book["Shown"], min_col=2, min_row=1, max_row=4))
    book.create_chartsheet("Chart").add_chart(chart)
    book.save(path)
    (doubt,) = read_table(path, reading=Reading(published=True)).doubts
    assert "may show what is hidden ('Draft', 'Chart')" in doubt
    assert not read_table(path, reading=Reading(published=True, notes_read=True)).doubts
    # Of a workbook of this project the cells are read; a sheet that somebody added is named.
    ours = openpyxl.Workbook()
    ours.active.title = "Table"  # type: ignore[union-attr]
    ours.active.append(["as a table"])  # type: ignore[union-attr]
    for row in (["a", "value"], ["T", 9], ["p", "x"]):
        (ours["Cells"] if "Cells" in ours.sheetnames else ours.create_sheet("Cells")).append(row)
    ours.create_sheet("Notes").append(["a note"])
    ours.save(path)
    assert not read_table(path, reading=Reading(published=True)).doubts
    ours.create_sheet("Draft").append([5])
    ours.save(path)
    assert len(read_table(path, reading=Reading(published=True)).doubts) == 1


def test_a_workbook_that_is_broken_is_one_sentence(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", [["a", "value"], ["p", 3]])
    with zipfile.ZipFile(path) as book, zipfile.ZipFile(tmp_path / "u.xlsx", "w") as other:
        for name in book.namelist():
            text = book.read(name)
            other.writestr(name, text[: len(text) // 2] if "sheet1" in name else text)
    with pytest.raises(InputError, match="is not a workbook"):
        read_table(tmp_path / "u.xlsx")
    with pytest.raises(InputError, match="the sheet is empty"):
        read_table(workbook(tmp_path / "e.xlsx", []))
    with pytest.raises(InputError, match="the column 'a' occurs twice"):
        read_table(workbook(tmp_path / "w.xlsx", [["a", "a", "value"], ["p", "q", 3]]))
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "none.xlsx")


def test_parquet_and_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {
        "a": ["p", "q", "r", "s"],
        "value": [1.5, None, float("nan"), 1e14],
        "primary": [True, False, None, True],
    }
    parquet.write_table(pa.table(columns), path)
    file = read_table(path)
    assert file.values["value"] == (Decimal("1.5"), None, None, 10**14)
    assert file.primary == (True, False, False, True)
    assert file.places[0] == "row 1"
    parquet.write_table(pa.table({"a": ["p"], "value": [True]}), path)
    with pytest.raises(InputError, match="row 1: the value of 'value'"):
        read_table(path)
    parquet.write_table(pa.table({"a": [1.0, 1e16], "b": ["k", "k"], "value": [1, 2]}), path)
    assert read_table(path, ColumnNames(by=("a",))).cells == (("1",), ("10000000000000000",))
    twice = pa.table([pa.array(["p"]), pa.array(["q"]), pa.array([1])], names=["a", "a", "value"])
    parquet.write_table(twice, path)
    with pytest.raises(InputError, match="the column 'a' occurs twice"):
        read_table(path)
    (tmp_path / "parts.parquet").mkdir()
    parquet.write_table(
        pa.table({"a": ["p"], "value": [7]}), tmp_path / "parts.parquet" / "0.parquet"
    )
    assert read_table(tmp_path / "parts.parquet").values["value"] == (7,)
    path.write_bytes(b"no")
    with pytest.raises(InputError, match="is not a Parquet file"):
        read_table(path)
    packed = gzip.compress(b"a,value\np,3\n")
    (tmp_path / "t.csv.gz").write_bytes(packed)
    assert read_table(tmp_path / "t.csv.gz").values["value"] == (3,)
    for wrong in (b"no", packed[:-9], packed[:12] + b"\xff\xff" + packed[14:]):
        (tmp_path / "t.csv.gz").write_bytes(wrong)
        with pytest.raises(InputError, match="is not compressed with gzip"):
            read_table(tmp_path / "t.csv.gz")
    (tmp_path / "t.csv").write_text("A title\na,b,value\np,k,3\nq,k,4\n")
    for notes_read in (False, True):
        found = read_table(
            tmp_path / "t.csv", reading=Reading(published=True, notes_read=notes_read)
        )
        assert bool(found.doubts) != notes_read
        assert len(found.notes) == 1
    (tmp_path / "t.csv").write_bytes(b"a,value\n\xff,3\n")
    with pytest.raises(InputError, match="is not UTF-8"):
        read_table(tmp_path / "t.csv")


BASE: dict[str, Any] = {
    "id": ["a", "b"],
    "size": [2, 2],
    "dimension": {
        "a": {"category": {"index": ["p", "q"], "label": {"p": "the p"}}},
        "b": {"category": {"index": {"l": 1, "k": 0}}},
    },
    "value": [1, None, 2.50, 0],
    "status": {"1": "A"},
}


def jsonstat(tmp_path: Path, **changed: Any) -> TableFile:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({**BASE, **changed}))
    return read_table(path)


def test_a_dataset_of_json_stat_is_read_cell_by_cell(tmp_path: Path) -> None:
    file = jsonstat(tmp_path)
    assert file.cells == (("p", "k"), ("p", "l"), ("q", "k"), ("q", "l"))
    assert file.values["value"] == (1, None, Decimal("2.5"), 0)
    assert file.status["value"] == ("", "A", "", "")
    assert file.labels == {("a", "p"): "the p", ("a", "q"): "q"}
    assert file.places == ["cell 1", "cell 2", "cell 3", "cell 4"]
    assert jsonstat(tmp_path, value={"0": 1, "3": 4}).values["value"] == (1, None, None, 4)
    every = jsonstat(tmp_path, value={"0": 1, "1": 2, "2": 3, "3": 4})
    assert every.values["value"] == (1, 2, 3, 4)
    order = {**BASE["dimension"], "b": {"category": {"index": {"z": 0, "k": 1}}}}
    assert jsonstat(tmp_path, dimension=order).cells[:2] == (("p", "z"), ("p", "k"))
    (tmp_path / "d.json").write_text(
        json.dumps({k: v for k, v in BASE.items() if k != "status"}).replace(
            "2.5", "2.50000000000000000001"
        )
    )
    digits = read_table(tmp_path / "d.json")
    assert digits.values["value"][2] == Decimal("2.50000000000000000001")
    assert digits.status["value"] == ("",) * 4
    assert jsonstat(tmp_path, status="A").status["value"] == ("A",) * 4
    assert jsonstat(tmp_path, status=None).status["value"] == ("",) * 4
    stated = jsonstat(tmp_path, extension={"interval": {"low": {"1": 2}, "high": {"1": 4}}})
    assert stated.interval == ((None, 2, None, None), (None, 4, None, None))
    assert jsonstat(tmp_path, extension={"interval": None}).interval is None
    single = {"category": {"label": {"p": "the p"}}}
    alone = jsonstat(tmp_path, id=["a"], size=[1], dimension={"a": single}, value=[7], status=None)
    assert alone.cells == (("p",),)


@pytest.mark.parametrize(
    "changed",
    [
        {"value": 5},
        {"value": None},
        {"value": [1, 2, 3]},
        {"value": {"4": 1}},
        {"value": {"00": 1}},
        {"status": {"9": "A"}},
        {"status": ["A"]},
        {"extension": {"interval": {"low": {}}}},
        {"extension": {"interval": {"low": {"7": 1}, "high": {}}}},
        {"dimension": {**BASE["dimension"], "b": {"category": {"index": {"k": 0, "l": 0}}}}},
        {"dimension": {**BASE["dimension"], "b": {"category": {"index": {"k": 1, "l": 2}}}}},
        {"dimension": {"a": BASE["dimension"]["a"]}},
        {"size": ["two", 2]},
    ],
)
def test_a_dataset_that_leaves_cells_unclear_is_refused(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=r"is not a dataset of JSON-stat 2\.0"):
        jsonstat(tmp_path, **changed)
    with pytest.raises(InputError, match="the sizes do not fit"):
        jsonstat(tmp_path, size=[2, 3])
    (tmp_path / "t.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match=r"is not a dataset of JSON-stat 2\.0"):
        read_table(tmp_path / "t.json")


# CSV.


def test_csv_of_a_confidential_file_is_strict() -> None:
    rows = rows_of_csv("\ufeff a ;value\r\n '=p ; 3\r\n\r\nq;4\r\n", "x.csv")
    assert rows.columns == {"a": ["=p", "q"], "value": ["3", "4"]}
    assert rows.places == ["line 2", "line 4"]
    assert rows.where(1) == "x.csv, line 4"
    assert rows_of_csv("a,value\rp,3\r", "x.csv").columns == {"a": ["p"], "value": ["3"]}
    assert rows_of_csv("", "x.csv").columns == {}
    with pytest.raises(InputError, match=r"x\.csv: the column 'a' occurs twice"):
        rows_of_csv("a,a,value\n1,2,3\n", "x.csv")
    with pytest.raises(
        InputError, match=r"x\.csv, line 3: there are 1 fields, but the first line names 2"
    ):
        rows_of_csv("a,value\np,3\nq\n", "x.csv")
    with pytest.raises(InputError, match=r"x\.csv, line 2: this is not CSV"):
        rows_of_csv(f"a,value\np,{'9' * 200_000}\n", "x.csv")


# What is written reads back.


def test_a_release_in_csv_and_arrow_shows_what_it_shows_and_nothing_else(tmp_path: Path) -> None:
    axes = (
        TableAxis("a", "a", (Category("p", "the p", (0,)), Category("=q", "q", (1,)))),
        TableAxis("b", "b", (Category("k", "k", (0,)), Category("l", "l", (1,)))),
    )
    published = np.array([[125, 77], [88, 5]])
    status = np.array([["F", "A"], ["D", "F"]])
    release = Release(axes, published, status, {"method": "x"}, low=np.array([[125, 60], [0, 5]]),
                      high=np.array([[125, 90], [0, 5]]), decimals=1)  # fmt: skip
    assert release_as_csv(release).splitlines()[0] == "a,a_label,b,value,status,low,high"
    lines = [line.split(",") for line in release_as_csv(release).splitlines()[1:]]
    assert [line[3] for line in lines] == ["12.5", "", "", "0.5"]
    assert [line[4] for line in lines] == ["F", "A", "D", "F"]
    table = release_as_arrow(release).to_pylist()
    assert [row["value"] for row in table] == [Decimal("12.5"), None, None, Decimal("0.5")]
    for plain in (False, True):
        letters = ["F", "N", "N", "F"] if plain else ["F", "A", "D", "F"]
        told = release_as_arrow(release, plain_status=plain).column("status").to_pylist()
        assert told == letters
        csv = release_as_csv(release, plain_status=plain).splitlines()[1:]
        assert [line.split(",")[4] for line in csv] == letters
        for ending in ("csv", "parquet", "xlsx"):
            write_release(release, tmp_path / f"t.{ending}", plain_status=plain)
            back = read_table(tmp_path / f"t.{ending}")
            assert back.values["value"] == (Decimal("12.5"), None, None, Decimal("0.5"))
            assert back.status["value"] == tuple(letters), ending
            assert back.codes == (("p", "=q"), ("k", "l")), ending
            assert back.labels["a", "p"] == "the p"
            assert back.interval is not None
            assert [tuple(end[1:3]) for end in back.interval] == [(6, None), (9, None)], ending
    quoted = tmp_path / "q.parquet"
    parquet.write_table(pa.table({"a": ["'s-Hertogenbosch"], "value": [1]}), quoted)
    assert read_table(quoted).codes == (("'s-Hertogenbosch",),), "a quote of its own stays"
    told = pa.table(parquet.read_table(tmp_path / "t.parquet")).column("status").to_pylist()
    assert told == ["F", "N", "N", "F"]
    (tmp_path / "p.parquet").write_bytes(release_as_parquet(release, True))
    assert read_table(tmp_path / "p.parquet").status["value"] == ("F", "N", "N", "F")
    (tmp_path / "p.parquet").write_bytes(release_as_parquet(release))
    assert read_table(tmp_path / "p.parquet").status["value"] == ("F", "A", "D", "F")
    # Without an interval there are no columns for it, and one end alone is none.
    for ends in ({}, {"low": release.low}, {"high": release.high}):
        bare = Release(axes, published, status, {"method": "x"}, decimals=1, **ends)
        assert release_as_csv(bare).splitlines()[0] == "a,a_label,b,value,status"
        assert release_as_arrow(bare).column_names == ["a", "a_label", "b", "value", "status"]
    for write in (
        lambda: write_release(published, tmp_path / "n.csv"),
        lambda: release_as_arrow(published),
    ):  # type: ignore[arg-type]
        with pytest.raises(InputError, match="needs a lustrum Release"):
            write()
    with pytest.raises(InputError, match="is written to a file of"):
        write_release(release, tmp_path / "n.txt")
    assert write_csv(["a", "=b"], [["p", "q"], ["r", "s"]]) == "a,'=b\np,q\nr,s\n"
    assert plain_letters(release).status.tolist() == [["F", "N"], ["N", "F"]]
    for wrong in ("t.txt", "none/t.csv"):
        with pytest.raises(InputError, match=r"is written to a file of|there is no folder"):
            check_ending(tmp_path / wrong)
    check_ending(tmp_path / "t.PQ")


def test_pieces_of_a_parquet_file_hold_every_cell_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = (TableAxis.plain("a", list("pqr")), TableAxis.plain("b", list("kl")))
    published = np.arange(6).reshape(3, 2) * 11
    status = np.array([["F", "D"], ["F", "F"], ["D", "F"]])
    ends = {"low": published - 3, "high": published + 4}
    release = Release(axes, published, status, {"method": "x"}, decimals=1, **ends)
    whole = release_as_arrow(release).to_pylist()
    assert [row["value"] for row in whole] == [
        0,
        None,
        Decimal("2.2"),
        Decimal("3.3"),
        None,
        Decimal("5.5"),
    ]
    assert [whole[4][end] for end in ("low", "high")] == [Decimal("4.1"), Decimal("4.8")]
    monkeypatch.setattr("lustrum.formats.parquet.ROWS", 4)
    write_release(release, tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == whole


def test_files_of_a_release_with_statistics_have_the_same_digits(tmp_path: Path) -> None:
    """Also those of a statistic that is told with fewer decimals elsewhere; a workbook has a title."""
    axes = (TableAxis.plain("a", list("pq")), TableAxis.plain("statistic", ["count", "mean:t"]))
    statistics = (
        DescribedStatistic("count", "Firms", "firms", 0),
        DescribedStatistic("mean:t", "Mean", "euro", 2),
    )
    letters = np.full((2, 2), "F")
    release = Release(axes, np.array([[300, 125], [700, 5]]), letters, {"method": "x"}, decimals=2,
                      statistics=statistics, additive=False)  # fmt: skip
    lines = [line.split(",") for line in release_as_csv(release).splitlines()[1:]]
    assert [line[2] for line in lines] == ["3.00", "1.25", "7.00", "0.05"]
    told = release_as_arrow(release).column("value").to_pylist()
    assert [str(value) for value in told] == ["3.00", "1.25", "7.00", "0.05"]
    write_release(release, tmp_path / "t.xlsx")
    book = openpyxl.load_workbook(tmp_path / "t.xlsx")
    assert book.properties.title == "a by statistic"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("C4", 7),
        ("C9", 4),
        ("C9", "7"),
        ("H1", 2020),
        ("C4", "=9-2"),  # a reader's program computes what is not stored
        ("H1", "=Notes!A1"),
        ("C4", ArrayFormula("C4:C5", "=B4:B5-2")),
        ("H1", date(1907, 1, 7)),
    ],
)
def test_a_sheet_with_a_known_name_is_no_reason_to_pass_over_its_numbers(
    tmp_path: Path, place: str, value: object
) -> None:
    """The sheet of cells hides two of four, and a sheet beside it that is called 'Table' may show them."""
    axes = (TableAxis.plain("year", ["2019", "2020"]), TableAxis.plain("sex", ["f", "m"]))
    status = np.array([["F", "D"], ["D", "F"]])
    release = Release(axes, np.array([[4, 7], [7, 9]]), status, {"method": "by hand"})
    path = tmp_path / "own.xlsx"
    write_release(release, path)
    assert read_rows(path).doubts == ()
    book = openpyxl.load_workbook(path)
    book["Table"][place] = value
    book.save(path)
    (doubt,) = read_rows(path).doubts
    assert "may show what is hidden ('Table')" in doubt


@pytest.mark.parametrize("name", ["value", "status", "low", "high", "value_"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx", "json"])
@pytest.mark.parametrize("reading", [Reading(), Reading(published=True)])
def test_a_variable_may_be_called_like_what_files_tell_of_a_cell(
    tmp_path: Path, name: str, ending: str, reading: Reading
) -> None:
    """It keeps its name and its codes, and what is hidden stays hidden; the column of the cells gives way."""
    axes = (
        TableAxis(name, name, tuple(Category(c, f"the {c}", (i,)) for i, c in enumerate("AFD"))),
        TableAxis.plain("value" if name == "value_" else "b", ["1", "2"]),
    )
    published = np.array([[31, 7], [45, 9], [8, 60]])
    status = np.array([["F", "A"], ["F", "F"], ["D", "F"]])
    release = Release(
        axes, published, status, {"method": "x"}, low=published - 2, high=published + 3
    )
    path = tmp_path / f"t.{ending}"
    if ending == "json":
        path.write_text(JsonStat().write(release))
    else:
        write_release(release, path)
    back = read_table(path, reading=reading)
    assert back.dimensions == tuple(axis.name for axis in axes)
    assert back.codes == (("A", "F", "D"), ("1", "2"))
    assert back.labels[name, "F"] == "the F"
    (values,) = back.values.values()
    assert values == (31, None, 45, 9, None, 60)
    assert back.standing == {back.responses[0]: ()}
    assert back.status[back.responses[0]] == tuple(status.ravel())
    assert back.interval is not None
    assert [end[1] for end in back.interval] == [5, 10]
    assert back.doubts == ()


@pytest.mark.parametrize(
    "name", ["n", "x1", "h1", "lower", "upper", "primary", "flag", "OBS_STATUS"]
)
def test_json_stat_says_itself_which_names_are_those_of_variables(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "t.json"
    category = {"index": ["A", "D", "F"], "label": {"A": "a", "D": "d", "F": "f"}}
    found = {
        "version": "2.0",
        "class": "dataset",
        "id": [name, f"{name}_label"],
        "size": [3, 2],
        "dimension": {
            name: {"category": category},
            f"{name}_label": {"category": {"index": ["1", "2"]}},
        },
        "value": [4, 5, 6, None, 7, 8],
    }
    path.write_text(json.dumps(found))
    rows = read_rows(path)
    assert rows.columns[name] == ["A", "A", "D", "D", "F", "F"]
    assert rows.columns[f"{name}_label"] == ["1", "2"] * 3
    assert rows.columns[f"{name}_label_"] == ["a", "a", "d", "d", "f", "f"]
    assert rows.columns["value"] == ["4", "5", "6", "", "7", "8"]
    for published in (False, True):
        back = read_table(path, reading=Reading(published=published))
        assert back.dimensions == (name, f"{name}_label")
        assert back.labels[name, "D"] == "d"
        assert back.values["value"] == (4, 5, 6, None, 7, 8)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        # A name for each code is a label, also where a cell stands twice; the first of the two is kept.
        ({"code": "p p q T", "name": "Pe Pe Qu To"}, "code"),
        ({"name": "Pe Pe Qu To", "code": "p p q T"}, "name"),
        # Fewer names are a property of the code, also where a cell stands twice.
        ({"code": "p p q r", "group": "g g g h"}, "code"),
        ({"group": "g g g h", "code": "p p q r"}, "code"),
        ({"code": "p p q q r r", "group": "g g g g h h", "sex": "m f m f m f"}, "code sex"),
        # A word for all rows is no property, and a number for each row no code.
        ({"year": "2020 2020 2020", "code": "p q q", "sex": "m m f"}, "year code sex"),
        ({"group": "g g h h", "sex": "m f m f", "id": "k1 k2 k3 k4"}, "group sex"),
        # Unless it is the code of which another column names the parent.
        ({"up": "- T T A", "sex": "m m f m", "code": "T A B C"}, "code"),
        ({"code": "T A B C", "up": "- T T A", "sex": "m m f m"}, "code"),
        ({"code": "T T A A", "up": "- - T T", "sex": "m f m f"}, "code sex"),
        # Neither names the other.
        ({"code": "p p q q", "sex": "m f m f"}, "code sex"),
        ({"code": "p q p q", "sex": "m f f m"}, "code sex"),
    ],
)
def test_which_columns_of_codes_are_variables(columns: dict[str, str], expected: str) -> None:
    own = {name: ["" if t == "-" else t for t in texts.split()] for name, texts in columns.items()}
    count = len(next(iter(own.values())))
    rows = Rows("x.csv", own, [f"line {i + 2}" for i in range(count)])
    assert _variables(rows, list(columns)) == tuple(expected.split())


def test_one_end_alone_is_no_interval() -> None:
    for names, interval in (
        ("low,high", ("low", "high")),
        ("low,most", None),
        ("least,high", None),
    ):
        rows = rows_of_csv(f"a,value,{names}\np,3,1,9\nq,4,1,8\n", "x.csv")
        assert find_columns(rows).interval == interval


def test_a_file_may_have_nothing_but_a_variable_called_value() -> None:
    found = table_of_csv("value,value_\n1,30\n2,40\n", "x.csv")
    assert found.dimensions == ("value",)
    assert found.values == {"value_": (30, 40)}


def test_only_sheets_that_this_project_writes_beside_its_cells_are_passed_over(
    tmp_path: Path,
) -> None:
    def asked_about(book: Any) -> list[str]:
        book.save(tmp_path / "t.xlsx")
        return [
            d.partition("(")[2].partition(")")[0] for d in read_rows(tmp_path / "t.xlsx").doubts
        ]

    axes = tuple(TableAxis.plain(name, list("pq")) for name in "abc")
    letters = np.full((2, 2, 2), "F")
    letters[0, 0, 0] = letters[1, 1, 1] = "D"
    release = Release(axes, np.arange(8).reshape(2, 2, 2) + 30, letters, {"method": "x"})
    own = tmp_path / "own.xlsx"
    write_release(release, own)
    sheet = openpyxl.load_workbook(own)["Table"]
    assert any(cell.value is None for row in sheet.iter_rows() for cell in row)
    assert asked_about(openpyxl.load_workbook(own)) == []
    # A chart by the name of a sheet of notes may show anything.
    chart = openpyxl.load_workbook(own)
    del chart["Notes"]
    bars = BarChart()
    bars.add_data(Reference(chart["Cells"], min_col=4, min_row=1, max_row=4))
    chart.create_chartsheet("Notes").add_chart(bars)
    assert asked_about(chart) == ["'Notes'"]
    # Without a sheet of cells the first one is read, and no other one is this project's.
    other = openpyxl.load_workbook(own)
    other["Cells"].title = "Sheet"
    other.move_sheet("Sheet", -1)
    assert asked_about(other) == ["'Table', 'Notes'"]
