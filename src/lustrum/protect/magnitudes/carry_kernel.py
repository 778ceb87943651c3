"""The hot loop that chooses which cells carry records."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled
from lustrum.protect.population.search.kernels import places


@compiled
def _shift(
    layout: Any, inner: Any, base: Any, errors: Any, amount: Any, sign: Any
) -> None:  # pragma: no cover
    for r in range(base.size):
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            at = base[r] + inner[t]
            for j in range(amount.size):
                errors[at, j] += sign * amount[j]


@compiled
def _cost(
    layout: Any, inner: Any, base: Any, errors: Any, weights: Any, amount: Any
) -> Any:  # pragma: no cover
    """The cost of adding a record's amounts to a finest cell, over the cells of all tables that contain it."""
    cost = 0.0
    for r in range(base.size):
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            at = base[r] + inner[t]
            for j in range(amount.size):
                if amount[j] != 0.0:
                    cost += weights[at, j] * amount[j] * (2.0 * errors[at, j] + amount[j])
    return cost


@compiled
def carry(
    layout: Any,
    cells: Any,
    amounts: Any,
    whole: Any,
    free: Any,
    candidates: Any,
    carriers: Any,
    holders: Any,
    weights: Any,
    errors: Any,
) -> None:  # pragma: no cover
    """Move each free record to the cheapest of its candidates, but leave no cell without a whole record.

    ``errors[c, j]`` is the sum of measure ``j`` that controlled cell ``c`` carries, less the sum of its own
    records.
    """
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    for f in range(free.size):
        i = free[f]
        now = carriers[i]
        if whole[i] and holders[now] < 2:
            continue
        amount = amounts[i]
        places(layout, cells[now], p, inner, base)
        _shift(layout, inner, base, errors, amount, -1.0)
        best = now
        least = _cost(layout, inner, base, errors, weights, amount)
        for k in range(candidates.shape[1]):
            other = candidates[f, k]
            if other == now:
                continue
            places(layout, cells[other], p, inner, base)
            cost = _cost(layout, inner, base, errors, weights, amount)
            if cost < least:
                least = cost
                best = other
        places(layout, cells[best], p, inner, base)
        _shift(layout, inner, base, errors, amount, 1.0)
        if best != now:
            carriers[i] = best
            if whole[i]:
                holders[now] -= 1
                holders[best] += 1
