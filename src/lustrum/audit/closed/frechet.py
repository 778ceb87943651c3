"""Fréchet bounds: a cell is at most each margin over it, and large margins must overlap in it."""

from __future__ import annotations

import numpy as np

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.graphs import perfect_sequence
from lustrum.audit.closed.margins import Axes, Margins
from lustrum.model.arrays import Ints


def frechet(margins: Margins) -> Bounds:
    """Bounds of every cell of the cube from any released margins.

    From one-way margins (Fréchet 1940), for a cube of k variables::

        max(0, n_1 + ... + n_k - (k - 1) N)  <=  n  <=  min(n_1, ..., n_k)

    In general the upper bound is the least margin over the cell. For the lower bound, margins are added one
    by one, each minus its overlap with one of the margins before it. Any tree of margins gives a bound; the
    trees with the largest overlaps are tried. Sharp for decomposable margins, one-way margins among them;
    elsewhere the bounds hold but may be wide.

    >>> found = frechet(Margins.of({"A": 2, "B": 2}, {"A": [3, 4], "B": [2, 5]}))
    >>> found.low.tolist(), found.high.tolist()
    ([0.0, 1.0, 0.0, 2.0], [2.0, 3.0, 2.0, 4.0])
    """
    low, high = frechet_arrays(margins)
    sharp = perfect_sequence(margins.generators) is not None
    return margins.bounds(*margins.spread(low, high), sharp)


def frechet_arrays(margins: Margins) -> tuple[Ints, Ints]:
    """The same over the covered variables, before the bounds are extended to the cube."""
    generators = margins.generators
    high = margins.margin(generators[0])
    for generator in generators[1:]:
        high = np.minimum(high, margins.margin(generator))
    low = np.zeros_like(high)
    for start in generators:
        low = np.maximum(low, _tree_sum(margins, generators, start))
    return low, high


def _tree_sum(margins: Margins, generators: tuple[Axes, ...], start: Axes) -> Ints:
    """The sum of the margins of a tree minus their overlaps; Prim's rule takes the largest first."""
    taken, covered = [start], start
    value = margins.margin(start)
    while covered != margins.covered:
        pairs = [(g, t) for g in generators if not g <= covered for t in taken]
        new, old = max(pairs, key=lambda p: len(p[0] & p[1]))
        shared = new & old
        # Other variables of the tree are summed out, because their overlap would not be known.
        margin_axes = (new - covered) | shared
        value = value + margins.margin(margin_axes) - margins.margin(shared)
        taken.append(margin_axes)
        covered = covered | margin_axes
    return value
