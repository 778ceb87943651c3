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
    """Every whole point of a small box that satisfies all facts, one a row, in order.

    Cell by cell; a beginning is dropped once no values of the later cells can make a fact true.
    """
    facts = known.matrix.toarray().astype(np.int64)
    ends = np.stack([facts * known.low, facts * known.high])
    points = np.zeros((1, 0), dtype=np.int64)
    for k in range(len(known)):
        values = np.arange(known.low[k], known.high[k] + 1)
        points = np.column_stack(
            [np.repeat(points, values.size, axis=0), np.tile(values, len(points))]
        )
        sums = points @ facts[:, : k + 1].T
        later = ends[:, :, k + 1 :]
        least, most = later.min(axis=0).sum(axis=1), later.max(axis=0).sum(axis=1)
        fits = (sums + most >= known.fact_low) & (sums + least <= known.fact_high)
        points = points[fits.all(axis=1)]
    return points


def splits(total: int, parts: int) -> np.ndarray:
    """Every way to put so many people into so many cells."""
    bars = itertools.combinations(range(total + parts - 1), parts - 1)
    rows = [np.diff([-1, *b, total + parts - 1]) - 1 for b in bars]
    return np.array(rows, dtype=np.int64)
