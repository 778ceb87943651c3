"""Where the search begins: every finest cell at one of two adjacent numbers, drawn without bias from keys.

A cell whose count is ``r`` above a multiple of the base ``b`` starts at the next multiple with probability ``r
/ b``. The random draw comes from the sum of its record keys, so that a cell whose records do not change starts
at the same number in every release.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from lustrum.model import Dataset
from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.runtime.stop import report_progress, still_working


def derived(key: bytes, purpose: str) -> bytes:
    """A 16-byte key for one purpose; neither the key nor another derived key can be found from it."""
    return hmac.digest(key, b"lustrum population 1 " + purpose.encode(), hashlib.sha256)[:16]


@dataclass(frozen=True, eq=False)
class Options:
    """The numbers that cells may show: ``low``, or ``low + step`` where they are free to move."""

    low: Ints
    residue: Ints
    step: int

    @property
    def movable(self) -> Mask:
        """Which cells have two numbers to choose from."""
        return self.residue > 0


def options(counts: Ints, base: int, small_only: bool) -> Options:
    """The adjacent multiples of the base; above it, true counts stay if only small cells are moved.

    >>> found = options(np.array([1, 3, 7]), 3, small_only=False)
    >>> found.low.tolist(), found.residue.tolist()
    ([0, 3, 6], [1, 0, 1])
    """
    residue = counts % base
    if small_only:
        residue = np.where(counts < base, counts, 0)
    return Options(counts - residue, residue, base)


def cell_numbers(dataset: Dataset, codes: Array) -> Words:
    """The place of every cell among all combinations of finest codes, modulo 2**64."""
    numbers = np.zeros(codes.shape[1], dtype=np.uint64)
    for variable, row in zip(dataset.variables, codes, strict=True):
        numbers = numbers * np.uint64(len(variable.codes)) + row.astype(np.uint64)
    return numbers


AT_ONCE = 1 << 20
"""So many cells are looked at in one go, so that what is worked out of them takes little memory."""


def parts_of(cells: int) -> Iterator[slice]:
    """Cells in parts."""
    for begin in range(0, cells, AT_ONCE):
        still_working()
        yield slice(begin, min(begin + AT_ONCE, cells))


def by_number(numbers: Callable[[slice], Words], cells: int) -> Iterator[tuple[Ints, Words]]:
    """The places and the numbers of cells: those of the least numbers, then those of larger ones, and so on."""
    if cells <= AT_ONCE:
        yield np.arange(cells), numbers(slice(0, cells))
        return
    parts = -(-cells // AT_ONCE)
    some = np.sort(np.concatenate([numbers(part)[::parts] for part in parts_of(cells)]))
    ends = some[:: max(some.size // parts, 1)][1:parts]
    for turn in range(ends.size + 1):
        place, found = [], []
        for part in parts_of(cells):
            here = numbers(part)
            inside = np.searchsorted(ends, here, side="right") == turn
            place.append(part.start + np.flatnonzero(inside))
            found.append(here[inside])
        yield np.concatenate(place), np.concatenate(found)


def find(ordered: Words, wanted: Words) -> tuple[Ints, Mask]:
    """Where words stand among ordered ones, and whether they do."""
    if not ordered.size:
        return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=np.bool_)
    index = np.minimum(np.searchsorted(ordered, wanted), ordered.size - 1)
    return index.astype(np.int64), np.asarray(ordered[index] == wanted)


def start_up(
    cells: FinestCells,
    choice: Options,
    key: bytes,
    shrink: tuple[int, int] = (1, 1),
    *,
    only_small: bool = False,
) -> Mask:
    """Which cells start at their upper number, with probability residue over step, times ``shrink``.

    Cells that are empty in truth and show somebody add to all totals; the others, or only those that can show
    0, start a little lower to make up for that, so that totals are right on average.
    """
    cell_keys = cell_numbers(cells.dataset, cells.codes) if cells.keys is None else cells.keys
    drawn = scramble(derived(key, "start"), cell_keys)
    upper = (drawn >> np.uint64(32)).astype(np.float64)
    less, full = float(shrink[0] << 32), float(shrink[1] << 32)
    share = np.where(choice.low > 0, full, less) if only_small else less
    return np.asarray(upper * (choice.step * shrink[1]) < choice.residue * share)


def empty_start(dataset: Dataset, codes: Array, key: bytes, one_in: int) -> Mask:
    """Which candidates among the empty cells start by showing somebody: one in this many."""
    random_words = scramble(derived(key, "empty start"), cell_numbers(dataset, codes))
    return np.asarray((random_words >> np.uint64(32)) * np.uint64(one_in) < np.uint64(2**32))


def empty_candidates(cells: FinestCells, wanted: int, key: bytes) -> Array:
    """Codes of empty cells that may show somebody: possible cells near occupied ones, chosen by the key.

    A neighbour takes the code of another occupied cell in one variable, and in each further variable with
    probability 1/8. One code in sixteen is drawn from the whole code list instead, so that every cell that can
    be occupied can also be a candidate.
    """
    codes = cells.codes
    sizes = np.array([len(v.codes) for v in cells.dataset.variables], dtype=np.int64)
    changeable = np.flatnonzero(sizes > 1)
    occupied = np.flatnonzero(cells.counts > 0)
    if not occupied.size or wanted <= 0 or not changeable.size:
        return codes[:, :0].copy()
    occupied_codes = np.ascontiguousarray(codes[:, occupied])
    numbers = cell_numbers(cells.dataset, occupied_codes)
    stream = scramble(
        derived(key, "empty cells"), numbers if cells.keys is None else cells.keys[occupied]
    )
    taken = np.sort(numbers)
    candidate_codes = [occupied_codes[:, :0]]
    ranks = [np.empty(0, dtype=np.uint64)]
    missing = wanted
    for attempt in range(_ATTEMPTS):
        report_progress("choosing empty cells", 0.0)
        still_working()
        rolled = _neighbours(occupied_codes, sizes, changeable, stream, key, attempt)
        still_working()
        numbers = cell_numbers(cells.dataset, rolled)
        fresh = np.flatnonzero(possible_cells(cells.dataset, rolled) & ~find(taken, numbers)[1])
        still_working()
        fresh_numbers, first = np.unique(numbers[fresh], return_index=True)
        still_working()
        candidate_codes.append(rolled[:, fresh[first]])
        ranks.append(scramble(derived(key, "empty rank"), fresh_numbers))
        taken = np.sort(np.concatenate([taken, fresh_numbers]))
        missing -= fresh_numbers.size
        if missing <= 0:
            break
    order = np.argsort(np.concatenate(ranks), kind="stable")[:wanted]
    return np.ascontiguousarray(np.concatenate(candidate_codes, axis=1)[:, order])


_ATTEMPTS = 8


def _neighbours(
    codes: Array, sizes: Ints, changeable: Ints, stream: Words, key: bytes, attempt: int
) -> Array:
    rolled = codes.copy()
    going = np.arange(codes.shape[1])
    for change in range(int(changeable.size)):
        random_words = scramble(derived(key, f"neighbour {attempt} {change}"), stream[going])
        others = scramble(derived(key, f"lender {attempt} {change}"), stream[going])
        # Independent draws from parts of one word: which variable, whose code, whether to go on.
        which = changeable[_share(random_words, 0, changeable.size)]
        lender = _share(others, 0, codes.shape[1])
        code = codes[which, lender].astype(np.int64)
        from_list = (random_words >> np.uint64(32)) % np.uint64(16) == 0
        code = np.where(from_list, _share(others, 32, sizes[which]), code)
        rolled[which, going] = code.astype(rolled.dtype)
        going = going[(random_words >> np.uint64(36)) % np.uint64(8) == 0]
        if not going.size:
            break
    return rolled


def _share(random_words: Words, shift: int, count: Ints | int) -> Ints:
    """A number below ``count`` from 32 bits of each word."""
    part = (random_words >> np.uint64(shift)) & np.uint64(0xFFFFFFFF)
    return np.asarray((part * np.asarray(count).astype(np.uint64)) >> np.uint64(32), dtype=np.int64)
