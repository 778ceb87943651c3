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
from typing import Any

import numpy as np
import numpy.typing as npt

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

    @cached_property
    def those(self) -> frozenset[int]:
        """The categories, whatever their order."""
        return frozenset(self.parts)


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

    @cached_property
    def is_shown(self) -> bool:
        """Whether every number was shown."""
        return self.numbers is not None and bool((self.numbers != HIDDEN).all())

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many categories there are along each axis."""
        return tuple(len(axis.parts) for axis in self.axes)

    def holds(self, other: PopulationGrid) -> bool:
        """Whether every population of another grid is one of these."""
        return self.names == other.names and all(
            axis.those >= there.those for axis, there in zip(self.axes, other.axes, strict=True)
        )

    def beside(self, other: PopulationGrid) -> _Joined | None:
        """How the two are one grid, if they stand side by side along one variable."""
        apart = [at for at, (a, b) in enumerate(zip(self.axes, other.axes, strict=True)) if a != b]
        if len(apart) != 1 or self.axes[apart[0]].span & other.axes[apart[0]].span:
            return None
        return _Joined(self, other, apart[0])


@dataclass(frozen=True)
class _Joined:
    """Two grids side by side along one of their axes."""

    one: PopulationGrid
    other: PopulationGrid
    at: int

    @property
    def along(self) -> str:
        """The variable along which they stand."""
        return self.one.axes[self.at].variable

    def array(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Arrays of the two as one, by the order of the categories."""
        return np.concatenate((one, other), axis=self.at).take(self._order, axis=self.at)

    @cached_property
    def _order(self) -> list[int]:
        parts = self.one.axes[self.at].parts + self.other.axes[self.at].parts
        return sorted(range(len(parts)), key=lambda at: parts[at])

    def grid(self, *, numbers: bool) -> PopulationGrid:
        """The two as one."""
        parts = self.one.axes[self.at].parts + self.other.axes[self.at].parts
        axis = GridAxis(self.along, tuple(parts[at] for at in self._order))
        axes = (*self.one.axes[: self.at], axis, *self.one.axes[self.at + 1 :])
        both = self.one.numbers, self.other.numbers
        if not numbers or (both[0] is None and both[1] is None):
            return PopulationGrid(axes)
        shown = [
            np.full(grid.shape, HIDDEN) if grid.numbers is None else grid.numbers
            for grid in (self.one, self.other)
        ]
        return PopulationGrid(axes, self.array(*shown))


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
    inside: Ints | None
    """For each fine cell the flat place of the coarse cell around it, or -1; None where axes are the same."""
    rest: Mask
    """The coarse cells that the fine ones do not cover."""

    @classmethod
    def of(
        cls, coarse: PopulationGrid, fine: PopulationGrid, everything: Mapping[str, int]
    ) -> _Nesting | None:
        """How two grids nest; None where no cell of one lies in a cell of the other."""
        places: list[tuple[int, Ints, Mask]] = []
        whole = same = True
        for axis in fine.axes:
            around = coarse.by_name.get(axis.variable)
            if around is None:
                whole &= axis.span == everything[axis.variable]
                continue
            if not around.span & axis.span:
                return None
            place, full = _placed(axis.parts, around.parts)
            if (place < 0).all():
                return None
            same &= axis.parts == around.parts
            places.append((len(around.parts), place, full))
        cover: Mask = np.full((1,) * len(coarse.axes), whole)
        for at, (_, _, full) in enumerate(places):
            cover = cover & full.reshape(_along(at, len(places)))
        rest = ~np.broadcast_to(cover, coarse.shape)
        if same:
            return cls(coarse, fine, None, rest)
        inside = np.zeros((1,) * len(fine.axes), dtype=np.int64)
        missing = np.zeros((1,) * len(fine.axes), dtype=np.bool_)
        common = (at for at, axis in enumerate(fine.axes) if axis.variable in coarse.names)
        for at, (size, place, _) in zip(common, places, strict=True):
            along = place.reshape(_along(at, len(fine.axes)))
            inside = inside * size + along
            missing = missing | (along < 0)
        inside = np.broadcast_to(np.where(missing, -1, inside), fine.shape)
        return cls(coarse, fine, np.ascontiguousarray(inside), rest)

    @cached_property
    def _gone(self) -> tuple[int, ...]:
        return tuple(
            at for at, axis in enumerate(self.fine.axes) if axis.variable not in self.coarse.names
        )

    def sums(self, values: Floats) -> Floats:
        """The sums of fine cells within each coarse cell."""
        if self.inside is None:
            return np.asarray(values.sum(axis=self._gone))
        there = self.inside >= 0
        size = int(np.prod(self.coarse.shape, dtype=np.int64))
        found = np.bincount(self.inside[there], values[there], size)
        return np.asarray(found, dtype=np.float64).reshape(self.coarse.shape)

    def spread(self, values: Floats) -> Floats:
        """The value of the coarse cell around each fine one; 0 where there is none."""
        if self.inside is None:
            return np.asarray(np.expand_dims(values, self._gone))
        return np.where(self.inside >= 0, values.ravel()[self.inside], 0.0)


