"""What an attacker can learn about one perturbed contribution: candidates, certainty and belief.

A contribution ``x`` of whole units is published as ``y = x + d`` or ``y = x - d`` with ``ceil(a x) <= d <=
ceil(b x)``, or ``d`` up to 2 where ``x`` is 3 or more; ``a`` and ``b`` are public. All tables are sums, so
an attacker who knows every other contribution of a cell, with its factor, learns ``y`` and nothing else.
The candidates that follow from ``y`` therefore bound what any insider, coalition or outsider can learn.
Risk is measured as Domingo-Ferrer, Oganian and Torra (2002) do: one over the entropy of the attacker's
belief, in bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.numeric.arithmetic import exp2, log2

Direction = Literal["up", "down"]
_DRAWN = 1 << 10
"""Candidates that are looked at one by one."""
_PARTS = 1 << 12
"""Parts that stand for all candidates of a large contribution."""
_LARGE = 10**15
"""Beliefs about contributions with many candidates are those about this one, in proportion."""


def candidates(
    published: Ints, low: Fraction, high: Fraction, direction: Direction
) -> tuple[Array, Array]:
    """The least and the greatest contribution that can give a published value, for one direction.

    All whole numbers between the two are candidates as well. If there is no candidate, the first is above
    the second. Contributions are above 0; in addition, a published 0 can always be a true 0.

    >>> tenth, third = Fraction(1, 10), Fraction(1, 3)
    >>> [a.tolist() for a in candidates(np.array([120]), tenth, third, "up")]
    [[90], [109]]
    >>> [a.tolist() for a in candidates(np.array([120]), tenth, third, "down")]
    [[134], [181]]
    """
    _check(low, high)
    y = np.asarray(published).astype(object)
    a, b = Fraction(low), Fraction(high)
    if direction == "up":
        least = _floors((y - 1), 1 / (1 + b)) + 1
        most = _floors(y, 1 / (1 + a))
        # A change of 2, from 3 on. Where the shares ask for more, ``least`` is lower already, and where they
        # leave no candidate, ``most`` is lower still.
        least = np.where(y >= 5, np.minimum(least, y - 2), least)
    else:
        least = -_floors(-y, 1 / (1 - a))
        most = -_floors(-(y + 1), 1 / (1 - b)) - 1
        most = np.where(y >= 1, np.maximum(most, y + 2), most)
    return np.maximum(least, 1), np.asarray(most)


def _floors(y: Array, ratio: Fraction) -> Array:
    return np.asarray((y * ratio.numerator) // ratio.denominator)


def certain_within(least: Array, most: Array, share: Fraction) -> Mask:
    """Where one estimate is within a share of every candidate, and so certainly of the true value.

    Such an estimate exists where ``(1 - p) most <= (1 + p) least``.

    >>> certain_within(np.array([95, 90]), np.array([105, 111]), Fraction(1, 20)).tolist()
    [True, False]
    """
    p = Fraction(share)
    left = np.asarray(most).astype(object) * (p.denominator - p.numerator)
    right = np.asarray(least).astype(object) * (p.denominator + p.numerator)
    return np.asarray((left <= right) & (np.asarray(least) <= np.asarray(most))).astype(np.bool_)


@dataclass(frozen=True, eq=False, repr=False)
class ContributionBelief:
    """A belief about a contribution: values, each with its probability.

    ``step`` is the number of whole numbers that a value represents. A belief may be ``like`` another in
    proportion: its values and its step are those of the other one times a factor.
    """

    values: Floats
    probability: Floats
    step: float = 1.0
    like: ContributionBelief | None = None

    def __repr__(self) -> str:
        return f"ContributionBelief({self.bits:.3g} bits)"

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value."""
        return float(self.values.min()), float(self.values.max())

    @cached_property
    def bits(self) -> float:
        if self.like is not None:
            return self.like.bits + float(log2(self.step / self.like.step))
        p = self.probability[self.probability > 0]
        return float(-(p * log2(p)).sum() + log2(self.step))

    @property
    def risk(self) -> float:
        """One over the entropy; infinite where the contribution is known."""
        return float("inf") if self.bits <= 0 else 1 / self.bits

    def within(self, share: float) -> float:
        """The largest probability of being within a share of the truth with one estimate."""
        if self.like is not None:
            return _within(self.like, share)
        order = np.argsort(self.values, kind="stable")
        values, heap = self.values[order], np.r_[0.0, np.cumsum(self.probability[order])]
        # An estimate z is within p of x where z / (1 + p) <= x <= z / (1 - p).
        ends = np.searchsorted(values, values * (1 + share) / (1 - share), side="right")
        return float((heap[ends] - heap[np.arange(values.size)]).max(initial=0.0))


