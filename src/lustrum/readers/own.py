"""The public layout of a table that this project wrote: what its columns and codes are, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from lustrum.formats.cell_text import HeadNames, free_name
from lustrum.model import CellStatus, Release, TableAxis
from lustrum.readers.cells import UNLISTED, read_cells
from lustrum.readers.confidential import Kind
from lustrum.readers.container import read_container
from lustrum.readers.layout import (
    MEASURE,
    CodeRoles,
    ColumnRole,
    DeclaredTable,
    Layout,
    layout_text,
)


def sidecar(path: Path) -> Path:
    """Where the layout of a file stands beside it."""
    return path.with_name(path.name + ".layout.toml")


def own_layout(release: Release, content: bytes, kind: Kind) -> str:
    """The layout of a release written as CSV or Parquet with these bytes, as TOML.

    It follows from the release alone, which is public.
    """
    layout = public_layout(release, kind)
    digest = hashlib.sha256(content).hexdigest()
    return layout_text(layout.model_copy(update={"digest": digest}), {})


def public_layout(release: Release, kind: Kind, sheet: str = "") -> Layout:
    """What the columns and codes of a written release are; in a workbook, those of its sheet of cells."""
    called = HeadNames.of(release.axes)
    columns: dict[str, ColumnRole] = {}
    for axis, label in zip(release.axes, called.labels, strict=True):
        columns[axis.name] = ColumnRole(role="code")
        if sheet or axis.labels != axis.codes:
            columns[label] = ColumnRole(role="label", of=axis.name)
    value, status = called.facts["value"], called.facts["status"]
    columns[value] = ColumnRole(role="value")
    columns[status] = ColumnRole(role="status", of=value)
    dimensions = {
        axis.name: CodeRoles(
            totals=(found := totals_of(axis)), independent=_alone(axis, found), all=_everybody(axis)
        )
        for axis in release.axes
        if len(axis) > 1
    }
    across: tuple[str, ...] = ()
    if sheet or (release.low is not None and release.high is not None and release.stated.any()):
        ends = [called.facts["low"], called.facts["high"]]
        columns |= {name: ColumnRole(role="value") for name in ends}
        measure = free_name(MEASURE, {axis.name for axis in release.axes})
        dimensions[measure] = CodeRoles(units={ends[0]: f"<= {value}", ends[1]: f">= {value}"})
        across = () if measure == MEASURE else (measure,)
    shown = CellStatus.FREE.value
    hidden = sorted({str(letter) for letter in release.status.ravel()} - {shown})
    # A workbook shows the letter of a hidden cell in place of its value.
    instead = ("", *hidden) if sheet else ("",)
    return Layout(
        kind=kind,
        signed=bool((release.published[release.known] < 0).any()),
        symbols=dict.fromkeys(instead, "hidden"),
        letters={shown: "note", **dict.fromkeys(hidden, "hidden")},
        tables=(DeclaredTable(sheet=sheet, columns=columns, across=across),),
        dimensions=dimensions,
    )


def published_cells(path: Path, names: Sequence[str]) -> dict[tuple[str, ...], Decimal | None]:
    """The values of a table that this project wrote, by the codes of its variables; None where it is hidden."""
    container = read_container(path)
    sheets = [grid.name for grid in container.grids]
    value = free_name("value", set(names))
    columns = {name: ColumnRole(role="code") for name in names}
    table = DeclaredTable(
        sheet="Cells" if "Cells" in sheets else sheets[0],
        columns={**columns, value: ColumnRole(role="value")},
    )
    cells = read_cells(container, Layout(tables=(table,))).cells
    return {
        tuple(cell.key[name] for name in names): cell.value
        for cell in cells
        if cell.place != UNLISTED
    }


def totals_of(axis: TableAxis) -> dict[str, tuple[str, ...]]:
    """The codes that are sums of others, with the largest codes inside them that do not overlap.

    Members that no listed code holds make up a part that is not listed.

    >>> from lustrum.model import Category
    >>> codes = {"T": (0, 1, 2), "A": (0, 1), "a": (0,), "b": (1,), "c": (2,)}
    >>> totals_of(TableAxis("x", "x", tuple(Category(c, c, m) for c, m in codes.items())))
    {'T': ('A', 'c'), 'A': ('a', 'b')}
    """
    members = {category.code: frozenset(category.members) for category in axis.categories}
    totals = {}
    for code, held in members.items():
        parts: list[str] = []
        left = held
        for other in sorted(members, key=lambda c: -len(members[c])):
            if members[other] < held and members[other] <= left:
                parts.append(other)
                left -= members[other]
        if parts:
            totals[code] = (*parts, f"{code}, not listed") if left else tuple(parts)
    return totals


def _everybody(axis: TableAxis) -> str:
    """The code that holds all members, so that tables without the variable are about it; none if none does."""
    members = frozenset().union(*(category.members for category in axis.categories))
    return next((c.code for c in axis.categories if frozenset(c.members) == members), "")


def _alone(axis: TableAxis, totals: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The codes that are neither a total nor a part of one."""
    inside = {*totals, *(part for parts in totals.values() for part in parts)}
    return tuple(code for code in axis.codes if code not in inside)
