"""The loops of :mod:`lustrum.protect.markov.spec` in plain Python: slow, short, and the same."""

from __future__ import annotations

import math

import numpy as np

from audit.plain_walks import Stream
from lustrum.model.arrays import Ints
from lustrum.protect.markov.spec import LIGHT, Moves

__all__ = ["plain_binomial", "plain_boxes", "plain_random"]


def plain_binomial(n: int, p: float, stream: Stream) -> int:
    """How many of ``n`` move when each does with probability ``p``."""
    if n == 0 or p <= 0:
        return 0
    if p >= 1:
        return n
    u = stream.unit()
    if n == 1:
        return int(u < p)
    small = min(p, 1 - p)
    chances = [_mass(n, k, small) for k in range(n + 1)]
    order = list(range(n + 1))
    if n * small >= LIGHT:
        mode = int((n + 1) * small)
        turns = sorted((abs(k - mode), k < mode, k) for k in range(n + 1))
        order = [k for _, _, k in turns]
    for k in order:
        u -= chances[k]
        if u < 0:
            break
    return k if small == p else n - k


def _mass(n: int, k: int, p: float) -> float:
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log + k * math.log(p) + (n - k) * math.log1p(-p))


def _moved(x: Ints, cells: Ints, theta: float, unit: bool, stream: Stream) -> None:
    signs = np.array([(-1) ** bin(k).count("1") for k in range(cells.size)])
    down, up = int(x[cells[signs > 0]].min()), int(x[cells[signs < 0]].min())
    movers = min(down, up)
    if movers == 0:
        return
    if unit:
        u = stream.unit()
        t = 1 if u < theta else (-1 if u < 2 * theta else 0)
    else:
        share = theta * movers
        t = plain_binomial(up, share / up, stream) - plain_binomial(down, share / down, stream)
    x[cells] += t * signs


def plain_random(
    x: Ints, moves: Moves, theta: float, unit: bool, steps: int, stream: Stream
) -> Ints:
    """A flat table after so many boxes drawn at random."""
    x = x.copy()
    half = 2**32 - 1
    for _ in range(steps):
        f = 0
        if len(moves.families) > 1:
            f = ((stream.word() & half) * len(moves.families)) >> 32
        cells = np.zeros(1, dtype=np.int64)
        for begin, count, paired in moves.groups[slice(*moves.families[f])].tolist():
            if count == 1:
                cells = cells + moves.offsets[begin]
                continue
            word = stream.word()
            first = ((word & half) * count) >> 32
            here = cells + moves.offsets[begin + first]
            if paired:
                second = ((word >> 32) * (count - 1)) >> 32
                there = cells + moves.offsets[begin + second + (second >= first)]
                here = np.concatenate([here, there])
            cells = here
        _moved(x, cells, theta, unit, stream)
    return x


def plain_boxes(x: Ints, boxes: Ints, theta: float, unit: bool, stream: Stream) -> Ints:
    """A flat table after the boxes that are listed."""
    x = x.copy()
    for cells in boxes:
        _moved(x, cells, theta, unit, stream)
    return x
