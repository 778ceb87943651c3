"""Binomial, hypergeometric and chi-square chances, with the same bytes on every processor.

Chances are computed by deviances from the mean (Loader 2000, *Fast and accurate computation of binomial
probabilities*), so that they keep their digits for large numbers too.
"""

from __future__ import annotations

from math import inf

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.arithmetic import HALF_LOG_2PI, exp, log, log1p, log_gamma

_EXACT_TO = 16.0
_STIRLING = (-691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_NEAR = 0.1
_TERMS = 12
_FRACTIONS = 1_000_000
_TWO_PI = 6.283185307179586


def binomial(k: npt.ArrayLike, n: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """The chance of ``k`` among ``n`` if each has the chance ``p``; 0 for other ``k`` than 0 to ``n``.

    >>> binomial([0, 1, 2, 3], 2, 0.5).round(12).tolist()
    [0.25, 0.5, 0.25, 0.0]
    """
    p = np.asarray(p, dtype=np.float64)
    return _binomial(*np.broadcast_arrays(_float(k), _float(n), p, 1.0 - p))


def hypergeometric(
    k: npt.ArrayLike, population: npt.ArrayLike, marked: npt.ArrayLike, drawn: npt.ArrayLike
) -> Floats:
    """The chance of ``k`` marked ones among those drawn without replacement.

    >>> (6 * hypergeometric([0, 1, 2, 3], 4, 2, 2)).round(12).tolist()
    [1.0, 4.0, 1.0, 0.0]
    """
    k, every, marked, drawn = np.broadcast_arrays(
        _float(k), _float(population), _float(marked), _float(drawn)
    )
    # Any share would do; that of those drawn keeps all three chances large.
    whole = np.maximum(every, 1.0)
    share, rest = drawn / whole, (every - drawn) / whole
    there = _binomial(k, marked, share, rest) * _binomial(drawn - k, every - marked, share, rest)
    return np.asarray(there / _binomial(drawn, every, share, rest))


def binomial_quantile(chance: npt.ArrayLike, n: npt.ArrayLike, p: float) -> Ints:
    """The least ``k`` that is not exceeded with at least this chance, for every chance and ``n``.

    >>> binomial_quantile([0.2, 0.3, 0.9], 2, 0.5).tolist()
    [0, 1, 2]
    """
    chances, numbers = np.broadcast_arrays(
        np.asarray(chance, dtype=np.float64), np.asarray(n, dtype=np.int64)
    )
    out = np.zeros(numbers.shape, dtype=np.int64)
    for size in np.unique(numbers).tolist():
        here = numbers == size
        mean = size * p
        reach = 10.0 * np.sqrt(mean * (1.0 - p)) + 60.0  # beyond, nothing is left of a chance
        low, high = max(int(mean - reach), 0), min(int(mean + reach) + 1, size)
        ends = np.cumsum(binomial(np.arange(low, high + 1), size, p))
        offset = np.searchsorted(ends, chances[here], side="left")
        out[here] = np.minimum(low + offset, high)
    return out


def convolved(first: Floats, second: Floats) -> Floats:
    """The chances of a sum of two numbers from 0 up, from theirs; added up in one order.

    >>> convolved(np.array([0.5, 0.5]), np.array([0.5, 0.5])).tolist()
    [0.25, 0.5, 0.25]
    """
    out = np.zeros(first.size + second.size - 1)
    for index, chance in enumerate(first.tolist()):
        out[index : index + second.size] += chance * second
    return out


def chi_square_above(x: float, degrees: int) -> float:
    """The chance that a chi-square number exceeds ``x``.

    >>> round(chi_square_above(3.841459, 1), 6)
    0.05
    """
    if not x > 0:
        return 1.0
    if x == inf:
        return 0.0
    a, x = 0.5 * degrees, 0.5 * x
    density = float(exp(a * log(x) - x - log_gamma(a)))
    if x < a + 1.0:
        term = total = 1.0 / a
        step = a
        while term > total * 2.0**-60:
            step += 1.0
            term = term * x / step
            total = total + term
        return max(0.0, 1.0 - density * total)
    # Lentz's continued fraction.
    b = x + 1.0 - a
    c, d = 1e300, 1.0 / b
    fraction = d
    for step in range(1, _FRACTIONS):
        factor = step * (a - step)
        b = b + 2.0
        d = 1.0 / (factor * d + b)
        c = b + factor / c
        fraction = fraction * (d * c)
        if abs(d * c - 1.0) < 2.0**-52:
            break
    return min(1.0, density * fraction)


def _float(values: npt.ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _binomial(k: Floats, n: Floats, p: Floats, q: Floats) -> Floats:
    inside = (k > 0) & (k < n) & (p > 0) & (q > 0)
    x, size = np.where(inside, k, 1.0), np.where(inside, n, 2.0)
    share, rest = np.where(inside, p, 0.5), np.where(inside, q, 0.5)
    left = size - x
    logs = _stirling_error(size) - _stirling_error(x) - _stirling_error(left)
    logs = logs - _deviance(x, size * share) - _deviance(left, size * rest)
    between = exp(logs) * np.sqrt(size / (_TWO_PI * x * left))
    chances = np.where(inside, between, 0.0)
    none, every = (k == 0) & (n >= 0), (k == n) & (n >= 0)
    chances = np.where(none, _all_of(n, q, p), chances)
    return np.asarray(np.where(every, _all_of(n, p, q), chances))


def _all_of(n: Floats, p: Floats, q: Floats) -> Floats:
    small = q < 0.5
    logs = np.where(small, log1p(-np.where(small, q, 0.0)), log(np.where(small | (p <= 0), 1.0, p)))
    return np.asarray(np.where(n == 0, 1.0, np.where(p > 0, exp(n * logs), 0.0)))


def _stirling_error(n: Floats) -> Floats:
    """``log(n!)`` less Stirling's formula, for ``n`` from 1 up."""
    small = n < _EXACT_TO
    few, many = np.where(small, n, 1.0), np.where(small, _EXACT_TO, n)
    exact = log_gamma(few + 1.0) - (few + 0.5) * log(few) + few - HALF_LOG_2PI
    square = 1.0 / (many * many)
    series = np.full_like(many, _STIRLING[0])
    for term in _STIRLING[1:]:
        series = series * square + term
    return np.asarray(np.where(small, exact, series / many))


def _deviance(x: Floats, mean: Floats) -> Floats:
    """``x log(x / mean) + mean - x``, also where both are nearly equal."""
    v = (x - mean) / (x + mean)
    near = np.abs(v) < _NEAR
    small = np.where(near, v, 0.0)
    total, term, square = (x - mean) * small, 2.0 * x * small, small * small
    for odd in range(3, 2 * _TERMS + 3, 2):
        term = term * square
        total = total + term / odd
    return np.asarray(np.where(near, total, x * log(x / mean) + mean - x))
