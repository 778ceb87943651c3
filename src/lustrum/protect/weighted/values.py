"""Shared values of measures: the mean of a class with its largest values cut, plus noise.

The two largest values of a class, in size, are cut to the third largest before the mean is taken. So a
single very large value does not affect the mean of its class. Sums are a little too small where there are
such values, as they are from top-coded files.
"""

from __future__ import annotations

import numpy as np

from lustrum.arrays import Floats, Ints

__all__ = ["cut_values", "shared_values"]

_CUT = 2


def cut_values(group: Ints, values: Ints) -> Ints:
    """The values with the two largest of every class, in size, cut to the third largest.

    >>> cut_values(np.array([0, 0, 0, 0, 1, 1, 1]), np.array([1, 9, 2, 5, -7, 3, -4])).tolist()
    [1, 2, 2, 2, -3, 3, -3]
    """
    size = np.abs(values)
    order = np.lexsort((-size, group))
    ranked = group[order]
    first = np.searchsorted(ranked, ranked, side="left")
    number = np.bincount(group)[ranked]
    third = order[first + np.minimum(_CUT, number - 1)]
    limit = np.empty_like(size)
    limit[order] = size[third]
    return np.asarray(np.sign(values) * np.minimum(size, limit))


def shared_values(
    group: Ints, values: Ints, count: int, noise: float, rng: np.random.Generator
) -> tuple[Ints, float]:
    """The value of every class in whole units, and the spread within classes in proportion to the mean of all.

    The spread is that of the true values around the means of their classes; it is confidential.
    """
    number = np.maximum(np.bincount(group, minlength=count), 1)
    cut = np.bincount(group, weights=cut_values(group, values), minlength=count) / number
    moved = cut * (1.0 + noise * rng.uniform(-1.0, 1.0, count))
    apart: Floats = values - cut[group]
    level = float(np.abs(cut[group]).mean()) if group.size else 0.0
    spread = float(np.sqrt((apart**2).mean())) / level if level > 0 else 0.0
    return np.rint(moved).astype(np.int64), spread
