"""Cell-level risk after release: the reciprocal of the entropy of what a reader can believe.

``DR(X) = 1 / H(X | Y = y) = 1 / (-sum_x p(x|y) log p(x|y))`` (Domingo-Ferrer, Oganian and Torra 2002,
equation 2), which is ``1 / log m`` where m values are alike (equation 3). Both papers behind this
measure use it: the first in bits, Duncan, Fienberg, Krishnan, Padman and Roehrig (2001, section 5) in
nats. Their general model of risk is ``sum_k r(k) p(k)`` (section 2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints

if TYPE_CHECKING:
    from lustrum.audit import Belief


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
