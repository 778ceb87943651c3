"""Partial suppression: state the interval that a reader can work out anyway, instead of a blank.

The interval of a suppressed cell follows from the published cells alone, so stating it reveals nothing new. It
saves readers the work of an attacker, and shows all of them how much is left open.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lustrum.audit import bounds, from_release
from lustrum.model import Release
from lustrum.numeric.structure import UNBOUNDED


def with_intervals(release: Release, *, workers: int | None = None) -> Release:
    """The release with ``low`` and ``high`` of every suppressed cell, as its readers can work them out.

    The ends come from linear programs over what is published; where a program proves less than the sharp end,
    the interval is wider. Ends that nothing bounds stay open.

    >>> from lustrum.model import Table
    >>> from lustrum.protect.suppression import Suppression
    >>> from lustrum.model import Category, TableAxis
    >>> cats = (Category("a", "a", (0,)), Category("b", "b", (1,)), Category("_T", "all", (0, 1)))
    >>> table = Table((TableAxis("x", "x", cats),), np.array([2, 9, 11]))
    >>> stated = with_intervals(Suppression().apply(table))
    >>> stated.low.tolist(), stated.high.tolist()
    ([1, 1, 11], [10, 10, 11])
    """
    hidden = np.flatnonzero(~release.shown.ravel())
    if hidden.size == 0:
        return release
    known = from_release(release)
    cell_bounds = bounds(known, hidden.tolist(), workers=workers)
    low = np.full(release.published.size, -UNBOUNDED, dtype=np.int64)
    high = np.full(release.published.size, UNBOUNDED, dtype=np.int64)
    shown = release.shown.ravel()
    low[shown] = high[shown] = release.published.ravel()[shown]
    least, most = cell_bounds.low, cell_bounds.high
    low[hidden] = np.where(np.isfinite(least), np.ceil(least - 1e-6), -UNBOUNDED).astype(np.int64)
    high[hidden] = np.where(np.isfinite(most), np.floor(most + 1e-6), UNBOUNDED).astype(np.int64)
    return replace(release, low=low.reshape(release.shape), high=high.reshape(release.shape))
