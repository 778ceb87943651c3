"""What leaves the house is what was published: no more, and readable by others."""

from __future__ import annotations

import csv
import io
import json
import random
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyjstat import pyjstat

from lustrum.formats import Csv, JsonStat
from lustrum.formats.jsonstat import dataset
from lustrum.model import Category, CellStatus, Release, TableAxis
from lustrum.model.plugins import load

SECRET_VALUE = 918273
exactly = settings(derandomize=True, database=None, deadline=None)


def release(
    values: Any, status: Any = None, decimals: int = 0, labels: list[str] | None = None
) -> Release:
    array = np.array(values, dtype=np.int64)
    letters = np.full(array.shape, "F") if status is None else np.array(status)
    axes = []
    for position, size in enumerate(array.shape):
        codes = [f"{'ab'[position]}{i}" for i in range(size)]
        texts = labels if labels and position == 0 else [f"Label {c}" for c in codes]
        axes.append(TableAxis.plain(f"v{position}", codes, texts))
    return Release(
        tuple(axes),
        array,
        letters,
        {"method": "by hand"},
        decimals=decimals,
        unit="people",
        notes=("Rounded.",),
    )


@st.composite
def releases(draw: st.DrawFn) -> Release:
    dice = random.Random(draw(st.integers(0, 2**32)))
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    values = [[dice.randint(-(10**6), 10**6) for _ in range(shape[1])] for _ in range(shape[0])]
    letters = [[dice.choice("FFFAOTGMDN") for _ in range(shape[1])] for _ in range(shape[0])]
    return release(values, letters, draw(st.integers(0, 4)))


def expected(item: Release) -> list[Decimal | None]:
    return [
        Decimal(int(v)).scaleb(-item.decimals) if s == "F" else None
        for v, s in zip(item.published.ravel(), item.status.ravel(), strict=True)
    ]


# --- JSON-stat


@pytest.mark.filterwarnings("ignore:Shouldn't use this function")  # pyjstat, of itself
@given(item=releases())
@exactly
def test_pyjstat_reads_back_what_was_published(item: Release) -> None:
    read = pyjstat.Dataset.read(JsonStat().write(item, "A table"))
    frame = read.write("dataframe", naming="id")
    assert frame.columns.tolist() == ["v0", "v1", "value"]
    wanted = expected(item)
    rows = [(a, b) for a in item.axes[0].codes for b in item.axes[1].codes]
    assert list(zip(frame["v0"], frame["v1"], strict=True)) == rows
    for found, value in zip(frame["value"].tolist(), wanted, strict=True):
        if value is None:
            assert found is None or found != found
        else:
            assert found == pytest.approx(float(value), abs=1e-9)
    by_label = read.write("dataframe")
    assert by_label.iloc[0, 0] == "Label a0"


@given(item=releases())
@exactly
def test_a_suppressed_cell_is_null_beside_its_letter_in_json_stat(item: Release) -> None:
    found = json.loads(JsonStat().write(item))
    letters = item.status.ravel().tolist()
    for value, letter in zip(found["value"], letters, strict=True):
        assert (value is None) == (letter != "F")
    if set(letters) == {"F"}:
        assert "status" not in found
    else:
        assert found["status"] == letters
        legend = found["extension"]["status"]
        assert legend == {s: CellStatus(s).meaning for s in set(letters)}


def test_no_suppressed_value_leaves_in_any_format() -> None:
    item = release([[SECRET_VALUE, 1], [2, SECRET_VALUE]], [["A", "F"], ["F", "D"]])
    for writer in (JsonStat(), Csv()):
        assert str(SECRET_VALUE) not in writer.write(item, "A table")


