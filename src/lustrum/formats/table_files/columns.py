"""Which column of a file is what: dimensions, values, status, contributors, protection levels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lustrum.formats.table_files.rows import Rows
from lustrum.formats.table_files.status_letters import StatusList
from lustrum.model import InputError
from lustrum.model.errors import choices

__all__ = ["ColumnNames", "Columns", "find_columns"]

_STATUS = ("CONF_STATUS", "conf_status", "OBS_STATUS", "obs_status", "status")
_COUNT = ("n", "contributors")
_LOWER, _UPPER, _PRIMARY = ("lower", "lpl"), ("upper", "upl"), ("primary",)
_INTERVAL = ("low", "high")
_LARGEST, _HOLDING = re.compile(r"x[1-9]\d*"), re.compile(r"h[1-9]\d*")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")


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


@dataclass(frozen=True)
class Columns:
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


def find_columns(rows: Rows, named: ColumnNames = ColumnNames()) -> Columns:  # noqa: B008 - frozen
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
        or _first(head, (f"{value}_status", *(_STATUS if len(named.values) == 1 else ())))
        for value in named.values
    }
    count = named.count or _first(head, _COUNT)
    largest = named.largest or _numbered(head, _LARGEST)
    holdings = named.holdings or _numbered(head, _HOLDING)
    if holdings and len(holdings) != len(largest):
        raise InputError(
            f"{rows.source}: there are {len(holdings)} columns of holdings but {len(largest)} of largest "
            "contributions; each contribution needs the holding that made it."
        )
    lower, upper, primary = (_first(head, names) for names in (_LOWER, _UPPER, _PRIMARY))
    interval = _INTERVAL if set(_INTERVAL) <= set(head) else None
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
    labels = {name: f"{name}_label" for name in dimensions if f"{name}_label" in head}
    ignored = tuple(name for name in ignored if name not in labels.values())
    if not dimensions:
        raise InputError(f"{rows.source}: there is no column of codes; a table needs a variable.")
    return Columns(
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


def _first(head: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in head), None)


def _numbered(head: Sequence[str], pattern: re.Pattern[str]) -> tuple[str, ...]:
    found = [name for name in head if pattern.fullmatch(name)]
    return tuple(sorted(found, key=lambda name: int(name[1:])))


def _dimensions(rows: Rows, left: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the columns that have no other meaning, those that say which cell a row is.

    A label is none, and neither is a column of numbers that the other columns determine: that is
    a figure about the cell, such as a mean.
    """
    kept = [
        n for n in left if n.removesuffix("_label") == n or n.removesuffix("_label") not in left
    ]
    for name in reversed(list(kept)):
        others = [n for n in kept if n != name]
        if not others or not all(not v or _NUMBER.fullmatch(v) for v in rows.columns[name]):
            continue
        keys = set(zip(*(rows.columns[n] for n in others), strict=True))
        if len(rows) > 1 and len(keys) == len(rows):
            kept.remove(name)
    return tuple(kept), tuple(name for name in left if name not in kept)
