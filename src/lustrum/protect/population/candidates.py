"""How many true counts are left for a cell, to readers with different knowledge.

An *outsider* knows the file and the method. An *insider* is in the cell and so knows that it is not empty. A
*coalition* of ``k`` people in one cell knows that it holds ``k``. Cells that cannot exist are known to be empty
and leave one value to everybody; they are not secret.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.protect.population.support import Support


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
