"""Can anybody tell two datasets apart that differ in one record, better than rho allows? Tried from outside.

The best test of two datasets adds up, over all measured cells, how much each noisy number speaks for one of
them. For Gaussian noise its means lie ``mu = sqrt(2 rho)`` standard deviations apart. From how often the test
is right a lower bound of rho follows, false with a chance below 1 in 10,000; it must lie below the rho that is
stated, and above it for noise that is too small, for noise used twice, and for a true table beside noisy ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, norm
from tests.examples import examples
from tests.protect.test_proven import described

from lustrum.model.finest import FinestCells
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.measure import measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NoisyTables
from lustrum.protect.proven.places import laid_out

RHO = 0.5
DOMAIN = Domain.of(described({"area": 3, "sex": 2, "age": 2}, []))
METHOD = ProvenPopulation(RHO)
PLAN = METHOD.plan(DOMAIN)
ALONE = np.array([[0, 0, 1], [0, 1, 0], [0, 0, 1]])
ONE, OTHER = (
    FinestCells(DOMAIN.dataset, codes, np.ones(3, dtype=int))
    for codes in (ALONE, np.array([[0, 0, 2], [0, 1, 1], [0, 0, 0]]))
)
DRAWS = examples(150, 10_000)


def score(noisy: NoisyTables) -> float:
    """How much the noisy tables speak for the one dataset against the other."""
    one, other = (laid_out(DOMAIN, cells) for cells in (ONE, OTHER))
    return sum(
        float(((table - _middle(one, other, s)) * _apart(one, other, s)).sum())
        * float(PLAN.shares[s])
        for s, table in noisy.tables.items()
    )


def _middle(one: np.ndarray, other: np.ndarray, subset: tuple[int, ...]) -> np.ndarray:
    return (DOMAIN.table(one, subset) + DOMAIN.table(other, subset)) / 2


def _apart(one: np.ndarray, other: np.ndarray, subset: tuple[int, ...]) -> np.ndarray:
    return DOMAIN.table(one, subset) - DOMAIN.table(other, subset)


def lower_bound(measured: Callable[[FinestCells], NoisyTables]) -> float:
    """A rho that is certainly needed for how well the test tells both datasets apart."""
    right, wrong = (sum(score(measured(cells)) > 0 for _ in range(DRAWS)) for cells in (ONE, OTHER))
    low = beta.ppf(5e-5, right, DRAWS - right + 1) if right else 0.0
    high = beta.ppf(1 - 5e-5, wrong + 1, DRAWS - wrong) if wrong < DRAWS else 1.0
    apart = max(float(norm.ppf(low) - norm.ppf(high)), 0.0)
    return apart**2 / 2


def as_made(cells: FinestCells) -> NoisyTables:
    return measure_tables(DOMAIN, PLAN, cells)


def too_little_noise(cells: FinestCells) -> NoisyTables:
    """A fifth of the noise."""
    true, noisy = laid_out(DOMAIN, cells), as_made(cells)
    tables = {
        s: DOMAIN.table(true, s) + np.rint((table - DOMAIN.table(true, s)) / 5).astype(np.int64)
        for s, table in noisy.tables.items()
    }
    return replace(noisy, tables=tables)


def noise_used_twice(cells: FinestCells) -> NoisyTables:
    """Two tables of the same size have the same noise: a reader takes their difference, which has none."""
    true, noisy = laid_out(DOMAIN, cells), as_made(cells)
    sex, age = (1,), (2,)
    again = DOMAIN.table(true, age) + noisy.tables[sex] - DOMAIN.table(true, sex)
    return replace(noisy, tables={**noisy.tables, sex: 10**7 * (noisy.tables[sex] - again)})


def true_table(cells: FinestCells) -> NoisyTables:
    """One table was not measured but copied; a reader gives it all weight."""
    noisy = as_made(cells)
    subset = max(noisy.tables, key=len)
    return replace(
        noisy, tables={**noisy.tables, subset: 1000 * DOMAIN.table(laid_out(DOMAIN, cells), subset)}
    )


def test_nobody_tells_neighbours_apart_better_than_rho_allows() -> None:
    assert lower_bound(as_made) <= RHO


@pytest.mark.parametrize("fault", [too_little_noise, noise_used_twice, true_table])
def test_planted_faults_are_found(fault: Callable[[FinestCells], NoisyTables]) -> None:
    assert lower_bound(fault) > RHO
