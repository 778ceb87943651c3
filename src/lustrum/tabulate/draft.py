"""A first draft of a dataset's description, from the columns of its data, for a person to complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from lustrum.model import IngestError
from lustrum.tabulate.ingest import FileSource

MOST_CODES = 1000
MOST_NUMBERS = 60
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_IDENTITY = re.compile(r"(^|_)(id|ident|identifier|key|uuid|nr|no|number)$", re.IGNORECASE)
_WEIGHT = re.compile(r"(^|_)(weight|weights|wgt|wt)($|_)", re.IGNORECASE)
_PLAIN = re.compile(r"-?\d+(\.\d+)?\Z")


@dataclass
class _DraftColumn:
    """What a draft needs to know about one column."""

    name: str
    rows: int = 0
    empty: int = 0
    codes: set[str] = field(default_factory=set)
    many: bool = False  # more codes than a variable can have: they are no longer collected
    numeric: bool = True
    decimals: int = 0
    unique: bool = False

    def add(self, values: pa.ChunkedArray) -> None:
        try:
            text = pc.cast(values, pa.string())
        except pa.ArrowException:  # lists and the like
            self.rows, self.many, self.numeric = self.rows + len(values), True, False
            return
        self.rows += len(text)
        text = text.drop_null()
        self.empty += len(values) - len(text)
        found = [str(code) for code in pc.unique(text).to_pylist()]
        for code in found:
            if self.numeric and not _PLAIN.match(code):
                self.numeric = False
            self.decimals = max(self.decimals, _decimals(code) if self.numeric else 0)
        if not self.many:
            self.codes.update(found)
            self.many = len(self.codes) > MOST_CODES

    @property
    def is_number(self) -> bool:
        """Numbers of many kinds are a measure; a few whole numbers are codes."""
        return self.numeric and (self.many or self.decimals > 0 or len(self.codes) > MOST_NUMBERS)


def draft_description(source: FileSource, name: str | None = None) -> str:
    """The text of a description of a file, in which a person completes what the data cannot tell.

    A draft can be read as it is, except that measures without a unit have no tables of sums. The dataset
    is named after the file unless it is given a name.
    """
    name = name or _dataset_name(source.path.name)
    columns = source.columns()
    usable = [column for column in columns if _COLUMN.match(column)]
    if not usable:
        raise IngestError(
            f"{source.name} has no column that can be described; name columns by letters, digits and _."
        )
    found = [_DraftColumn(column) for column in usable]
    distinct = {column: _Distinct() for column in usable if _IDENTITY.search(column)}
    distinct.setdefault(usable[0], _Distinct())
    for table, _ in source.batches(usable):
        for column in found:
            column.add(table[column.name])
            if column.name in distinct:
                distinct[column.name].add(table[column.name])
    if not found[0].rows:
        raise IngestError(f"{source.name} has no rows; it needs at least one.")
    for column in found:
        if column.name in distinct and column.empty == 0 and column.decimals == 0:
            column.unique = distinct[column.name].all_differ
    return "\n".join(_lines(found, name, [c for c in columns if c not in usable])) + "\n"


class _Distinct:
    """Whether the values of a column differ, as far as its first million rows tell; ingest checks them all."""

    def __init__(self) -> None:
        self.seen: set[object] = set()
        self.all_differ = True

    def add(self, values: pa.ChunkedArray) -> None:
        if self.all_differ and len(self.seen) < 1_000_000:
            before = len(self.seen)
            self.seen.update(values.to_pylist())
            self.all_differ = len(self.seen) == before + len(values)


def _lines(columns: list[_DraftColumn], name: str, unusable: list[str]) -> Iterator[str]:
    identity = next((c for c in columns if c.unique and _IDENTITY.search(c.name)), None)
    identity = identity or next((c for c in columns if c.unique and c.rows > MOST_NUMBERS), None)
    yield "# A draft, made from the columns of the data. Check every line, and complete what only you can know."
    yield "# Labels and codes become public. Every key: docs/reference/dataset-description.md"
    yield "[dataset]"
    yield f"name = {_text(name)}"
    yield f"title = {_text(_label(name))}"
    yield 'unit = "person"      # what a record is'
    yield 'units = "people"'
    if identity is not None:
        yield f"record_id = {_text(identity.name)}"
    left: list[str] = [f"{column!r} (its name)" for column in unusable]
    for column in (c for c in columns if c is not identity):
        if column.empty == column.rows:
            left.append(f"{column.name!r} (empty)")
        elif column.numeric and _WEIGHT.search(column.name):
            yield from ("", "[[weights]]", *_named(column), f"decimals = {min(column.decimals, 9)}")
        elif column.is_number:
            yield from ("", "[[measures]]", *_named(column))
            yield '# unit = "EUR"      # needed for tables of sums'
            yield f"decimals = {min(column.decimals, 9)}"
            if column.empty:
                yield '# missing = "0"     # some values are empty; say what that means, or correct them'
        elif column.many:
            left.append(f"{column.name!r} (more than {MOST_CODES:,} values)")
        else:
            yield from _variable(column)
    if left:
        yield ""
        yield f"# Left out: {', '.join(left)}."


def _variable(column: _DraftColumn) -> Iterator[str]:
    yield from ("", "[[variables]]", *_named(column))
    yield "# These codes occur in the data. Add those that could occur, so that the list itself tells nothing."
    yield "codes = ["
    for code in sorted(column.codes, key=_order):
        yield f"  [{_text(code)}, {_text(code or '(empty)')}],"
    if column.empty:
        free = next(c for c in ("-", "missing", "not stated", "?!") if c not in column.codes)
        yield f'  [{_text(free)}, "Not stated"],'
        yield "]"
        yield f"missing = {_text(free)}       # some values are empty"
    else:
        yield "]"


def _named(column: _DraftColumn) -> tuple[str, str]:
    return f"name = {_text(column.name)}", f"label = {_text(_label(column.name))}"


def _decimals(number: str) -> int:
    return len(number.partition(".")[2].rstrip("0"))


def _dataset_name(file: str) -> str:
    plain = re.sub(r"[^a-z0-9_-]+", "-", file.partition(".")[0].lower()).strip("-_")
    return plain or "dataset"


def _label(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").strip().capitalize() or name


def _order(code: str) -> tuple[int, Decimal, str]:
    try:
        return 0, Decimal(code), code
    except InvalidOperation:
        return 1, Decimal(0), code


def _text(value: str) -> str:
    """A string as TOML writes it; JSON writes the same, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
