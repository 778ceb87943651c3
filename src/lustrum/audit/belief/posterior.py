"""Bayes: from a published value, a channel and a prior to the belief about the true value.

``p(k | published) = P(published | k) prior(k) / sum_j P(published | j) prior(j)``, cell by cell (Duncan,
Fienberg, Krishnan, Padman and Roehrig 2001, section 4). What cells reveal about each other enters through
their feasible ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lustrum.audit.belief.belief import Belief
from lustrum.model import Channel, InputError, MatrixChannel, Transitions
from lustrum.model.arrays import Floats, Indices, Ints, Mask
from lustrum.numeric.arithmetic import exp, log_gamma
from lustrum.numeric.distributions import binomial, convolved
from lustrum.numeric.structure.ragged import distinct

# Priors: what an attacker believes about a cell before the release.


class Prior(Protocol):
    """Weights for values; they need not add up to 1."""

    def weights(self, values: Ints, low: Ints, high: Ints) -> Floats: ...


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


def _log_beta(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    return log_gamma(a) + log_gamma(b) - log_gamma(np.add(a, b))


def _check_range(low: int | None, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        raise InputError("The lowest value of a prior is above its highest.")


def _inside(values: Ints, low: int | None, high: int | None) -> Mask:
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


@dataclass(frozen=True)
class MarkovSquare:
    """One cell of a 2 x 2 square after Markov perturbation, which keeps all margins of the square.

    Let w be the true value and c the least value that the margins allow. Each of the w - c people above c
    leaves the cell with probability theta. Each person of the same column who could still enter does so
    with probability
    ``q = theta r / (1 - r)``, ``r = w / column``. Hence

        ``M = c + Binom(w - c, 1 - theta) + Binom(most - w, q)``

    (Duncan, Fienberg, Krishnan, Padman and Roehrig 2001, section 4). The agency cannot choose a theta above
    ``(1 - r) / r``, so a reader who knows theta can rule out such a w.

    >>> square = MarkovSquare(row=15, column=18, total=115, theta=0.05)
    >>> found = square.transitions(np.array([3]))
    >>> round(float(found.probability[found.published == 3].sum()), 4)
    0.7746
    """

    row: int
    column: int
    total: int
    theta: float

    def __post_init__(self) -> None:
        if not 0 <= self.theta <= 1:
            raise InputError(f"The parameter theta is {self.theta}; it must lie between 0 and 1.")
        if not 0 <= max(self.row, self.column) <= self.total or min(self.row, self.column) < 0:
            raise InputError(
                "The row and column totals of a square lie between 0 and its grand total."
            )

    @property
    def least(self) -> int:
        """The smallest value that the margins allow."""
        return max(0, self.row + self.column - self.total)

    @property
    def most(self) -> int:
        """The largest value that the margins allow."""
        return min(self.row, self.column)

    @cached_property
    def matrix(self) -> Floats:
        """``P(published | true)`` over ``least .. most``; a row of zeros where theta rules w out."""
        size = self.most - self.least + 1
        out = np.zeros((size, size))
        for stay in range(size):
            enter = self._enter(stay + self.least, size - 1 - stay)
            if enter is None:
                continue
            stayers = binomial(np.arange(stay + 1), stay, 1.0 - self.theta)
            comers = binomial(np.arange(size - stay), size - 1 - stay, enter)
            out[stay] = convolved(stayers, comers)
        return out

    def _enter(self, true: int, movers: int) -> float | None:
        """The probability to enter the cell, or None where theta is too large."""
        if movers == 0:
            return 0.0
        enter = self.theta * true / (self.column - true)
        return enter if enter <= 1.0 else None

    def transitions(self, true: Ints) -> Transitions:
        """The rows of these true values."""
        rows = np.asarray(true, dtype=np.int64) - self.least
        if bool(((rows < 0) | (rows > self.most - self.least)).any()):
            raise InputError("A true value is outside what the margins of the square allow.")
        origin, column = np.nonzero(self.matrix[rows])
        return Transitions(
            origin, column.astype(np.int64) + self.least, self.matrix[rows[origin], column]
        )

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """All values that the margins allow."""
        shape = np.shape(published)
        return np.full(shape, self.least, np.int64), np.full(shape, self.most, np.int64)

    def stay(self, lowest: int, highest: int | None) -> float:
        """The mean probability over the range that a value stays as it is."""
        end = None if highest is None else highest + 1 - self.least
        part = np.diagonal(self.matrix)[max(lowest - self.least, 0) : end]
        if part.size == 0:
            raise InputError("The square has no values in that range.")
        return float(part.mean())


_MOST = 2 * 10**7  # values handled at once


def posterior(
    published: npt.ArrayLike,
    channel: Channel,
    prior: Prior | None = None,
    support: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    *,
    decimals: int = 0,
) -> Belief:
    """The belief about the true value of each published cell.

    ``support`` is the feasible range of each cell; the default is the range that the channel alone allows.

    >>> from lustrum.model import MatrixChannel
    >>> coarse = MatrixChannel(np.array([[1.0, 0.0], [0.5, 0.5]]))
    >>> belief = posterior(0, coarse)
    >>> belief.values.tolist(), belief.probabilities.round(6).tolist()
    ([0, 1], [0.666667, 0.333333])
    """
    shown = np.atleast_1d(np.asarray(published, dtype=np.int64)).ravel()
    low, high = channel.support(shown) if support is None else support
    lows, highs = (np.broadcast_to(np.asarray(a, np.int64), shown.shape) for a in (low, high))
    return weighted(lows, highs, prior or Uniform(), shown, channel, decimals=decimals)


def likelihood(published: int, channel: Channel, values: npt.ArrayLike) -> Floats:
    """``P(published | value)`` for each value.

    >>> from lustrum.audit.belief.posterior import MarkovSquare
    >>> square = MarkovSquare(row=15, column=18, total=115, theta=0.1)
    >>> likelihood(3, square, [1, 2, 3, 4]).round(4).tolist()
    [0.0026, 0.1151, 0.6193, 0.2235]
    """
    flat = np.atleast_1d(np.asarray(values, dtype=np.int64))
    return _chances(np.array([published]), np.zeros(flat.size, dtype=np.intp), flat, channel)


def weighted(
    low: Ints,
    high: Ints,
    prior: Prior,
    published: Ints | None = None,
    channel: Channel | None = None,
    *,
    decimals: int = 0,
) -> Belief:
    """The prior over each range, times the channel's probability of the published value, if given."""
    if low.size == 0:
        raise InputError("There is no cell to believe anything about.")
    if bool((low > high).any()):
        raise InputError("A cell has no feasible value: its lower bound is above its upper bound.")
    sizes = high - low + 1
    if not float(sizes.astype(np.float64).sum()) <= _MOST:
        raise InputError(
            "There are too many possible values to weigh; bound the cells more narrowly."
        )
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    row = np.repeat(np.arange(low.size), sizes)
    values = np.arange(row.size, dtype=np.int64) - indptr[row] + low[row]
    weights = np.asarray(prior.weights(values, low[row], high[row]), dtype=np.float64)
    if not bool((weights >= 0).all()):
        raise InputError("A prior gives a negative weight or none at all; it must give 0 or more.")
    if channel is not None and published is not None:
        weights = weights * _chances(published, row, values, channel)
    total = np.add.reduceat(weights, indptr[:-1])
    if not bool((total > 0).all()):
        raise InputError(
            "Nothing is left to believe about a cell: the prior or the channel rules out every value "
            "that the published cells allow."
        )
    return Belief.of_lists(indptr, values, weights / total[row], decimals=decimals)


def _chances(published: Ints, row: Indices, values: Ints, channel: Channel) -> Floats:
    """``P(published[row] | value)`` for each pair of a cell and a value."""
    pair_by_pair = getattr(channel, "chances", None)
    if pair_by_pair is not None:
        return np.asarray(pair_by_pair(values, published[row]), dtype=np.float64)
    if isinstance(channel, MatrixChannel):
        return channel.probabilities(values, published[row])
    true, true_index = distinct(values)
    shown, code = distinct(published)
    transitions = channel.transitions(true)
    column = np.minimum(np.searchsorted(shown, transitions.published), shown.size - 1)
    hit = shown[column] == transitions.published
    key = transitions.origin[hit] * shown.size + column[hit]
    order = np.argsort(key, kind="stable")
    key, chance = key[order], transitions.probability[hit][order]
    if key.size == 0:
        return np.zeros(values.shape)
    wanted = true_index.ravel() * shown.size + code.ravel()[row]
    at = np.minimum(np.searchsorted(key, wanted), key.size - 1)
    return np.where(key[at] == wanted, chance[at], 0.0)
