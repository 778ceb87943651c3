"""How much the entropy of the cells changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.numeric.arithmetic import log
from lustrum.utility.compare import Better, UtilitySpec, as_pair, compare
from lustrum.utility.impute import Impute, suppressed_cells


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
