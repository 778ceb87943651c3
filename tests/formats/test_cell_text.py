"""Files that are written column by column hold what the csv module would write cell by cell."""

from __future__ import annotations

import csv
import io

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.formats import Csv, Xlsx, cell_text, xlsx, xlsx_large
from lustrum.formats.cell_text import inert, number_text
from lustrum.formats.write import release_as_csv
from lustrum.model import Category, Release, TableAxis

_TEXTS = st.text(alphabet='a,"=\r\n é-1;<&', max_size=4)


@st.composite
def releases(draw: st.DrawFn) -> Release:
    """Small releases with odd names, hidden cells, intervals, decimals and standard errors."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    axes = []
    for place, size in enumerate(shape):
        labels = draw(st.lists(_TEXTS, min_size=size, max_size=size))
        plain = draw(st.booleans())
        axes.append(
            TableAxis(
                f"v{place}",
                draw(_TEXTS) or "v",
                tuple(
                    Category(f"{place}{i}", f"{place}{i}" if plain else labels[i], (i,))
                    for i in range(size)
                ),
            )
        )
    size = int(np.prod(shape))
    numbers = st.lists(st.integers(-(10**15), 10**15), min_size=size, max_size=size)
    values = np.array(draw(numbers), dtype=np.int64).reshape(shape)
    spread = np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    letters = draw(st.lists(st.sampled_from("FFFAND"), min_size=size, max_size=size))
    estimated = draw(st.booleans())
    return Release(
        tuple(axes),
        values,
        np.array(letters).reshape(shape),
        {"method": "suppression"},
        least=values - spread.reshape(shape) if draw(st.booleans()) else None,
        most=values + 5,
        decimals=draw(st.integers(0, 3)),
        unit=draw(_TEXTS),
        label=draw(st.sampled_from(["", "turnover"])),
        errors=(spread - 1).reshape(shape) if estimated else None,
        grades=np.full(shape, "reliable") if estimated else None,
    )


def _line(fields: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(fields)
    return out.getvalue()[:-2]


def _by_cells(release: Release, *, labels: bool, end: str, more: bool) -> str:
    """One row a cell, by the csv module."""
    lines: list[str] = []
    beside = [labels or axis.labels != axis.codes for axis in release.axes]
    head = []
    for axis, both in zip(release.axes, beside, strict=True):
        head += [axis.name, f"{axis.name}_label"] if both else [axis.name]
    unit = ["unit"] if more and release.label else []
    ends = ["low", "high"] if release.stated.any() else []
    errors = ["standard_error", "reliability"] if more and release.errors is not None else []
    lines.append(_line([*head, "value", *unit, "status", *ends, *errors]))

    def text(values: object, at: tuple[int, ...], there: bool) -> str:
        return number_text(int(values[at]), release.decimals) if there else ""  # type: ignore[index]

    for at in np.ndindex(*release.shape):
        row = []
        for axis, place, both in zip(release.axes, at, beside, strict=True):
            category = axis.categories[place]
            row += [inert(category.code), inert(category.label)] if both else [inert(category.code)]
        row.append(text(release.published, at, bool(release.shown[at])))
        row += [inert(release.unit)] if unit else []
        row.append(str(release.status[at]))
        for end_ in (release.least, release.most) if ends else ():
            row.append(text(end_, at, bool(release.stated[at])))
        if errors:
            assert release.errors is not None
            there = bool(release.shown[at]) and release.errors[at] >= 0
            row += [text(release.errors, at, there), "reliable" if there else ""]
        lines.append(_line(row))
    return "".join(line + end for line in lines)


@settings(max_examples=examples(50, 400), deadline=None)
@given(releases(), st.integers(1, 7))
def test_columns_give_the_bytes_of_single_cells(release: Release, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell_text, "_PIECE", piece)
        assert Csv().write(release) == _by_cells(release, labels=True, end="\r\n", more=True)
        assert release_as_csv(release) == _by_cells(release, labels=False, end="\n", more=False)


@settings(max_examples=examples(20, 160), deadline=None)
@given(releases(), st.integers(1, 9))
def test_a_large_workbook_holds_what_a_small_one_holds(release: Release, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        books = []
        for most in (10**9, -1):
            patch.setattr(xlsx, "KEPT_IN_MEMORY", most)
            patch.setattr(xlsx_large, "_PIECE", piece)
            patch.setattr(xlsx_large, "_ACROSS", 3)
            data = Xlsx().write(release, "Title", {"Licence": "CC BY"})
            assert data == Xlsx().write(release, "Title", {"Licence": "CC BY"})
            books.append(_cells_of(data))
        assert books[0] == books[1]


def _cells_of(data: bytes) -> dict[str, dict[str, tuple[object, str, bool, bool]]]:
    """Every cell of a workbook: its value, number format, whether it is bold and whether it is italic."""
    book = openpyxl.load_workbook(io.BytesIO(data))
    return {
        sheet.title: {
            cell.coordinate: (cell.value, cell.number_format, cell.font.b, cell.font.i)
            for row in sheet.iter_rows()
            for cell in row
            if cell.value is not None
        }
        for sheet in book
    }
