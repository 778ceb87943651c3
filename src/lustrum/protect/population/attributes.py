"""What a row of the file tells about an attribute: a reader knows all variables of a person but one.

The *row* of a variable joins the finest cells that agree in all other variables. Where it shows a single
category, and that with the base, a reader names this category. For every variable the measure states how often
that is right, beside how often a reader is right who does not look at the row but guesses from the rest of the
file, over people in rows of a similar expected size.

The guess takes the categories of similar rows: those that differ in the variable with most codes, then
also in the next one, and so on, each weighed against what the wider ones say. The first of these also say how
many people the row is expected to hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model import Dataset
from lustrum.model.arrays import Array, Floats, Ints, Mask, Words, narrow
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.protect.population.search.levels import controlled_levels, dependents
from lustrum.protect.population.start import by_number, find, parts_of
from lustrum.runtime.stop import check_stop, report_progress, still_working

BINS = (0.0, 0.05, 0.2, 1.0, 5.0)
"""Where bins of expected people in a row begin."""

FEWEST, GUESSED, NAMED = 200, 0.4, 0.6
"""Rows tell too much if of 200 or more people over 60 % are named right, and under 40 % by a guess."""

_PRIOR = 6.0
"""How many people of similar rows weigh as much as what wider rows say."""
_AT_ONCE = 1 << 16
_MOST_HELD = 1 << 22
"""How many counts of categories are laid out in one go."""


@dataclass(frozen=True)
class AttributeRisk:
    """One variable, rows of similar expected size: how often the row and a guess name people right."""

    variable: str
    at_least: float
    people: int
    named: float
    guessed: float

    @property
    def judged(self) -> bool:
        """Whether there are enough people, of whom a guess names few."""
        return self.people >= FEWEST and self.guessed < GUESSED

    @property
    def exceeds(self) -> bool:
        """Whether rows name too many people right where a guess would not."""
        return self.judged and self.named > NAMED

    @property
    def gain(self) -> float:
        """What the row adds to a guess."""
        return self.named - self.guessed

    def to_mapping(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {**vars(self), "gain": self.gain, "exceeds": self.exceeds}


def attribute_risks(
    true: FinestCells, shown: FinestCells, base: int, bins: Sequence[float] = BINS
) -> tuple[AttributeRisk, ...]:
    """Attribute inference from single rows for every variable that is not a function of another one.

    ``true`` and ``shown`` hold the occupied and the shown cells of one dataset, in any order.
    """
    roots = root_variables(true.dataset)
    risks = []
    for number, index in enumerate(roots):
        check_stop()
        report_progress("measuring attributes", number / len(roots))
        if len(roots) > 1:
            rows = AttributeRows.of(true.dataset, index, roots)
            risks += list(_risks(rows, true, shown, base, bins))
    return tuple(risks)


def root_variables(dataset: Dataset) -> list[int]:
    """The places of variables that are no function of another one."""
    roots = controlled_levels(dataset)
    return [index for index, v in enumerate(dataset.variables) if v.name in roots]


@dataclass(frozen=True)
class AttributeRows:
    """The rows of one variable: numbered by the other variables, those with most codes last."""

    dataset: Dataset
    variable: int
    others: tuple[int, ...]

    @classmethod
    def of(cls, dataset: Dataset, index: int, roots: Sequence[int]) -> AttributeRows:
        """The rows of the variable at a place, among these variables."""
        others = [p for p in roots if p != index]
        sizes = [len(v.codes) for v in dataset.variables]
        return cls(dataset, index, tuple(sorted(others, key=lambda p: (sizes[p], p))))

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.dataset.variables[self.variable].codes)

    def numbers(self, codes: Array, dropped: int = 0) -> Words:
        """The row of every cell, without so many of the variables with most codes."""
        numbers = np.zeros(codes.shape[1], dtype=np.uint64)
        for p in self.others[: len(self.others) - dropped]:
            size = np.uint64(len(self.dataset.variables[p].codes))
            numbers = numbers * size + codes[p].astype(np.uint64)
        return numbers

    def possible(self, codes: Array) -> Mask:
        """Which categories can exist in the row of each cell, by the structural zeros."""
        can_exist = np.ones((codes.shape[1], self.size), dtype=np.bool_)
        if dependents(self.dataset, self.variable):
            return can_exist
        name = self.dataset.variables[self.variable].name
        if not any(name in zero.where for zero in self.dataset.structural_zeros):
            can_exist &= possible_cells(self.dataset, codes)[:, None]
            return can_exist
        other = codes.copy()
        for code in range(self.size):
            other[self.variable] = code
            can_exist[:, code] = possible_cells(self.dataset, other)
        return can_exist

    def several(self, codes: Array) -> Mask:
        """Whether more than one category can exist in the row of each cell."""
        has_several = np.empty(codes.shape[1], dtype=np.bool_)
        for begin in range(0, has_several.size, self.at_once):
            still_working()
            part = slice(begin, begin + self.at_once)
            has_several[part] = self.possible(codes[:, part]).sum(axis=1) > 1
        return has_several

    @property
    def at_once(self) -> int:
        """Of how many rows all categories are looked at in one go: there may be very many categories."""
        return min(_AT_ONCE, max(1, _MOST_HELD // self.size))

    def expected(self, codes: Array, counts: Ints, wanted: Array) -> Floats:
        """How many people the rows of these cells should hold by those that differ in the variable with most
        codes."""
        share = np.bincount(codes[self.others[-1]], weights=counts) / max(int(counts.sum()), 1)
        near = self._sums(codes, counts, wanted, 1) - self._sums(codes, counts, wanted, 0)
        code_share = share[wanted[self.others[-1]]]
        return np.asarray(near * code_share / np.maximum(1 - code_share, 1e-9))

    def _sums(self, codes: Array, counts: Ints, wanted: Array, dropped: int) -> Ints:
        """For every wanted cell, the sum of the counts of all cells with its number."""
        groups, which = np.unique(self.numbers(wanted, dropped), return_inverse=True)
        sums = np.zeros(groups.size)
        for part, place, known in self.found_in(groups, codes, dropped):
            sums += np.bincount(place, counts[part][known], groups.size)
        return np.asarray(sums[which].astype(np.int64))

    def found_in(
        self, groups: Words, codes: Array, dropped: int = 0
    ) -> Iterator[tuple[slice, Ints, Mask]]:
        """Cells part by part: where those that have one of these numbers find it, and which they are."""
        for part in parts_of(codes.shape[1]):
            place, known = find(groups, self.numbers(codes[:, part], dropped))
            yield part, place[known], known


def _alone(rows: AttributeRows, shown: FinestCells, base: int) -> Ints:
    """The cells that show the base in a row in which no other one shows anybody, in the order of rows."""
    cells = [np.zeros(0, dtype=np.int64)]
    for place, row in by_number(lambda part: rows.numbers(shown.codes[:, part]), len(shown)):
        visible = shown.counts[place] > 0
        _, first, size = np.unique(row[visible], return_index=True, return_counts=True)
        one = place[visible][first[size == 1]]
        cells.append(one[shown.counts[one] == base])
    return np.concatenate(cells)


def _risks(
    rows: AttributeRows, true: FinestCells, shown: FinestCells, base: int, bins: Sequence[float]
) -> Iterator[AttributeRisk]:
    codes, counts = shown.codes, shown.counts
    first = _alone(rows, shown, base)
    # Where a single category can exist it is no secret.
    still_working()
    first = first[rows.several(codes[:, first])]
    row = rows.numbers(codes[:, first])
    named = codes[rows.variable, first].astype(np.int64)
    guess = guessed(rows, codes, counts, first, counts[first])
    expected = rows.expected(codes, counts, codes[:, first])
    inside_bin = np.searchsorted(np.asarray(bins), expected, side="right")
    people, right = np.zeros(len(bins) + 1), np.zeros((2, len(bins) + 1))
    for part, place, known in rows.found_in(row, true.codes):
        weight, category = true.counts[part][known], true.codes[rows.variable, part][known]
        people += np.bincount(inside_bin[place], weight, people.size)
        for hits, predicted in zip(right, (named, guess), strict=True):
            is_right = category == predicted[place]
            hits += np.bincount(inside_bin[place], weight * is_right, people.size)
    name = rows.dataset.variables[rows.variable].name
    for least, total, one, other in zip(bins, people[1:], *right[:, 1:], strict=True):
        named_right, guessed_right = (int(n) / max(int(total), 1) for n in (one, other))
        yield AttributeRisk(name, float(least), int(total), named_right, guessed_right)


def guessed(
    rows: AttributeRows, codes: Array, counts: Ints, wanted: Ints, own_counts: Ints
) -> Ints:
    """The likeliest category of each row by the rest of the file; ``own_counts`` are left out of its own."""
    category = codes[rows.variable, wanted].astype(np.int64)
    guess = np.empty(wanted.size, dtype=np.int64)
    similar = [
        _Similar(rows, dropped, codes, counts, wanted) for dropped in range(len(rows.others), 0, -1)
    ]
    for begin in range(0, wanted.size, rows.at_once):
        still_working()
        part = slice(begin, begin + rows.at_once)
        at = wanted[part]
        belief = np.full((at.size, rows.size), 1.0 / rows.size)
        for wider in similar:
            held = wider.held(part)
            held[np.arange(at.size), category[part]] -= own_counts[part]
            total = held.sum(axis=1, keepdims=True)
            belief = (held + _PRIOR * belief) / (total + _PRIOR)
        guess[part] = (belief * rows.possible(codes[:, at])).argmax(axis=1)
    return guess


class _Similar:
    """Cells by a number that similar rows share, and what those with the number of a wanted cell hold."""

    def __init__(
        self, rows: AttributeRows, dropped: int, codes: Array, counts: Ints, wanted: Ints
    ) -> None:
        self._size = size = rows.size
        groups, self._which = np.unique(
            rows.numbers(codes[:, wanted], dropped), return_inverse=True
        )
        # Wide rows are few, and are shared by very many cells.
        room = groups.size * size
        self._all: Array | None = np.zeros(0) if room <= _MOST_HELD else None
        cells: list[tuple[Ints, Ints, Ints]] = []
        for part, place, known in rows.found_in(groups, codes, dropped):
            category = codes[rows.variable, part][known].astype(np.int64)
            weights = counts[part][known]
            if self._all is None:
                cells.append((narrow(place), narrow(category), narrow(weights)))
            else:
                sums = np.bincount(place * size + category, weights, room)
                self._all = self._all + sums if self._all.size else sums
        if cells:
            group, *held = (np.concatenate(column) for column in zip(*cells, strict=True))
            order = np.argsort(group, kind="stable")
            self._category, self._counts = (column[order] for column in held)
            self._length = np.bincount(group, minlength=groups.size)
            self._low = np.cumsum(self._length) - self._length

    def held(self, part: slice) -> Floats:
        """The counts of all categories over the cells similar to some wanted ones."""
        if self._all is not None:
            return np.asarray(self._all.reshape(-1, self._size)[self._which[part]])
        chosen, which = np.unique(self._which[part], return_inverse=True)
        return np.asarray(self._of(chosen)[which])

    def _of(self, chosen: Ints) -> Floats:
        low, length = self._low[chosen], self._length[chosen]
        member = np.repeat(np.arange(chosen.size), length)
        within = np.arange(member.size) - np.repeat(np.cumsum(length) - length, length)
        cell = low[member] + within
        places = member * self._size + self._category[cell]
        held = np.bincount(places, weights=self._counts[cell], minlength=chosen.size * self._size)
        return np.asarray(held.reshape(chosen.size, self._size))
