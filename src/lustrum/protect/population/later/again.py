"""A later release with the same variables: cells keep their numbers, are drawn again, or cannot be kept."""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Array, Mask, Words
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population.later.before import EarlierRelease, Kept, Redraw, joined
from lustrum.protect.population.start import cell_numbers, derived, options

CLASSES = 4
"""Cells are drawn again class by class: those that show 0 or the base, the base or its double, and so on; the
last class takes all larger ones."""


def same_variables(
    cells: FinestCells,
    extra: Array,
    before: EarlierRelease,
    other: Mask,
    redraw: Redraw,
    held: Words | None,
) -> tuple[FinestCells, Kept]:
    """The same variables: cells keep their numbers, are drawn again, or move to the nearest number."""
    every = joined(cells, _nobody_there(cells, extra, before, redraw))
    base = redraw.base
    choice = options(every.counts, base, redraw.small_only)
    empty = every.counts == 0
    two = choice.movable | (empty & redraw.empty_shown)
    shown, keys = before.of_parents(before.parents(every.codes))
    assert every.keys is not None
    changed = every.keys != keys
    low, high = choice.low, choice.low + base * two
    number = np.clip(shown, low, high)
    numbers = cell_numbers(every.dataset, every.codes)
    if held is not None and held.size:
        number = np.where(choice.movable & np.isin(numbers, held), high, number)
    same_number = number == shown
    gone = np.flatnonzero((before.keys > 0) & ~np.isin(before.numbers, before.parents(cells.codes)))
    report = int((~changed & ~empty).sum()), int(other.sum() + gone.size)
    none = np.full(len(every), -1, dtype=np.int64)
    up = number > low
    if not report[1]:
        # The same records are the same release.
        return every, Kept(np.ones(len(every), dtype=np.bool_), number, none, {}, two, up, *report)
    free = same_number & two
    if held is not None and held.size:
        free &= ~(choice.movable & np.isin(numbers, held))
    # A cell above the base that showed both of its numbers holds neither of them.
    if base - 1 < redraw.min_left:
        free &= low == 0
    again, pinned = np.zeros((2, len(every)), dtype=np.bool_)
    classes = np.minimum(np.where(free, low, np.minimum(number, shown)) // base, CLASSES - 1)
    for kind in range(CLASSES):
        here = classes == kind
        sides = [int((here & (number > shown)).sum()), int((here & (number < shown)).sum())]
        decoys = [before.decoys(redraw, 2 * kind + side, n) for side, n in enumerate(sides)]
        ups, size = int((here & free & up).sum()), int((here & free).sum())
        share = before.share(redraw, ups * (size - ups) / max(size, 1), max(decoys))
        places = np.flatnonzero(here & free & before.drawn(numbers, share))
        again[places] = True
        # Whether a cell starts at its upper number says nothing of what it holds.
        order = np.argsort(before.draw("order", numbers[places]), kind="stable")
        was, up[places] = up[places], up[places[order]]
        for side, wanted in enumerate(decoys):
            moved = places[(up[places] != was) & (was == bool(side)) & ~changed[places]]
            rank = np.argsort(before.draw("decoy", numbers[moved]), kind="stable")
            pinned[moved[rank[:wanted]]] = True
    number = np.where(pinned, low + base * up, number)
    return every, Kept(~again | pinned, number, none, {}, again, up, *report)


def _nobody_there(
    cells: FinestCells, extra: Array, before: EarlierRelease, redraw: Redraw
) -> Array:
    """Cells without anybody that may show somebody: those of the earlier release first.

    A set that stays is what makes empty cells move like others. Cells that people left are among them.
    """
    codes = before.cells.codes[:, before.order]
    mine = np.zeros((len(cells.dataset.variables), codes.shape[1]), dtype=cells.codes.dtype)
    mine[before.rows] = codes
    if not redraw.empty_shown:
        return mine[:, :0]
    left = possible_cells(cells.dataset, mine)
    left &= ~np.isin(before.numbers, before.parents(cells.codes))
    showing = left & (before.shown > 0)
    waiting = np.flatnonzero(left & (before.shown == 0))
    # The same ones wait in every release.
    ever = scramble(derived(before.root, "waiting"), before.numbers[waiting])
    rank = np.argsort(ever, kind="stable")
    room = max(extra.shape[1] - int(showing.sum()), 0)
    waiting = waiting[rank[:room]]
    new = ~np.isin(before.parents(extra), before.numbers)
    fill = np.flatnonzero(new)[: max(room - waiting.size, 0)]
    return np.concatenate(
        [mine[:, showing], mine[:, waiting], extra[:, fill].astype(mine.dtype)], axis=1
    )
