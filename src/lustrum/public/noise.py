"""What the public knows of how the sums of a measure were protected, and what follows from it.

An attacker takes from a published sum whatever it knows, and is left with a number that hides one contribution.
:meth:`SumNoise.left` bounds that number from below, and :meth:`SumNoise.believed` says what can be believed of
the contribution behind it. Both use the parameters of the method and published numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from lustrum.audit.contribution import ContributionBelief, contribution_belief, exact_for
from lustrum.model.arrays import Floats, Ints
from lustrum.protect.cell_key import CellKeyMagnitude
from lustrum.protect.cell_key.magnitudes import flex
from lustrum.protect.magnitudes.report import PublicFactors
from lustrum.runtime.remembered import Remembered

_ROUNDING = Fraction(1, 20)
"""How much rounding to whole units can add to the largest share."""


class Believed(NamedTuple):
    """A belief in few numbers; ``within`` is the best chance to guess a contribution within ``p`` percent."""

    low: float
    high: float
    bits: float
    within: float | None

    @classmethod
    def of(cls, belief: ContributionBelief, p: float | None) -> Believed:
        return cls(*belief.ends, belief.bits, None if p is None else belief.within(p / 100))


_KNOWN = Remembered[Believed](1 << 14)


class SumNoise(Protocol):
    """The noise of one measure's sums, as everybody may know it. All sums are in units of the last decimal."""

    @property
    def p(self) -> float | None:
        """The percentage within which nobody may be certain of a contribution; None where none is stated."""
        ...

    @property
    def hides_direction(self) -> bool:
        """Whether noise has a direction that an attacker may know, and that then leaves less open."""
        ...

    def left(self, published: Ints, low: Ints) -> Ints:
        """The least that the second largest contributor is left with, whatever its own value is.

        ``low`` is the least that each true sum can be.
        """
        ...

    def believed(self, left: int, published: int, *, direction: bool = False) -> Believed:
        """What is believed of a contribution when this is left of a published sum."""
        ...

    def error(self, published: Floats, variables: int) -> Floats:
        """The expected relative error of sums that show these values, in per cent."""
        ...

    def growth_error(self, published: Floats, variables: int) -> float | None:
        """The expected error of the growth of these sums since the period before, in percentage points."""
        ...


@dataclass(frozen=True)
class FactorNoise:
    """Contributions that were multiplied once, see :mod:`lustrum.protect.magnitudes`."""

    public: PublicFactors
    measure: str

    @property
    def p(self) -> float | None:
        """The protection that the method was asked for."""
        asked = self.public.method.get("p")
        return None if asked is None else float(asked)

    @property
    def hides_direction(self) -> bool:
        """A contribution went up or down, and the search may hint at which."""
        return True

    def left(self, published: Ints, low: Ints) -> Ints:
        """At least ``(1 - c) Y / 2`` of a sum ``Y``, with the largest change ``c = b + 1/20``.

        The second largest has ``x_2 <= x_1``. It shows at most ``(1 + c) x_2`` and the largest at least
        ``(1 - c) x_1``, so that what is left beside the second largest is no less than that. Amounts are
        rounded up to whole units, which ``c`` covers for records of 40 units or more; for smaller ones the
        bound is not exact.
        """
        half = (1 - self.public.factors.most - _ROUNDING) / 2
        (shown,) = exact_for(half, published)
        left = (shown * half.numerator) // half.denominator
        return np.asarray(np.maximum(left, 1).astype(np.int64))

    def belief(self, left: int, published: int, *, direction: bool = False) -> ContributionBelief:
        """Both directions and every share are equally likely; of a known direction the worse one is taken."""
        least, most = self.public.factors.least, self.public.factors.most
        if not direction:
            return contribution_belief(left, least, most)
        both = [
            contribution_belief(left, least, most, side)
            for side in ("up", "down")
            if left > 1 or side == "down"
        ]
        return min(both, key=lambda belief: round(belief.bits, 9))

    def believed(self, left: int, published: int, *, direction: bool = False) -> Believed:
        """The belief in few numbers, which many tables share."""
        factors = self.public.factors
        key = factors.least, factors.most, self.p, left, direction
        return _KNOWN.get(
            key, lambda: Believed.of(self.belief(left, published, direction=direction), self.p)
        )

    def error(self, published: Floats, variables: int) -> Floats:
        """The typical error of the size, or that of the number of variables where no size is stated."""
        known = self.public.by_size.get(self.measure)
        if not known:
            return np.full(published.shape, self.public.error(self.measure, variables))
        edges = sorted(known)
        size_class = np.searchsorted(edges, np.abs(published), side="right") - 1
        return np.array([known[e] for e in edges])[np.maximum(size_class, 0)]

    def growth_error(self, published: Floats, variables: int) -> float | None:
        """The typical error of growth, where the measure has an earlier period."""
        return self.public.growth_error(self.measure, variables)


