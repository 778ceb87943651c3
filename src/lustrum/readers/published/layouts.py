"""Where the table of a published CSV file begins and ends, and which shape it has.

Titles stand above, notes below; a Eurostat file joins the codes of a row in one field; R leaves out the name
of its first column; a spreadsheet shows a merged name once; one variable may run across the columns.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError
from lustrum.readers.published.number_text import Style, printed
from lustrum.readers.rows import Rows

_DELIMITERS = (",", ";", "\t", "|")
_Record = tuple[int, list[str]]
ROW_NAMES = "row"


def decoded(content: bytes) -> tuple[str, str]:
    """The text of a file, and a sentence if it is not UTF-8."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16"), "read as UTF-16."
        except UnicodeDecodeError:
            raise InputError("the file begins as UTF-16 and is not; save it as UTF-8.") from None
    if b"\0" in content:
        raise InputError(
            "the file holds zero bytes, so its encoding is not clear; save it as UTF-8."
        )
    try:
        return content.decode("utf-8"), ""
    except UnicodeDecodeError:
        try:
            return content.decode("cp1252"), "read as Windows-1252, because it is not UTF-8."
        except UnicodeDecodeError:
            return content.decode("latin-1"), "read as Latin-1, because it is not UTF-8."


def published_rows(text: str, source: str, *, notes_read: bool = False) -> Rows:
    """The rows of the table in a published CSV file; lines above and below it are left out, and said."""
    plain = text.removeprefix("\ufeff")
    first = plain.partition("\n")[0]
    if "\\" in first and "\t" in first:
        return _eurostat(plain, source)
    parsed = [(_modal(records), delimiter, records) for delimiter in _DELIMITERS
              if (records := _records(plain, delimiter))]  # fmt: skip
    parsed = [p for p in parsed if p[0][0] > 1]
    if not parsed:
        raise InputError(
            f"{source}: no line has two fields; a table needs codes and values, separated by commas, "
            "semicolons, tabs or '|'."
        )
    (width, _), delimiter, records = max(parsed, key=lambda p: (p[0][1], p[0][0]))
    inside = [i for i, (_, fields) in enumerate(records) if len(fields) == width]
    start, stop = inside[0], inside[-1] + 1
    while width > 2 and start < stop - 1 and _filled(records[start]) < 2:
        start += 1  # a title that a spreadsheet filled up with blank fields
    gap = next((i for i in range(start, stop) if not _filled(records[i])), stop)
    if width > 2 and gap < stop and all(_filled(record) < 2 for record in records[gap:stop]):
        stop = gap
    notes: list[str] = []
    head = [name.strip() for name in records[start][1]]
    if start == 1 and len(records[0][1]) == width - 1 and _is_data(records[1][1]):
        start = 0
        head = [ROW_NAMES, *(name.strip() for name in records[start][1])]
        notes.append(f"the first line has no name for the first column; it is called {head[0]!r}.")
    odd = next(((n, f) for n, f in records[start + 1 : stop] if len(f) != width), None)
    if odd is not None:
        raise NotJudgedError(
            f"{source}, line {odd[0]}: there are {len(odd[1])} fields, but the line of names has {width}."
        )
    twice = next((name for name in head if head.count(name) > 1), None)
    if twice is not None:
        raise NotJudgedError(
            f"{source}: the column {twice!r} occurs twice, as with two lines of names; name each column once."
        )
    doubts = []
    if start > 0 or stop < len(records):
        where = [f"{stop_ - start_} {word}" for start_, stop_, word in
                 ((0, start, "above"), (stop, len(records), "below")) if stop_ > start_]  # fmt: skip
        notes.append(f"lines that are not part of the table: {' and '.join(where)}.")
        if not notes_read:
            doubts.append(
                "nobody said what the lines above or below the table state about hidden values; tell it with "
                "--hidden, --status or --rule, and say --notes-read."
            )
    body = [(n, [f.strip() for f in fields]) for n, fields in records[start + 1 : stop]]
    body = [(n, fields) for n, fields in body if any(fields)]
    columns = {
        name: [fields[i].removeprefix("'") for _, fields in body] for i, name in enumerate(head)
    }
    rows = Rows(source, columns, [f"line {n}" for n, _ in body])
    return replace(rows, notes=tuple(notes), doubts=tuple(doubts), delimiter=delimiter)


