"""Functions of `arithmetic` for one number, in compiled loops: the same steps, the same bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.arithmetic import (
    DIGAMMA_TERMS,
    EXP_TERMS,
    GAMMA_TERMS,
    HALF_LOG_2PI,
    LN2_HIGH,
    LN2_LOW,
    LOG_TERMS,
    PER_LN2,
    ROOT_HALF,
    SHIFT_TO,
)
from lustrum.numeric.compiled import compiled, compiled_if_large

__all__ = ["digamma", "exp", "log", "log1p", "log_gamma"]


@compiled_if_large
def exp(x: float) -> float:  # pragma: no cover
    if x != x:
        return x
    x = min(max(x, -746.0), 710.0)
    k = round(x * PER_LN2)
    high, low = x - k * LN2_HIGH, k * LN2_LOW
    r = high - low
    total = EXP_TERMS[0]
    for term in EXP_TERMS[1:]:
        total = total * r + term
    grown = 1.0 + (high + (r * r * total - low))
    if k > 1023.0:
        return math.ldexp(grown, 1023) * math.ldexp(1.0, int(k) - 1023)
    return math.ldexp(grown, int(k))


@compiled_if_large
def log(x: float) -> float:  # pragma: no cover
    """The natural logarithm; minus infinity at 0, not a number below."""
    if x == 0.0:
        return -math.inf
    if not x > 0.0:
        return math.nan
    if x == math.inf:
        return x
    e, f, rest = _parts(x)
    return e * LN2_HIGH - ((rest - e * LN2_LOW) - f)


@compiled_if_large
def _parts(x: float) -> tuple[int, float, float]:  # pragma: no cover
    """``e``, ``f`` and ``f - log(1 + f)`` with ``x = (1 + f) * 2**e`` and ``f`` near 0."""
    m, e = math.frexp(x)
    if m < ROOT_HALF:
        m += m
        e -= 1
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    total = LOG_TERMS[0]
    for term in LOG_TERMS[1:]:
        total = total * z + term
    return e, f, s * (f - z * total)


@compiled
def exps(x: Array) -> Any:  # pragma: no cover
    """``e**x`` of a flat array."""
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = exp(x[i])
    return out


@compiled
def logs(x: Array) -> Any:  # pragma: no cover
    """The natural logarithms of a flat array."""
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = log(x[i])
    return out


@compiled
def log2s(x: Array) -> Any:  # pragma: no cover
    """The logarithms to base 2 of a flat array."""
    out = np.empty(x.size)
    for i in range(x.size):
        if 0.0 < x[i] < math.inf:
            e, f, rest = _parts(x[i])
            out[i] = e + (f - rest) * PER_LN2
        else:
            out[i] = log(x[i])
    return out


@compiled
def log1p(x: float) -> float:  # pragma: no cover
    whole = 1.0 + x
    if whole == 1.0 or x == math.inf:
        return x
    return log(whole) * (x / (whole - 1.0))


@compiled
def log_gamma(x: float) -> float:  # pragma: no cover
    """The logarithm of the gamma function of a positive number."""
    if x == 1.0 or x == 2.0:
        return 0.0
    below = 1.0
    at = x
    while at < SHIFT_TO:
        below *= at
        at += 1.0
    inverse = 1.0 / at
    square = inverse * inverse
    total = GAMMA_TERMS[0]
    for term in GAMMA_TERMS[1:]:
        total = total * square + term
    return ((at - 0.5) * log(at) - at + HALF_LOG_2PI + inverse * total) - log(below)


@compiled
def digamma(x: float) -> float:  # pragma: no cover
    """The derivative of `log_gamma` at a positive number."""
    below = 0.0
    at = x
    while at < SHIFT_TO:
        below += 1.0 / at
        at += 1.0
    inverse = 1.0 / at
    square = inverse * inverse
    total = DIGAMMA_TERMS[0]
    for term in DIGAMMA_TERMS[1:]:
        total = total * square + term
    return ((log(at) - 0.5 * inverse) + square * total) - below
