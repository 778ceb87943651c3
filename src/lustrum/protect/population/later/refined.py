"""A later release with more variables: the parts of a cell add up to what it showed.

This is always possible for a cell with the same records: parts next to their true counts can add up to any
multiple of the base next to the true sum. Cells that the key draws, and those whose number their parts cannot
add up to, are free.
"""

from __future__ import annotations

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population.later.before import EarlierRelease, Kept, Redraw, at, find, joined
from lustrum.protect.population.start import derived, options

_PART_ATTEMPTS = 400
_MOVES = 0.25
"""About how many of the cells that are drawn again show another number."""


def more_variables(
    cells: FinestCells, extra: Array, before: EarlierRelease, other: Mask, redraw: Redraw
) -> tuple[FinestCells, Kept]:
    """All parts, which of them the earlier release fixes, and what the parts of a cell add up to."""
    base = redraw.base
    parent = np.unique(before.parents(cells.codes))
    gone = ~np.isin(before.numbers, parent)
    lost = int((gone & (before.keys > 0)).sum())
    shown, _ = before.of_parents(parent)
    least, most = _reach(cells, before, parent, base)
    fits = (least <= shown) & (shown <= most)
    # The same records are the same release: nothing is drawn again.
    if other.any() or lost:
        forced = int((~fits).sum())
        share = before.share(redraw, _MOVES * before.numbers.size, before.decoys(redraw, 0, forced))
    else:
        share = 0.0
    free = before.drawn(parent, share) | ~fits
    # An empty cell can show the base, nothing larger; what is drawn again begins elsewhere.
    shows = gone & (before.shown > 0) & redraw.empty_shown & ~before.drawn(before.numbers, share)
    chosen = _parts_of_empty(cells, before, np.flatnonzero(shows))
    # A candidate may not change a number that is kept: that of a parent that was and is empty.
    candidate = before.parents(extra)
    occupied = find(parent, candidate)[1]
    listed = np.isin(candidate, before.numbers[shows])
    extra = extra[:, (occupied | before.drawn(candidate, share)) & ~listed]
    every = joined(cells, np.concatenate([extra, chosen.astype(extra.dtype)], axis=1))
    places, is_occupied = find(parent, before.parents(every.codes))
    was_empty = np.isin(before.parents(every.codes), before.numbers[shows])
    tied = is_occupied & ~at(free, places, is_occupied)
    group = np.where(tied, places, -1)
    target = dict(zip(places[tied].tolist(), shown[places[tied]].tolist(), strict=True))
    number = np.where(was_empty, base, 0).astype(np.int64)
    no = np.zeros(len(every), dtype=np.bool_)
    return every, Kept(
        was_empty,
        number,
        group,
        target,
        no,
        no,
        int((~other).sum()),
        int(other.sum()) + lost,
    )


def _reach(
    cells: FinestCells, before: EarlierRelease, parent: Array, base: int
) -> tuple[Ints, Ints]:
    """The smallest and the largest number that the occupied parts of a cell can add up to."""
    choice = options(cells.counts, base, False)
    parent_index = np.searchsorted(parent, before.parents(cells.codes))
    least = np.bincount(parent_index, weights=choice.low).astype(
        np.int64
    )  # no parent is without parts
    moves = np.bincount(parent_index, weights=choice.movable).astype(np.int64)
    return least, least + base * moves


def _parts_of_empty(cells: FinestCells, before: EarlierRelease, showing: Ints) -> Array:
    """For every empty cell of the earlier release that shows somebody, the part that shows them now."""
    parents = before.cells.codes[:, before.order[showing]]
    codes = np.zeros((len(cells.dataset.variables), showing.size), dtype=cells.codes.dtype)
    codes[before.rows] = parents
    new = [i for i in range(codes.shape[0]) if i not in before.rows]
    waiting = np.arange(showing.size)
    stream = scramble(derived(before.root, "part"), before.numbers[showing])
    for attempt in range(_PART_ATTEMPTS):
        for row in new:
            size = len(cells.dataset.variables[row].codes)
            random_words = scramble(derived(before.root, f"part {attempt} {row}"), stream[waiting])
            codes[row, waiting] = ((random_words >> np.uint64(32)) * np.uint64(size)) >> np.uint64(
                32
            )
        waiting = waiting[~possible_cells(cells.dataset, codes[:, waiting])]
        if not waiting.size:
            return codes
    raise InputError(
        "The new variables leave no possible part for a cell that showed somebody; correct structural zeros."
    )
