"""The loop that draws clusters again for bootstrap weights, compiled at first use."""

from __future__ import annotations

import math
from typing import Any

from lustrum.arithmetic_loops import exp, log
from lustrum.compiled import compiled


@compiled
def _binomial(n: int, p: float, rng: Any) -> int:  # pragma: no cover
    """A binomial draw, counted up from 0."""
    q = 1.0 - p
    mean = n * p
    most = min(n, int(mean + 10.0 * math.sqrt(mean * q + 1.0)))
    first = exp(n * log(q))
    found = 0
    mass = first
    u = rng.random()
    while u > mass:
        found += 1
        if found > most:
            found = 0
            mass = first
            u = rng.random()
        else:
            u -= mass
            mass = ((n - found + 1) * p * mass) / (found * q)
    return found


@compiled
def draw_times(times: Any, rng: Any) -> None:  # pragma: no cover
    """Fill in how often each cluster is drawn, for every replicate: one row less than there are clusters.

    Cluster after cluster, by binomial draws: numpy's own way, with the same bytes on every processor.
    """
    n = times.shape[1]
    for replicate in range(times.shape[0]):
        rest = n - 1
        left = 1.0
        for cluster in range(n - 1):
            share = (1.0 / n) / left
            found = _binomial(rest, min(share, 1.0 - share), rng)
            if share > 0.5:
                found = rest - found
            times[replicate, cluster] = found
            rest -= found
            if rest == 0:
                break
            left -= 1.0 / n
        times[replicate, n - 1] = rest
