"""Which combinations of codes can exist, laid out for the fit: one major axis, and all others combined.

Only the description decides: sizes of code lists and structural zeros. Nothing here has seen a record.

An *axis* is a variable, or several that structural zeros tie so closely that few of their combinations can
exist: employment and occupation, with 16 of 65, or the area and its region; one with a single code is never
alone. The *major* axis has the most codes. A finest cell is a code of it and one of the *combinations* of the
other axes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.finest import FinestCells, code_type

Subset = tuple[int, ...]
"""The axes of a table, by their places, in ascending order."""

_MOST_CELLS = 1 << 26
_MOST_PAIRS = 1 << 22
_CLOSE = 1.5
"""Variables are one axis if so many times the codes of the larger one can exist together, at most."""


@dataclass(frozen=True, eq=False)
class DomainAxis:
    """Variables that are one axis, by their places in the dataset, and their codes: (variables, codes)."""

    variables: tuple[int, ...]
    codes: Array

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def groups(self, dataset: Dataset) -> dict[str, Ints]:
        """How the axis can be shown: at its finest, by each of its variables, and at their coarser levels.

        Each has the group of every code of the axis.
        """
        variables = [dataset.variables[v] for v in self.variables]
        shown = {" and ".join(v.name for v in variables): np.arange(len(self))}
        for variable, row in zip(variables, self.codes, strict=True):
            own = np.unique(row, return_inverse=True)[1].ravel()
            if own.max() + 1 < len(self):
                shown[variable.name] = own
            for level in variable.levels:
                groups = np.zeros(len(variable.codes), dtype=np.int64)
                for number, category in enumerate(level.categories):
                    groups[list(category.members)] = number
                shown[f"{variable.name}:{level.name}"] = groups[row]
        return shown

    def levels(self, dataset: Dataset) -> dict[str, list[int]]:
        """The same with the numbers of codes in each group."""
        return {name: np.bincount(of).tolist() for name, of in self.groups(dataset).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """The axes of a dataset, the major one first, and the combinations of the others that can exist."""

    dataset: Dataset
    axes: tuple[DomainAxis, ...]
    combined: Ints  # (axes without the major one, combinations)

    @classmethod
    def of(cls, dataset: Dataset) -> Domain:
        """Lay out a dataset; an error says if it has too many combinations."""
        axes = axes_of(dataset)
        if max(map(len, axes)) == 1:
            raise InputError(
                f"No variable of dataset {dataset.name!r} has two codes; there is nothing to measure."
            )
        major = max(range(len(axes)), key=lambda i: (len(axes[i]), -i))
        axes = [axes[major], *axes[:major], *axes[major + 1 :]]
        return cls(dataset, tuple(axes), _combined(dataset, axes))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.axes[0]), int(self.combined.shape[1])

    def subsets(self, most: int) -> tuple[Subset, ...]:
        """All tables of up to so many axes, small ones first."""
        places = range(len(self.axes))
        return tuple(s for size in range(1, most + 1) for s in combinations(places, size))

    def subset_of(self, names: Sequence[str]) -> Subset:
        """The table of these variables, or of axes that hold them; levels are those of their variable."""
        variables = set()
        for name, _, level in (one.partition(":") for one in names):
            variable = self.dataset.variable(name)
            if level:
                variable.level(level)
            variables.add(self.dataset.variables.index(variable))
        if not variables:
            raise InputError('An own table is a list of variables, such as ["area", "sex"].')
        return tuple(i for i, axis in enumerate(self.axes) if variables & set(axis.variables))

    def table_shape(self, subset: Subset) -> tuple[int, ...]:
        return tuple(self.sizes[axis] for axis in subset)

    def groups(self, subset: Subset) -> Ints:
        """For each combination, its cell in the table of these axes, the major one left out."""
        index = np.zeros(self.shape[1], dtype=np.int64)
        for axis in subset:
            if axis:
                index = index * self.sizes[axis] + self.combined[axis - 1]
        return index

    @cached_property
    def possible(self) -> Mask:
        """Which finest cells can exist: (major codes, combinations)."""
        possible = np.ones(self.shape, dtype=np.bool_)
        for zero in self.dataset.structural_zeros:
            major = self._barred(zero.where, (0,), np.arange(self.shape[0])[None])
            others = self._barred(zero.where, range(1, len(self.axes)), self.combined)
            possible[np.ix_(np.flatnonzero(major), np.flatnonzero(others))] = False
        return possible

    def _barred(
        self, where: Mapping[str, Collection[int]], places: Sequence[int], positions: Ints
    ) -> Mask:
        barred = np.ones(positions.shape[1], dtype=np.bool_)
        for place, position in zip(places, positions, strict=True):
            axis = self.axes[place]
            for row, variable in zip(axis.codes, axis.variables, strict=True):
                barred &= _members(self.dataset, where, variable)[row[position]]
        return barred

    def possible_table(self, subset: Subset) -> Mask:
        """Which cells of a table can exist."""
        return self.table(self.possible, subset) > 0

    def table(self, cells: Array, subset: Subset) -> Array:
        """The table of these axes from all finest cells: (major codes, combinations)."""
        if 0 not in subset:
            cells = cells.sum(axis=0)[None]
        index = self.groups(subset)
        order = np.argsort(index, kind="stable")
        starts = np.flatnonzero(np.diff(index[order], prepend=-1))
        size = prod(self.sizes[axis] for axis in subset if axis)
        table = np.zeros((cells.shape[0], size), dtype=np.int64)
        for row, line in zip(table, cells, strict=True):
            row[index[order][starts]] = np.add.reduceat(line[order], starts)
        return table.reshape(self.table_shape(subset))

    def finest(self, major: Ints, combination: Ints, counts: Ints) -> FinestCells:
        """The finest cells of the dataset at these places."""
        variables = self.dataset.variables
        most = max(len(v.codes) for v in variables)
        codes = np.zeros((len(variables), counts.size), dtype=code_type(most))
        for place, axis in enumerate(self.axes):
            position = self.combined[place - 1, combination] if place else major
            for variable, row in zip(axis.variables, axis.codes, strict=True):
                codes[variable] = row[position]
        return FinestCells(self.dataset, codes, counts)


def _members(dataset: Dataset, where: Mapping[str, Collection[int]], variable: int) -> Mask:
    """Which codes of a variable a structural zero speaks of: all, where it does not name it."""
    described = dataset.variables[variable]
    members = np.full(len(described.codes), described.name not in where)
    members[list(where.get(described.name, ()))] = True
    return members


def _valid(dataset: Dataset, variables: Sequence[int], codes: Ints) -> Mask:
    """Which columns of codes no structural zero of these variables alone rules out."""
    names = {dataset.variables[v].name for v in variables}
    valid = np.ones(codes.shape[1], dtype=np.bool_)
    for zero in dataset.structural_zeros:
        if set(zero.where) <= names:
            barred = np.ones(codes.shape[1], dtype=np.bool_)
            for variable, row in zip(variables, codes, strict=True):
                barred &= _members(dataset, zero.where, variable)[row]
            valid &= ~barred
    return valid


def _product(first: Ints, second: Ints) -> Ints:
    """Every column of one beside every column of the other, in ascending order."""
    return np.concatenate(
        (np.repeat(first, second.shape[1], axis=1), np.tile(second, (1, first.shape[1])))
    )


def axes_of(dataset: Dataset) -> list[DomainAxis]:
    """The axes: variables of which few combinations can exist become one."""
    axes = [
        DomainAxis((i,), np.arange(len(v.codes))[None]) for i, v in enumerate(dataset.variables)
    ]
    while (pair := _close_pair(dataset, axes)) is not None:
        joined, parts = pair
        axes = sorted(
            [joined, *(axis for axis in axes if axis not in parts)], key=lambda a: min(a.variables)
        )
    return axes


def _close_pair(
    dataset: Dataset, axes: Sequence[DomainAxis]
) -> tuple[DomainAxis, tuple[DomainAxis, DomainAxis]] | None:
    """The first two axes that should be one, as one and apart."""
    place = {variable.name: i for i, variable in enumerate(dataset.variables)}
    ties = [{place[name] for name in zero.where} for zero in dataset.structural_zeros]
    for first, second in combinations(axes, 2):
        both = (*first.variables, *second.variables)
        tied = min(len(first), len(second)) == 1 or any(
            tie <= set(both) and tie & set(first.variables) and tie & set(second.variables)
            for tie in ties
        )
        if len(first) * len(second) > _MOST_PAIRS or not tied:
            continue
        codes = _product(first.codes, second.codes)
        codes = codes[:, _valid(dataset, both, codes)]
        if codes.shape[1] <= _CLOSE * max(len(first), len(second)):
            return DomainAxis(both, codes), (first, second)
    return None


def _combined(dataset: Dataset, axes: Sequence[DomainAxis]) -> Ints:
    """The combinations of all axes but the first, by the places of their codes, in ascending order."""
    variables: list[int] = []
    codes, places = (np.zeros((0, 1), dtype=np.int64) for _ in range(2))
    for axis in axes[1:]:
        if codes.shape[1] * len(axis) > _MOST_CELLS // len(axes[0]):
            raise InputError(
                f"Dataset {dataset.name!r} has more than {_MOST_CELLS:,} combinations that can exist, too many "
                "for a proven population; leave out a variable, or use coarser codes."
            )
        variables += axis.variables
        codes = _product(codes, axis.codes)
        places = _product(places, np.arange(len(axis))[None])
        valid = _valid(dataset, variables, codes)
        codes, places = codes[:, valid], places[:, valid]
    return places


@dataclass(frozen=True, eq=False, repr=False)
class Placed:
    """Numbers of finest cells that hold anything, where they stand: all others are 0."""

    major: Ints
    combination: Ints
    numbers: Ints

    @classmethod
    def of(cls, domain: Domain, cells: FinestCells, numbers: Ints | None = None) -> Placed:
        """The people of finest cells, or other numbers of the same cells."""
        return cls(*positions(domain, cells.codes), cells.counts if numbers is None else numbers)

    def table(self, domain: Domain, subset: Subset) -> Ints:
        """The table of these axes; sums below 2 to the power of 53 are exact."""
        index = domain.groups(subset)[self.combination]
        if 0 in subset:
            index = index + self.major * prod(domain.sizes[axis] for axis in subset if axis)
        shape = domain.table_shape(subset)
        summed = np.bincount(index, self.numbers, prod(shape))
        return summed.astype(np.int64).reshape(shape)


def laid_out(domain: Domain, cells: FinestCells) -> Ints:
    """The counts of all finest cells, those of nobody among them: (major codes, combinations)."""
    counts = np.zeros(domain.shape, dtype=np.int64)
    counts[positions(domain, cells.codes)] = cells.counts
    return counts


def positions(domain: Domain, codes: Array) -> tuple[Ints, Ints]:
    """The major code and the combination of each finest cell; an error if one cannot exist."""
    places = []
    for axis in domain.axes:
        wanted, known = (
            _numbered(domain, axis.variables, r) for r in (codes[list(axis.variables)], axis.codes)
        )
        order = np.argsort(known, kind="stable")
        place = order[np.minimum(np.searchsorted(known[order], wanted), known.size - 1)]
        _require_possible(known[place] == wanted)
        places.append(place)
    number = np.zeros(codes.shape[1], dtype=np.int64)
    known = np.zeros(domain.shape[1], dtype=np.int64)
    for size, place, row in zip(domain.sizes[1:], places[1:], domain.combined, strict=True):
        number, known = number * size + place, known * size + row
    # Combinations stand in ascending order of their codes.
    combination = np.minimum(np.searchsorted(known, number), known.size - 1)
    _require_possible(known[combination] == number)
    _require_possible(domain.possible[places[0], combination])
    return places[0], combination


def _require_possible(possible: Mask) -> None:
    if not possible.all():
        raise InputError("A record has a combination that the description says cannot exist.")


def _numbered(domain: Domain, variables: tuple[int, ...], rows: Array) -> Ints:
    """One number for the codes of several variables."""
    number = np.zeros(rows.shape[1], dtype=np.int64)
    for variable, row in zip(variables, rows, strict=True):
        number = number * len(domain.dataset.variables[variable].codes) + row
    return number
