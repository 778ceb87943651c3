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

Where a small count must leave ``v`` values, distances of ``B`` and the other parts from those ends add up to
some ``d <= v - 2`` in each case that counts. There ``t**(d - v + 2)`` is at least 1 for any ``0 < t <= 1``, so
means of ``t**distance`` in place of the chances, with ``t**(2 - v)`` once, bound their number from above.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lustrum.audit.grids import (
    HIDDEN,
    GridAxis,
    GridNesting,
    JoinedGrids,
    PopulationGrid,
    PopulationStructure,
    along_axis,
    side_by_side,
)
from lustrum.model import Channel
from lustrum.model.arrays import Floats, Ints

SHAPE = 0.5
"""Shape of the gamma mixture around an expected count: more than half of it lies near zero.

The chance of nobody is ``(SHAPE / (SHAPE + mean)) ** SHAPE``, a square root.
"""

_LARGEST = 60  # shown numbers up to this are weighed by all true counts that lead to them
_NOBODY = 1e-9  # share of categories in which nobody was shown
_LEAST = 1e-12  # chance that is never gone below, so that it can be divided by
_FIRST = np.zeros(1, dtype=np.int64)
_WEIGHT = 0.3  # of a distance of one from an end, where more than certain counts are counted
_UNKNOWN = 0.5  # chance that a count is empty, and that it is small, where nothing is known of it


@dataclass(frozen=True)
class OpenNoise:
    """What the method leaves open: the chance to be at an end, and what a shown number says of small counts."""

    at_end: float
    empty: Floats
    small: Floats
    lowest: Floats
    scale: float = 1.0
    """What each chance is multiplied with, where small counts must leave more than two values."""

    @classmethod
    def of(cls, channels: Sequence[Channel], small: int, values: int = 2) -> OpenNoise:
        """The noise of a method, by its channels; the worst of them where there are several.

        ``values`` is how many a count of at most ``small`` must leave open.
        """
        weights = np.multiply.accumulate(
            np.r_[1.0, np.full(_LARGEST, 0.0 if values == 2 else _WEIGHT)]
        )
        found = [_noise(channel, small, weights) for channel in channels]
        empty, tiny, lowest = (
            np.max([getattr(one, name) for one in found], axis=0)
            for name in ("empty", "small", "lowest")
        )
        at_end = max(one.at_end for one in found)
        return cls(at_end, empty, tiny, lowest, 1.0 / float(weights[values - 2]))


def _noise(channel: Channel, small: int, weights: Floats) -> OpenNoise:
    true = np.arange(3 * _LARGEST, dtype=np.int64)
    moves = channel.transitions(true)
    low, high = channel.support(moves.published)
    at = true[moves.origin]
    large = (at >= _LARGEST) & (at < 2 * _LARGEST)
    from_low, from_high = (weights[np.minimum(d, _LARGEST)] for d in (at - low, high - at))
    ends = [
        float((moves.probability * end)[large].sum()) / _LARGEST for end in (from_low, from_high)
    ]
    shown = (moves.published >= 0) & (moves.published < _LARGEST)

    def share(chosen: npt.NDArray[Any]) -> Floats:
        part = np.bincount(moves.published[shown], (moves.probability * chosen)[shown], _LARGEST)
        whole = np.bincount(moves.published[shown], moves.probability[shown], _LARGEST)
        return np.divide(part, whole, out=np.zeros(_LARGEST), where=whole > 0)

    lowest = share(from_low)
    # How many counts are empty is for nobody to say: one that may be empty is taken to be.
    lowest[share(at == 0) > 0] = 1.0
    return OpenNoise(max(ends), share(at == 0), share((at >= 1) & (at <= small)), lowest)


class _GridParts(NamedTuple):
    """Of each cell, or of some together, what their sums and products over a coarser cell are made of."""

    told: Floats
    """The chance to be small, over that to be at its lower end."""
    lowest: Floats
    expected: Floats
    """The mean; NaN where nothing is known of it."""
    cells: Floats