def _records(text: str, delimiter: str) -> list[_Record]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    records = []
    try:
        for fields in reader:
            if any(field.strip() for field in fields) or len(fields) > 1:
                records.append((reader.line_num, fields))
    except csv.Error:
        return []
    return records


def _is_data(fields: Sequence[str]) -> bool:
    """Whether a line holds values behind its first field, so that it cannot be one of names."""
    values = [field.strip() for field in fields[1:]]
    return all(len(v) <= 2 or printed(v, Style()) is not None for v in values)


def _filled(record: _Record) -> int:
    """How many fields of a line are not blank."""
    return sum(bool(field.strip()) for field in record[1])


def _modal(records: Sequence[_Record]) -> tuple[int, int]:
    """The number of fields that most lines have, and how many have it."""
    sizes = Counter(len(fields) for _, fields in records)
    if len(sizes) > 1:
        sizes.pop(1, None)
    return max(sizes.items(), key=lambda item: (item[1], item[0]))


def _eurostat(text: str, source: str) -> Rows:
    """Codes joined by commas in the first field, periods across, flags behind the values."""
    lines = [
        (n, line.split("\t")) for n, line in enumerate(text.splitlines(), start=1) if line.strip()
    ]
    names = [name.strip() for name in lines[0][1][0].split(",")]
    last, _, across = names[-1].partition("\\")
    names[-1] = last
    periods = [field.strip() for field in lines[0][1][1:]]
    columns: dict[str, list[str]] = {name: [] for name in (*names, across, "value", "OBS_FLAG")}
    places = []
    for number, fields in lines[1:]:
        codes = [code.strip() for code in fields[0].split(",")]
        if len(codes) != len(names) or len(fields) != len(periods) + 1:
            raise NotJudgedError(
                f"{source}, line {number}: the fields do not fit the line of names."
            )
        for period, field in zip(periods, fields[1:], strict=True):
            for name, code in zip(names, codes, strict=True):
                columns[name].append(code)
            value, _, flag = field.strip().partition(" ")
            columns[across].append(period)
            columns["value"].append(value)
            columns["OBS_FLAG"].append(flag.strip())
            places.append(f"line {number}, {period}")
    return replace(
        Rows(source, columns, places), notes=("read as a Eurostat file, with periods across.",)
    )


def melted(rows: Rows, across: str, stubs: Sequence[str], codes: Sequence[str]) -> Rows:
    """One row for each cell of a table whose columns are the codes of a variable."""
    columns: dict[str, list[str]] = {name: [] for name in (*stubs, across, "value")}
    places = []
    for row in range(len(rows)):
        for code in codes:
            for name in stubs:
                columns[name].append(rows.columns[name][row])
            columns[across].append(code)
            columns["value"].append(rows.columns[code][row])
            places.append(f"{rows.places[row]}, {code}")
    return replace(rows, columns=columns, places=places)


def filled_down(rows: Rows, names: Sequence[str]) -> Rows:
    """Blank codes as in the row above, where rows would stand twice otherwise: a merged name stands once."""
    keys = list(zip(*(rows.columns[name] for name in names), strict=True))
    if len(set(keys)) == len(keys) or len(names) < 2:
        return rows
    columns = dict(rows.columns)
    filled = []
    for name in names[:-1]:
        column = list(columns[name])
        if "" not in column or not column[0]:
            continue
        for row in range(1, len(column)):
            column[row] = column[row] or column[row - 1]
        columns[name] = column
        filled.append(name)
    if not filled:
        return rows
    listed = ", ".join(repr(name) for name in filled)
    note = f"blank codes of {listed} are read as in the row above."
    return replace(rows, columns=columns, notes=(*rows.notes, note))
