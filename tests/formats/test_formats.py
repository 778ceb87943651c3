"""What leaves the house is what was published: no more, and readable by others."""

from __future__ import annotations

import csv
import io
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from pyjstat import pyjstat

from lustrum.formats import Csv, JsonStat, Parquet
from lustrum.model import Category, Release, TableAxis

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


# --- CSV


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


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
    axis = TableAxis(text, text, (Category(text, text, (0,), text),))
    item = Release((axis,), np.array([1]), np.array(["F"]), {}, unit=text, label="Turnover")
    table = list(csv.reader(io.StringIO(Csv().write(item), newline="")))
    for field in (field for row in table for field in row):
        assert not field.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert table[1][:3] == [f"'{text}"] * 3
    (row,) = parquet.read_table(io.BytesIO(Parquet().write(item))).to_pylist()
    # Columns of Parquet have types: a text is the text that it is, as in a CSV whose guard is off.
    assert [*row.values()][:3] == [text] * 3
    unguarded = list(csv.reader(io.StringIO(Csv(guard=False).write(item), newline="")))
    assert unguarded[1][:3] == [text] * 3
    assert "# Formula guard: off" in Csv(comments=True, guard=False).write(item)
    assert "# Formula guard: on" in Csv(comments=True).write(item)


@given(label=st.text(st.characters(codec="utf-8"), max_size=12))
@exactly
def test_every_label_survives_csv(label: str) -> None:
    found = list(csv.reader(io.StringIO(Csv().write(release([1], labels=[label])), newline="")))
    assert len(found) == 2
    assert found[1][1].removeprefix("'") == label.removeprefix("'")


def test_an_everyday_label_is_left_alone() -> None:
    item = release([1, 2], labels=["65 - 69", 'O\'Neill, "Sam"'])
    assert [r["v0_label"] for r in rows(Csv().write(item))] == ["65 - 69", 'O\'Neill, "Sam"']
