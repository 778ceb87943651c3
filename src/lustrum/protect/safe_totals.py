"""Totals protected on their own, kept from giving inner cells away.

When every cell of a table is perturbed by itself, totals tell about parts: 3 and 3 beside a total of
0, all rounded to base 3, can only be 1 and 1. A table with such a line shows, for all its totals, the sums of
its published inner cells instead. To replace the telling total alone would tell just as much: a reader
who sees that the total of 3 and 3 was replaced knows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, TableAxis
from lustrum.model.table import inner_cells
from lustrum.structure import Relations, Structure, propagate

__all__ = ["Published", "TotalsGuard", "safe_totals"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Published:
    """Published values and, for each, the least and the most that the true value can be."""

    values: Ints
    low: Ints
    high: Ints


def safe_totals(axes: Sequence[TableAxis], perturbed: Ints, channel: Channel) -> Published:
    """Keep all totals as they were perturbed, or add all of them up if one pins an inner cell."""
    return TotalsGuard(tuple(axes)).publish(perturbed, channel)


@dataclass(frozen=True)
class TotalsGuard:
    """The totals of one shape of table; made once, it serves any number of tables of that shape."""

    axes: tuple[TableAxis, ...]

    @cached_property
    def _inner(self) -> Mask:
        return inner_cells(self.axes)

    @cached_property
    def _reach(self) -> _Reach:
        return _Reach.of(self.axes, self._inner)

    @cached_property
    def _relations(self) -> Relations:
        return Structure.of_tables([self.axes]).relations

    def publish(self, perturbed: Ints, channel: Channel) -> Published:
        """Decide by the perturbed values alone."""
        low, high = channel.support(perturbed)
        if self._inner.all():
            return Published(perturbed, low, high)
        covered = self._reach.covered
        sums, least, most = (self._reach.added_up(a) for a in (perturbed, low, high))
        if not np.array_equal(perturbed[covered], sums[covered]):
            tight = propagate(self._relations, low.ravel(), high.ravel())
            open_cells = (self._inner & (low < high)).ravel()
            if not (open_cells & (tight.low == tight.high)).any():
                return Published(perturbed, low, high)
        # Totals that all add up can have come about both ways; whoever reads them must reckon with both.
        values = np.where(covered, sums, perturbed)
        natural_low, natural_high = channel.support(values)
        return Published(
            values,
            np.where(covered, np.minimum(natural_low, least), low),
            np.where(covered, np.maximum(natural_high, most), high),
        )


@dataclass(frozen=True)
class _Reach:
    """Which totals are sums of inner cells, and how, axis by axis."""

    below: tuple[dict[int, npt.NDArray[np.intp]], ...]
    covered: Mask

    @classmethod
    def of(cls, axes: Sequence[TableAxis], inner: Mask) -> _Reach:
        """Find, for every total along an axis, the inner categories below it."""
        below, covered = [], np.ones((), dtype=np.bool_)
        for axis in axes:
            parts = np.flatnonzero(axis.inner)
            sets = [axis.categories[i].member_set for i in parts]
            held: dict[int, npt.NDArray[np.intp]] = {}
            whole = axis.inner.copy()
            for row in np.flatnonzero(~axis.inner).tolist():
                own = axis.categories[row].member_set
                inside = [i for i, part in enumerate(sets) if part <= own]
                size = sum(len(sets[i]) for i in inside)
                whole[row] = size == len(own) == len(frozenset().union(*(sets[i] for i in inside)))
                held[row] = parts[inside]
            below.append(held)
            covered = covered[..., None] & whole
        return cls(tuple(below), np.asarray(covered) & ~inner)

    def added_up(self, array: Ints) -> Ints:
        """For every cell, the sum over the inner cells below it."""
        out = array.copy()
        for position, held in enumerate(self.below):
            moved = np.moveaxis(out, position, 0)
            for row, parts in held.items():
                moved[row] = moved[parts].sum(axis=0)
        return out
