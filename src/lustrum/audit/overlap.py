"""How many small counts a new table is expected to make certain, together with what its readers hold already.

A table is a *grid*: along each variable disjoint categories, each a set of finest codes. Two grids tell more
together than each by itself where one is finer: a cell ``B`` of the coarser one is the sum of cells ``A1``,
``A2`` and so on of the finer one and of a rest ``R`` that no grid shows. Each shown number leaves an interval
open, so a part ``X`` of ``B`` is bounded by

    ``X <= high(B) - sum of low(A) over all other parts A``

and becomes certain where ``B`` is at the upper end of its interval and each other part at the lower end of its
own. An empty part is at its lower end always, and any other with the chance ``q`` that the method's noise is at
an end. With independent noise for different people the chance for one part is therefore

    ``P(X is small) * q * product over other parts of (P(A = 0) + P(A > 0) * q)``

and the sum over all parts, cells and pairs of grids bounds the number of small counts that become certain, in
the mean, from above. Probabilities of true counts follow from what the readers hold: from numbers that were
shown, and for a table that was not looked at yet from those of the finest coarser table, divided by the shares
of the other variables, each with the wide uncertainty of a gamma mixture. Nothing else enters: two files that
agree in all that was shown give the same figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from operator import or_

import numpy as np

from lustrum.model import Channel
from lustrum.model.arrays import Floats, Ints, Mask

HIDDEN = -1
"""Stands for a number that is not shown."""

EMPTY = -2
"""Stands for a cell that everybody knows to be empty."""

SHAPE = 0.5
"""Shape of the gamma mixture around an expected count: at this value more than half of it lies near zero."""

_LARGEST = 60  # shown numbers up to this are weighed by all true counts that lead to them
_UNKNOWN = 0.5  # chance that a count is empty, and that it is small, where nothing is known of it


@dataclass(frozen=True)
class OpenNoise:
    """What the method leaves open: the chance to be at an end, and what a shown number says of small counts."""

    at_end: float
    empty: Floats
    small: Floats
    lowest: Floats

    @classmethod
    def of(cls, channels: Sequence[Channel], small: int) -> OpenNoise:
        """The noise of a method, by its channels; the worst of them where there are several."""
        found = [_noise(channel, small) for channel in channels]
        return cls(
            max(one.at_end for one in found),
            *(
                np.max([getattr(one, name) for one in found], axis=0)
                for name in ("empty", "small", "lowest")
            ),
        )


def _noise(channel: Channel, small: int) -> OpenNoise:
    true = np.arange(3 * _LARGEST, dtype=np.int64)
    moves = channel.transitions(true)
    low, high = channel.support(moves.published)
    at = true[moves.origin]
    large = (at >= _LARGEST) & (at < 2 * _LARGEST)
    ends = [float(moves.probability[large & (at == end)].sum()) / _LARGEST for end in (low, high)]
    shown = (moves.published >= 0) & (moves.published < _LARGEST)

    def share(chosen: Mask) -> Floats:
        part = np.bincount(
            moves.published[shown & chosen], moves.probability[shown & chosen], _LARGEST
        )
        whole = np.bincount(moves.published[shown], moves.probability[shown], _LARGEST)
        return np.divide(part, whole, out=np.zeros(_LARGEST), where=whole > 0)

    lowest = share(at == low)
    # How many counts are empty is for nobody to say: one that may be empty is taken to be.
    lowest[share(at == 0) > 0] = 1.0
    return OpenNoise(max(ends), share(at == 0), share((at >= 1) & (at <= small)), lowest)


@dataclass(frozen=True)
class GridAxis:
    """A variable with disjoint categories, each a set of finest codes as bits."""

    variable: str
    parts: tuple[int, ...]

    @cached_property
    def span(self) -> int:
        """All codes of the categories."""
        return reduce(or_, self.parts)


@dataclass(frozen=True)
class PopulationGrid:
    """Populations side by side: all combinations of categories, by variables in the order of their names.

    A variable of which everybody counts is left out. ``numbers`` are those that were shown, ``HIDDEN`` where
    none was; None where nothing was shown, because a rule looked at the numbers and refused them.
    """

    axes: tuple[GridAxis, ...]
    numbers: Ints | None = field(default=None, compare=False)

    @cached_property
    def names(self) -> frozenset[str]:
        """Its variables."""
        return frozenset(axis.variable for axis in self.axes)

    @cached_property
    def by_name(self) -> Mapping[str, GridAxis]:
        """Its axes."""
        return {axis.variable: axis for axis in self.axes}

    @property
    def shape(self) -> tuple[int, ...]:
        """How many categories there are along each axis."""
        return tuple(len(axis.parts) for axis in self.axes)

    def holds(self, other: PopulationGrid) -> bool:
        """Whether every population of another grid is one of these."""
        return self.names == other.names and all(
            set(axis.parts) <= set(self.by_name[axis.variable].parts) for axis in other.axes
        )


@dataclass(frozen=True)
class _GridParts:
    """Of each cell: the chance to be small, the logarithm of that to be at its lower end, and the mean."""

    small: Floats
    lowest: Floats
    expected: Floats | None


@dataclass(frozen=True)
class _Nesting:
    """The cells of a finer grid within those of a coarser one."""

    coarse: PopulationGrid
    fine: PopulationGrid
    inside: Ints
    """For each fine cell the flat place of the coarse cell around it, or -1."""
    rest: Mask
    """The coarse cells that the fine ones do not cover."""

    @classmethod
    def of(
        cls, coarse: PopulationGrid, fine: PopulationGrid, everything: Mapping[str, int]
    ) -> _Nesting | None:
        """How two grids nest; None where they do not, or no population of them differs."""
        if not coarse.names <= fine.names:
            return None
        places: list[Ints] = []
        covered: list[Mask] = []
        whole = True
        for axis in fine.axes:
            around = coarse.by_name.get(axis.variable)
            if around is None:
                places.append(np.zeros(len(axis.parts), dtype=np.int64))
                whole &= axis.span == everything[axis.variable]
                continue
            if not around.span & axis.span:
                return None
            place, full = _placed(axis.parts, around.parts)
            if (place < 0).all():
                return None
            places.append(place)
            covered.append(full)
        inside = np.zeros((1,) * len(fine.axes) if fine.axes else (), dtype=np.int64)
        missing = np.zeros_like(inside, dtype=np.bool_)
        for at, axis in enumerate(fine.axes):
            around = coarse.by_name.get(axis.variable)
            if around is not None:
                along = [1] * len(fine.axes)
                along[at] = -1
                inside = inside * len(around.parts) + places[at].reshape(along)
                missing = missing | (places[at] < 0).reshape(along)
        inside = np.where(missing, -1, inside)
        inside = np.ascontiguousarray(np.broadcast_to(inside, fine.shape))
        cover: Mask = np.full(coarse.shape, whole)
        for at, along_axis in enumerate(covered):
            shape = [1] * len(coarse.axes)
            shape[at] = -1
            cover = cover & along_axis.reshape(shape)
        found = cls(coarse, fine, inside, ~cover)
        size = int(np.prod(coarse.shape, dtype=np.int64))
        parts = np.bincount(inside[inside >= 0].ravel(), minlength=size)
        if not bool(((parts > 1) | ((parts == 1) & found.rest.ravel())).any()):
            return None
        return found


@lru_cache(maxsize=4096)
def _placed(parts: tuple[int, ...], around: tuple[int, ...]) -> tuple[Ints, Mask]:
    """In which category each category lies, or -1, and which of those are covered."""
    place = np.full(len(parts), -1, dtype=np.int64)
    union = [0] * len(around)
    for at, part in enumerate(parts):
        for over, outer in enumerate(around):
            if part & outer == part:
                place[at] = over
                union[over] |= part
                break
    return place, np.array(
        [u == outer for u, outer in zip(union, around, strict=True)], dtype=np.bool_
    )


@dataclass
class Holdings:
    """All grids that some readers hold of one dataset, and what is expected of the others."""

    everything: Mapping[str, int]
    noise: OpenNoise
    small: int = 2
    grids: dict[frozenset[str], list[PopulationGrid]] = field(default_factory=dict)
    shares: dict[str, Floats] = field(default_factory=dict)
    _details: dict[str, int] = field(default_factory=dict)
    _judged: dict[int, tuple[PopulationGrid, _GridParts]] = field(default_factory=dict)
    """What was worked out for one question; a grid stands beside it, so that no other takes its number."""

    def add(self, grids: Iterable[PopulationGrid]) -> None:
        """Take in what was released, or looked at."""
        for grid in grids:
            there = self.grids.setdefault(grid.names, [])
            there[:] = [one for one in there if not (one.axes == grid.axes and one.numbers is None)]
            if not any(one.axes == grid.axes for one in there):
                there.append(grid)
                self._learn(grid)

    def expected_certain(self, grids: Sequence[PopulationGrid]) -> float:
        """How many small counts at most, in the mean, new grids make certain; nothing is taken in."""
        taken: list[tuple[list[PopulationGrid], PopulationGrid]] = []
        total = 0.0
        self._judged.clear()
        try:
            for grid in sorted(grids, key=lambda one: (len(one.axes), one.shape)):
                there = self.grids.setdefault(grid.names, [])
                if any(one.holds(grid) for one in there):
                    continue
                for whole in (grid, *self._joined(grid)):
                    total += sum(self._pair(nesting) for nesting in self._nestings(whole))
                new = PopulationGrid(grid.axes)
                there.append(new)
                taken.append((there, new))
        finally:
            for there, new in taken:
                there[:] = [one for one in there if one is not new]
        return total

    def _joined(self, grid: PopulationGrid) -> Iterator[PopulationGrid]:
        """The grid with those beside it along one variable, which together tell more than one by one."""
        for at, axis in enumerate(grid.axes):
            parts = list(axis.parts)
            for other in self.grids.get(grid.names, ()):
                if (
                    other.axes[:at] == grid.axes[:at]
                    and other.axes[at + 1 :] == grid.axes[at + 1 :]
                ):
                    span = reduce(or_, parts)
                    parts += [part for part in other.axes[at].parts if not part & span]
            if len(parts) > len(axis.parts):
                yield PopulationGrid(
                    (*grid.axes[:at], GridAxis(axis.variable, tuple(parts)), *grid.axes[at + 1 :])
                )

    def _nestings(self, grid: PopulationGrid) -> Iterator[_Nesting]:
        for names, there in self.grids.items():
            if not (names <= grid.names or names >= grid.names):
                continue
            for other in there:
                for coarse, fine in ((other, grid), (grid, other)):
                    nesting = _Nesting.of(coarse, fine, self.everything)
                    if nesting is not None:
                        yield nesting

    def _pair(self, nesting: _Nesting) -> float:
        """The mean number of small parts that one pair of grids makes certain, at most."""
        found = self._parts(nesting.fine)
        expected = found.expected
        at_end = self.noise.at_end
        inside, size = nesting.inside.ravel(), nesting.rest.size
        kept = inside >= 0
        place = inside[kept]
        logs = found.lowest.ravel()[kept]
        sums = np.bincount(place, logs, size)
        parts = np.bincount(place, minlength=size)
        rest = nesting.rest.ravel()
        others = (parts[place] > 1) | rest[place]
        slack = np.where(rest[place], self._open_rest(nesting, expected, place, kept)[place], 1.0)
        chance = found.small.ravel()[kept] * at_end * np.exp(sums[place] - logs) * slack
        total = float(chance[others].sum())
        if rest.any():
            gone = self._small_rest(nesting, expected, place, kept)
            total += float((gone * at_end * np.exp(sums))[rest & (parts > 0)].sum())
        return total

    def _rest(self, nesting: _Nesting, expected: Floats | None, place: Ints, kept: Mask) -> Floats:
        """How many people are expected in the part of each coarse cell that no fine cell shows."""
        around = self._parts(nesting.coarse).expected
        if around is None or expected is None:
            return np.full(nesting.rest.size, np.nan)
        shown = np.bincount(place, expected.ravel()[kept], nesting.rest.size)
        return np.maximum(around.ravel() - shown, 0.5)

    def _open_rest(
        self, nesting: _Nesting, expected: Floats | None, place: Ints, kept: Mask
    ) -> Floats:
        """The chance that nobody is in the rest, which no number shows."""
        rest = self._rest(nesting, expected, place, kept)
        return np.where(np.isnan(rest), _UNKNOWN, _empty(np.nan_to_num(rest)))

    def _small_rest(
        self, nesting: _Nesting, expected: Floats | None, place: Ints, kept: Mask
    ) -> Floats:
        rest = self._rest(nesting, expected, place, kept)
        return np.where(np.isnan(rest), _UNKNOWN, _small(np.nan_to_num(rest), self.small))

    def _parts(self, grid: PopulationGrid) -> _GridParts:
        """Of each cell the chance that it is small, that it is at its lower end, and what is expected of it."""
        known = self._judged.get(id(grid))
        if known is None:
            known = self._judged[id(grid)] = (grid, self._weighed(grid))
        return known[1]

    def _weighed(self, grid: PopulationGrid) -> _GridParts:
        expected = self._expected(grid)
        if expected is None:
            unknown = np.full(grid.shape, _UNKNOWN)
            small, lowest = unknown, unknown + (1 - unknown) * self.noise.at_end
        else:
            empty = _empty(expected)
            small, lowest = _small(expected, self.small), empty + (1 - empty) * self.noise.at_end
        held = grid.numbers
        if held is not None:
            shown = held >= 0
            at = np.clip(held, 0, _LARGEST - 1)
            large = held >= _LARGEST
            small = np.where(shown, np.where(large, 0.0, self.noise.small[at]), small)
            end = np.where(
                large, self.noise.at_end, np.maximum(self.noise.lowest[at], self.noise.at_end)
            )
            lowest = np.where(held == EMPTY, 1.0, np.where(shown, end, lowest))
            small = np.where(held == EMPTY, 0.0, small)
        return _GridParts(small, np.log(np.maximum(lowest, 1e-12)), expected)

    # --- What is expected of a grid, by what was shown of others

    def _learn(self, grid: PopulationGrid) -> None:
        """Shares of the categories of a variable, from a table of everybody."""
        if grid.numbers is None or any(
            axis.span != self.everything[axis.variable] for axis in grid.axes
        ):
            return
        numbers = np.maximum(grid.numbers, 0).astype(np.float64)
        if numbers.sum() <= 0:
            return
        for at, axis in enumerate(grid.axes):
            if len(axis.parts) <= self._details.get(axis.variable, 0):
                continue
            along = numbers.sum(axis=tuple(i for i in range(len(grid.axes)) if i != at))
            share = np.zeros(self.everything[axis.variable].bit_length())
            for part, number in zip(axis.parts, along, strict=True):
                share[_bits(part)] = number / part.bit_count()
            self.shares[axis.variable] = share / share.sum()
            self._details[axis.variable] = len(axis.parts)

    def _expected(self, grid: PopulationGrid) -> Floats | None:
        """What readers expect of each cell: what they were shown, or shares of the nearest coarser table."""
        if grid.numbers is not None and bool((grid.numbers != HIDDEN).all()):
            return np.maximum(grid.numbers, 0).astype(np.float64)
        best: tuple[int, int] = (-1, -1)
        found: Floats | None = None
        for names, there in self.grids.items():
            if not names <= grid.names:
                continue
            for other in there:
                rank = (len(names), int(np.prod(other.shape, dtype=np.int64)))
                if other.numbers is None or rank <= best:
                    continue
                drawn = self._drawn(grid, other)
                if drawn is not None:
                    best, found = rank, drawn
        return found

    def _drawn(self, grid: PopulationGrid, other: PopulationGrid) -> Floats | None:
        """The cells of a grid by those of a coarser one, in proportion to shares."""
        assert other.numbers is not None
        numbers = np.where(other.numbers == HIDDEN, 1, np.maximum(other.numbers, 0)).astype(
            np.float64
        )
        picks: list[Ints] = []
        factor = np.ones((1,) * len(grid.axes))
        for at, axis in enumerate(grid.axes):
            around = other.by_name.get(axis.variable)
            outer = (self.everything[axis.variable],) if around is None else around.parts
            place = [
                next((i for i, o in enumerate(outer) if part & o == part), -1)
                for part in axis.parts
            ]
            if -1 in place:
                return None
            weights = np.ones(len(axis.parts))
            if any(part != outer[i] for part, i in zip(axis.parts, place, strict=True)):
                share = self.shares.get(axis.variable)
                if (
                    share is None
                ):  # nothing is known of the variable: all codes alike, as widely as any
                    share = np.ones(self.everything[axis.variable].bit_length())
                of = [float(share[_bits(o)].sum()) for o in outer]
                weights = np.array(
                    [
                        float(share[_bits(part)].sum()) / of[i] if of[i] > 0 else 0.0
                        for part, i in zip(axis.parts, place, strict=True)
                    ]
                )
            along = [1] * len(grid.axes)
            along[at] = -1
            factor = factor * weights.reshape(along)
            if around is not None:
                picks.append(np.array(place, dtype=np.int64))
        taken = numbers[np.ix_(*picks)] if picks else numbers
        shape = [len(axis.parts) if axis.variable in other.names else 1 for axis in grid.axes]
        return np.asarray(taken.reshape(shape) * factor)


def _bits(part: int) -> list[int]:
    return [at for at in range(part.bit_length()) if part >> at & 1]


def _empty(expected: Floats) -> Floats:
    return np.asarray((SHAPE / (SHAPE + expected)) ** SHAPE)


def _small(expected: Floats, most: int) -> Floats:
    """The chance of 1 to ``most`` people under the gamma mixture."""
    term = _empty(expected)
    total = np.zeros_like(term)
    for count in range(1, most + 1):
        term = term * (count - 1 + SHAPE) / count * expected / (SHAPE + expected)
        total += term
    return total


__all__ = ["EMPTY", "HIDDEN", "GridAxis", "Holdings", "OpenNoise", "PopulationGrid"]
