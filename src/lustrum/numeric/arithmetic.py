"""Exponentials, logarithms and their relatives, with the same bytes on every processor.

Libraries compute these functions with instructions that differ between processors, so that last bits differ.
IEEE 754 fixes the result of ``+ - * /``, square roots, roundings and shifts of the exponent, so functions made
from these alone, in a fixed order, give one result everywhere. Errors are a few units in the last place.

All take numbers or arrays and return arrays of floats; `arithmetic_loops` has twins for compiled loops.
Where these are loaded already, `exp`, `log` and `log2` use them: the same bytes in a fifth of the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from lustrum.model.arrays import Floats
from lustrum.numeric.compiled import has_compiler

# ln 2 in two parts: products of the first with whole numbers below 2**20 are exact.
LN2_HIGH = float.fromhex("0x1.62e42feep-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
LN2 = float.fromhex("0x1.62e42fefa39efp-1")
PER_LN2 = float.fromhex("0x1.71547652b82fep+0")
ROOT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")
HALF_LOG_2PI = float.fromhex("0x1.d67f1c864beb5p-1")
_TWO_TO_MINUS_52 = float.fromhex("0x1p-52")
_HALF_PI = float.fromhex("0x1.921fb54442d18p+0")

# exp(r) = 1 + r + r**2 (1/2! + r/3! + ...), from the last term to the first; |r| <= ln(2) / 2.
EXP_TERMS = tuple(
    1.0 / divisor
    for divisor in (
        87178291200, 6227020800, 479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2,
    )
)  # fmt: skip
# log((1 + s) / (1 - s)) = 2 s + s (2/3 s**2 + 2/5 s**4 + ...), from the last term; |s| <= 0.1716.
LOG_TERMS = tuple(2.0 / odd for odd in range(25, 1, -2))
# Stirling's series of log gamma, and that of digamma, in powers of 1 / x**2, from the last term; x >= 10.
GAMMA_TERMS = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
DIGAMMA_TERMS = (-1 / 12, 691 / 32760, -1 / 132, 1 / 240, -1 / 252, 1 / 120, -1 / 12)
SHIFT_TO = 10.0

# Beyond these, exp is 0 or infinite.
_LEAST, _MOST = -746.0, 710.0
_FROM_TAIL = 3.0
_STEPS = 100
_MANY = 1000


def exp(x: ArrayLike) -> Floats:
    """``e**x``.

    >>> float(exp(0.0)), round(float(exp(1.0)), 14)
    (1.0, 2.71828182845905)
    """
    x = np.asarray(x, dtype=np.float64)
    if (loop := _compiled("exps")) is not None:
        return loop(np.ascontiguousarray(x).ravel()).reshape(x.shape)
    x = np.asarray(np.clip(x, _LEAST, _MOST))
    k = np.rint(x * PER_LN2)
    return _scaled(x - k * LN2_HIGH, k * LN2_LOW, k)


def expm1(x: ArrayLike) -> Floats:
    """``e**x - 1``, also for small ``x``.

    >>> float(expm1(1e-20)), round(float(expm1(1.0)), 14)
    (1e-20, 1.71828182845905)
    """
    x = np.asarray(x, dtype=np.float64)
    near = np.abs(x) <= LN2 / 2
    small = np.where(near, x, 0.0)
    return np.asarray(np.where(near, small + small * small * _horner(EXP_TERMS, small), exp(x) - 1))


def exp2(x: ArrayLike) -> Floats:
    """``2**x``, exact for whole numbers.

    >>> float(exp2(10.0)), round(float(exp2(-0.5)), 14)
    (1024.0, 0.70710678118655)
    """
    x = np.clip(np.asarray(x, dtype=np.float64), -1080.0, 1026.0)
    k = np.rint(x)
    return _scaled((x - k) * LN2, np.zeros_like(k), k)


def log(x: ArrayLike) -> Floats:
    """The natural logarithm; minus infinity at 0, not a number below.

    >>> float(log(1.0)), float(log(10.0)), float(log(0.0))
    (0.0, 2.302585092994046, -inf)
    """
    x = np.asarray(x, dtype=np.float64)
    if (loop := _compiled("logs")) is not None:
        return loop(np.ascontiguousarray(x).ravel()).reshape(x.shape)
    f, e = _split(x)
    s, rest = _series(f)
    logarithm = e * LN2_HIGH - ((s * (f - rest) - e * LN2_LOW) - f)
    return _ends(x, logarithm)


def log2(x: ArrayLike) -> Floats:
    """The logarithm to base 2, exact for powers of 2.

    >>> float(log2(8.0)), round(float(log2(3.0)), 14)
    (3.0, 1.58496250072116)
    """
    x = np.asarray(x, dtype=np.float64)
    if (loop := _compiled("log2s")) is not None:
        return loop(np.ascontiguousarray(x).ravel()).reshape(x.shape)
    f, e = _split(x)
    s, rest = _series(f)
    return _ends(x, e + (f - s * (f - rest)) * PER_LN2)


def log1p(x: ArrayLike) -> Floats:
    """``log(1 + x)``, also for small ``x``.

    >>> float(log1p(1e-20)), float(log1p(1.0))
    (1e-20, 0.6931471805599453)
    """
    x = np.asarray(x, dtype=np.float64)
    whole = 1.0 + x
    part = np.where(whole == 1.0, 1.0, whole - 1.0)
    with np.errstate(invalid="ignore"):
        logarithm = np.asarray(np.where(whole == 1.0, x, log(whole) * (x / part)))
    return np.asarray(np.where(np.isposinf(x), x, logarithm))


def power(x: ArrayLike, exponent: float) -> Floats:
    """``x**exponent`` of numbers that are not negative.

    >>> [float(v) for v in power([0.0, 4.0, 9.0], 0.5)], round(float(power(10.0, 0.3)), 12)
    ([0.0, 2.0, 3.0], 1.995262314969)
    """
    x = np.asarray(x, dtype=np.float64)
    if exponent == 0.5:
        return np.asarray(np.sqrt(x))
    if exponent in (0.0, 1.0, 2.0):
        return np.asarray({0.0: np.ones_like(x), 1.0: x, 2.0: x * x}[exponent])
    return exp(exponent * log(x))


def power_of_ten(x: float) -> float:
    """The largest power of ten that is not above a positive number, for the steps of an axis.

    >>> power_of_ten(999.0), power_of_ten(1000.0), power_of_ten(0.02)
    (100.0, 1000.0, 0.01)
    """
    return float(f"1e{Decimal(x).adjusted()}")


def log_gamma(x: ArrayLike) -> Floats:
    """The logarithm of the gamma function of positive numbers: ``log((x - 1)!)`` of whole ones.

    >>> float(log_gamma(1.0)), round(float(log_gamma(6.0)), 12) == round(float(log(120.0)), 12)
    (0.0, True)
    """
    x = np.asarray(x, dtype=np.float64)
    below = np.ones_like(x)
    at = x
    while np.any(low := at < SHIFT_TO):
        below = np.where(low, below * at, below)
        at = np.where(low, at + 1.0, at)
    inverse = 1.0 / at
    series = inverse * _horner(GAMMA_TERMS, inverse * inverse)
    logarithm = ((at - 0.5) * log(at) - at + HALF_LOG_2PI + series) - log(below)
    return np.asarray(np.where((x == 1.0) | (x == 2.0), 0.0, logarithm))


def digamma(x: ArrayLike) -> Floats:
    """The derivative of `log_gamma` at positive numbers.

    >>> round(float(digamma(1.0)), 12)  # minus Euler's constant
    -0.577215664902
    """
    x = np.asarray(x, dtype=np.float64)
    below = np.zeros_like(x)
    at = x
    while np.any(low := at < SHIFT_TO):
        below = np.where(low, below + 1.0 / np.where(low, at, 1.0), below)
        at = np.where(low, at + 1.0, at)
    inverse = 1.0 / at
    square = inverse * inverse
    return np.asarray(((log(at) - 0.5 * inverse) + square * _horner(DIGAMMA_TERMS, square)) - below)


def normal_cdf(x: ArrayLike) -> Floats:
    """The chance that a standard normal number is at most ``x``; small chances keep their digits.

    >>> float(normal_cdf(0.0)), round(float(normal_cdf(1.96)), 6)
    (0.5, 0.975002)
    """
    x = np.asarray(x, dtype=np.float64)
    size = np.minimum(np.abs(x), 40.0)
    density = exp(-0.5 * size * size - HALF_LOG_2PI)
    near = np.minimum(size, _FROM_TAIL)
    term = total = near
    for odd in range(3, 2 * _STEPS, 2):
        term = term * near * near / odd
        total = total + term
    far = np.maximum(size, _FROM_TAIL)
    fraction = far
    for step in range(_STEPS, 0, -1):
        fraction = far + step / fraction
    above = np.where(size < _FROM_TAIL, 0.5 - density * total, density / fraction)
    return np.asarray(np.where(x > 0, 1.0 - above, above))


def normal_quantile(p: ArrayLike) -> Floats:
    """The number that a standard normal one stays below with chance ``p`` (Wichura 1988, AS 241).

    >>> float(normal_quantile(0.5)), round(float(normal_quantile(0.975)), 6)
    (0.0, 1.959964)
    """
    p = np.asarray(p, dtype=np.float64)
    q = p - 0.5
    r = 0.180625 - q * q
    middle = q * _ratio(r, _MIDDLE)
    tail = np.where(q < 0, p, 1.0 - p)
    root = np.sqrt(-log(np.where(tail > 0, tail, 1.0)))
    outer = np.where(
        root <= 5.0, _ratio(root - 1.6, _OUTER), _ratio(np.maximum(root, 5.0) - 5.0, _FAR)
    )
    outer = np.where(tail > 0, outer, np.where(tail == 0, np.inf, np.nan))
    return np.asarray(np.where(np.abs(q) <= 0.425, middle, np.where(q < 0, -outer, outer)))


@cache
def student_quantile(p: float, degrees: int) -> float:
    """The number that Student's t with whole degrees of freedom stays below with chance ``p``.

    The smallest float whose chance is at least ``p``, by halving. The chances are finite sums (Abramowitz
    and Stegun 1964, 26.7.3 and 26.7.4); for many degrees the expansion 26.7.5 has all digits.

    >>> round(student_quantile(0.975, 9), 6), round(student_quantile(0.75, 1), 12)
    (2.262157, 1.0)
    """
    if p < 0.5:
        return -student_quantile(1.0 - p, degrees)
    if degrees > _MANY:
        return _near_normal(float(normal_quantile(p)), float(degrees))
    low, high = 0.0, 1.0
    while _student_middle(high, degrees) < 2.0 * p - 1.0:
        low, high = high, 2.0 * high
    while low < (middle := 0.5 * (low + high)) < high:
        if _student_middle(middle, degrees) < 2.0 * p - 1.0:
            low = middle
        else:
            high = middle
    return high


def circle(count: int) -> tuple[Floats, Floats]:
    """Cosines and sines of this many angles that divide a full turn evenly, from 0 on.

    >>> [part.round(6).tolist() for part in circle(4)]
    [[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]]
    """
    k = np.arange(count)
    quarters = (8 * k + count) // (2 * count)
    x = _HALF_PI * ((4 * k - quarters * count) / count)
    square = x * x
    cosine, sine, term = np.ones(count), x, np.ones(count)
    for step in range(2, 20, 2):
        term = -term * square / (step * (step - 1))
        cosine = cosine + term
        sine = sine + term * x / (step + 1)
    turn = quarters % 4
    # Adding 0 turns a negative zero into a plain one.
    return (
        np.choose(turn, [cosine, -sine, -cosine, sine]) + 0.0,
        np.choose(turn, [sine, cosine, -sine, -cosine]) + 0.0,
    )


def normal_draws(rng: np.random.Generator, count: int) -> Floats:
    """Standard normal numbers, by quantiles of whole numbers that are drawn."""
    whole = rng.integers(0, 2**52, size=count)
    return normal_quantile((whole + 0.5) * _TWO_TO_MINUS_52)


def _compiled(name: str) -> Callable[[Floats], Floats] | None:
    """A loop over a flat array; None where the compiler is not loaded, which takes a second."""
    loops = sys.modules.get("lustrum.numeric.arithmetic_loops")
    return getattr(loops, name, None) if has_compiler() else None


def _student_middle(t: float, degrees: int) -> float:
    """The chance that Student's t lies between ``-t`` and ``t``."""
    far = sqrt(degrees + t * t)
    sine, square = t / far, degrees / (degrees + t * t)
    odd = degrees % 2
    term = sqrt(square) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + odd, degrees, 2):
        term = term * square * (step - 1) / step
        total = total + term
    if not odd:
        return sine * total
    return (_arctan(t / sqrt(degrees)) + sine * total) / _HALF_PI


