"""Bonferroni bounds: cells of a cube from margins of two variables at a time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.frechet import frechet_arrays
from lustrum.audit.closed.graphs import perfect_sequence
from lustrum.audit.closed.margins import Margins
from lustrum.model.arrays import Ints


def bonferroni(margins: Margins) -> Bounds:
    """Bounds of every cell from the one-way and two-way margins that follow from the released ones.

    A cell holds the people who are in all of its k categories. Let ``S1`` be the sum over categories of the
    number of people outside it, and ``S2`` the sum over pairs of the number outside both. Then::

        n  <=  N - S1 + S2                                      (Bonferroni 1936)
        n  <=  N - (2 / (h + 1)) S1 + (2 / (h (h + 1))) S2      (Dawson and Sankoff 1967)
        n  >=  N - S1 + sum of pairs along a spanning tree      (Hunter 1976, Worsley 1982)

    with ``h = 1 + floor(2 S2 / S1)``, and for every cell the tree that is best for it. For three variables
    the first is Fienberg's (1999) ``N - n_i - n_j - n_k + n_ij + n_ik + n_jk``. The upper bounds need all
    two-way margins; the lower one uses those that are known. The result is never wider than Fréchet's
    bounds, and sharp where they are.

    >>> corner = Margins.of_table([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 1], [0, 2], [1, 2]])
    >>> bonferroni(corner).high.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    low, high = bonferroni_arrays(margins)
    sharp = perfect_sequence(margins.generators) is not None
    return margins.bounds(*margins.spread(low, high), sharp)


def bonferroni_arrays(margins: Margins) -> tuple[Ints, Ints]:
    """The same over the covered variables, before the bounds are extended to the cube."""
    low, high = frechet_arrays(margins)
    axes = sorted(margins.covered)
    if len(axes) < 2:
        return low, high
    N = margins.total
    missing = {a: N - margins.margin(frozenset({a})) for a in axes}
    pairs = {}
    all_known = True
    for a, b in combinations(axes, 2):
        both = frozenset({a, b})
        # The number outside both categories. A pair that is not known counts 0: a tree with the least
        # number that must be outside both gives no bound above 0.
        if margins.knows(both):
            pairs[a, b] = missing[a] + missing[b] - N + margins.margin(both)
        else:
            all_known = False
    shape = tuple(
        margins.shape[a] if a in margins.covered else 1 for a in range(len(margins.names))
    )
    S1 = np.broadcast_to(_total(missing.values()), shape)
    low = np.maximum(low, N - S1 + _best_tree(axes, pairs, shape))
    if all_known:
        S2 = np.broadcast_to(_total(pairs.values()), shape)
        h = 1 + 2 * S2 // np.maximum(S1, 1)
        missed = -((2 * S2 - 2 * h * S1) // (h * (h + 1)))  # raised to a whole number
        high = np.minimum(
            high, N - missed
        )  # never above N - S1 + S2, which is the formula for h = 1
    return low, high


def _total(arrays: Iterable[Ints]) -> Ints:
    total: Ints = np.zeros((), dtype=np.int64)
    for array in arrays:
        total = total + array
    return total


def _best_tree(axes: list[int], pairs: dict[tuple[int, int], Ints], shape: tuple[int, ...]) -> Ints:
    """The largest sum of pairs along a spanning tree, for each cell separately (Prim 1957)."""
    index = {a: i for i, a in enumerate(axes)}
    k = len(axes)
    weight = np.zeros((k, k, *shape), dtype=np.int64)
    for (a, b), array in pairs.items():
        weight[index[a], index[b]] = weight[index[b], index[a]] = array
    weight = weight.reshape(k, k, -1)
    cells = np.arange(weight.shape[2])
    reach = weight[0].copy()
    reach[0] = -1  # inside the tree; real weights are not negative
    value = np.zeros(cells.size, dtype=np.int64)
    for _ in range(k - 1):
        new = reach.argmax(axis=0)
        value += reach[new, cells]
        inside = reach < 0
        reach = np.maximum(reach, weight[new, :, cells].T)
        reach[inside] = -1
        reach[new, cells] = -1
    return value.reshape(shape)
