"""What the public may know of true counts: the exact support of every finest cell, and bounds of sums.

With base 3 and all cells moved, a shown 0 stands for 0 to 2, a shown 3 for 0 to 5 and a shown 6 for 4 to 8. A
cell that cannot hold anybody shows 0 and is 0. A sum of finest cells lies between the sums
of their bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lustrum.model import Category, Dataset, InputError
from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells
from lustrum.numeric.structure.atoms import along_axes
from lustrum.runtime.remembered import Remembered

_MOST_COMBINATIONS = 1 << 25
_MOST_BYTES = 1 << 26
_FAR = 1 << 30
"""So far above a number that nobody takes it for a bound; the sum of as many as there are cells is no larger
than whole numbers can be."""


@dataclass(frozen=True)
class Support:
    """Which true counts a shown number of a finest cell leaves.

    ``empty_shown`` says whether a cell without anybody may show the smallest number above 0. A ``wide`` support
    is that of a later release: the number follows the changes of the count, and is less than two bases away.
    Where nothing is ``certain``, as for people who are made up from noisy tables, every number leaves every
    count.

    >>> low, high = Support(3).bounds(np.array([0, 3, 6]))
    >>> low.tolist(), high.tolist()
    ([0, 0, 4], [2, 5, 8])
    >>> low, high = Support(3, wide=True).bounds(np.array([0, 3, 6]))
    >>> low.tolist(), high.tolist()
    ([0, 0, 1], [5, 8, 11])
    """

    base: int
    small_only: bool = False
    empty_shown: bool = True
    wide: bool = False
    certain: bool = True

    def check(self, shown: npt.ArrayLike) -> None:
        """Refuse numbers that finest cells cannot show."""
        shown = np.asarray(shown, dtype=np.int64)
        small = self.small_only
        bad = (shown < self.base) & (shown != 0) if small else shown % self.base != 0
        if (self.certain and bad.any()) or int(shown.min(initial=0)) < 0:
            raise InputError("A finest cell shows a number that the method does not produce.")

    def bounds(self, shown: npt.ArrayLike) -> tuple[Ints, Ints]:
        """The smallest and the largest true count behind each shown number."""
        self.check(shown)
        shown = np.asarray(shown, dtype=np.int64)
        base = self.base
        if not self.certain:
            return np.zeros_like(shown), shown + _FAR
        if self.small_only:
            low = np.where(shown <= base, 1, shown)
            high = np.where(shown == 0, base - 1, shown)
        else:
            reach = (2 if self.wide else 1) * base - 1
            low = np.maximum(shown - reach, 1)
            high = shown + reach
        low = np.where(shown == 0, 0, low)
        if self.empty_shown or self.wide:
            low = np.where(shown == base, 0, low)
        return low.astype(np.int64), high.astype(np.int64)

    @property
    def most_unlisted(self) -> int:
        """The largest true count of a possible cell that shows 0."""
        if not self.certain:
            return _FAR
        return (2 if self.wide and not self.small_only else 1) * self.base - 1

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
    _sums: Remembered[Ints] = field(
        default_factory=lambda: Remembered(_MOST_BYTES, lambda array: array.nbytes)
    )

    @classmethod
    def of(cls, dataset: Dataset) -> Combinations:
        """Lay out the variables that structural zeros tie together."""
        components = [(tuple(names), _possible(dataset, names)) for names in _components(dataset)]
        return cls(dataset, tuple(components))

    def within(
        self,
        axes: Sequence[tuple[str, Sequence[Category]]] = (),
        passing: Mapping[str, frozenset[int]] | None = None,
    ) -> Ints:
        """How many finest cells can be occupied in each cell of a table; see
        :func:`possible_combinations`."""
        passing = passing or {}
        asked = {name for name, _ in axes} | set(passing)
        result = np.ones(tuple(len(categories) for _, categories in axes), dtype=np.int64)
        for component, _ in self.components:
            variables = tuple(name for name in component if name in asked)
            result = result * along_axes(
                np.add, self._summed(component, variables), variables, axes, passing
            )
        return np.asarray(result, dtype=np.int64)

    def cells(self, axes: Sequence[tuple[str, Sequence[Category]]]) -> int:
        """How many cells of a table can be occupied, without laying the table out."""
        on_axis = {name for name, _ in axes}
        cell_count = 1
        for component, _ in self.components:
            variables = tuple(name for name in component if name in on_axis)
            counted = along_axes(np.add, self._summed(component, variables), variables, axes, {})
            cell_count *= int((counted > 0).sum())
        return cell_count

    def _summed(self, component: tuple[str, ...], variables: tuple[str, ...]) -> Ints:
        """How many cells of a component can be occupied for each combination of codes of some variables."""

        def summed() -> Ints:
            possible = dict(self.components)[component]
            away = tuple(axis for axis, name in enumerate(component) if name not in variables)
            return np.asarray(possible.sum(axis=away))

        return self._sums.get((component, variables), summed)


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
