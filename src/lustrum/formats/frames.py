"""Tables and releases as frames of pandas, polars and Arrow, and as HTML for a notebook.

A number that is not shown is missing, never a number that stands for it. Sums and means are floating-point
numbers. Libraries of frames are imported when they are first asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lustrum.formats.cell_text import free_name
from lustrum.model import CellStatus, InputError, Release, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.release import STUDY, SeededRelease, check_release
from lustrum.model.table import TableAxis, check_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_OPEN = 2**62  # an end that nothing bounds
_MOST_ROWS, _MOST_COLUMNS = 60, 20

_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0"
_CAPTION = "text-align:left;font-weight:600"
_NAME = "text-align:left;padding:.2em .8em;font-weight:600"
_NUMBER = "text-align:right;padding:.2em .8em"
_TITLE = ";border-bottom:1px solid #8886;font-weight:600"
_NOTE = "opacity:.75;font-size:.9em"


@dataclass(frozen=True)
class Column:
    """A column of texts, or of numbers of which some are missing."""

    values: npt.NDArray[Any] | Sequence[str | None]
    present: Mask | None = None


Columns = Mapping[str, Column]


def to_pandas(
    item: Table | Release, *, labels: bool = True, wide: bool = False
) -> pandas.DataFrame:
    """A pandas frame; hidden values are ``pandas.NA``.

    >>> release = Release(
    ...     (TableAxis.plain("area", ["n", "s"]),),
    ...     np.array([-4, 7]), np.array(["N", "F"]), {"method": "suppression"}
    ... )
    >>> to_pandas(release, labels=False).value.isna().tolist()
    [True, False]
    """
    import pandas as pd

    _check_words(labels, wide)
    if wide:
        head, columns = _wide(item, labels)
        names = [axis.name for axis in item.axes]
        keys = [*zip(*(column.values for column in head.values()), strict=True)]
        rows: Any = (
            pd.MultiIndex.from_tuples(keys, names=list(head))
            if len(head) > 1
            else pd.Index([key[0] for key in keys], name=next(iter(head)))
            if head
            else pd.RangeIndex(1)
        )
        frame = pd.DataFrame({n: _of_pandas(pd, c) for n, c in columns.items()})
        frame.index = rows
        frame.columns.name = names[-1] if len(names) > 1 else None
    else:
        frame = pd.DataFrame({n: _of_pandas(pd, c) for n, c in _long(item, labels).items()})
    if isinstance(item, SeededRelease):
        frame.attrs["lustrum"] = STUDY
    return frame


def to_arrow(item: Table | Release, *, labels: bool = True, wide: bool = False) -> pyarrow.Table:
    """An Arrow table; hidden values are null."""
    import pyarrow as pa

    _check_words(labels, wide)

    def column(frame_column: Column) -> Any:
        if frame_column.present is None:
            return pa.array(list(frame_column.values), pa.string())
        return pa.array(np.asarray(frame_column.values), mask=~frame_column.present)

    made = pa.table({name: column(one) for name, one in _columns(item, labels, wide).items()})
    return made.replace_schema_metadata(
        {"lustrum": STUDY} if isinstance(item, SeededRelease) else None
    )


def to_polars(
    item: Table | Release, *, labels: bool = True, wide: bool = False
) -> polars.DataFrame:
    """A polars frame; hidden values are null."""
    import polars as pl

    _check_words(labels, wide)

    def column(name: str, frame_column: Column) -> Any:
        if frame_column.present is None:
            return pl.Series(name, list(frame_column.values), dtype=pl.String)
        kind = pl.Int64 if np.asarray(frame_column.values).dtype.kind == "i" else pl.Float64
        there = zip(
            np.asarray(frame_column.values).tolist(), frame_column.present.tolist(), strict=True
        )
        return pl.Series(name, [value if known else None for value, known in there], dtype=kind)

    return pl.DataFrame([column(n, c) for n, c in _columns(item, labels, wide).items()])


def release_html(release: Release) -> str:
    """The numbers of a release as HTML, with the notes that go with them."""
    check_release(release, "A page")
    head, columns = _wide(release, labels=True)
    shown = [name for _, name in zip(range(_MOST_COLUMNS), columns, strict=False)]
    places = {name: index for index, name in enumerate(columns)}
    length = _rows(release.axes)
    lines = []
    for row in range(min(length, _MOST_ROWS)):
        row_cells = [
            f'<th style="{_NAME}">{escape(str(c.values[row]))}</th>' for c in head.values()
        ]
        for name in shown:
            text = _cell_html(release, columns[name], row, places[name])
            row_cells.append(f'<td style="{_NUMBER}">{text}</td>')
        lines.append(f"<tr>{''.join(row_cells)}</tr>")
    titles = "".join(
        f'<th style="{style}{_TITLE}">{escape(name)}</th>'
        for names, style in ((head, _NAME), (shown, _NUMBER))
        for name in names
    )
    left = [
        f"{length - _MOST_ROWS:,} more rows" if length > _MOST_ROWS else "",
        f"{len(columns) - len(shown):,} more columns" if len(columns) > len(shown) else "",
    ]
    notes = [str(note) for note in release.notes]
    if isinstance(release, SeededRelease):
        notes.insert(0, STUDY)
    if not release.shown.all():
        notes.insert(0, "× not shown")
    if any(left):
        notes.insert(0, f"and {' and '.join(text for text in left if text)}; to_pandas() has all")
    told = "".join(f'<div style="{_NOTE}">{escape(n)}</div>' for n in notes)
    name = " x ".join(axis.label or axis.name for axis in release.axes) or "everybody"
    caption = escape(f"{release.label + ': ' if release.label else ''}{name}")
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">{caption}'
        f"</caption><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>{told}"
    )


def table_html(table: Table) -> str:
    """What a confidential table is about, without any of its numbers: notebooks are stored and passed on."""
    check_table(table, "A page")
    lines = []
    for axis in table.axes:
        some = ", ".join(axis.labels[:6]) + (" and more" if len(axis) > 6 else "")
        cells = (axis.name, f"{len(axis):,}", some)
        lines.append("<tr>" + "".join(f'<td style="{_NAME}">{escape(c)}</td>' for c in cells))
    titles = "".join(
        f'<th style="{_NAME}{_TITLE}">{name}</th>' for name in ("variable", "categories", "such as")
    )
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">'
        f"{escape(repr(table))}</caption><thead><tr>{titles}</tr></thead>"
        f"<tbody>{''.join(line + '</tr>' for line in lines)}</tbody></table>"
        f'<div style="{_NOTE}">Confidential, so no number is shown here; '
        "to_pandas() gives them.</div>"
    )


def _check_words(labels: object, wide: object) -> None:
    for name, value in (("labels", labels), ("wide", wide)):
        if type(value) is not bool:
            raise InputError(f"{name!r} is True or False, not {value!r}.")


def _columns(item: Table | Release, labels: bool, wide: bool) -> Columns:
    if not wide:
        return _long(item, labels)
    head, columns = _wide(item, labels)
    taken = set(head)
    return {**head, **{free_name(name, taken): column for name, column in columns.items()}}


def _of_pandas(pd: Any, column: Column) -> Any:
    """A column with gaps: pandas' own whole numbers would turn into floats."""
    if column.present is None:
        return pd.Series(list(column.values), dtype="object").astype("str")
    values = np.array(column.values)
    kind = pd.arrays.IntegerArray if values.dtype.kind == "i" else pd.arrays.FloatingArray
    return kind(values, ~column.present)


