"""Compiled sparse elimination for any table: how some cells follow from others while cells are published.

A deviation of the suppressed cells is free in some of them, the columns. Every other cell has a row: its
deviation is minus the sum of the entries of its row, each times the deviation of the column. Publishing a
column takes it out of all rows. Publishing a cell with a row turns one of its columns into a row first. Numbers
are taken modulo a prime. Rows are sorted lists of entries in one store; each column has a chain of the rows
that may hold it, in which a row can occur in vain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.audit.knowledge.reduce import inverse
from lustrum.numeric.compiled import compiled


@compiled
def _place(cells: Any, begin: int, end: int, cell: int) -> int:  # pragma: no cover
    """Where a row holds a cell, or -1."""
    low, high = begin, end
    while low < high:
        middle = (low + high) // 2
        if cells[middle] < cell:
            low = middle + 1
        else:
            high = middle
    return low if low < end and cells[low] == cell else -1


@compiled
def _grown(array: Any, size: int) -> Any:  # pragma: no cover
    """The array with room for at least ``size`` entries."""
    if size <= array.size:
        return array
    out = np.empty(max(size, 2 * array.size), np.int64)
    # A slice would do the same, and takes the compiler much longer.
    for k in range(array.size):
        out[k] = array[k]
    return out


@compiled
def _cleared(  # pragma: no cover
    row: int,
    column: int,
    prime: int,
    begin: Any,
    length: Any,
    room: Any,
    uses: Any,
    chain: Any,
    free: Any,
    cells: Any,
    values: Any,
    link_row: Any,
    link_next: Any,
    fresh_cells: Any,
    fresh_values: Any,
) -> Any:
    """Subtract multiples of a row from all others that hold a column, so that none of them does any more.

    The row is divided by its entry in the column, and loses it. ``free`` holds the first free place of the
    store and of the links, and counts the entries looked at.
    """
    row_begin, own_end = begin[row], begin[row] + length[row]
    factor = inverse(values[_place(cells, row_begin, own_end, column)], prime)
    for k in range(row_begin, own_end):
        values[k] = values[k] * factor % prime
    link = chain[column]
    chain[column] = -1
    while link >= 0:
        other = link_row[link]
        link = link_next[link]
        if other == row or length[other] == 0:
            continue
        a, a_end = begin[other], begin[other] + length[other]
        spot = _place(cells, a, a_end, column)
        if spot < 0:
            continue
        times = prime - values[spot]
        b, count = row_begin, 0
        free[2] += a_end - a + own_end - row_begin
        links = free[1] + own_end - row_begin
        link_row, link_next = _grown(link_row, links), _grown(link_next, links)
        while a < a_end or b < own_end:
            if b >= own_end or (a < a_end and cells[a] < cells[b]):
                fresh_cells[count], fresh_values[count] = cells[a], values[a]
                count += 1
                a += 1
            elif a >= a_end or cells[b] < cells[a]:
                cell = cells[b]
                fresh_cells[count], fresh_values[count] = cell, times * values[b] % prime
                count += 1
                b += 1
                uses[cell] += 1
                link_row[free[1]], link_next[free[1]] = other, chain[cell]
                chain[cell] = free[1]
                free[1] += 1
            else:
                value = (values[a] + times * values[b]) % prime
                if value:
                    fresh_cells[count], fresh_values[count] = cells[a], value
                    count += 1
                else:
                    uses[cells[a]] -= 1
                a += 1
                b += 1
        if count > room[other]:
            room[other] = count + count // 2
            begin[other] = free[0]
            free[0] += room[other]
            cells, values = _grown(cells, free[0]), _grown(values, free[0])
        first = begin[other]
        for k in range(count):
            cells[first + k], values[first + k] = fresh_cells[k], fresh_values[k]
        length[other] = count
    # The row itself goes on without the column.
    spot = _place(cells, row_begin, own_end, column)
    for k in range(spot, own_end - 1):
        cells[k], values[k] = cells[k + 1], values[k + 1]
    length[row] -= 1
    uses[column] = 0
    return cells, values, link_row, link_next


@compiled
def _is_parallel(  # pragma: no cover
    row: int, other: int, begin: Any, length: Any, cells: Any, values: Any, prime: int
) -> bool:
    """Whether one row is a multiple of another."""
    if length[row] != length[other]:
        return False
    a, b = begin[row], begin[other]
    for k in range(length[row]):
        if cells[a + k] != cells[b + k]:
            return False
        if values[a + k] * values[b] % prime != values[b + k] * values[a] % prime:
            return False
    return True


@compiled
def needed_cells(  # pragma: no cover
    indptr: Any,
    indices: Any,
    data: Any,
    width: int,
    basis: Any,
    target: Any,
    order: Any,
    most_steps: int,
    most_entries: int,
    prime: int,
) -> Any:
    """Publish cells in order unless a target would be disclosed; gives which are published.

    The rows of ``indptr``, ``indices`` and ``data`` are relations; ``basis`` are cells to give rows to, whose
    columns are independent. The entries are overwritten. The second value counts the entries looked at. The
    last one is False where these, or the entries to be kept, were more than allowed; then nothing is decided.
    """
    height = indptr.size - 1
    begin, length = np.empty(height, np.int64), np.empty(height, np.int64)
    room, cells, values = np.empty(height, np.int64), indices, data
    uses, chain = np.zeros(width, np.int64), np.full(width, -1, np.int64)
    link_row, link_next = np.empty(indices.size + 1, np.int64), np.empty(indices.size + 1, np.int64)
    free = np.zeros(3, np.int64)
    free[0] = free[1] = indices.size
    for row in range(height):
        begin[row] = indptr[row]
        length[row] = room[row] = indptr[row + 1] - indptr[row]
        for k in range(indptr[row], indptr[row + 1]):
            cell = indices[k]
            uses[cell] += 1
            link_row[k], link_next[k] = row, chain[cell]
            chain[cell] = k
    fresh_cells, fresh_values = np.empty(width + 1, np.int64), np.empty(width + 1, np.int64)
    row_of, cell_of = np.full(width, -1, np.int64), np.full(height, -1, np.int64)
    published = np.zeros(width, np.bool_)
    waits = np.zeros(width, np.bool_)
    for k in range(order.size):
        waits[order[k]] = True
    # The cells of the basis get rows, those in few rows first.
    left = np.empty(basis.size, np.int64)
    for k in range(basis.size):
        left[k] = basis[k]
    count, few = left.size, 1
    while count > 0:
        stay = 0
        for k in range(count):
            cell = left[k]
            if uses[cell] > few:
                left[stay] = cell
                stay += 1
                continue
            best, shortest = -1, width + 1
            link = chain[cell]
            while link >= 0:
                row = link_row[link]
                link = link_next[link]
                if cell_of[row] >= 0 or length[row] >= shortest:
                    continue
                if _place(cells, begin[row], begin[row] + length[row], cell) >= 0:
                    best, shortest = row, length[row]
            if best < 0:
                continue  # depends on the others modulo the prime; it stays a column
            cells, values, link_row, link_next = _cleared(
                best, cell, prime, begin, length, room, uses, chain, free, cells, values,
                link_row, link_next, fresh_cells, fresh_values,
            )  # fmt: skip
            row_of[cell], cell_of[best] = best, cell
            if free[2] > most_steps or free[0] > most_entries or free[1] > most_entries:
                return published, free[2], False
        few = few if stay < count else 1 + few + few // 4
        count = stay
    for row in range(height):
        cell = cell_of[row]
        if cell < 0 or not (target[cell] or waits[cell]):
            for k in range(begin[row], begin[row] + length[row]):
                uses[cells[k]] -= 1
            length[row] = 0
    for turn in range(order.size):
        cell = order[turn]
        waits[cell] = False
        row = row_of[cell]
        if row < 0:
            needed = False
            link = chain[cell]
            while link >= 0 and not needed:
                other = link_row[link]
                link = link_next[link]
                needed = (
                    length[other] == 1
                    and cells[begin[other]] == cell
                    and cell_of[other] >= 0
                    and target[cell_of[other]]
                )
            if needed:
                continue
            published[cell] = True
            link = chain[cell]
            while link >= 0:
                other = link_row[link]
                link = link_next[link]
                end = begin[other] + length[other]
                spot = _place(cells, begin[other], end, cell)
                if spot >= 0:
                    for k in range(spot, end - 1):
                        cells[k], values[k] = cells[k + 1], values[k + 1]
                    length[other] -= 1
                free[2] += 1 + length[other]
            chain[cell], uses[cell] = -1, 0
            continue
        first, end = begin[row], begin[row] + length[row]
        best = -1
        for k in range(first, end):
            if best < 0 or uses[cells[k]] < uses[best]:
                best = cells[k]
        needed = length[row] == 1 and target[best]
        if best >= 0 and not needed:
            link = chain[best]
            while link >= 0 and not needed:
                other = link_row[link]
                link = link_next[link]
                free[2] += 1
                if other != row and cell_of[other] >= 0 and target[cell_of[other]]:
                    needed = _is_parallel(row, other, begin, length, cells, values, prime)
        cell_of[row], row_of[cell] = -1, -1
        gone = needed or best < 0
        published[cell] = not needed
        if not gone:
            cells, values, link_row, link_next = _cleared(
                row, best, prime, begin, length, room, uses, chain, free, cells, values,
                link_row, link_next, fresh_cells, fresh_values,
            )  # fmt: skip
            if target[best] or waits[best]:
                cell_of[row], row_of[best] = best, row
            else:
                gone = True
        if gone:
            for k in range(begin[row], begin[row] + length[row]):
                uses[cells[k]] -= 1
            length[row] = 0
        if free[2] > most_steps or free[0] > most_entries or free[1] > most_entries:
            return published, free[2], False
    return published, free[2], True
