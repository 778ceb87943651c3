"""Chances against exact fractions, and against scipy's."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from lustrum.numeric.distributions import (
    binomial,
    binomial_quantile,
    chi_square_above,
    convolved,
    hypergeometric,
)


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 40, 3000])
@pytest.mark.parametrize("p", [0.0, 1e-6, 0.3, 0.5, 0.999, 1.0])
def test_binomial_chances_are_those_of_fractions(n: int, p: float) -> None:
    middle = int(n * p)
    share = Fraction(p)
    for k in {0, 1, n // 2, middle, middle + 7, n - 1, n} & set(range(n + 1)):
        exact = float(comb(n, k) * share**k * (1 - share) ** (n - k))
        assert float(binomial(k, n, p)) == pytest.approx(exact, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("population", "marked", "drawn"),
    [
        (0, 0, 0), (1, 1, 1), (5, 0, 3), (5, 5, 2), (200, 100, 50), (10_000, 3333, 1000),
        (50, 20, 50),
    ],
)  # fmt: skip
def test_hypergeometric_chances_are_those_of_fractions(
    population: int, marked: int, drawn: int
) -> None:
    middle = drawn * marked // max(population, 1)
    for k in range(max(middle - 12, 0), middle + 13):
        exact = 0.0
        if k <= marked and drawn - k <= population - marked and k <= drawn:
            ways = comb(marked, k) * comb(population - marked, drawn - k)
            exact = float(Fraction(ways, comb(population, drawn)))
        found = float(hypergeometric(k, population, marked, drawn))
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_nothing_outside_the_range_has_a_chance() -> None:
    assert binomial([-1, 3], 2, 0.4).tolist() == [0.0, 0.0]
    assert hypergeometric([-1, 3, 4], 10, 3, 5).tolist()[0] == 0.0
    assert hypergeometric(4, 10, 3, 5) == 0.0
    assert hypergeometric(1, 10, 8, 5) == 0.0  # only two are not marked


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3, 0.5, 0.77, 0.999])
def test_binomial_quantiles_are_those_of_scipy(p: float) -> None:
    rng = np.random.default_rng(1)
    for n in (0, 1, 7, 60, 1000, 100_000):
        chance = np.r_[rng.random(300), 2.0**-54, 1 - 2.0**-53]
        found = binomial_quantile(chance, n, p)
        assert found[:300].tolist() == stats.binom.ppf(chance[:300], n, p).tolist()
        assert 0 <= found.min() <= found.max() <= n


def test_a_sum_has_the_chances_of_its_parts() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.random(7), rng.random(4)
    assert np.allclose(convolved(first, second), np.convolve(first, second), rtol=1e-14)
    assert convolved(np.ones(1), second).tolist() == second.tolist()


@pytest.mark.parametrize("degrees", [1, 2, 3, 10, 57, 1000])
def test_chi_square_chances_are_those_of_scipy(degrees: int) -> None:
    for x in (1e-9, 0.1, 1.0, 0.7 * degrees, degrees, degrees + 2.0, 1.5 * degrees, 3.0 * degrees):
        assert chi_square_above(x, degrees) == pytest.approx(stats.chi2.sf(x, degrees), rel=1e-10)
    assert chi_square_above(0.0, degrees) == 1.0
    assert chi_square_above(float("inf"), degrees) == 0.0
