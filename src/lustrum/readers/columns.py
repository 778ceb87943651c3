"""Which column of a file is what: dimensions, values, status, contributors, protection levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.readers.rows import Rows
from lustrum.readers.status_letters import TRUTH_COLUMNS, StatusList

_STATUS = ("CONF_STATUS", "conf_status", "OBS_STATUS", "obs_status", "status")
_COUNT = ("n", "contributors")
_LOWER, _UPPER, _PRIMARY = ("lower", "lpl"), ("upper", "upl"), ("primary",)
_INTERVAL = ("low", "high")
_LARGEST, _HOLDING = re.compile(r"x[1-9]\d*"), re.compile(r"h[1-9]\d*")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
_YEAR = re.compile(r"(19|20)\d\d")
_FLAGS = (
    "status",
    "conf_status",
    "obs_status",
    "obs_flag",
    "flag",
    "flags",
    "disclosure_code",
    "data marking",
    *sorted(TRUTH_COLUMNS),
)
_VALUES = ("value", "obs_value", "obs_value_niveau", "count", "freq", "v4_0", "v4_1", "v4_2")


@dataclass(frozen=True)
class ColumnNames:
    """The columns that somebody names; those left out are found by their usual names.

    Usual names are ``value``; ``status``; ``n`` for the number of contributors; ``x1``, ``x2`` ... for the
    largest contributions and ``h1``, ``h2`` ... for the holdings that made them; ``lower`` and ``upper`` for
    protection levels; ``primary`` for cells that are sensitive; ``<dimension>_label`` for labels.
    ``status_list`` says which code list the letters are from where the name of their column does not, and
    ``beside`` are columns that tell nothing about hidden cells.
    """

    values: tuple[str, ...] = ("value",)
    by: tuple[str, ...] | None = None
    status: str | None = None
    status_list: StatusList | None = None
    count: str | None = None
    largest: tuple[str, ...] | None = None
    holdings: tuple[str, ...] | None = None
    beside: tuple[str, ...] = ()

    def in_file(self, rows: Rows) -> ColumnNames:
        """The same, where the values of a file have another name because a variable is called ``value``."""
        return replace(self, values=(rows.fact("value"),)) if self.values == ("value",) else self


@dataclass(frozen=True)
class FileColumns:
    """The columns of one file by what they hold; ``ignored`` are those that hold nothing of use."""

    dimensions: tuple[str, ...]
    values: tuple[str, ...]
    status: dict[str, str | None]
    count: str | None
    largest: tuple[str, ...]
    holdings: tuple[str, ...]
    lower: str | None
    upper: str | None
    primary: str | None
    interval: tuple[str, str] | None = None
    ignored: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)


def find_columns(
    rows: Rows,
    named: ColumnNames = ColumnNames(),  # noqa: B008 - frozen
) -> FileColumns:
    """Sort the columns of a file; every name that is missing is one clear sentence."""
    head = list(rows.columns)
    many = (named.values, named.by or (), named.largest or (), named.holdings or (), named.beside)
    for name in (name for names in many for name in names):
        _require(rows, name)
    for single in (named.status, named.count):
        if single is not None:
            _require(rows, single)
    status = {
        value: named.status
        or _first(rows, (f"{value}_status", *(_STATUS if len(named.values) == 1 else ())))
        for value in named.values
    }
    count = named.count or _first(rows, _COUNT)
    largest = named.largest or _numbered(rows, _LARGEST)
    holdings = named.holdings or _numbered(rows, _HOLDING)
    if holdings and len(holdings) != len(largest):
        raise InputError(
            f"{rows.source}: there are {len(holdings)} columns of holdings but {len(largest)} of largest "
            "contributions; each contribution needs the holding that made it."
        )
    lower, upper, primary = (_first(rows, names) for names in (_LOWER, _UPPER, _PRIMARY))
    low, high = map(rows.fact, _INTERVAL)
    interval = (low, high) if low in head and high in head else None
    roles = {*named.values, *status.values(), count, *largest, *holdings, lower, upper, primary}
    roles |= set(interval or ())
    if named.by is None:
        left = [name for name in head if name not in roles and name not in named.beside]
        dimensions, ignored = _dimensions(rows, left)
    else:
        dimensions = named.by
        ignored = tuple(n for n in head if n not in roles and n not in (*dimensions, *named.beside))
    clash = next((name for name in dimensions if name in roles), None)
    if clash is not None:
        raise InputError(f"{rows.source}: the column {clash!r} cannot be a dimension and a number.")
    labels = {name: rows.fact(f"{name}_label") for name in dimensions}
    labels = {name: label for name, label in labels.items() if label in head}
    ignored = tuple(name for name in ignored if name not in labels.values())
    if not dimensions:
        raise InputError(f"{rows.source}: there is no column of codes; a table needs a variable.")
    return FileColumns(
        dimensions,
        named.values,
        status,
        count,
        largest,
        holdings,
        lower,
        upper,
        primary,
        interval,
        ignored,
        labels,
    )


def _require(rows: Rows, name: str) -> None:
    if name not in rows.columns:
        raise InputError(
            f"{rows.source}: there is no column {name!r} in the first line; "
            f"{choices(name, rows.columns)}."
        )


def _first(rows: Rows, names: Sequence[str]) -> str | None:
    return next((name for name in map(rows.fact, names) if name in rows.columns), None)


def _numbered(rows: Rows, pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Columns such as x1, x2 in the order of their numbers; in a confidential file none is left out."""
    head = [name for name in rows.columns if rows.fact(name) == name]
    numbered = {int(name[1:]): name for name in head if pattern.fullmatch(name)}
    missing = next((n for n in range(1, max(numbered, default=0)) if n not in numbered), None)
    if missing is not None:
        last = numbered[max(numbered)]
        raise InputError(
            f"{rows.source}: there is a column {last!r} but no column {last[0]}{missing}; the largest "
            "contributions are numbered from 1 without a gap."
        )
    return tuple(numbered[n] for n in sorted(numbered))


def _dimensions(rows: Rows, left: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the columns that have no other meaning, those that say which cell a row is.

    A label is none, nor is what an own group holds. Neither is a column of numbers that the other columns
    determine: that is a figure about the cell, such as a mean.
    """
    beside = {rows.fact(f"{n}{ending}") for n in left for ending in ("_label", "_members")}
    dimensions = [n for n in left if n not in beside]
    for name in reversed(list(dimensions)):
        others = [n for n in dimensions if n != name]
        if not others or not all(not v or _NUMBER.fullmatch(v) for v in rows.columns[name]):
            continue
        keys = set(zip(*(rows.columns[n] for n in others), strict=True))
        if len(rows) > 1 and len(keys) == len(rows):
            dimensions.remove(name)
    return tuple(dimensions), tuple(name for name in left if name not in dimensions)
