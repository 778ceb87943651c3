"""The rows of a file, as text, from CSV, Parquet, XLSX or JSON-stat; what they mean is decided elsewhere."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import json
import math
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from lustrum.formats.cell_text import free_name, inert
from lustrum.model import InputError

_DELIMITERS = (",", ";", "\t")
_SHEETS = ("Table", "Cells", "Notes")  # of a workbook that this project writes
_NUMBER = re.compile(r"[-+(]?[\d.,' ]*\d[\d.,' %)]*")
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of text by name, all of one length; an empty text is an empty field.

    ``places`` says where each row stands, for messages, such as ``line 2``. ``notes`` say how the file was
    read, and ``doubts`` what is unclear. ``variables`` are columns that the file itself says are variables,
    whatever they are called.
    """

    source: str
    columns: Mapping[str, Sequence[str]]
    places: Sequence[str]
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    delimiter: str = ","
    variables: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.places)

    def where(self, row: int) -> str:
        """A row in words."""
        return f"{self.source}, {self.places[row]}"

    def fact(self, name: str) -> str:
        """The column of what files tell of a cell, such as ``value``.

        A variable keeps its own name in every file that this project writes. Where it is called ``value``,
        the value of a cell is ``value_``.

        >>> rows = Rows("x.csv", {"value": ["1"], "value_": ["12"], "status": ["F"]}, ["line 2"])
        >>> rows.fact("value"), rows.fact("status")
        ('value_', 'status')
        """
        while name in self.variables or {name, f"{name}_"} <= self.columns.keys():
            name += "_"
        return name


def read_rows(path: Path) -> Rows:
    """Read a file by its ending: Parquet, XLSX, JSON-stat, or else CSV, which may be compressed with gzip."""
    return _rows(path, lambda content: rows_of_csv(content.decode("utf-8"), str(path)))


def _rows(path: Path, csv_rows: Callable[[bytes], Rows]) -> Rows:
    try:
        if path.suffix.lower() == ".xlsx":
            return _rows_of_workbook(path)
        if path.suffix.lower() == ".json":
            return _rows_of_jsonstat(path.read_bytes().decode("utf-8"), str(path))
        if path.suffix.lower() in _PARQUET:
            return _rows_of_parquet(path)
        if path.suffix.lower() == ".gz":
            return csv_rows(gzip.decompress(path.read_bytes()))
        return csv_rows(path.read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path} is not compressed with gzip, though its name says so.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it in that encoding.") from None


