"""From the memory of the release before to all cells of this one, and what stays of their numbers."""

from __future__ import annotations

from lustrum.model import InputError
from lustrum.model.arrays import Array, Mask, Words
from lustrum.model.finest import FinestCells
from lustrum.protect.population.later.again import same_variables
from lustrum.protect.population.later.before import EarlierRelease, Kept, Redraw, rows_of
from lustrum.protect.population.later.refined import more_variables

MOST_OTHER = (1, 2)
"""A release is refused where more than this share of its smallest cells has other keys than before,"""
FEWEST_SMALL = 20
"""if it has so many of them: in larger cells somebody changes nearly always."""


def continued(
    cells: FinestCells,
    extra: Array,
    previous: FinestCells,
    key: bytes,
    redraw: Redraw,
    held: Words | None = None,
) -> tuple[FinestCells, Kept]:
    """All cells of a later release, and what the earlier one fixes of them."""
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
    before = EarlierRelease.of(previous, rows, key)
    other = before.other_keys(cells)
    _require_matched(cells, other[before.inverse(cells)], redraw.base)
    if refined:
        return more_variables(cells, extra, before, other, redraw)
    return same_variables(cells, extra, before, other, redraw, held)


def _require_matched(cells: FinestCells, other: Mask, base: int) -> None:
    """Refuse a release whose smallest cells mostly have other keys: its records were not matched."""
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
