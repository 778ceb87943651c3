"""Shared values of measures: the mean of a class with its largest values cut, plus noise.

The two largest values of a class, in size, are cut to the third largest before the mean is taken. So a
single very large value does not affect the mean of its class. Sums are a little too small where there are
such values, as they are from top-coded files.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Floats, Ints
from lustrum.protect.weighted.means import filled_means

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
    group: Ints, values: Ints, count: int, least: int, noise: Floats
) -> tuple[Ints, float]:
    """The value of every class in whole units, and the spread within classes in proportion to the mean of all.

    ``noise`` is the relative noise of every class. Classes of fewer than ``least`` respondents are filled up,
    see :mod:`lustrum.protect.weighted.means`; of one or two, of whom none can be cut, no value is used. The
    spread is that of the cut values around the means of their classes, because a single large value would show
    in any other; it is confidential.
    """
    used = np.bincount(group, minlength=count)[group] > _CUT
    cut = cut_values(group, values)[used].astype(np.float64)
    mean = filled_means(group[used], cut, count, least)
    moved = mean * (1.0 + noise)
    level = float(np.abs(mean[group[used]]).mean()) if used.any() else 0.0
    apart: Floats = cut - mean[group[used]]
    spread = float(np.sqrt((apart**2).mean())) / level if level > 0 else 0.0
    return np.rint(moved).astype(np.int64), spread
