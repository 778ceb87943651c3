"""Frames and pages of notebooks tell of each cell what the release tells, and of a table no number."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from formats.told_cells import (
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
from lustrum.formats.frames import release_html, table_html, to_arrow, to_pandas, to_polars, two_way
from lustrum.model import (
    Axis,
    CellStatus,
    Decision,
    InputError,
    Reason,
    Release,
    Table,
    TableAxis,
    TableQuery,
    Verdict,
)

FRAMES = {
    "pandas": lambda item, **words: _of_pandas(to_pandas(item, **words), **words),
    "polars": lambda item, **words: _of_rows(to_polars(item, **words)),
    "arrow": lambda item, **words: _of_arrow(to_arrow(item, **words)),
}


def _exact(value: Any) -> Any:
    if value is None or pd.isna(value):
        return None
    return Decimal(str(value)) if isinstance(value, (int, float)) else value


def _of_pandas(frame: pd.DataFrame, labels: bool = True, wide: bool = False) -> Any:
    if wide and frame.index.names != [None]:
        frame = frame.reset_index()
    columns = [[_exact(v) for v in frame.iloc[:, i].tolist()] for i in range(frame.shape[1])]
    return list(frame.columns), list(map(list, zip(*columns, strict=True)))


def _of_rows(frame: Any) -> Any:
    return frame.columns, [[_exact(v) for v in row] for row in frame.rows()]


def _of_arrow(table: pa.Table) -> Any:
    table.validate(full=True)
    for column in table.columns:
        for chunk in column.chunks:
            # What is hidden does not stand behind a null either.
            held = b"".join(bytes(b) for b in chunk.buffers() if b is not None)
            for scale in (1, 10, 100, 1000):
                assert HIDDEN.to_bytes(8, "little") not in held
                assert np.float64(HIDDEN / scale).tobytes() not in held
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return table.column_names, [[_exact(v) for v in row] for row in rows]


def wanted(release: Release, labels: bool) -> tuple[list[str], list[list[Any]]]:
    called = names_beside(release)
    facts = ["value", *(["unit"] if release.statistics else []), "status"]
    facts += ["low", "high"] if release.least is not None and release.most is not None else []
    facts += ["standard_error"] if release.errors is not None else []
    facts += ["reliability"] if release.grades is not None else []
    head = []
    for own in release.axes:
        head += [own.name, *([called[f"{own.name}_label"]] if labels else [])]
    rows = []
    for cell in told(release):
        at = cell["at"]
        row = []
        for code, label in zip(cell["codes"], cell["labels"], strict=True):
            row += [code, label] if labels else [code]
        for end, own, far in (("low", "least", -OPEN), ("high", "most", OPEN)):
            # Of a number that is shown both ends; of a hidden one those that are stated.
            ends = getattr(release, own)
            if cell["value"] is not None and ends is not None and ends[at] != far:
                cell[end] = number(release, ends[at], cell["decimals"])
        if cell["value"] is not None and release.errors is not None and release.errors[at] >= 0:
            cell["standard_error"] = number(release, release.errors[at], cell["decimals"])
        if cell["value"] is not None and release.errors is None and release.grades is not None:
            cell["reliability"] = str(release.grades[at])
        rows.append(row + [cell[fact] for fact in facts])
    return head + [called[fact] for fact in facts], rows


EXACT = [name for name in RELEASES if name != "large numbers"]  # floats have 53 bits


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("form", FRAMES)
@pytest.mark.parametrize("name", EXACT)
def test_a_frame_tells_of_each_cell_what_the_release_tells(
    name: str, form: str, labels: bool
) -> None:
    release = RELEASES[name]
    assert FRAMES[form](release, labels=labels) == wanted(release, labels)


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("form", FRAMES)
@pytest.mark.parametrize("name", EXACT)
def test_a_wide_frame_tells_of_each_cell_what_the_release_tells(
    name: str, form: str, labels: bool
) -> None:
    release = RELEASES[name]
    cells = {cell["at"]: cell["value"] for cell in told(release)}
    head, rows = FRAMES[form](release, labels=labels, wide=True)
    own = release.axes if len(release.axes) < 2 else release.axes[:-1]
    names = [axis.name for axis in own]
    last = release.axes[-1] if len(release.axes) > 1 else None
    columns = ["value"] if last is None else list(last.labels if labels else last.codes)
    assert head == [*names, *columns]
    shape = tuple(len(axis) for axis in own)
    assert len(rows) == int(np.prod(shape))
    for at, row in zip(np.ndindex(*shape), rows, strict=True):
        called = [a.labels[i] if labels else a.codes[i] for a, i in zip(own, at, strict=True)]
        values = [cells[at if last is None else (*at, k)] for k in range(len(columns))]
        assert row == [*called, *values]


def test_whole_numbers_stay_whole_and_hidden_ones_are_missing() -> None:
    counts, sums, many = (RELEASES[n] for n in ("hidden", "intervals", "statistics"))
    assert str(to_pandas(counts).value.dtype) == "Int64"
    assert str(to_pandas(sums).value.dtype) == "Float64"
    assert str(to_pandas(counts).area.dtype).startswith("str")
    assert to_arrow(counts).schema.field("value").type == pa.int64()
    assert to_polars(counts).schema["value"] == __import__("polars").Int64
    assert to_polars(sums).schema["value"] == __import__("polars").Float64
    wide = to_pandas(many, wide=True)
    assert [str(kind) for kind in wide.dtypes] == ["Int64", "Float64", "Float64"]
    assert (wide.index.name, wide.columns.name) == ("area", "what")
    four = to_pandas(RELEASES["four variables"], wide=True)
    assert (four.index.names, four.columns.name) == (["area", "sex", "age"], "own")
    assert to_pandas(made(SEX, values=[1, 2]), wide=True).columns.name is None


@pytest.mark.parametrize("form", FRAMES)
def test_no_column_is_lost_where_labels_read_alike(form: str) -> None:
    same = TableAxis.plain("x", list("123"), ["same", "same", "same (1)"])
    release = made(SEX, same, values=range(6))
    head, rows = FRAMES[form](release, wide=True)
    assert head == ["sex", "same (1)", "same (2)", "same (1)_"]
    assert [row[1:] for row in rows] == [[0, 1, 2], [3, 4, 5]]
    page = release_html(release)
    assert re.findall(r">(\d)</td>", page) == list("012345")
    # A column of values called like a variable keeps its own place too.
    clash = made(axis("area", "a b"), TableAxis.plain("x", ["area", "y"]), values=range(4))
    if form != "pandas":
        assert FRAMES[form](clash, wide=True) == (
            ["area", "area_", "y"],
            [["a", 0, 1], ["b", 2, 3]],
        )


def test_a_confidential_table_has_frames_with_values_and_contributors() -> None:
    values = np.array([[1250, 0], [375, 20]])
    count = np.array([[4, 0], [2, 1]])
    axes = (axis("area", "n s"), SEX)
    table = Table(axes, values, kind="magnitude", decimals=2, contributors=count)
    for form in FRAMES.values():
        head, rows = form(table, labels=False)
        assert head == ["area", "sex", "value", "contributors"]
        assert [row[2:] for row in rows] == [
            [Decimal("12.5"), 4],
            [0, 0],
            [Decimal("3.75"), 2],
            [Decimal("0.2"), 1],
        ]
        assert form(table, wide=True)[1] == [
            ["n", Decimal("12.5"), 0],
            ["s", Decimal("3.75"), Decimal("0.2")],
        ]
    counts = Table(axes, count, contributors=count)
    assert list(to_pandas(counts).columns) == ["area", "area_label", "sex", "sex_label", "value"]
    assert "contributors" not in to_pandas(replace(table, contributors=None))


@pytest.mark.parametrize("word", ["labels", "wide"])
@pytest.mark.parametrize("frame", [to_pandas, to_polars, to_arrow])
def test_a_wrong_word_is_one_sentence(frame: Any, word: str) -> None:
    with pytest.raises(InputError, match=f"'{word}' is True or False, not 'yes'"):
        frame(RELEASES["counts"], **{word: "yes"})


def test_pages_and_frames_are_made_of_releases_and_tables_only() -> None:
    class Axes:
        axes = ()

    for call in (release_html, lambda it: two_way(it, 1)):
        with pytest.raises(InputError, match="needs a lustrum Release"):
            call(Axes())  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs a lustrum Table"):
        table_html(RELEASES["counts"])  # type: ignore[arg-type]
    for wide in (True, False):
        with pytest.raises(InputError, match="needs a lustrum Table"):
            to_pandas(Axes(), wide=wide)  # type: ignore[arg-type]


def page_cells(page: str) -> list[list[str]]:
    """The texts of the cells of a table of HTML, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    texts = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[unescape(re.sub(r"<[^>]*>", "", text)) for text in row] for row in texts]


