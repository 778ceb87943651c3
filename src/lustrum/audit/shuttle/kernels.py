"""The loops of the shuttle: pass bounds along sums, and dive for a table; compiled at first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled

FOUND, NO_TABLE, CUT = 1, 0, -1

_REFITS = 4  # rounds of fitting after each cell that is fixed


@compiled
def drain(  # pragma: no cover
    sums: Any, low: Any, high: Any, queue: Any, queued: Any, count: int, visits: int
) -> bool:
    """Narrow ``low`` and ``high`` in place along the first ``count`` queued sums and all that follow.

    ``sums`` are ragged rows of cells, and for each cell the rows that hold it; the first item of a sum is
    the total of the others. Returns False at the first cell without a feasible
    value. After ``visits`` visits the rest is skipped, because bounds can move by one unit a round for very
    long; the bounds are then wider but never wrong.
    """
    indptr, items, user_ptr, users = sums
    rows, head, fine = indptr.size - 1, 0, True
    while count > 0 and visits > 0 and fine:
        row = queue[head]
        head = (head + 1) % rows
        count -= 1
        visits -= 1
        queued[row] = False
        begin, end = indptr[row], indptr[row + 1]
        total = items[begin]
        least, most = 0, 0
        for k in range(begin + 1, end):
            least += low[items[k]]
            most += high[items[k]]
        for k in range(begin, end):
            cell = items[k]
            if k == begin:
                new_low, new_high = max(low[cell], least), min(high[cell], most)
            else:
                new_low = max(low[cell], low[total] - (most - high[cell]))
                new_high = min(high[cell], high[total] - (least - low[cell]))
            if new_low == low[cell] and new_high == high[cell]:
                continue
            if k > begin:
                least += new_low - low[cell]
                most += new_high - high[cell]
            low[cell], high[cell] = new_low, new_high
            if new_low > new_high:
                fine = False
                break
            for u in range(user_ptr[cell], user_ptr[cell + 1]):
                user = users[u]
                if not queued[user]:
                    queued[user] = True
                    queue[(head + count) % rows] = user
                    count += 1
    while count > 0:
        queued[queue[head]] = False
        head = (head + 1) % rows
        count -= 1
    return fine


@compiled
def narrow(  # pragma: no cover
    sums: Any,
    low: Any,
    high: Any,
    queue: Any,
    queued: Any,
    visits: int,
    cell: int,
    least: int,
    most: int,
) -> bool:
    """Narrow one cell, and all cells that follow."""
    if least <= low[cell] and most >= high[cell]:
        return True
    low[cell], high[cell] = max(low[cell], least), min(high[cell], most)
    if low[cell] > high[cell]:
        return False
    user_ptr, users = sums[2], sums[3]
    count = 0
    for u in range(user_ptr[cell], user_ptr[cell + 1]):
        queued[users[u]] = True
        queue[count] = users[u]
        count += 1
    return drain(sums, low, high, queue, queued, count, visits)


@compiled
def _pick(inner: Any, low: Any, high: Any) -> int:  # pragma: no cover
    """The open cell to fix next: one with the fewest values."""
    best, best_width = -1, 0
    for k in range(inner.size):
        width = high[inner[k]] - low[inner[k]]
        if width > 0 and (best < 0 or width < best_width):
            best, best_width = k, width
    return best


@compiled
def refit(  # pragma: no cover
    released: Any, inner: Any, low: Any, high: Any, guide: Any, rounds: int
) -> None:
    """Scale the guide to the released sums in turn, inside the bounds: proportional fitting.

    The guide stays near the middle of the tables that are left, where whole ones are most likely.
    """
    sum_ptr, sum_cells, values = released
    for k in range(inner.size):
        # A cell that is scaled to 0 would stay 0.
        guide[k] = min(max(guide[k], low[inner[k]] + 1e-3), high[inner[k]])
    for _ in range(rounds):
        for row in range(values.size):
            fixed, free = 0.0, 0.0
            for i in range(sum_ptr[row], sum_ptr[row + 1]):
                k = sum_cells[i]
                fixed += low[inner[k]]
                free += guide[k] - low[inner[k]]
            if free <= 0.0:
                continue
            factor = max(values[row] - fixed, 0.0) / free
            for i in range(sum_ptr[row], sum_ptr[row + 1]):
                k = sum_cells[i]
                least = low[inner[k]]
                guide[k] = min(least + (guide[k] - least) * factor, high[inner[k]])


@compiled
def _settle(sums: Any, low: Any, high: Any, queue: Any, queued: Any) -> bool:  # pragma: no cover
    """Whether cells that are all fixed really add up: every sum is checked until nothing moves."""
    rows = sums[0].size - 1
    for row in range(rows):
        queue[row] = row
        queued[row] = True
    return drain(sums, low, high, queue, queued, rows, 2**60)


@compiled
def dive(  # pragma: no cover
    sums: Any,
    low: Any,
    high: Any,
    queue: Any,
    queued: Any,
    visits: int,
    released: Any,
    inner: Any,
    guide: Any,
    nodes: int,
    saved_low: Any,
    saved_high: Any,
    saved: Any,
) -> Any:
    """Look for one table inside the bounds; returns the outcome and how many cells were fixed.

    An open cell is set to the value of its guide, which is fitted anew each time; if no table is found
    there, to less, and then to more. If the outcome is FOUND, the inner cells are fixed at a table.
    """
    depth, used = 0, 0
    while True:
        index = _pick(inner, low, high)
        if index < 0:
            if _settle(sums, low, high, queue, queued):
                return FOUND, used
            fine = False
        else:
            if used >= nodes or depth == saved.shape[0]:
                return CUT, used
            used += 1
            refit(released, inner, low, high, guide, _REFITS)
            cell = inner[index]
            value = min(max(np.int64(np.round(guide[index])), low[cell]), high[cell])
            saved_low[depth] = low
            saved_high[depth] = high
            saved[depth, 0], saved[depth, 1], saved[depth, 2] = cell, value, 0
            depth += 1
            fine = narrow(sums, low, high, queue, queued, visits, cell, value, value)
        while not fine:
            if depth == 0:
                return NO_TABLE, used
            tried = saved[depth - 1, 2]
            if tried == 2:
                depth -= 1
                continue
            saved[depth - 1, 2] = tried + 1
            low[:] = saved_low[depth - 1]
            high[:] = saved_high[depth - 1]
            cell, value = saved[depth - 1, 0], saved[depth - 1, 1]
            least = low[cell] if tried == 0 else value + 1
            most = value - 1 if tried == 0 else high[cell]
            fine = least <= most and narrow(
                sums, low, high, queue, queued, visits, cell, least, most
            )