class _FoldedGrid(NamedTuple):
    """A grid with all categories of one variable taken together, for coarser ones that do not have it."""

    of: PopulationGrid
    along: str
    grid: PopulationGrid
    parts: _GridParts

    @classmethod
    def of_parts(cls, grid: PopulationGrid, at: int, parts: _GridParts) -> _FoldedGrid:
        sums = _GridParts(*(values.sum(axis=at, keepdims=True) for values in parts))
        folded = sums._replace(lowest=parts.lowest.prod(axis=at, keepdims=True))
        return cls(grid, grid.axes[at].variable, _with_span(grid, at), folded)

    def with_parts(
        self, parts: _GridParts, starts: Ints, whole: PopulationGrid, at: int
    ) -> _FoldedGrid:
        """With grids that stand beside along the variable, one after the other as they begin."""

        def folded(by: np.ufunc, before: Floats, values: Floats) -> Floats:
            if starts.size < values.shape[at]:
                values = by.reduceat(values, starts, axis=at)
            together = np.concatenate((before, values), axis=at)
            return by.accumulate(together, axis=at).take([-1], axis=at)

        sums = _GridParts(*(folded(np.add, *pair) for pair in zip(self.parts, parts, strict=True)))
        lowest = folded(np.multiply, self.parts.lowest, parts.lowest)
        return _FoldedGrid(whole, self.along, _with_span(whole, at), sums._replace(lowest=lowest))


def _with_span(grid: PopulationGrid, at: int) -> PopulationGrid:
    axis = GridAxis(grid.axes[at].variable, (grid.axes[at].span,))
    return PopulationGrid((*grid.axes[:at], axis, *grid.axes[at + 1 :]))


class _GridRow:
    """Grids side by side along one variable, in the order in which they came, to be joined at once."""

    def __init__(self, first: PopulationGrid, at: int) -> None:
        self.grids, self.at, self.span = [first], at, first.axes[at].span

    @classmethod
    def beside(cls, one: PopulationGrid | _GridRow, grid: PopulationGrid) -> _GridRow | None:
        """A grid with others, if it stands beside them."""
        if isinstance(one, PopulationGrid):
            found = grid.beside(one)
            return None if found is None else cls(one, found.at)._with(grid)
        pairs = enumerate(zip(one.grids[0].axes, grid.axes, strict=True))
        alike = all(a == b for at, (a, b) in pairs if at != one.at)
        return one._with(grid) if alike and not grid.axes[one.at].span & one.span else None

    def _with(self, grid: PopulationGrid) -> _GridRow:
        self.grids.append(grid)
        self.span |= grid.axes[self.at].span
        return self


