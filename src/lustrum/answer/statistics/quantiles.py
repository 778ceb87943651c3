"""Quantiles from protected histograms: how many of each cell fall into each class of a variable with edges.

Within a class everybody is taken to be spread evenly. What the true quantile can be follows from the bounds of
the counts: it lies in no class below the first that could reach it, and in none above the first that must.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from lustrum.model import InputError, Release
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.structure import UNBOUNDED

_PARTS = 1000
"""Quantiles are asked for in thousandths."""


def quantile(
    histogram: Release, edges: tuple[float, ...], at: float, decimals: int
) -> tuple[Ints, Mask, Ints | None, Ints | None]:
    """The quantile of every cell, whether it exists, and what it can be at least and at most.

    The classes stand along the last axis. ``edges`` has the lower end of every class and, unless the last one
    is open, its upper end. A quantile of nobody, or in the open class, does not exist as a number.
    """
    classes = histogram.shape[-1]
    if len(edges) not in (classes, classes + 1):
        raise InputError("A variable with edges has one for every class, and one more at the end.")
    ends = [Fraction(str(edge)) * 10**decimals for edge in edges]
    parts = round(at * _PARTS)
    counts = np.maximum(histogram.published, 0)
    running = np.cumsum(counts, axis=-1)
    wanted = parts * running[..., -1:]
    class_index = np.argmax(_PARTS * running >= wanted, axis=-1)
    exists = (running[..., -1] > 0) & histogram.shown.all(axis=-1)
    exists &= class_index + 1 < len(ends)
    values = np.zeros(class_index.shape, dtype=np.int64)
    for cell in np.ndindex(*class_index.shape):
        if not exists[cell]:
            continue
        k = int(class_index[cell])
        before = int(running[cell][k] - counts[cell][k])
        inside = Fraction(int(wanted[cell][0]) - _PARTS * before, _PARTS * int(counts[cell][k]))
        values[cell] = _nearest(ends[k] + inside * (ends[k + 1] - ends[k]))
    low, high = _bounds(histogram, ends, parts)
    return values, exists, low, high


def _bounds(
    histogram: Release, ends: list[Fraction], parts: int
) -> tuple[Ints | None, Ints | None]:
    if histogram.low is None or histogram.high is None:
        return None, None
    # Floating point is exact here: whole numbers far below 2**53, except where nothing is known.
    least, most = np.maximum(histogram.low, 0).astype(np.float64), histogram.high.astype(np.float64)
    below_least, below_most = np.cumsum(least, axis=-1), np.cumsum(most, axis=-1)
    can = below_most * (_PARTS - parts) >= parts * _above(least)
    can &= below_most > 0  # a class that nobody can have reached holds no quantile
    must = below_least * (_PARTS - parts) >= parts * _above(most)
    first, last = np.argmax(can, axis=-1), np.argmax(must, axis=-1)
    bottom = np.array([_floor(end) for end in ends[: can.shape[-1]]], dtype=np.int64)
    top = [_ceiling(end) for end in ends[1:]]
    top += [UNBOUNDED] * (can.shape[-1] - len(top))
    return bottom[first], np.array(top, dtype=np.int64)[last]


def _above(counts: Floats) -> Floats:
    """Of each class how many are in the classes above it."""
    from_above = np.flip(np.cumsum(np.flip(counts, -1), axis=-1), -1)
    return np.concatenate([from_above[..., 1:], np.zeros_like(counts[..., :1])], axis=-1)


def _nearest(value: Fraction) -> int:
    size = (2 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    return -size if value < 0 else size


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


def _ceiling(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
