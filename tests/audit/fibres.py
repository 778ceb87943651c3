"""All tables that fit some facts, one by one: the slow truth that audits are compared with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import settings

from examples import examples
from lustrum.audit import Knowledge
from lustrum.model import Category, TableAxis

# The first run of a kernel compiles it, which no deadline foresees.
QUICK = settings(deadline=None, max_examples=examples(13, 150))


def axis(name: str, *sets: Sequence[int]) -> TableAxis:
    """An axis of sets of codes."""
    return TableAxis(
        name,
        name,
        tuple(Category("".join(map(str, s)), "".join(map(str, s)), tuple(s)) for s in sets),
    )


def fitting(known: Knowledge) -> np.ndarray:
    """Every whole point of a small box that satisfies all facts, one a row."""
    boxes = [range(lo, hi + 1) for lo, hi in zip(known.low, known.high, strict=True)]
    facts = known.matrix.toarray()
    points = []
    for point in itertools.product(*boxes):
        sums = facts @ np.array(point, dtype=np.int64)
        if np.all((known.fact_low <= sums) & (sums <= known.fact_high)):
            points.append(point)
    return np.array(points, dtype=np.int64).reshape(-1, len(known))


def splits(total: int, parts: int) -> np.ndarray:
    """Every way to put so many people into so many cells."""
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    rows = [np.diff([-1, *b, total + parts - 1]) - 1 for b in bars]
    return np.array(rows, dtype=np.int64)
