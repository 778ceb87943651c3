"""Attribute inference from a table: a reader knows all variables of a person but one.

The *row* of a variable joins the cells that agree in all other variables. Where it shows a single category, a
reader names this one. The measure compares how often that is right with how often a reader is right who does
not look at the row but guesses from similar rows: those that differ in the variable with most categories, then
also in the next one, and so on, each weighed against the wider ones. Only what the row adds is its risk:
where nearly everybody is a citizen, naming citizens reveals nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.parameters import parameter
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.risk.measure import RiskSpec

_PRIOR = 6.0
"""How many people of similar rows weigh as much as what wider rows say."""


@dataclass(frozen=True)
class InferredAttribute:
    """One variable: people in rows that show a single category, and how many the row and a guess name right.

    It follows from true counts and stays inside.
    """

    variable: str
    people: int
    named: float
    guessed: float

    @property
    def gain(self) -> float:
        return self.named - self.guessed


@dataclass(frozen=True)
class AttributeInference(RiskSpec):
    """What rows that show a single category add to a guess: the largest gain over the variables; from 0 to 1.

    Judged are rows that show people in one category and nobody in others, all of them shown. Where a single
    category can exist it is no secret.

    >>> table = Table.from_counts([[4, 0], [0, 2], [1, 0], [30, 90]], names=["area", "faith"])
    >>> AttributeInference(fewest=1).before(table)
    0.7142857142857143
    """

    name: ClassVar[str] = "attribute-inference"
    measures_releases: ClassVar[bool] = True
    up_to: int = parameter(5, "Rows that show at most so many people are judged.", least=1)
    fewest: int = parameter(
        200, "Variables with fewer people than this in such rows are not judged.", least=1
    )

    def before(self, table: Table) -> float:
        return self._most(self.variables(table))

    def after(self, table: Table, release: Release) -> float:
        return self._most(self.variables(table, release))

    def _most(self, attributes: tuple[InferredAttribute, ...]) -> float:
        return max(0.0, *(v.gain for v in attributes if v.people >= self.fewest), 0.0)

    def variables(
        self, table: Table, release: Release | None = None
    ) -> tuple[InferredAttribute, ...]:
        """What is named and guessed right of each variable, the table or a release of it given."""
        check_table(table, f"The risk measure {self.name!r}")
        if table.kind != "count" or table.decimals:
            raise InputError("Attribute inference is measured on tables of whole counts.")
        grid = np.ix_(*(np.flatnonzero(axis.inner) for axis in table.axes))
        true = table.values[grid]
        if true.ndim < 2:
            raise InputError("Attribute inference needs a table of two variables or more.")
        possible = np.ones(true.shape, dtype=np.bool_)
        if table.structural is not None:
            possible = ~table.structural[grid]
        shown, seen = true, np.ones_like(possible)
        if release is not None:
            check_release(release, f"The risk measure {self.name!r}")
            if release.shape != table.shape:
                raise InputError("The release and its table differ in shape; they must not.")
            seen = release.shown[grid]
            shown = np.where(seen, release.numbers[grid], 0)
        return tuple(
            self._inferred(axis.name, position, true, shown, seen | ~possible, possible)
            for position, axis in enumerate(table.axes)
        )

    def _inferred(
        self, name: str, position: int, true: Ints, shown: Ints, seen: Mask, possible: Mask
    ) -> InferredAttribute:
        """One variable, along the axis at a place."""
        guess = guessed_categories(shown, position, possible).ravel()
        people, numbers, visible, can = (
            np.moveaxis(a, position, -1).reshape(-1, a.shape[position])
            for a in (true, shown, seen, possible)
        )
        single = ((numbers > 0).sum(axis=1) == 1) & (numbers.sum(axis=1) <= self.up_to)
        single &= visible.all(axis=1) & (can.sum(axis=1) > 1)
        rows = np.flatnonzero(single)
        total = int(people[rows].sum())
        right = [
            int(people[rows, said].sum()) / max(total, 1)
            for said in (numbers.argmax(axis=1)[rows], guess[rows])
        ]
        return InferredAttribute(name, total, *right)


def guessed_categories(shown: Ints, position: int, possible: Mask) -> Ints:
    """For every row along an axis, the likeliest category by all other rows; the shape is that of the others.

    >>> shown = np.array([[4, 0], [0, 2], [30, 90]])
    >>> guessed_categories(shown, 1, np.ones(shown.shape, dtype=bool)).tolist()
    [1, 1, 0]
    """
    sizes = shown.shape
    others = sorted((p for p in range(shown.ndim) if p != position), key=lambda p: (sizes[p], p))
    belief: Floats = np.full(sizes, 1.0 / sizes[position])
    for known_count in range(len(others)):
        dropped = tuple(others[known_count:])
        held = shown.sum(axis=dropped, keepdims=True) - shown
        total = held.sum(axis=position, keepdims=True)
        belief = (held + _PRIOR * belief) / (total + _PRIOR)
    return np.asarray((belief * possible).argmax(axis=position))
