"""Functions made of correctly rounded operations: close to the truth, and the same in arrays and in loops."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.numeric import arithmetic, arithmetic_loops

EXPONENTS = st.floats(-700, 700)
POSITIVE = st.floats(1e-300, 1e300)


def exactly(x: float, function: Callable[[Decimal], Decimal]) -> float:
    with localcontext() as context:
        context.prec = 60
        return float(function(Decimal(x)))


def units_between(a: float, b: float) -> float:
    return abs(a - b) / max(math.ulp(b), math.ulp(1e-300))


@given(EXPONENTS)
def test_exp_is_within_two_units_of_the_last_place(x: float) -> None:
    assert units_between(float(arithmetic.exp(x)), exactly(x, Decimal.exp)) <= 2


@given(POSITIVE)
def test_log_is_within_two_units_of_the_last_place(x: float) -> None:
    assert units_between(float(arithmetic.log(x)), exactly(x, Decimal.ln)) <= 2


@given(st.floats(0.5, 2.0))
def test_log_is_within_two_units_near_one(x: float) -> None:
    assert units_between(float(arithmetic.log(x)), exactly(x, Decimal.ln)) <= 2


@given(st.floats(-0.9, 1e6))
def test_log1p_is_close(x: float) -> None:
    expected = x if abs(x) < 1e-20 else exactly(x, lambda value: (1 + value).ln())
    assert units_between(float(arithmetic.log1p(x)), expected) <= 4


@given(st.floats(-1000, 1000))
def test_exp2_is_within_two_units_of_the_last_place(x: float) -> None:
    expected = exactly(x, lambda value: (value * Decimal(2).ln()).exp())
    assert units_between(float(arithmetic.exp2(x)), expected) <= 2


@given(POSITIVE)
def test_log2_is_close(x: float) -> None:
    expected = exactly(x, lambda value: value.ln() / Decimal(2).ln())
    assert units_between(float(arithmetic.log2(x)), expected) <= 3


def test_powers_of_two_have_whole_logarithms_and_back() -> None:
    whole = np.arange(-1022, 1024)
    powers = np.ldexp(1.0, whole)
    assert np.array_equal(arithmetic.log2(powers), whole)
    assert np.array_equal(arithmetic.exp2(whole), powers)


@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, 1.0, 1.7, 2.0, -0.5])
def test_power_is_close(exponent: float) -> None:
    x = np.array([0.25, 0.9, 1.0, 3.0, 1e6])
    assert np.allclose(arithmetic.power(x, exponent), x**exponent, rtol=1e-14, atol=0)


@given(st.floats(1e-300, 1e300))
def test_a_power_of_ten_is_not_above_and_ten_times_it_is(x: float) -> None:
    found = Fraction(f"{arithmetic.power_of_ten(x)!r}")
    assert found <= Fraction(x) < 10 * found


def test_factorials_have_their_logarithms() -> None:
    whole = np.arange(1, 171)
    expected = [exactly(math.factorial(n - 1), Decimal.ln) for n in whole.tolist()]
    assert np.allclose(arithmetic.log_gamma(whole), expected, rtol=1e-14, atol=1e-14)


@given(st.floats(0.01, 1e8))
def test_gamma_functions_agree_with_scipy(x: float) -> None:
    from scipy import special

    for ours, theirs in (
        (arithmetic.log_gamma, special.gammaln),
        (arithmetic.digamma, special.digamma),
    ):
        assert float(ours(x)) == pytest.approx(float(theirs(x)), rel=1e-12, abs=2e-14)


@given(st.floats(-37, 37))
def test_the_normal_distribution_agrees_with_scipy(x: float) -> None:
    from scipy import special

    assert float(arithmetic.normal_cdf(x)) == pytest.approx(float(special.ndtr(x)), rel=1e-12)


@given(st.floats(1e-300, 1.0, exclude_max=True))
def test_normal_quantiles_agree_with_scipy(p: float) -> None:
    from scipy import special

    expected = float(special.ndtri(p))
    assert float(arithmetic.normal_quantile(p)) == pytest.approx(expected, rel=1e-13, abs=1e-15)


@given(st.floats(-700, 700))
def test_expm1_is_close(x: float) -> None:
    expected = x if abs(x) < 1e-20 else exactly(x, lambda value: value.exp() - 1)
    assert units_between(float(arithmetic.expm1(x)), expected) <= 4


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 50, 199, 999, 1000, 1001, 5000, 10**7])
@pytest.mark.parametrize("p", [0.0005, 0.3, 0.5, 0.9, 0.975, 0.9995])
def test_quantiles_of_student_agree_with_scipy(p: float, degrees: int) -> None:
    from scipy import stats

    expected = float(stats.t.ppf(p, degrees))
    assert arithmetic.student_quantile(p, degrees) == pytest.approx(expected, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 32, 360, 1001])
def test_a_circle_has_its_cosines_and_sines(count: int) -> None:
    angle = np.arange(count) * (2 * np.pi / count)
    cosine, sine = arithmetic.circle(count)
    assert np.allclose(cosine, np.cos(angle), rtol=0, atol=2e-15)
    assert np.allclose(sine, np.sin(angle), rtol=0, atol=2e-15)


def test_ends_are_those_of_ieee() -> None:
    x = np.array([-np.inf, -1.0, 0.0, np.inf, np.nan])
    assert np.array_equal(arithmetic.log(x), [np.nan, np.nan, -np.inf, np.inf, np.nan], True)
    assert np.array_equal(arithmetic.log2(x), [np.nan, np.nan, -np.inf, np.inf, np.nan], True)
    assert np.array_equal(arithmetic.exp(x)[[0, 3, 4]], [0.0, np.inf, np.nan], True)
    assert np.array_equal(arithmetic.exp([-1e6, 1e6]), [0.0, np.inf])
    assert np.array_equal(arithmetic.normal_quantile([0.0, 1.0]), [-np.inf, np.inf])
    assert np.array_equal(arithmetic.normal_cdf([-np.inf, np.inf]), [0.0, 1.0])
    assert float(arithmetic.log1p(-1.0)) == -np.inf


@pytest.mark.parametrize("name", arithmetic_loops.__all__)
def test_compiled_loops_and_arrays_give_the_same_bytes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    x = {
        "exp": np.concatenate(
            [rng.uniform(-760, 720, 4000), rng.uniform(-1, 1, 4000), [0.0, np.nan]]
        ),
        "log": np.concatenate(
            [rng.uniform(0, 3, 4000), np.ldexp(1.0, rng.integers(-1070, 1020, 99))]
        ),
        "log1p": rng.uniform(-1, 2, 4000) * np.ldexp(1.0, rng.integers(-60, 1, 4000)),
        "log_gamma": np.concatenate([rng.uniform(0.1, 30, 4000), np.arange(1.0, 200.0)]),
        "digamma": np.concatenate([rng.uniform(0.1, 30, 4000), np.arange(1.0, 200.0)]),
    }[name]
    one_by_one = np.array([getattr(arithmetic_loops, name)(float(v)) for v in x])
    plain = np.array([getattr(arithmetic_loops, name).py_func(float(v)) for v in x])
    fast = getattr(arithmetic, name)(x)
    monkeypatch.setattr(arithmetic, "_compiled", lambda name: None)
    whole = getattr(arithmetic, name)(x)
    assert whole.tobytes() == fast.tobytes() == one_by_one.tobytes() == plain.tobytes()


def test_the_bytes_are_those_of_every_processor() -> None:
    """Digits computed once; a processor whose compiler fuses operations would show others."""
    x = np.arange(1, 1001) / 200
    parts = [
        function(x)
        for function in (
            arithmetic.exp, arithmetic.log, arithmetic.exp2, arithmetic.log2, arithmetic.log1p,
            arithmetic.log_gamma, arithmetic.digamma, arithmetic.normal_cdf,
        )
    ]  # fmt: skip
    parts.append(arithmetic.normal_draws(np.random.default_rng(7), 1000))
    digest = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
    assert digest[:16] == "4a0b3e59dc4301aa"
