"""How many true counts are left for a cell, to readers with different knowledge.

An *outsider* knows the file and the method. An *insider* is in the cell and so knows that it is not empty. A
*coalition* of ``k`` people in one cell knows that it holds ``k``. Somebody with *exact outside totals*
knows the true sums of groups of cells. Cells that cannot exist are known to be empty and leave one value to
everybody; they are not secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lustrum.arrays import Ints
from lustrum.model import InputError
from lustrum.model.finest import FinestCells
from lustrum.protect.population.support import Support, possible_combinations

__all__ = ["CandidateCounts", "candidates", "candidates_with_totals"]


@dataclass(frozen=True)
class CandidateCounts:
    """True counts that a shown number leaves to readers who know that the cell holds at least ``known``."""

    shown: int
    known: int
    low: int
    high: int

    @property
    def left(self) -> int:
        """How many counts are left."""
        return max(self.high - self.low + 1, 0)

    def __str__(self) -> str:
        if not self.left:
            return f"A cell with {self.known} people cannot show {self.shown}."
        if self.left == 1:
            return (
                f"A shown {self.shown} tells {self.known} people of the cell "
                f"that it holds exactly {self.low}."
            )
        return f"A shown {self.shown} leaves {self.left} counts, {self.low} to {self.high}."


def candidates(support: Support, shown: int, known: int = 0) -> CandidateCounts:
    """What one finest cell leaves: ``known`` is 0 for an outsider, 1 for an insider, k for a coalition.

    >>> print(candidates(Support(3), 0))
    A shown 0 leaves 3 counts, 0 to 2.
    >>> print(candidates(Support(3), 0, known=1))
    A shown 0 leaves 2 counts, 1 to 2.
    >>> print(candidates(Support(3), 0, known=2))
    A shown 0 tells 2 people of the cell that it holds exactly 2.
    """
    low, high = support.bounds(np.array([shown]))
    return CandidateCounts(shown, known, max(int(low[0]), known), int(high[0]))


@dataclass(frozen=True)
class OutsideTotals:
    """What exact totals leave for the listed cells: bounds, and how many have one value left."""

    low: Ints
    high: Ints

    @property
    def pinned(self) -> int:
        """The number of listed cells with one value left."""
        return int((self.low == self.high).sum())


def candidates_with_totals(
    cells: FinestCells, support: Support, variable: str, totals: Mapping[str, int], known: int = 0
) -> OutsideTotals:
    """Bounds of listed cells, for a reader who knows the true number of records of every code of a variable.

    Within a code all cells add up to the total, among them possible cells that show 0. A cell is then at
    least the total less what all others can be, and at most the total less what they must be. These bounds are
    sharp, because nothing else ties the cells of one code together.
    """
    place = [v.name for v in cells.dataset.variables].index(cells.dataset.variable(variable).name)
    codes = cells.dataset.variables[place].codes
    if set(totals) - set(codes):
        raise InputError(f"The totals name a code that {variable!r} does not have.")
    low, high = support.finest(cells)
    low = np.maximum(low, np.minimum(known, high))
    group = cells.codes[place].astype(np.int64)
    listed = np.bincount(group, minlength=len(codes))
    possible = possible_combinations(
        cells.dataset, [(variable, cells.dataset.variables[place].finest)]
    )
    least = np.bincount(group, weights=low, minlength=len(codes)).astype(np.int64)
    most = np.bincount(group, weights=high, minlength=len(codes)).astype(np.int64)
    most += support.most_unlisted * (possible - listed)
    for position, code in enumerate(codes):
        if code not in totals:
            continue
        total = totals[code]
        if not least[position] <= total <= most[position]:
            raise InputError(f"The total of {code!r} does not fit the protected cells.")
        inside = group == position
        new_low = np.maximum(low[inside], total - (most[position] - high[inside]))
        new_high = np.minimum(high[inside], total - (least[position] - low[inside]))
        low[inside], high[inside] = new_low, new_high
    return OutsideTotals(low, high)
