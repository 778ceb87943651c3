"""Large workbooks: xlsxwriter writes each distinct text and each look once, and rows are joined from these.

The samples stand below the headers of the sheet Table while the workbook is made. Their rows are then left out
and the rows of all cells put in their place, so that a million cells take seconds and little memory:
120,000 cells took 0.6 seconds of a processor, and 10.3 cell by cell in xlsxwriter.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from lustrum.formats.cell_text import NO_NUMBER, HeadNames, number_text, usual_placing
from lustrum.model import Release
from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.structure import UNBOUNDED

# --- What small and large workbooks have in common

MOST_DIGITS = 10**15
"""A spreadsheet keeps 15 digits; a longer number is written as text, so that none is lost."""

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
"""A sheet has no more; what does not fit is left out."""


def fits(release: Release) -> bool:
    """Whether the sheets of the table and of its cells hold every cell."""
    placing = usual_placing(release.shape)
    parts, down, across = (
        prod(release.shape[i] for i in axes)
        for axes in (placing.layers, placing.rows, placing.columns)
    )
    # Two rows above the headers, and two above every part of a table that is cut.
    rows = 2 + max(len(placing.columns), 1) + parts * (down + 2 * bool(placing.layers))
    return release.numbers.size < MOST_ROWS and rows <= MOST_ROWS and across < MOST_COLUMNS


def cell_heads(release: Release) -> tuple[list[str], list[str], list[str], list[str]]:
    """The columns of the sheet Cells: variables, what every cell has, the unit, and those of uncertainty."""
    called = HeadNames.of(release.axes)
    pairs = zip(release.axes, called.labels, strict=True)
    names = [text for axis, label in pairs for text in (axis.name, label)]
    every = [called.facts[fact] for fact in ("value", "status", "low", "high")]
    unit = [called.facts["unit"]] if release.label else []
    estimated = [called.facts[fact] for fact in ("standard_error", "reliability")]
    graded = release.errors is not None and release.grades is not None
    margin = [called.facts["margin"]] if release.error_margins is not None else []
    return names, every, unit, [*(estimated if graded else []), *margin]


_ACROSS = 1000
_PIECE = 20_000
"""About how many cells become text at a time."""

_LEVEL = 1
"""Rows of a table are so much alike that more effort gains little."""
_TABLE, _CELLS = "xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml"

_CELL = re.compile(r'<c r="[A-Z]+\d+"(.*?(?:/>|</c>))', re.DOTALL)
_ROW = re.compile(r'<row r="(\d+)"')
_MARK = "\x00"


class Samples:
    """One cell of every kind that a release has, and how xlsxwriter writes it."""

    def __init__(self, sheet: Any, pen: Any, first: int) -> None:
        self.release: Release = pen.release
        self.first = first
        self._places: dict[tuple[str, str], int] = {}
        self._fragments: list[str] = []
        looks = {"": None, "hidden": pen.hidden, "bold": pen.bold}
        for decimals, pair in pen.looks.items():
            for total, look in enumerate(pair):
                self._note(sheet, pen, "number", f"{decimals} {total}", look)
        for text, look_name in self._texts():
            self._note(sheet, pen, look_name, text, looks[look_name])

    def _note(self, sheet: Any, pen: Any, kind: str, text: str, look: Any) -> None:
        if (kind, text) in self._places:
            return
        number = len(self._places)
        row, column = self.first + number // _ACROSS, number % _ACROSS
        self._places[kind, text] = number
        if kind == "number":
            sheet.write_number(row, column, 0, look)
        else:
            pen.text(sheet, row, column, text, look)

    def _texts(self) -> Iterator[tuple[str, str]]:
        release = self.release
        placing = usual_placing(release.shape)
        for axis in release.axes:
            for category in axis.categories:
                yield category.code, ""
                yield category.label, ""
        for cut in _parts(release, placing.layers):
            yield cut, "bold"
        for letter in np.unique(release.status).tolist():
            yield letter, ""
            yield letter, "hidden"
        yield from ((NO_NUMBER, ""), (NO_NUMBER, "hidden"), (release.unit, ""))
        for index in range(len(release.statistics)):
            yield release.unit_at(index), ""
        if release.errors is not None and release.grades is not None:
            # A grade that no cell shows may not stand among the texts either.
            there = release.known & (release.errors >= 0)
            for grade in np.unique(release.grades[there]).tolist():
                yield grade, ""

    def text(self, text: str, look: str = "") -> str:
        """How a text is written, behind the name of its cell."""
        return self._fragments[self._places[look, text]]

    def filled(self, data: bytes, columns: list[tuple[int, ...]]) -> bytes:
        """The workbook with the rows of all cells in place of the samples."""
        out = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(data)) as book,
            zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as new_book,
        ):
            table = book.read(_TABLE).decode()
            self._fragments = _CELL.findall(_below(table, self.first))
            for entry in book.infolist():
                if entry.filename == _TABLE:
                    pieces = _with_rows(table, self.first, self._table(columns))
                elif entry.filename == _CELLS:
                    pieces = _with_rows(book.read(entry).decode(), 1, self._cells())
                else:
                    new_book.writestr(entry, book.read(entry))
                    continue
                with new_book.open(entry.filename, "w", force_zip64=True) as file:
                    for piece in pieces:
                        file.write(piece.encode())
        return out.getvalue()

    def _looks(self, total: int) -> list[str]:
        """What begins a number in each place along the last axis, up to its digits."""
        release = self.release
        places = max(len(release.statistics), 1)
        return [
            self.text(f"{release.decimals_at(i)} {total}", "number").replace(
                "<v>0</v></c>", f"<v>{_MARK}</v></c>"
            )
            for i in range(places)
        ]

    def _numbers(self, values: Ints, low: int, high: int, totals: Mask | None = None) -> list[str]:
        """How the values from one cell to another are written."""
        release = self.release
        plain, bold = self._looks(0), self._looks(1)
        part = values.ravel()[low:high]
        places = len(plain)
        cell_texts = [""] * part.size
        for statistic in range(places):
            stride = slice(statistic, None, places)
            decimals = release.decimals_at(statistic)
            units = part[stride] // 10 ** (release.decimals - decimals)
            digits = _digits(units, decimals)
            ends = [tuple(look[statistic].split(_MARK)) for look in (plain, bold)]
            if totals is None:
                start, end = ends[0]
                cell_texts[stride] = [f"{start}{text}{end}" for text in digits]
            else:
                chosen = totals.ravel()[low:high][stride].tolist()
                cell_texts[stride] = [
                    f"{ends[t][0]}{text}{ends[t][1]}"
                    for t, text in zip(chosen, digits, strict=True)
                ]
            for i in np.flatnonzero(np.abs(units) >= MOST_DIGITS).tolist():
                # A spreadsheet would round it: it is written as a text with the look of its number.
                start = ends[0 if totals is None else chosen[i]][0].split(">")[0]
                cell_texts[statistic + i * places] = (
                    f'{start} t="inlineStr"><is><t>{number_text(int(units[i]), decimals)}</t></is></c>'
                )
        return cell_texts

    def _values(self, low: int, high: int, totals: Mask | None, order: _Order) -> list[str]:
        """Published values or letters, as the sheet Table and the sheet Cells show them."""
        cell_texts = self._numbers(order.of(self.release.numbers), low, high, totals)
        known, shown = order.of(self.release.known), order.of(self.release.shown)
        status = order.of(self.release.status)
        for i in (low + np.flatnonzero(~known.ravel()[low:high])).tolist():
            hidden = NO_NUMBER if shown.ravel()[i] else str(status.ravel()[i])
            cell_texts[i - low] = self.text(hidden, "" if totals is None else "hidden")
        return cell_texts

    def _cells(self) -> Iterator[str]:
        """The rows of the sheet Cells, one a cell."""
        release = self.release
        names, _, unit, _ = cell_heads(release)
        letters = _letters(len(names) + 10)
        after = letters[len(names) :]
        axes = []
        for i, axis in enumerate(release.axes):
            codes = _in_column(letters[2 * i], [self.text(code) for code in axis.codes])
            labels = _in_column(letters[2 * i + 1], [self.text(label) for label in axis.labels])
            axes.append(list(map("".join, zip(codes, labels, strict=True))))
        same = _Order(tuple(range(len(release.axes))))
        *outer, inner = axes or [[""]]
        rest = product(*outer)
        places = len(inner)
        units = [self.text(release.unit_at(i)) for i in range(places)] if unit else []
        done = 0
        while block := list(islice(rest, max(1, _PIECE // places))):
            low, high = done, min(done + len(block) * places, MOST_ROWS - 1)
            done += len(block) * places
            columns = [self._values(low, high, None, same)]
            columns.append([self.text(s) for s in release.status.ravel()[low:high].tolist()])
            known, stated = release.known.ravel()[low:high], release.stated.ravel()[low:high]
            columns += [
                self._ends(e, known | stated, low, high) for e in (release.least, release.most)
            ]
            if unit:
                columns.append((units * len(block))[: high - low])
            if release.errors is not None and release.grades is not None:
                there = known & (release.errors.ravel()[low:high] >= 0)
                grades = release.grades.ravel()[low:high].tolist()
                columns.append(self._ends(release.errors, there, low, high))
                columns.append(
                    [self.text(g) if t else "" for g, t in zip(grades, there.tolist(), strict=True)]
                )
            margins = release.error_margins
            if margins is not None:
                stated = known & (margins.ravel()[low:high] >= 0)
                columns.append(self._ends(margins, stated, low, high))
            rows = map("".join, zip(*map(_in_column, after, columns), strict=True))
            lines = []
            row = low + 2
            for outside in block:
                start = "".join(outside)
                for name, tail in zip(inner, rows, strict=False):
                    lines.append(
                        f'<row r="{_MARK}">{start}{name}{tail}</row>'.replace(_MARK, str(row))
                    )
                    row += 1
            yield "".join(lines)
            if high == MOST_ROWS - 1:
                return

    def _ends(self, ends: Ints | None, where: Mask, low: int, high: int) -> list[str]:
        """What is known at one end; nothing where nothing is stated, or nothing bounds it."""
        if ends is None:
            return [""] * (high - low)
        cell_texts = self._numbers(ends, low, high)
        part = ends.ravel()[low:high]
        for i in np.flatnonzero(~where | (np.abs(part) >= UNBOUNDED)).tolist():
            cell_texts[i] = ""
        return cell_texts

    def _table(self, columns: list[tuple[int, ...]]) -> Iterator[str]:
        release = self.release
        placing = usual_placing(release.shape)
        order = _Order((*placing.layers, *placing.rows, *placing.columns))
        totals = order.of(~release.inner)
        width = len(columns)
        letters = _letters(min(width + 1, MOST_COLUMNS))[1:]
        labels = release.axes[placing.rows[0]].labels if placing.rows else (release.unit,)
        cuts = _parts(release, placing.layers)
        row, lines, size, at = self.first + 1, [], 0, 0
        for cut in cuts:
            if cut:
                row += 1
                lines.append(f'<row r="{row}"><c r="A{row}"{self.text(cut, "bold")}</row>')
                row += 1
            for first in range(0, len(labels), max(1, _PIECE // width)):
                some = labels[first : first + max(1, _PIECE // width)]
                values = self._values(at, at + len(some) * width, totals, order)
                at += len(some) * width
                for i, label in enumerate(some):
                    if row > MOST_ROWS:
                        break
                    row_values = values[i * width : (i + 1) * width]
                    cells = "".join(
                        f'<c r="{a}{row}"{part}'
                        for a, part in zip(letters, row_values, strict=False)
                    )
                    lines.append(f'<row r="{row}"><c r="A{row}"{self.text(label)}{cells}</row>')
                    row += 1
                size += len(values)
                if size >= _PIECE:
                    yield "".join(lines)
                    lines, size = [], 0
            if row >= MOST_ROWS:  # the next part would begin a row below
                break
        yield "".join(lines)


def _in_column(letter: str, parts: list[str]) -> list[str]:
    """Cells of one column; a mark stands for the number of the row, and an empty cell is left out."""
    start = f'<c r="{letter}{_MARK}"'
    return [f"{start}{part}" if part else "" for part in parts]


class _Order:
    """The cells of a release with its axes in another order, flat."""

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes
        self._kept: dict[int, Any] = {}

    def of(self, array: Any) -> Any:
        """The array in this order; the same array is turned around once."""
        if id(array) not in self._kept:
            turned = np.ascontiguousarray(np.transpose(array, self.axes)) if self.axes else array
            self._kept[id(array)] = (array, turned)
        return self._kept[id(array)][1]


def _parts(release: Release, layers: tuple[int, ...]) -> list[str]:
    """The header of each part of the table; one empty header where it is not cut."""
    axes = [release.axes[i] for i in layers]
    return [
        ", ".join(f"{axis.label}: {axis.labels[p]}" for axis, p in zip(axes, places, strict=True))
        for places in product(*(range(len(axis)) for axis in axes))
    ]


def _digits(units: Ints, decimals: int) -> list[str]:
    """Numbers as a workbook holds them."""
    if not decimals:
        return list(map(str, units.tolist()))
    return [f"{value:.16G}" for value in (units / 10**decimals).tolist()]


def _below(xml: str, first: int) -> str:
    """The rows of a sheet from a place on."""
    for match in _ROW.finditer(xml):
        if int(match[1]) > first:
            return xml[match.start() :]
    return ""


def _letters(count: int) -> list[str]:
    """The names of the first columns of a sheet."""
    from xlsxwriter.utility import xl_col_to_name

    return [xl_col_to_name(i) for i in range(count)]


def _with_rows(xml: str, head_rows: int, rows: Iterable[str]) -> Iterator[str]:
    """A sheet with its first rows and then others in place of what follows them."""
    end = xml.index("</sheetData>") if "</sheetData>" in xml else None
    assert end is not None
    start = end - len(_below(xml[:end], head_rows))
    # Where the cells lie is optional, and would have to be known before the rows.
    head = re.sub(r"<dimension [^>]*/>", "", xml[:start])
    yield re.sub(r' spans="[^"]*"', "", head)
    yield from rows
    yield xml[end:]
