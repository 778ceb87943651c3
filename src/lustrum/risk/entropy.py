"""Entropy of a table and conditional entropy of a population given what is published of it.

All logarithms are natural. Arrays hold one table in their last axis; axes before it are batches.

The conditional entropy of Antal, Shlomo and Elliot (2015, equation 2) needs a joint distribution that
the two tables do not give. Both are stretched to a common size and their people matched so that as
many as possible stand in the same cell of both; the conditional probabilities are averages over
all matchings of that kind. With shares ``p = F / N`` and ``q = f / n``, common parts
``m = min(p, q)``, surplus ``a = p - m``, deficit ``b = q - m`` and ``s = sum a = sum b`` the average is

    Pr(X = i | Y = j) = (m_j [i = j] + b_j a_i / s) / q_j

because, by symmetry, an unmatched person of column ``j`` is equally likely to be any unmatched one of
the rows. A row has either a surplus or a deficit, never both, so the double sum of equation 2 falls
apart. Writing ``L(x) = x log x``,

    H(X|Y) = L(s) - sum_i L(a_i) - sum_j L(b_j) + sum over b_j > 0 of (L(q_j) - L(p_j)),

which takes one pass over the cells instead of one over all pairs of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import exp, log


def xlogx(values: npt.ArrayLike) -> Floats:
    """``x log x``, which is 0 at 0.

    >>> xlogx([0.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    x = np.asarray(values, dtype=np.float64)
    return np.asarray(x * log(np.where(x > 0, x, 1.0)))


def entropy(counts: npt.ArrayLike) -> Floats:
    """``H(X) = -sum F_i / N log(F_i / N)`` (equation 1) over the last axis.

    >>> round(float(entropy([1, 1])), 12)  # log 2
    0.69314718056
    """
    return np.asarray(np.maximum(-xlogx(_shares(counts)).sum(axis=-1), 0.0))


def conditional_entropy(population: npt.ArrayLike, published: npt.ArrayLike) -> Floats:
    """``H(X|Y)`` (equation 2) over the last axis: what the published table leaves open.

    It is 0 where the tables are proportional and never exceeds ``H(X)``.

    >>> float(conditional_entropy([20, 10, 30], [2, 1, 3]))
    0.0
    """
    # Equal ratios give equal doubles, since a division is rounded correctly: 0 above is exact.
    p, q = _shares(population), _shares(published)
    surplus, deficit = np.maximum(p - q, 0.0), np.maximum(q - p, 0.0)
    apart = xlogx(surplus.sum(axis=-1)) - xlogx(surplus).sum(axis=-1) - xlogx(deficit).sum(axis=-1)
    deficit_term = np.where(deficit > 0, xlogx(q) - xlogx(p), 0.0).sum(axis=-1)
    return np.asarray(np.clip(apart + deficit_term, 0.0, entropy(population)))


def size_of(people: npt.ArrayLike) -> Floats:
    """``-(1 / sqrt N) log(1 / (e sqrt N))``, the last term of equations 3 and 4.

    It is 1 for one person and falls towards 0.

    >>> float(size_of(1))
    1.0
    """
    root = np.sqrt(np.asarray(people, dtype=np.float64))
    return np.asarray((1.0 + log(root)) / root)


def share_to_power(share: npt.ArrayLike, exponent: npt.ArrayLike) -> Floats:
    """``share ** exponent`` of shares from 0 to 1, for exponents of 1 or more; never above the share.

    >>> share_to_power([0.0, 0.5, 0.3], [3.0, 2.0, 1.0]).round(12).tolist()
    [0.0, 0.25, 0.3]
    """
    x, n = np.asarray(share, dtype=np.float64), np.asarray(exponent, dtype=np.float64)
    some = (x > 0) & (n > 1)
    grown = exp(np.where(some, n, 1.0) * log(np.where(some, x, 1.0)))
    return np.asarray(np.where(some, np.minimum(grown, x), x))


def _shares(counts: npt.ArrayLike) -> Floats:
    values = np.asarray(counts, dtype=np.float64)
    return np.asarray(values / values.sum(axis=-1, keepdims=True))
