"""Tables whose axes are plain lists of categories with or without their total: relations are lines.

The relations need not be stored: a loop over the lines adds totals up, or narrows bounds until nothing
changes, even in tables of a million cells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lustrum.model import TableAxis
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.numeric.compiled import compiled

_ROUNDS = 1000


def line_totals(axes: Sequence[TableAxis]) -> list[int] | None:
    """The place of the total along each axis, -1 without one; None if an axis is not of this kind.

    >>> line_totals([TableAxis.plain("x", ["a", "b"])])
    [-1]
    """
    places = []
    for axis in axes:
        sets = [c.member_set for c in axis.categories]
        largest = max(range(len(sets)), key=lambda i: len(sets[i]), default=-1)
        parts = [s for i, s in enumerate(sets) if i != largest]
        union: frozenset[int] = frozenset().union(*parts)
        if sum(map(len, sets)) == len(union.union(*sets)):
            places.append(-1)
        elif (
            len(parts) > 1
            and all(parts)
            and sum(map(len, parts)) == len(union)
            and union == sets[largest]
        ):
            places.append(largest)
        else:
            return None
    return places


def added_up(array: Ints, places: Sequence[int]) -> Ints:
    """The totals as sums of the inner cells."""
    out = array.copy()
    for position, index in enumerate(places):
        if index >= 0:
            moved = np.moveaxis(out, position, 0)
            moved[index] = moved[:index].sum(axis=0) + moved[index + 1 :].sum(axis=0)
    return out


def pinned(
    low: Ints, high: Ints, open_cells: Mask, places: Sequence[int], shown: Ints | None = None
) -> bool:
    """Whether the lines leave a single value for a cell that had several, or cannot be shown not to.

    With record keys, a total of the same records as one of its parts is ``shown`` with the same number. If
    the two numbers differ, another part is not empty.
    """
    shape = np.array(low.shape, dtype=np.int64)
    return bool(
        narrow_lines(
            low.flatten(),
            high.flatten(),
            open_cells.ravel(),
            shape,
            np.array(places, dtype=np.int64),
            low.ravel() if shown is None else shown.ravel(),
            shown is not None,
            _ROUNDS,
        )
    )


@compiled
def narrow_lines(  # pragma: no cover
    low: Array,
    high: Array,
    open_cells: Array,
    shape: Array,
    places: Array,
    shown: Array,
    keyed: bool,
    rounds: int,
) -> bool:
    """Narrow in place along every line of every axis with a total; stop at the first pinned cell.

    Where the rounds run out before nothing changes any more, a cell may be pinned, and counts as such.
    """
    line = np.empty(shape.max(), dtype=np.int64)
    for _ in range(rounds):
        changed = False
        outer, stride = 1, low.size
        for axis in range(shape.size):
            n = shape[axis]
            stride //= n
            total = places[axis]
            if total >= 0:
                for o in range(outer):
                    for i in range(stride):
                        start = o * n * stride + i
                        line[0] = start + total * stride
                        for k in range(n):
                            if k != total:
                                line[k + 1 if k < total else k] = start + k * stride
                        outcome = _narrow(low, high, open_cells, shown, keyed, line, 0, n)
                        if outcome == 2:
                            return True
                        changed = changed or outcome == 1
            outer *= n
        if not changed:
            return False
    return True


@compiled
def narrow_relations(  # pragma: no cover
    low: Array,
    high: Array,
    open_cells: Array,
    indptr: Array,
    cells: Array,
    shown: Array,
    keyed: bool,
    rounds: int,
) -> bool:
    """The same for stored relations, the total first in each."""
    for _ in range(rounds):
        changed = False
        for row in range(indptr.size - 1):
            outcome = _narrow(
                low, high, open_cells, shown, keyed, cells, indptr[row], indptr[row + 1]
            )
            if outcome == 2:
                return True
            changed = changed or outcome == 1
        if not changed:
            return False
    return True


@compiled
def _narrow(  # pragma: no cover
    low: Array,
    high: Array,
    open_cells: Array,
    shown: Array,
    keyed: bool,
    line: Array,
    begin: int,
    end: int,
) -> int:
    """Narrow a total and its parts: 0 if nothing changed, 1 if something did, 2 if a cell is pinned."""
    changed = 0
    t = line[begin]
    least, most = 0, 0
    for k in range(begin + 1, end):
        least += low[line[k]]
        most += high[line[k]]
    if least > low[t]:
        low[t] = least
        changed = 1
    if most < high[t]:
        high[t] = most
        changed = 1
    if least < most:
        floor, ceiling = low[t], high[t]
        for k in range(begin + 1, end):
            c = line[k]
            below = floor - (most - high[c])
            above = ceiling - (least - low[c])
            if below > low[c] or above < high[c]:
                # The earlier sums are kept, which are valid and only wider.
                low[c] = max(low[c], below)
                high[c] = min(high[c], above)
                changed = 1
                if low[c] == high[c] and open_cells[c]:
                    return 2
    if not keyed:
        return changed
    filled = 0  # parts that may hold somebody
    for k in range(begin + 1, end):
        filled += 1 if high[line[k]] > 0 else 0
    for k in range(begin + 1, end):
        c = line[k]
        if shown[c] == shown[t]:
            continue
        # Their records differ, so another part is not empty.
        if low[c] + 1 > low[t]:
            low[t] = low[c] + 1
            changed = 1
        if high[t] - 1 < high[c]:
            high[c] = high[t] - 1
            changed = 1
            if low[c] == high[c] and open_cells[c]:
                return 2
        if filled - (1 if high[c] > 0 else 0) == 1:
            for j in range(begin + 1, end):
                other = line[j]
                if j != k and high[other] > 0 and low[other] < 1:
                    low[other] = 1
                    changed = 1
                    if low[other] == high[other] and open_cells[other]:
                        return 2
    return changed
