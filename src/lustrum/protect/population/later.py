"""What a later release of the same people takes from the one before, and which cells are drawn again.

A cell keeps its number wherever the number is still next to its true count, whether or not its records
changed. Beside that the key draws cells, among all that have two numbers to choose from, which are drawn
again: at least the share ``refresh``, and more where many numbers cannot be kept. Which cells these are, and
where they start, depends on the key and on published numbers alone. So a number that differs says that a
record changed only where it could not be kept, and such cells stand among several times as many that were
drawn again.

A new variable refines: the parts of a cell add up to its number before. This is always possible for a cell with
the same records: parts next to their true counts can add up to any multiple of the base next to the true sum.
Cells that the key draws, and those whose number their parts cannot add up to, are free.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from math import ceil

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population.start import cell_numbers, derived, find, options

MARGIN = 2
"""How many times as many cells as there must be decoys are drawn again: the search moves the others."""


@dataclass(frozen=True)
class Redraw:
    """How later releases are drawn: parameters of the method."""

    base: int
    small_only: bool
    empty_shown: bool
    refresh: float
    change_odds: float
    min_left: int = 2


@dataclass(frozen=True, eq=False)
class Kept:
    """What an earlier release fixes: numbers of cells, sums of groups of cells, and where others start."""

    frozen: Mask
    number: Ints
    group: Ints  # -1: free
    target: dict[int, int]
    starts: Mask  # cells that start at a number which is given, not drawn by their records,
    up: Mask  # and whether that is the upper one
    unchanged: int = 0
    changed: int = 0

    @classmethod
    def nothing(cls, cells: int) -> Kept:
        """What the first release finds."""
        zeros = np.zeros(cells, dtype=np.int64)
        no = zeros.astype(np.bool_)
        return cls(no, zeros, np.full(cells, -1, dtype=np.int64), {}, no, no)


@dataclass(frozen=True, eq=False)
class EarlierRelease:
    """The earlier release: numbers of its cells in ascending order, what they showed, and sums of keys."""

    cells: FinestCells
    rows: list[int]
    root: bytes
    key: bytes  # of this release alone: it depends on all that the earlier one remembers
    numbers: Words
    shown: Ints
    keys: Words
    order: Ints

    @classmethod
    def of(cls, previous: FinestCells, rows: list[int], key: bytes) -> EarlierRelease:
        numbers = cell_numbers(previous.dataset, previous.codes)
        order = np.argsort(numbers, kind="stable")
        assert previous.keys is not None
        arrays = numbers[order], previous.counts[order], previous.keys[order]
        digest = hmac.new(derived(key, "later release"), digestmod=hashlib.sha256)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return cls(previous, rows, key, digest.digest(), *arrays, order)

    def parents(self, codes: Array) -> Words:
        """The cells of the earlier release in which cells lie."""
        return cell_numbers(self.cells.dataset, codes[self.rows])

    def of_parents(self, parents: Words) -> tuple[Ints, Words]:
        """What these cells showed, and the sums of their keys; 0 where they were empty and showed 0."""
        index, present = find(self.numbers, parents)
        return at(self.shown, index, present), at(self.keys, index, present)

    def inverse(self, cells: FinestCells) -> Ints:
        """The place of every cell's parent among all occupied parents."""
        return np.unique(self.parents(cells.codes), return_inverse=True)[1].ravel()

    def other_keys(self, cells: FinestCells) -> Mask:
        """Whether the occupied parents, in ascending order, have other records than before."""
        parent, inverse = np.unique(self.parents(cells.codes), return_inverse=True)
        sums = np.zeros(parent.size, dtype=np.uint64)
        assert cells.keys is not None
        np.add.at(sums, inverse.ravel(), cells.keys)
        return np.asarray(self.of_parents(parent)[1] != sums)

    def draw(self, purpose: str, numbers: Words) -> Words:
        """A word for each cell in this release."""
        return scramble(derived(self.key, purpose), numbers)

    def decoys(self, redraw: Redraw, kind: int, forced: int) -> int:
        """How many cells with the same records must differ beside so many whose numbers cannot be kept.

        The key draws up to twice as many as the odds demand, so that their number says little.
        """
        word = int(self.draw("decoys", np.array([kind], dtype=np.uint64))[0] >> np.uint64(32))
        odds = (1 - redraw.change_odds) / redraw.change_odds
        return ceil(odds * forced * (1 + word / 2**32))

    def share(self, redraw: Redraw, movers: float, decoys: int) -> float:
        """Which share of a class is drawn again: ``refresh``, or twice, four times, ... as much.

        ``movers`` are the cells that would show another number, to one side, if all of the class were drawn
        again. The search needs others beside the decoys to make up for them.
        """
        share = redraw.refresh
        while share < 1 and share * movers < MARGIN * decoys:
            share *= 2
        return min(share, 1.0)

    def drawn(self, numbers: Words, share: float) -> Mask:
        """Which cells the key draws, so many of them on average."""
        random_words = self.draw("refresh", numbers) >> np.uint64(32)
        return np.asarray(random_words < np.uint64(int(share * 2**32)))


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


def joined(cells: FinestCells, extra: Array) -> FinestCells:
    """Occupied cells and candidates among the empty ones."""
    nobody = np.zeros(extra.shape[1], dtype=np.uint64)
    return FinestCells(
        cells.dataset,
        np.concatenate([cells.codes, extra.astype(cells.codes.dtype)], axis=1),
        np.concatenate([cells.counts, nobody.astype(np.int64)]),
        None if cells.keys is None else np.concatenate([cells.keys, nobody]),
    )


def at(values: Array, index: Ints, present: Mask) -> Array:
    """The values at some places; 0 where nothing was found."""
    out = np.zeros(index.size, dtype=values.dtype)
    out[present] = values[index[present]]
    return out


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
