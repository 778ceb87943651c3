"""Totals protected on their own, kept from giving inner cells away.

When every cell of a table is perturbed by itself, totals tell about parts: 3 and 3 beside a total of
0, all rounded to base 3, can only be 1 and 1. A table with such a line shows, for all its totals, the sums of
its published inner cells instead. To replace the telling total alone would tell just as much: a reader
who sees that the total of 3 and 3 was replaced knows why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model import Channel, TableAxis
from lustrum.model.table import inner_cells
from lustrum.structure import Structure, propagate

__all__ = ["Published", "safe_totals"]

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
    inner = inner_cells(axes)
    low, high = channel.support(perturbed)
    if inner.all():
        return Published(perturbed, low, high)
    reach = _Reach.of(axes, inner)
    sums, least, most = (reach.added_up(a) for a in (perturbed, low, high))
    kept = np.array_equal(perturbed[reach.covered], sums[reach.covered])
    if not kept:
        relations = Structure.of_tables([axes]).relations
        tight = propagate(relations, low.ravel(), high.ravel())
        open_cells = inner.ravel() & (low < high).ravel()
        if not (open_cells & (tight.low == tight.high)).any():
            return Published(perturbed, low, high)
    # Totals that all add up can have come about both ways, and whoever reads them must reckon with both.
    values = np.where(reach.covered, sums, perturbed)
    natural_low, natural_high = channel.support(values)
    return Published(
        values,
        np.where(reach.covered, np.minimum(natural_low, least), low),
        np.where(reach.covered, np.maximum(natural_high, most), high),
    )


@dataclass(frozen=True)
class _Reach:
    """Which totals are sums of inner cells, and how, axis by axis."""

    below: tuple[Mask, ...]
    covered: Mask

    @classmethod
    def of(cls, axes: Sequence[TableAxis], inner: Mask) -> _Reach:
        below, covered = [], np.ones((), dtype=np.bool_)
        for axis in axes:
            sets = [c.member_set for c in axis.categories]
            held = np.zeros((len(sets), len(sets)), dtype=np.bool_)
            whole = np.zeros(len(sets), dtype=np.bool_)
            for row, own in enumerate(sets):
                if axis.inner[row]:
                    held[row, row] = whole[row] = True
                    continue
                held[row] = [bool(axis.inner[i]) and sets[i] <= own for i in range(len(sets))]
                chosen = [sets[i] for i in np.flatnonzero(held[row])]
                size = sum(len(s) for s in chosen)
                whole[row] = size == len(own) and len(frozenset().union(*chosen)) == size
            below.append(held)
            covered = covered[..., None] & whole
        return cls(tuple(below), np.asarray(covered) & ~inner)

    def added_up(self, array: Ints) -> Ints:
        """For every cell, the sum over the inner cells below it."""
        out = array
        for position, held in enumerate(self.below):
            moved = np.tensordot(held.astype(np.int64), out, axes=(1, position))
            out = np.moveaxis(moved, 0, position)
        return np.ascontiguousarray(out)
