"""What the public may know of true counts: the exact support of every finest cell, and bounds of sums.

With base 3 and all cells moved, a shown 0 stands for 0 to 2, a shown 3 for 0 to 5 and a shown 6 for 4 to 8. A
cell that cannot hold anybody shows 0 and is 0. A sum of finest cells lies between the sums
of their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Ints
from lustrum.model import Category, Dataset, InputError
from lustrum.model.finest import FinestCells

__all__ = ["Combinations", "Support", "possible_combinations"]

_MOST_COMBINATIONS = 1 << 25


@dataclass(frozen=True)
class Support:
    """Which true counts a shown number of a finest cell leaves.

    ``empty_shown`` says whether a cell without anybody may show the smallest number above 0.

    >>> low, high = Support(3).bounds(np.array([0, 3, 6]))
    >>> low.tolist(), high.tolist()
    ([0, 0, 4], [2, 5, 8])
    """

    base: int
    small_only: bool = False
    empty_shown: bool = True

    def bounds(self, shown: npt.ArrayLike) -> tuple[Ints, Ints]:
        """The smallest and the largest true count behind each shown number."""
        shown = np.asarray(shown, dtype=np.int64)
        base = self.base
        bad = shown < 0
        bad |= (shown > 0) & (shown < base) if self.small_only else shown % base != 0
        if bad.any():
            raise InputError("A finest cell shows a number that the method does not produce.")
        if self.small_only:
            low = np.where(shown <= base, 1, shown)
            high = np.where(shown == 0, base - 1, shown)
        else:
            low = np.maximum(shown - base + 1, 1)
            high = shown + base - 1
        low = np.where(shown == 0, 0, low)
        if self.empty_shown:
            low = np.where(shown == base, 0, low)
        return low.astype(np.int64), high.astype(np.int64)

    @property
    def most_unlisted(self) -> int:
        """The largest true count of a possible cell that shows 0."""
        return self.base - 1

    def finest(self, cells: FinestCells) -> tuple[Ints, Ints]:
        """Bounds of the cells listed; a cell that is not listed holds 0 to ``most_unlisted`` if possible."""
        return self.bounds(cells.counts)

    def aggregate(
        self,
        low: npt.ArrayLike,
        high: npt.ArrayLike,
        listed: npt.ArrayLike,
        possible: npt.ArrayLike,
    ) -> tuple[Ints, Ints]:
        """Bounds of sums, from the sums over their listed cells and the number of cells that can be occupied.

        ``possible`` comes from :func:`possible_combinations` for the same cells of a table.
        """
        unlisted = np.asarray(possible, dtype=np.int64) - np.asarray(listed, dtype=np.int64)
        if (unlisted < 0).any():
            raise InputError("More finest cells are listed than can be occupied.")
        return (
            np.asarray(low, dtype=np.int64),
            np.asarray(high, dtype=np.int64) + self.most_unlisted * unlisted,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Combinations:
    """Which finest cells of a dataset can be occupied; worked out once, for any number of tables."""

    dataset: Dataset
    components: tuple[tuple[tuple[str, ...], Ints], ...]

    @classmethod
    def of(cls, dataset: Dataset) -> Combinations:
        """Lay out the variables that structural zeros tie together."""
        found = [(tuple(names), _possible(dataset, names)) for names in _components(dataset)]
        return cls(dataset, tuple(found))

    def within(
        self,
        axes: Sequence[tuple[str, Sequence[Category]]] = (),
        passing: Mapping[str, frozenset[int]] | None = None,
    ) -> Ints:
        """How many finest cells can be occupied in each cell of a table; see
        :func:`possible_combinations`."""
        passing = passing or {}
        on_axis = {name: place for place, (name, _) in enumerate(axes)}
        result = np.ones(tuple(len(categories) for _, categories in axes), dtype=np.int64)
        for component, possible in self.components:
            result = result * _counted(self.dataset, component, possible, axes, on_axis, passing)
        return np.asarray(result, dtype=np.int64)


def possible_combinations(
    dataset: Dataset,
    axes: Sequence[tuple[str, Sequence[Category]]] = (),
    passing: Mapping[str, frozenset[int]] | None = None,
) -> Ints:
    """How many finest cells can be occupied in each cell of a table, by the structural zeros.

    ``passing`` holds the finest codes that filters let pass. Where too many variables are tied together by
    structural zeros, some of the zeros are left out; there are then fewer possible cells than stated, never
    more.
    """
    return Combinations.of(dataset).within(axes, passing)


def _counted(
    dataset: Dataset,
    component: Sequence[str],
    counts: Ints,
    axes: Sequence[tuple[str, Sequence[Category]]],
    on_axis: Mapping[str, int],
    passing: Mapping[str, frozenset[int]],
) -> Ints:
    """The possible cells of one component, arranged along the axes of a table."""
    # Variables that are added up come first: what is left is small.
    for place, name in enumerate(component):
        if name not in on_axis:
            if name in passing:
                counts = counts.take(sorted(passing[name]), axis=place)
            counts = counts.sum(axis=place, keepdims=True)
    for place, name in enumerate(component):
        if name in on_axis:
            codes = len(dataset.variable(name).codes)
            passes = np.zeros(codes, dtype=np.int64)
            passes[list(passing.get(name, range(codes)))] = 1
            member = np.zeros((len(axes[on_axis[name]][1]), codes), dtype=np.int64)
            for row, category in enumerate(axes[on_axis[name]][1]):
                member[row, list(category.members)] = 1
            matrix = member * passes
            counts = np.moveaxis(np.tensordot(matrix, counts, axes=(1, place)), 0, place)
    shape = [1] * len(axes)
    kept = [place for place, name in enumerate(component) if name in on_axis]
    counts = counts.reshape([counts.shape[place] for place in kept])
    targets = [on_axis[component[place]] for place in kept]
    counts = counts.transpose(np.argsort(targets, kind="stable")) if targets else counts
    for target in targets:
        shape[target] = len(axes[target][1])
    return counts.reshape(shape)


def _components(dataset: Dataset) -> list[list[str]]:
    """Variables that structural zeros tie together, as far as they can be laid out."""
    group = {v.name: [v.name] for v in dataset.variables}
    for zero in _zeros(dataset):
        joined: list[str] = []
        for name in zero:
            if not set(group[name]) & set(joined):
                joined = [*joined, *group[name]]
        if np.prod([float(len(dataset.variable(n).codes)) for n in joined]) > _MOST_COMBINATIONS:
            continue
        for name in joined:
            group[name] = joined
    unique = {id(names): names for names in group.values()}
    return list(unique.values())


def _zeros(dataset: Dataset) -> list[tuple[str, ...]]:
    return [tuple(zero.where) for zero in dataset.structural_zeros]


def _possible(dataset: Dataset, component: Sequence[str]) -> Ints:
    shape = tuple(len(dataset.variable(name).codes) for name in component)
    possible = np.ones(shape, dtype=np.int64)
    for zero in dataset.structural_zeros:
        if set(zero.where) <= set(component):
            index = [
                sorted(zero.where[name]) if name in zero.where else range(size)
                for name, size in zip(component, shape, strict=True)
            ]
            possible[np.ix_(*index)] = 0
    return possible
