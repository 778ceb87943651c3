"""Means, ratios and percentages, made from published numbers only.

Ratios are computed from perturbed numbers, never from true ones, so a ratio reveals nothing beyond its two
numbers. Its interval follows from theirs. Where the denominator is suppressed or 0 there is no ratio: the
place is marked as not available, and no infinity is ever shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release
from lustrum.model.arrays import Floats, Mask


@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios of published numbers, NaN where not ``available``.

    The true ratio lies from ``low`` to ``high`` wherever it exists; NaN means that there is no bound, for
    example because the denominator may be 0.
    """

    value: Floats
    low: Floats
    high: Floats
    available: Mask

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.value.shape)) or "1"
        return f"Ratios({shape} cells)"


def ratio(above: Release, below: Release) -> Ratios:
    """One published table divided by another over the same cells.

    >>> from lustrum.model import Table
    >>> from lustrum.protect import RandomRounding
    >>> rng = np.random.default_rng(1)
    >>> part, whole = (RandomRounding(3).apply(Table.from_counts(c), rng) for c in ([3, 0], [9, 0]))
    >>> ratio(part, whole).value.tolist(), ratio(part, whole).available.tolist()
    ([0.3333333333333333, nan], [True, False])
    """
    if [a.codes for a in above.axes] != [a.codes for a in below.axes]:
        raise InputError("Only tables over the same cells, in the same order, can be divided.")
    x, y = _numbers(above), _numbers(below)
    return _divided(x, y, above.shown & below.shown)


def mean(total: Release, count: Release) -> Ratios:
    """Published sums divided by published counts."""
    if count.decimals or (count.numbers < 0).any():
        raise InputError("A mean is a sum divided by a count; the second table holds no counts.")
    return ratio(total, count)


def percentages(release: Release, along: str) -> Ratios:
    """Each published number in percent of its line along an axis.

    The denominator is the published total of the axis, or, if it has none, the sum of its published parts.
    The interval uses the bounds of the total and of the other parts. If a part is suppressed, so is the
    sum.
    """
    names = [axis.name for axis in release.axes]
    if along not in names:
        raise InputError(f"The table has no axis {along!r}; there are: {', '.join(names)}.")
    position = names.index(along)
    axis = release.axes[position]
    if release.numbers.size and (release.numbers < 0).any():
        raise InputError("Percentages of a line need numbers of 0 or more.")
    everything = frozenset().union(*(c.member_set for c in axis.categories))
    parts = np.flatnonzero(axis.inner)
    sets = [axis.categories[i].member_set for i in parts]
    if sum(map(len, sets)) != len(everything):
        raise InputError(
            f"The categories of {along!r} overlap or leave somebody out; percentages need a line that "
            "adds up."
        )
    total = next((i for i, c in enumerate(axis.categories) if c.member_set == everything), None)
    if len(parts) == 1:
        total = int(parts[0])

    def moved(array: npt.NDArray[np.float64]) -> Floats:
        return np.moveaxis(array, position, -1)

    value, low, high = (moved(a) for a in _numbers(release))
    low = np.maximum(low, 0.0)
    shown = np.moveaxis(release.shown, position, -1)
    sums = [a[..., parts].sum(axis=-1, keepdims=True) for a in (value, low, high)]
    if total is None:
        whole = (sums[0], sums[1], sums[2])
        seen = shown[..., parts].all(axis=-1, keepdims=True)
    else:
        one = slice(total, total + 1)
        # The total is also the sum of its parts; the narrower bounds apply.
        whole = (value[..., one], np.fmax(low[..., one], sums[1]), np.fmin(high[..., one], sums[2]))
        seen = shown[..., one]
    shape = value.shape
    ratios = _divided(
        (value, low, high),
        tuple(np.broadcast_to(a, shape) for a in whole),  # type: ignore[arg-type]
        shown & seen,
    )
    least, most = _within(parts, low, high)
    with np.errstate(invalid="ignore"):
        bottom = np.fmax(np.fmax(ratios.low, least), 0.0)
        top = np.fmin(np.fmin(ratios.high, most), 1.0)
    back = [np.moveaxis(a * 100.0, -1, position) for a in (ratios.value, bottom, top)]
    available = np.moveaxis(ratios.available, -1, position)
    bottom, top = (np.where(available, a, np.nan) for a in back[1:])
    return Ratios(back[0], bottom, top, available)


def _within(parts: npt.NDArray[np.intp], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds of each part's share of its line, from its own bounds and those of the other parts."""
    least = np.full(low.shape, np.nan)
    most = np.full(low.shape, np.nan)
    own_low, own_high = low[..., parts], high[..., parts]
    rest_low = own_low.sum(axis=-1, keepdims=True) - own_low
    rest_high = own_high.sum(axis=-1, keepdims=True) - own_high
    with np.errstate(invalid="ignore", divide="ignore"):
        least[..., parts] = own_low / (own_low + rest_high)
        most[..., parts] = own_high / (own_high + rest_low)
    return least, most


def _numbers(release: Release) -> tuple[Floats, Floats, Floats]:
    """Published values and their bounds in plain units; an unknown bound is NaN."""
    unit = float(10**release.decimals)
    value = release.numbers / unit
    nothing = np.full(value.shape, np.nan)
    low = nothing if release.least is None else release.least / unit
    high = nothing if release.most is None else release.most / unit
    return value, low, high


def _divided(
    x: tuple[Floats, Floats, Floats], y: tuple[Floats, Floats, Floats], shown: Mask
) -> Ratios:
    available = shown & (y[0] != 0)
    safe = np.where(available, y[0], 1.0)
    value = np.where(available, x[0] / safe, np.nan)
    # Only a denominator that cannot be 0 bounds the ratio on both sides.
    away = available & ((y[1] > 0) | (y[2] < 0))
    ends = [np.where(away, end, 1.0) for end in y[1:]]
    corners = np.stack([a / b for a in x[1:] for b in ends])
    low = np.where(away, corners.min(axis=0), np.nan)
    high = np.where(away, corners.max(axis=0), np.nan)
    # A ratio of numbers of 0 or more is itself 0 or more.
    positive = available & ~away & (x[1] >= 0) & (y[1] >= 0)
    low = np.where(positive, np.where(y[2] > 0, x[1] / np.where(y[2] > 0, y[2], 1.0), 0.0), low)
    return Ratios(value, low, high, available)
