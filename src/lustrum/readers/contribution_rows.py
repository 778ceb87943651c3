"""A file of contributions: who contributes how much to which cell, one contribution a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.readers.cells import grid_of, names_of, read_cells
from lustrum.readers.container import read_container
from lustrum.readers.grids import Container
from lustrum.readers.layout import (
    CONFIDENTIAL,
    ColumnRole,
    DeclaredContributions,
    DeclaredTable,
    Layout,
)
from lustrum.readers.number_text import decimals_of

_ROLES = ("contributor", "holding", "value")


@dataclass(frozen=True)
class Contribution:
    """One line of a file of contributions."""

    place: str
    codes: Mapping[str, str]
    contributor: str
    holding: str
    value: Decimal


def read_contributions(
    path: Path, declared: DeclaredContributions | None, variables: Sequence[str], decimal: str
) -> list[Contribution]:
    """The lines of a file of contributions; whatever is not clear in it is refused with its line."""
    container = read_container(path)
    table = _table(container, declared, variables)
    column_of = _columns(path, table, variables)
    sign = declared.decimal if declared else decimal
    layout = Layout(tables=(table,), decimal="," if sign == "," else ".")
    reading = read_cells(container, layout, listed_only=True)
    for wrong in (*reading.symbols.values(), *reading.letters.values()):
        text = next(cell.text for cell in reading.cells if cell.place == wrong[0])
        what = f"{text!r} is no number" if text else "the value is blank"
        raise InputError(
            f"{path}, {wrong[0]}: {what}; give the contribution, or take the line out."
        )
    rows: list[Contribution] = []
    holding_of: dict[str, str] = {}
    first: dict[tuple[object, ...], str] = {}
    for cell in reading.cells:
        place = f"{path}, {cell.place}"
        who, holding = (cell.beside.get(column_of[role], "") for role in ("contributor", "holding"))
        if not who:
            raise InputError(f"{place}: the contributor is blank; name them.")
        if cell.value is None or cell.value < 0:
            raise InputError(
                f"{place}: the contribution is negative; contributors are judged only where all contributions "
                "are 0 or more."
            )
        if holding_of.setdefault(who, holding) != holding:
            raise InputError(f"{place}: the contributor has another holding in a line before.")
        same = first.setdefault((who, *sorted(cell.key.items())), cell.place)
        if same != cell.place:
            raise InputError(
                f"{place}: the contributor has this cell in {same} already; add the contributions up."
            )
        rows.append(Contribution(place, cell.key, who, holding, cell.value))
    if not rows:
        raise InputError(f"{path}: there is no contribution in it.")
    return rows


def _table(
    container: Container, declared: DeclaredContributions | None, variables: Sequence[str]
) -> DeclaredTable:
    """The columns of a file, as declared or by their plain names; one without a role may be a holding."""
    if declared is None and len(container.grids) > 1:
        raise InputError(
            f"{container.source}: contributions stand in one sheet; the file has several."
        )
    grid = container.grids[0]
    roles = {name: ColumnRole(role="code") for name in variables}
    roles |= {name: ColumnRole(role=name) for name in _ROLES}  # type: ignore[arg-type]
    table = declared or DeclaredTable(sheet=grid.name, head=(grid.numbers[0],), columns=roles)
    names, _ = names_of(grid_of(container, table.sheet), table, container.source)
    unknown = next((name for name in names if name not in table.columns), None)
    if unknown is not None:
        raise InputError(
            f"{container.source}: the column {unknown!r} has no role; {choices(unknown, table.columns)}, or "
            "give it one under [contributions.columns] of the layout."
        )
    return declared or table.model_copy(update={"columns": {n: roles[n] for n in names}})


def _columns(path: Path, table: DeclaredTable, variables: Sequence[str]) -> dict[str, str]:
    """The columns of the contributor, the holding and the value, if each is there as often as it must be."""
    named = {role: [n for n, c in table.columns.items() if c.role == role] for role in _ROLES}
    for role in ("contributor", "value"):
        if len(named[role]) != 1:
            raise InputError(f"{path}: one column must be the {role}; {len(named[role])} are.")
    other = next((c.role for c in table.columns.values() if c.role in CONFIDENTIAL - {*_ROLES}), "")
    if other:
        raise InputError(f"{path}: a file of contributions has no column of the role {other!r}.")
    if len(named["holding"]) > 1:
        raise InputError(f"{path}: two columns are the holding; name one.")
    codes = [c.dimension or name for name, c in table.columns.items() if c.role == "code"]
    for name in codes:
        if name not in variables and name not in table.nested:
            raise InputError(
                f"{path}: no table has a variable {name!r}; {choices(name, variables)}."
            )
    if len(set(codes)) < len(codes):
        raise InputError(f"{path}: two columns are the same variable; give each its own.")
    return {role: names[0] if names else "" for role, names in named.items()}


def finest_decimals(rows: Sequence[Contribution]) -> int:
    """How many decimals contributions have."""
    return max(decimals_of(row.value) for row in rows)
