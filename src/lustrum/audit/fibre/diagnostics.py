"""Convergence diagnostics of sampled chains: split R-hat and effective sample size.

Gelman, Carlin, Stern, Dunson, Vehtari and Rubin (2013), *Bayesian Data Analysis*.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Floats
from lustrum.model import InputError

__all__ = ["effective_size", "split_rhat"]


def split_rhat(chains: npt.ArrayLike) -> Floats:
    """R-hat of each quantity in an array of (chains, draws, quantities), each chain cut in halves.

    Near 1 where all halves agree; infinite where each half is constant at a different value; not a number
    where nothing ever moved, which proves nothing.

    >>> same = np.random.default_rng(1).normal(size=(4, 500, 1))
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

    >>> free = np.random.default_rng(1).normal(size=(4, 1000, 1))
    >>> bool(3000 < effective_size(free)[0] < 5000)
    True
    """
    halves = _halves(chains)
    count, draws, _ = halves.shape
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    pooled = (draws - 1) / draws * within + between
    centred = halves - halves.mean(axis=1, keepdims=True)
    size = 1 << (2 * draws - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    lags = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :draws].mean(axis=0) / draws
    with np.errstate(invalid="ignore"):
        rho = 1.0 - (within - lags * draws / (draws - 1)) / pooled
    rho[0] = 1.0
    even = draws - draws % 2
    pairs = rho[0:even:2] + rho[1:even:2]
    kept = np.logical_and.accumulate(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.where(kept, pairs, 0.0), axis=0)
    time = np.maximum(2.0 * falling.sum(axis=0) - 1.0, 1.0 / np.log10(max(count * draws, 10)))
    return np.where(pooled > 0, count * draws / time, np.nan)


def _halves(chains: npt.ArrayLike) -> Floats:
    values = np.asarray(chains, dtype=np.float64)
    if values.ndim != 3 or values.shape[1] < 4:
        raise InputError("Chains come as (chains, draws, quantities), with four draws at least.")
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]], axis=0)
