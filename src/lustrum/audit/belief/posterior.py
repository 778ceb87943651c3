"""Bayes: from a published value, a channel and a prior to the belief about the true value.

``p(k | published) = P(published | k) prior(k) / sum_j P(published | j) prior(j)``, cell by cell (Duncan,
Fienberg, Krishnan, Padman and Roehrig 2001, section 4). What cells reveal about each other enters through
their feasible ranges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.audit.belief.belief import Belief
from lustrum.audit.belief.priors import Prior, Uniform
from lustrum.model import Channel, InputError, MatrixChannel
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.structure.ragged import distinct

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

    >>> from lustrum.audit.belief.channels import MarkovSquare
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


def _chances(published: Ints, row: npt.NDArray[np.intp], values: Ints, channel: Channel) -> Floats:
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
