"""A workbook walked part by part: what a spreadsheet shows as cells, and everything else that it carries.

A number can stand behind a format that shows a letter, under a white font, in a comment, a formula, a hidden
row, a cache of a chart or a text that no cell uses any more. Each of these is named; none is taken for a cell.
"""

from __future__ import annotations

import io
import re
import struct
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
_ELEMENTS = re.compile(
    r"worksheet|sheetPr|tabColor|outlinePr|pageSetUpPr|dimension|sheetViews|sheetView|pane|selection"
    r"|sheetFormatPr|sheetCalcPr|cols|col|sheetData|row|c|v|f|is|t|r|rPr|rFont|b|i|u|sz|color|family"
    r"|scheme|strike|vertAlign|charset|sheetProtection|mergeCells|mergeCell|phoneticPr|printOptions"
    r"|pageMargins|pageSetup|rowBreaks|colBreaks|brk|ignoredErrors?|headerFooter|drawing"
    r"|legacyDrawing|tableParts?|autoFilter"
)
"""What a sheet consists of that is read, states nothing, or only points to a part of its own."""
_SHEET = re.compile(r"xl/worksheets/sheet\d+\.xml")
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
            beyond = [
                one for name in names if _SHEET.fullmatch(name) for one in _beyond(parts, name)
            ]
            if not _nothing_between(parts, len(content)):
                beyond.append(Unread("bytes of no part", "the file itself"))
            strings = _strings(parts) if "xl/sharedStrings.xml" in names else []
        formulas = openpyxl.load_workbook(io.BytesIO(content), keep_links=True)
        results = openpyxl.load_workbook(io.BytesIO(content), data_only=True)
        unread = [
            Unread("part of the workbook", name) for name in names if not _READ.fullmatch(name)
        ]
        unread += beyond
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


def _nothing_between(parts: zipfile.ZipFile, size: int) -> bool:
    """Whether the file is its parts, each once and one behind the other, and their list."""
    entries = sorted(parts.infolist(), key=lambda entry: entry.header_offset)
    at = described = 0
    for entry in entries:
        if entry.comment or not 0 <= entry.header_offset - at <= described:
            return False
        parts.fp.seek(entry.header_offset + 26)  # type: ignore[union-attr]
        name, extra = struct.unpack("<HH", parts.fp.read(4))  # type: ignore[union-attr]
        at = entry.header_offset + 30 + name + extra + entry.compress_size
        described = 24 if entry.flag_bits & 8 else 0
    listed = sum(46 + len(entry.orig_filename.encode()) + len(entry.extra) for entry in entries)
    once = len({entry.filename for entry in entries}) == len(entries)
    return once and not parts.comment and 0 <= size - 22 - listed - at <= described


def _beyond(parts: zipfile.ZipFile, name: str) -> Iterator[Unread]:
    """Elements of a sheet that are not read, each kind once, and comments of its XML."""
    parser: Any = ElementTree.XMLPullParser(("start", "comment", "pi"))
    parser.feed(parts.read(name))
    found = dict[str, None]()
    for event, element in parser.read_events():
        tag = element.tag.rpartition("}")[2] if event == "start" else "comment of the XML"
        if not _ELEMENTS.fullmatch(tag) or (tag == "c" and set(element.keys()) - {"r", "s", "t"}):
            found[tag] = None
    return (Unread("element of a sheet", f"{tag} in {name}") for tag in found)


def _of_book(book: Any) -> Iterator[Unread]:
    """Names, properties and settings of a workbook that can hold a number."""
    for name in book.defined_names:
        yield Unread("defined name", name)
    properties = book.properties
    for name in (
        "title", "subject", "description", "keywords", "category", "contentStatus", "creator", "lastModifiedBy",
        "identifier", "version", "revision",
    ):  # fmt: skip
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
    lines, places = [], []
    for number, row in enumerate(sheet.iter_rows(), start=1):
        fields = []
        for cell in row:
            text = text_of(cell.value)
            used.add(str(cell.value))
            where = f"{title}!{cell.coordinate}"
            if formulas[cell.coordinate].data_type == "f":
                unread.append(Unread("formula", where))
            if cell.value is not None and _covered(cell):
                unread.append(Unread("format that hides", where))
            fields.append(text)
        lines.append(tuple(fields))
        places.append(f"{title}, row {number}")
    if _tells_by_look(sheet):
        unread.append(Unread("look that differs among equal fields", title))
    return lines, places, unread


def _tells_by_look(sheet: Any) -> bool:
    """Whether cells with one text differ in font, colour or format by more than their rows and columns do."""
    looks: dict[str, dict[tuple[int, int], tuple[int, ...]]] = {}
    around: dict[tuple[str, int], dict[tuple[int, ...], set[str]]] = {}
    for row in sheet.iter_rows():
        for cell in row:
            if cell.value is not None:
                text, style = text_of(cell.value), cell._style
                look = (style.fontId, style.fillId, style.numFmtId)
                if isinstance(cell.value, str):
                    looks.setdefault(text, {})[cell.row, cell.column] = look
                for line in (("row", cell.row), ("column", cell.column)):
                    around.setdefault(line, {}).setdefault(look, set()).add(text)
    return any(
        not any(around[line][look] - {text} for line in (("row", place[0]), ("column", place[1])))
        for text, places in looks.items()
        if len(set(places.values())) > 1
        for place, look in places.items()
    )


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
