"""The loop that draws clusters again for bootstrap weights, compiled at first use."""

from __future__ import annotations

import math
from typing import Any

from lustrum.numeric.arithmetic_loops import exp, log
from lustrum.numeric.compiled import compiled


@compiled
def _binomial(n: int, p: float, rng: Any) -> int:  # pragma: no cover
    """A binomial draw, counted up from 0."""
    q = 1.0 - p
    mean = n * p
    most = min(n, int(mean + 10.0 * math.sqrt(mean * q + 1.0)))
    first = exp(n * log(q))
    successes = 0
    mass = first
    u = rng.random()
    while u > mass:
        successes += 1
        if successes > most:
            successes = 0
            mass = first
            u = rng.random()
        else:
            u -= mass
            mass = ((n - successes + 1) * p * mass) / (successes * q)
    return successes


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
            draws = _binomial(rest, min(share, 1.0 - share), rng)
            if share > 0.5:
                draws = rest - draws
            times[replicate, cluster] = draws
            rest -= draws
            if rest == 0:
                break
            left -= 1.0 / n
        times[replicate, n - 1] = rest
