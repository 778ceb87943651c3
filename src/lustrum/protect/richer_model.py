"""Whether a table is consistent with a log-linear model fitted to another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.protect.restore import fit

__all__ = ["RicherModel"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class RicherModel:
    """Expected counts of a log-linear model with their degrees of freedom.

    >>> model = RicherModel.of(np.array([[10, 20], [30, 60]]), [(0,), (1,)])
    >>> model.expected.round(6).tolist(), model.freedom
    ([[10.0, 20.0], [30.0, 60.0]], 1)
    """

    expected: Floats
    freedom: int

    def __repr__(self) -> str:
        return "RicherModel(hidden)"

    @classmethod
    def of(
        cls,
        counts: Ints,
        cliques: Sequence[Axes],
        possible: npt.NDArray[np.bool_] | None = None,
    ) -> RicherModel:
        """Fit the model of these margins by iterative proportional fitting."""
        every = range(counts.ndim)
        start = np.ones(counts.shape) if possible is None else possible.astype(np.float64)
        margins = {
            tuple(sorted(c)): counts.sum(axis=tuple(a for a in every if a not in c))
            for c in cliques
        }
        expected = fit(start, margins).values
        return cls(expected, max(0, int((expected > 0).sum()) - _parameters(expected, cliques)))

    def deviance(self, counts: Ints) -> float:
        """The likelihood-ratio statistic ``G2 = 2 sum x log(x / m)``; infinite where nobody was expected."""
        inside = counts > 0
        if bool((self.expected[inside] <= 0).any()):
            return float(np.inf)
        ratio = counts[inside] / self.expected[inside]
        return float(max(0.0, 2 * (counts[inside] * np.log(ratio)).sum()))

    def consistent(self, counts: Ints, level: float) -> bool:
        """Whether a test at that level does not reject the model for these counts."""
        from scipy.stats import chi2

        if self.freedom == 0:
            return self.deviance(counts) < 1e-9
        return bool(chi2.sf(self.deviance(counts), self.freedom) >= level)


def _parameters(expected: Floats, cliques: Sequence[Axes]) -> int:
    """The rank of the model over the cells where anybody is expected."""
    cells = np.flatnonzero(expected > 0)
    at = np.unravel_index(cells, expected.shape)
    if cells.size == 0:
        return 0
    blocks = []
    for clique in cliques:
        places = [at[a] for a in clique]
        sizes = [expected.shape[a] for a in clique]
        index = np.ravel_multi_index(places, sizes) if clique else np.zeros(cells.size, np.intp)
        _, number = np.unique(index, return_inverse=True)
        blocks.append(np.eye(int(number.max()) + 1)[number])
    if cells.size > _DENSE:
        return _by_formula(expected.shape, cliques)
    return int(np.linalg.matrix_rank(np.hstack(blocks)))


_DENSE = 1500


def _by_formula(shape: Sequence[int], cliques: Sequence[Axes]) -> int:
    """The number of parameters of a hierarchical model without empty margins: all its interactions."""
    terms: set[Axes] = set()
    for clique in cliques:
        axes = sorted(clique)
        for mask in range(1 << len(axes)):
            terms.add(tuple(a for i, a in enumerate(axes) if mask >> i & 1))
    return sum(int(np.prod([shape[a] - 1 for a in term])) for term in terms)
