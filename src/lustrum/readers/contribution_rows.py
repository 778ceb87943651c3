"""A file of contributions: who contributes how much to which cell, one contribution a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.readers.cells import names_of
from lustrum.readers.container import read_container
from lustrum.readers.layout import ContributionColumn, DeclaredContributions, DeclaredTable
from lustrum.readers.number_text import Style, decimals_of, printed


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
    if len(container.grids) > 1:
        raise InputError(f"{path}: contributions stand in one sheet; the file has several.")
    grid = container.grids[0]
    names, body = names_of(grid, DeclaredTable(columns={}), str(path))
    columns = _columns(path, names, declared, variables)
    style = Style(declared.decimal if declared else decimal)
    rows: list[Contribution] = []
    holding_of: dict[str, str] = {}
    first: dict[tuple[object, ...], str] = {}
    for index in body:
        fields = [text.strip() for text in grid.lines[index]]
        fields += [""] * (len(names) - len(fields))
        place = f"{path}, {grid.places[index]}"
        found = {"code": dict[str, str](), "contributor": "", "holding": "", "value": ""}
        for name, text in zip(names, fields, strict=True):
            column = columns[name]
            if column.role == "code":
                found["code"][column.dimension or name] = text  # type: ignore[index]
            else:
                found[column.role] = text
        number = printed(str(found["value"]), style)
        who = str(found["contributor"])
        if not who:
            raise InputError(f"{place}: the contributor is blank; name them.")
        if number is None or number.mark:
            what = f"{found['value']!r} is no number" if found["value"] else "the value is blank"
            raise InputError(f"{place}: {what}; give the contribution, or take the line out.")
        if number.value < 0:
            raise InputError(
                f"{place}: the contribution is negative; contributors are judged only where all contributions "
                "are 0 or more."
            )
        row = Contribution(place, found["code"], who, str(found["holding"]), number.value)  # type: ignore[arg-type]
        if holding_of.setdefault(who, row.holding) != row.holding:
            raise InputError(f"{place}: the contributor has another holding in a line before.")
        same = first.setdefault((who, *sorted(row.codes.items())), grid.places[index])
        if same != grid.places[index]:
            raise InputError(
                f"{place}: the contributor has this cell in {same} already; add the contributions up."
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: there is no contribution in it.")
    return rows


def _columns(
    path: Path,
    names: Sequence[str],
    declared: DeclaredContributions | None,
    variables: Sequence[str],
) -> dict[str, ContributionColumn]:
    """The role of every column, as declared or by its plain name; a column without one may be a holding."""
    plain: Mapping[str, ContributionColumn] = {
        name: ContributionColumn(role="code") for name in variables
    } | {name: ContributionColumn(role=name) for name in ("contributor", "holding", "value")}
    columns = plain if declared is None else declared.columns
    for name in names:
        if name not in columns:
            raise InputError(
                f"{path}: the column {name!r} has no role; {choices(name, columns)}, or give it one under "
                "[contributions.columns] of the layout."
            )
    for name in columns if declared is not None else ():
        if name not in names:
            raise InputError(f"{path}: there is no column {name!r}; {choices(name, names)}.")
    roles = [columns[name].role for name in names]
    for role in ("contributor", "value"):
        if roles.count(role) != 1:
            raise InputError(f"{path}: one column must be the {role}; {roles.count(role)} are.")
    if roles.count("holding") > 1:
        raise InputError(f"{path}: two columns are the holding; name one.")
    codes = [columns[n].dimension or n for n in names if columns[n].role == "code"]
    for name in codes:
        if name not in variables:
            raise InputError(
                f"{path}: no table has a variable {name!r}; {choices(name, variables)}."
            )
    if len(set(codes)) < len(codes):
        raise InputError(f"{path}: two columns are the same variable; give each its own.")
    return {name: columns[name] for name in names}


def finest_decimals(rows: Sequence[Contribution]) -> int:
    """How many decimals contributions have."""
    return max(decimals_of(row.value) for row in rows)
