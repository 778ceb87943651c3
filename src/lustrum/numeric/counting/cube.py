"""What an engine counted, by atoms, and the tables that can be put together from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Category, Contributions, Dataset, StructuralZero, Table
from lustrum.model.arrays import Indices, Ints, Mask, Words
from lustrum.model.release import STUDIED
from lustrum.numeric.counting.plan import Plan
from lustrum.numeric.structure import Atoms
from lustrum.numeric.structure.atoms import along_axes
from lustrum.runtime.remembered import Remembered

# Which cells of a table can hold nobody, from the combinations that a description says cannot exist.


Codes = frozenset[int]

_MOST_LAID_OUT = 1 << 20
"""Combinations of finest codes of some variables that are laid out one by one, a byte each."""

_MOST_BYTES = 1 << 25


class PossibleCells:
    """Which combinations of codes can exist, laid out once for variables that structural zeros tie together.

    Safe to share between threads. It gives what :func:`impossible` gives.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._tied = _tied(dataset)
        self._fits = all(prod(self._shape(names)) <= _MOST_LAID_OUT for names in self._tied)
        self._known = Remembered[Mask](_MOST_BYTES, lambda mask: mask.nbytes, "impossible")

    def impossible(
        self, axes: Sequence[tuple[str, Sequence[Category]]], passing: Mapping[str, Codes]
    ) -> Mask:
        """The cells for which no combination of finest codes is left; see :func:`impossible`."""
        if not self._fits:
            return impossible(self._dataset, axes, passing)
        asked = {name for name, _ in axes} | set(passing)
        possible = np.ones(tuple(len(categories) for _, categories in axes), dtype=np.bool_)
        for tied in self._tied:
            names = tuple(name for name in tied if name in asked)
            left = self._possible(tied, names)
            possible &= along_axes(np.logical_or, left, names, axes, passing)
        apart = asked.difference(*self._tied).intersection(name for name, _ in axes)
        # Along a variable that no zero names it is enough that a category holds anybody at all.
        for name in apart.intersection(passing):
            every = np.ones(self._shape((name,)), dtype=np.bool_)
            possible &= along_axes(np.logical_or, every, (name,), axes, passing)
        return ~possible

    def _shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(len(self._dataset.variable(name).codes) for name in names)

    def _possible(self, tied: tuple[str, ...], names: tuple[str, ...]) -> Mask:
        """For each combination of codes of some of the variables that are tied, whether anybody can have it."""

        def laid_out() -> Mask:
            left = np.ones(self._shape(tied), dtype=np.bool_)
            for zero in self._dataset.structural_zeros:
                if not set(zero.where) <= set(tied):
                    continue
                hit = [
                    sorted(zero.where[name]) if name in zero.where else range(size)
                    for name, size in zip(tied, left.shape, strict=True)
                ]
                left[np.ix_(*hit)] = False
            return left

        def projected() -> Mask:
            away = tuple(axis for axis, name in enumerate(tied) if name not in names)
            return np.asarray(self._known.get((tied, tied), laid_out).any(axis=away))

        return self._known.get((tied, names), laid_out if names == tied else projected)


def _tied(dataset: Dataset) -> list[tuple[str, ...]]:
    """The variables that structural zeros name, those together that some zeros tie to each other."""
    groups: list[set[str]] = []
    for zero in dataset.structural_zeros:
        touched = [group for group in groups if group & set(zero.where)]
        groups = [group for group in groups if group not in touched]
        groups.append(set(zero.where).union(*touched))
    return [tuple(v.name for v in dataset.variables if v.name in group) for group in groups]


def impossible(
    dataset: Dataset, axes: Sequence[tuple[str, Sequence[Category]]], passing: Mapping[str, Codes]
) -> Mask:
    """The cells for which no combination of finest codes is left that can exist and passes the filters.

    Several structural zeros may cover a cell together that none of them covers alone.
    """
    boxes = {
        name: [c.member_set & passing.get(name, c.member_set) for c in categories]
        for name, categories in axes
    }
    possible = np.zeros(tuple(len(sets) for sets in boxes.values()), dtype=np.bool_)
    for zeros in _in_force(dataset, boxes, passing):
        possible |= _somebody_left(dataset, boxes, zeros)
    return ~possible


def _in_force(
    dataset: Dataset, boxes: Mapping[str, object], passing: Mapping[str, Codes]
) -> list[list[StructuralZero]]:
    """The structural zeros that people may meet, by what variables off the table they have.

    Only the fewest matter: whatever is possible under more zeros is possible under fewer.
    """
    escaped: set[Codes] = {frozenset()}
    for name in {n for zero in dataset.structural_zeros for n in zero.where}.difference(boxes):
        codes = passing.get(name, dataset.variable(name).everything)
        by_code = {
            frozenset(
                i
                for i, zero in enumerate(dataset.structural_zeros)
                if name in zero.where and code not in zero.where[name]
            )
            for code in codes
        }
        both = {old | new for old in escaped for new in by_code}
        escaped = {one for one in both if not any(one < other for other in both)}
    return [[z for i, z in enumerate(dataset.structural_zeros) if i not in one] for one in escaped]


