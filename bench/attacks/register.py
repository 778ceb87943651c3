"""The truth about a register, for judging attacks on its sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from lustrum.model.records import Records
from lustrum.protect.magnitudes.remembered import RememberedSums
from lustrum.protect.magnitudes.units import identities
from lustrum.protect.population.search.levels import ControlledLevel, controlled_levels
from lustrum.protect.population.start import find

__all__ = ["Level", "Levels", "Register", "Sets"]

Ints = np.ndarray[Any, Any]
Level = ControlledLevel | None
Levels = tuple[Level, ...]
"""One level of every variable; None where the table does not have it."""


@dataclass(frozen=True)
class Sets:
    """Many sets of records: of each its largest contributors, and what all of them have."""

    true: Ints  # (sets, 3), largest first
    shown: Ints  # the protected values of the same contributors
    contributors: Ints
    true_total: Ints
    shown_total: Ints


@dataclass(frozen=True)
class Register:
    """Records with the protected value of each, from the memory that the agency keeps of its release."""

    records: Records
    memory: RememberedSums

    @cached_property
    def axes(self) -> tuple[Levels, ...]:
        """Of every variable its levels, finest first, and None at the end."""
        found = controlled_levels(self.records.dataset)
        return tuple((*own, None) for own in found.values())

    def tables(self) -> Iterator[Levels]:
        """All tables at all levels but the total; the finest comes first."""
        yield from (levels for levels in product(*self.axes) if any(levels))

    def finer(self, levels: Levels) -> Iterator[Levels]:
        """The tables with one variable one level finer."""
        for place, (own, level) in enumerate(zip(self.axes, levels, strict=True)):
            at = next(i for i, one in enumerate(own) if one is level)
            if at > 0:
                yield (*levels[:place], own[at - 1], *levels[place + 1 :])

    def cells(self, levels: Levels) -> Ints:
        """The cell of every record in a table."""
        number = np.zeros(len(self.records), dtype=np.int64)
        for level in levels:
            if level is not None:
                number = number * level.size + level.group_of[self.records.codes[level.variable]]
        return number

    def values(self, measure: str) -> tuple[Ints, Ints]:
        """True and protected values of every record."""
        place, known = find(self.memory.record, identities(self.records, None)[1])
        assert known.all()
        return self.records.numbers[measure].astype(np.int64), self.memory.shown[measure][place]

    @cached_property
    def owners(self) -> Ints:
        """Who contributes each record: its holding."""
        holding = self.records.dataset.measures[0].holding
        own = identities(self.records, holding)[0]
        return np.unique(own, return_inverse=True)[1].ravel()

    def ranked(self, sets: Ints, count: int, measure: str, rows: Ints | None = None) -> Sets:
        """The three largest contributors of every set; ``sets`` names that of each record."""
        true, shown = self.values(measure)
        owner = self.owners
        if rows is not None:
            true, shown, owner = true[rows], shown[rows], owner[rows]
        pair = sets.astype(np.int64) * (int(self.owners.max(initial=0)) + 1) + owner
        _, first, place = np.unique(pair, return_index=True, return_inverse=True)
        x = np.bincount(place.ravel(), weights=true).astype(np.int64)
        y = np.bincount(place.ravel(), weights=shown).astype(np.int64)
        home = sets[first]
        held = x > 0
        x, y, home = x[held], y[held], home[held]
        order = np.lexsort((-x, home))
        x, y, home = x[order], y[order], home[order]
        start = np.searchsorted(home, np.arange(count))
        number = np.bincount(home, minlength=count)
        top, tops = np.zeros((count, 3), np.int64), np.zeros((count, 3), np.int64)
        for rank in range(3):
            has = number > rank
            top[has, rank] = x[start[has] + rank]
            tops[has, rank] = y[start[has] + rank]
        totals = (np.bincount(home, weights=v, minlength=count).astype(np.int64) for v in (x, y))
        return Sets(top, tops, number, *totals)
