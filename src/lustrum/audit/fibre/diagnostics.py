"""Convergence diagnostics of sampled chains: split R-hat and effective sample size.

Gelman, Carlin, Stern, Dunson, Vehtari and Rubin (2013), *Bayesian Data Analysis*.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import log


def split_rhat(chains: npt.ArrayLike) -> Floats:
    """R-hat of each quantity in an array of (chains, draws, quantities), each chain cut in halves.

    Near 1 where all halves agree; infinite where each half is constant at a different value; not a number
    where nothing ever moved, which proves nothing.

    >>> same = np.random.default_rng(1).random(size=(4, 500, 1))
    >>> bool(abs(split_rhat(same)[0] - 1) < 0.01), split_rhat(np.zeros((2, 8, 1))).tolist()
    (True, [nan])
    """
    halves = _halves(chains)
    draws = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = draws * halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (draws - 1) / draws * within + between / draws
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(pooled / within))


def effective_size(chains: npt.ArrayLike) -> Floats:
    """How many independent draws the chains are worth, for the mean of each quantity.

    Autocorrelations of the halves are pooled and summed in pairs until a pair is negative (Geyer 1992,
    initial positive and monotone sequence). Not a number where nothing ever moved.

    >>> free = np.random.default_rng(1).random(size=(4, 1000, 1))
    >>> bool(3000 < effective_size(free)[0] < 5000)
    True
    """
    halves = _halves(chains)
    count, draws, _ = halves.shape
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (draws - 1) / draws * within + between
    centred = halves - halves.mean(axis=1, keepdims=True)
    shortest = log(10.0) / log(max(count * draws, 10))
    time = np.maximum(2.0 * _summed_pairs(centred, within, pooled) - 1.0, shortest)
    return np.where(pooled > 0, count * draws / time, np.nan)


def _summed_pairs(centred: Floats, within: Floats, pooled: Floats) -> Floats:
    """The sum of the pairs of autocorrelations before the first that is not positive, none above the last.

    Lag by lag, by plain sums, for the quantities that still go on: few lags are needed where chains mix.
    """
    draws = centred.shape[1]
    total = np.zeros(pooled.size)
    least = np.full(pooled.size, np.inf)
    on = np.flatnonzero(pooled > 0)
    for lag in range(0, draws - draws % 2, 2):
        if on.size == 0:
            break
        values = np.ascontiguousarray(centred[:, :, on])
        pair = np.zeros(on.size)
        for k in (lag, lag + 1):
            products = values[:, : draws - k] * values[:, k:]
            shared = products.sum(axis=1).mean(axis=0) / (draws - 1)
            pair += 1.0 if k == 0 else 1.0 - (within[on] - shared) / pooled[on]
        going = pair > 0
        on = on[going]
        least[on] = np.minimum(least[on], pair[going])
        total[on] += least[on]
    return total


def _halves(chains: npt.ArrayLike) -> Floats:
    values = np.asarray(chains, dtype=np.float64)
    if values.ndim != 3 or values.shape[1] < 4:
        raise InputError("Chains come as (chains, draws, quantities), with four draws at least.")
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]], axis=0)
