"""``R1`` and ``R2`` of many populations against one sample, compiled.

Counts are small integers, so ``x log x`` is looked up. With ``L(x) = x log x`` and whole numbers
``n F_i - N f_i`` in place of the shares' differences, the conditional entropy of
:mod:`lustrum.risk.entropy` becomes

    n N H(X|Y) = L(S) - sum_i L(|n F_i - N f_i|) + sum over deficits of (L(N f_i) - L(n F_i))

where ``S`` is the sum of the deficits; the logarithms of ``n N`` cancel. The plain twins are
:func:`~lustrum.risk.r1.r1_values` and :func:`~lustrum.risk.r2.r2_values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.arithmetic_loops import exp, log
from lustrum.numeric.compiled import compiled
from lustrum.risk.entropy import xlogx
from lustrum.risk.r1 import WEIGHTS, r1_values
from lustrum.risk.r2 import r2_values

_LOOKUP = 1 << 20
"""Entries of the table of ``x log x``: 8 MiB, of which a study touches a few hundred KiB."""

_MOST = 2.0**62
"""Products of counts at or above this might not fit 64 bits; such tables go the plain way."""


def risks_of_many(
    populations: Ints, sample: Ints, weights: Sequence[float] = WEIGHTS
) -> tuple[Floats, Floats]:
    """``R1`` and ``R2`` of each row of populations, cells in the last axis, for one sample.

    Nothing is checked: every row and the sample need somebody in them and two cells or more.

    >>> first, second = risks_of_many(np.array([[4, 4, 0], [8, 0, 0]]), np.array([2, 2, 0]))
    >>> second.round(3).tolist()
    [0.401, 0.917]
    """
    rows = np.ascontiguousarray(populations, dtype=np.int64)
    given = np.ascontiguousarray(sample, dtype=np.int64)
    zeros, spread, size = weights
    risks: Floats = _risks(rows, given, float(zeros), float(spread), float(size), _lookup())
    if risks.min() < 0:
        return r1_values(rows, weights), r2_values(rows, given, weights)
    return risks[0], risks[1]


@cache
def _lookup() -> Floats:
    return xlogx(np.arange(_LOOKUP))


@compiled
def _xlogx(x: int, table: Any) -> float:  # pragma: no cover
    return table[x] if x < table.size else x * log(float(x))


@compiled
def _risks(
    rows: Any, sample: Any, w_zeros: float, w_spread: float, w_size: float, table: Any
) -> Any:  # pragma: no cover
    cells = sample.size
    n = sample.sum()
    log_n, log_cells = log(float(n)), log(float(cells))
    logs = np.array([_xlogx(f, table) for f in sample])
    unseen = (sample == 0).sum()
    out = np.zeros((2, rows.shape[0]))
    for d in range(rows.shape[0]):
        N = rows[d].sum()
        if float(n) * float(N) >= _MOST:
            out[0, d] = -1.0
            break
        empty, both = 0, 0
        sum_logs, apart, kept_people, kept_sample = 0.0, 0.0, 0.0, 0.0
        deficit, people, seen = 0, 0, 0
        for i in range(cells):
            F, f = rows[d, i], sample[i]
            value = _xlogx(F, table)
            sum_logs += value
            empty += F == 0
            both += (F == 0) & (f == 0)
            gap = n * F - N * f
            apart += _xlogx(abs(gap), table)
            if gap < 0:
                deficit -= gap
                kept_people += value
                kept_sample += logs[i]
                people += F
                seen += f
        log_N = log(float(N))
        H = log_N - sum_logs / N
        deficit_term = N * (kept_sample + seen * log_N) - n * (kept_people + people * log_n)
        left = (_xlogx(deficit, table) - apart + deficit_term) / (n * N)
        # Rounding must not push a ratio outside [0, 1], nor a share of nothing become NaN.
        ratio = min(max(left / H, 0.0), 1.0) if H > 0.0 and deficit > 0 else 0.0
        scale = min(max(1.0 - H / log_cells, 0.0), 1.0)
        root = np.sqrt(N)
        small = w_size * (1.0 + log(root)) / root
        share = empty / cells
        shared = share if both > 0 else 0.0
        if both > 0 and empty + unseen > 2 * both:
            shared = min(share, exp((empty + unseen - both) / both * log(share)))
        out[0, d] = w_zeros * share + w_spread * scale + small
        out[1, d] = w_zeros * shared + w_spread * scale * (1.0 - ratio) + small
    return out
