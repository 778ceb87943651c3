"""Post-process noisy numbers into counts that are whole, not negative, and add up, without randomness.

Computing from noisy numbers alone costs no privacy. It does cost accuracy: counts that
cannot be negative are no longer right on average.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.totals.inner_table import InnerTable

_GRID = 2.0**22
_DENSE = 400  # inner cells up to which the fit is exact rather than iterated


def consistent_counts(inner: InnerTable, noisy: Ints, seen: Mask, scale: Floats) -> Ints:
    """Whole inner cells of 0 or more, near the measured values."""
    return rounded_down_the_tree(fitted(inner, noisy, seen, scale))


def fitted(inner: InnerTable, noisy: Ints, seen: Mask, scale: Floats) -> Floats:
    """Inner cells of 0 or more with the least weighted squares from all measured cells.

    Each measured cell weighs by one over the variance of its noise, so a total that was measured well
    corrects its parts.
    """
    from scipy import optimize, sparse

    matrix: Any = sparse.csr_array(np.ones((1, 1)))
    for holds in inner.below:
        matrix = sparse.kron(matrix, holds.astype(np.float64), format="csr")
    rows = np.flatnonzero(seen.transpose(inner.order).ravel())
    weight = 1.0 / scale.transpose(inner.order).ravel()[rows]
    goal = noisy.transpose(inner.order).ravel()[rows].astype(np.float64) * weight
    system = sparse.diags_array(weight) @ matrix[rows]
    if matrix.shape[1] <= _DENSE:
        solution = optimize.nnls(system.toarray(), goal)[0]
    else:
        back = system.T.tocsr()

        def loss(x: Floats) -> tuple[float, Floats]:
            off = system @ x - goal
            return float(off @ off) / 2, np.asarray(back @ off)

        start = np.maximum(inner.take(noisy).astype(np.float64).ravel(), 0.0)
        options = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9}
        every = [(0.0, None)] * start.size
        solution = optimize.minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=every, options=options
        ).x
    # Solvers differ in last digits; on a grid, equal remainders stay equal.
    counts: Floats = np.maximum(np.rint(np.asarray(solution) * _GRID) / _GRID, 0.0)
    return counts.reshape(inner.shape)


def rounded_down_the_tree(values: Floats) -> Ints:
    """Whole numbers next to given ones, from the grand total down, axis after axis.

    A total is split over its parts by largest remainders: each part is its value rounded down, or one more.
    So every cell, and every total over the last axes, changes by less than one.

    >>> rounded_down_the_tree(np.array([[0.4, 0.4], [1.4, 2.0]])).tolist()
    [[1, 0], [1, 2]]
    """
    # Values that differ from whole numbers only by rounding error count as whole.
    near = np.rint(values)
    values = np.where(np.abs(values - near) < 1e-7, near, values)
    whole = np.array(math.floor(float(values.sum()) + 0.5), dtype=np.int64)
    for axis in range(values.ndim):
        parts = values.sum(axis=tuple(range(axis + 1, values.ndim)))
        down = np.floor(parts + 1e-9).astype(np.int64)
        missing = whole - down.sum(axis=-1)
        order = np.argsort(-(parts - down), axis=-1, kind="stable")
        rank = np.argsort(order, axis=-1, kind="stable")
        whole = down + (rank < missing[..., None])
    return whole
