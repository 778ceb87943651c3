"""Steps from one whole table to the next, compiled at first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import below_of, own_next_word


@compiled
def _below(state: Any, count: Any) -> Any:  # pragma: no cover
    """A number below ``count``."""
    return below_of(own_next_word(state) >> np.uint64(32), count)


@compiled
def _sign(state: Any) -> Any:  # pragma: no cover
    return np.int64(1) if own_next_word(state) >> np.uint64(63) else np.int64(-1)


@compiled
def _reach(  # pragma: no cover
    x: Any, low: Any, high: Any, indptr: Any, cells: Any, steps: Any, move: int, sign: Any
) -> Any:
    """How many times a step can be taken."""
    most = np.int64(2**31)
    for k in range(indptr[move], indptr[move + 1]):
        cell, step = cells[k], steps[k] * sign
        room = (high[cell] - x[cell]) // step if step > 0 else (x[cell] - low[cell]) // -step
        if room < most:
            most = room
            if most == 0:
                break
    return most


@compiled
def apart(vectors: Any, tied: Any) -> int:  # pragma: no cover
    """Recombine vectors until few of them change the tied cells; these come first. Returns how many.

    Each step subtracts a multiple of one vector from another, so the span stays the same.
    """
    count, size = vectors.shape
    first = 0
    for index in range(tied.size):
        cell = tied[index]
        while True:
            best, others = -1, 0
            for i in range(first, count):
                if vectors[i, cell] != 0:
                    others += 1
                    if best < 0 or abs(vectors[i, cell]) < abs(vectors[best, cell]):
                        best = i
            if others == 0:
                break
            for i in range(count):
                # Vectors that were set apart before keep their cells; only this cell is cleared.
                if i != best and vectors[i, cell] != 0 and (i >= first or others == 1):
                    times = np.int64(np.rint(vectors[i, cell] / vectors[best, cell]))
                    for k in range(size):
                        vectors[i, k] -= times * vectors[best, k]
            if others == 1:
                for k in range(size):
                    vectors[first, k], vectors[best, k] = vectors[best, k], vectors[first, k]
                first += 1
                break
    return first


@compiled
def approach(  # pragma: no cover
    goal: int,
    way: int,
    vectors: Any,
    few: int,
    x: Any,
    low: Any,
    high: Any,
    least: Any,
    most: Any,
    state: Any,
    tries: int,
) -> bool:
    """Move a table towards a bound: one step in four moves the tied cells, the others change the rest."""
    count, size = vectors.shape
    entries = 0
    for i in range(count):
        for k in range(size):
            entries += vectors[i, k] != 0
    indptr = np.zeros(count + 1, np.int64)
    cells, steps = np.empty(entries, np.int64), np.empty(entries, np.int64)
    entries = 0
    for i in range(count):
        for k in range(size):
            if vectors[i, k] != 0:
                cells[entries], steps[entries] = k, vectors[i, k]
                entries += 1
        indptr[i + 1] = entries
    for _ in range(tries):
        if (way > 0 and most[goal] >= high[goal]) or (way < 0 and least[goal] <= low[goal]):
            return True
        if few == count or (few > 0 and own_next_word(state) >> np.uint64(62) == np.uint64(0)):
            move = _below(state, few)
            gain = vectors[move, goal] * way
            sign = _sign(state) if gain == 0 else np.int64(1) if gain > 0 else np.int64(-1)
            times = _reach(x, low, high, indptr, cells, steps, move, sign)
        else:
            move = few + _below(state, count - few)
            sign = _sign(state)
            times = _reach(x, low, high, indptr, cells, steps, move, sign)
            if times > 0:
                times = _below(state, times + 1)
        if times > 0:
            for k in range(indptr[move], indptr[move + 1]):
                cell = cells[k]
                x[cell] += times * sign * steps[k]
                least[cell] = min(least[cell], x[cell])
                most[cell] = max(most[cell], x[cell])
    return False
