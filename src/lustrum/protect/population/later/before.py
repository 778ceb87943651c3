"""The release before: what its cells showed, who was in them, and what this release takes from it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from math import ceil

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.protect.population.start import cell_numbers, derived

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


def find(ordered: Words, wanted: Words) -> tuple[Ints, Mask]:
    """Where words stand among ordered ones, and whether they do."""
    if not ordered.size:
        return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=np.bool_)
    index = np.minimum(np.searchsorted(ordered, wanted), ordered.size - 1)
    return index.astype(np.int64), np.asarray(ordered[index] == wanted)


def at(values: Array, index: Ints, present: Mask) -> Array:
    """The values at some places; 0 where nothing was found."""
    out = np.zeros(index.size, dtype=values.dtype)
    out[present] = values[index[present]]
    return out