def _arctan(x: float) -> float:
    for _ in range(4):
        x = x / (1.0 + sqrt(1.0 + x * x))
    square, total = x * x, 0.0
    for odd in range(25, 0, -2):
        total = 1.0 / odd - square * total
    return 16.0 * (x * total)


def _near_normal(z: float, degrees: float) -> float:
    square = z * z
    first = (square + 1.0) * z / 4.0
    second = ((5.0 * square + 16.0) * square + 3.0) * z / 96.0
    third = (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) * z / 384.0
    fourth = (
        ((((79.0 * square + 776.0) * square + 1482.0) * square - 1920.0) * square - 945.0)
        * z
        / 92160.0
    )
    return z + (first + (second + (third + fourth / degrees) / degrees) / degrees) / degrees


def _scaled(high: Floats, low: Floats, k: Floats) -> Floats:
    """``e**(high - low) * 2**k`` for a small difference and a whole ``k``."""
    r = high - low
    grown = 1.0 + (high + (r * r * _horner(EXP_TERMS, r) - low))
    # In two steps, since twice the largest power of 2 is no number; the smallest are rounded once.
    first = np.where(np.isfinite(k), np.minimum(k, 1023.0), 0.0).astype(np.int32)
    rest = np.where(k > 1023.0, k - 1023.0, 0.0).astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(np.ldexp(grown, first), rest))


