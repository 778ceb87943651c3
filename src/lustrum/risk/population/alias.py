"""Alias tables: one random word and one comparison give a count (Walker 1977, Vose 1991)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lustrum.model.arrays import Array, Floats, Ints, Words
from lustrum.numeric.compiled import compiled

LARGEST = 1 << 16
"""An entry keeps the other count of its pair in 16 bits, so a table has no more entries."""

_NEGLIGIBLE = 1e-16
"""Counts this much less likely than the likeliest one are left out of a table."""

_U = np.uint64
_LOW = _U(0xFFFF)
_ALL = _U(0xFFFFFFFFFFFFFFFF)


class AliasTables(NamedTuple):
    """Alias tables, one behind the other: of table ``t`` the entries from ``offset[t]`` on.

    It has ``2 ** bits[t]`` entries for the counts from ``lowest[t]`` on. The upper 48 bits of an entry
    are the chance to stay with its own count, the lower 16 name the other one.
    """

    entries: Words
    offset: Words
    bits: Words
    lowest: Ints


def bits_of(size: int) -> np.uint64:
    return _U(max(1, int(size - 1).bit_length()))


def count_tables(a: float, b: Floats, most: int) -> AliasTables:
    """Tables for distributions with ``P(x + 1) / P(x) = (a x + b) / (x + 1)``.

    Poisson has ``a = 0`` and ``b`` its mean; the negative binomial of shape ``r`` has ``b = a r``.
    """
    ends: Ints = _ends(a, b, most)
    lowest, size = ends[:, 0].copy(), ends[:, 1] - ends[:, 0] + 1
    bits = np.maximum(np.frexp(size - 1)[1], 1).astype(np.uint64)
    offset = np.zeros(b.size, dtype=np.uint64)
    length = np.uint64(1) << bits
    offset[1:] = np.cumsum(length)[:-1]
    entries = np.zeros(int(length.sum()), dtype=np.uint64)
    _fill(a, b, lowest, size, offset, length, entries)
    return AliasTables(entries, offset, bits, lowest)


def alias_table(weights: Floats) -> Words:
    """The alias table of one set of weights."""
    entries = np.zeros(1 << int(bits_of(weights.size)), dtype=np.uint64)
    _vose(weights, entries)
    return entries


@compiled
def _ends(a: float, b: Array, most: int) -> Any:  # pragma: no cover
    """The first and the last count that is not negligible, for each distribution."""
    out = np.empty((b.size, 2), dtype=np.int64)
    for t in range(b.size):
        mode = int((b[t] - 1.0) / (1.0 - a)) if b[t] > 1.0 else 0
        mode = min(mode, most)
        # Half of the room on either side of the mode, so that a table never outgrows 16 bits.
        x, weight = mode, 1.0
        while x < most and x < mode + LARGEST // 2 - 1 and weight > _NEGLIGIBLE:
            weight *= (a * x + b[t]) / (x + 1)
            x += 1
        out[t, 1] = x
        x, weight = mode, 1.0
        while x > 0 and x > mode - LARGEST // 2 and weight > _NEGLIGIBLE:
            x -= 1
            weight *= (x + 1) / (a * x + b[t])
        out[t, 0] = x
    return out


@compiled
def _fill(
    a: float, b: Array, lowest: Array, size: Array, offset: Array, length: Array, entries: Array
) -> None:  # pragma: no cover
    """Compute the weights of each distribution outwards from its mode, and its alias table."""
    for t in range(b.size):
        weights = np.empty(size[t])
        mode = int((b[t] - 1.0) / (1.0 - a)) if b[t] > 1.0 else 0
        mode = min(mode, lowest[t] + size[t] - 1)
        at = mode - lowest[t]
        weights[at] = 1.0
        for i in range(at, size[t] - 1):
            x = lowest[t] + i
            weights[i + 1] = weights[i] * (a * x + b[t]) / (x + 1)
        for i in range(at, 0, -1):
            x = lowest[t] + i - 1
            weights[i - 1] = weights[i] * (x + 1) / (a * x + b[t])
        start = np.int64(offset[t])
        _vose(weights, entries[start : start + np.int64(length[t])])


@compiled
def _vose(weights: Array, entries: Array) -> None:  # pragma: no cover
    """Pair entries that have too little with ones that have too much."""
    size = entries.size
    scaled = np.zeros(size)
    scale = size / weights.sum()
    for i in range(weights.size):
        scaled[i] = weights[i] * scale
    poor, rich = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    poors, riches = 0, 0
    for i in range(size):
        if scaled[i] < 1.0:
            poor[poors] = i
            poors += 1
        else:
            rich[riches] = i
            riches += 1
    while poors > 0 and riches > 0:
        poors -= 1
        low, high = poor[poors], rich[riches - 1]
        stay = _U(scaled[low] * 281474976710656.0) << _U(16)
        entries[low] = stay | _U(high)
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            riches -= 1
            poor[poors] = high
            poors += 1
    # The entries left over have weight 1 up to rounding; one without weight is never left over.
    for i in range(riches):
        entries[rich[i]] = (_ALL ^ _LOW) | _U(rich[i])
    for i in range(poors):
        entries[poor[i]] = (_ALL ^ _LOW) | _U(poor[i])
