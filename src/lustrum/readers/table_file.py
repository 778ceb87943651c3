"""A table read from a file: the one reader of published and of confidential tables.

A row is a cell. An empty value, a symbol such as ``x`` or ``..`` and a row that is not there all mean the same:
the value is not known. None of them is ever 0. A number that stands in the file is known, whatever its status.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.readers.columns import ColumnNames, FileColumns, find_columns
from lustrum.readers.number_text import decimals_of, plain_number
from lustrum.readers.rows import Rows
from lustrum.readers.status_letters import judged

__all__ = ["HIDDEN_SYMBOLS", "TableFile", "labels_of", "table_of_rows", "unexplained"]

Key = tuple[str, ...]
Number = Decimal | None

HIDDEN_SYMBOLS = frozenset(
    [
        "x",
        "c",
        "s",
        "..",
        "...",
        ".",
        ":",
        "*",
        "**",
        "(x)",
        "(c)",
        "#",
        "na",
        "n.a.",
        "nan",
        "null",
    ]
)
"""What stands for a value that is not published, in small letters."""

_DIGIT = re.compile(r"\d")
_EXACT = 2**53
_EXACTLY = Context(prec=1000, rounding=ROUND_HALF_EVEN)
_PLAIN_NUMBER = re.compile(r"[+-]?[\d.,%' ]+")


@dataclass(frozen=True, eq=False, repr=False)
class TableFile:
    """The cells of a file, row by row. Nothing of its values is in the ``repr``.

    ``values`` has a list for each response, with None where the value is not known. ``codes`` are the codes of
    each dimension in the order in which they are first met. ``standing`` are the rows whose number still
    stands in the file though its status says that it is hidden. ``doubts`` say what in the file could not be
    understood, so that nobody may call it safe.
    """

    source: str
    dimensions: tuple[str, ...]
    cells: tuple[Key, ...]
    codes: tuple[tuple[str, ...], ...]
    labels: Mapping[tuple[str, str], str]
    values: Mapping[str, tuple[Number, ...]]
    status: Mapping[str, tuple[str, ...]]
    count: tuple[Number, ...] | None = None
    largest: tuple[tuple[Number, ...], ...] = ()
    holdings: tuple[tuple[str, ...], ...] = ()
    lower: tuple[Number, ...] | None = None
    upper: tuple[Number, ...] | None = None
    primary: tuple[bool, ...] | None = None
    interval: tuple[tuple[Number, ...], tuple[Number, ...]] | None = None
    ignored: tuple[str, ...] = ()
    standing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    places: Sequence[str] = field(default=())

    def __repr__(self) -> str:
        return f"TableFile({self.source!r}, {' x '.join(self.dimensions)}, {len(self.cells)} cells)"

    @property
    def responses(self) -> tuple[str, ...]:
        """The names of the columns of values."""
        return tuple(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many codes each dimension has."""
        return tuple(len(codes) for codes in self.codes)

    @cached_property
    def decimals(self) -> int:
        """The most decimals that a value, contribution or interval is written with."""
        columns = [*self.values.values(), *self.largest, *(self.interval or ())]
        return max((decimals_of(v) for column in columns for v in column), default=0)

    def rounded(self, decimals: int) -> TableFile:
        """The file with values and contributions rounded to so many decimals, half to even."""
        unit = Decimal(1).scaleb(-decimals)

        def round_all(column: Sequence[Number]) -> tuple[Number, ...]:
            return tuple(
                v if v is None or decimals_of(v) <= decimals else v.quantize(unit, context=_EXACTLY)
                for v in column
            )

        return replace(
            self,
            values={name: round_all(column) for name, column in self.values.items()},
            largest=tuple(map(round_all, self.largest)),
        )

    @cached_property
    def positions(self) -> tuple[npt.NDArray[np.intp], ...]:
        """For each dimension, the position of the code of every row."""
        out = []
        for i, codes in enumerate(self.codes):
            index_of = {code: k for k, code in enumerate(codes)}
            out.append(np.array([index_of[key[i]] for key in self.cells], dtype=np.intp))
        return tuple(out)

    @cached_property
    def known_values(self) -> tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]], ...]:
        """The values of every response in the shape of the table, and where they are known."""
        return tuple(self.dense(column, self.decimals) for column in self.values.values())

    def dense(
        self, column: Sequence[Number], decimals: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """A column in the shape of the table, in units of the last decimal, and where it is known."""
        values = np.zeros(self.shape, dtype=np.int64)
        known = np.zeros(self.shape, dtype=np.bool_)
        scaled = [0 if v is None else int(v.scaleb(decimals)) for v in column]
        if any(abs(v) > _EXACT for v in scaled):
            raise InputError(
                f"{self.source}: the numbers have more digits than can be computed with exactly; say "
                "--decimals N to round them."
            )
        where = self.positions
        values[where] = scaled
        known[where] = [v is not None for v in column]
        return values, known


def table_of_rows(rows: Rows, named: ColumnNames, hidden: Iterable[str]) -> TableFile:
    named = named.in_file(rows)
    columns = find_columns(rows, named)
    if not len(rows):
        raise InputError(f"{rows.source}: there is no cell; a table needs at least one.")
    cells = tuple(zip(*(rows.columns[name] for name in columns.dimensions), strict=True))
    _check_once(rows, cells)
    symbols = HIDDEN_SYMBOLS | {symbol.lower() for symbol in hidden}
    status = {
        response: tuple(rows.columns[column]) if column else ("",) * len(rows)
        for response, column in columns.status.items()
    }
    values = {response: _numbers(rows, response, symbols) for response in columns.values}
    standing, doubts = {}, list(unexplained(rows, columns, named))
    for response, column in columns.status.items():
        there = [number is not None for number in values[response]]
        standing[response], doubt = judged(column, status[response], there, named.status_list)
        doubts += [doubt] if doubt else []
    return TableFile(
        source=rows.source,
        dimensions=columns.dimensions,
        cells=cells,
        codes=tuple(tuple(dict.fromkeys(key[i] for key in cells)) for i in range(len(cells[0]))),
        labels=labels_of(rows, columns),
        values=values,
        status=status,
        count=None if columns.count is None else _numbers(rows, columns.count, symbols),
        largest=tuple(_numbers(rows, name, symbols) for name in columns.largest),
        holdings=tuple(tuple(rows.columns[name]) for name in columns.holdings),
        lower=None if columns.lower is None else _levels(rows, columns.lower),
        upper=None if columns.upper is None else _levels(rows, columns.upper),
        primary=None if columns.primary is None else _marks(rows, columns.primary),
        interval=None
        if columns.interval is None
        else tuple(_numbers(rows, name, symbols) for name in columns.interval),  # type: ignore[arg-type]
        ignored=columns.ignored,
        standing=standing,
        doubts=tuple(f"{rows.source}: {doubt}" for doubt in doubts),
        places=rows.places,
    )


def _check_once(rows: Rows, cells: Sequence[Key]) -> None:
    seen: dict[Key, int] = {}
    for row, key in enumerate(cells):
        if key in seen:
            raise InputError(
                f"{rows.where(row)}: the cell stands in {rows.places[seen[key]]} already."
            )
        seen[key] = row


def unexplained(
    rows: Rows,
    columns: FileColumns,
    named: ColumnNames,
) -> list[str]:
    """Columns of numbers that nobody explained: a mean or a share beside a hidden value can reveal it."""
    names = [*columns.ignored, *columns.largest]
    names += [name for name in (columns.lower, columns.upper) if name is not None]
    settled = {*named.beside}
    unsettled = [
        name
        for name in names
        if name not in settled
        and any(_DIGIT.search(text) for text in rows.columns[name])
        and not _tells_nothing(rows, name, columns)
    ]
    if not unsettled:
        return []
    listed = ", ".join(repr(name) for name in unsettled)
    which = "column" if len(unsettled) == 1 else "columns"
    return [f"nobody said what the numbers in the {which} {listed} are; name values with --value."]


def _tells_nothing(rows: Rows, name: str, columns: FileColumns) -> bool:
    """Whether a column cannot tell hidden cells apart: one word throughout, row numbers, names of codes."""
    texts = rows.columns[name]
    word = texts[0] if len(set(texts)) == 1 else ""
    if word and not re.search(r"\s", word) and not re.fullmatch(r"-?\d*[.,]\d+", word):
        return True
    if [*texts] == [str(i) for i in range(len(texts))] or (
        word and re.fullmatch(r"[\d/:.T -]+", word) and not _PLAIN_NUMBER.fullmatch(word)
    ):
        return True
    if all(not text or _PLAIN_NUMBER.fullmatch(text) for text in texts):
        return False
    # A name of a code of one variable, of several: the same beside every cell with that code.
    for dimension in columns.dimensions:
        codes = rows.columns[dimension]
        pairs = set(zip(codes, texts, strict=True))
        if 1 < len(pairs) == len(set(codes)) == len(set(texts)) < len(rows):
            return True
    return all(text in {*rows.columns[d], ""} for d in columns.dimensions[:1] for text in texts)


def _numbers(rows: Rows, name: str, symbols: frozenset[str]) -> tuple[Number, ...]:
    return tuple(
        None if not text or text.lower() in symbols else _number(text, name, rows, row)
        for row, text in enumerate(rows.columns[name])
    )


def _number(text: str, name: str, rows: Rows, row: int) -> Decimal:
    value = plain_number(text)
    if value is None:
        raise InputError(
            f"{rows.where(row)}: the value of {name!r} is not a number below 10**15; leave it empty if hidden, "
            "or name the symbol with --hidden."
        )
    return value


def _levels(rows: Rows, name: str) -> tuple[Number, ...]:
    levels: list[Number] = []
    for row, text in enumerate(rows.columns[name]):
        level = plain_number(text)
        if text and (level is None or level < 0):
            raise InputError(
                f"{rows.where(row)}: the level {name!r} is not a number of 0 or more and below 10**15."
            )
        levels.append(level)
    return tuple(levels)


def _marks(rows: Rows, name: str) -> tuple[bool, ...]:
    truth_of = {
        "": False,
        "0": False,
        "false": False,
        "no": False,
        "1": True,
        "true": True,
        "yes": True,
    }
    marks = []
    for row, text in enumerate(rows.columns[name]):
        if text.lower() not in truth_of:
            raise InputError(f"{rows.where(row)}: {name!r} must be 0 or 1.")
        marks.append(truth_of[text.lower()])
    return tuple(marks)


def labels_of(rows: Rows, columns: FileColumns) -> dict[tuple[str, str], str]:
    return {
        (name, code): text
        for name, label in columns.labels.items()
        for code, text in zip(rows.columns[name], rows.columns[label], strict=True)
    }
