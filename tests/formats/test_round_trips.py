"""What a format writes, our own reader reads back: codes, labels and numbers, and never a hidden cell as 0."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.formats.jsonstat import dataset
from lustrum.formats.px import _distinct  # PX gives texts that are alike a number
from lustrum.model import Category, InputError, Release, TableAxis
from lustrum.model.plugins import load
from lustrum.readers.container import read_container
from lustrum.readers.grids import sdmx_grid
from lustrum.readers.px import parse_px, px_grid

ENDINGS = {
    "csv": "csv",
    "json-stat": "json",
    "parquet": "parquet",
    "px": "px",
    "xlsx": "xlsx",
    "sdmx-csv": "csv",
}
ODD = [
    "-1", "+5", "@x", "=1+1", 'say "so"', "two\nlines", "a,b", "שלום", "🐟", "'quoted", "1.0", "é",
    "A;B", "$2E$",
]  # fmt: skip
HIDDEN = 918_273_645


def texts(empty: bool) -> st.SearchStrategy[str]:
    plain = st.text("abcäß0123", min_size=0 if empty else 1, max_size=4)
    return st.one_of(plain, st.sampled_from(ODD))


@st.composite
def releases(draw: st.DrawFn) -> Release:
    axes = []
    for name in draw(st.sampled_from([["sex"], ["sex", "age"], ["area", "sex", "age"]])):
        codes = draw(st.lists(texts(empty=True), min_size=1, max_size=4, unique=True))
        labels = [draw(texts(empty=False)) for _ in codes]
        own = tuple(
            Category(c, n, (i,)) for i, (c, n) in enumerate(zip(codes, labels, strict=True))
        )
        axes.append(TableAxis(name, name.title(), own))
    shape = tuple(len(a) for a in axes)
    size = int(np.prod(shape))
    status = np.array(draw(st.lists(st.sampled_from("FFAD"), min_size=size, max_size=size)))
    values = np.array(draw(st.lists(st.integers(-5, 99_999), min_size=size, max_size=size)))
    values[status != "F"] = HIDDEN
    return Release(
        tuple(axes),
        values.reshape(shape),
        status.reshape(shape),
        {"method": "m"},
        decimals=draw(st.integers(0, 2)),
        unit="people",
    )


def cells(release: Release, name: str) -> list[tuple[Any, ...]]:
    """Codes and the number of each cell, as a file of that format can hold them."""
    codes = [_distinct(a.codes) if name == "px" else list(a.codes) for a in release.axes]
    rows = []
    for at in np.ndindex(*release.shape):
        number = int(release.numbers[at]) / 10**release.decimals
        shown = release.status[at] == "F"
        own = tuple(listed[place].strip() for listed, place in zip(codes, at, strict=True))
        rows.append((*own, number if shown else None))
    return rows


def read(release: Release, name: str) -> list[tuple[Any, ...]]:
    content = load("lustrum.formats", name)().write(release, "a title")
    data = content if isinstance(content, bytes) else content.encode()
    assert str(HIDDEN).encode() not in data
    with TemporaryDirectory() as folder:
        path = Path(folder, f"table.{ENDINGS[name]}")
        path.write_bytes(data)
        grids = read_container(path).grids
    wanted = {axis.name for axis in release.axes}
    [grid] = [g for g in grids if wanted <= set(g.lines[0])]
    head = list(grid.lines[0])
    value = head.index("OBS_VALUE" if name == "sdmx-csv" else "value")
    rows = []
    for line in grid.lines[1:]:
        codes = tuple(line[head.index(axis.name)].strip() for axis in release.axes)
        text = line[value]
        rows.append((*codes, float(text) if text and not text.isalpha() else None))
    return rows


@pytest.mark.parametrize("name", ENDINGS)
@given(release=releases())
def test_a_reader_reads_what_its_writer_writes(name: str, release: Release) -> None:
    assert read(release, name) == cells(release, name)


@given(release=releases())
def test_json_stat_keeps_to_the_rules_across_its_fields(release: Release) -> None:
    made = json.loads(json.dumps(dataset(release, "title")))
    assert made["id"] == list(made["dimension"])
    assert len(made["size"]) == len(made["id"])
    assert len(made["value"]) == int(np.prod(made["size"]))
    for size, name in zip(made["size"], made["id"], strict=True):
        category = made["dimension"][name]["category"]
        assert len(category["index"]) == len(set(category["index"])) == size
        assert set(category["label"]) == set(category["index"])
        assert set(category.get("note", {})) <= set(category["index"])
    if "status" in made:
        assert len(made["status"]) == len(made["value"])
        for value, status in zip(made["value"], made["status"], strict=True):
            assert (value is None) == (status != "F")
    for names in made.get("role", {}).values():
        assert set(names) <= set(made["id"])


@pytest.mark.parametrize("name", ENDINGS)
def test_ten_thousand_categories_survive(name: str) -> None:
    axis = TableAxis.plain("area", [f"{i:05d}" for i in range(10_000)])
    status = np.where(np.arange(10_000) % 7 == 0, "A", "F")
    values = np.where(status == "F", np.arange(10_000), HIDDEN)
    release = Release((axis,), values, status, {"method": "m"})
    assert read(release, name) == cells(release, name)


GOOD = 'STUB="sex";\nVALUES("sex")="men",\n"women";\nCODES("sex")="1","2";\nDATA=\n4 \n".." \n;\n'


@given(st.integers(0, len(GOOD) - 1), st.sampled_from(["", '"', ";", "=", "x", "\n"]))
def test_a_damaged_px_file_is_read_or_refused_in_one_sentence(at: int, put: str) -> None:
    said = "t.px."
    try:
        px_grid(GOOD[:at] + put + GOOD[at + 1 :], "t.px")
    except InputError as error:
        said = str(error)
    assert said.startswith("t.px")
    assert said.endswith(".")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (GOOD.replace("4 ", "four "), 6),
        (GOOD.replace('".." \n', ""), 5),
        (GOOD.replace("VALUES", "values"), 2),
        (GOOD.replace(";\nCODES", "\nCODES"), 2),
        (GOOD.replace("DATA", 'KEYS("sex")=CODES;\nDATA'), 5),
    ],
)
def test_a_broken_px_file_names_the_line(text: str, line: int) -> None:
    assert parse_px(GOOD, "t.px").variables == ("sex",)
    with pytest.raises(InputError, match=rf"t\.px, line {line}: "):
        parse_px(text, "t.px")


def test_a_broken_sdmx_file_names_the_line() -> None:
    head = "STRUCTURE,STRUCTURE_ID,ACTION,sex,OBS_VALUE\n"
    for wrong, line in (
        ("dataflow,A:B(1),I,1\n", 2),
        ("dataflow,A:B(1),I,1,2\ndataflow,A:C(1),I,1,2\n", 3),
    ):
        with pytest.raises(InputError, match=rf"t\.csv, line {line}: "):
            sdmx_grid(head + wrong, "t.csv")