@dataclass(frozen=True)
class KeyedNoise:
    """Sums that the cell key method perturbs in proportion to their largest contributions."""

    spec: CellKeyMagnitude
    decimals: int

    @property
    def p(self) -> float | None:
        """The percentage of the rule by which sensitive cells get extra noise."""
        return self.spec.p_percent

    @property
    def hides_direction(self) -> bool:
        """The sign of the noise belongs to the cell and follows from its key alone."""
        return False

    def left(self, published: Ints, low: Ints) -> Ints:
        """At least half of the least true sum, less the noise: the largest has at least what the second has.

        >>> noise = KeyedNoise(CellKeyMagnitude(small=0.1), 0)
        >>> noise.left(np.array([1000]), np.array([760])).tolist()
        [265]
        """
        reach = self.spec.reach
        half = (1 - reach) / 2
        return np.asarray(
            np.maximum((low.astype(object) * half.numerator) // half.denominator, 1)
        ).astype(np.int64)

    def belief(self, left: int, published: int, *, direction: bool = False) -> ContributionBelief:
        """One candidate for every coefficient of the noise table, as likely as the table makes it.

        What is left is the contribution times ``1 + m v``. Every contribution is equally likely beforehand, so
        a candidate ``left / (1 + m v)`` weighs ``P(v) / (1 + m v)``.
        """
        values, chances = self._coefficients
        share = float(self._share(np.array([float(published)]))[0])
        stretch = 1.0 + share * values
        near = np.rint(left / stretch)
        weight = chances / stretch
        candidates, index = np.unique(near, return_inverse=True)
        probability = np.bincount(index.ravel(), weights=weight)
        return ContributionBelief(candidates, probability / probability.sum())

    def believed(self, left: int, published: int, *, direction: bool = False) -> Believed:
        """The belief in few numbers."""
        return Believed.of(self.belief(left, published), self.p)

    def error(self, published: Floats, variables: int) -> Floats:
        """The mean size of the noise where one contribution is all of the sum; less where it is not."""
        values, chances = self._coefficients
        return np.asarray(100.0 * self._share(published) * float((np.abs(values) * chances).sum()))

    def growth_error(self, published: Floats, variables: int) -> float | None:
        """Noise of two measures is independent, so their errors add up as squares do."""
        if not published.size:
            return None
        return float(np.sqrt(2.0) * self.error(published, variables).mean())

    @cached_property
    def _coefficients(self) -> tuple[Floats, Floats]:
        """The signed coefficients of a cell that is not sensitive, and how likely each is."""
        table = self.spec.noise
        units = table.sizes / table.steps
        values = np.concatenate([-units[units > 0][::-1], units])
        half = np.where(units > 0, table.chances / 2, table.chances)
        return values, np.concatenate([half[units > 0][::-1], half])

    def _share(self, published: Floats) -> Floats:
        return flex(
            np.abs(published) / 10.0**self.decimals,
            self.spec.flex_point,
            float(self.spec.small),
            float(self.spec.large),
            self.spec.power,
        )