class _ProportionalBelief(ContributionBelief):
    """A belief like another one, whose many values are only worked out for those who look at them."""

    def __init__(self, like: ContributionBelief, ratio: float, least: int, most: int) -> None:
        known = {"probability": like.probability, "step": like.step * ratio, "like": like}
        vars(self).update(known, ratio=ratio, ends=(float(least), float(most)))

    @cached_property
    def values(self) -> Floats:
        """Both ends have no weight of their own and are exact."""
        assert self.like is not None
        values: Floats = np.clip(np.rint(self.like.values * vars(self)["ratio"]), *self.ends)
        values[0], values[-1] = self.ends
        return values


@lru_cache(maxsize=256)
def _ends(published: int, low: Fraction, high: Fraction, side: Direction) -> tuple[int, int]:
    """The least and the greatest candidate for one published value: :func:`candidates` in whole numbers."""
    _check(low, high)
    y, a, b = published, low, high
    if side == "up":
        least = (y - 1) * b.denominator // (b.denominator + b.numerator) + 1
        most = y * a.denominator // (a.denominator + a.numerator)
        least = min(least, y - 2) if y >= 5 else least
    else:
        least = -(-y * a.denominator // (a.denominator - a.numerator))
        most = -(-(y + 1) * b.denominator // (b.denominator - b.numerator)) - 1
        most = max(most, y + 2) if y >= 1 else most
    return max(least, 1), most


@lru_cache(maxsize=256)
def _within(belief: ContributionBelief, share: float) -> float:
    return belief.within(share)


@lru_cache(maxsize=256)
def contribution_belief(
    published: int, low: Fraction, high: Fraction, direction: Direction | None = None
) -> ContributionBelief:
    """The belief of a reader who sees one protected contribution and had no prior information.

    All whole numbers, both directions and all shares from ``low`` to ``high`` are equally likely a priori.
    If there are many candidates, some thousands represent them, in proportion to what is published.

    >>> belief = contribution_belief(1200, Fraction(1, 20), Fraction(1, 5))
    >>> round(belief.bits, 2), round(belief.within(0.05), 2)
    (8.56, 0.33)
    """
    sides: tuple[Direction, ...] = ("up", "down") if direction is None else (direction,)
    ends = [_ends(published, low, high, side) for side in sides]
    if max(most - least for least, most in ends) < _DRAWN:
        return _weighed(published, low, high, sides)
    large, ratio = _weighed(_LARGE, low, high, sides), published / _LARGE
    return _ProportionalBelief(large, ratio, ends[0][0], ends[-1][1])


@lru_cache(maxsize=256)
def _weighed(
    published: int, low: Fraction, high: Fraction, sides: tuple[Direction, ...]
) -> ContributionBelief:
    values, weight, steps = (
        np.concatenate(part)
        for part in zip(*(_one_side(published, low, high, side) for side in sides), strict=True)
    )
    if not values.size:
        raise InputError("No contribution can lead to this published value.")
    probability = weight / weight.sum()
    # The two sides have different steps; the entropy of a value counts the numbers that it represents.
    return ContributionBelief(values, probability, float(exp2((probability * steps).sum())))


def _one_side(
    published: int, low: Fraction, high: Fraction, side: Direction
) -> tuple[Floats, Floats, Floats]:
    """Candidates of one direction, their weights, and the logarithm of the numbers that each represents.

    Of many candidates these are the least, the greatest and the middles of equal parts.
    """
    least, most = _ends(published, low, high, side)
    number = max(most - least + 1, 0)
    if number <= _DRAWN:
        x, stands_for = np.arange(least, least + number, dtype=np.float64), np.ones(number)
    else:
        middles = least - 0.5 + number / _PARTS * (np.arange(_PARTS) + 0.5)
        x = np.r_[float(least), np.rint(middles), float(most)]
        stands_for = np.r_[0.0, np.full(_PARTS, number / _PARTS), 0.0]
    amount = np.abs(published - x)
    upper = np.minimum(amount / x, np.maximum(float(high), np.where(x >= 3, 2 / x, 0)))
    lower = np.maximum((amount - 1) / x, float(low))
    weight = np.maximum(upper - lower, 0.0) * stands_for
    return x, weight, np.full(x.size, 0.0 if number <= _DRAWN else float(log2(number / _PARTS)))


def exact_for(ratio: Fraction, *numbers: Ints) -> tuple[Array, ...]:
    """Whole numbers as they are where their sums times a ratio fit 64 bits, otherwise as Python's own."""
    largest = sum(max(int(n.max()), -int(n.min())) for n in numbers if n.size)
    fits = 2 * largest * max(ratio.numerator, ratio.denominator) < 2**63
    return numbers if fits else tuple(n.astype(object) for n in numbers)


def _check(low: Fraction, high: Fraction) -> None:
    if not 0 < low < high < 1:
        raise InputError("The shares of a protected contribution need 0 < low < high < 1.")
