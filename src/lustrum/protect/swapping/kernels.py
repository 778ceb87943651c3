"""The loop that finds partners, compiled at first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import unit


@compiled
def pair_up(
    turns: Any, quota: Any, home: Any, stratum: Any, group: Any, limit: int, state: Any
) -> Any:  # pragma: no cover
    """Give units a partner, in the order of ``turns``, and say by which row of ``stratum`` it was found.

    Row ``p`` of ``stratum`` says which units are alike at step ``p``, from strict to loose; row ``p`` of
    ``group`` divides each stratum into units of the same place, which cannot be partners. A partner is
    drawn uniformly from the remaining units of the stratum in other places, by rejection. Every search
    removes one such unit, so all searches together need at most ``n log n`` draws on average. ``quota`` is
    how many units of each ``home`` may still look for a partner.
    """
    steps, units = stratum.shape
    partner = np.full(units, -1, np.int64)
    found_by = np.full(units, -1, np.int64)
    strata = 1
    groups = 1
    for p in range(steps):
        for u in range(units):
            strata = max(strata, stratum[p, u] + 1)
            groups = max(groups, group[p, u] + 1)
    begin = np.zeros((steps, strata + 1), np.int64)
    left = np.zeros((steps, strata), np.int64)
    together = np.zeros((steps, groups), np.int64)
    listed = np.empty((steps, units), np.int32)
    position = np.empty((steps, units), np.int32)
    for p in range(steps):
        for u in range(units):
            begin[p, stratum[p, u] + 1] += 1
            together[p, group[p, u]] += 1
        for s in range(strata):
            begin[p, s + 1] += begin[p, s]
        for u in range(units):
            s = stratum[p, u]
            at = begin[p, s] + left[p, s]
            listed[p, at] = u
            position[p, u] = at
            left[p, s] += 1
    pairs = 0
    for u in turns:
        if pairs >= limit:
            break
        if partner[u] >= 0 or quota[home[u]] <= 0:
            continue
        for p in range(steps):
            s = stratum[p, u]
            if left[p, s] <= together[p, group[p, u]]:
                continue
            v = u
            while group[p, v] == group[p, u]:
                v = listed[p, begin[p, s] + np.int64(unit(state) * left[p, s])]
            partner[u] = v
            partner[v] = u
            found_by[u] = p
            quota[home[u]] -= 1
            pairs += 1
            for gone in (u, v):
                for q in range(steps):
                    t = stratum[q, gone]
                    left[q, t] -= 1
                    last = listed[q, begin[q, t] + left[q, t]]
                    listed[q, position[q, gone]] = last
                    position[q, last] = position[q, gone]
                    together[q, group[q, gone]] -= 1
            break
    return partner, found_by
