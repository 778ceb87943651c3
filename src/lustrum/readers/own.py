"""The public layout of a table that this project wrote: what its columns and codes are, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal

from lustrum.formats.cell_text import HeadNames, free_name
from lustrum.model import CellStatus, Release, TableAxis
from lustrum.readers.cells import read_cells
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

CELLS = "Cells"
"""The sheet of a workbook that has a row for each cell."""
BESIDE = ".layout.toml"
"""The end of the name of a layout that stands beside a file."""
Form = Literal["plain", "csv", "xlsx", "json-stat"]
"""How a release is written: by ``write_release``, or in a format of its own name."""


def sidecar(path: Path) -> Path:
    """Where the layout of a file stands beside it."""
    return path.with_name(path.name + BESIDE)


def own_layout(layout: Layout, content: bytes) -> str:
    """The public layout of a file with these bytes, as TOML."""
    digest = hashlib.sha256(content).hexdigest()
    return layout_text(layout.model_copy(update={"digest": digest}), {})


def form_of(path: Path) -> Form:
    """How ``write_release`` writes to a file of this ending."""
    return "xlsx" if path.suffix.lower() == ".xlsx" else "plain"


def public_layout(
    release: Release,
    kind: Kind,
    form: Form = "plain",
    *,
    fixed: Mapping[str, str] | None = None,
    roles: Mapping[str, CodeRoles] | None = None,
) -> Layout:
    """What the columns and codes of a written release are; it follows from the release, which is public.

    ``fixed`` are codes of the whole table, ``roles`` those of the codes of variables that several tables share.
    """
    called = HeadNames.of(release.axes)
    stated = release.least is not None and release.most is not None and bool(release.stated.any())
    columns: dict[str, ColumnRole] = {}
    for axis, label, held in zip(release.axes, called.labels, called.members, strict=True):
        columns[axis.name] = ColumnRole(role="code")
        if form in ("csv", "xlsx") or axis.labels != axis.codes:
            columns[label] = ColumnRole(role="label", of=axis.name)
        if form == "csv" and any(category.note for category in axis.categories):
            columns[held] = ColumnRole(role="note")
    value, status = called.facts["value"], called.facts["status"]
    columns[value] = ColumnRole(role="value")
    if form != "json-stat" or not release.shown.all():
        columns[status] = ColumnRole(role="status", of=value)
    if form in ("csv", "xlsx") and release.label:
        columns[called.facts["unit"]] = ColumnRole(role="note")
    dimensions = {
        axis.name: (roles or {}).get(axis.name) or code_roles(axis)
        for axis in release.axes
        if len(axis) > 1
    }
    across: tuple[str, ...] = ()
    if form == "xlsx" or (stated and form != "json-stat"):
        ends = [called.facts["low"], called.facts["high"]]
        columns |= {name: ColumnRole(role="value") for name in ends}
        measure = free_name(MEASURE, {axis.name for axis in release.axes})
        dimensions[measure] = CodeRoles(units={ends[0]: f"<= {value}", ends[1]: f">= {value}"})
        across = () if measure == MEASURE else (measure,)
    dimensions |= {name: one for name, one in (roles or {}).items() if name in (fixed or {})}
    shown = CellStatus.FREE.value
    hidden = sorted({str(letter) for letter in release.status.ravel()} - {shown})
    # A workbook shows the letter of a hidden cell in place of its value.
    instead = ("", *hidden) if form == "xlsx" else ("",)
    aside: Literal["nothing"] | None = "nothing" if form in ("xlsx", "json-stat") else None
    return Layout(
        kind=kind,
        signed=bool((release.numbers[release.known] < 0).any()),
        notes=aside,
        parts=aside,
        symbols=dict.fromkeys(instead, "hidden"),
        letters={shown: "note", **dict.fromkeys(hidden, "hidden")},
        tables=(
            DeclaredTable(
                sheet=CELLS if form == "xlsx" else "",
                columns=columns,
                across=across,
                fixed=dict(fixed or {}),
            ),
        ),
        dimensions=dimensions,
    )


def published_cells(path: Path, names: Sequence[str]) -> dict[tuple[str, ...], Decimal | None]:
    """The values of a table that this project wrote, by the codes of its variables; None where it is hidden."""
    container = read_container(path)
    sheets = [grid.name for grid in container.grids]
    value = free_name("value", set(names))
    columns = {name: ColumnRole(role="code") for name in names}
    table = DeclaredTable(
        sheet=CELLS if CELLS in sheets else sheets[0],
        columns={**columns, value: ColumnRole(role="value")},
    )
    cells = read_cells(container, Layout(tables=(table,)), listed_only=True).cells
    return {tuple(cell.key[name] for name in names): cell.value for cell in cells}


def code_roles(axis: TableAxis) -> CodeRoles:
    """The roles of the codes along an axis."""
    return roles_of({category.code: frozenset(category.members) for category in axis.categories})


def roles_of(members: Mapping[str, frozenset[int]]) -> CodeRoles:
    """How codes relate that stand for these members.

    A total is the sum of the largest codes inside it. Members that no listed code holds make up a part that is
    not listed. Where codes overlap, each is the sum of the parts that no code divides.

    >>> sets = {"T": {0, 1, 2}, "A": {0, 1}, "a": {0}, "b": {1}, "c": {2}, "B": {2}}
    >>> roles = roles_of({code: frozenset(held) for code, held in sets.items()})
    >>> roles.totals, roles.same, roles.all
    ({'T': ('A', 'c'), 'A': ('a', 'b')}, {'B': 'c'}, 'T')
    """
    first: dict[frozenset[int], str] = {}
    same = {
        code: one for code, held in members.items() if (one := first.setdefault(held, code)) != code
    }
    apart = {code: held for code, held in members.items() if code not in same}
    totals: dict[str, tuple[str, ...]] = {}
    if not _nest(first):
        atoms: dict[tuple[str, ...], set[int]] = {}
        for member in frozenset[int]().union(*first):
            key = tuple(code for code, held in apart.items() if member in held)
            atoms.setdefault(key, set()).add(member)
        for code in apart:
            inside = [(inner, those) for inner, those in atoms.items() if code in inner]
            if len(inside) > 1:
                totals[code] = tuple(
                    first.get(frozenset(those), f"{' and '.join(inner)}, not listed")
                    for inner, those in inside
                )
    else:
        for code, held in apart.items():
            left, parts = held, list[str]()
            for other in sorted(apart, key=lambda c: -len(apart[c])):
                if apart[other] < held and apart[other] <= left:
                    parts.append(other)
                    left -= apart[other]
            if parts:
                totals[code] = (*parts, f"{code}, not listed") if left else tuple(parts)
    inside_of = {
        *totals,
        *(part for parts in totals.values() for part in parts),
        *same,
        *same.values(),
    }
    return CodeRoles(
        totals=totals,
        same=same,
        independent=tuple(code for code in members if code not in inside_of),
        all=first.get(frozenset().union(*first), ""),
    )


def _nest(sets: Iterable[frozenset[int]]) -> bool:
    """Whether any two of some sets have nothing in common, or one is inside the other."""
    above: dict[int, frozenset[int]] = {}
    for held in sorted(sets, key=len):
        if not all(below <= held for below in {above[one] for one in held if one in above}):
            return False
        above |= dict.fromkeys(held, held)
    return True
