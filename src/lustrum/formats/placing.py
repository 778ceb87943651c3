"""Where the variables of a table stand if nobody says: the same on a page and in a workbook.

The first variable runs down, the second across. A third stands above the columns while that stays
readable; otherwise, like any further one, it cuts the table into parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDEST = 30
"""Most columns of figures before a third variable moves from above the columns to parts of the table."""


@dataclass(frozen=True)
class Placing:
    """Positions of the axes that run down, across and through the table, the outer ones first."""

    rows: tuple[int, ...]
    columns: tuple[int, ...] = ()
    wafers: tuple[int, ...] = ()


def usual_placing(sizes: Sequence[int]) -> Placing:
    """The placing of axes with this many categories.

    >>> usual_placing([21, 2, 5])
    Placing(rows=(0,), columns=(2, 1), wafers=())
    >>> usual_placing([2, 21, 5]).wafers
    (2,)
    """
    count = len(sizes)
    if count < 3:
        return Placing(tuple(range(min(count, 1))), tuple(range(1, count)))
    if sizes[1] * sizes[2] <= WIDEST:
        return Placing((0,), (2, 1), tuple(range(3, count)))
    return Placing((0,), (1,), tuple(range(2, count)))
