"""Populations side by side, as tables show them, and how those of one table lie in those of another."""

from __future__ import annotations

from collections.abc import Mapping
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
        return frozenset(self.parts)


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

    def holds(self, other: PopulationGrid) -> bool:
        """Whether every population of another grid is one of these."""
        return self.names == other.names and all(
            axis.those >= there.those for axis, there in zip(self.axes, other.axes, strict=True)
        )

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
        return np.concatenate((one, other), axis=self.at).take(self._order, axis=self.at)

    @cached_property
    def _order(self) -> list[int]:
        parts = self.one.axes[self.at].parts + self.other.axes[self.at].parts
        return sorted(range(len(parts)), key=lambda at: parts[at])

    def grid(self, *, numbers: bool) -> PopulationGrid:
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
        cls, coarse: PopulationGrid, fine: PopulationGrid, everything: Mapping[str, int]
    ) -> GridNesting | None:
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
            place, full = placed(axis.parts, around.parts)
            if (place < 0).all():
                return None
            same &= axis.parts == around.parts
            places.append((len(around.parts), place, full))
        cover: Mask = np.full((1,) * len(coarse.axes), whole)
        for at, (_, _, full) in enumerate(places):
            cover = cover & full.reshape(along_axis(at, len(places)))
        rest = ~np.broadcast_to(cover, coarse.shape)
        if same:
            return cls(coarse, fine, None, rest)
        inside = np.zeros((1,) * len(fine.axes), dtype=np.int64)
        missing = np.zeros((1,) * len(fine.axes), dtype=np.bool_)
        common = (at for at, axis in enumerate(fine.axes) if axis.variable in coarse.names)
        for at, (size, place, _) in zip(common, places, strict=True):
            along = place.reshape(along_axis(at, len(fine.axes)))
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
def placed(parts: tuple[int, ...], around: tuple[int, ...]) -> tuple[Ints, Mask]:
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
