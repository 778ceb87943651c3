"""The hot loops: from codes to cell numbers, from cell numbers to sums.

A record's cell number is a sum of one table entry per column, so that levels, groups, choices and
filters cost nothing extra. Blocks fit the second-level cache; threads take blocks in turn and
add up privately, in integers, so that the result does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model.arrays import Array, Ints
from lustrum.numeric.compiled import compiled, compiled_after

BLOCK = 1 << 15
WIDE_BLOCK = 1 << 18
"""Records that are counted in one pass, where nothing is written down between columns."""
OUTSIDE = -(1 << 58)
"""Far enough below zero that no sum of other entries brings a record back in."""


def _start_codes(codes: Array, entry: Array, index: Array) -> None:
    index[:] = entry[codes]


@compiled_after(_start_codes)
def start_codes(codes: Array, entry: Array, index: Array) -> None:  # pragma: no cover
    for i in range(codes.size):
        index[i] = entry[codes[i]]


def _add_codes(codes: Array, entry: Array, index: Array) -> None:
    index += entry[codes]


@compiled_after(_add_codes)
def add_codes(codes: Array, entry: Array, index: Array) -> None:  # pragma: no cover
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


def _tally_counts(index: Array, counts: Array, cells: Array) -> None:
    np.add.at(cells, np.where(index >= 0, index, cells.size - 1), counts)


@compiled_after(_tally_counts)
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


# Counts, keys, sums and the two largest contributors of every cell in one pass over the records.
#
# A cell is one row of eight whole numbers, which is one line of the processor's cache: how many records, the
# sum of their keys, the sum of the measure, how many contributors, and value and owner of the two largest.
# Owners with several records are ranked apart, by rows of the same shape, see :func:`rank_several`.


COLUMNS = 8
_OWNERS = [5, 7]


def empty_rows(cells: int) -> Ints:
    rows = np.zeros((cells, COLUMNS), dtype=np.int64)
    rows[:, _OWNERS] = -1
    return rows


@compiled
def _ranked(rows: Array, cell: int, value: int, owner: int) -> None:  # pragma: no cover
    """Count a contributor of a cell and rank it; of equal sizes the owner with the smaller number is first."""
    held = rows[cell, 3]
    rows[cell, 3] = held + 1
    size = abs(value)
    if held > 1:
        second = abs(rows[cell, 6])
        if size < second or (size == second and owner > rows[cell, 7]):
            return
    first = abs(rows[cell, 4])
    if held == 0 or size > first or (size == first and owner < rows[cell, 5]):
        rows[cell, 6] = rows[cell, 4]
        rows[cell, 7] = rows[cell, 5]
        rows[cell, 4] = value
        rows[cell, 5] = owner
    else:
        rows[cell, 6] = value
        rows[cell, 7] = owner


@compiled
def tally_ranked(
    index: Array, keys: Array, values: Array, alone: Array, owner: Array, ranked: int, rows: Array
) -> None:  # pragma: no cover
    """Add records to their cells, the last row taking those outside, and rank those below ``ranked``.

    ``alone`` marks the records that are all that their owner has; only these are ranked here.
    """
    outside = rows.shape[0] - 1
    for i in range(index.size):
        cell = index[i] if index[i] >= 0 else outside
        value = values[i]
        rows[cell, 0] += 1
        rows[cell, 1] += keys[i]
        rows[cell, 2] += value
        if alone[i] and cell < ranked:
            _ranked(rows, cell, value, owner[i])


@compiled
def merge_rows(rows: Array, other: Array) -> None:  # pragma: no cover
    """Add the second rows to the first; no owner is in both."""
    for cell in range(rows.shape[0]):
        for column in range(3):
            rows[cell, column] += other[cell, column]
        total = rows[cell, 3] + other[cell, 3]
        for rank in range(min(other[cell, 3], 2)):
            _ranked(rows, cell, other[cell, 4 + 2 * rank], other[cell, 5 + 2 * rank])
        rows[cell, 3] = total


@compiled
def rank_several(
    index: Array,
    owner: Array,
    values: Array,
    first: Array,
    listed: Array,
    atoms: Array,
    shown: Array,
    rows: Array,
) -> None:  # pragma: no cover
    """Rank the owners of several records in shown cells; the records come sorted by owner.

    In the first three columns a row holds the owner at hand, one above it so that 0 is none, and its sum.
    """
    axes = atoms.size
    at = np.empty(max(axes, 1), dtype=np.int64)
    begin = np.empty(max(axes, 1), dtype=np.int64)
    end = np.empty(max(axes, 1), dtype=np.int64)
    for i in range(index.size):
        rest = index[i]
        if rest < 0:
            continue
        empty = False
        for a in range(axes - 1, -1, -1):
            above = rest // atoms[a]
            atom = rest - above * atoms[a]
            rest = above
            begin[a] = first[a, atom]
            end[a] = first[a, atom + 1]
            at[a] = begin[a]
            empty = empty or begin[a] == end[a]
        if rest != 0 or empty:
            continue  # fails a filter, or stands in no category that is shown
        owner_number, value = owner[i] + 1, values[i]
        while True:
            cell = 0
            for a in range(axes):
                cell = cell * shown[a] + listed[at[a]]
            if rows[cell, 0] == owner_number:
                rows[cell, 2] += value
            else:
                if rows[cell, 0] != 0:
                    _ranked(rows, cell, rows[cell, 2], rows[cell, 0] - 1)
                rows[cell, 0] = owner_number
                rows[cell, 2] = value
            a = axes - 1
            while a >= 0:
                at[a] += 1
                if at[a] < end[a]:
                    break
                at[a] = begin[a]
                a -= 1
            if a < 0:
                break
    for cell in range(rows.shape[0]):
        if rows[cell, 0] != 0:
            _ranked(rows, cell, rows[cell, 2], rows[cell, 0] - 1)
            rows[cell, 0] = 0
            rows[cell, 2] = 0
