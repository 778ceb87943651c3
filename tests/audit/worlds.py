"""Small worlds: a hidden cube, some tables of it, and every cube that fits what the tables say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from hypothesis import strategies as st

from audit.fibres import axis, splits
from lustrum.audit import Knowledge, PublishedTable, from_tables
from lustrum.numeric.structure import UNBOUNDED

GROUPINGS = {
    2: [[[0], [1]], [[0], [1], [0, 1]], [[0, 1]], [[0, 1], [1]]],
    3: [[[0], [1], [2]], [[0], [1], [2], [0, 1, 2]], [[0, 1], [2]], [[0], [1], [2], [1, 2]]],
}


@dataclass(frozen=True, eq=False)
class World:
    """Tables, the knowledge that they give, and the values of all their cells in every cube that fits."""

    tables: tuple[PublishedTable, ...]
    known: Knowledge
    every: np.ndarray

    @property
    def cells(self) -> int:
        """How many cells the tables have; the knowledge may hold those of a hidden cube after them."""
        return int(self.every.shape[1])


@cache
def _cubes(total: int, cells: int) -> np.ndarray:
    return splits(total, cells)


def _sums(shape: Sequence[int], sets: Sequence[Sequence[Sequence[int]]]) -> np.ndarray:
    """For each cell of a table, which inner cells it holds; an axis without sets is summed over."""
    rows = []
    for chosen in np.ndindex(*(len(s) for s in sets)):
        inside = np.zeros(shape, dtype=np.int64)
        inside[np.ix_(*(s[k] for s, k in zip(sets, chosen, strict=True)))] = 1
        rows.append(inside.ravel())
    return np.array(rows)


@st.composite
def worlds(draw: st.DrawFn, *, clash: bool = False, most: int = 6) -> World:
    """Up to three tables with hidden, rounded and roughly known cells; with ``clash`` perhaps none fits."""
    shape = draw(st.sampled_from([(2, 2), (2, 3), (3, 2)]))
    size = shape[0] * shape[1]
    true = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
    true = np.where(np.cumsum(true) <= most, true, 0)
    tables = [PublishedTable.exact([], int(true.sum()))]
    parts = [np.ones((1, size), dtype=np.int64)]
    for _ in range(draw(st.integers(1, 3))):
        sets = [draw(st.sampled_from([None, *GROUPINGS[n], *GROUPINGS[n][:2]])) for n in shape]
        axes = [axis(name, *s) for name, s in zip("xy", sets, strict=True) if s is not None]
        whole = [s or [list(range(n))] for s, n in zip(sets, shape, strict=True)]
        sums = _sums(shape, whole)
        low, high = [], []
        for value in (sums @ true).tolist():
            kind = draw(st.sampled_from(["shown", "shown", "hidden", "hidden", "rounded", "rough"]))
            value += draw(st.sampled_from([0] * 9 + [1])) if clash else 0
            near = 3 * ((value + 1) // 3)
            ends = {
                "shown": (value, value),
                "hidden": (0, UNBOUNDED),
                "rounded": (max(near - 1, 0), near + 1),
                "rough": (max(value - 2, 0), value + 1),
            }
            low.append(ends[kind][0])
            high.append(ends[kind][1])
        layout = PublishedTable.hidden(axes).layout
        ends_of_cells = (np.array(a, dtype=np.int64).reshape(layout.shape) for a in (low, high))
        tables.append(PublishedTable(layout, *ends_of_cells))
        parts.append(sums)
    every = _cubes(int(true.sum()), size) @ np.concatenate(parts).T
    lows, highs = (np.concatenate([getattr(t, e).ravel() for t in tables]) for e in ("low", "high"))
    fits = ((lows <= every) & (every <= highs)).all(axis=1)
    return World(tuple(tables), from_tables(tables), every[fits])
