"""A cheap prior: one peak inside the feasible range of each cell, without any fibre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.audit.belief.belief import Belief
from lustrum.audit.bounding.compute import bounds
from lustrum.audit.fibre.margins import FibreMargins
from lustrum.audit.knowledge.facts import Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints

_MOST = 10**7


@dataclass(frozen=True)
class Unimodal:
    """A prior that peaks in the centre of the feasible range and falls evenly to both ends.

    The paper (Duncan, Fienberg, Krishnan, Padman and Roehrig 2001, section 4) asks for a peak at the
    centre and falling tails, as more tables share a middle value than an end; it gives no formula. This
    is the triangle ``w(x) = min(x - low + 1, high - x + 1)``, positive at both ends.

    >>> Unimodal().weights(np.arange(5), np.zeros(5, int), np.full(5, 4)).tolist()
    [1.0, 2.0, 3.0, 2.0, 1.0]
    """

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats:
        """The height of the triangle."""
        inside = np.minimum(values - low + 1, high - values + 1)
        return np.asarray(np.maximum(inside, 0), dtype=np.float64)


def unimodal(
    given: Knowledge | FibreMargins, mode: npt.ArrayLike | None = None, *, integer: bool = False
) -> Belief:
    """A triangle over the feasible range of each cell, from bounds alone.

    Its peak is at the centre of the range, or at a ``mode`` for each cell, such as its expected value
    under a log-linear model; it falls in a straight line to just beyond both ends.

    >>> belief = unimodal(FibreMargins.two_way([3, 2], [2, 3]))
    >>> belief.distribution(0)[0].tolist(), belief.distribution(0)[1].tolist()
    ([0, 1, 2], [0.25, 0.5, 0.25])
    """
    if not isinstance(given, (Knowledge, FibreMargins)):
        raise InputError("A belief needs Knowledge or Margins to be given.")
    known = given.knowledge() if isinstance(given, FibreMargins) else given
    if not known.whole:
        raise InputError("A belief runs over whole numbers; this knowledge is about real ones.")
    cell_bounds = bounds(known, integer=integer)
    low, high = cell_bounds.low, cell_bounds.high
    if not bool((np.isfinite(low) & np.isfinite(high)).all()):
        raise InputError("A cell has no upper bound, so no centre; bound it.")
    if float(cell_bounds.count.sum()) > _MOST:
        raise InputError("There are too many possible values to write out; bound the cells more.")
    peak = (low + high) / 2
    if mode is not None:
        try:
            given_mode = np.asarray(mode, dtype=np.float64).ravel()
        except (TypeError, ValueError):
            given_mode = np.zeros(0)
        if given_mode.shape != low.shape or np.isnan(given_mode).any():
            raise InputError(f"'mode' must hold a number for each of the {low.size} cells.")
        peak = np.clip(given_mode, low, high)
    sizes = cell_bounds.count.astype(np.int64)
    row = np.repeat(np.arange(sizes.size), sizes)
    pointer = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    values = np.arange(pointer[-1]) - pointer[row] + low[row].astype(np.int64)
    rising = (values - low[row] + 1) / (peak[row] - low[row] + 1)
    falling = (high[row] + 1 - values) / (high[row] + 1 - peak[row])
    weights = np.minimum(rising, falling)
    weights /= np.add.reduceat(weights, pointer[:-1])[row]
    return Belief.of_lists(pointer, values, weights, decimals=known.decimals)
