"""The shuttle algorithm of Buzzigoli and Giusti: from upper bounds to lower ones and back."""

from __future__ import annotations

import numpy as np

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.margins import Margins
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.model.arrays import Ints

CONTRADICTION = "The margins contradict each other: no table of whole numbers has all of them."


def shuttle(margins: Margins, *, rounds: int = 1000) -> Bounds:
    """Bounds of every cell by the shuttle algorithm along the released margins.

    Buzzigoli and Giusti (1999) gave it for three variables and all two-way margins. A cell is at least its
    sum minus the upper bounds of the others in the sum, and at most the sum minus their lower bounds. This
    is repeated for all sums until nothing changes::

        L' = max(L, n_C - (sum of U along the sum - U))
        U' = min(U, n_C - (sum of L along the sum - L))

    Any margins are allowed. The bounds hold, are quick and often wide: only cells with one feasible value
    are called sharp. After this many ``rounds`` the bounds reached by then are returned.

    >>> table = [[[1, 2], [3, 0]], [[2, 2], [0, 4]]]
    >>> found = shuttle(Margins.of_table(table, [[0, 1], [0, 2], [1, 2]]))
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist()
    ([1, 0, 1, 0, 0, 2, 0, 2], [3, 2, 3, 2, 2, 4, 2, 4])
    """
    low: Ints = np.zeros(margins.shape, dtype=np.int64)
    high: Ints = np.full(margins.shape, margins.total, dtype=np.int64)
    sums = [
        (margins.margin(g), tuple(a for a in range(len(margins.names)) if a not in g))
        for g in margins.generators
    ]
    for _ in range(rounds):
        before = low, high
        for total, along in sums:
            least, most = (a.sum(axis=along, keepdims=True) for a in (low, high))
            low, high = np.maximum(low, total - most + high), np.minimum(high, total - least + low)
        if bool((low > high).any()):
            raise ContradictionError(CONTRADICTION)
        if np.array_equal(low, before[0]) and np.array_equal(high, before[1]):
            break
    return margins.bounds(low, high, low == high)
