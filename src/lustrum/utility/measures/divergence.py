"""Kullback-Leibler divergence of a release from its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.parameters import parameter
from lustrum.numeric.arithmetic import log
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


@dataclass(frozen=True)
class Divergence(UtilitySpec):
    """``sum p log(p / q)`` in nats, with ``p`` the true and ``q`` the published shares.

    From 0 up, lower is better. It exists only where no populated cell is published as 0; a
    ``smoothing`` above 0 is added to every cell of both tables first and makes it exist always.
    """

    name: ClassVar[str] = "divergence"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"
    smoothing: float = parameter(0.0, "What is added to every cell, so that none is 0.", least=0)
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The divergence of a release from its table."""
        return divergence(*compare(table, release, self.impute).cells, self.smoothing)


def divergence(original: npt.ArrayLike, published: npt.ArrayLike, smoothing: float = 0.0) -> float:
    """``sum p log(p / q)`` over the cells with ``p > 0``.

    >>> divergence([1, 1], [2, 2]), round(divergence([1, 1], [2, 0], smoothing=1.0), 4)
    (0.0, 0.1438)
    """
    _check(smoothing)
    F, G = as_pair(original, published, signed=False)
    F, G = F + smoothing, G + smoothing
    if not F.any() or not G.any():
        raise InputError("A table without anybody in it has no shares.")
    populated = F > 0
    if (G[populated] == 0).any():
        raise InputError(
            "A populated cell is published as 0, where the divergence does not exist; "
            "give a smoothing above 0."
        )
    p, q = F[populated] / F.sum(), G[populated] / G.sum()
    return max(0.0, float((p * log(p / q)).sum()))


def _check(smoothing: float) -> None:
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InputError(f"The smoothing of a divergence is 0 or more, not {smoothing!r}.")