@dataclass
class Holdings:
    """All grids that some readers hold of one dataset, and what is expected of the others."""

    structure: PopulationStructure
    noise: OpenNoise
    small: int = 2
    grids: dict[frozenset[str], list[PopulationGrid]] = field(default_factory=dict)
    shares: dict[str, Floats] = field(default_factory=dict)
    _details: dict[str, int] = field(default_factory=dict)
    _folded: dict[int, _FoldedGrid] = field(default_factory=dict)
    """Of held grids that were joined and shown, so that none is gone through again for each question."""
    _judged: dict[int, tuple[PopulationGrid, _GridParts]] = field(default_factory=dict)
    """What was worked out for a grid, which stands beside it, so that no other takes its number."""
    _whole: dict[int, JoinedGrids] = field(default_factory=dict)
    """The parts of what a question joins with held grids, while it is judged."""
    _within: set[int] = field(default_factory=set)
    """The grids that are part of a larger one, while a question is judged."""
    _beyond: dict[int, list[PopulationGrid]] = field(default_factory=dict)
    """By grid those that show categories which it leaves out, while a question is judged."""
    _of_all: dict[tuple[str, int], float] = field(default_factory=dict)

    def add(self, grids: Iterable[PopulationGrid]) -> None:
        """Take in what was released, or looked at; many at once as one after the other."""
        held: dict[frozenset[str], list[PopulationGrid | _GridRow]] = {}
        for grid in grids:
            there = held.setdefault(grid.names, list(self.grids.get(grid.names, ())))
            for place, one in enumerate(there):
                # With the same codes it may be the same cells, or stand beside them along another variable.
                if isinstance(one, _GridRow) and one.span == grid.axes[one.at].span:
                    there[place] = self._joined(one)
            there[:] = [
                one
                for one in there
                if isinstance(one, _GridRow) or one != grid or one.numbers is not None
            ]
            if grid in there:
                continue
            self._learn(grid)
            row = None
            for place, one in enumerate(there):
                row = _GridRow.beside(one, grid)
                if row is not None:
                    del there[place]
                    break
            there.append(row or grid)
        for names, there in held.items():
            self.grids[names] = [self._joined(o) if isinstance(o, _GridRow) else o for o in there]
        self._judged.clear()

    def _joined(self, row: _GridRow) -> PopulationGrid:
        """The grids of a row as one; where all is shown, folded along it as well."""
        (first, *rest), at = row.grids, row.at
        whole = side_by_side(row.grids, at)
        new = side_by_side(rest, at, ordered=False)
        if new.is_shown and (id(first) in self._folded or first.is_shown):
            starts = np.cumsum([0, *(grid.shape[at] for grid in rest[:-1])])
            known = self._fold(first, at)
            self._folded[id(whole)] = known.with_parts(self._weighed(new), starts, whole, at)
        self._folded.pop(id(first), None)
        return whole

    def expected_certain(self, grids: Sequence[PopulationGrid]) -> float:
        """How many small counts at most, in the mean, new grids make certain; nothing is taken in."""
        before: dict[frozenset[str], list[PopulationGrid]] = {}
        total = 0.0
        try:
            for grid in sorted(grids, key=lambda one: (len(one.axes), one.shape)):
                there = self.grids.setdefault(grid.names, [])
                if any(one.holds(grid) for one in there):
                    continue
                joined = self._beside(grid)
                whole = grid if joined is None else joined.grid()
                if joined is not None:
                    self._whole[id(whole)] = joined
                    known, new = self._fold(joined.other, joined.at), self._parts(grid)
                    self._folded[id(whole)] = known.with_parts(new, _FIRST, whole, joined.at)
                    self._within.add(id(joined.other))
                total += self._added(grid, joined, whole)
                before.setdefault(grid.names, list(there))
                there.append(whole)
        finally:
            self.grids.update(before)
            for number in self._whole:
                self._folded.pop(number, None)
            self._within.clear()
            self._whole.clear()
            # What is expected of held tables stands until something is added.
            held = {id(one) for one in self._held() if not one.is_shown}
            self._judged = {k: v for k, v in self._judged.items() if k in held}
        return total

    def _beside(self, grid: PopulationGrid) -> JoinedGrids | None:
        """A new grid with the held one beside it, if there is one."""
        for other in self.grids.get(grid.names, ()):
            found = None if id(other) in self._within else grid.beside(other)
            if found is not None:
                return found
        return None

    def _fold(self, grid: PopulationGrid, at: int) -> _FoldedGrid:
        """A grid with all categories of a variable taken together."""
        known = self._folded.get(id(grid))
        if known is not None and known.along == grid.axes[at].variable:
            return known
        return _FoldedGrid.of_parts(grid, at, self._parts(grid))

    def _held(self) -> Iterator[PopulationGrid]:
        """All grids, but those that are part of a larger one while a question is judged."""
        for there in self.grids.values():
            yield from (one for one in there if id(one) not in self._within)

    def _added(
        self, grid: PopulationGrid, joined: JoinedGrids | None, whole: PopulationGrid
    ) -> float:
        """What a new grid tells beside those that are held."""
        total = 0.0
        may_nest, held = self.structure.may_nest, list(self._held())
        self._beyond.clear()
        left_out = [other for other in held if grid.shows_beyond(other)]
        for other in held:
            names = other.names
            if may_nest(names, grid.names):
                if joined is not None and joined.along not in names:
                    # Both parts of one line: what they tell beyond what one of them told.
                    told = self._pair(other, joined.other)
                    total += max(0.0, self._pair(other, whole) - told)
                else:
                    total += self._pair(other, grid)
                if names <= grid.names:
                    total += self._completed(other, grid, left_out)
            if may_nest(grid.names, names):
                total += self._pair(grid, other)
        return total

    def _completed(
        self, coarse: PopulationGrid, grid: PopulationGrid, held: Sequence[PopulationGrid]
    ) -> float:
        """What held grids tell more once a new one shows most of what they leave out of a coarser one."""
        total = 0.0
        for other in held:
            if not other.names > coarse.names:
                continue
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
                outer, number = axis.outside(inner.span)
                if number:
                    apart, counted, parts, span = True, True, number, outer
            if counted and span != self.everything[axis.variable]:
                share *= self._share(axis.variable, span)
        return (share, parts) if apart else (0.0, 0)

    def _shares(self, variable: str, parts: Sequence[int]) -> Floats:
        return np.maximum([self._share(variable, part) for part in parts], _NOBODY)

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
        self, coarse: PopulationGrid, fine: PopulationGrid, *, beside: PopulationGrid | None = None
    ) -> float:
        """The mean number of small parts that one pair of grids makes certain, at most."""
        if coarse.axes == fine.axes or not coarse.meets(fine):
            return 0.0
        folded = self._folded.get(id(fine))
        if folded is not None and self.structure.are_apart(folded.along, coarse.names):
            inner = folded.grid
        else:
            both, apart = coarse.names | fine.names, self.structure.are_apart
            names = {name for name in coarse.names & fine.names if apart(name, both - {name})}
            folded, inner = None, self._cut(fine, coarse, frozenset(names))
        around = self._cut(coarse, fine, coarse.names & fine.names)
        nesting = GridNesting.of(around, inner, self.structure)
        if nesting is None:
            return 0.0
        found = self._parts(inner) if folded is None else folded.parts
        all_lowest = nesting.products(found.lowest)
        parts = nesting.sums(found.cells)
        slack = np.ones(nesting.coarse.shape)
        gone = 0.0
        if nesting.rest.any():
            # How many people are expected in the part of each coarse cell that no fine cell shows.
            whole = self._parts(nesting.coarse).expected
            expected = np.maximum(whole - nesting.sums(found.expected), 0.5)
            covered = self._covered(nesting.coarse, fine, expected, beside)
            slack = np.where(nesting.rest, covered, 1.0)
            small = _small(expected, self.small) * all_lowest
            gone = float(small[nesting.rest & (parts > 0)].sum())
        # A cell that is the whole of the coarse one is the same people, and tells nothing new.
        open_ = np.where((parts > 1) | nesting.rest, slack * all_lowest, 0.0)
        told = float((nesting.sums(found.told) * open_).sum()) + gone
        return self.noise.scale * self.noise.at_end * told

    def _cut(
        self, grid: PopulationGrid, other: PopulationGrid, names: frozenset[str]
    ) -> PopulationGrid:
        """The part of a grid that shares codes of some variables with another: all that tells of it."""
        joined = self._whole.get(id(grid))
        if joined is not None and joined.along in names:
            span = other.by_name[joined.along].span
            near = [g for g in (joined.one, joined.other) if g.by_name[joined.along].span & span]
            if len(near) == 1:
                return self._cut(near[0], other, names)
        part, index = _cut(grid, other, names)
        if part is not grid and not grid.is_shown:
            self._judged[id(part)] = part, _GridParts(*(a[index] for a in self._parts(grid)))
        return part

    def _covered(
        self,
        coarse: PopulationGrid,
        fine: PopulationGrid,
        expected: Floats,
        beside: PopulationGrid | None,
    ) -> Floats:
        """The chance that the rest of a coarse cell is at its lower end: empty, or shown by another grid."""
        best, around = _empty(expected), self._parts(coarse).expected
        if id(fine) not in self._beyond:
            self._beyond[id(fine)] = [one for one in self._held() if one.shows_beyond(fine)]
        others = [o for o in self._beyond[id(fine)] if o.names > coarse.names and o is not fine]
        others += [] if beside is None else [beside]
        for share, parts in sorted({self._share_of(other, coarse, fine) for other in others}):
            if parts:
                # Parts that together hold so many people, and whoever is in none of them.
                covered = np.minimum(around * share, expected)
                empty = _empty(covered / parts)
                lowest = _times_itself(empty + (1 - empty) * self.noise.at_end, parts)
                best = np.maximum(best, _empty(expected - covered) * lowest)
        return best

    def _parts(self, grid: PopulationGrid) -> _GridParts:
        """Of each cell the chance that it is small, that it is at its lower end, and what is expected of it."""
        known = self._judged.get(id(grid))
        if known is None:
            joined = self._whole.get(id(grid))
            if joined is None:
                parts = self._weighed(grid)
            else:
                both = zip(self._parts(joined.one), self._parts(joined.other), strict=True)
                parts = _GridParts(*(joined.array(*pair) for pair in both))
            known = self._judged[id(grid)] = grid, parts
        return known[1]

    def _weighed(self, grid: PopulationGrid) -> _GridParts:
        held = np.full(grid.shape, HIDDEN) if grid.numbers is None else grid.numbers
        at, ones = np.minimum(held, _LARGEST), np.ones(grid.shape)
        told, lowest = self._told[at], self._lowest[at]
        if grid.is_shown:
            return _GridParts(told, lowest, np.maximum(held, 0).astype(np.float64), ones)
        expected, hidden = self._expected(grid), held == HIDDEN
        empty, possible = _empty(expected), self.structure.possible(grid)
        small = np.where(possible, _small(expected, self.small), 0.0)
        low = np.maximum(np.where(possible, empty + (1 - empty) * self.noise.at_end, 1.0), _LEAST)
        return _GridParts(
            np.where(hidden, small / low, told), np.where(hidden, low, lowest), expected, ones
        )

    @cached_property
    def _lowest(self) -> Floats:
        """The chance to be at the lower end, by shown numbers; of large ones, EMPTY and HIDDEN at the end."""
        at_end = self.noise.at_end
        ends = [*np.maximum(self.noise.lowest, at_end), at_end, 1.0, 1.0]
        return np.maximum(ends, _LEAST)

    @cached_property
    def _told(self) -> Floats:
        return np.array([*self.noise.small, 0.0, 0.0, 0.0]) / self._lowest

    @property
    def everything(self) -> Mapping[str, int]:
        """All codes of each variable."""
        return self.structure.everything

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

    def _expected(self, grid: PopulationGrid) -> Floats:
        """What readers expect of each cell: shares of the nearest coarser table that they were shown."""
        nested = self.structure.may_nest
        around = [
            other
            for names, there in self.grids.items()
            if nested(names, grid.names)
            for other in there
            if other.numbers is not None
        ]
        around.sort(key=lambda one: (len(one.axes), one.size), reverse=True)
        drawn = (self._drawn(grid, one) for one in around)
        return next((e for e in drawn if e is not None), np.full(grid.shape, np.nan))

    def _drawn(self, grid: PopulationGrid, other: PopulationGrid) -> Floats | None:
        """The cells of a grid by those of a coarser one, in proportion to shares."""
        other = _cut(other, grid, other.names & grid.names)[0]
        nesting = GridNesting.of(other, grid, self.structure)
        if nesting is None or (nesting.inside is not None and (nesting.inside < 0).any()):
            return None
        assert other.numbers is not None
        numbers = np.where(other.numbers == HIDDEN, 1, np.maximum(other.numbers, 0))
        found = numbers.astype(np.float64)
        inner = np.ones((1,) * len(grid.axes))
        for at, axis in enumerate(grid.axes):
            # Of each coarser cell the share that it leaves to the codes of this axis at all.
            whole = np.ones((1,) * len(other.axes))
            for i, outer in enumerate(other.axes):
                open_ = [
                    self.structure.closure(outer.variable, p)[axis.variable] for p in outer.parts
                ]
                along = self._shares(axis.variable, open_)
                whole = np.minimum(whole, along.reshape(along_axis(i, len(other.axes))))
            found = found / whole
            inner = inner * self._shares(axis.variable, axis.parts).reshape(
                along_axis(at, len(grid.axes))
            )
        # No more than there are in all, where shares say otherwise.
        drawn = np.minimum(
            nesting.spread(found) * inner, nesting.spread(numbers.astype(np.float64))
        )
        return np.asarray(np.broadcast_to(drawn, grid.shape))


