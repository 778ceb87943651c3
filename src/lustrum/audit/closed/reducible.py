"""Bounds of a whole cube from bounds of its parts, where margins separate the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.dichotomous import dichotomous, is_dichotomous
from lustrum.audit.closed.graphs import IrreduciblePart, parts
from lustrum.audit.closed.margins import Margins
from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask

PartSolver: TypeAlias = Callable[[Margins], Bounds]
"""A function that bounds the cells of a part without a formula."""


def reducible(margins: Margins, solve: PartSolver | None = None) -> Bounds:
    """Bounds of every cell from those of the irreducible parts (Dobra and Fienberg 2000).

    With lower bounds L and upper bounds U of the parts, and the known margins S that separate them::

        max(0, sum of L - sum of S)  <=  n  <=  min of U

    Sharp where the bounds of all parts are: tables of the parts that share S can be joined, and the parts
    are otherwise independent. Parts that one margin holds, and dichotomous parts, have a formula; ``solve``
    bounds the others.

    >>> table = np.arange(16).reshape(2, 2, 2, 2)
    >>> found = reducible(Margins.of_table(table, [[0, 1], [1, 2], [1, 3], [2, 3]]))
    >>> found
    Bounds(16 cells, 16 sharp, 0 exact)
    >>> found.high[:4].astype(int).tolist()
    [6, 6, 6, 6]
    """
    lows: list[Ints] = []
    highs: list[Ints] = []
    sharp: Mask = np.ones((), dtype=np.bool_)
    for part in parts(margins.generators):
        low, high, reached = _part_bounds(margins, part, solve)
        sharp = sharp & reached
        if part.separator is not None:
            low = low - margins.margin(part.separator)
        lows.append(low)
        highs.append(high)
    low, high = lows[0], highs[0]
    for more, cap in zip(lows[1:], highs[1:], strict=True):
        low, high = low + more, np.minimum(high, cap)
    return margins.bounds(*margins.spread(np.maximum(low, 0), high), sharp)


def _part_bounds(
    margins: Margins, part: IrreduciblePart, solve: PartSolver | None
) -> tuple[Ints, Ints, Mask]:
    if part.closed:
        shown = margins.margin(part.axes)
        return shown, shown, np.ones((), dtype=np.bool_)
    inner = margins.part(part.axes, part.generators)
    if is_dichotomous(inner):
        part_bounds = dichotomous(inner)
    elif solve is not None:
        part_bounds = solve(inner)
    else:
        raise InputError(
            f"The part {margins.label(part.axes)} has no closed form; say how to solve it, for "
            "instance by the shuttle."
        )
    shape = [margins.shape[a] if a in part.axes else 1 for a in range(len(margins.shape))]
    low, high = (a.astype(np.int64).reshape(shape) for a in (part_bounds.low, part_bounds.high))
    return low, high, part_bounds.sharp.reshape(shape)
