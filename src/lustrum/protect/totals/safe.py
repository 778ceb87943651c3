"""Independently protected totals that must not disclose inner cells.

When every cell of a table is perturbed by itself, totals reveal something about their parts: 3 and 3 beside
a total of 0, all rounded to base 3, can only be 1 and 1. A table with such a line shows none of its
perturbed totals, because a reader who sees that only the total of 3 and 3 is missing would know why. A
table whose totals happen to add up is treated in the same way, so that a missing total has two
explanations.

What replaces them depends on the source of randomness. With record keys, the same people have one number in
every table, so the totals are hidden, never replaced by other numbers. With a generator, a table stands
alone, and its totals become the sums of its published inner cells. A reader could add those up as well, so
both reveal the same.

Keys reveal more. The same records always show the same number, so if a total shows another number than one
of its parts, another part is not empty: 0 and 3 beside a total of 0 can only be 1 and 1 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from lustrum.model import TableAxis
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.table import inner_cells
from lustrum.model.text import Message, say
from lustrum.numeric.compiled import compiled
from lustrum.numeric.structure import Relations, Structure
from lustrum.protect.totals.summed import PublishedSums, Totals

_ROUNDS = 1000

# Tables whose axes are plain lists of categories with or without their total: relations are lines.
#
# The relations need not be stored: a loop over the lines adds totals up, or narrows bounds until nothing
# changes, even in tables of a million cells.


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


class Supported(Protocol):
    """A channel, as far as its bounds: which true values can lead to a published one."""

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The smallest and the largest true value that can lead to each published one."""
        ...


def safe_totals(
    axes: Sequence[TableAxis],
    perturbed: Ints,
    channel: Supported,
    structural: Mask | None = None,
    *,
    keyed: bool = False,
    hide: bool | None = None,
) -> PublishedSums:
    """Keep all totals as they were perturbed, or none of them if one discloses an inner cell.

    The guard takes into account that everybody knows ``structural`` cells to be empty and that, if the
    method is ``keyed``, a total of the same records as one of its parts shows the same number. Totals that
    are not kept are hidden with ``hide``, which is the default for keyed methods, and added up otherwise.
    """
    return TotalsGuard(tuple(axes)).publish(perturbed, channel, structural, keyed=keyed, hide=hide)


def hidden_totals() -> Message:
    """The note for readers about hidden totals."""
    return say(
        "Totals are protected on their own, so the numbers may not add up to them. A table does not "
        "show its totals if they add up, or if they would disclose a number."
    )


@dataclass(frozen=True)
class TotalsGuard:
    """The totals of one table layout, for any number of tables of that layout."""

    axes: tuple[TableAxis, ...]

    @cached_property
    def _inner(self) -> Mask:
        return inner_cells(self.axes)

    @cached_property
    def _lines(self) -> list[int] | None:
        return line_totals(self.axes)

    @cached_property
    def _totals(self) -> Totals:
        return Totals.of(self.axes)

    @cached_property
    def _relations(self) -> Relations:
        """Every total with its parts; within one table all relations are of this kind."""
        relations = Structure.of_tables([self.axes]).relations
        assert bool((relations.totals >= 0).all())
        return relations

    def publish(
        self,
        perturbed: Ints,
        channel: Supported,
        structural: Mask | None = None,
        *,
        keyed: bool = False,
        hide: bool | None = None,
    ) -> PublishedSums:
        """Publish a table; the decision depends on the perturbed values alone."""
        known = _Known(channel, structural)
        low, high = known.support(perturbed)
        if self._inner.all():
            return PublishedSums(perturbed, low, high)
        if self._lines is None:
            self._totals.need_parts(self.axes)
        sums = self._added_up(perturbed)
        shown = perturbed if keyed else None
        if not np.array_equal(sums, perturbed) and not self._determines_a_cell(low, high, shown):
            return PublishedSums(perturbed, low, high)
        totals = ~self._inner  # all parts of each are in the table
        if keyed if hide is None else hide:
            return PublishedSums(
                np.where(totals, 0, perturbed), self._added_up(low), self._added_up(high), totals
            )
        # Totals that all add up can be perturbed ones or sums; a reader must allow for both.
        natural_low, natural_high = known.support(sums)
        return PublishedSums(
            sums,
            np.where(totals, np.minimum(natural_low, self._added_up(low)), low),
            np.where(totals, np.maximum(natural_high, self._added_up(high)), high),
        )

    def _added_up(self, array: Ints) -> Ints:
        """All totals that inner cells cover, as their sums."""
        if self._lines is not None:
            return added_up(array, self._lines)
        return self._totals.added_up(array)

    def _determines_a_cell(self, low: Ints, high: Ints, shown: Ints | None) -> bool:
        """Whether the totals determine an inner cell that has several possible values by itself."""
        open_cells = self._inner & (low < high)
        if self._lines is not None:
            return pinned(low, high, open_cells, self._lines, shown)
        relations = self._relations
        return bool(
            narrow_relations(
                low.flatten(),
                high.flatten(),
                open_cells.ravel(),
                relations.indptr,
                relations.cells,
                low.ravel() if shown is None else shown.ravel(),
                shown is not None,
                _ROUNDS,
            )
        )


@dataclass(frozen=True)
class _Known:
    """A channel, and the cells of one table that are known to be empty."""

    channel: Supported
    structural: Mask | None

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        low, high = self.channel.support(published)
        if self.structural is None:
            return low, high
        return np.where(self.structural, 0, low), np.where(self.structural, 0, high)
