"""A later release goes on from the one before: with the same variables, or with one more that refines.

The parts of a cell, at the new variable, add up to its number where they can. They show numbers next to their
counts, as in a first release, and have offsets of their own; see :mod:`lustrum.protect.population.later`.
"""

from __future__ import annotations

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Words
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population.later import (
    EarlierRelease,
    Kept,
    Redraw,
    at,
    joined,
    same_variables,
)
from lustrum.protect.population.start import Options, cell_numbers, derived, find

_PART_ATTEMPTS = 400


def more_variables(
    cells: FinestCells,
    extra: Array,
    before: EarlierRelease,
    choice: Options,
    share: tuple[int, int],
    redraw: Redraw,
) -> tuple[FinestCells, Kept]:
    """All parts, and what the parts of a cell add up to: its number, where they can."""
    base = redraw.base
    own = before.parents(cells.codes)
    parents = _parents(cells, before)
    levels = before.follow(parents, redraw)
    number, wanted = cell_numbers(parents.dataset, parents.codes), levels.start
    order = np.argsort(number, kind="stable")
    ordered, sums = number[order], wanted[order]
    place = np.searchsorted(ordered, own)
    # Parts next to their counts add up to numbers from the smallest to the largest sum.
    least = np.bincount(place, weights=choice.low, minlength=ordered.size)
    most = least + base * np.bincount(place, weights=choice.movable, minlength=ordered.size)
    occupied = parents.counts[order] > 0
    fits = occupied & (least <= sums) & (sums <= most)
    # An empty cell can show the base, nothing larger.
    shows = ~occupied & (sums > 0) & redraw.empty_shown
    chosen = _parts_of_empty(cells, parents.codes[:, order[shows]], ordered[shows], before)
    # A candidate may not change the number of a cell that is empty.
    extra = extra[:, at(occupied, *find(ordered, before.parents(extra)))]
    every = joined(cells, np.concatenate([extra, chosen.astype(extra.dtype)], axis=1))
    place = np.searchsorted(ordered, before.parents(every.codes))
    tied = fits[place]
    kept = Kept(
        movable=~shows[place],
        low=np.zeros(0, dtype=np.int64),
        up=tied,
        number=np.where(shows[place], base, 0).astype(np.int64),
        group=np.where(tied, place, -1),
        target=dict(zip(place[tied].tolist(), sums[place[tied]].tolist(), strict=True)),
        share=share,
        unchanged=int((~levels.changed & (parents.counts > 0)).sum()),
        changed=int(levels.changed.sum()),
    )
    return every, kept


def _parents(cells: FinestCells, before: EarlierRelease) -> FinestCells:
    """The cells of the earlier release as they are now, those that are empty included."""
    numbers, first, place = np.unique(
        before.parents(cells.codes), return_index=True, return_inverse=True
    )
    keys = np.zeros(numbers.size, dtype=np.uint64)
    assert cells.keys is not None
    np.add.at(keys, place.ravel(), cells.keys)
    counts = np.bincount(place.ravel(), weights=cells.counts, minlength=numbers.size)
    gone = ~np.isin(before.numbers, numbers)
    now = cells.codes[before.rows][:, first]
    occupied = FinestCells(before.cells.dataset, now, counts.astype(np.int64), keys)
    return joined(occupied, before.cells.codes[:, before.order[gone]])


def _parts_of_empty(
    cells: FinestCells, parents: Array, numbers: Words, before: EarlierRelease
) -> Array:
    """For every empty cell of the earlier release that shows somebody, the part that shows them now."""
    codes = np.zeros((len(cells.dataset.variables), numbers.size), dtype=cells.codes.dtype)
    codes[before.rows] = parents
    new = [i for i in range(codes.shape[0]) if i not in before.rows]
    waiting = np.arange(numbers.size)
    stream = scramble(derived(before.root, "part"), numbers)
    for attempt in range(_PART_ATTEMPTS):
        for row in new:
            size = np.uint64(len(cells.dataset.variables[row].codes))
            words = scramble(derived(before.root, f"part {attempt} {row}"), stream[waiting])
            codes[row, waiting] = ((words >> np.uint64(32)) * size) >> np.uint64(32)
        waiting = waiting[~possible_cells(cells.dataset, codes[:, waiting])]
        if not waiting.size:
            return codes
    raise InputError(
        "The new variables leave no possible part for a cell that showed somebody; correct structural zeros."
    )


def rows_of(cells: FinestCells, previous: FinestCells) -> list[int]:
    places = {v.name: i for i, v in enumerate(cells.dataset.variables)}
    rows = []
    for variable in previous.dataset.variables:
        row = places.get(variable.name)
        if row is None:
            raise InputError(
                f"The earlier release has the variable {variable.name!r}, which is missing now; keep it, and "
                "leave it out of tables."
            )
        if cells.dataset.variables[row].codes != variable.codes:
            raise InputError(
                f"The codes of {variable.name!r} differ from those of the earlier release; a second release "
                "needs the same ones."
            )
        rows.append(row)
    return rows


MOST_OTHER = (1, 2)
"""A release is refused where more than this share of its smallest cells has other keys than before,"""
FEWEST_SMALL = 20
"""if it has so many of them: in larger cells somebody changes nearly always."""


def continued(
    cells: FinestCells,
    extra: Array,
    previous: FinestCells,
    key: bytes,
    choice: Options,
    share: tuple[int, int],
    redraw: Redraw,
) -> tuple[FinestCells, Kept]:
    """All cells of a later release, and what the earlier one fixes of them.

    ``choice`` is that of ``cells``, and ``share`` by how much these would be lowered at a start.
    """
    if previous.keys is None or cells.keys is None:
        raise InputError(
            "A second release needs the record keys of both: give the memory of the first release and "
            "cells counted with keys."
        )
    rows = rows_of(cells, previous)
    refined = len(cells.dataset.variables) > len(previous.dataset.variables)
    if redraw.small_only and refined:
        raise InputError(
            "Counts that stay exact cannot be refined by a new variable; move all cells ('cells')."
        )
    before = EarlierRelease.of(previous, rows, key, share)
    _require_matched(cells, before, redraw.base)
    if refined:
        return more_variables(cells, extra, before, choice, share, redraw)
    return same_variables(cells, extra, before, redraw)


def _require_matched(cells: FinestCells, before: EarlierRelease, base: int) -> None:
    """Refuse a release whose smallest cells mostly have other keys: its records were not matched."""
    parents = _parents(cells, before)
    numbers = cell_numbers(parents.dataset, parents.codes)
    assert parents.keys is not None
    differ = np.asarray(parents.keys != at(before.keys, *find(before.numbers, numbers)))
    order = np.argsort(numbers, kind="stable")
    other = differ[order[np.searchsorted(numbers[order], before.parents(cells.codes))]]
    small = cells.counts < base
    share, of = MOST_OTHER
    if int(small.sum()) >= FEWEST_SMALL and of * int((small & other).sum()) > share * int(
        small.sum()
    ):
        raise InputError(
            f"More than {share} in {of} of the smallest cells have other records than in the earlier release: "
            "the records of both are not matched. Name a column of identifiers that stay ('record_id'), give "
            "records of the first release the identifiers that they had there, or say that the earlier release "
            "was never published."
        )
