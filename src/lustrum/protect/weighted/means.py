"""Shared means: what the respondents of a class are given instead of their own weights and values.

A class can have fewer true respondents than it shows; it is filled up with respondents that have the mean of
all. The noise of a mean belongs to the respondents behind it, as a cell key does: the same have the same noise
in every release, and where one is gone it is another. The two largest values of a measure in a class, in size,
are cut to the third largest first, so that a single very large value does not affect the mean.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np

from lustrum.model.arrays import Floats, Ints, Words

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


def class_noise(key: bytes, purpose: str, group: Ints, keys: Words, count: int) -> Floats:
    """Noise between -1 and 1 for every class, drawn by the key and the record keys of its respondents.

    >>> keys = np.array([5, 6, 7], dtype=np.uint64)
    >>> one = class_noise(b"secret", "weights", np.array([0, 0, 1]), keys, 3)
    >>> other = class_noise(b"secret", "weights", np.array([1, 1, 0]), keys, 3)
    >>> one[0] == other[1], one[1] == other[0], one[2] == other[2]
    (np.True_, np.True_, np.True_)
    """
    key_sums = np.zeros(count, dtype=np.uint64)
    np.add.at(key_sums, group, keys)
    held = np.bincount(group, minlength=count)
    noise = np.empty(count)
    for number in range(count):
        # Classes without respondents are told apart by their numbers, or they would all look alike.
        identity = f"respondents {key_sums[number]}" if held[number] else f"class {number}"
        message = f"lustrum shared mean {purpose} {identity}".encode()
        digest = hmac.digest(key, message, hashlib.sha256)
        noise[number] = int.from_bytes(digest[:8], "big") / 2.0**63 - 1.0
    return noise


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
