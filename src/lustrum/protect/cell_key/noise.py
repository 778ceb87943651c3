"""Noise for magnitudes: the flex function gives its size, a symmetric lookup its distribution.

The coefficients ``v`` lie on a grid from ``-D`` to ``D``. Their distribution has the largest entropy among
those of the given variance: ``p(v)`` is proportional to ``exp(-t v**2)``. A separate bit gives the sign, so
that the mean is exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Words
from lustrum.numeric.arithmetic import exp, log


@dataclass(frozen=True, eq=False)
class Noise:
    """Sizes in units of ``1 / steps`` with the thresholds of their lookup by 63 bits of a word."""

    sizes: Ints
    thresholds: Words
    steps: int

    @property
    def chances(self) -> Floats:
        """The probability of each size."""
        ends = self.thresholds.astype(object) / (1 << 63)
        return np.diff(np.concatenate(([0], ends))).astype(np.float64)

    def draw(self, random_words: Words) -> tuple[Ints, Ints]:
        """Size and sign (1 or -1) for each word."""
        sign = 1 - 2 * (random_words >> np.uint64(63)).astype(np.int64)
        rest = random_words & np.uint64((1 << 63) - 1)
        index = np.searchsorted(self.thresholds, rest.ravel(), side="right").reshape(
            random_words.shape
        )
        return self.sizes[np.minimum(index, self.sizes.size - 1)], sign


@lru_cache(maxsize=64)
def noise_table(largest: int, steps: int, variance: float, part: str = "all") -> Noise:
    """The lookup for sizes up to ``largest``, ``steps`` to the unit, with this variance.

    ``part`` takes all sizes of the grid, or the ``even`` or the ``odd`` ones only.

    >>> table = noise_table(2, 1, 1.0)
    >>> table.sizes.tolist(), float((table.chances * table.sizes**2).sum().round(6))
    ([0, 1, 2], 1.0)
    """
    first = {"all": 0, "even": 0, "odd": 1}[part]
    sizes = np.arange(first, largest * steps + 1, 1 if part == "all" else 2, dtype=np.int64)
    units = sizes / steps
    low, high = float((units * units).min()), float((units * units).max())
    if not low < variance < high:
        raise InputError(
            f"Noise of the {'whole' if part == 'all' else part} grid has a variance between {low:g} and "
            f"{high:g}, not {variance:g}."
        )
    weight = np.where(sizes > 0, 2.0, 1.0)  # both signs

    def chances(t: float) -> Floats:
        logs = log(weight) - t * units**2
        shares = exp(logs - logs.max())
        return np.asarray(shares / shares.sum())

    def spread(t: float) -> float:
        return float((chances(t) * units**2).sum())

    below, above = -1.0, 1.0
    while spread(below) < variance:
        below *= 2.0
    while spread(above) > variance:
        above *= 2.0
    for _ in range(200):
        middle = (below + above) / 2.0
        if spread(middle) > variance:
            below = middle
        else:
            above = middle
    cumulated = np.rint(np.cumsum(chances(above)) * (1 << 31)).astype(np.int64)
    cumulated[-1] = 1 << 31
    thresholds = cumulated.astype(np.uint64) << np.uint64(32)
    return Noise(sizes, thresholds, steps)


def flex(values: Floats, flex_point: float, small: float, large: float, q: int) -> Floats:
    """The share of noise for cells of these absolute values (Giessing and Tent 2019).

    Up to the flex point it is ``small``; beyond it falls towards ``large``::

        m(x) = large * (1 + (small x - large f) / (large f) * (2 f / (f + x))**q)

    The formula may rise a little above ``small`` just beyond the flex point; it is cut there, so that
    ``small`` is the largest share.

    >>> flex(np.array([10.0, 1000.0, 1e9]), 1000.0, 0.2, 0.03, 3).round(4).tolist()
    [0.2, 0.2, 0.03]
    """
    x = np.maximum(np.asarray(values, dtype=np.float64), flex_point)
    power = np.ones_like(x)
    for _ in range(q):  # repeated products give the same bits on every machine
        power = power * (2.0 * flex_point / (flex_point + x))
    share = large + (small * x / flex_point - large) * power
    return np.minimum(share, small)