def _along(at: int, dimensions: int) -> tuple[int, ...]:
    """The shape of an array that runs along one of several axes."""
    return tuple(-1 if one == at else 1 for one in range(dimensions))


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


@lru_cache(maxsize=4096)
def _outside(parts: tuple[int, ...], span: int) -> tuple[int, int]:
    """How many categories lie outside of some codes, and all their codes."""
    out = [part for part in parts if not part & span]
    return len(out), reduce(or_, out, 0)


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
    """What was worked out for a grid, which stands beside it, so that no other takes its number."""
    _within: set[int] = field(default_factory=set)
    """The grids that are part of a larger one, while a question is judged."""
    _of_all: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, grids: Iterable[PopulationGrid]) -> None:
        """Take in what was released, or looked at."""
        for grid in grids:
            there = self.grids.setdefault(grid.names, [])
            there[:] = [one for one in there if not (one.axes == grid.axes and one.numbers is None)]
            if any(one.axes == grid.axes for one in there):
                continue
            self._learn(grid)
            joined = self._beside(grid)
            if joined is None:
                there.append(grid)
            else:
                there[:] = [one for one in there if one is not joined.other]
                there.append(joined.grid(numbers=True))

    def expected_certain(self, grids: Sequence[PopulationGrid]) -> float:
        """How many small counts at most, in the mean, new grids make certain; nothing is taken in."""
        before: dict[frozenset[str], list[PopulationGrid]] = {}
        total = 0.0
        held = {id(one) for there in self.grids.values() for one in there}
        self._judged = {k: v for k, v in self._judged.items() if k in held and v[0].is_shown}
        try:
            for grid in sorted(grids, key=lambda one: (len(one.axes), one.shape)):
                there = self.grids.setdefault(grid.names, [])
                if any(one.holds(grid) for one in there):
                    continue
                joined = self._beside(grid)
                whole = grid if joined is None else joined.grid(numbers=False)
                if joined is not None:
                    self._judged[id(whole)] = whole, self._joined_parts(joined)
                    self._within.add(id(joined.other))
                total += self._added(grid, joined, whole)
                before.setdefault(grid.names, list(there))
                there.append(whole)
        finally:
            self.grids.update(before)
            self._within.clear()
        return total

    def _beside(self, grid: PopulationGrid) -> _Joined | None:
        """A new grid with the held one beside it, if there is one."""
        for other in self.grids.get(grid.names, ()):
            found = None if id(other) in self._within else grid.beside(other)
            if found is not None:
                return found
        return None

    def _joined_parts(self, joined: _Joined) -> _GridParts:
        one, other = self._parts(joined.one), self._parts(joined.other)
        expected = None
        if one.expected is not None and other.expected is not None:
            expected = joined.array(one.expected, other.expected)
        return _GridParts(
            joined.array(one.small, other.small), joined.array(one.lowest, other.lowest), expected
        )

    def _others(self) -> Iterator[tuple[frozenset[str], PopulationGrid]]:
        """All grids, but those that are part of a larger one while a question is judged."""
        for names, there in list(self.grids.items()):
            for other in there:
                if id(other) not in self._within:
                    yield names, other

    def _added(self, grid: PopulationGrid, joined: _Joined | None, whole: PopulationGrid) -> float:
        """What a new grid tells beside those that are held."""
        total = 0.0
        for names, other in self._others():
            if names <= grid.names:
                if joined is not None and joined.along not in names:
                    # Both parts of one line: what they tell beyond what one of them told.
                    told = self._pair(other, joined.other)
                    total += max(0.0, self._pair(other, whole) - told)
                else:
                    total += self._pair(other, grid)
                total += self._completed(other, grid)
            if names >= grid.names:
                total += self._pair(grid, other)
        return total

    def _completed(self, coarse: PopulationGrid, grid: PopulationGrid) -> float:
        """What held grids tell more once a new one shows most of what they leave out of a coarser one."""
        total = 0.0
        for names, other in self._others():
            if names > coarse.names:
                left_out = 1.0 - self._share_of(other, coarse, None)[0]
                if left_out > 0 and self._share_of(grid, coarse, other)[0] >= left_out / 2:
                    more = self._pair(coarse, other, beside=grid)
                    total += max(0.0, more - self._pair(coarse, other))
        return total

    def _share_of(
        self, grid: PopulationGrid, coarse: PopulationGrid, outside: PopulationGrid | None
    ) -> tuple[float, int]:
        """The share of a coarser grid's people that a grid shows outside of another, and in how many parts."""
        share, parts, apart = 1.0, 1, outside is None
        for axis in grid.axes:
            inner = None if outside is None else outside.by_name.get(axis.variable)
            span, counted = axis.span, axis.variable not in coarse.names
            if inner is not None and not apart:
                number, out = _outside(axis.parts, inner.span)
                if number:
                    apart = counted = True
                    parts, span = number, out
            if counted and span != self.everything[axis.variable]:
                share *= self._share(axis.variable, span)
        return (share, parts) if apart else (0.0, 0)

    def _share(self, variable: str, span: int) -> float:
        known = self._of_all.get((variable, span))
        if known is None:
            shares = self.shares.get(variable)
            known = span.bit_count() / self.everything[variable].bit_count()
            if shares is not None:
                known = float(shares[_bits(span)].sum())
            self._of_all[variable, span] = known
        return known

    def _pair(
        self,
        coarse: PopulationGrid,
        fine: PopulationGrid,
        *,
        beside: PopulationGrid | None = None,
    ) -> float:
        """The mean number of small parts that one pair of grids makes certain, at most."""
        if coarse.axes == fine.axes:
            return 0.0
        nesting = _Nesting.of(coarse, fine, self.everything)
        if nesting is None:
            return 0.0
        found = self._parts(fine)
        sums = nesting.sums(found.lowest)
        parts = nesting.sums(np.ones(fine.shape))
        slack = np.ones(coarse.shape)
        gone = 0.0
        if nesting.rest.any():
            expected = self._rest(nesting, found.expected)
            slack = np.where(nesting.rest, self._covered(nesting, expected, beside), 1.0)
            small = np.where(
                np.isnan(expected), _UNKNOWN, _small(np.nan_to_num(expected), self.small)
            )
            gone = float((small * np.exp(sums))[nesting.rest & (parts > 0)].sum())
        # A cell that is the whole of the coarse one is the same people, and tells nothing new.
        open_ = np.where((parts > 1) | nesting.rest, slack * np.exp(sums), 0.0)
        chance = found.small * np.exp(-found.lowest) * nesting.spread(open_)
        return self.noise.at_end * (float(np.minimum(chance, 1.0).sum()) + gone)

    def _rest(self, nesting: _Nesting, expected: Floats | None) -> Floats:
        """How many people are expected in the part of each coarse cell that no fine cell shows."""
        around = self._parts(nesting.coarse).expected
        if around is None or expected is None:
            return np.full(nesting.coarse.shape, np.nan)
        return np.maximum(around - nesting.sums(expected), 0.5)

    def _covered(
        self, nesting: _Nesting, expected: Floats, beside: PopulationGrid | None
    ) -> Floats:
        """The chance that the rest of a coarse cell is at its lower end: empty, or shown by another grid."""
        best = np.where(np.isnan(expected), _UNKNOWN, _empty(np.nan_to_num(expected)))
        around = self._parts(nesting.coarse).expected
        if around is None:
            return best
        fine = nesting.fine
        cut = {axis.variable for axis in fine.axes if axis.span != self.everything[axis.variable]}
        others = [one for names, one in self._others() if names > nesting.coarse.names]
        shares: dict[tuple[tuple[str, int, int], ...], tuple[float, int]] = {}
        for other in (*others, *(() if beside is None else (beside,))):
            if other is not fine:
                # Those that show the same people in as many parts count alike.
                kind = tuple(
                    (
                        axis.variable,
                        axis.span,
                        len(axis.parts) if axis.variable in fine.names else 0,
                    )
                    for axis in other.axes
                    if axis.variable in cut or axis.span != self.everything[axis.variable]
                )
                if kind and kind not in shares:
                    shares[kind] = self._share_of(other, nesting.coarse, fine)
        for share, parts in sorted(set(shares.values())):
            if parts:
                # Parts that together hold so many people, and whoever is in none of them.
                covered = np.minimum(around * share, expected)
                empty = _empty(covered / parts)
                lowest = (empty + (1 - empty) * self.noise.at_end) ** parts
                best = np.fmax(best, _empty(expected - covered) * lowest)
        return best

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
            self._of_all.clear()

    def _expected(self, grid: PopulationGrid) -> Floats | None:
        """What readers expect of each cell: what they were shown, or shares of the nearest coarser table."""
        if grid.is_shown and grid.numbers is not None:
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
            place = _placed(axis.parts, outer)[0]
            if (place < 0).any():
                return None
            weights = np.ones(len(axis.parts))
            if any(part != outer[i] for part, i in zip(axis.parts, place.tolist(), strict=True)):
                # Where nothing is known of a variable all codes count alike, as widely as any.
                of = [self._share(axis.variable, o) for o in outer]
                weights = np.array(
                    [
                        self._share(axis.variable, part) / of[i] if of[i] > 0 else 0.0
                        for part, i in zip(axis.parts, place.tolist(), strict=True)
                    ]
                )
            factor = factor * weights.reshape(_along(at, len(grid.axes)))
            if around is not None:
                picks.append(place)
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
