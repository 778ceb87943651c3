"""Shared means: what the respondents of a class are given instead of their own weights and values.

Classes are divided by protected numbers of respondents, so a class can have fewer true ones than it shows. Such
a class is filled up with respondents that have the mean of all, so that nobody has more than their share of a
full class in its mean.
"""

from __future__ import annotations

import numpy as np

from lustrum.arrays import Floats, Ints

__all__ = ["filled_means", "limited_weights"]

_MOST = 3.0
"""A weight counts as at most so many times the median of its class."""


def filled_means(group: Ints, values: Floats, count: int, least: int) -> Floats:
    """The mean of every class, filled up to ``least`` respondents with the mean of all.

    >>> filled_means(np.array([0, 0, 0, 0, 1]), np.array([4.0, 4, 4, 4, 9]), 3, 4).tolist()
    [4.0, 6.0, 5.0]
    """
    number = np.bincount(group, minlength=count)
    total = np.bincount(group, weights=values, minlength=count)
    added = np.maximum(least - number, 0)
    every = float(values.mean()) if values.size else 1.0
    return np.asarray((total + added * every) / np.maximum(number + added, 1))


def limited_weights(group: Ints, weights: Floats, count: int, least: int) -> Floats:
    """The weights, none above three times the median of its class, or of all where a class has too few.

    A class of alike weights is not changed. A single giant does not show in the mean of its class.

    >>> weights = np.array([1.0, 2.0, 100.0, 3.0, 50.0])
    >>> limited_weights(np.array([0, 0, 0, 0, 1]), weights, 2, 3).tolist()
    [1.0, 2.0, 7.5, 3.0, 9.0]
    """
    if not weights.size:
        return weights
    number = np.bincount(group, minlength=count)
    ordered = weights[np.lexsort((weights, group))]
    first = np.concatenate([[0], np.cumsum(number)[:-1]])
    full = number >= max(least, 1)
    median = np.full(count, float(np.median(weights)))
    low, high = first + (number - 1) // 2, first + number // 2
    median[full] = (ordered[low[full]] + ordered[high[full]]) / 2.0
    return np.minimum(weights, _MOST * median[group])
