"""The hot loops: from codes to cell numbers, from cell numbers to sums.

A record's cell number is a sum of one table entry per column, so that levels, groups, choices and
filters cost nothing extra. Blocks fit the second-level cache; threads take blocks in turn and
add up privately, in integers, so that the result does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.compiled import compiled

BLOCK = 1 << 15
WIDE_BLOCK = 1 << 18
"""Records that are counted in one pass, where nothing is written down between columns."""
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
def tally_whole(keys: Array, cells: Array) -> None:  # pragma: no cover
    """:func:`tally` of records that are all in the first cell."""
    total = np.uint64(0)
    for i in range(keys.size):
        total += keys[i]
    cells[0, 0] += np.uint64(keys.size)
    cells[0, 1] += total


@compiled
def tally_column(first: Array, one: Array, keys: Array, cells: Array) -> None:  # pragma: no cover
    """:func:`tally` of records whose cell numbers come from one column, without writing these down."""
    outside = cells.shape[0] - 1
    for i in range(keys.size):
        index = one[first[i]]
        cell = index if index >= 0 else outside
        cells[cell, 0] += np.uint64(1)
        cells[cell, 1] += keys[i]


@compiled
def tally_two_columns(
    first: Array, second: Array, one: Array, two: Array, keys: Array, cells: Array
) -> None:  # pragma: no cover
    """:func:`tally_column` of two columns."""
    outside = cells.shape[0] - 1
    for i in range(keys.size):
        index = one[first[i]] + two[second[i]]
        cell = index if index >= 0 else outside
        cells[cell, 0] += np.uint64(1)
        cells[cell, 1] += keys[i]


@compiled
def tally_three_columns(
    first: Array,
    second: Array,
    third: Array,
    one: Array,
    two: Array,
    three: Array,
    keys: Array,
    cells: Array,
) -> None:  # pragma: no cover
    """:func:`tally_column` of three columns."""
    outside = cells.shape[0] - 1
    for i in range(keys.size):
        index = one[first[i]] + two[second[i]] + three[third[i]]
        cell = index if index >= 0 else outside
        cells[cell, 0] += np.uint64(1)
        cells[cell, 1] += keys[i]


@compiled
def tally_four_columns(
    first: Array,
    second: Array,
    third: Array,
    fourth: Array,
    one: Array,
    two: Array,
    three: Array,
    four: Array,
    keys: Array,
    cells: Array,
) -> None:  # pragma: no cover
    """:func:`tally_column` of four columns."""
    outside = cells.shape[0] - 1
    for i in range(keys.size):
        index = one[first[i]] + two[second[i]] + three[third[i]] + four[fourth[i]]
        cell = index if index >= 0 else outside
        cells[cell, 0] += np.uint64(1)
        cells[cell, 1] += keys[i]


AT_ONCE: dict[int, Callable[..., None]] = {
    0: tally_whole,
    1: tally_column,
    2: tally_two_columns,
    3: tally_three_columns,
    4: tally_four_columns,
}
"""Loops that take so many columns at once."""
WORTH_IT = 1_000_000
"""Records from which on these are used, for columns of one byte: smaller tables should not wait for them to
be compiled."""


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
