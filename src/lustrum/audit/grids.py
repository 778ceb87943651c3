"""Populations side by side, as tables show them, and how those of one table lie in those of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats, Ints, Mask

HIDDEN = -1
"""Stands for a number that is not shown."""

EMPTY = -2
"""Stands for a cell that everybody knows to be empty."""

_REMEMBERED = 100_000  # pairs of axes


@dataclass(frozen=True)
class GridAxis:
    """A variable with disjoint categories, each a set of finest codes as bits."""

    variable: str
    parts: tuple[int, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.variable, self.parts))

    @cached_property
    def span(self) -> int:
        """All codes of the categories."""
        return reduce(or_, self.parts)

    @cached_property
    def those(self) -> frozenset[int]:
        return frozenset(self.parts)

    def over(self, span: int) -> tuple[int, ...]:
        """The places of the categories that share a code with some codes."""
        if not self.span & ~span:
            return tuple(range(len(self.parts)))
        found = self._over.get(span)
        if found is None:
            places, rest = set(), span & self.span
            while rest:
                place = self._place[(rest & -rest).bit_length()]
                places.add(place)
                rest &= ~self.parts[place]
            found = self._over[span] = tuple(sorted(places))
        return found

    def outside(self, span: int) -> tuple[int, int]:
        """All codes of the categories that share none with some codes, and how many categories those are."""
        alone, groups = self._by_kind
        apart = [part for part in groups if not part & span]
        alone &= ~span
        return reduce(or_, apart, alone), len(apart) + alone.bit_count()

    @cached_property
    def _by_kind(self) -> tuple[int, list[int]]:
        """The codes that are categories by themselves, and the other categories."""
        groups = [part for part in self.parts if part & (part - 1)]
        return self.span & ~reduce(or_, groups, 0), groups

    @cached_property
    def _place(self) -> Mapping[int, int]:
        found = {}
        for place, part in enumerate(self.parts):
            rest = part
            while rest:  # code by code: there may be thousands, of which a category has one
                found[(rest & -rest).bit_length()] = place
                rest &= rest - 1
        return found

    @cached_property
    def _over(self) -> dict[int, tuple[int, ...]]:
        return {}


@dataclass(frozen=True)
class PopulationGrid:
    """Populations side by side: all combinations of categories, by variables in the order of their names.

    A variable of which everybody counts is left out. ``numbers`` are those that were shown, ``HIDDEN`` where
    none was; None where nothing was shown, because a rule looked at the numbers and refused them.
    """

    axes: tuple[GridAxis, ...]
    numbers: Ints | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        assert self.numbers is None or self.numbers.shape == self.shape

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(axis.variable for axis in self.axes)

    @cached_property
    def by_name(self) -> Mapping[str, GridAxis]:
        return {axis.variable: axis for axis in self.axes}

    @cached_property
    def is_shown(self) -> bool:
        """Whether every number was shown."""
        return self.numbers is not None and bool((self.numbers != HIDDEN).all())

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis.parts) for axis in self.axes)

    @cached_property
    def size(self) -> int:
        """How many populations there are."""
        return int(np.prod(self.shape, dtype=np.int64))

    def holds(self, other: PopulationGrid) -> bool:
        """Whether every population of another grid is one of these."""
        return self.names == other.names and all(
            axis.those >= there.those for axis, there in zip(self.axes, other.axes, strict=True)
        )

    def meets(self, other: PopulationGrid) -> bool:
        """Whether there is a category of each variable of both that shares codes with one of the other."""
        there = other.by_name
        return all(a.variable not in there or a.span & there[a.variable].span for a in self.axes)

    def shows_beyond(self, other: PopulationGrid) -> bool:
        """Whether it shows categories of a variable of both that the other leaves out."""
        there = other.by_name
        return any(a.variable in there and a.outside(there[a.variable].span)[1] for a in self.axes)

    def beside(self, other: PopulationGrid) -> JoinedGrids | None:
        """How the two are one grid, if they stand side by side along one variable."""
        apart = [at for at, (a, b) in enumerate(zip(self.axes, other.axes, strict=True)) if a != b]
        if len(apart) != 1 or self.axes[apart[0]].span & other.axes[apart[0]].span:
            return None
        return JoinedGrids(self, other, apart[0])


@dataclass(frozen=True)
class JoinedGrids:
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
        if one.shape[self.at] == 1:
            before, after = np.split(other, [self._order.index(0)], axis=self.at)
            return np.concatenate((before, one, after), axis=self.at)
        return np.concatenate((one, other), axis=self.at).take(self._order, axis=self.at)

    @cached_property
    def _order(self) -> list[int]:
        parts = self.one.axes[self.at].parts + self.other.axes[self.at].parts
        return sorted(range(len(parts)), key=lambda at: parts[at])

    def grid(self) -> PopulationGrid:
        """Both as one, of which nothing is shown."""
        bare = [PopulationGrid(grid.axes) for grid in (self.one, self.other)]
        return side_by_side(bare, self.at)


def side_by_side(
    grids: Sequence[PopulationGrid], at: int, *, ordered: bool = True
) -> PopulationGrid:
    """Grids along one of their axes as one, by the order of the categories, or as they come."""
    parts = [part for grid in grids for part in grid.axes[at].parts]
    order = sorted(range(len(parts)), key=parts.__getitem__) if ordered else range(len(parts))
    axes = list(grids[0].axes)
    axes[at] = GridAxis(axes[at].variable, tuple(parts[place] for place in order))
    if all(grid.numbers is None for grid in grids):
        return PopulationGrid(tuple(axes))
    shown = [np.full(g.shape, HIDDEN) if g.numbers is None else g.numbers for g in grids]
    return PopulationGrid(tuple(axes), np.concatenate(shown, axis=at).take(order, axis=at))


class PopulationStructure:
    """What everybody knows of all populations: the codes of variables, and combinations that cannot exist.

    By these a population may lie in one that other variables describe: who is employed has an occupation.
    """

    def __init__(
        self, everything: Mapping[str, int], impossible: Sequence[Mapping[str, int]] = ()
    ) -> None:
        self.everything, self.impossible = everything, tuple(impossible)
        self._near: dict[str, frozenset[str]] = {}
        self._pairs: dict[tuple[GridAxis, GridAxis], AxisNesting | None] = {}
        self._closures: dict[tuple[str, int], Mapping[str, int]] = {}
        for name in everything:
            # Whatever rules about it could say something of, one leading to the next.
            near, more = {name}, {name}
            while more:
                more = {n for rule in self.impossible if near & rule.keys() for n in rule} - near
                near |= more
            self._near[name] = frozenset(near - {name})

    def closure(self, variable: str, part: int) -> Mapping[str, int]:
        """The codes of all variables that people with these codes can have, variable by variable."""
        known = self._closures.get((variable, part))
        if known is None:
            found = {**self.everything, variable: part}
            before = None
            while before != found:
                before = dict(found)
                for rule in self.impossible:
                    open_ = [name for name, bits in rule.items() if found[name] & ~bits]
                    if len(open_) == 1:
                        found[open_[0]] &= ~rule[open_[0]]
            known = self._closures[variable, part] = found
        return known

    def may_nest(self, coarse: frozenset[str], fine: frozenset[str]) -> bool:
        """Whether cells by some variables could lie in cells by others."""
        return coarse <= fine or all(fine & self._near[name] for name in coarse - fine)

    def are_apart(self, variable: str, names: frozenset[str]) -> bool:
        """Whether codes of a variable say nothing of those of others."""
        return variable not in names and not self._near[variable] & names

    def along(self, coarse: GridAxis, fine: GridAxis) -> AxisNesting | None:
        """How categories of one axis lie in those of another, if any of them tells of it."""
        if coarse.variable != fine.variable and fine.variable not in self._near[coarse.variable]:
            return None
        pair = coarse, fine
        if pair not in self._pairs:
            if len(self._pairs) >= _REMEMBERED:
                self._pairs.clear()
            self._pairs[pair] = self._nested(coarse, fine)
        return self._pairs[pair]

    def _nested(self, coarse: GridAxis, fine: GridAxis) -> AxisNesting | None:
        inner = [self.closure(fine.variable, part)[coarse.variable] for part in fine.parts]
        outer = [self.closure(coarse.variable, part)[fine.variable] for part in coarse.parts]
        place = placed(tuple(inner), coarse.parts)
        if (place < 0).all() and all(codes & ~fine.span for codes in outer):
            return None
        whole = [
            all(place[i] == at for i, part in enumerate(fine.parts) if part & codes)
            for at, codes in enumerate(outer)
        ]
        covered = [not codes & ~fine.span for codes in outer]
        return AxisNesting(place, np.array(whole), np.array(covered))

    def possible(self, grid: PopulationGrid) -> Mask:
        """The cells of a grid in which somebody can be."""
        found: Mask = np.ones(grid.shape, dtype=np.bool_)
        for rule in self.impossible:
            if rule.keys() <= grid.names:
                hit: Mask = np.ones((1,) * len(grid.axes), dtype=np.bool_)
                for at, axis in enumerate(grid.axes):
                    bits = rule.get(axis.variable)
                    if bits is not None:
                        those = np.array([not part & ~bits for part in axis.parts])
                        hit = hit & those.reshape(along_axis(at, len(grid.axes)))
                found &= ~hit
        return found


@dataclass(frozen=True)
class AxisNesting:
    """How the categories of a finer axis lie in those of a coarser one, maybe of another variable."""

    place: Ints
    """For each finer category the one around it, or -1."""
    whole: Mask
    """For each coarser category whether no finer one lies in it with a part alone."""
    covered: Mask
    """For each coarser category whether everybody in it has one of the finer ones."""

    @cached_property
    def tells(self) -> bool:
        """Whether any finer category lies in a coarser one."""
        return bool((self.place >= 0).any())


@dataclass(frozen=True)
class GridNesting:
    """The cells of a finer grid within those of a coarser one."""

    coarse: PopulationGrid
    fine: PopulationGrid
    inside: Ints | None
    """For each fine cell the flat place of the coarse cell around it, or -1; None where axes are the same."""
    rest: Mask
    """The coarse cells that the fine ones do not cover."""

    @classmethod
    def of(
        cls, coarse: PopulationGrid, fine: PopulationGrid, structure: PopulationStructure
    ) -> GridNesting | None:
        """How two grids nest; None where no cell of one lies in a cell of the other."""
        same, depth, width = True, len(coarse.axes), len(fine.axes)
        inner: list[list[tuple[int, AxisNesting]]] = []
        for around in coarse.axes:
            there = fine.by_name.get(around.variable)
            if there is not None and not around.span & there.span:
                return None
            same &= there is not None and there.parts == around.parts
            pairs = ((i, structure.along(around, axis)) for i, axis in enumerate(fine.axes))
            inner.append([(i, one) for i, one in pairs if one is not None])
            if not any(one.tells for _, one in inner[-1]):
                return None
        cover: Mask = np.ones((1,) * depth, dtype=np.bool_)
        for at, here in enumerate(inner):
            whole = reduce(or_, (one.whole for _, one in here))
            cover = cover & whole.reshape(along_axis(at, depth))
        for i, axis in enumerate(fine.axes):
            if axis.span != structure.everything[axis.variable]:
                shown: Mask = np.zeros((1,) * depth, dtype=np.bool_)
                for at, here in enumerate(inner):
                    for over, one in here:
                        if over == i:
                            shown = shown | one.covered.reshape(along_axis(at, depth))
                cover = cover & shown
        rest = ~np.broadcast_to(cover, coarse.shape)
        if same:
            return cls(coarse, fine, None, rest)
        inside = np.zeros((1,) * width, dtype=np.int64)
        missing = np.zeros((1,) * width, dtype=np.bool_)
        for size, here in zip(coarse.shape, inner, strict=True):
            along = reduce(np.maximum, (o.place.reshape(along_axis(i, width)) for i, o in here))
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

    def products(self, values: Floats) -> Floats:
        """The products of fine cells within each coarse cell, one after the other."""
        if self.inside is None:
            return np.asarray(values.prod(axis=self._gone))
        there = self.inside >= 0
        found = np.ones(int(np.prod(self.coarse.shape, dtype=np.int64)))
        np.multiply.at(found, self.inside[there], values[there])
        return found.reshape(self.coarse.shape)

    def spread(self, values: Floats) -> Floats:
        """The value of the coarse cell around each fine one; 0 where there is none."""
        if self.inside is None:
            return np.asarray(np.expand_dims(values, self._gone))
        return np.where(self.inside >= 0, values.ravel()[self.inside], 0.0)


def along_axis(at: int, dimensions: int) -> tuple[int, ...]:
    """The shape of an array that runs along one of several axes."""
    return tuple(-1 if one == at else 1 for one in range(dimensions))


@lru_cache(maxsize=4096)
def placed(parts: tuple[int, ...], around: tuple[int, ...]) -> Ints:
    """In which category each category lies, or -1."""
    places = [
        next((at for at, outer in enumerate(around) if part and part & outer == part), -1)
        for part in parts
    ]
    return np.array(places, dtype=np.int64)
