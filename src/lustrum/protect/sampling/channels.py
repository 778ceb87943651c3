"""Channels of sampling: the exact probabilities of a sample count given the population count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError, Transitions
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import row_entries
from lustrum.numeric.distributions import binomial, hypergeometric
from lustrum.numeric.structure import UNBOUNDED

_WIDE = 40.0  # standard deviations beyond which a double holds no probability


@dataclass(frozen=True)
class BinomialThinning:
    """Everybody is drawn independently with one probability: ``f ~ Binomial(F, fraction)``.

    >>> half = BinomialThinning(0.5).transitions(np.array([2]))
    >>> half.published.tolist(), half.probability.round(12).tolist()
    ([0, 1, 2], [0.25, 0.5, 0.25])
    """

    fraction: float

    def __post_init__(self) -> None:
        if not 0 < self.fraction <= 1:
            raise InputError(
                f"A sampling fraction is above 0 and at most 1, not {self.fraction!r}."
            )

    def transitions(self, true: Ints) -> Transitions:
        """The probabilities of all sample counts, as far as they differ from 0."""
        true = _counts(true)
        mean = true * self.fraction
        spread = _WIDE * np.sqrt(mean * (1 - self.fraction)) + _WIDE * _WIDE
        low, high = np.maximum(np.floor(mean - spread), 0), np.minimum(np.ceil(mean + spread), true)
        return _rows(true, low, high, lambda f, F: binomial(f, F, self.fraction))

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """At least the sample count, without an upper bound."""
        published = np.asarray(published, dtype=np.int64)
        most = published if self.fraction == 1 else np.full(published.shape, UNBOUNDED)
        return published.copy(), most.copy()

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean of ``fraction**F``; over a range without end that is 0, or 1 if all are drawn."""
        if self.fraction == 1:
            return 1.0
        if highest is None:
            return 0.0
        everybody = np.arange(lowest, highest + 1)
        return float(binomial(everybody, everybody, self.fraction).mean())


@dataclass(frozen=True)
class HypergeometricChannel:
    """``sample`` people are drawn of ``population`` without replacement: ``f ~ Hypergeometric(N, F, n)``.

    >>> draw = HypergeometricChannel(population=4, sample=2).transitions(np.array([2]))
    >>> draw.published.tolist(), (6 * draw.probability).round(12).tolist()
    ([0, 1, 2], [1.0, 4.0, 1.0])
    """

    population: int
    sample: int

    def __post_init__(self) -> None:
        if not 0 <= self.sample <= self.population:
            raise InputError("A sample without replacement is at most as large as the population.")

    def transitions(self, true: Ints) -> Transitions:
        """The probabilities of all sample counts, as far as they differ from 0."""
        true = _counts(true)
        N, n = self.population, self.sample
        if bool((true > N).any()):
            raise InputError("A true count is larger than the population.")
        mean = true * (n / max(N, 1))
        spread = _WIDE * np.sqrt(mean * (1 - n / max(N, 1))) + _WIDE * _WIDE
        low = np.maximum(np.maximum(np.floor(mean - spread), n - (N - true)), 0)
        high = np.minimum(np.minimum(np.ceil(mean + spread), true), n)
        return _rows(true, low, high, lambda f, F: hypergeometric(f, N, F, n))

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """At least the sample count, at most that plus everybody who was not drawn."""
        published = np.asarray(published, dtype=np.int64)
        return published.copy(), published + (self.population - self.sample)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean probability that all of a cell are drawn, over the values that a cell can have."""
        last = self.population if highest is None else min(highest, self.population)
        if last < lowest:
            return 1.0
        # P(all F are drawn) = prod (n - i) / (N - i), i below F.
        i = np.arange(min(last, self.sample))
        all_drawn = np.concatenate(
            ([1.0], np.cumprod((self.sample - i) / np.maximum(self.population - i, 1)))
        )
        return float(all_drawn[lowest : last + 1].sum() / (last - lowest + 1))


def _counts(true: Ints) -> Ints:
    true = np.asarray(true, dtype=np.int64)
    if true.size and int(true.min()) < 0:
        raise InputError("Sampling is for counts of 0 or more.")
    return true


def _rows(
    true: Ints, low: Floats, high: Floats, probability: Callable[[Ints, Ints], Floats]
) -> Transitions:
    length = (high - low).astype(np.int64) + 1
    origin, shown = row_entries(low, length)
    p = np.asarray(probability(shown, true[origin]), dtype=np.float64)
    some = p > 0
    return Transitions(origin[some], shown[some], p[some])
