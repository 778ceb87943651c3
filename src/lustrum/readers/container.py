"""A published file, part by part: grids of fields that a layout gives roles, and parts that nobody reads as
cells.

Whatever can carry a number is either a field of a grid or named as :class:`Unread`, so that a file can only be
called safe if all of it was looked at.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from lustrum.formats.cell_text import free_name, inert
from lustrum.model import InputError
from lustrum.model.errors import NotJudgedError
from lustrum.readers.argus.tables import read_tab
from lustrum.readers.grids import (
    MOST_CELLS,
    Container,
    FieldGrid,
    OwnStructure,
    Unread,
    decoded,
    is_sdmx,
    sdmx_grid,
    text_of,
)
from lustrum.readers.px import px_grid
from lustrum.readers.workbook import clean_workbook, walk_workbook
from lustrum.runtime.durable import write_whole

_DELIMITERS = (",", ";", "\t", "|")
_READ = ("version", "class", "id", "size", "dimension", "value", "status", "role")


def read_container(path: Path) -> Container:
    """Read a file by its ending: XLSX, JSON-stat, Parquet, PX, tau-ARGUS, or else CSV, perhaps with gzip."""
    source, ending = str(path), path.suffix.lower()
    try:
        content = path.read_bytes()
        if ending == ".gz":
            content = gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path} is not compressed with gzip, though its name says so.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if ending in (".xlsx", ".xlsm"):
        grids, unread = walk_workbook(content, source)
        notes: tuple[str, ...] = ()
    elif ending == ".json":
        grid, unread = _jsonstat(_utf8(content, source), source)
        grids, notes = (grid,), ()
    elif ending in (".parquet", ".pq"):
        grid, unread = _parquet(content, source)
        grids, notes = (grid,), ()
    elif ending == ".tab" and path.with_suffix(".rda").exists():
        grids, unread, notes = (read_tab(path).grid,), [], ()
    elif ending == ".px":
        text, notes = decoded(content, source)
        grid, unread = px_grid(text, source)
        grids = (grid,)
    else:
        text, notes = decoded(content, source)
        grids, unread = ((sdmx_grid if is_sdmx(text) else csv_grid)(text, source),), []
    return Container(source, grids, hashlib.sha256(content).hexdigest(), tuple(unread), notes)


def _utf8(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{source} is not UTF-8; save it in that encoding.") from None


def csv_grid(text: str, source: str) -> FieldGrid:
    """All lines, split by the delimiter with which most lines have the same number of fields, more than one."""
    first = text.partition("\n")[0]
    if "\\" in first and "\t" in first:
        return _eurostat(text, source)
    parsed = [p for delimiter in _DELIMITERS if (p := _records(text, delimiter))]
    if not parsed:
        raise InputError(
            f"{source}: no line has two fields; a table needs codes and values, separated by commas, "
            "semicolons, tabs or '|'."
        )
    _, _, records = max(parsed, key=lambda p: p[:2])
    lines = tuple(tuple(_field(text) for text in fields) for _, fields in records)
    numbers = [number for number, _ in records]
    return FieldGrid("", lines, numbers, [f"line {number}" for number in numbers])


def _records(text: str, delimiter: str) -> tuple[int, int, list[tuple[int, list[str]]]] | None:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        records = [(reader.line_num, fields) for fields in reader]
    except csv.Error:
        return None
    records = [(n, fields) for n, fields in records if any(f.strip() for f in fields)]
    sizes = Counter(len(fields) for _, fields in records if len(fields) > 1)
    if not sizes:
        return None
    width, lines = max(sizes.items(), key=lambda item: (item[1], item[0]))
    return lines, width, records


def _eurostat(text: str, source: str) -> FieldGrid:
    """Codes joined by commas in the first field, and flags behind the values: each gets a column of its own."""
    rows = [(n, line.split("\t")) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = [name.strip() for name in rows[0][1][0].replace("\\", ",").split(",")]
    periods = [field.strip() for field in rows[0][1][1:]]
    lines = [(*names, "value", "flag")]
    numbers, places = [1], ["line 1"]
    for number, fields in rows[1:]:
        codes = [code.strip() for code in fields[0].split(",")]
        if len(codes) != len(names) - 1 or len(fields) != len(periods) + 1:
            raise InputError(f"{source}, line {number}: the fields do not fit the line of names.")
        for period, text_ in zip(periods, fields[1:], strict=True):
            value, _, flag = text_.strip().partition(" ")
            lines.append((*codes, period, value, flag.strip()))
            numbers.append(number)
            places.append(f"line {number}, {period}")
    return FieldGrid("", tuple(lines), numbers, places)


def _field(text: str) -> str:
    """A field without the quote that keeps a spreadsheet from taking it for a formula; blanks before
    it stay.
    """
    plain = text.strip().removeprefix("'")
    return plain if inert(plain) == text.strip() and text.strip() != plain else text.rstrip()


def _parquet(content: bytes, source: str) -> tuple[FieldGrid, list[Unread]]:
    import pyarrow

    try:
        return _parquet_parts(content)
    except (pyarrow.ArrowException, OSError, LookupError, ValueError, TypeError, OverflowError):
        raise InputError(
            f"{source} is not a Parquet file of plain columns, though its name says so."
        ) from None


def _parquet_parts(content: bytes) -> tuple[FieldGrid, list[Unread]]:
    import pyarrow
    from pyarrow import parquet

    file = parquet.ParquetFile(io.BytesIO(content))
    table = file.read()
    if file.metadata.num_columns != len(table.column_names):
        raise ValueError("columns inside columns")
    names = table.column_names
    columns = [[text_of(value) for value in table.column(i).to_pylist()] for i in range(len(names))]
    lines = (tuple(names), *zip(*columns, strict=True))
    unread = [
        Unread("metadata", f"key {key.decode('utf-8', 'replace')!r}")
        for key, value in (file.metadata.metadata or {}).items()
        if key != b"ARROW:schema" and not (key == b"pandas" and _plain_pandas(value, table))
    ]
    unread += [
        Unread("metadata", f"column {field.name!r}")
        for field in file.schema_arrow
        if set(field.metadata or {}) - {b"PARQUET:field_id"}
    ]
    words = [name for name in names if pyarrow.types.is_string(table.schema.field(name).type)
             or pyarrow.types.is_dictionary(table.schema.field(name).type)]  # fmt: skip
    coded = (
        parquet.ParquetFile(io.BytesIO(content), read_dictionary=words).read() if words else table
    )
    for name in words:
        for chunk in coded.column(name).chunks:
            if set(chunk.dictionary.to_pylist()) - set(chunk.to_pylist()):
                unread.append(Unread("text that no row uses", f"column {name!r}"))
    for group, column in itertools.product(range(file.num_row_groups), range(len(names))):
        part = file.metadata.row_group(group).column(column)
        seen = file.read_row_group(group, columns=[part.path_in_schema]).column(0)
        shown = [value for value in seen.to_pylist() if value is not None]
        stated = part.statistics
        if stated is not None and stated.has_min_max and shown:
            if (stated.min, stated.max) != (min(shown), max(shown)):
                unread.append(Unread("statistics", f"column {names[column]!r}"))
        elif stated is not None and stated.has_min_max:
            unread.append(Unread("statistics", f"column {names[column]!r}"))
    places = ["the names", *(f"row {i + 1}" for i in range(table.num_rows))]
    return FieldGrid("", lines, range(1, len(places) + 1), places), unread


def _plain_pandas(stated: bytes, table: Any) -> bool:
    """Whether what pandas writes of a frame says no more than its columns do."""
    said = json.loads(stated)
    index = said.get("index_columns", [])
    numbered = {"kind": "range", "name": None, "start": 0, "stop": table.num_rows, "step": 1}
    known = {
        "index_columns",
        "column_indexes",
        "columns",
        "creator",
        "pandas_version",
        "attributes",
    }
    named = [one.get("name") for one in said.get("columns", ())] + [
        i for i in index if i != numbered
    ]
    return (
        said.keys() <= known
        and not said.get("attributes")
        and set(named) <= {*table.column_names, None}
    )


def _jsonstat(text: str, source: str) -> tuple[FieldGrid, list[Unread]]:
    """The cells of a JSON-stat dataset, one a line, with the variables that it names itself."""
    wrong = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
    try:
        dataset = json.loads(text, parse_float=Decimal, object_pairs_hook=_once)
        sizes = [int(size) for size in dataset["size"]]
        axes = {name: _categories(dataset["dimension"][name]["category"]) for name in dataset["id"]}
        parts = {name: _children(dataset["dimension"][name]["category"]) for name in axes}
        unread = _plain_jsonstat(dataset)[1]
        if [len(entries) for entries in axes.values()] != sizes:
            raise ValueError("sizes that do not fit")
        cells = math.prod(sizes)
        if cells > MOST_CELLS:
            raise NotJudgedError(
                f"{source}: all combinations of codes are {cells:,} cells, more than {MOST_CELLS:,}; audit "
                "parts of it."
            )
        if not isinstance(dataset["value"], list | dict):
            raise ValueError("values that are not a list or an object")
        facts = {"value": _each_cell(dataset["value"], cells)}
        if dataset.get("status") is not None:
            facts["status"] = _each_cell(dataset["status"], cells)
    except NotJudgedError:
        raise
    except wrong:
        raise InputError(f"{source} is not a dataset of JSON-stat 2.0.") from None
    head: list[str] = []
    columns: list[list[str]] = []
    labels: dict[str, str] = {}
    places = list(itertools.product(*(range(size) for size in sizes)))
    for axis, (name, entries) in enumerate(axes.items()):
        head.append(name)
        columns.append([entries[at[axis]][0] for at in places])
        if any(code != label for code, label in entries):
            labels[name] = free_name(f"{name}_label", {*axes, *head})
            head.append(labels[name])
            columns.append([entries[at[axis]][1] for at in places])
    called = {fact: free_name(fact, set(head)) for fact in facts}
    for fact, entries_ in facts.items():
        head.append(called[fact])
        columns.append([text_of(value) for value in entries_])
    structure = OwnStructure(tuple(axes), (called["value"],), labels, called.get("status"), parts)
    lines = (tuple(head), *zip(*columns, strict=True))
    where = ["the dimensions", *(f"cell {i + 1}" for i in range(cells))]
    return FieldGrid("", lines, range(1, len(where) + 1), where, structure), unread


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a member that stands twice would show one of its values to some readers alone."""
    if len(dict(members)) < len(members):
        raise ValueError("a member twice")
    return dict(members)