def _somebody_left(
    dataset: Dataset, boxes: Mapping[str, Sequence[Codes]], zeros: Sequence[StructuralZero]
) -> Mask:
    """Which cells hold a combination of codes that none of these zeros rules out."""
    atoms = {
        name: Atoms.of_sets(
            len(dataset.variable(name).codes),
            [*sets, *(zero.where.get(name, frozenset()) for zero in zeros)],
        )
        for name, sets in boxes.items()
        if any(name in zero.where for zero in zeros)
    }
    # Along a variable that no zero names it is enough that a category holds anybody at all.
    plain = {n: np.array([bool(s) for s in sets]) for n, sets in boxes.items() if n not in atoms}
    sizes = {n: atoms[n].count if n in atoms else plain[n].size for n in boxes}
    left = np.ones(tuple(sizes.values()), dtype=np.bool_)
    for number, zero in enumerate(zeros):
        hit = [
            atoms[n].mask(len(boxes[n]) + number) if n in zero.where else np.ones(size, bool)
            for n, size in sizes.items()
        ]
        left[np.ix_(*hit) if hit else ()] = False
    for position, name in enumerate(boxes):
        if name in plain:
            left &= plain[name].reshape(-1, *[1] * (left.ndim - position - 1))
            continue
        box_atoms = atoms[name].part(slice(len(boxes[name])))
        left = box_atoms.roll_up(left.astype(np.int64), position) > 0
    return left


View = Literal["shown", "widened", "unfiltered"]


@dataclass(frozen=True, repr=False)
class Cube:
    """Sums by atoms: one layer for those who pass every filter, the others for those who do not."""

    plan: Plan
    dataset: Dataset
    counts: Ints
    keys: Words | None = None
    sums: Ints | None = None
    contributors: Ints | None = None
    contributions: Contributions | None = None
    possible: PossibleCells | None = None

    def shown(self) -> Table:
        axes = [(axis.shown, axis.shown_atoms) for axis in self.plan.axes]
        table = self._table(axes, filtered=True)
        if self.contributors is None:
            return table
        return replace(table, contributors=self.contributors, contributions=self.contributions)

    def widened(self, *, keys: bool = True) -> Table:
        """The table of the filtered population with every choice along an axis undone.

        Without ``keys`` it has none, nor words about where it comes from.
        """
        return self._table(self._wide, filtered=True, keys=keys)

    def unfiltered(self, *, keys: bool = True) -> Table:
        """The table of everybody, with neither choice nor filter."""
        return self._table(self._wide, filtered=False, keys=keys)

    @property
    def is_wide(self) -> bool:
        """Whether the table that was asked for is that of everybody: nothing chosen, filtered or added up."""
        return not self.plan.filters and self.is_widened

    @property
    def is_widened(self) -> bool:
        """Whether the table that was asked for is that of the filtered population: nothing is chosen."""
        return all(axis.shown == axis.wide for axis in self.plan.axes)

    def completed(self, view: View = "shown") -> tuple[Table, list[Indices]]:
        """A view with all parts of its totals, and where its own cells stand in it.

        A total whose parts are not all there would be protected without regard to the missing ones, and tell
        of the others: 3 and 3 beside a total of 0 are 1 and 1, no matter who else is in the total.
        """
        axes, picks = [], []
        for axis in self.plan.axes:
            categories = axis.shown if view == "shown" else axis.wide
            axes.append(axis.completed_shown if view == "shown" else axis.completed_wide)
            picks.append(np.arange(len(categories), dtype=np.intp))
        table = self._table(axes, filtered=view != "unfiltered")
        return table, picks

    @property
    def _wide(self) -> list[tuple[tuple[Category, ...], Atoms]]:
        return [(axis.wide, axis.wide_atoms) for axis in self.plan.axes]

    def _table(
        self, axes: list[tuple[tuple[Category, ...], Atoms]], filtered: bool, keys: bool = True
    ) -> Table:
        layers = slice(0, 1) if filtered else slice(None)

        def rolled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            out = array[layers].sum(axis=0, dtype=array.dtype, keepdims=True)
            for position, (_, atoms) in enumerate(axes, start=1):
                out = atoms.roll_up(out, position)
            one = np.array(out[0], order="C")  # keeps the shape of a table without variables
            one.setflags(write=False)
            return one

        counts = rolled(self.counts)
        measure = self.plan.query.measure and self.dataset.measure(self.plan.query.measure)
        weight = self.plan.query.weight and self.dataset.weight(self.plan.query.weight)
        decimals = (measure.decimals if measure else 0) + (weight.decimals if weight else 0)
        shown_axes = tuple(
            axis.table_axis(categories)
            for axis, (categories, _) in zip(self.plan.axes, axes, strict=True)
        )
        return Table(
            axes=shown_axes,
            values=counts if self.sums is None else rolled(self.sums),
            kind="magnitude" if measure else "count",
            decimals=decimals,
            unit=measure.unit if measure else self.dataset.units,
            # Records; how many holdings they belong to is only known for what is shown.
            contributors=None if measure and measure.holding else counts,
            keys=rolled(self.keys) if keys and self.keys is not None else None,
            structural=self._structural([c for c, _ in axes], filtered),
            provenance=(self._origin(filtered) if keys else {})
            | ({STUDIED: True} if self.dataset.study else {}),
        )

    def _origin(self, filtered: bool) -> dict[str, Any]:
        asked = self.plan.query if filtered else replace(self.plan.query, where=())
        return {"dataset": self.dataset.name, "query": asked.to_mapping()}

    def _structural(self, axes: list[tuple[Category, ...]], filtered: bool) -> Mask:
        """The cells that cannot hold anybody."""
        names = [axis.variable.name for axis in self.plan.axes]
        passing = {f.variable.name: f.passing for f in self.plan.filters} if filtered else {}
        possible = self.possible or PossibleCells(self.dataset)
        return possible.impossible(list(zip(names, axes, strict=True)), passing)
