"""What a later release of the same people takes from the one before: numbers that follow known changes.

Every finest cell has a lasting *offset*, and shows the multiple of the base at or below its *level*, which is
its count plus its offset; below 0 it shows 0. The first release chooses a number next to the count. The offset
is that number plus ``spare`` less the count. ``spare`` is drawn by the key and depends on the number, never on
the count. A cell that was empty and showed 0 has its ``spare`` for an offset and need not be remembered.

Later numbers are a function of the first number, ``spare`` and the changes of the count. Somebody who knows the
changes, such as records of their own, learns ``spare`` from them, and nothing about the count beside what the
first number told.

A number that differs would name a changed record. So the key also draws cells whose level lies beside another
number, whatever they hold. One in eight, or in four or two where many changed, gets an offset that is larger or
smaller by one, and shows that number. The search chooses which, so that tables stay close, and of each count it
moves the same share within a tenth of it. A choice therefore changes the odds of two counts by a factor of 11/9
at most. The product of these factors is remembered for every cell; where it would exceed ``known_changes`` the
key alone decides. An offset never moves by more than one from where it began.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints, Mask, Words
from lustrum.model.finest import FinestCells, ascending, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population.start import cell_numbers, derived, find, options

SHIFT = 1
"""How far an offset may move from where it began, beside changes of the count."""
ONE_IN = (8, 4, 2)
"""One in so many of the cells that are drawn shows the other number: the first of these that is enough."""
AWAY = Fraction(1, 10)
"""By how much of that share the search may be away from it, for each count."""
MARGIN = 1.1
"""How many more cells are drawn than the bounds of the search ask for: which cells the key draws is chance."""


def shares_moved(one_in: int) -> tuple[Fraction, Fraction]:
    """From which to which share of the drawn cells of a count the search moves."""
    return (1 - AWAY) / one_in, (1 + AWAY) / one_in


def odds_of(one_in: int, moved: bool) -> float:
    """By how much a choice of the search changes the odds of two counts at most.

    >>> round(odds_of(8, moved=True), 3), round(odds_of(8, moved=False), 3), round(odds_of(2, moved=False), 3)
    (1.222, 1.029, 1.222)
    """
    low, high = shares_moved(one_in)
    return float(high / low if moved else (1 - low) / (1 - high))


@dataclass(frozen=True)
class Redraw:
    """How later releases are drawn: parameters of the method."""

    base: int
    small_only: bool
    empty_shown: bool
    refresh: float
    change_odds: float
    known_changes: float = 2.0


LASTING = ("offset", "shift", "odds")
"""What is remembered of each cell beside its number and the keys of its records."""


@dataclass(frozen=True, eq=False, repr=False)
class RememberedCells(FinestCells):
    """What the cells of a release show, with the keys of their records and how they follow later changes.

    ``offset`` is the level less the count, ``shift`` how far it was moved from where it began, and ``odds`` by
    how much choices of the search may have changed those of two counts. ``wide`` says that numbers need not be
    next to their counts any more, and ``share`` by how much small cells were lowered at the start. Memories of
    earlier versions have none of these.
    """

    offset: Ints | None = None
    shift: Ints | None = None
    odds: Floats | None = None
    wide: bool = False
    share: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        ordered = ascending(np.asarray(self.codes))
        super().__post_init__()
        for values in (self.offset, self.shift, self.odds):
            if values is not None and (values.shape != self.counts.shape or not ordered):
                raise InputError("Remembered cells stand in ascending order, each with its offset.")


def spare(cells: FinestCells, shown: Ints, key: bytes, base: int, share: tuple[int, int]) -> Ints:
    """By how much the level of a cell exceeds its first number.

    It is 0 for cells that show the base, and uniform below the base for larger ones. Of cells that show 0 those
    that somebody enters are to show as many people as small cells did at the start: ``share`` is by how much
    these were lowered, see :func:`~lustrum.protect.population.start.start_up`.
    """
    purpose = f"offset {len(cells.dataset.variables)}"
    words = scramble(derived(key, purpose), cell_numbers(cells.dataset, cells.codes))
    drawn = (words >> np.uint64(32)).astype(np.float64) / 2.0**32 * base
    lowered = np.maximum(base - 1 - np.floor(drawn * share[1] / max(share[0], 1)), 0)
    return np.where(shown == 0, lowered, np.where(shown == base, 0, np.floor(drawn))).astype(
        np.int64
    )


def number_of(level: Ints, counts: Ints, base: int, small_only: bool) -> Ints:
    """What cells of these levels show; if only small cells are moved, others show their counts.

    >>> number_of(np.array([-2, 2, 3, 8]), np.array([0, 1, 4, 6]), 3, small_only=False).tolist()
    [0, 0, 3, 6]
    """
    number = base * np.maximum(level // base, 0)
    return (
        np.where(counts < base, np.minimum(number, base), counts) if small_only else number
    ).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Levels:
    """Cells that go on from an earlier release: their numbers, and the other ones that some may show."""

    number: Ints
    other: Ints
    one_in: Ints  # cells that are drawn, and one in how many of them moves; 0 for all others
    words: Words  # by which the key orders them
    changed: Mask
    offset: Ints
    shift: Ints
    odds: Floats

    @property
    def start(self) -> Ints:
        """The numbers with those that the key moves."""
        moved = (self.words >> np.uint64(32)) * self.one_in.astype(np.uint64) < np.uint64(1 << 32)
        return np.where((self.one_in > 0) & moved, self.other, self.number)


@dataclass(frozen=True, eq=False)
class Kept:
    """What a release is to begin with: the numbers of cells, which may move, and what parts add up to."""

    movable: Mask
    low: Ints  # the lower number of cells that may move,
    up: Mask  # and whether they begin with the upper one
    number: Ints  # of the other cells
    group: Ints  # -1: free
    target: dict[int, int]
    # The class of every cell that may move, and which share of each stands up, at least and at most.
    kind: Ints | None = None
    up_shares: tuple[tuple[Fraction, Fraction], ...] = ()
    levels: Levels | None = None
    share: tuple[int, int] = (1, 1)
    wide: bool = False
    unchanged: int = 0
    changed: int = 0


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
    share: tuple[int, int]

    @classmethod
    def of(
        cls, previous: FinestCells, rows: list[int], key: bytes, share: tuple[int, int]
    ) -> EarlierRelease:
        numbers = cell_numbers(previous.dataset, previous.codes)
        order = np.argsort(numbers, kind="stable")
        assert previous.keys is not None
        arrays = numbers[order], previous.counts[order], previous.keys[order]
        digest = hmac.new(derived(key, "later release"), digestmod=hashlib.sha256)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        share = getattr(previous, "share", None) or share
        return cls(previous, rows, key, digest.digest(), *arrays, order, share)

    def parents(self, codes: Array) -> Words:
        """The cells of the earlier release in which cells lie."""
        return cell_numbers(self.cells.dataset, codes[self.rows])

    def draw(self, purpose: str, numbers: Words) -> Words:
        """A word for each cell in this release."""
        return scramble(derived(self.key, purpose), numbers)

    def decoys(self, redraw: Redraw, kind: int, moved: int) -> int:
        """How many cells with the same records must differ beside so many that changed.

        The key draws up to twice as many as the odds demand, so that their number says little.
        """
        word = int(self.draw("decoys", np.array([kind], dtype=np.uint64))[0] >> np.uint64(32))
        odds = (1 - redraw.change_odds) / redraw.change_odds
        return ceil(odds * moved * (1 + word / 2**32))

    def follow(self, every: FinestCells, redraw: Redraw) -> Levels:
        """The numbers of cells at the variables of the earlier release, and which of them the key draws."""
        assert every.keys is not None
        numbers = cell_numbers(every.dataset, every.codes)
        index, present = find(self.numbers, numbers)
        shown, keys = (at(values, index, present) for values in (self.shown, self.keys))
        base, counts = redraw.base, every.counts
        changed = every.keys != keys
        offset, shift, odds = self._lasting(every, shown, index, present, redraw)

        def number(by: int) -> Ints:
            return number_of(counts + offset + by, counts, base, redraw.small_only)

        now = number(0)
        moved, other = now != shown, now.copy()
        one_in = np.zeros(len(every), dtype=np.int64)
        none = not changed.any() and bool(np.isin(self.numbers[self.keys > 0], numbers).all())
        for kind in range(CLASSES):
            pools, wanted = [], []
            for side, by in enumerate((1, -1)):
                new = number(by)
                edge = ~moved & (new != now) & (shift * by < SHIFT)
                lower = np.minimum(now, np.where(edge, new, shown)) // base
                here = np.minimum(lower, CLASSES - 1) == kind
                pools.append(np.flatnonzero(here & edge))
                real = int((here & moved & ((now > shown) == (by > 0))).sum())
                wanted.append(self.decoys(redraw, 2 * kind + side, real))
            # As many are drawn to go up as to go down.
            sizes = [int((~changed[pool]).sum()) for pool in pools]
            goal, fewest = MARGIN * max(wanted) / float(1 - AWAY), max(min(sizes), 1)
            some = next((n for n in ONE_IN if goal * n <= fewest), ONE_IN[-1])
            most = 0.0 if none else max(redraw.refresh * fewest, goal * some)
            for pool, size, by in zip(pools, sizes, (1, -1), strict=True):
                words = self.draw("refresh", numbers[pool]) >> np.uint64(32)
                chosen = pool[words < np.uint64(int(min(most / max(size, 1), 1.0) * 2**32))]
                one_in[chosen], other[chosen] = some, number(by)[chosen]
        words = self.draw("moved", numbers)
        return Levels(now, other, one_in, words, changed, offset, shift, odds)

    def _lasting(
        self, every: FinestCells, shown: Ints, index: Ints, present: Mask, redraw: Redraw
    ) -> tuple[Ints, Ints, Floats]:
        """Offsets, how far they were moved, and by how much the search may have changed odds."""
        old, base = self.cells, redraw.base
        if isinstance(old, RememberedCells) and old.offset is not None:
            fresh = spare(every, np.zeros_like(shown), self.root, base, self.share)
            assert old.shift is not None
            assert old.odds is not None
            rows = (at(v[self.order], index, present) for v in (old.offset, old.shift, old.odds))
            offset, shift, odds = rows
            return np.where(present, offset, fresh), shift, np.where(present, odds, 1.0)
        # Memories of earlier versions: once more, a number is kept where it is next to the count.
        choice = options(every.counts, base, redraw.small_only)
        two = choice.movable | ((every.counts == 0) & redraw.empty_shown)
        number = np.clip(shown, choice.low, choice.low + base * two)
        none = np.zeros_like(number)
        return (
            number + spare(every, number, self.root, base, self.share) - every.counts,
            none,
            np.ones(none.size),
        )


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
"""Cells are drawn class by class: those that show 0 or the base, the base or its double, and so on; the
last class takes all larger ones."""


def same_variables(
    cells: FinestCells, extra: Array, before: EarlierRelease, redraw: Redraw
) -> tuple[FinestCells, Kept]:
    """The same variables: levels follow the counts, and the search chooses among those that are drawn."""
    every = joined(cells, _nobody_there(cells, extra, before, redraw))
    levels = before.follow(every, redraw)
    low, start = np.minimum(levels.number, levels.other), levels.start
    kind, up_shares, moved = _open_to_search(every, levels, low, before, redraw)
    movable = kind >= 0
    start = np.where(movable, np.where(moved, levels.other, levels.number), start)
    changed = int(levels.changed.sum())
    kept = Kept(
        movable=movable,
        low=low,
        up=start > low,
        number=start,
        group=np.full(len(every), -1, dtype=np.int64),
        target={},
        kind=kind[movable],
        up_shares=up_shares,
        levels=levels,
        share=before.share,
        wide=changed > 0 or (isinstance(before.cells, RememberedCells) and before.cells.wide),
        unchanged=int((~levels.changed & (every.counts > 0)).sum()),
        changed=changed,
    )
    return every, kept


def _open_to_search(
    every: FinestCells, levels: Levels, low: Ints, before: EarlierRelease, redraw: Redraw
) -> tuple[Ints, tuple[tuple[Fraction, Fraction], ...], Mask]:
    """The class of every cell that is open to the search, or -1; the shares that stand up; and who moves first.

    Of each count that shows a number the same share goes up, and the same share goes down. As many cells of a
    class as this share divides are open, and begin with exactly that share; the key decides on the others.
    """
    limit = redraw.known_changes or inf
    drawn = np.flatnonzero((levels.one_in > 0) & (levels.odds * odds_of(2, moved=True) <= limit))
    lower = np.minimum(low // redraw.base, CLASSES - 1)
    parts = np.stack([levels.other > levels.number, levels.one_in, lower, every.counts - low])
    classes, kind, size = np.unique(
        parts[:, drawn], axis=1, return_inverse=True, return_counts=True
    )
    kind = kind.ravel()
    words = before.draw("order", cell_numbers(every.dataset, every.codes[:, drawn]))
    order = np.lexsort((words, kind))
    drawn, kind = drawn[order], kind[order]
    rank = np.arange(kind.size) - (np.cumsum(size) - size)[kind]
    moves = (size // np.maximum(classes[1], 1))[kind]
    of, moved = np.full(len(every), -1, dtype=np.int64), np.zeros(len(every), dtype=np.bool_)
    of[drawn] = np.where(rank < moves * classes[1][kind], kind, -1)
    moved[drawn] = rank < moves
    shares = []
    for goes_up, one_in in classes[:2].T.tolist():
        least, most = shares_moved(one_in)
        shares.append((least, most) if goes_up else (1 - most, 1 - least))
    return of, tuple(shares), moved


def _nobody_there(
    cells: FinestCells, extra: Array, before: EarlierRelease, redraw: Redraw
) -> Array:
    """Cells without anybody: all that the earlier release remembers, and as many candidates as are missing."""
    codes = before.cells.codes[:, before.order]
    mine = np.zeros((len(cells.dataset.variables), codes.shape[1]), dtype=cells.codes.dtype)
    mine[before.rows] = codes
    left = possible_cells(cells.dataset, mine)
    left &= ~np.isin(before.numbers, before.parents(cells.codes))
    new = np.flatnonzero(~np.isin(before.parents(extra), before.numbers))
    new = new[: max(extra.shape[1] - int(left.sum()), 0) if redraw.empty_shown else 0]
    return np.concatenate([mine[:, left], extra[:, new].astype(mine.dtype)], axis=1)
