"""The loops of Markov perturbation, compiled when they are first run.

Each has a twin in :mod:`lustrum.protect.markov.plain` that makes the same moves from the same stream.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lustrum.compiled import compiled

__all__ = ["LIGHT", "draw_binomial", "run_boxes", "run_random"]

LIGHT = 12.0  # expected number up to which a binomial is counted up from 0


@compiled
def _next(state: Any) -> Any:  # pragma: no cover
    """SplitMix64 (Steele, Lea and Flood 2014); the second word is the stream's own increment."""
    z = state[0] + state[1]
    state[0] = z
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _unit(state: Any) -> float:  # pragma: no cover
    """A number in [0, 1) of 53 bits."""
    return float(np.int64(_next(state) >> np.uint64(11))) * (1.0 / 9007199254740992.0)


@compiled
def _below(half: Any, count: int) -> Any:  # pragma: no cover
    """A number below ``count`` from 32 random bits."""
    return np.int64((half * np.uint64(count)) >> np.uint64(32))


@compiled
def _few(n: int, p: float, u: float) -> int:  # pragma: no cover
    """The binomial quantile of ``u``, counted up from 0."""
    odds = p / (1.0 - p)
    mass = math.exp(n * math.log1p(-p))
    k = 0
    while u >= mass and k < n:
        u -= mass
        mass *= odds * (n - k) / (k + 1)
        k += 1
    return k


@compiled
def _many(n: int, p: float, u: float) -> int:  # pragma: no cover
    """A binomial from ``u``, by its probabilities from the mode outwards, above and below in turn."""
    mode = int((n + 1) * p)
    odds = p / (1.0 - p)
    mass = math.exp(
        math.lgamma(n + 1.0)
        - math.lgamma(mode + 1.0)
        - math.lgamma(n - mode + 1.0)
        + mode * math.log(p)
        + (n - mode) * math.log1p(-p)
    )
    u -= mass
    above, below, up, down = mode, mode, mass, mass
    while u >= 0.0 and (up > 1e-300 or down > 1e-300):
        up *= odds * (n - above) / (above + 1)
        above += 1
        u -= up
        if u < 0.0:
            return above
        down *= below / (odds * (n - below + 1))
        below -= 1
        u -= down
        if u < 0.0:
            return below
    return mode


@compiled
def draw_binomial(n: int, p: float, state: Any) -> int:  # pragma: no cover
    """How many of ``n`` move when each does with probability ``p``."""
    if n == 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    u = _unit(state)
    if n == 1:
        return 1 if u < p else 0
    small = min(p, 1.0 - p)
    k = _few(n, small, u) if n * small < LIGHT else _many(n, small, u)
    return k if small == p else n - k


@compiled
def _step(down: int, up: int, theta: float, unit: bool, state: Any) -> int:  # pragma: no cover
    """A change of mean 0 that takes at most ``down`` away and adds at most ``up``."""
    movers = min(down, up)
    if movers == 0:
        return 0
    if unit:
        u = _unit(state)
        return 1 if u < theta else (-1 if u < 2.0 * theta else 0)
    stay = theta * movers
    return draw_binomial(up, stay / up, state) - draw_binomial(down, stay / down, state)


@compiled
def run_random(  # pragma: no cover
    x: Any,
    families: Any,
    groups: Any,
    offsets: Any,
    odd: Any,
    theta: float,
    unit: bool,
    steps: int,
    state: Any,
) -> int:
    """So many boxes, each drawn at random; gives how many changed the table.

    Family ``f`` has the groups ``families[f, 0]`` to ``families[f, 1]``; group ``g`` is a list of
    ``groups[g, 1]`` offsets from ``groups[g, 0]`` on, of which a box takes two if ``groups[g, 2]`` and
    one otherwise. ``odd`` says which corners of a box go down when the others go up.
    """
    mask = np.uint64(0xFFFFFFFF)
    cells = np.empty(odd.size, dtype=np.int64)
    changed = 0
    for _ in range(steps):
        f = _below(_next(state) & mask, families.shape[0]) if families.shape[0] > 1 else 0
        cells[0] = 0
        size = 1
        for g in range(families[f, 0], families[f, 1]):
            begin, count = groups[g, 0], groups[g, 1]
            if count == 1:
                cells[0] += offsets[begin]
                continue
            bits = _next(state)
            first = _below(bits & mask, count)
            here = offsets[begin + first]
            if groups[g, 2] == 0:
                for k in range(size):
                    cells[k] += here
                continue
            second = _below(bits >> np.uint64(32), count - 1)
            second += second >= first
            there = offsets[begin + second]
            for k in range(size):
                cells[size + k] = cells[k] + there
                cells[k] += here
            size *= 2
        down, up = x[cells[0]], x[cells[1]]
        for k in range(2, size):
            value = x[cells[k]]
            if odd[k]:
                up = min(up, value)
            else:
                down = min(down, value)
        t = _step(down, up, theta, unit, state)
        if t != 0:
            changed += 1
            for k in range(size):
                x[cells[k]] += -t if odd[k] else t
    return changed


@compiled
def run_boxes(  # pragma: no cover
    x: Any, boxes: Any, odd: Any, theta: float, unit: bool, state: Any
) -> int:
    """Boxes that are listed, one a row; gives how many changed the table."""
    changed = 0
    for row in range(boxes.shape[0]):
        down, up = x[boxes[row, 0]], x[boxes[row, 1]]
        for k in range(2, boxes.shape[1]):
            value = x[boxes[row, k]]
            if odd[k]:
                up = min(up, value)
            else:
                down = min(down, value)
        t = _step(down, up, theta, unit, state)
        if t != 0:
            changed += 1
            for k in range(boxes.shape[1]):
                x[boxes[row, k]] += -t if odd[k] else t
    return changed
