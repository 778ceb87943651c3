"""``R1``: the risk of publishing a table of the whole population as it is.

Antal, Shlomo and Elliot (2015), equation 3:

    R1(F, w) = w1 |D| / K + w2 (1 - H(X) / log K) - w3 (1 / sqrt N) log(1 / (e sqrt N))

with ``D`` the empty cells among ``K`` and ``N`` people. Every term lies between 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.parameters import floats, parameter
from lustrum.numeric.arithmetic import log
from lustrum.risk.counts import CountsLike, cells_of, check_scale, check_weights
from lustrum.risk.entropy import entropy, size_of
from lustrum.risk.measure import RiskSpec

WEIGHTS = (0.1, 0.8, 0.1)
"""The paper's weights of zeros, entropy and size."""


def r1(table: CountsLike, weights: Sequence[float] | Literal["l2"] = WEIGHTS) -> float:
    """The risk of a table or an array-like of counts of any dimension; from 0 to 1.

    With ``"l2"`` for weights it is the L2 norm of the three terms over the square root of 3 (Shlomo, Antal
    and Elliot 2015, section 4.1).

    >>> round(r1([[10, 10], [10, 10]]), 3), round(r1([[1, 0], [0, 0]]), 3)
    (0.045, 0.975)
    """
    checked = None if weights == "l2" else check_weights(weights)
    counts = cells_of(table).measured
    check_scale(counts)
    if checked is None:
        terms = np.array([r1_values(counts, unit) for unit in np.eye(3).tolist()])
        return float(np.sqrt((terms**2).mean()))
    return float(r1_values(counts, checked))


def r1_values(counts: Ints, weights: Sequence[float] = WEIGHTS) -> Floats:
    """Equation 3 over the last axis of an array of counts, unchecked; axes before it are batches.

    >>> r1_values(np.array([[5, 5], [5, 0]])).round(2).tolist()
    [0.07, 0.93]
    """
    zeros, spread, size = weights
    return np.asarray(
        zeros * (counts == 0).mean(axis=-1)
        + spread * np.maximum(1.0 - entropy(counts) / log(counts.shape[-1]), 0.0)
        + size * size_of(counts.sum(axis=-1))
    )


@dataclass(frozen=True)
class R1(RiskSpec):
    """The measure with its weights, to be applied to many tables.

    >>> R1().before(Table.from_counts([[10, 10], [10, 10]])) < 0.1
    True
    """

    name: ClassVar[str] = "r1"
    weights: tuple[float, float, float] | Literal["l2"] = parameter(
        WEIGHTS,
        "Weights of zeros, entropy and size, which add up to 1; or the L2 norm of the three.",
        least=0,
        read=floats,
    )

    def check_together(self) -> None:
        """The weights add up."""
        if self.weights != "l2":
            check_weights(self.weights)

    def before(self, table: Table) -> float:
        return r1(table, self.weights)
