"""Parquet files of releases: the columns of CSV, in groups of rows, with nothing behind what is hidden."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from lustrum.formats import Csv, Parquet, release_as_arrow, write_release
from lustrum.formats import parquet as writing
from lustrum.formats.write import release_as_parquet
from lustrum.model import Category, DescribedStatistic, Release, TableAxis

LETTERS = np.array(["F", "N", "C"])


def axis(name: str, size: int, noted: bool = False) -> TableAxis:
    odd = ("=1+1", "+b", "plain", "Ünïcode", "-", "x,y", '"q"')
    return TableAxis(
        name,
        name,
        tuple(
            Category(f"{odd[i % 7]}{i}", f"{odd[(i + 3) % 7]} {i}", (i,), "1, 2" if noted else "")
            for i in range(size)
        ),
    )


@st.composite
def releases(draw: st.DrawFn) -> Release:
    """Releases of every kind: decimals, hidden cells, intervals, statistics, standard errors."""
    chance = np.random.default_rng(draw(st.integers(0, 10**6)))
    sizes = draw(st.lists(st.integers(1, 5), min_size=0, max_size=3))
    noted = draw(st.booleans())
    axes = tuple(axis(f"v{i}", size, noted and i == 0) for i, size in enumerate(sizes))
    shape = tuple(sizes)
    status = LETTERS[chance.integers(0, 3, shape)]
    published = chance.integers(-(10**12), 10**12, shape)
    words: dict[str, Any] = {"decimals": draw(st.integers(0, 3))}
    if draw(st.booleans()):
        words |= {"least": published - chance.integers(0, 9, shape), "most": published + 3}
    if draw(st.booleans()):
        words |= {
            "errors": chance.integers(-1, 50, shape),
            "grades": LETTERS[chance.integers(0, 3, shape)],
        }
    if sizes and draw(st.booleans()):
        words["statistics"] = tuple(
            DescribedStatistic(c.code, c.label, "unit", min(i, words["decimals"]))
            for i, c in enumerate(axes[-1].categories)
        )
        words["label"] = "Several"
    return Release(axes, published, status, {"method": "none"}, **words)


def texts(made: pa.Table) -> list[dict[str, Any]]:
    """Rows with numbers as exact decimals and null as an empty text, as a reader of CSV has them."""
    return [
        {
            name: "" if value is None else Decimal(value) if name in NUMBERS else str(value)
            for name, value in row.items()
        }
        for row in made.to_pylist()
    ]


NUMBERS = ("value", "low", "high", "standard_error")


@given(releases(), st.integers(1, 60))
def test_a_file_holds_what_the_file_of_csv_holds(release: Release, rows: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writing, "ROWS", rows)
        made = Parquet().write(release)
    file = parquet.ParquetFile(io.BytesIO(made))
    assert file.num_row_groups == -(-release.published.size // rows)
    lines = csv.DictReader(io.StringIO(Csv(guard=False).write(release)))
    wanted = [
        {k: v if k not in NUMBERS or not v else Decimal(v) for k, v in line.items()}
        for line in lines
    ]
    # A statistic with fewer decimals than the others has zeros behind its own.
    assert texts(file.read()) == wanted


@given(releases())
def test_nothing_stands_behind_a_null(release: Release) -> None:
    made = release_as_arrow(release)
    for name in ("value", "low", "high"):
        if name not in made.column_names:
            continue
        column = made.column(name).combine_chunks()
        held = column.buffers()[1].to_pybytes()
        width = 16 if pa.types.is_decimal(column.type) else 8
        for at, value in enumerate(column.to_pylist()):
            if value is None:
                assert not any(held[at * width : (at + 1) * width])


def test_groups_of_rows_are_those_that_pyarrow_writes_and_files_have_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(4)
    shape = (7, 5, 6)
    release = Release(
        tuple(axis(name, size) for name, size in zip("abc", shape, strict=True)),
        chance.integers(0, 99, shape),
        LETTERS[chance.integers(0, 3, shape)],
        {"method": "none"},
    )
    for rows in (1 << 20, 210, 100, 1):
        monkeypatch.setattr(writing, "ROWS", rows)
        sink = io.BytesIO()
        parquet.write_table(release_as_arrow(release), sink, row_group_size=rows)
        assert release_as_parquet(release) == sink.getvalue()
        write_release(release, tmp_path / "out.parquet")
        assert (tmp_path / "out.parquet").read_bytes() == sink.getvalue()
