"""Measures of information: divergence from the true distribution, and the change of entropy."""

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


# How much the entropy of the cells changes.


@dataclass(frozen=True)
class EntropyChange(UtilitySpec):
    """``|H(G / M) - H(F / N)|`` in nats; from 0 to ``log K``, lower is better."""

    name: ClassVar[str] = "entropy-change"
    range: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    better: ClassVar[Better] = "lower"
    impute: Impute = suppressed_cells()

    def of(self, table: Table, release: Release) -> float:
        """The change that a release makes to the entropy of its table."""
        return abs(entropy_change(*compare(table, release, self.impute).cells))


def entropy_change(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``H(G / M) - H(F / N)``: above 0 the release looks more even than the table is.

    >>> round(entropy_change([2, 0], [1, 1]), 4)
    0.6931
    """
    F, G = as_pair(original, published, signed=False)
    return cell_entropy(G) - cell_entropy(F)


def cell_entropy(counts: npt.ArrayLike) -> float:
    """``-sum p log p`` of the cells' shares (Shlomo, Antal, Elliot 2015, equation 1).

    >>> cell_entropy([3, 0])
    0.0
    """
    array = np.asarray(counts, dtype=np.float64)
    if not array.size or not array.sum() > 0:
        raise InputError("A table without anybody in it has no entropy.")
    share = array[array > 0] / array.sum()
    return abs(float((share * log(share)).sum()))
