"""Fitting hierarchical log-linear models to tables of any dimension.

A model is named by its generators: the margins that the fitted table shares with the observed one
(Bishop, Fienberg and Holland 1975, chapter 3). Iterative proportional fitting scales a table that starts
even, margin by margin, until all of them agree; for complete independence one product does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import log
from lustrum.numeric.later import sparse
from lustrum.numeric.structure.rank import matrix_rank

Generators = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class LogLinearFit:
    """A fitted model: cell probabilities and how well they fit.

    ``parameters`` are the free ones of the cell probabilities, one less than the rank of the design
    on the cells that can be positive. ``degrees`` is what is left of those cells.
    """

    generators: Generators
    probabilities: Floats
    counts: Ints
    possible: Mask
    rounds: int
    converged: bool

    @cached_property
    def support(self) -> Mask:
        """Possible cells in which no margin is empty: where the model can put people."""
        mask = self.possible.copy()
        for generator in self.generators:
            mask &= _margin(self.counts, generator) > 0
        return mask

    @cached_property
    def rank(self) -> int:
        """Independent margins on the support."""
        try:
            return matrix_rank(_design(self.generators, self.support))
        except InputError:  # too large for elimination
            return _counted_rank(self.generators, self.support)

    @property
    def parameters(self) -> int:
        return self.rank - 1

    @property
    def degrees(self) -> int:
        return int(self.support.sum()) - self.rank

    @cached_property
    def log_likelihood(self) -> float:
        """``sum f log p``, without the multinomial coefficient, which all models share."""
        seen = self.counts > 0
        return float((self.counts[seen] * log(self.probabilities[seen])).sum())

    @property
    def deviance(self) -> float:
        """``G2 = 2 sum f log(f / (n p))`` of the counts that were fitted."""
        return self.deviance_of(self.counts)

    def deviance_of(self, counts: Ints) -> float:
        """The same of any counts: how far they are from the model; infinite where it puts nobody."""
        seen = counts > 0
        f, p = counts[seen].astype(np.float64), self.probabilities[seen]
        if bool((p <= 0).any()):
            return float(np.inf)
        return max(0.0, 2.0 * float((f * log(f / (f.sum() * p))).sum()))

    @property
    def aic(self) -> float:
        """Akaike's criterion, ``-2 log L + 2 parameters``; the smaller the better."""
        return -2.0 * self.log_likelihood + 2.0 * self.parameters


def fit_generators(
    counts: Ints,
    possible: Mask,
    generators: Generators,
    tolerance: float = 1e-9,
    rounds: int = 2000,
) -> LogLinearFit:
    """Fit the model that keeps these margins, in closed form where there is one.

    >>> counts = np.array([[8, 2], [4, 6]])
    >>> fit = fit_generators(counts, np.ones((2, 2), dtype=bool), ((0,), (1,)))
    >>> fit.probabilities.tolist(), fit.degrees, fit.rounds
    ([[0.3, 0.2], [0.3, 0.2]], 1, 0)
    """
    alone = all(len(generator) == 1 for generator in generators)
    if alone and possible.all():
        p = np.ones(counts.shape)
        for axis in range(counts.ndim):
            share = _margin(counts, (axis,)) / counts.sum()
            p = p * (share if (axis,) in generators else 1.0 / counts.shape[axis])
        return LogLinearFit(generators, p, counts, possible, 0, True)
    fitted, used, gap = proportional_fit(counts, possible, generators, tolerance, rounds)
    p = fitted / fitted.sum()
    return LogLinearFit(generators, p, counts, possible, used, gap <= tolerance)


def proportional_fit(
    counts: Ints, possible: Mask, generators: Generators, tolerance: float, rounds: int
) -> tuple[Floats, int, float]:
    """Scale margins in turn until each differs from its target by at most ``tolerance`` of all people.

    Gives the fitted counts, how many rounds it took and the largest gap that is left, as a share.
    """
    n = float(counts.sum())
    targets = [_margin(counts, generator).astype(np.float64) for generator in generators]
    fitted = possible.astype(np.float64)
    gap, used = np.inf, 0
    while gap > tolerance and used < rounds:
        used += 1
        for generator, target in zip(generators, targets, strict=True):
            current = _margin(fitted, generator)
            fitted = fitted * np.divide(
                target, current, out=np.zeros_like(target), where=current > 0
            )
        gap = max(
            float(np.abs(_margin(fitted, generator) - target).max()) / n
            for generator, target in zip(generators, targets, strict=True)
        )
    return fitted, used, gap


def maximal(generators: Iterable[Sequence[int]]) -> Generators:
    """The margins that lie in no other one, in order.

    >>> maximal([(1, 0), (1,), (2,)])
    ((0, 1), (2,))
    """
    sets = {frozenset(g) for g in generators}
    maximal_sets = [s for s in sets if not any(s < other for other in sets)]
    return tuple(sorted(tuple(sorted(s)) for s in maximal_sets))


def _margin(array: npt.NDArray[Any], axes: Sequence[int]) -> npt.NDArray[Any]:
    others = tuple(axis for axis in range(array.ndim) if axis not in axes)
    return np.asarray(array.sum(axis=others, keepdims=True))


def _design(generators: Generators, support: Mask) -> sparse.csr_array:
    """One row for each cell of each margin, one column for each cell of the support."""
    places = np.nonzero(support)
    rows, height = [], 0
    for generator in generators:
        sizes = [support.shape[axis] for axis in generator]
        index = np.ravel_multi_index(tuple(places[axis] for axis in generator), sizes)
        rows.append(index + height)
        height += int(np.prod(sizes))
    columns = np.tile(np.arange(places[0].size), len(generators))
    ones = np.ones(columns.size, dtype=np.int64)
    return sparse.csr_array((ones, (np.concatenate(rows), columns)), shape=(height, places[0].size))


def _counted_rank(generators: Generators, support: Mask) -> int:
    """The rank by counting the terms that have people in them.

    Each interaction gives as many as its non-empty margin cells less those that lower terms have
    given (Bishop, Fienberg and Holland 1975, section 3.8.1): exact unless the zeros split the table
    into parts that share no margin.
    """
    terms = {
        term
        for generator in generators
        for term in chain.from_iterable(
            combinations(generator, size) for size in range(len(generator) + 1)
        )
    }
    ranks: dict[tuple[int, ...], int] = {}
    for term in sorted(terms, key=len):
        filled = int((_margin(support.astype(np.int64), term) > 0).sum())
        lower = chain.from_iterable(combinations(term, size) for size in range(len(term)))
        ranks[term] = filled - sum(ranks[t] for t in lower)
    return sum(ranks.values())
