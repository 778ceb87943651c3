"""How much contributions change, and what follows from that for every set of records.

A value ``x`` of whole units becomes ``y = x + s d`` with a direction ``s`` of 1 or -1, the same for all values
of its owner, whatever their signs, and an amount ``d`` from ``ceil(a |x|)`` to ``ceil(b |x|)``, or to 2 where
that is more and ``|x|`` is 3 or more. Everybody may know ``a`` and ``b``. Three facts hold for all directions:

1. **Demanded protection.** Let ``a >= p``. Take any set of records, any contributor with ``x_1`` in it, and a
   coalition that subtracts everything it knows, including its own factors. What is left errs by at least ``p
   |x_1| - R``, the protection level of the p% rule, where ``R`` is the size of all other values: the
   contributor's values, gains and losses, move one way by ``a`` times the size of all of them or more, which is
   at least ``a |x_1|``, and no other value moves by more than itself.
2. **No certainty.** Let ``(1 + b) / (1 + a) > (1 + p) / (1 - p)``. Nobody who knows everything but one
   contribution, even its direction, can name a number that is certainly within ``p`` percent of it: the
   candidates ``y / (1 + e)`` reach from ``y / (1 + b)`` to ``y / (1 + a)``. With ``1 - e`` they reach further.
   Rounding to whole units weakens this for very small contributions, see :mod:`lustrum.audit.contribution`.
3. **Other values of an owner tell its direction and no more.** Let an owner show ``y_1, ..., y_n``. The values
   that it can have are all combinations of what ``y_1``, ..., ``y_n`` leave open one by one, with ``s = 1`` in
   all or with ``s = -1`` in all: the shares of its values are drawn around a share of the owner, and if that
   one is in the middle of the range, each can be any share, whatever the others are. So somebody who knows some
   of the values is left with what the others leave open in one direction. A ratio, a sum or a difference is
   then at least as open as each of its values: of the two ends of what is left of ``x_i``, one is more than
   ``(1 + p) / (1 - p)`` times the other, so those of ``x_i / x_j`` are too, and those of ``x_i + x_j`` and
   ``x_i - x_j`` are further apart than ``p`` times all four: nobody can be certain of it within ``p`` percent
   of the larger value.

All hold for cells, totals, differences of nested cells and own groups, since each is a set of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints

VERSION = 2
"""The version of the method. The first gave an owner of gains and losses one share for all of its values."""
SHARES = 1 << 20
"""Shares are whole multiples of one over this."""
Directions = Literal["known", "secret"]
_ROOM = Fraction(51, 50)
"""How much wider than needed the candidates are, so that whole units do not close the gap."""


@dataclass(frozen=True)
class Factors:
    """Contributions change by a share from ``low`` to ``high``, in units of one over ``SHARES``."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < SHARES:
            raise InputError("The shares of protected magnitudes need 0 < low < high < 1.")

    @property
    def least(self) -> Fraction:
        return Fraction(self.low, SHARES)

    @property
    def most(self) -> Fraction:
        return Fraction(self.high, SHARES)

    def amounts(self, size: Ints) -> tuple[Ints, Ints]:
        """The least and the largest amount by which contributions of these sizes change.

        >>> factors = needed_factors(Fraction(1, 10), "known")
        >>> [array.tolist() for array in factors.amounts(np.array([0, 1, 10, 1000]))]
        [[0, 1, 2, 101], [0, 1, 4, 372]]
        """
        size = np.asarray(size, dtype=np.int64)
        low = amounts(size, np.full(size.shape, self.low, dtype=np.int64))
        high = amounts(size, np.full(size.shape, self.high, dtype=np.int64))
        return low, np.where((size >= 3) & (high < 2), 2, high)

    def chosen(self, size: Ints, share: Ints, room: Ints) -> tuple[Ints, Ints, Ints]:
        """The amount of each share, and the least and largest that it may move to.

        ``room``, over ``SHARES``, is how far a share may move towards either end, as a part of its distance to
        that end. A fixed distance instead would pile shares up at the ends.
        """
        least, most = self.amounts(size)
        down = amounts(size, share - ((share - self.low) * room >> 20))
        up = amounts(size, share + ((self.high - share) * room >> 20))
        amount = amounts(size, share)
        # Where all shares round to one unit, the upper half of them takes two.
        small = most > amounts(size, np.full(size.shape, self.high, dtype=np.int64))
        two = small & (2 * share > self.low + self.high)
        amount = np.where(two, 2, amount)
        free = small & (room > 0)
        return (
            amount,
            np.where(free, least, np.where(small, amount, down)),
            np.where(free, most, np.where(small, amount, up)),
        )


def needed_factors(p: Fraction, directions: Directions) -> Factors:
    """The smallest factors that keep both promises for ``p``, a share and not a percentage.

    With ``secret`` directions the second promise is made for readers who do not know them, and a largest share
    a little above ``p`` is enough.
    """
    if not 0 < p < 1:
        raise InputError("The protection that is asked for must lie between 0 and 100 percent.")
    least = Fraction(ceil(p * SHARES), SHARES)
    known = directions == "known"
    most = (1 + least) * (1 + p) / (1 - p) * _ROOM - 1 if known else least * Fraction(3, 2)
    if most >= Fraction(99, 100):
        raise InputError(
            f"A protection of {float(100 * p):g} percent would need factors of nearly 0 and 2; ask for at most "
            + (
                "22 percent, or use directions = 'secret'."
                if directions == "known"
                else "65 percent."
            )
        )
    return Factors(int(least * SHARES), ceil(most * SHARES))


def amounts(size: Ints, share: Ints) -> Ints:
    """``size * share / SHARES``, rounded up; no intermediate result exceeds 64 bits for sizes below 2**62."""
    upper, lower = size >> 20, size & (SHARES - 1)
    return np.asarray(upper * share + ((lower * share + SHARES - 1) >> 20))
