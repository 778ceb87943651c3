"""``R2``: the risk of publishing a sample, or a perturbed table, in place of a population's table.

Antal, Shlomo and Elliot (2015), equation 4:

    R2(F, f, w) = w1 (|D| / K) ** (|D or E| / |D and E|)
                + w2 (1 - H(X) / log K) (1 - H(X|Y) / H(X))
                - w3 (1 / sqrt N) log(1 / (e sqrt N))

with ``D`` the empty cells of the population, ``E`` those of what is published. Two cases are set here
by their limits, since the formula leaves them open. Where no empty cell is shared the first term is 0:
its exponent grows without bound. Where the whole population stands in one cell both entropies are 0
and whatever is published leaves nothing open, so the factor of the second term is 1.

As the exponent is at least 1 and the factor at most 1, ``R2(F, f) <= R1(F)``, with equality where
``f`` is proportional to ``F``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.parameters import floats, parameter
from lustrum.numeric.arithmetic import log
from lustrum.risk.counts import CountsLike, cells_of, check_scale, check_weights, same_cells
from lustrum.risk.entropy import conditional_entropy, entropy, share_to_power, size_of
from lustrum.risk.measure import RiskSpec
from lustrum.risk.r1 import WEIGHTS, r1


def r2(
    population: CountsLike, published: CountsLike | Release, weights: Sequence[float] = WEIGHTS
) -> float:
    """The risk of a sample or of a perturbed table; from 0 to 1, never above ``r1(population)``.

    >>> people = [[40, 0], [20, 20]]
    >>> r2(people, [[4, 0], [1, 3]]) < r2(people, [[4, 0], [2, 2]]) == r1(people)
    True
    """
    checked = check_weights(weights)
    whole, part = cells_of(population, "population table"), cells_of(published, "published table")
    same_cells(whole, part, "population table and the published table")
    counts, shown = whole.measured, part.counts[whole.possible]
    check_scale(counts, "population table")
    check_scale(shown, "published table")
    return float(r2_values(counts, shown, checked))


def r2_values(population: Ints, published: Ints, weights: Sequence[float] = WEIGHTS) -> Floats:
    """Equation 4 over the last axis of two arrays of counts, unchecked.

    Axes before the last are batches and are broadcast against each other.

    >>> r2_values(np.array([[4, 4, 0], [8, 0, 0]]), np.array([2, 2, 0])).round(3).tolist()
    [0.401, 0.917]
    """
    zeros, spread, size = weights
    population, published = np.broadcast_arrays(population, published)
    empty, unseen = population == 0, published == 0
    both, either = (empty & unseen).sum(axis=-1), (empty | unseen).sum(axis=-1)
    exponent = either / np.maximum(both, 1)
    shared = np.where(both > 0, share_to_power(empty.mean(axis=-1), exponent), 0.0)
    H = entropy(population)
    open_share = conditional_entropy(population, published) / np.where(H > 0, H, 1.0)
    scale = np.maximum(1.0 - H / log(population.shape[-1]), 0.0)
    return np.asarray(
        zeros * shared
        + spread * scale * (1.0 - open_share)
        + size * size_of(population.sum(axis=-1))
    )


@dataclass(frozen=True)
class R2(RiskSpec):
    """The measure with its weights: before protection that is ``R1``, after it ``R2``.

    >>> table = Table.from_counts([[40, 0], [20, 20]])
    >>> R2().before(table) == r1(table)
    True
    """

    name: ClassVar[str] = "r2"
    measures_releases: ClassVar[bool] = True
    weights: tuple[float, float, float] = parameter(
        WEIGHTS, "Weights of zeros, entropy and size, which add up to 1.", least=0, read=floats
    )

    def check_together(self) -> None:
        check_weights(self.weights)

    def before(self, table: Table) -> float:
        return r1(table, self.weights)

    def after(self, table: Table, release: Release | CountsLike) -> float:
        return r2(table, release, self.weights)
