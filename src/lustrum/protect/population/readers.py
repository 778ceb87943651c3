"""Readers who know more than the file: coalitions, people who know exact totals, and people who know changes.

A *coalition* of ``k`` people in one finest cell knows that it holds at least ``k``; a coalition of one is an
*insider*, of none an *outsider*, who knows the file and the method. Cells that cannot exist are known to be
empty and are not secret. Exact totals, such as headcounts by municipality, say what all finest cells of a
group add up to. A policy names both, says how many true counts must be left to such readers, and what happens
otherwise. Somebody who *knows the changes* of a cell, such as own records that joined or left it, follows its
number through all releases; see :mod:`lustrum.protect.population.later`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lustrum.model import Axis, Category, Dataset, InputError
from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells
from lustrum.protect.population.support import Combinations, Support


@dataclass(frozen=True)
class KnownTotals:
    """Exact totals that are public elsewhere: levels such as ``area:district``, and a number for each cell."""

    by: tuple[str, ...]
    values: tuple[int, ...]

    def axes(self, dataset: Dataset) -> list[tuple[str, tuple[Category, ...]]]:
        """The variables with their categories at the levels named."""
        axes = []
        for axis_spec in self.by:
            name, _, level = axis_spec.partition(":")
            axis = Axis(name, level or None)
            axes.append((name, tuple(axis.categories(dataset.variable(name)))))
        if len({name for name, _ in axes}) < len(axes):
            raise InputError("Known totals name a variable twice; name each once.")
        return axes

    def to_mapping(self) -> dict[str, Any]:
        """The totals as plain values."""
        return {"by": list(self.by), "values": list(self.values)}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> KnownTotals:
        """The totals that :meth:`to_mapping` wrote."""
        return cls(tuple(map(str, mapping["by"])), tuple(int(v) for v in mapping["values"]))


def known_totals(cells: FinestCells, by: Sequence[Sequence[str]]) -> tuple[KnownTotals, ...]:
    """Count the totals that a policy names as public elsewhere."""
    totals = []
    for variables in by:
        empty = KnownTotals(tuple(variables), ())
        groups, size = _groups(cells, empty)
        values = np.bincount(groups, weights=cells.counts, minlength=size).astype(np.int64)
        totals.append(KnownTotals(tuple(variables), tuple(values.tolist())))
    return tuple(totals)


def base_needed(coalition: int, min_left: int) -> int:
    """The smallest base with which a shown 0 leaves this many counts to a coalition.

    >>> base_needed(coalition=2, min_left=2)
    4
    """
    return coalition + min_left


@dataclass(frozen=True, eq=False)
class Left:
    """How many true counts are left for finest cells to readers of one kind.

    ``listed`` is for the cells that show somebody. ``unlisted`` counts cells that can be occupied and show 0
    by how many counts are left for each of them.
    """

    listed: Ints
    unlisted: Mapping[int, int]

    def fewer_than(self, number: int) -> int:
        """The number of cells with fewer counts left; cells in which such readers cannot be do not count."""
        few = int(((self.listed > 0) & (self.listed < number)).sum())
        return few + sum(n for left, n in self.unlisted.items() if 0 < left < number)

    @property
    def pinned(self) -> int:
        """The number of cells with one count left."""
        return self.fewer_than(2)

    def histogram(self) -> dict[int, int]:
        """How many cells have 1, 2, 3, ... counts left."""
        values, numbers = np.unique(self.listed, return_counts=True)
        frequencies = {int(v): int(n) for v, n in zip(values, numbers, strict=True)}
        for left, number in self.unlisted.items():
            frequencies[left] = frequencies.get(left, 0) + number
        return {
            left: frequencies[left]
            for left in sorted(frequencies)
            if left > 0 and frequencies[left]
        }


def left_to(
    cells: FinestCells, support: Support, known: Sequence[KnownTotals] = (), coalition: int = 0
) -> Left:
    """What is left to a coalition of this many people in one cell who know exact totals.

    Cells of one group are tied by its total alone, so that the bounds from one set of totals are sharp.
    Bounds from several sets are the ones that every set allows, and may be wider than sharp ones. If only small
    cells are moved, larger ones are exact by choice and do not count.
    """
    low, high = support.finest(cells)
    most_of_unlisted = support.most_unlisted
    combinations = Combinations.of(cells.dataset)
    if not known:
        shown_left = np.maximum(high - np.maximum(low, coalition) + 1, 0)
        others = int(combinations.within()) - len(cells)
        return Left(
            _judged(cells, support, shown_left), {max(most_of_unlisted - coalition + 1, 0): others}
        )
    joined_low, joined_high = low.copy(), high.copy()
    unlisted: dict[int, int] = {}
    for index, totals in enumerate(known):
        groups, size = _groups(cells, totals)
        listed = np.bincount(groups, minlength=size)
        possible = combinations.within(totals.axes(cells.dataset)).ravel()
        least = np.bincount(groups, weights=low, minlength=size).astype(np.int64)
        most = np.bincount(groups, weights=high, minlength=size).astype(np.int64)
        most += most_of_unlisted * (possible - listed)
        exact = np.array(totals.values, dtype=np.int64)
        if ((exact < least) | (exact > most)).any():
            raise InputError("A total that is known does not fit the protected cells.")
        joined_low = np.maximum(joined_low, (exact - most)[groups] + high)
        joined_high = np.minimum(joined_high, (exact - least)[groups] + low)
        if index == 0:  # cells that are not listed are bounded by the first set of totals
            own_low = np.maximum(coalition, exact - most + most_of_unlisted)
            own_high = np.minimum(most_of_unlisted, exact - least)
            for left, number in zip(
                np.maximum(own_high - own_low + 1, 0), possible - listed, strict=True
            ):
                unlisted[int(left)] = unlisted.get(int(left), 0) + int(number)
    shown_left = np.maximum(joined_high - np.maximum(joined_low, coalition) + 1, 0)
    return Left(_judged(cells, support, shown_left), unlisted)


def _judged(cells: FinestCells, support: Support, left: Ints) -> Ints:
    return np.where(cells.counts > support.base, 0, left) if support.small_only else left


def _groups(cells: FinestCells, totals: KnownTotals) -> tuple[Ints, int]:
    """The group of every cell, and how many groups there are."""
    columns = cells.columns()
    groups = np.zeros(len(cells), dtype=np.int64)
    size = 1
    for name, categories in totals.axes(cells.dataset):
        category_of = np.full(len(cells.dataset.variable(name).codes), -1, dtype=np.int64)
        for number, category in enumerate(categories):
            category_of[list(category.members)] = number
        if (category_of < 0).any():
            raise InputError(f"The level of {name!r} in known totals leaves out some codes.")
        groups = groups * len(categories) + category_of[columns[name]]
        size *= len(categories)
    return groups, size


@dataclass(frozen=True)
class CandidateCounts:
    """True counts that a shown number leaves to readers who know that the cell holds at least ``known``."""

    shown: int
    known: int
    low: int
    high: int

    @property
    def left(self) -> int:
        """How many counts are left."""
        return max(self.high - self.low + 1, 0)

    def __str__(self) -> str:
        if not self.left:
            return f"A cell with {self.known} people cannot show {self.shown}."
        if self.left == 1:
            return (
                f"A shown {self.shown} tells {self.known} people of the cell "
                f"that it holds exactly {self.low}."
            )
        return f"A shown {self.shown} leaves {self.left} counts, {self.low} to {self.high}."


def candidates(support: Support, shown: int, known: int = 0) -> CandidateCounts:
    """What one finest cell leaves: ``known`` is 0 for an outsider, 1 for an insider, k for a coalition.

    >>> print(candidates(Support(3), 0))
    A shown 0 leaves 3 counts, 0 to 2.
    >>> print(candidates(Support(3), 0, known=1))
    A shown 0 leaves 2 counts, 1 to 2.
    >>> print(candidates(Support(3), 0, known=2))
    A shown 0 tells 2 people of the cell that it holds exactly 2.
    """
    low, high = support.bounds(np.array([shown]))
    return CandidateCounts(shown, known, max(int(low[0]), known), int(high[0]))


RELEASES = (1, 2, 3, 6, 12)


def known_changes(
    transitions: Mapping[int, Mapping[int, int]], support: Support, limit: float, draw: float
) -> dict[str, dict[str, float]]:
    """How sure a reader who knows every change of a cell can be of its count after so many releases.

    ``transitions`` counts the cells of each true count by their number in the first release. All counts that
    the number leaves are alike beforehand. Each later release changes the odds by the factor ``draw`` at most,
    and all together by ``limit``; 0 is no limit.

    >>> known_changes({0: {0: 9, 3: 1}, 1: {0: 2, 3: 1}, 2: {0: 1, 3: 2}}, Support(3), 2, 1.2)["0"]["1"]
    0.474
    """
    sure: dict[str, dict[str, float]] = {}
    for number in range(0, 3 * support.base, support.base):
        low, high = (int(bound) for bound in support.bounds(number))
        rows = [transitions.get(count, {}) for count in range(low, high + 1)]
        chance = [row.get(number, 0) / max(sum(row.values()), 1) for row in rows]
        most = max(chance) / (sum(chance) or 1.0)
        sure[str(number)] = {}
        for releases in RELEASES:
            factor = min(prod([draw] * (releases - 1)), limit or float("inf"))
            sure[str(number)][str(releases)] = round(most * factor / (1 - most + most * factor), 3)
    return sure
