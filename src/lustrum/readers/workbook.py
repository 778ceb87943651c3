"""A workbook walked part by part: what a spreadsheet shows as cells, and everything else that it carries.

A number can stand behind a format that shows a letter, under a white font, in a comment, a formula, a hidden
row, a cache of a chart or a text that no cell uses any more. Each of these is named; none is taken for a cell.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from lustrum.model import InputError
from lustrum.readers.grids import FieldGrid, Unread, text_of

_READ = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|docProps/(core|app)\.xml|xl/(workbook|styles|sharedStrings)\.xml"
    r"|xl/theme/theme\d+\.xml|xl/_rels/workbook\.xml\.rels|xl/worksheets/(_rels/)?sheet\d+\.xml(\.rels)?"
)
_PLAIN_FORMAT = re.compile(r"(general|@|[#0?,. ]*[#0](\.[0#?]+)?%?)", re.IGNORECASE)
_SMALL = 1.0  # a row or column of less than a point cannot be seen


def walk_workbook(content: bytes, source: str) -> tuple[tuple[FieldGrid, ...], list[Unread]]:
    """The sheets of a workbook as grids, and everything else that it holds."""
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    wrong = (
        InvalidFileException, zipfile.BadZipFile, zlib.error, EOFError, SyntaxError, LookupError, OSError,
        ValueError, TypeError, AttributeError, NotImplementedError, RuntimeError,
    )  # fmt: skip
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            names = parts.namelist()
            beyond = [n for n in names if "worksheets/sheet" in n and b"<extLst" in parts.read(n)]
            strings = _strings(parts) if "xl/sharedStrings.xml" in names else []
        formulas = openpyxl.load_workbook(io.BytesIO(content), keep_links=True)
        results = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        unread = [
            Unread("part of the workbook", name) for name in names if not _READ.fullmatch(name)
        ]
        unread += [Unread("extension of a sheet", name) for name in beyond]
        unread += list(_of_book(formulas))
        grids, used = [], set[str]()
        for sheet in results.worksheets:
            lines, places, more = _sheet(sheet, formulas[sheet.title], used)
            unread += more
            if any(any(line) for line in lines):
                grids.append(FieldGrid(sheet.title, tuple(lines), range(1, len(lines) + 1), places))
    except wrong:
        raise InputError(f"{source} is not a workbook, though its name says so.") from None
    left = [text for text in strings if text not in used and any(c.isdigit() for c in text)]
    if left:
        unread.append(Unread("text that no cell uses", f"{len(left)} shared strings"))
    return tuple(grids), unread


def _strings(parts: zipfile.ZipFile) -> list[str]:
    root = ElementTree.fromstring(parts.read("xl/sharedStrings.xml"))
    space = root.tag.partition("}")[0] + "}"
    return ["".join(t.text or "" for t in item.iter(f"{space}t")) for item in root]


def _of_book(book: Any) -> Iterator[Unread]:
    """Names, properties and settings of a workbook that can hold a number."""
    for name in book.defined_names:
        yield Unread("defined name", name)
    properties = book.properties
    for name in ("title", "subject", "description", "keywords", "category", "contentStatus"):
        text = getattr(properties, name) or ""
        if any(c.isdigit() for c in text):
            yield Unread("document property", name)
    for name in book.custom_doc_props.names:
        yield Unread("document property", name)


def _sheet(
    sheet: Any, formulas: Any, used: set[str]
) -> tuple[list[tuple[str, ...]], list[str], list[Unread]]:
    """The fields of a sheet as a person sees them, and what stands behind or beside them."""
    title = sheet.title
    unread: list[Unread] = []
    if sheet.sheet_state != "visible":
        unread.append(Unread("hidden sheet", title))
    rows, columns = _unseen(sheet)
    unread += [Unread("hidden row", f"{title}, row {number}") for number in rows]
    unread += [Unread("hidden column", f"{title}, column {number}") for number in columns]
    unread += [Unread(what, title) for what, there in (
        ("chart", sheet._charts), ("picture", sheet._images), ("pivot table", sheet._pivots),
        ("data validation", getattr(sheet.data_validations, "dataValidation", ())),
        ("conditional format", len(sheet.conditional_formatting)),
    ) if there]  # fmt: skip
    for where in (
        "oddHeader",
        "oddFooter",
        "evenHeader",
        "evenFooter",
        "firstHeader",
        "firstFooter",
    ):
        part = getattr(sheet, where)
        if any((getattr(part, side).text or "").strip() for side in ("left", "center", "right")):
            unread.append(Unread("header or footer", title))
    lines, places = [], []
    for number, row in enumerate(sheet.iter_rows(), start=1):
        fields = []
        for cell in row:
            text = text_of(cell.value)
            used.add(str(cell.value))
            where = f"{title}!{cell.coordinate}"
            if cell.comment is not None:
                unread.append(Unread("comment", where))
            if cell.hyperlink is not None:
                unread.append(Unread("link", where))
            if formulas[cell.coordinate].data_type == "f":
                unread.append(Unread("formula", where))
            if cell.value is not None and _covered(cell):
                unread.append(Unread("format that hides", where))
            fields.append(text)
        lines.append(tuple(fields))
        places.append(f"{title}, row {number}")
    return lines, places, unread


def _unseen(sheet: Any) -> tuple[dict[int, None], dict[int, None]]:
    """The numbers of the rows and columns that nobody sees."""
    default = sheet.sheet_format
    rows, columns = dict[int, None](), dict[int, None]()
    if default.zeroHeight or (default.customHeight and default.defaultRowHeight < _SMALL):
        rows = dict.fromkeys(range(1, sheet.max_row + 1))
    if default.defaultColWidth is not None and default.defaultColWidth < _SMALL:
        columns = dict.fromkeys(range(1, sheet.max_column + 1))
    for number, one in sheet.row_dimensions.items():
        if one.hidden or (one.height is not None and one.height < _SMALL):
            rows[number] = None
    for one in sheet.column_dimensions.values():
        if one.hidden or (one.width is not None and one.width < _SMALL):
            one.reindex()  # one entry can stand for several columns
            columns |= dict.fromkeys(
                range(one.min, min(one.max, max(sheet.max_column, one.min)) + 1)
            )
    return rows, columns


def _covered(cell: Any) -> bool:
    """Whether a cell shows something else than what stands in it: by its number format, or by its colours."""
    if isinstance(cell.value, int | float) and not _PLAIN_FORMAT.fullmatch(
        cell.number_format or ""
    ):
        return True
    if isinstance(cell.value, str) and (cell.number_format or "").count(";") >= 3:
        return True
    colour, fill = cell.font.color, cell.fill
    shown = _rgb(colour)
    behind = _rgb(fill.fgColor) if fill is not None and fill.fill_type == "solid" else "FFFFFF"
    return shown is not None and shown == behind


def _rgb(colour: Any) -> str | None:
    """A colour as six digits where the workbook states it so; the first theme colour is white."""
    if colour is None:
        return None
    if colour.type == "rgb" and isinstance(colour.rgb, str):
        return colour.rgb[-6:].upper()
    if colour.type == "theme":
        return {0: "FFFFFF", 1: "000000"}.get(colour.theme)
    if colour.type == "indexed":
        return {0: "000000", 1: "FFFFFF", 8: "000000", 9: "FFFFFF"}.get(colour.indexed)
    return None


def clean_workbook(content: bytes, source: str) -> bytes:
    """A copy with the visible values of the visible sheets and nothing else.

    A field whose format or colour hides what stands in it is left blank: what nobody saw is not written.
    """
    import openpyxl
    import xlsxwriter

    book = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
    out = io.BytesIO()
    plain = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(out, plain) as written:
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                continue
            try:
                copy = written.add_worksheet(sheet.title)
            except xlsxwriter.exceptions.XlsxInputError as error:
                raise InputError(
                    f"{source}: the sheet {sheet.title!r} has a name that no workbook may have."
                ) from error
            rows, columns = _unseen(sheet)
            for line in sheet.iter_rows():
                for cell in line:
                    seen = cell.row not in rows and cell.column not in columns
                    if cell.value is not None and seen and not _covered(cell):
                        value = (
                            cell.value
                            if isinstance(cell.value, int | float | str)
                            else str(cell.value)
                        )
                        copy.write(cell.row - 1, cell.column - 1, value)
    return out.getvalue()