def _split(x: Floats) -> tuple[Floats, Floats]:
    """``f`` and ``e`` with ``x = (1 + f) * 2**e`` and ``1 + f`` from the root of 1/2 to the root of 2."""
    m, e = np.frexp(np.where((x > 0) & np.isfinite(x), x, 1.0))
    low = m < ROOT_HALF
    return np.asarray(np.where(low, m + m, m) - 1.0), np.asarray(e - low, dtype=np.float64)


def _series(f: Floats) -> tuple[Floats, Floats]:
    s = f / (2.0 + f)
    z = s * s
    return s, z * _horner(LOG_TERMS, z)


def _ends(x: Floats, logarithm: Floats) -> Floats:
    logarithm = np.where(x > 0, np.where(np.isposinf(x), np.inf, logarithm), np.nan)
    return np.asarray(np.where(x == 0, -np.inf, logarithm))


def _horner(terms: tuple[float, ...], x: Floats) -> Floats:
    total = np.full_like(x, terms[0])
    for term in terms[1:]:
        total = total * x + term
    return total


def _ratio(x: Floats, terms: tuple[tuple[float, ...], tuple[float, ...]]) -> Floats:
    return _horner(terms[0], x) / _horner(terms[1], x)


# Coefficients of AS 241, from the highest power to the lowest: numerator and denominator.
_MIDDLE = (
    (
        2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
        4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
        1.3314166789178437745e2, 3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
        2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
        4.2313330701600911252e1, 1.0,
    ),
)  # fmt: skip
_OUTER = (
    (
        7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
        1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
        4.63033784615654529590e0, 1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
        1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
        2.05319162663775882187e0, 1.0,
    ),
)  # fmt: skip
_FAR = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
        2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
        5.46378491116411436990e0, 6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
        7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
        5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip
