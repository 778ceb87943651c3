"""Priors: what an attacker believes about a cell before the release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.arithmetic import exp, log_gamma


class Prior(Protocol):
    """Weights for values; they need not add up to 1."""

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats:
        """The weight of each value, given the feasible range of the cell it is meant for."""
        ...


@dataclass(frozen=True)
class Uniform:
    """Every value from low to high is equally probable; without ends, every feasible value.

    >>> Uniform(1, 3).weights(np.arange(5), np.zeros(5, int), np.full(5, 4)).tolist()
    [0.0, 1.0, 1.0, 1.0, 0.0]
    """

    low: int | None = None
    high: int | None = None

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats:
        """1 inside, 0 outside."""
        return _inside(values, self.low, self.high).astype(np.float64)


@dataclass(frozen=True)
class TablePrior:
    """A list of values with their probabilities; all other values are impossible."""

    values: tuple[int, ...]
    probabilities: tuple[float, ...] = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(int(v) for v in self.values))
        object.__setattr__(self, "probabilities", tuple(float(p) for p in self.probabilities))
        if not self.values:
            raise InputError("A prior lists no value; it needs at least one.")
        if len(self.values) != len(self.probabilities) or len(set(self.values)) < len(self.values):
            raise InputError("A prior needs distinct values and one probability for each.")
        if not all(p >= 0 for p in self.probabilities):
            raise InputError("A probability is negative or not a number; it must be 0 or more.")
        if abs(sum(self.probabilities) - 1.0) > 1e-9:
            raise InputError("The probabilities of a prior must add up to 1.")

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats:
        """The listed probabilities."""
        return _looked_up(values, np.array(self.values), np.array(self.probabilities))


@dataclass(frozen=True)
class BetaBinomial:
    """A beta-binomial distribution over a range; without ends, over the feasible range.

    ``P(x) = C(n, k) B(k + a, n - k + b) / B(a, b)`` with ``k = x - low`` and ``n = high - low`` (Duncan,
    Fienberg, Krishnan, Padman and Roehrig 2001, section 4). With a = b = 1 it is uniform.

    >>> ends = np.zeros(3, int), np.full(3, 2)
    >>> BetaBinomial(alpha=1, beta=1).weights(np.arange(3), *ends).round(6).tolist()
    [0.333333, 0.333333, 0.333333]
    """

    low: int | None = None
    high: int | None = None
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        if not (0 < self.alpha < np.inf and 0 < self.beta < np.inf):
            raise InputError("A beta-binomial prior needs alpha and beta above 0.")

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats:
        """The probabilities over the range."""
        first = low if self.low is None else np.full_like(low, self.low)
        last = high if self.high is None else np.full_like(high, self.high)
        n, k = last - first, values - first
        inside = (k >= 0) & (k <= n)
        n, k = np.where(inside, n, 0), np.where(inside, k, 0)
        ways = log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)
        logs = ways + _log_beta(k + self.alpha, n - k + self.beta)
        return np.where(inside, exp(logs - _log_beta(self.alpha, self.beta)), 0.0)


@dataclass(frozen=True)
class ReferenceFrequencies:
    """How often each value occurs among the cells of a reference population.

    ``smoothing`` is added to every frequency, so that values missing from the reference stay possible.

    >>> ReferenceFrequencies.of([0, 0, 0, 1]).weights(np.arange(3), np.zeros(3), np.zeros(3)).tolist()
    [3.0, 1.0, 0.0]
    """

    values: tuple[int, ...] = field(repr=False)
    frequencies: tuple[int, ...] = field(repr=False)
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if len(self.values) != len(self.frequencies) or not self.values:
            raise InputError("Reference frequencies need values and one frequency for each.")
        if min(self.frequencies) < 0 or not 0 <= self.smoothing < np.inf:
            raise InputError("A frequency is negative; it must be 0 or more.")

    @classmethod
    def of(cls, counts: npt.ArrayLike, smoothing: float = 0.0) -> ReferenceFrequencies:
        """The frequencies of the counts in a reference table."""
        values, seen = np.unique(np.asarray(counts, dtype=np.int64), return_counts=True)
        return cls(tuple(values.tolist()), tuple(seen.tolist()), smoothing)

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats:
        """The frequency of each value."""
        known = np.array(self.frequencies, dtype=np.float64)
        return _looked_up(values, np.array(self.values), known) + self.smoothing


def _log_beta(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    return log_gamma(a) + log_gamma(b) - log_gamma(np.add(a, b))


def _check_range(low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        raise InputError("The lowest value of a prior is above its highest.")


def _inside(values: Ints, low: int | None, high: int | None) -> npt.NDArray[np.bool_]:
    inside = np.ones(values.shape, dtype=np.bool_)
    if low is not None:
        inside &= values >= low
    if high is not None:
        inside &= values <= high
    return inside


def _looked_up(values: Ints, known: Ints, weights: Floats) -> Floats:
    order = np.argsort(known, kind="stable")
    known, weights = known[order], weights[order]
    index = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.where(known[index] == values, weights[index], 0.0)
