"""Random numbers inside compiled loops: SplitMix64 (Steele, Lea and Flood 2014).

The position of a stream is the first word of an array, ``state``, which moves on with every number drawn. The
same position gives the same numbers on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Whole
from lustrum.numeric.compiled import compiled


@compiled
def mixed(position: Any) -> Any:  # pragma: no cover
    """The word at a position of the stream.

    >>> hex(mixed(np.uint64(0x9E3779B97F4A7C15)))
    '0xe220a8397b1dcdaf'
    """
    z = (position ^ (position >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def unit_of(word: Any) -> float:  # pragma: no cover
    """A number in [0, 1) from the upper 53 bits of a word."""
    return float(np.int64(word >> np.uint64(11))) * (1.0 / 9007199254740992.0)


@compiled
def below_of(half: Any, count: Whole) -> Any:  # pragma: no cover
    """A number below ``count``, which is less than 2**31, from 32 random bits."""
    return np.int64((half * np.uint64(count)) >> np.uint64(32))


@compiled
def next_word(state: Array) -> Any:  # pragma: no cover
    """Move on by one word.

    >>> state = np.array([0], dtype=np.uint64)
    >>> hex(next_word(state)), hex(next_word(state))
    ('0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4')
    """
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return mixed(state[0])


@compiled
def own_next_word(state: Array) -> Any:  # pragma: no cover
    """Move on by one word of a stream with its own increment, the second word of its state."""
    state[0] += state[1]
    return mixed(state[0])


@compiled
def unit(state: Array) -> float:  # pragma: no cover
    return unit_of(next_word(state))


@compiled
def below(state: Array, count: Whole) -> Any:  # pragma: no cover
    return below_of(next_word(state) >> np.uint64(32), count)