def _plain_jsonstat(dataset: dict[str, Any]) -> tuple[dict[str, Any], list[Unread]]:
    """A dataset with the members that are read, or hold no number; and the others."""
    unread: list[Unread] = []

    def plain(
        member: Any, what: str, where: str, read: Sequence[str], *, words: bool = False
    ) -> dict[str, Any]:
        kept = {
            name: one
            for name, one in member.items()
            if name in read
            or (words and not any(c.isdigit() for c in json.dumps(one, default=str)))
        }
        unread.extend(Unread(what, f"{where}{name}") for name in member if name not in kept)
        return kept

    out = plain(dataset, "member of the dataset", "", _READ, words=True)
    out["dimension"] = plain(dataset["dimension"], "dimension", "", dataset["id"])
    for name, dimension in out["dimension"].items():
        kept = plain(dimension, "member of a dimension", f"{name}.", ("label", "category"))
        read = ("index", "label", "child")
        where = f"{name}.category."
        kept["category"] = plain(kept["category"], "member of a dimension", where, read, words=True)
        codes = {code for code, _ in _categories(kept["category"])}
        children = _children(kept["category"])
        if not codes >= {
            *kept["category"].get("label", {}),
            *children,
            *sum(children.values(), ()),
        }:
            unread.append(Unread("category that is not there", where.removesuffix(".")))
        out["dimension"][name] = kept
    return out, unread