@pytest.mark.parametrize("name", RELEASES)
def test_the_page_of_a_release_tells_of_each_cell_what_the_release_tells(name: str) -> None:
    release = RELEASES[name]
    page = release_html(release)
    assert str(HIDDEN) not in re.sub(r"[.,]", "", page)
    cells = {cell["at"]: cell for cell in told(release)}
    own = release.axes if len(release.axes) < 2 else release.axes[:-1]
    last = release.axes[-1] if len(release.axes) > 1 else None
    shape = tuple(len(a) for a in own)
    columns = 1 if last is None else len(last)
    head, *rows = page_cells(page)
    assert (
        head
        == [*(a.name for a in own), *(["value"] if last is None else last.labels)][: len(own) + 20]
    )
    places = list(np.ndindex(*shape))
    assert len(rows) == min(len(places), 60)
    for at, row in zip(places, rows, strict=False):
        assert row[: len(own)] == [a.labels[i] for a, i in zip(own, at, strict=True)]
        for k, text in enumerate(row[len(own) :]):
            cell = cells[at if last is None else (*at, k)]
            if cell["value"] is not None:
                exact = f"{cell['value']:,.{decimals_of(release, cell['at'])}f}"
                assert text == exact or name == "large numbers"
            else:
                assert text == ("–" if cell["status"] == "F" else "×")
    hidden = [cell["status"] for cell in cells.values() if cell["status"] != "F"]
    assert ("× not shown" in page) == bool(hidden)
    for letter in set(hidden):
        if columns <= 20 and len(places) <= 60:
            assert page.count(str(CellStatus(letter).meaning)) == hidden.count(letter)
    for note in release.notes:
        assert note in page