def _long(item: Table | Release, labels: bool) -> dict[str, Column]:
    """One row per cell: codes, labels, value, and all that is known of it."""
    names = [axis.name for axis in item.axes]
    taken: set[str] = set(names)
    out: dict[str, Column] = {}
    for axis_index, axis in enumerate(item.axes):
        out[axis.name] = Column(_spread(axis.codes, item.axes, axis_index))
        if labels:
            name = free_name(f"{axis.name}_label", taken)
            out[name] = Column(_spread(axis.labels, item.axes, axis_index))
    facts = _release_facts(item) if isinstance(item, Release) else _table_facts(item)
    for fact, column in facts.items():
        out[free_name(fact, taken)] = column
    return out


def _table_facts(table: Table) -> dict[str, Column]:
    check_table(table, "A frame")
    everywhere = np.ones(table.shape, dtype=np.bool_)
    facts = {"value": _numbers(table.values, everywhere, table.decimals)}
    if table.kind != "count" and table.contributors is not None:
        facts["contributors"] = _numbers(table.contributors, everywhere, 0)
    return facts


def _release_facts(release: Release) -> dict[str, Column]:
    known = release.known

    def numbers(values: Ints, present: Mask) -> Column:
        if not release.statistics:
            return _numbers(values, present, release.decimals)
        written, units = _written(release, np.where(present, values, 0))
        return Column((written / units).ravel(), present.ravel())

    facts = {"value": numbers(release.numbers, known)}
    if release.statistics:
        units = [release.unit_at(index) for index in range(release.shape[-1])]
        facts["unit"] = Column(_spread(units, release.axes, len(release.axes) - 1))
    facts["status"] = Column([str(letter) for letter in release.status.ravel()])
    if release.least is not None and release.most is not None:
        # Of what is hidden only an interval that the release states: one of a single value would show it.
        told = known | release.stated
        facts["low"] = numbers(release.least, told & (release.least > -_OPEN))
        facts["high"] = numbers(release.most, told & (release.most < _OPEN))
    if release.errors is not None:
        facts["standard_error"] = numbers(release.errors, known & (release.errors >= 0))
    if release.grades is not None:
        there = known & (release.errors >= 0) if release.errors is not None else known
        pairs = zip(release.grades.ravel().tolist(), there.ravel().tolist(), strict=True)
        facts["reliability"] = Column([str(grade) if seen else None for grade, seen in pairs])
    return facts