def test_json_stat_has_what_readers_look_for() -> None:
    found = dataset(release([[1, 2, 3], [4, 5, 6]]), "A table")
    assert (found["version"], found["class"], found["label"]) == ("2.0", "dataset", "A table")
    assert (found["id"], found["size"]) == (["v0", "v1"], [2, 3])
    assert found["dimension"]["v1"]["category"]["index"] == ["b0", "b1", "b2"]
    assert found["dimension"]["v0"]["category"]["label"] == {"a0": "Label a0", "a1": "Label a1"}
    assert found["value"] == [1, 2, 3, 4, 5, 6]
    assert found["note"] == ["Rounded."]
    assert found["extension"] == {"protection": {"method": "by hand"}, "unit": "people"}
    assert dataset(release([[1]]))["label"] == "v0 by v1"
    assert all(isinstance(v, int) for v in found["value"])


def test_json_stat_keeps_letters_of_every_alphabet() -> None:
    text = JsonStat().write(release([1], labels=["Zürich – Łódź"]))
    assert "Zürich – Łódź" in text
    assert json.loads(text, object_pairs_hook=OrderedDict)["id"] == ["v0"]


# --- CSV


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@given(item=releases())
@exactly
def test_csv_reads_back_exactly_and_a_suppressed_value_is_an_empty_field(item: Release) -> None:
    found = rows(Csv().write(item))
    assert list(found[0]) == ["v0", "v0_label", "v1", "v1_label", "value", "status"]
    cells = [(a, b) for a in item.axes[0].codes for b in item.axes[1].codes]
    assert [(r["v0"], r["v1"]) for r in found] == cells
    assert [r["status"] for r in found] == item.status.ravel().tolist()
    for row, value in zip(found, expected(item), strict=True):
        if value is None:
            assert row["value"] == ""
        else:
            assert Decimal(row["value"]) == value
            places = len(row["value"].partition(".")[2])
            assert places == item.decimals


@pytest.mark.parametrize(
    ("units", "decimals", "text"),
    [
        (0, 0, "0"),
        (0, 2, "0.00"),
        (5, 2, "0.05"),
        (-5, 2, "-0.05"),
        (-105, 2, "-1.05"),
        (123456789012345678, 9, "123456789.012345678"),
        (10, 1, "1.0"),
    ],
)
def test_decimals_are_written_exactly(units: int, decimals: int, text: str) -> None:
    assert rows(Csv().write(release([units], decimals=decimals)))[0]["value"] == text


@pytest.mark.parametrize(
    "text", ['=HYPERLINK("x")', "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]
)
def test_no_text_becomes_a_formula(text: str) -> None:
    axis = TableAxis(text, text, (Category(text, text, (0,)),))
    item = Release((axis,), np.array([1]), np.array(["F"]), {})
    table = list(csv.reader(io.StringIO(Csv().write(item), newline="")))
    for field in (field for row in table for field in row):
        assert not field.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert table[1][:2] == [f"'{text}", f"'{text}"]


@given(label=st.text(st.characters(codec="utf-8"), max_size=12))
@exactly
def test_every_label_survives_csv(label: str) -> None:
    found = list(csv.reader(io.StringIO(Csv().write(release([1], labels=[label])), newline="")))
    assert len(found) == 2
    assert found[1][1].removeprefix("'") == label.removeprefix("'")


def test_an_everyday_label_is_left_alone() -> None:
    item = release([1, 2], labels=["65 - 69", 'O\'Neill, "Sam"'])
    assert [r["v0_label"] for r in rows(Csv().write(item))] == ["65 - 69", 'O\'Neill, "Sam"']


def test_csv_lines_end_as_the_standard_says() -> None:
    text = Csv().write(release([1, 2]))
    assert text.count("\r\n") == 3
    assert text.replace("\r\n", "").count("\n") == 0


def test_a_table_without_variables_has_one_row() -> None:
    item = Release((), np.array(5), np.array("F"), {})
    assert rows(Csv().write(item)) == [{"value": "5", "status": "F"}]
    assert dataset(item)["value"] == [5]
    assert dataset(item)["id"] == []


def test_formats_come_in_by_the_door_of_plugins() -> None:
    for name, kind in (("csv", Csv), ("json-stat", JsonStat)):
        assert load("lustrum.formats", name) is kind
        assert kind.name == name
        assert kind.media_type in ("text/csv", "application/json")
        assert kind.ending in ("csv", "json")
