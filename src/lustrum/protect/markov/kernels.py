"""The loops of Markov perturbation, compiled at first use.

Tests compare each with plain Python that makes the same moves from the same stream.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.arithmetic_loops import exp, log, log1p, log_gamma
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import below_of, own_next_word, unit_of

LIGHT = 12.0  # up to this expected number a binomial is counted up from 0


@compiled
def _few(n: int, p: float, u: float) -> int:  # pragma: no cover
    """The binomial quantile of ``u``, counted up from 0."""
    odds = p / (1.0 - p)
    mass = exp(n * log1p(-p))
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
    mass = exp(
        log_gamma(n + 1.0)
        - log_gamma(mode + 1.0)
        - log_gamma(n - mode + 1.0)
        + mode * log(p)
        + (n - mode) * log1p(-p)
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
def draw_binomial(n: int, p: float, state: Array) -> int:  # pragma: no cover
    """How many of ``n`` move when each does with probability ``p``."""
    if n == 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    u = unit_of(own_next_word(state))
    if n == 1:
        return 1 if u < p else 0
    small = min(p, 1.0 - p)
    k = _few(n, small, u) if n * small < LIGHT else _many(n, small, u)
    return k if small == p else n - k


@compiled
def _step(down: int, up: int, theta: float, unit: bool, state: Array) -> int:  # pragma: no cover
    """A change of mean 0 that takes at most ``down`` away and adds at most ``up``."""
    movers = min(down, up)
    if movers == 0:
        return 0
    if unit:
        u = unit_of(own_next_word(state))
        return 1 if u < theta else (-1 if u < 2.0 * theta else 0)
    stay = theta * movers
    return draw_binomial(up, stay / up, state) - draw_binomial(down, stay / down, state)


@compiled
def _moved(  # pragma: no cover
    x: Array, cells: Array, size: int, odd: Array, theta: float, unit: bool, state: Array
) -> int:
    """One step of the box whose corners are the first ``size`` cells; 1 if it changed the table."""
    down, up = x[cells[0]], x[cells[1]]
    for k in range(2, size):
        value = x[cells[k]]
        if odd[k]:
            up = min(up, value)
        else:
            down = min(down, value)
    t = _step(down, up, theta, unit, state)
    if t == 0:
        return 0
    for k in range(size):
        x[cells[k]] += -t if odd[k] else t
    return 1


@compiled
def run_random(  # pragma: no cover
    x: Array,
    families: Array,
    groups: Array,
    offsets: Array,
    odd: Array,
    theta: float,
    unit: bool,
    steps: int,
    state: Array,
) -> int:
    """Apply this many random boxes; returns how many changed the table.

    Family ``f`` has the groups ``families[f, 0]`` to ``families[f, 1]``; group ``g`` is a list of
    ``groups[g, 1]`` offsets from ``groups[g, 0]`` on, of which a box takes two if ``groups[g, 2]`` and
    one otherwise. ``odd`` says which corners of a box go down when the others go up.
    """
    mask = np.uint64(0xFFFFFFFF)
    cells = np.empty(odd.size, dtype=np.int64)
    changed = 0
    for _ in range(steps):
        f = below_of(own_next_word(state) & mask, families.shape[0]) if families.shape[0] > 1 else 0
        cells[0] = 0
        size = 1
        for g in range(families[f, 0], families[f, 1]):
            begin, count = groups[g, 0], groups[g, 1]
            if count == 1:
                cells[0] += offsets[begin]
                continue
            bits = own_next_word(state)
            first = below_of(bits & mask, count)
            here = offsets[begin + first]
            if groups[g, 2] == 0:
                for k in range(size):
                    cells[k] += here
                continue
            second = below_of(bits >> np.uint64(32), count - 1)
            second += second >= first
            there = offsets[begin + second]
            for k in range(size):
                cells[size + k] = cells[k] + there
                cells[k] += here
            size *= 2
        changed += _moved(x, cells, size, odd, theta, unit, state)
    return changed


@compiled
def run_boxes(  # pragma: no cover
    x: Array, boxes: Array, odd: Array, theta: float, unit: bool, state: Array
) -> int:
    """Apply the listed boxes, one a row; returns how many changed the table."""
    changed = 0
    for row in range(boxes.shape[0]):
        changed += _moved(x, boxes[row], boxes.shape[1], odd, theta, unit, state)
    return changed
