"""How much a reader is left to wonder about a true 1 or 2, from the parameters of a method alone.

A share of changed counts is not enough: a method that turns every 1 into a 2 and every 2 into a 3 changes all
of them, and a reader who knows the method turns them back. So methods also state the entropy that is left, in
bits:

    min over x of  sum over y of  P(y | x) H(X | Y = y),   x = 1, 2

where ``y`` is the published number, and to the reader all counts from 0 to 20 are equally likely beforehand.
It follows from the channel, never from the records. A number that only one count can lead to leaves 0.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np

from lustrum.model import Channel, InputError
from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import log2

MOST = 20
"""Counts up to this are equally likely to the reader beforehand."""

_CHANCES = 100


def entropy_left(channel: Channel) -> float:
    """Bits left about a true 1 or 2, whichever has fewer, where everybody knows the channel.

    >>> from lustrum.protect import RandomRounding, RoundingChannel
    >>> round(entropy_left(RoundingChannel(3)), 3), round(entropy_left(RoundingChannel(2)), 3)
    (1.705, 1.209)
    """
    same: Any = channel
    return _remembered(same) if _is_plain(same) else _measured(channel)


def _is_plain(channel: Any) -> bool:
    """Whether it is nothing but numbers and texts that stay as they are, so that an equal one is the same."""
    kind = vars(type(channel)).get("__dataclass_params__")
    if kind is None or not (kind.frozen and kind.eq):
        return False
    return all(
        one.compare and type(getattr(channel, one.name)) in (int, float, bool, str)
        for one in fields(channel)
    )


# The checks of a policy ask several times for each of its methods.
@lru_cache(maxsize=64)
def _remembered(channel: Channel) -> float:
    return _measured(channel)


def _measured(channel: Channel) -> float:
    counts, rows = [], []
    for true in range(MOST + 1):
        try:
            transitions = channel.transitions(np.array([true]))
        except InputError:  # a matrix that ends below: such a count cannot be published at all
            continue
        counts.append(true)
        rows.append(transitions)
    if not {1, 2} <= set(counts):
        return 0.0
    shown = np.unique(np.concatenate([row.published for row in rows]))
    chances = np.zeros((len(rows), shown.size))
    for index, row in enumerate(rows):
        chances[index] = np.bincount(
            np.searchsorted(shown, row.published), row.probability, shown.size
        )
    return float(left_by_row(chances)[[counts.index(1), counts.index(2)]].min())


def left_by_row(chances: Floats) -> Floats:
    """Of a matrix ``P(published | true)``, the entropy left on average for every true value.

    All true values are equally likely beforehand. A permutation leaves nothing:

    >>> left_by_row(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [0.0, 0.0]
    >>> left_by_row(np.array([[0.5, 0.5], [0.5, 0.5]])).tolist()
    [1.0, 1.0]
    """
    total = chances.sum(axis=0)
    belief = chances / np.where(total > 0, total, 1.0)
    bits = -log2(np.where(belief > 0, belief, 1.0))
    return np.asarray((chances * (belief * bits).sum(axis=0)).sum(axis=1))


@lru_cache(maxsize=64)
def left_between_multiples(base: int) -> float:
    """The least that is left where a count shows a multiple of the base next to it, a multiple itself.

    How often a 1 shows 0 or the base may be anything: a search, or an optimum, decides it. Whatever is shown,
    0 or the base itself may be behind it, which alone leaves so much: the entropy of a belief is not below that
    of a count beside its likeliest rival. With a base of 2 a 2 shows itself, and whether anything else shows 2
    is left to the table.

    >>> round(left_between_multiples(3), 3), left_between_multiples(2)
    (0.918, 0.0)
    """
    if base < 3:
        return 0.0
    up = np.arange(_CHANCES + 1) / _CHANCES
    return float((up * _against_one(up) + (1.0 - up) * _against_one(1.0 - up)).min())


def left_by_leaving_together(share: float) -> float:
    """The least that is left where the people of a cell leave it together with this chance, and nobody enters.

    >>> round(left_by_leaving_together(0.1), 3), left_by_leaving_together(1.0)
    (0.044, 1.0)
    """
    return float(share * _against_one(np.array([share]))[0])


@lru_cache(maxsize=64)
def left_by_thinning(stay: float) -> float:
    """What is left where each person stays in a cell on their own with this chance, and nobody enters.

    >>> round(left_by_thinning(0.5), 3), left_by_thinning(1.0)
    (2.356, 0.0)
    """
    chances = np.zeros((MOST + 1, MOST + 1))
    for true in range(MOST + 1):
        for left in range(true + 1):
            ways = comb(true, left) * _power(stay, left) * _power(1.0 - stay, true - left)
            chances[true, left] = ways
    return float(left_by_row(chances)[1:3].min())


def left_by_two_codes(stay: float) -> float:
    """What is left about the code of a person that is kept with this chance, or else is another one.

    Two codes leave least: where nobody keeps the code, a reader turns the two round.

    >>> left_by_two_codes(0.5), left_by_two_codes(0.0)
    (1.0, 0.0)
    """
    return float(left_by_row(np.array([[stay, 1.0 - stay], [1.0 - stay, stay]]))[0])


def _against_one(chance: Floats) -> Floats:
    """The entropy of a count that leads to a number with a chance, against one that leads there for certain."""
    first = chance / (1.0 + chance)
    second = 1.0 - first
    return np.asarray(-first * log2(np.where(first > 0, first, 1.0)) - second * log2(second))


def _power(base: float, exponent: int) -> float:
    power = 1.0
    for _ in range(exponent):
        power *= base
    return power