def _cut(
    coarse: PopulationGrid, fine: PopulationGrid, names: frozenset[str]
) -> tuple[PopulationGrid, Any]:
    """The cells of a grid that share codes of some variables with another one, as a grid, and their places."""
    picks = [
        axis.over(fine.by_name[axis.variable].span)
        if axis.variable in names
        else tuple(range(len(axis.parts)))
        for axis in coarse.axes
    ]
    if tuple(map(len, picks)) == coarse.shape or not all(picks):
        return coarse, ...
    index = np.ix_(*picks)
    axes = (
        GridAxis(axis.variable, tuple(axis.parts[at] for at in pick))
        for axis, pick in zip(coarse.axes, picks, strict=True)
    )
    return (
        PopulationGrid(tuple(axes), None if coarse.numbers is None else coarse.numbers[index]),
        index,
    )


def _bits(part: int) -> list[int]:
    return [at for at in range(part.bit_length()) if part >> at & 1]


def _times_itself(chance: Floats, times: int) -> Floats:
    """A chance to the power of a whole number, by products alone."""
    found = np.ones_like(chance)
    while times:
        if times & 1:
            found = found * chance
        chance, times = chance * chance, times >> 1
    return found


def _empty(expected: Floats) -> Floats:
    return np.where(np.isnan(expected), _UNKNOWN, np.sqrt(SHAPE / (SHAPE + expected)))


def _small(expected: Floats, most: int) -> Floats:
    """The chance of 1 to ``most`` people under the gamma mixture."""
    term = _empty(expected)
    total = np.zeros_like(term)
    for count in range(1, most + 1):
        term = term * (count - 1 + SHAPE) / count * expected / (SHAPE + expected)
        total += term
    return np.where(np.isnan(expected), _UNKNOWN, total)