def rows_of_csv(text: str, source: str) -> Rows:
    """The rows of CSV with commas, semicolons or tabs, whichever the first line has most of."""
    plain = text.removeprefix("\ufeff")
    first = plain.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(plain, newline=""), delimiter=delimiter)
    try:
        head = [name.strip() for name in next(reader, [])]
        twice = next((name for name in head if head.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{source}: the column {twice!r} occurs twice; use it once.")
        rows, places = [], []
        for row in reader:
            if not row:
                continue
            if len(row) != len(head):
                raise InputError(
                    f"{source}, line {reader.line_num}: there are {len(row)} fields, but the first line "
                    f"names {len(head)}."
                )
            rows.append(row)
            places.append(f"line {reader.line_num}")
    except csv.Error as error:
        raise InputError(f"{source}, line {reader.line_num}: this is not CSV ({error}).") from None
    # A code that a spreadsheet could take for a formula is written with a quote before it.
    columns = {
        name: [row[i].strip().removeprefix("'") for row in rows] for i, name in enumerate(head)
    }
    return Rows(source, columns, places)


def _rows_of_parquet(path: Path) -> Rows:
    import pyarrow
    from pyarrow import parquet

    try:
        # A file on its own is read with columns that occur twice, a folder of files is not.
        table = parquet.ParquetFile(path).read() if path.is_file() else parquet.read_table(path)
    except pyarrow.ArrowException:
        raise InputError(f"{path} is not a Parquet file, though its name says so.") from None
    head = table.column_names
    twice = next((name for name in head if head.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: the column {twice!r} occurs twice; use it once.")
    columns = {name: [_code(value) for value in table.column(name).to_pylist()] for name in head}
    return Rows(str(path), columns, [f"row {i + 1}" for i in range(table.num_rows)])


def _rows_of_workbook(path: Path) -> Rows:
    """The sheet 'Cells' of a workbook, as this project writes it, or else the first sheet."""
    sheet_lines, others = _lines_of_workbook(path, results=True)
    if others or any(None in line for _, line in sheet_lines):
        formulas, computed = _lines_of_workbook(path, results=False)
        others = {name: others[name] or computed[name] for name in others}
        for (row, line), (_, written) in zip(sheet_lines, formulas, strict=True):
            # A reader's program computes a formula whose result is not stored.
            if any(a is None and b is not None for a, b in zip(line, written, strict=True)):
                raise InputError(
                    f"{path}, row {row}: the result of a formula is not stored; open the file in a "
                    "spreadsheet and save it, or write the number."
                )
    sheet_lines = [(row, line) for row, line in sheet_lines if any(line)]
    if not sheet_lines:
        raise InputError(f"{path}: the sheet is empty; a table needs a line of names.")
    filled = [any(column) for column in zip(*(line for _, line in sheet_lines), strict=True)]
    head, *lines = [
        [text or "" for text in itertools.compress(line, filled)] for _, line in sheet_lines
    ]
    twice = next((name for name in head if head.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: the column {twice!r} occurs twice; use it once.")
    columns = {name: [line[i] for line in lines] for i, name in enumerate(head)}
    value, status, *ends = map(Rows("", columns, ()).fact, ("value", "status", "low", "high"))
    if value in columns and status in columns:
        # A workbook shows the letter of a hidden cell in place of its value.
        pairs = zip(columns[value], columns[status], strict=True)
        columns[value] = [
            "" if shown == letter and shown.isalpha() else shown for shown, letter in pairs
        ]
    for name in ends:
        if name in columns:
            columns[name] = ["" if text == "not known" else text for text in columns[name]]
    doubts: tuple[str, ...] = ()
    if any(others.values()):
        listed = ", ".join(repr(name) for name, unread in others.items() if unread)
        doubts = (
            f"other sheets of the workbook are not read and may show what is hidden ({listed}); save each as a "
            "file of its own, or say --notes-read if they state nothing.",
        )
    return Rows(str(path), columns, [f"row {row}" for row, _ in sheet_lines[1:]], doubts=doubts)


def _lines_of_workbook(
    path: Path, *, results: bool
) -> tuple[list[tuple[int, list[str | None]]], dict[str, bool]]:
    """The rows of the sheet with their numbers, as text: results of formulas, or the formulas.

    None stands for a cell without anything; an empty text is the stored result of a formula. Of other sheets
    it is told whether something stands in them, but for what this project writes beside its cells.
    """
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    wrong = (
        InvalidFileException,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        SyntaxError,
        LookupError,
    )
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=results)
        with contextlib.closing(book):
            sheet = book["Cells"] if "Cells" in book.sheetnames else book.worksheets[0]
            sheet.reset_dimensions()  # what a file says about its size may be wrong
            lines = [
                [None if c.value is None and c.data_type == "n" else _code(c.value) for c in row]
                for row in sheet.iter_rows()
            ]
            beside = _SHEETS if sheet.title == "Cells" else ()
            others = {
                name: _holds(book[name])
                and not (name in beside and _only_repeats(book[name], sheet))
                for name in book.sheetnames
                if name != sheet.title
            }
    except (*wrong, ValueError, TypeError, AttributeError, NotImplementedError, RuntimeError):
        raise InputError(f"{path} is not a workbook, though its name says so.") from None
    width = max(map(len, lines), default=0)
    padded = [[*line, *[None] * (width - len(line))] for line in lines]
    return list(enumerate(padded, start=1)), others


def _only_repeats(sheet: Any, cells: Any) -> bool:
    """Whether every number of a sheet stands among the cells too, and as often, and nothing is computed.

    A sheet that is called like one of this project need not be one: it may show what its cells hide.
    """
    if not hasattr(sheet, "iter_rows"):
        return False
    cell_fields, theirs = (
        [value for row in one.iter_rows(values_only=True) for value in row]
        for one in (cells, sheet)
    )
    if not all(v is None or isinstance(v, int | float | str) for v in theirs):
        return False  # a date, or a formula for several cells
    numbers = [
        Counter(v for v in fields if isinstance(v, int | float)) for fields in (theirs, cell_fields)
    ]
    texts = (v.strip() for v in theirs if isinstance(v, str))
    known = set(cell_fields)
    return numbers[0] <= numbers[1] and all(
        t in known or not (t.startswith("=") or _NUMBER.fullmatch(t)) for t in texts
    )


def _holds(sheet: Any) -> bool:
    """Whether anything stands in a sheet; a chart always does."""
    if not hasattr(sheet, "iter_rows"):
        return True
    sheet.reset_dimensions()
    return any(value is not None for row in sheet.iter_rows(values_only=True) for value in row)


def _rows_of_jsonstat(text: str, source: str) -> Rows:
    """The cells of a JSON-stat dataset, one a row."""
    wrong = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
    try:
        dataset = json.loads(text, parse_float=Decimal)
        sizes = [int(size) for size in dataset["size"]]
        axes = {name: _categories(dataset["dimension"][name]["category"]) for name in dataset["id"]}
    except wrong:
        raise InputError(f"{source} is not a dataset of JSON-stat 2.0.") from None
    if [len(entries) for entries in axes.values()] != sizes:
        raise InputError(f"{source}: the sizes do not fit the categories of its dimensions.")
    cells = math.prod(sizes)
    columns: dict[str, list[str]] = {}
    try:
        if not isinstance(dataset["value"], list | dict):
            raise ValueError("values that are not a list or an object")
        numbers = {"value": _each_cell(dataset["value"], cells)}
        if dataset.get("status") is not None:
            numbers["status"] = _each_cell(dataset["status"], cells)
        extension = dataset.get("extension")
        interval = extension.get("interval") if isinstance(extension, dict) else None
        if interval:
            numbers |= {name: _each_cell(interval[name], cells) for name in ("low", "high")}
    except wrong:
        raise InputError(f"{source} is not a dataset of JSON-stat 2.0.") from None
    places = list(itertools.product(*(range(size) for size in sizes)))
    taken = set(axes)
    called = {name: free_name(name, taken) for name in numbers}
    for axis, (name, entries) in enumerate(axes.items()):
        columns[name] = [entries[indices[axis]][0] for indices in places]
        if any(code != label for code, label in entries):
            label = free_name(f"{name}_label", taken)
            columns[label] = [entries[indices[axis]][1] for indices in places]
    columns |= {
        called[name]: [_text(value) for value in entries] for name, entries in numbers.items()
    }
    where = [f"cell {i + 1}" for i in range(cells)]
    return Rows(source, columns, where, variables=frozenset(axes))


def _categories(category: Any) -> list[tuple[str, str]]:
    """The codes of a dimension of JSON-stat in their order, each with its label."""
    index = category.get("index") or list(category["label"])
    codes = sorted(index, key=lambda c: index[c]) if isinstance(index, dict) else list(index)
    if isinstance(index, dict) and [index[code] for code in codes] != list(range(len(codes))):
        raise ValueError("places of categories that are not 0, 1, 2 ...")
    labels = category.get("label", {})
    return [(str(code), str(labels.get(code, code))) for code in codes]


def _each_cell(given: Any, cells: int) -> list[Any]:
    """A value for every cell, from a list, an object by cell number, or one word for all."""
    if isinstance(given, dict):
        places = [str(i) for i in range(cells)]
        if not given.keys() <= set(places):
            raise ValueError("a cell that is not there")
        return [given.get(cell_number) for cell_number in places]
    if isinstance(given, list):
        if len(given) != cells:
            raise ValueError("a list of another length")
        return list(given)
    return [given] * cells


def _code(value: Any) -> str:
    """The text of a field, without the quote that keeps a spreadsheet from taking it for a formula."""
    text = _text(value)
    plain = text.removeprefix("'")
    return plain if inert(plain) == text else text


def _text(value: Any) -> str:
    if value is None or value != value:  # a number that is not one is an empty field
        return ""
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value).strip()
