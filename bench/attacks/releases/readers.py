"""What readers of several releases say, from published numbers and the known method alone.

The truth judges what they say. A learnt reader is given the truth of one half of the cells and speaks about the
other half: no reader without the truth can do better with the same view of a cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from attacks.releases.series import Joined

Array = np.ndarray[Any, Any]
FEWEST = 30
"""A learnt reader speaks about cells with the same view only where it has seen so many."""


@dataclass(frozen=True)
class Named:
    """Cells of which a reader says something, and how many of these it is true of."""

    cells: int
    right: int

    @property
    def odds(self) -> float:
        """How often the reader is right."""
        return self.right / max(self.cells, 1)

    def __add__(self, other: Named) -> Named:
        return Named(self.cells + other.cells, self.right + other.right)

    def __str__(self) -> str:
        return f"{self.right:,} of {self.cells:,} ({100 * self.odds:.1f} %)"


def differing(joined: Joined) -> Named:
    """Says of every cell that differs from the release before that it has changed."""
    return Named(int(joined.moved.sum()), int((joined.moved & joined.changed).sum()))


def differing_by_step(joined: Joined) -> dict[tuple[int, int], Named]:
    """The same by the numbers before and after."""
    found = {}
    before, after = joined.shown[:-1], joined.shown[1:]
    for one, two in sorted(set(zip(before[joined.moved], after[joined.moved], strict=True))):
        here = (before == one) & (after == two)
        found[int(one), int(two)] = Named(int(here.sum()), int((here & joined.changed).sum()))
    return found


def jumped(joined: Joined, base: int) -> Named:
    """Says of every cell that moved by more than one step that it has changed; that is certain."""
    far = np.abs(joined.shown[1:] - joined.shown[:-1]) > base
    return Named(int(far.sum()), int((far & joined.changed).sum()))


def moved_small(joined: Joined, base: int) -> Named:
    """Says of every cell that has shown 0 and the base, and nothing else, that it holds 1 or 2."""
    shown = joined.shown
    both = (shown.min(axis=0) == 0) & (shown.max(axis=0) == base)
    small = (joined.true[-1] > 0) & (joined.true[-1] < base)
    return Named(int(both.sum()), int((both & small).sum()))


def moved_occupied(joined: Joined) -> Named:
    """Says of every cell that moved that it is or was occupied."""
    moved = joined.moved.any(axis=0)
    return Named(int(moved.sum()), int((moved & (joined.true > 0).any(axis=0)).sum()))


def ever_changed(joined: Joined) -> dict[int, Named]:
    """Says of every cell that moved, by how often it did, that it has changed at some time."""
    times, ever = joined.moved.sum(axis=0), joined.changed.any(axis=0)
    return {
        int(n): Named(int((times == n).sum()), int((ever & (times == n)).sum()))
        for n in np.unique(times[times > 0])
    }


def learnt(joined: Joined, said: Array, at_least: float, seed: int = 1) -> Named:
    """What a learnt reader says at this confidence; its view of a cell is all numbers that it has shown.

    It does not speak of cells that never showed anybody. Sequences that are rare are seen as their lowest,
    highest and last number, ups and moves.
    """
    seen_once = joined.shown.max(axis=0) > 0
    joined, said = joined.at(seen_once), said[seen_once]
    shown = joined.shown
    summary = np.stack(
        [
            shown.min(axis=0),
            shown.max(axis=0),
            shown[-1],
            (shown == shown.max(axis=0)).sum(axis=0),
            joined.moved.sum(axis=0),
        ]
    )
    teaches = np.random.default_rng(seed).random(shown.shape[1]) < 0.5
    cells = right = 0
    spoken = np.zeros(shown.shape[1], dtype=bool)
    for view in (shown, summary):
        _, kind = np.unique(view, axis=1, return_inverse=True)
        kind = kind.ravel()
        seen = np.bincount(kind, weights=teaches)
        true = np.bincount(kind, weights=teaches & said)
        sure = (seen >= FEWEST) & (true >= at_least * seen)
        known = (seen >= FEWEST)[kind] & ~teaches & ~spoken
        here = known & sure[kind]
        cells, right = cells + int(here.sum()), right + int((here & said).sum())
        spoken |= known
    return Named(cells, right)


def by_tables(numbers: Array, change: Array, sizes: tuple[int, ...], most: int = 3) -> Array:
    """How much the tables of up to so many variables speak for a change of each cell, (steps, cells).

    ``change`` says by how much the cells differ at every step. A person who came raises the number of every
    table cell that holds them by one, whatever the search did to finest cells. Differences are weighed by how
    much all cells of their table differ.
    """
    codes, rest = [], numbers
    for size in reversed(sizes):
        codes.append((rest % np.uint64(size)).astype(np.int64))
        rest = rest // np.uint64(size)
    codes.reverse()
    score = np.zeros(change.shape)
    for order in range(1, most + 1):
        for chosen in combinations(range(len(sizes)), order):
            number = np.zeros(numbers.size, dtype=np.int64)
            for v in chosen:
                number = number * sizes[v] + codes[v]
            place = np.unique(number, return_inverse=True)[1].ravel()
            for own, moved in zip(score, change, strict=True):
                sums = np.bincount(place, weights=moved)
                variance = float((sums**2).mean())
                if variance > 0:
                    own += sums[place] / variance
    return score
