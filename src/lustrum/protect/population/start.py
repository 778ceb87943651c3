"""Where the search begins: every finest cell at one of two adjacent numbers, drawn without bias from keys.

A cell of ``n`` records, ``r`` above the next multiple of the base ``b`` below, starts at the upper multiple
with probability ``r / b``. The chance comes from the sum of its record keys, so that a cell whose records
do not change starts at the same number in every release.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import Dataset
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble

__all__ = ["Options", "cell_numbers", "derived", "empty_candidates", "options", "start_up"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


def derived(key: bytes, purpose: str) -> bytes:
    """A 16-byte key for one purpose, from which neither the key nor another derived one follows."""
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


def start_up(cells: FinestCells, choice: Options, key: bytes) -> Mask:
    """Which cells start at their upper number, with probability residue over step."""
    words = cell_numbers(cells.dataset, cells.codes) if cells.keys is None else cells.keys
    drawn = scramble(derived(key, "start"), words)
    return _below(drawn, choice.residue, choice.step)


def _below(words: Words, numerator: Ints | int, denominator: int) -> Mask:
    """Whether a uniform word, as a share of all words, is below a fraction; exact to 2**-32."""
    upper = (words >> np.uint64(32)).astype(np.int64)
    return np.asarray(upper * denominator < np.asarray(numerator) * 2**32)


def empty_candidates(cells: FinestCells, wanted: int, key: bytes) -> Array:
    """Codes of empty cells that may show somebody: keyed neighbours of occupied cells, none impossible.

    A neighbour differs in one variable, and with a chance of one in eight each in further ones, so that every
    cell that can be occupied can also be a candidate.
    """
    codes = cells.codes
    variables = cells.dataset.variables
    sizes = np.array([len(v.codes) for v in variables])
    changeable = np.flatnonzero(sizes > 1)
    occupied = np.flatnonzero(cells.counts > 0)
    if not occupied.size or wanted <= 0 or not changeable.size:
        return codes[:, :0].copy()
    words = cell_numbers(cells.dataset, codes) if cells.keys is None else cells.keys
    stream = scramble(derived(key, "empty cells"), words[occupied])
    taken = np.unique(cell_numbers(cells.dataset, codes[:, occupied]))
    found = codes[:, :0].copy()
    rank = np.empty(0, dtype=np.uint64)
    seen = np.empty(0, dtype=np.uint64)
    for attempt in range(_ATTEMPTS):
        rolled = _neighbours(codes[:, occupied], sizes, changeable, stream, key, attempt)
        fits = possible_cells(cells.dataset, rolled)
        numbers = cell_numbers(cells.dataset, rolled)
        fits &= ~np.isin(numbers, taken) & ~np.isin(numbers, seen)
        chosen = np.flatnonzero(fits)
        unique, first = np.unique(numbers[chosen], return_index=True)
        found = np.concatenate([found, rolled[:, chosen[first]]], axis=1)
        seen = np.concatenate([seen, unique])
        rank = np.concatenate([rank, scramble(derived(key, "empty rank"), unique)])
        if seen.size >= wanted:
            break
    order = np.argsort(rank, kind="stable")[:wanted]
    return np.ascontiguousarray(found[:, order])


_ATTEMPTS = 8


def _neighbours(
    codes: Array, sizes: Ints, changeable: Ints, stream: Words, key: bytes, attempt: int
) -> Array:
    rolled = codes.copy()
    cell = np.arange(codes.shape[1])
    going = np.ones(codes.shape[1], dtype=np.bool_)
    for change in range(int(changeable.size)):
        words = scramble(derived(key, f"neighbour {attempt} {change}"), stream)
        # Three independent draws from one word: which variable, which code, whether to go on.
        which = changeable[
            ((words & np.uint64(0xFFFFF)) * np.uint64(changeable.size) >> np.uint64(20)).astype(
                np.int64
            )
        ]
        size = sizes[which]
        move = 1 + (
            ((words >> np.uint64(20)) & np.uint64(0xFFFFFFFF)) * (size - 1).astype(np.uint64)
            >> np.uint64(32)
        ).astype(np.int64)
        fresh = (rolled[which, cell].astype(np.int64) + move) % size
        rolled[which[going], cell[going]] = fresh[going].astype(rolled.dtype)
        going &= (words >> np.uint64(52)) % np.uint64(8) == 0
        if not going.any():
            break
    return rolled
