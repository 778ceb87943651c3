"""The terms of :mod:`lustrum.risk.table_entropy_batch` in one compiled pass over the cells of all tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.arithmetic_loops import log
from lustrum.compiled import compiled


@compiled
def entropy_term(number: Any, values: Any, begin: int, end: int) -> float:  # pragma: no cover
    """``1 - H / log K`` of a part of a table: ``number`` cells of the part hold each value."""
    cells = 0
    total = 0.0
    for i in range(begin, end):
        cells += number[i]
        total += number[i] * values[i]
    if total <= 0:
        return 0.0
    if cells == 1:
        return 1.0
    entropy = 0.0
    for i in range(begin, end):
        share = values[i] / total
        if number[i] > 0 and share > 0:
            entropy -= number[i] * share * log(share)
    return min(max(1.0 - entropy / log(float(cells)), 0.0), 1.0)


@compiled
def many_terms(  # pragma: no cover
    value_index: Any,
    values: Any,
    column: Any,
    shown: Any,
    first: Any,
    at: Any,
    chance: Any,
    split: int,
    by_published: bool,
    observed: bool,
) -> Any:
    """Of tables, one a row of ``value_index``: terms of small and large counts before and after, people, zeros.

    Cell ``j`` of table ``t`` holds ``values[value_index[t, j]]`` and shows ``shown[column[j]]``. The value
    ``v`` leads to ``shown[at[k]]`` with ``chance[k]``, ``k`` from ``first[v]`` on. The last three rows count
    the cells that are empty, that also look it, and that are one of the two.
    """
    turns, cells = value_index.shape
    small = 0
    while small < values.size and values[small] <= split:
        small += 1
    held = values.astype(np.float64)
    seen = np.zeros(shown.size)
    for j in range(cells):
        seen[column[j]] += 1.0
    out = np.zeros((8, turns))
    number = np.zeros(values.size, dtype=np.int64)
    lower = np.zeros(shown.size, dtype=np.int64)
    upper = np.zeros(shown.size, dtype=np.int64)
    people = np.zeros(shown.size)
    there = np.zeros(shown.size)
    for t in range(turns):
        number[:] = 0
        lower[:] = 0
        upper[:] = 0
        people[:] = 0.0
        there[:] = 0.0
        empty = both = either = 0
        for j in range(cells):
            v, c = value_index[t, j], column[j]
            number[v] += 1
            if (shown[c] if by_published else values[v]) <= split:
                lower[c] += 1
            else:
                upper[c] += 1
            is_empty, looks_empty = values[v] == 0, shown[c] == 0
            empty += is_empty
            both += is_empty and looks_empty
            either += is_empty or looks_empty
        everybody = 0
        for v in range(values.size):
            if number[v] == 0:
                continue
            everybody += number[v] * values[v]
            for k in range(first[v], first[v + 1]):
                weight = number[v] * chance[k]
                there[at[k]] += weight
                people[at[k]] += weight * held[v]
        for c in range(shown.size):
            if observed:
                people[c] /= seen[c]
            elif there[c] > 0:
                people[c] /= there[c]
            else:
                people[c] = shown[c]
        out[0, t] = entropy_term(number, held, 0, small)
        out[1, t] = entropy_term(number, held, small, values.size)
        out[2, t] = entropy_term(lower, people, 0, shown.size)
        out[3, t] = entropy_term(upper, people, 0, shown.size)
        out[4, t] = everybody
        out[5, t] = empty
        out[6, t] = both
        out[7, t] = either
    return out
