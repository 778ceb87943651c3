"""The risk-utility frontier: which points no other point beats.

A point dominates another if it has no more risk and no less utility, and is better in one of the two. The
frontier holds the points that nothing dominates. Functions on arrays; utility is higher where it is better.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Mask


def frontier(risk: npt.ArrayLike, utility: npt.ArrayLike) -> Mask:
    """Which points no other point dominates. Equal points stand or fall together; NaN never stands.

    >>> frontier([0.1, 0.2, 0.2, 0.3], [0.5, 0.9, 0.8, 0.9]).tolist()
    [True, True, False, False]
    """
    return np.asarray(dominators(risk, utility) == -1)


def dominators(risk: npt.ArrayLike, utility: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """For each point a point of the frontier that dominates it: -1 if none does, -2 if it has no figures.

    >>> dominators([0.1, 0.2, 0.2, np.nan], [0.5, 0.9, 0.8, 1.0]).tolist()
    [-1, -1, 1, -2]
    """
    R, U = (np.asarray(a, dtype=np.float64).ravel() for a in (risk, utility))
    dominated_by = np.full(R.size, -2, dtype=np.intp)
    valid = np.flatnonzero(~(np.isnan(R) | np.isnan(U)))
    best = -1
    # By rising risk, and falling utility at the same risk: what dominates a point came before it.
    for i in valid[np.lexsort((-U[valid], R[valid]))].tolist():
        if best >= 0 and U[best] >= U[i] and (R[best] < R[i] or U[best] > U[i]):
            dominated_by[i] = best
        else:
            dominated_by[i] = -1
            if best < 0 or U[i] > U[best]:
                best = i
    return dominated_by


def dominated_area(
    risk: npt.ArrayLike, utility: npt.ArrayLike, most_risk: float = 1.0, least_utility: float = 0.0
) -> float:
    """The area of the map that the points dominate, up to a largest risk and down to a least utility.

    More points never make it smaller, so it compares frontiers.

    >>> round(dominated_area([0.2, 0.6], [0.5, 1.0]), 6)
    0.6
    """
    R, U = (np.asarray(a, dtype=np.float64).ravel() for a in (risk, utility))
    keep = frontier(R, U) & (most_risk > R) & (least_utility < U)
    order = np.argsort(R[keep], kind="stable")
    R, U = R[keep][order], U[keep][order]
    widths = np.diff(np.append(R, most_risk))
    return float((widths * (np.maximum.accumulate(U) - least_utility)).sum()) if R.size else 0.0
