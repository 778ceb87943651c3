"""XLSX: a workbook with the table as people read it, its cells one by one, and what has to be known about it.

A suppressed cell is a text, its status letter, never 0 and never empty. Text stays text:
nothing in the workbook is a formula or a link. The same release gives the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lustrum.formats.about import NOTHING, About, Line
from lustrum.formats.cell_text import NO_NUMBER, Placing, usual_placing
from lustrum.formats.xlsx_large import MOST_DIGITS, Samples, cell_heads, fits
from lustrum.model import Release
from lustrum.model.arrays import Ints
from lustrum.model.release import check_publishable
from lustrum.model.text import opening, say
from lustrum.numeric.structure import UNBOUNDED

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

KEPT_IN_MEMORY = 20_000
"""The rows of more cells than this are joined from samples, since single ones take microseconds and memory."""

_BORN = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)


class Xlsx:
    """Writes a workbook with the sheets Table, Cells and Notes."""

    name: ClassVar[str] = "xlsx"
    media_type: ClassVar[str] = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    ending: ClassVar[str] = "xlsx"
    title: ClassVar[str] = say("Excel (XLSX)")
    tells_about: ClassVar[bool] = True

    def write(
        self, release: Release, label: str = "", about: About | Mapping[str, str | float] = NOTHING
    ) -> bytes:
        """The release as the bytes of a file; ``about`` adds lines to the notes, such as a citation."""
        check_publishable(release, "A workbook")
        out = io.BytesIO()
        import xlsxwriter

        large = release.numbers.size > KEPT_IN_MEMORY
        with xlsxwriter.Workbook(out, {"in_memory": True}) as book:
            book.set_properties({"title": label[:255], "created": _BORN})
            pen = _Pen(book, release)
            table, cells = book.add_worksheet("Table"), book.add_worksheet("Cells")
            columns = usual_columns(release)
            first = _table_head(table, pen, label, columns)
            _cells_head(cells, pen)
            if large:
                samples = Samples(table, pen, first)
            else:
                _table_body(table, pen, first, columns)
                _cells_body(cells, pen)
            told = about if isinstance(about, About) else About(more=about)
            _notes(book.add_worksheet("Notes"), pen, label, told)
        return samples.filled(out.getvalue(), columns) if large else out.getvalue()


class _Pen:
    """Writes into sheets: what is a number as a number, everything else as a text."""

    def __init__(self, book: Workbook, release: Release) -> None:
        self.release = release
        self.shown = release.shown
        self.known = release.known
        self.stated = release.stated
        kinds = {s.decimals for s in release.statistics} or {release.decimals}
        self.looks = {places: _number_formats(book, places) for places in sorted(kinds)}
        self.hidden = book.add_format({"align": "right", "italic": True})
        self.head = book.add_format({"bold": True, "text_wrap": True, "valign": "bottom"})
        self.right = book.add_format(
            {"bold": True, "text_wrap": True, "valign": "bottom", "align": "right"}
        )
        self.title = book.add_format({"bold": True, "font_size": 13})
        self.bold = book.add_format({"bold": True})
        self.wrapped = book.add_format({"text_wrap": True, "valign": "top"})

    def text(
        self, sheet: Worksheet, row: int, column: int, text: str, look: Format | None = None
    ) -> None:
        if text.startswith("<r>"):
            # xlsxwriter would take it for XML of its own; the parts of a text it writes as texts.
            parts = (text[:1], text[1:2], text[2:])
            sheet.write_rich_string(row, column, *parts, *([look] if look else []))
        else:
            sheet.write_string(row, column, text, look)

    def value(
        self,
        sheet: Worksheet,
        row: int,
        column: int,
        at: tuple[int, ...],
        total: bool | None = None,
    ) -> None:
        """The published value of a cell, or its letter, which looks among all cells as beside it."""
        if self.known[at]:
            self.whole(sheet, row, column, int(self.release.numbers[at]), at, bool(total))
        else:
            letter = NO_NUMBER if self.shown[at] else str(self.release.status[at])
            self.text(sheet, row, column, letter, None if total is None else self.hidden)

    def whole(
        self,
        sheet: Worksheet,
        row: int,
        column: int,
        value: int,
        at: tuple[int, ...],
        total: bool = False,
    ) -> None:
        """A value of a cell, with its own decimals."""
        units, decimals = self.release.written(value, at[-1] if at else 0)
        look = self.looks[decimals][total]
        if abs(units) < MOST_DIGITS:
            sheet.write_number(row, column, units / 10**decimals if decimals else units, look)
            return
        digits = f"{abs(units):0{decimals + 1}d}"
        cut = len(digits) - decimals
        fraction = f".{digits[cut:]}" if decimals else ""
        self.text(sheet, row, column, f"{'-' if units < 0 else ''}{digits[:cut]}{fraction}", look)


def _number_formats(book: Workbook, decimals: int) -> tuple[Format, Format]:
    """How numbers with this many decimals look, and totals of them."""
    digits = "#,##0" + (f".{'0' * decimals}" if decimals else "")
    return (
        book.add_format({"num_format": digits}),
        book.add_format({"num_format": digits, "bold": True, "bg_color": "#F3F2ED"}),
    )


def usual_columns(release: Release) -> list[tuple[int, ...]]:
    """The places along the variables that stand above the columns, for each column."""
    placing = usual_placing(release.shape)
    return list(product(*(range(len(release.axes[i])) for i in placing.columns)))


def _table_head(sheet: Worksheet, pen: _Pen, label: str, columns: list[tuple[int, ...]]) -> int:
    """The title and the headers of the table as a page shows it; gives the row below them."""
    release = pen.release
    placing = usual_placing(release.shape)
    axes = release.axes
    pen.text(sheet, 0, 0, label, pen.title)
    down = axes[placing.rows[0]] if placing.rows else None
    row = 2
    for level, position in enumerate(placing.columns):
        axis = axes[position]
        inner = level == len(placing.columns) - 1
        # Right above the labels of the rows stands the name of their variable beside that of the columns.
        names = [down.label, axis.label] if inner and down is not None else [axis.label]
        pen.text(sheet, row, 0, " \\ ".join(names), pen.bold)
        for index, column in enumerate(columns):
            # An outer header stands once, over its first column.
            if index and column[: level + 1] == columns[index - 1][: level + 1]:
                continue
            look = pen.right if inner else pen.head
            pen.text(sheet, row, index + 1, axis.labels[column[level]], look)
        row += 1
    if not placing.columns:
        pen.text(sheet, row, 0, "" if down is None else down.label, pen.bold)
        unit = opening(release.unit)
        said = f"{release.label} ({release.unit})" if release.label else unit
        pen.text(sheet, row, 1, said, pen.right)
        row += 1
    sheet.freeze_panes(row, 1)
    widest = max([len(label) for label in down.labels] if down else [12], default=12)
    sheet.set_column(0, 0, min(60, max(14, widest + 2)))
    sheet.set_column(1, len(columns), 13)
    return row


def _table_body(sheet: Worksheet, pen: _Pen, row: int, columns: list[tuple[int, ...]]) -> None:
    release = pen.release
    for cut, name, cells in _lines(release, usual_placing(release.shape), columns):
        if cut:
            row += 1
            pen.text(sheet, row, 0, cut, pen.bold)
            row += 1
        pen.text(sheet, row, 0, name)
        for index, (at, total) in enumerate(cells):
            pen.value(sheet, row, index + 1, at, total)
        row += 1


def _lines(
    release: Release, placing: Placing, columns: list[tuple[int, ...]]
) -> Iterator[tuple[str, str, list[tuple[tuple[int, ...], bool]]]]:
    """Each row of the table: the header of its part if it is the first there, its label and its cells."""
    axes = release.axes
    order = (*placing.layers, *placing.rows, *placing.columns)
    back = np.argsort(order, kind="stable")
    inner = release.inner
    for layer in product(*(range(len(axes[i])) for i in placing.layers)):
        cut = ", ".join(
            f"{axes[i].label}: {axes[i].labels[p]}"
            for i, p in zip(placing.layers, layer, strict=True)
        )
        for down in product(*(range(len(axes[i])) for i in placing.rows)):
            cells = []
            for column in columns:
                places = (*layer, *down, *column)
                at = tuple(places[k] for k in back)
                cells.append((at, not inner[at]))
            label = axes[placing.rows[0]].labels[down[0]] if placing.rows else release.unit
            yield cut, label, cells
            cut = ""


def _cells_head(sheet: Worksheet, pen: _Pen) -> None:
    names, every, unit, estimated = cell_heads(pen.release)
    heads = [*names, *every, *unit, *estimated]
    for column, name in enumerate(heads):
        pen.text(sheet, 0, column, name, pen.bold)
    sheet.freeze_panes(1, 0)
    sheet.set_column(0, len(names) + 4, 14)


def _cells_body(sheet: Worksheet, pen: _Pen) -> None:
    release = pen.release
    names, _, unit, uncertain = cell_heads(release)
    margins = release.error_margins
    width = len(names)
    for row, at in enumerate(np.ndindex(*release.shape), start=1):
        for k, (axis, index) in enumerate(zip(release.axes, at, strict=True)):
            category = axis.categories[index]
            pen.text(sheet, row, 2 * k, category.code)
            pen.text(sheet, row, 2 * k + 1, category.label)
        pen.value(sheet, row, width, at)
        pen.text(sheet, row, width + 1, str(release.status[at]))
        for column, ends in enumerate((release.least, release.most)):
            _end(sheet, pen, (row, width + 2 + column), ends, at)
        if unit:
            pen.text(sheet, row, width + 4, release.unit_at(at[-1] if at else 0))
        first = width + 4 + len(unit)
        if release.errors is not None and release.grades is not None and _estimated(pen, at):
            _end(sheet, pen, (row, first), release.errors, at)
            pen.text(sheet, row, first + 1, str(release.grades[at]))
        if margins is not None and margins[at] >= 0 and pen.known[at]:
            pen.whole(sheet, row, width + 3 + len(unit) + len(uncertain), int(margins[at]), at)


def _estimated(pen: _Pen, at: tuple[int, ...]) -> bool:
    """Whether a cell shows an estimate with a standard error; what is hidden has no grade either."""
    errors = pen.release.errors
    return errors is not None and bool(errors[at] >= 0) and bool(pen.known[at])


def _end(
    sheet: Worksheet, pen: _Pen, cell: tuple[int, int], ends: Ints | None, at: tuple[int, ...]
) -> None:
    """What is known of a true value at one end; of a suppressed one only what the release states itself."""
    if ends is None or not (pen.known[at] or pen.stated[at]):
        return
    if abs(int(ends[at])) < UNBOUNDED:
        pen.whole(sheet, *cell, int(ends[at]), at)


def _notes(sheet: Worksheet, pen: _Pen, label: str, about: About) -> None:
    """What a reader should know."""
    sheet.set_column(0, 0, 24)
    sheet.set_column(1, 1, 100)
    lines = [*about.lines(pen.release, label), *_about_sheets(pen.release)]
    for row, (name, value) in enumerate(lines):
        pen.text(sheet, row, 0, name, pen.bold)
        if isinstance(value, str):
            pen.text(sheet, row, 1, value, pen.wrapped)
        else:
            sheet.write_number(row, 1, value)


def _about_sheets(release: Release) -> Iterator[Line]:
    if not fits(release):
        yield (
            "Not complete",
            "A sheet cannot hold all rows or columns of this table; CSV and Parquet do.",
        )
    if release.least is not None and release.most is not None:
        yield (
            "low, high",
            "In the sheet Cells: what anybody can know of each true value from its cell and the method; empty "
            "where nothing bounds it with certainty.",
        )
    if release.error_margins is not None:
        yield "margin", "In the sheet Cells: true values are rarely further away from the value."
