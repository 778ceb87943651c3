"""Contributions of a confidential file, checked against the number of contributors and the value of each cell.

A blank is unknown, never 0: an unknown contribution is taken to be as large as the others allow, which is
the worst case for every rule. What cannot be true is refused with the line it stands in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lustrum.model import Contributions, InputError
from lustrum.model.arrays import Ints
from lustrum.model.errors import choices
from lustrum.numeric.structure import Relations
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
    return max(decimals_of(row.value) for row in rows)


if TYPE_CHECKING:
    from lustrum.readers.confidential import TrueFile

_NAMELESS = (
    1 << 62
)  # numbers of contributors without a name begin here; rows and ranks tell them apart


@dataclass(frozen=True, eq=False)
class CheckedContributions:
    """Contributors and largest contributions of all cells; blanks of the rows ``assumed`` were filled."""

    contributors: Ints
    contributions: Contributions | None
    assumed: tuple[int, ...] = ()


def checked_contributions(
    file: TrueFile, holding_number: Callable[[str], int] | None = None
) -> CheckedContributions:
    """The contributions of a file, blanks filled with the worst case that fits its numbers and values."""
    count = _counts(file)
    ranks = len(file.largest)
    contributors = np.zeros(file.shape, dtype=np.int64)
    if not ranks:
        for row, number in enumerate(count):
            if number == 0 and file.values[row]:
                raise InputError(
                    f"{file.where(row)}: the cell has a value but 0 contributors; correct one."
                )
        contributors[file.positions] = np.array(count, dtype=np.int64)
        return CheckedContributions(contributors, None)
    negative = _negative(file)
    numbers: dict[str, int] = {}
    number_of = holding_number or (lambda name: numbers.setdefault(name, len(numbers)))
    amounts = np.zeros((len(file.keys), ranks), dtype=np.int64)
    holders = np.full((len(file.keys), ranks), -1, dtype=np.int64)
    people = np.zeros(len(file.keys), dtype=np.int64)
    assumed = []
    for row, number in enumerate(count):
        value = file.units(row, file.values[row])
        given = [None if (v := one[row]) is None else file.units(row, v) for one in file.largest]
        whole = _Cell(file.where(row), value, number, given, negative)
        filled = whole.filled()
        people[row] = whole.least_contributors()
        if any(g is None for g in given[: len(filled)]):
            assumed.append(row)
        for rank, amount in enumerate(filled):
            amounts[row, rank] = amount
            name = file.holdings[rank][row] if file.holdings else ""
            if name:
                holders[row, rank] = number_of(name)
                if holders[row, rank] in holders[row, :rank]:
                    raise InputError(
                        f"{file.where(row)}: a holding stands twice in the cell; add its contributions up."
                    )
            elif file.holdings and given[rank] is not None:
                raise InputError(f"{file.where(row)}: a contribution has no holding; name it.")
            else:
                # Without a name every contribution counts as that of another holding.
                holders[row, rank] = _NAMELESS + row * ranks + rank
    value_of = np.zeros((*file.shape, ranks), dtype=np.int64)
    holding = np.full((*file.shape, ranks), -1, dtype=np.int64)
    value_of[file.positions] = amounts
    holding[file.positions] = holders
    contributors[file.positions] = people
    return CheckedContributions(contributors, Contributions(value_of, holding), tuple(assumed))


@dataclass(frozen=True)
class _Cell:
    """One cell: its value, how many contribute, if that is known, and its largest contributions or None."""

    where: str
    value: int
    number: int | None
    given: list[int | None]
    negative: bool

    def filled(self) -> list[int]:
        """The contributions of all ranks that the cell has, unknown ones as large as they can be."""
        if self.number == 0 and (self.value or any(self.given)):
            raise InputError(f"{self.where}: the cell has 0 contributors but a value; correct one.")
        size = self.ranks()
        if any(g for g in self.given[size:]):
            raise InputError(
                f"{self.where}: there are more contributions than contributors; correct one."
            )
        given = self.given[:size]
        known = [g for g in given if g is not None]
        if any(abs(b) > abs(a) for a, b in pairwise(known)):
            raise InputError(
                f"{self.where}: the contributions are not in falling order; put the largest first."
            )
        complete = self.number is not None and self.number <= len(self.given)
        if len(known) == size:
            left = self.value - sum(known)
            if complete and left:
                raise InputError(
                    f"{self.where}: the contributions of all contributors do not add up to the value; "
                    "correct them."
                )
            if not self.negative and not complete:
                self._check_rest(left, known)
            return known
        if self.negative:
            raise InputError(
                f"{self.where}: a contribution is blank, and where values can be negative nothing bounds it; "
                "fill it in."
            )
        return self._worst(given, self.value - sum(known))

    def ranks(self) -> int:
        """How many ranks are filled or unknown."""
        return min(self.least_contributors(), len(self.given))

    def least_contributors(self) -> int:
        """How many contribute, as stated; else as few as fit the value."""
        if self.number is not None:
            return self.number
        known = [g for g in self.given if g is not None]
        return len(known) + (self.value != sum(known))

    def _check_rest(self, left: int, known: list[int]) -> None:
        """What the others contribute must fit: not below 0, and none of them more than the last one listed."""
        if left < 0:
            raise InputError(
                f"{self.where}: the contributions are more than the value; correct them."
            )
        others = None if self.number is None else self.number - len(known)
        if others is not None and known and left > others * known[-1]:
            raise InputError(
                f"{self.where}: the other contributors would each have more than the smallest contribution "
                "listed; list the largest, or correct the value."
            )

    def _worst(self, given: list[int | None], left: int) -> list[int]:
        """Unknown ranks have at least what the next known one has, and from the first on as much as fits."""
        least = [next((g for g in given[rank:] if g is not None), 0) for rank in range(len(given))]
        left -= sum(n for n, g in zip(least, given, strict=True) if g is None)
        if left < 0:
            raise InputError(
                f"{self.where}: the contributions are more than the value; correct them."
            )
        out: list[int] = []
        for start, amount in zip(least, given, strict=True):
            if amount is None:
                more = min(left, out[-1] - start) if out else left
                left -= more
                amount = start + more
            out.append(amount)
        complete = self.number is not None and self.number <= len(self.given)
        if complete and left:
            raise InputError(
                f"{self.where}: the contributions cannot add up to the value; correct them."
            )
        return out


def check_totals(file: TrueFile, relations: Relations) -> None:
    """Contributors of a total are those of its parts: as many as in any of them, and no more than in all.

    Its largest contributor has at least what the largest of any part has, unless values can be negative.
    """
    negative = _negative(file)
    row_of = {
        int(cell): row for row, cell in enumerate(np.ravel_multi_index(file.positions, file.shape))
    }
    for number, total in enumerate(relations.totals.tolist()):
        row = row_of.get(total)
        inside = relations.cells[slice(*relations.indptr[number : number + 2])].tolist()
        parts = [row_of[c] for c in inside if c != total and c in row_of]
        if row is None or not parts:
            continue
        if file.count is not None:
            counts = [int(file.count[r] or 0) for r in parts]
            if not max(counts) <= int(file.count[row] or 0) <= sum(counts):
                raise InputError(
                    f"{file.where(row)}: the number of contributors of a total is not between the largest "
                    "number of its parts and the sum of them; correct one."
                )
        top = file.largest[0][row] if file.largest and not negative else None
        if top is not None and any(x > top for r in parts if (x := file.largest[0][r]) is not None):
            raise InputError(
                f"{file.where(row)}: the largest contribution to a total is less than that to one of its "
                "parts; correct one."
            )


def _negative(file: TrueFile) -> bool:
    """Whether a value or a contribution is negative, so that contributions of one holding can cancel."""
    columns = (*file.largest, file.values)
    return any(v is not None and v < 0 for column in columns for v in column)


def _counts(file: TrueFile) -> list[int | None]:
    if file.count is None:
        return [None] * len(file.keys)
    out: list[int | None] = []
    for row, number in enumerate(file.count):
        if number is None or number < 0 or number != int(number):
            raise InputError(
                f"{file.where(row)}: the number of contributors is missing or not a whole number of 0 or "
                "more."
            )
        out.append(int(number))
    return out