def clean_file(source: Path, target: Path) -> list[Unread]:
    """Write a copy of what is read of a file and seen in it, and nothing else; gives what was left out."""
    form = {".xlsm": ".xlsx", ".pq": ".parquet"}.get(source.suffix.lower(), source.suffix.lower())
    if form not in (".xlsx", ".parquet", ".json") or target.suffix.lower() != form:
        raise InputError(
            "A workbook (.xlsx), a Parquet file or a JSON-stat dataset (.json) is cleaned into a file of its "
            "kind; take notes out of other files by hand."
        )
    try:
        content = source.read_bytes()
    except OSError as error:
        raise InputError(f"{source} cannot be read: {error.strerror or error}.") from None
    unread = list(read_container(source).unread)
    if form == ".xlsx":
        write_whole(target, clean_workbook(content, str(source)))
    elif form == ".json":
        dataset = json.loads(_utf8(content, str(source)), parse_float=Decimal)
        text = json.dumps(_plain_jsonstat(dataset)[0], default=float, ensure_ascii=False)
        write_whole(target, text.encode())
    else:
        from pyarrow import BufferOutputStream, Table, parquet

        table = parquet.read_table(io.BytesIO(content))
        rows = Table.from_pylist(table.to_pylist(), table.schema.remove_metadata())
        written = BufferOutputStream()
        parquet.write_table(rows, written, store_schema=False)
        write_whole(target, written.getvalue().to_pybytes())
    return unread


def _categories(category: Any) -> list[tuple[str, str]]:
    """The codes of a dimension of JSON-stat in their order, each with its label."""
    index = category.get("index") or list(category["label"])
    codes = sorted(index, key=lambda c: index[c]) if isinstance(index, dict) else list(index)
    if isinstance(index, dict) and [index[code] for code in codes] != list(range(len(codes))):
        raise ValueError("places of categories that are not 0, 1, 2 ...")
    labels = category.get("label", {})
    return [(str(code), str(labels.get(code, code))) for code in codes]


def _children(category: Any) -> dict[str, tuple[str, ...]]:
    """The codes that a dimension of JSON-stat puts under a code."""
    return {str(code): tuple(map(str, parts)) for code, parts in category.get("child", {}).items()}


def _each_cell(given: Any, cells: int) -> list[Any]:
    """A value for every cell, from a list, an object by cell number, or one word for all."""
    if isinstance(given, dict):
        numbers = [str(i) for i in range(cells)]
        if not given.keys() <= set(numbers):
            raise ValueError("a cell that is not there")
        return [given.get(number) for number in numbers]
    if isinstance(given, list):
        if len(given) != cells:
            raise ValueError("a list of another length")
        return list(given)
    return [given] * cells
