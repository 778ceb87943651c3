"""Files with few variables: finest cells stay near their keyed start, not at their nearest number."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.search.run import DRIFT
from protect.population.worlds import cells_of, dense, town

ERRORS = 5
"""Standard errors that are allowed beyond: a false alarm in less than one of a million runs."""


@pytest.mark.parametrize("empty", [0.0, 0.1])
@pytest.mark.parametrize("sizes", [(20, 30), (12, 8, 6), (24,)])
def test_the_transition_of_small_counts_stays_near_the_keyed_start(
    sizes: tuple[int, ...], empty: float
) -> None:
    found = {1: [0, 0.0, 0], 2: [0, 0.0, 0]}
    dataset = town(sizes, zeros=False)
    for seed in range(6 if len(sizes) > 1 else 30):
        rng, key = np.random.default_rng(seed), bytes([seed]) * 16
        counts = rng.poisson(rng.gamma(0.6, 2.0, sizes))
        cells = cells_of(dataset, counts)
        method = ProtectedPopulation(sweeps=8, empty_share=empty)
        after = dense(method.protect(cells, key).cells)
        problem = prepare(
            cells, key, base=3, small_only=False, empty_share=empty, sparse_siblings=1.0
        ).problem
        assert problem.start_share is not None
        share, of = problem.start_share
        for true, pooled in found.items():
            there = counts == true
            up, begins = int((after[there] > 0).sum()), problem.up[problem.residue == true]
            begins = begins[problem.low[problem.residue == true] == 0]
            expected = int(there.sum()) * true * share / (3 * of)
            # Without any chance: no farther than the start, or than the stated distance and part of a cell.
            away = max(abs(begins.sum() - expected), float(DRIFT) * there.sum() + 1)
            assert abs(up - expected) <= away
            for place, value in enumerate((up, expected, int(there.sum()))):
                pooled[place] += value
    for up, expected, number in found.values():
        chance = expected / number
        error = sqrt(chance * (1 - chance) / number)
        assert abs(up / number - chance) < float(DRIFT) + 0.02 + ERRORS * error
