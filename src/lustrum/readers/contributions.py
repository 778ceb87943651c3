"""Contributions of a confidential file, checked against the number of contributors and the value of each cell.

A blank is unknown, never 0: an unknown contribution is taken to be as large as the others allow, which is
the worst case for every rule. What cannot be true is refused with the line it stands in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lustrum.model import Contributions, InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.structure import Relations

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
