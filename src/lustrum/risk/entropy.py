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

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.arithmetic import exp, log

if TYPE_CHECKING:
    from lustrum.audit import Belief


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


# Cell-level risk after release: the reciprocal of the entropy of what a reader can believe.
#
# ``DR(X) = 1 / H(X | Y = y) = 1 / (-sum_x p(x|y) log p(x|y))`` (Domingo-Ferrer, Oganian and Torra 2002,
# equation 2), which is ``1 / log m`` where m values are alike (equation 3). Both papers behind this
# measure use it: the first in bits, Duncan, Fienberg, Krishnan, Padman and Roehrig (2001, section 5) in
# nats. Their general model of risk is ``sum_k r(k) p(k)`` (section 2).


def cell_entropy(belief: Belief, base: float = 2.0) -> Floats:
    """The risk of each cell: 0 where anything is possible, infinite where one value is left.

    >>> from lustrum.audit import Belief
    >>> cell_entropy(Belief.uniform([0, 5, 0], [406, 5, 2])).round(4).tolist()
    [0.1154, inf, 0.6309]
    >>> fair = Belief.explicit([([0, 1, 2], [0.25, 0.5, 0.25])])
    >>> cell_entropy(fair).tolist(), cell_entropy(fair, base=np.e).round(4).tolist()
    ([0.6666666666666666], [0.9618])
    """
    entropy = belief.entropy(base)
    risk = np.full(entropy.shape, np.inf)
    np.divide(1.0, entropy, out=risk, where=entropy > 0)
    return risk


def expected_risk(belief: Belief, harm: Callable[[Ints], npt.ArrayLike]) -> Floats:
    """``sum_k r(k) p(k)`` for each cell, with r(k) the harm done by learning that its value is k.

    The function takes an array of values, in units of the belief's last decimal, and gives one number
    of 0 or more for each.

    >>> from lustrum.audit import Belief
    >>> published_3 = Belief.uniform([1], [5])
    >>> expected_risk(published_3, lambda k: 1 / k).round(4).tolist()
    [0.4567]
    >>> expected_risk(published_3, lambda k: k == 1).tolist()
    [0.2]
    """

    def checked(values: Ints) -> Floats:
        harms = np.asarray(harm(values), dtype=np.float64)
        if not bool((harms >= 0).all()):
            raise InputError(
                "The harm of a value is negative or not a number; it must be 0 or more."
            )
        return harms

    return belief.expectation(checked)