def test_a_page_says_what_it_leaves_out() -> None:
    def page(rows: int, columns: int) -> str:
        axes = (
            axis("r", " ".join(map(str, range(rows)))),
            axis("c", " ".join(map(str, range(columns)))),
        )
        return release_html(made(*axes, values=range(rows * columns)))

    assert "more" not in page(60, 20)
    assert "to_pandas" not in page(60, 20)
    assert "and 2 more rows; to_pandas() has all" in page(62, 20)
    assert "and 3 more columns; to_pandas() has all" in page(60, 23)
    assert "and 1 more rows and 1 more columns; to_pandas() has all" in page(61, 21)
    assert [len(row) for row in page_cells(page(61, 21))] == [21] * 61
    assert "<caption" in page(1, 1)
    assert ">R x C</caption>" in page(1, 1)
    assert ">Turnover: Sex</caption>" in release_html(made(SEX, values=[1, 2], label="Turnover"))
    plain = made(TableAxis("sex", "", SEX.categories), values=[1, 2])
    assert ">sex</caption>" in release_html(plain)
    assert ">everybody</caption>" in release_html(RELEASES["nobody else"])


def test_no_text_of_a_release_becomes_a_tag() -> None:
    bad = "<script>x</script>"
    own = TableAxis(bad, bad, SEX.categories)
    labels = TableAxis.plain("y", ["1"], [bad])
    page = release_html(made(own, labels, values=[1, 2], notes=(bad,), label=bad))
    assert "<script" not in page
    table = table_html(Table((own, labels), np.array([[5], [6]])))
    assert "<script" not in table


def test_the_page_of_a_table_names_its_variables_and_shows_no_number() -> None:
    long = axis("age", "a b c d e f g")
    table = Table((long, AREA), np.full((7, 3), HIDDEN))
    page = table_html(table)
    assert str(HIDDEN) not in page.replace(",", "")
    head, *rows = page_cells(page)
    assert head == ["variable", "categories", "such as"]
    assert rows == [["age", "7", "a, b, c, d, e, f and more"], ["area", "3", "North, South, Total"]]
    assert "and more" not in table_html(Table((axis("age", "a b c d e f"),), np.arange(6)))


@pytest.mark.parametrize("rows", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["hidden", "intervals", "four variables", "counts"])
def test_rows_and_columns_of_a_cross_tabulation_hold_their_cells(name: str, rows: int) -> None:
    release = RELEASES[name]
    rows = min(rows, len(release.axes))
    frame = two_way(release, rows)
    reasons = two_way(release, rows, np.char.add("because ", release.status).astype(object))
    down, across = release.axes[:rows], release.axes[rows:]
    for cell in told(release):
        labels = cell["labels"]
        row = tuple(labels[:rows]) if rows > 1 else labels[0] if rows else "value"
        column = tuple(labels[rows:]) if len(across) > 1 else labels[rows] if across else "value"
        assert _exact(frame.at[row, column]) == cell["value"]
        assert reasons.at[row, column] == f"because {cell['status']}"
    for index, axes in ((frame.index, down), (frame.columns, across)):
        assert list(index.names) == ([a.name for a in axes] or [None])
    assert frame.index.equals(reasons.index)
    assert frame.columns.equals(reasons.columns)


def test_a_refusal_tells_why_and_is_never_an_empty_frame() -> None:
    why = Reason("cells", "Too <many> cells.", "Ask for fewer.")
    refused = Decision(TableQuery("demo", (Axis("age"),)), Verdict.REFUSAL, (why,))
    for frame in (refused.to_pandas, refused.to_polars, refused.to_arrow):
        with pytest.raises(InputError, match=r"refused.*Too <many> cells\. Ask for fewer\."):
            frame()
    assert "Too &lt;many&gt; cells. Ask for fewer." in refused._repr_html_()
    answered = replace(refused, verdict=Verdict.PARTIAL, release=RELEASES["hidden"])
    assert answered.to_pandas().equals(RELEASES["hidden"].to_pandas())
    assert "Ask for fewer." in answered._repr_html_()


def test_a_frame_imports_only_the_library_that_was_asked_for() -> None:
    code = (
        "import sys; from lustrum.model import Table; t = Table.from_counts([1, 2])\n"
        "before = {'pandas', 'polars', 'pyarrow'} & set(sys.modules)\n"
        "t.to_polars(); print(before, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "False"]
