"""Sums of products, rounded numbers and factors, by hand: the same steps, so the same bytes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from lustrum.numeric.solve.products import (
    cholesky,
    cleared,
    dot,
    floored,
    inner_product,
    power_of_two,
    snapped,
    sparse_product,
    uniform,
)


def matrix(seed: int, height: int = 30, width: int = 20) -> np.ndarray:
    rng = np.random.default_rng(seed)
    made = rng.random((height, width)) * 10.0 ** rng.integers(-8, 8, (height, width))
    made[rng.random((height, width)) < 0.6] = 0.0
    return made


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_every_product_is_rounded_and_added_in_the_order_of_the_columns(seed, kind):
    plain, x = matrix(seed), np.random.default_rng(seed).random(20) - 0.5
    expected = []
    for row in plain.tolist():
        total = 0.0
        for weight, value in zip(row, x.tolist(), strict=True):
            if weight:
                total += weight * value
        expected.append(total)
    assert sparse_product(kind(plain), x).tolist() == expected


def test_a_product_of_whole_numbers_with_floats_takes_both():
    assert sparse_product(sparse.csr_array([[1, -1], [0, 3]]), np.array([0.5, 0.25])).tolist() == [
        0.25,
        0.75,
    ]
    assert dot(np.array([0.5, 0.25]), np.array([1, 2], dtype=np.int8)) == 1.0


@pytest.mark.parametrize("bits", [20, 26, 30, 36])
def test_noise_around_a_simple_fraction_is_rounded_away(bits):
    for below in range(1, 65):
        for above in range(below + 1):
            exact = float(Fraction(above, below))
            noisy = exact + np.array([0.0, 1e-14, -1e-14])
            assert len(set(cleared(noisy, bits).tolist())) == 1, (above, below)


def test_halves_and_quarters_stay_what_they_are_in_units_of_any_size():
    x = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 3.5])
    assert cleared(x, 20).tolist() == x.tolist()
    assert cleared(x * 3, 20, 3.0).tolist() == (x * 3).tolist()
    assert str(cleared(np.array([-1e-12]), 20)[0]) == "0.0"


def test_a_floored_bound_is_never_higher_and_hardly_lower():
    for bound in (12.0, 12.0 - 1e-9, 1e-300, -7.3, 1e18, 0.1, 0.0, -np.inf, np.inf):
        less = floored(bound)
        assert less <= bound
        assert less == bound or bound - less <= 1e-9 * abs(bound)


def test_a_power_of_two_is_the_least_that_is_not_below():
    for value in (1e-9, 0.3, 0.5, 1.0, 1.1, 2.0, 3.0, 1023.0, 1024.0, 1e12):
        power = power_of_two(value)
        assert math.frexp(power)[0] == 0.5
        assert power / 2 < value <= power


def test_numbers_near_small_fractions_become_these_and_others_stay():
    third = 1.0 / 3.0
    noisy = np.array([third + 1e-12, -2.0 - 1e-12, 0.1234567, 1e-12])
    assert snapped(noisy, 1e-9).tolist() == [third, -2.0, 0.1234567, 0.0]


def test_drawn_numbers_lie_between_their_ends():
    drawn = uniform(np.random.default_rng(1), 0.5, 1.5, 1000)
    assert drawn.min() >= 0.5
    assert drawn.max() < 1.5
    assert drawn.tolist() == [0.5 + u for u in np.random.default_rng(1).random(1000).tolist()]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31])
def test_eight_sums_run_side_by_side_in_one_order(size):
    rng = np.random.default_rng(size)
    one, other = rng.random(size) - 0.5, rng.random(size)
    sums, rest = [0.0] * 8, 0.0
    for k in range(size):
        if k < size - size % 8:
            sums[k % 8] += float(one[k]) * float(other[k])
        else:
            rest += float(one[k]) * float(other[k])
    a, b, c, d, e, f, g, h = sums
    assert inner_product(one, other) == ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 130, 200])
def test_factors_solve_what_they_factor(size):
    rng = np.random.default_rng(size)
    half = rng.random((size, size)) - 0.5
    whole = half @ half.T + np.eye(size)
    found = cholesky(whole)
    right = rng.random((size, 70))
    assert np.allclose(whole @ found.solve(right), right, atol=1e-9)
    assert np.allclose(whole @ found.solve(right[:, 0]), right[:, 0], atol=1e-9)
    assert np.allclose(whole @ found.inverse(), np.eye(size), atol=1e-9)


def test_a_right_side_is_solved_the_same_alone_and_among_others():
    rng = np.random.default_rng(3)
    half = rng.random((90, 90)) - 0.5
    found = cholesky(half @ half.T + np.eye(90))
    right = rng.random((90, 130))
    every = found.solve(right)
    assert all(np.array_equal(found.solve(right[:, k]), every[:, k]) for k in range(130))


@pytest.mark.parametrize("size", [2, 100])
def test_a_matrix_that_is_not_positive_definite_has_no_factors(size):
    flat = np.ones((size, size))
    flat[-1, -1] = 0.5
    assert cholesky(flat) is None
    assert cholesky(np.zeros((0, 0))).solve(np.zeros((0, 3))).shape == (0, 3)
