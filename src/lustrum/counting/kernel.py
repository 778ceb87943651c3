"""The hot loops: from codes to cell numbers, from cell numbers to sums.

A record's cell number is a sum of one table entry per column, so that levels, groups, choices and
filters cost nothing extra. Blocks fit the second-level cache; threads take blocks in turn and
add up privately, in integers, so that the result does not depend on how many there are.
"""

from __future__ import annotations

import numpy as np

from lustrum.arrays import Array
from lustrum.compiled import compiled

BLOCK = 1 << 15
OUTSIDE = -(1 << 58)
"""Far enough below zero that no sum of other entries brings a record back in."""


@compiled
def start_codes(codes: Array, entry: Array, index: Array) -> None:  # pragma: no cover
    """``index = entry[codes]``."""
    for i in range(codes.size):
        index[i] = entry[codes[i]]


@compiled
def add_codes(codes: Array, entry: Array, index: Array) -> None:  # pragma: no cover
    """``index += entry[codes]``."""
    for i in range(codes.size):
        index[i] += entry[codes[i]]


@compiled
def tally(index: Array, keys: Array, cells: Array) -> None:  # pragma: no cover
    """Count records and sum their keys, side by side in memory, modulo 2**64.

    The last row takes those who are outside: a store more is cheaper than a jump guessed wrong.
    """
    outside = cells.shape[0] - 1
    for i in range(index.size):
        cell = index[i] if index[i] >= 0 else outside
        cells[cell, 0] += np.uint64(1)
        cells[cell, 1] += keys[i]


@compiled
def tally_counts(index: Array, counts: Array, cells: Array) -> None:  # pragma: no cover
    """Add given counts, the last cell taking those outside."""
    outside = cells.size - 1
    for i in range(index.size):
        cell = index[i] if index[i] >= 0 else outside
        cells[cell] += counts[i]


@compiled
def tally_numbers(
    index: Array, values: Array, weights: Array, cells: Array
) -> None:  # pragma: no cover
    """Add values times weights, both exact integers, the last cell taking those outside."""
    outside = cells.size - 1
    for i in range(index.size):
        cell = index[i] if index[i] >= 0 else outside
        cells[cell] += values[i] * weights[i]