def _written(release: Release, values: Ints) -> tuple[Ints, Ints]:
    """Values in units of their own last decimal, and how many of these make one, along the last axis."""
    decimals = [release.decimals_at(index) for index in range(release.shape[-1])]
    steps = np.array([10 ** (release.decimals - digits) for digits in decimals], dtype=np.int64)
    return values // steps, np.array([10**digits for digits in decimals], dtype=np.int64)


def _numbers(values: Ints, present: Mask, decimals: int) -> Column:
    whole = np.where(present, values, 0)
    scaled = whole / 10**decimals if decimals else whole
    return Column(scaled.ravel(), np.asarray(present).ravel())


def _wide(item: Table | Release, labels: bool) -> tuple[dict[str, Column], dict[str, Column]]:
    """The last axis as columns: the columns that name the rows, and those of the values."""
    rows, last = (item.axes[:-1], item.axes[-1]) if len(item.axes) > 1 else (item.axes, None)
    heads = {
        axis.name: Column(_spread(_called(axis, labels), rows, index))
        for index, axis in enumerate(rows)
    }
    if isinstance(item, Release):
        values, present = item.numbers, item.known
    else:
        check_table(item, "A frame")
        values, present = item.values, np.ones(item.shape, dtype=np.bool_)
    if last is None:
        return heads, {"value": _numbers(values, present, item.decimals)}
    columns = {}
    for index, name in enumerate(_called(last, labels)):
        column_values, decimals = values[..., index], item.decimals
        if isinstance(item, Release) and item.statistics:
            decimals = item.decimals_at(index)
            column_values = column_values // 10 ** (item.decimals - decimals)
        columns[name] = _numbers(column_values, present[..., index], decimals)
    return heads, columns


def _called(axis: TableAxis, labels: bool) -> list[str]:
    """Codes, or labels with the code behind those that occur twice."""
    if not labels:
        return list(axis.codes)
    seen = Counter(axis.labels)
    names = [
        f"{label} ({code})" if seen[label] > 1 else label
        for label, code in zip(axis.labels, axis.codes, strict=True)
    ]
    # A label may read like another one with its code.
    once = {name for name, times in Counter(names).items() if times == 1}
    taken = set(once)
    return [name if name in once else free_name(name, taken) for name in names]


def _spread(names: Sequence[str], axes: Sequence[TableAxis], axis_index: int) -> list[str]:
    """The names along an axis, one for each cell of all axes."""
    lengths = [len(axis) for axis in axes]
    return [names[position[axis_index]] for position in product(*map(range, lengths))]


def _rows(axes: Sequence[TableAxis]) -> int:
    return int(np.prod([len(axis) for axis in (axes[:-1] if len(axes) > 1 else axes)], dtype=int))


def _cell_html(release: Release, column: Column, row: int, column_index: int) -> str:
    assert column.present is not None
    if column.present[row]:
        return f"{column.values[row]:,.{release.decimals_at(column_index)}f}"
    status = release.status.reshape(_rows(release.axes), -1)[row, column_index]
    if status == CellStatus.FREE.value:
        return '<span title="does not exist">–</span>'
    return f'<span title="{escape(str(CellStatus(status).meaning))}">×</span>'


def two_way(release: Release, rows: int, texts: npt.NDArray[Any] | None = None) -> pandas.DataFrame:
    """The release as ``pandas.crosstab`` lays it out: the first variables as index, the others as columns.

    With ``texts`` these stand in the cells instead of the numbers.
    """
    import pandas as pd

    check_release(release, "A frame")
    down, across = release.axes[:rows], release.axes[rows:]

    def index(axes: Sequence[TableAxis]) -> Any:
        names = [axis.name for axis in axes]
        if not axes:
            return pd.Index(["value"])
        if len(axes) == 1:
            return pd.Index(_called(axes[0], labels=True), name=names[0])
        keys = product(*(_called(axis, labels=True) for axis in axes))
        return pd.MultiIndex.from_tuples(list(keys), names=names)

    shape = (_cells_of(down), _cells_of(across))
    if texts is not None:
        return pd.DataFrame(texts.reshape(shape), index=index(down), columns=index(across))
    present = release.known.reshape(shape)
    values = release.numbers.reshape(shape)
    frame = pd.DataFrame(
        {
            at: _of_pandas(pd, _numbers(values[:, at], present[:, at], release.decimals))
            for at in range(shape[1])
        }
    )
    frame.index, frame.columns = index(down), index(across)
    return frame


def _cells_of(axes: Sequence[TableAxis]) -> int:
    return int(np.prod([len(axis) for axis in axes], dtype=int))
