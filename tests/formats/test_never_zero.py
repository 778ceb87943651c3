"""A suppressed value is in no file: tables that differ in suppressed values alone give the same bytes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pyarrow import parquet

from examples import examples
from lustrum.formats.pattern_picture import pattern_page, pattern_svg
from lustrum.formats.write import write_release
from lustrum.model import Category, Release, Table, TableAxis, plugins
from lustrum.model.plugins import load
from lustrum.protect.suppression import Suppression
from lustrum.public.prepared.folder import release_words
from lustrum.sensitivity import GivenCells

HIDDEN = np.zeros((4, 4), dtype=np.bool_)
HIDDEN[:2, :2] = True
FORMATS = (
    "csv", "arrow", "json-stat", "parquet", "px", "sdmx-csv", "sdmx-structure", "xlsx", "out.csv",
    "out.parquet", "out.xlsx", "svg", "html", "words",
)  # fmt: skip


def release_of(moved: int, *, partial: bool) -> Release:
    """Four hidden cells around others that are shown; ``moved`` shifts the hidden ones and no total."""
    inner = np.array([[30, 41, 52], [37, 45, 50], [61, 72, 83]])
    inner[:2, :2] += np.array([[moved, -moved], [-moved, moved]])
    full = np.zeros((4, 4), dtype=np.int64)
    full[:3, :3] = inner
    full[3], full[:, 3] = full.sum(axis=0), full.sum(axis=1)
    full[3, 3] = inner.sum()
    axes = []
    for name in "ab":
        codes = tuple(Category(f"{name}{i}", f"{name}{i}", (i,)) for i in range(3))
        axes.append(TableAxis(name, name, (*codes, Category("_T", "Total", (0, 1, 2)))))
    table = Table(axes=tuple(axes), values=full)
    cells = np.zeros((4, 4), dtype=np.bool_)
    cells[0, 0] = True
    spec = Suppression(rule=GivenCells(cells, np.where(cells, 5, 0)), partial=partial)
    # The cheapest pattern is that of the four cells.
    pattern = spec.pattern(table, frozen=~HIDDEN)
    assert np.array_equal(pattern.suppressed.reshape(4, 4), HIDDEN)
    return spec.release(table, pattern)


def written(release: Release, name: str, folder: Path) -> bytes:
    if name.startswith("out."):
        write_release(release, folder / name)
        return (folder / name).read_bytes()
    if name in ("svg", "html"):
        return (pattern_svg if name == "svg" else pattern_page)(release, "a by b").encode()
    if name == "words":
        return json.dumps(release_words(release)).encode()
    made = load("lustrum.formats", name)().write(release, "a by b")
    return made if isinstance(made, bytes) else made.encode()


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_files_do_not_depend_on_suppressed_values(name: str, partial: bool, tmp_path: Path) -> None:
    one, two = (written(release_of(moved, partial=partial), name, tmp_path) for moved in (0, 7))
    assert one == two


def test_a_suppressed_cell_is_blank_or_a_letter_and_never_0(tmp_path: Path) -> None:
    release = release_of(0, partial=False)
    for name in ("csv", "out.csv"):
        rows = list(csv.DictReader(io.StringIO(written(release, name, tmp_path).decode())))
        seen = [row.get("value", row.get("OBS_VALUE")) for row in rows]
        assert [not v for v in seen] == HIDDEN.ravel().tolist()
    stat = json.loads(written(release, "json-stat", tmp_path))
    assert [v is None for v in stat["value"]] == HIDDEN.ravel().tolist()
    for name in ("parquet", "out.parquet"):
        made = parquet.read_table(io.BytesIO(written(release, name, tmp_path)))
        column = made.column("value").to_pylist()
        assert [v is None for v in column] == HIDDEN.ravel().tolist()
    for name in ("xlsx", "out.xlsx"):
        book = openpyxl.load_workbook(io.BytesIO(written(release, name, tmp_path)))
        head, *rows_ = ([cell.value for cell in row] for row in book["Cells"].rows)
        place = head.index("value")
        assert [isinstance(row[place], str) for row in rows_] == HIDDEN.ravel().tolist()


@pytest.mark.parametrize("name", ["csv", "out.csv", "out.xlsx", "json-stat", "parquet"])
def test_an_interval_of_one_value_is_not_stated(name: str, tmp_path: Path) -> None:
    release = release_of(0, partial=True)
    assert release.stated.sum() == 4
    tight = np.where(HIDDEN, 30, release.least)
    closed = Release(
        axes=release.axes,
        numbers=release.numbers,
        status=release.status,
        method=release.method,
        least=tight,
        most=np.where(HIDDEN, 30, release.most),
    )
    assert not closed.stated.any()
    open_ends = Release(
        axes=release.axes,
        numbers=release.numbers,
        status=release.status,
        method=release.method,
        least=np.where(HIDDEN, 29, release.least),
        most=np.where(HIDDEN, 29, release.most),
    )
    assert written(closed, name, tmp_path) == written(open_ends, name, tmp_path)


OPEN = 2**62  # what stands for "nothing bounds it" where methods compute
ANY = st.one_of(st.integers(-99, 99), st.sampled_from([-OPEN, OPEN - 1, 918_273_645]))


def seen_by_readers(release: Release, folder: Path) -> list[str | bytes]:
    """All that a reader can take from a release: attributes, frames and every format."""
    names = [n for n in dir(release) if not n.startswith("_") and n not in ("least", "most")]
    items = [getattr(release, name) for name in names]
    texts = [
        str(item.tolist() if isinstance(item, np.ndarray) else item)
        for item in items
        if not callable(item)
    ]
    texts += [repr(release), release.to_pandas().to_csv(), release.to_pandas(wide=True).to_csv()]
    texts += [release.to_polars().write_csv(), str(release.to_arrow().to_pydict())]
    texts.append(str(release._repr_html_()))
    known = {*plugins.names("lustrum.formats"), "html", "out.csv", "out.parquet", "svg", "words"}
    return [*texts, *(written(release, name, folder) for name in sorted(known))]


@given(st.data())
@settings(max_examples=examples(15, 150))
def test_nothing_stands_behind_a_cell_that_shows_no_number(data: st.DataObject) -> None:
    """Releases that differ behind such cells alone are one to every reader, with NaN and never a stand-in."""
    axes = (TableAxis.plain("a", ["x", "y"]), TableAxis.plain("b", ["u", "v", "w"]))
    grid = arrays(np.int64, (2, 3), elements=ANY)
    flags = arrays(np.bool_, (2, 3))
    hidden, undefined = data.draw(flags), data.draw(flags)
    none = hidden | undefined
    shown = data.draw(grid) % 1000
    ends = [np.where(none, OPEN * sign, shown + sign) for sign in (-1, 1)]
    one, two = (
        Release(
            axes,
            np.where(none, behind, shown),
            np.where(hidden, "N", "F"),
            {"method": "by hand"},
            least=np.where(hidden, behind, ends[0]),
            most=np.where(hidden, behind, ends[1]),
            undefined=undefined,
        )
        for behind in (data.draw(grid), data.draw(grid))
    )
    assert np.array_equal(np.isnan(one.published.astype(float)), none)
    assert np.array_equal(one.published[~none], shown[~none])
    with TemporaryDirectory() as folder:
        first, second = (seen_by_readers(release, Path(folder)) for release in (one, two))
    for left, right in zip(first, second, strict=True):
        assert left == right
        if isinstance(left, str):
            assert str(OPEN) not in left
            assert "918273645" not in left
