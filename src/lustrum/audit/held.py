"""What follows with certainty from all tables that some readers hold: bounds passed from table to table.

A true count is the sum of its parts, whatever was shown of either. Where noise follows the keys of people there
is one rule more: the same people always show the same number, so a population that shows another number than
one of its parts has at least one person more. Bounds are true however early they are left; they are not the
sharpest that integer programming would find.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lustrum.audit.grids import EMPTY, GridNesting, PopulationGrid
from lustrum.audit.overlap import Holdings
from lustrum.model import Channel
from lustrum.model.arrays import Ints, Mask

_ROUNDS = 60
_WIDE = 2**40
"""More than there are people; sums of such numbers stay far below what 64 bits hold."""


@dataclass(frozen=True)
class NarrowCount:
    """A population whose true count is known within few values: a cell, or what a finer table leaves of one."""

    cell: tuple[tuple[str, int], ...]
    """Variables and the finest codes that count, as bits."""
    low: int
    high: int
    left_of: tuple[tuple[str, int], ...] | None = None
    """For the rest of a cell: the codes of the finer table that are left out of it."""

    @property
    def certain(self) -> bool:
        return self.low == self.high


class HeldBounds:
    """The least and the most that each population of some holdings can count."""

    def __init__(self, holdings: Holdings, channel: Channel) -> None:
        self._everything, structure = holdings.everything, holdings.structure
        self.grids = [
            g for there in holdings.grids.values() for g in there if g.numbers is not None
        ]
        self.low: list[Ints] = []
        self.high: list[Ints] = []
        for grid in self.grids:
            assert grid.numbers is not None
            low, high = channel.support(np.maximum(grid.numbers, 0).ravel())
            unknown = (grid.numbers < 0).ravel()
            empty = (grid.numbers == EMPTY).ravel()
            self.low.append(np.where(unknown, 0, low).reshape(grid.shape))
            high = np.where(empty, 0, np.where(unknown, _WIDE, high))
            self.high.append(high.reshape(grid.shape))
        self._nested = [
            (at, over, nesting)
            for at, coarse in enumerate(self.grids)
            for over, fine in enumerate(self.grids)
            if at != over
            and structure.may_nest(coarse.names, fine.names)
            and (nesting := GridNesting.of(coarse, fine, structure)) is not None
        ]
        self.rounds = next((n for n in range(_ROUNDS) if not self._passed()), _ROUNDS)

    def _passed(self) -> bool:
        """Pass bounds once along all sums; whether anything moved."""
        before = sum(int(low.sum()) for low in self.low) - sum(
            int(high.sum()) for high in self.high
        )
        for at, over, nesting in self._nested:
            self._along(at, over, nesting)
        after = sum(int(low.sum()) for low in self.low) - sum(int(high.sum()) for high in self.high)
        return after != before

    def _along(self, at: int, over: int, nesting: GridNesting) -> None:
        low, high, least, most = self.low[at], self.high[at], self.low[over], self.high[over]
        inside = np.broadcast_to(nesting.spread(np.ones(low.shape)) > 0, most.shape)
        lows = nesting.sums(least.astype(np.float64)).astype(np.int64)
        highs = nesting.sums(most.astype(np.float64)).astype(np.int64)
        np.maximum(low, lows, out=low)
        whole = ~nesting.rest
        np.minimum(high, np.where(whole, highs, _WIDE), out=high)
        # What is left for one part once all others take their least, and the other way round.
        room = _spread(nesting, high) - (_spread(nesting, lows) - least)
        np.minimum(most, np.where(inside, np.maximum(room, least), most), out=most)
        need = _spread(nesting, low) - (_spread(nesting, highs) - most)
        covered = inside & (_spread(nesting, whole.astype(np.int64)) > 0)
        np.maximum(least, np.where(covered, np.minimum(need, most), least), out=least)
        self._apart(at, over, nesting, inside)

    def _apart(self, at: int, over: int, nesting: GridNesting, inside: Mask) -> None:
        """Other numbers are other people: the larger population has at least one person more."""
        coarse, fine = self.grids[at].numbers, self.grids[over].numbers
        assert coarse is not None
        assert fine is not None
        other = (
            inside
            & (fine >= 0)
            & (_spread(nesting, coarse) >= 0)
            & (_spread(nesting, coarse) != fine)
        )
        limit = _spread(nesting, self.high[at]) - 1
        most = self.high[over]
        np.minimum(most, np.where(other, np.maximum(limit, self.low[over]), most), out=most)
        more = np.where(other, self.low[over] + 1, 0)
        least = np.zeros(self.low[at].size, dtype=np.int64)
        places = np.broadcast_to(_places(nesting), fine.shape)
        np.maximum.at(least, places[inside], more[inside])
        np.maximum(self.low[at], least.reshape(self.low[at].shape), out=self.low[at])

    def narrow(self, small: int, values: int) -> Iterator[NarrowCount]:
        """Populations that may be small and leave at most so many values open, but not certainly nobody."""
        for grid, low, high in zip(self.grids, self.low, self.high, strict=True):
            chosen = (high >= 1) & (low <= small) & (high - low < values) & (high <= small + values)
            for index in np.argwhere(chosen & (grid.numbers != EMPTY)):
                place = tuple(index.tolist())
                yield NarrowCount(_cell(grid, place), int(low[place]), int(high[place]))
        for at, over, nesting in self._nested:
            lows = nesting.sums(self.low[over].astype(np.float64)).astype(np.int64)
            highs = nesting.sums(self.high[over].astype(np.float64)).astype(np.int64)
            parts = nesting.sums(np.ones(self.grids[over].shape))
            least = np.maximum(self.low[at] - highs, 0)
            most = self.high[at] - lows
            chosen = nesting.rest & (parts > 0) & (most >= 1) & (least <= small)
            chosen &= (most - least < values) & (most <= small + values)
            fine = self.grids[over]
            left = tuple(
                (axis.variable, axis.span)
                for axis in fine.axes
                if axis.span != self._everything[axis.variable]
            )
            for index in np.argwhere(chosen):
                place = tuple(index.tolist())
                cell = _cell(self.grids[at], place)
                yield NarrowCount(cell, int(least[place]), int(most[place]), left)


def _cell(grid: PopulationGrid, place: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
    return tuple((axis.variable, axis.parts[at]) for axis, at in zip(grid.axes, place, strict=True))


def _spread(nesting: GridNesting, values: Ints) -> Ints:
    return nesting.spread(values.astype(np.float64)).astype(np.int64)


def _places(nesting: GridNesting) -> Ints:
    """The flat place of the coarse cell around each fine one."""
    if nesting.inside is not None:
        return nesting.inside
    size = int(np.prod(nesting.coarse.shape, dtype=np.int64))
    return _spread(nesting, np.arange(size).reshape(nesting.coarse.shape))
