"""Bayes: compared with the formula written out, value by value."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from audit.fibres import QUICK
from lustrum.audit import (
    BetaBinomial,
    MarkovSquare,
    ReferenceFrequencies,
    TablePrior,
    Uniform,
    likelihood,
    posterior,
)
from lustrum.model import InputError, MatrixChannel
from lustrum.protect.rounding.random import RoundingChannel

SQUARE = {"row": 15, "column": 18, "total": 115}
PRIOR = TablePrior(range(1, 10), [0.3, 0.3, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01])

shares = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)


@QUICK
@given(
    st.lists(shares, min_size=4, max_size=4),
    shares,
    st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
def test_the_posterior_is_bayes_written_out(rows, weights, published):
    matrix = np.array([np.array(r) / sum(r) for r in rows])
    prior = np.array(weights) / sum(weights)
    joint = matrix * prior[:, None]
    assume(all(joint[:, p].sum() > 0 for p in published))
    channel = MatrixChannel(matrix)
    belief = posterior(published, channel, TablePrior(range(4), prior), support=(0, 3))
    assert len(belief) == len(published)
    for cell, p in enumerate(published):
        values, chances = belief.distribution(cell)
        assert chances.sum() == pytest.approx(1.0)
        dense = np.zeros(4)
        dense[values] = chances
        assert dense == pytest.approx(joint[:, p] / joint[:, p].sum())


@QUICK
@given(st.integers(2, 6), st.integers(0, 5))
def test_random_rounding_is_inverted_like_any_other_channel(base, n):
    published = base * n
    channel = RoundingChannel(base)
    values, chances = posterior(published, channel).distribution(0)
    low, high = max(0, published - base + 1), published + base - 1
    weights = np.array([1 - abs(k - published) / base for k in range(low, high + 1)])
    assert values.tolist() == list(range(low, high + 1))
    assert chances == pytest.approx(weights / weights.sum())


def brute_markov(omega: int, published: int, theta: float) -> float:
    """The likelihood as the paper writes it, term by term."""
    r = omega / 18
    q = r / (1 - r) * theta
    return sum(
        comb(omega, x) * (1 - theta) ** x * theta ** (omega - x)
        * comb(15 - omega, published - x) * q ** (published - x) * (1 - q) ** (15 - omega - published + x)
        for x in range(min(omega, published) + 1)
        if published - x <= 15 - omega
    )  # fmt: skip


@pytest.mark.parametrize("theta", [0.0, 0.05, 0.1, 0.2])
def test_the_markov_likelihood_is_the_formula_of_the_paper(theta):
    square = MarkovSquare(**SQUARE, theta=theta)
    for published in range(16):
        brute = [brute_markov(omega, published, theta) for omega in range(16)]
        assert likelihood(published, square, range(16)) == pytest.approx(brute, abs=1e-14)
    assert square.matrix.sum(axis=1) == pytest.approx(np.ones(16))


@pytest.mark.parametrize(
    ("theta", "printed"),
    [
        (0.05, [0.0007, 0.0683, 0.7746, 0.1482, 0.0178, 0.0017, 0.0001, 0.0]),
        (0.1, [0.0026, 0.1151, 0.6193, 0.2235, 0.0515, 0.0096, 0.0016, 0.0002]),
        (0.2, [0.0088, 0.1655, 0.4382, 0.2708, 0.1121, 0.0380, 0.0114, 0.0032, 0.0008, 0.0002]),
    ],
)
def test_table_3_of_duncan_et_al_to_all_printed_digits(theta, printed):
    found = likelihood(3, MarkovSquare(**SQUARE, theta=theta), np.arange(1, len(printed) + 1))
    assert found.round(4).tolist() == printed


@pytest.mark.parametrize(
    ("theta", "exact"),
    [
        (0.05, [0.001, 0.134, 0.761, 0.097, 0.006]),
        (0.1, [0.005, 0.225, 0.605, 0.146, 0.017, 0.002]),
        (0.2, [0.017, 0.325, 0.431, 0.177, 0.037, 0.010, 0.002]),
    ],
)
def test_table_5_of_duncan_et_al_without_its_slip(theta, exact):
    belief = posterior(3, MarkovSquare(**SQUARE, theta=theta), PRIOR)
    assert belief.values[: len(exact)].tolist() == list(range(1, len(exact) + 1))
    assert belief.probabilities[: len(exact)].round(3).tolist() == exact


def test_a_state_that_theta_rules_out_is_impossible():
    # With omega = 15 of 18 in the column, theta may be 0.2 at most unless nobody can come in.
    square = MarkovSquare(**SQUARE, theta=0.5)
    allowed = [w for w in range(16) if w == 15 or 0.5 * w <= 18 - w]
    assert np.flatnonzero(square.matrix.sum(axis=1)).tolist() == allowed
    assert 13 not in posterior(3, square).values


def test_a_square_whose_margins_leave_a_least_value():
    square = MarkovSquare(row=9, column=8, total=12, theta=0.1)
    assert (square.least, square.most) == (5, 8)
    assert square.support(np.array([6]))[0].tolist() == [5]
    assert square.matrix.shape == (4, 4)
    assert MarkovSquare(**SQUARE, theta=0.0).stay(0, None) == 1.0


def test_beta_binomial_priors_keep_to_the_feasible_range():
    flat = MatrixChannel(np.eye(6)[[0] * 6])
    belief = posterior(0, flat, BetaBinomial(alpha=1, beta=1), support=(1, 4))
    assert belief.probabilities == pytest.approx([0.25] * 4)
    low = posterior(0, flat, BetaBinomial(alpha=1, beta=3), support=(0, 3))
    assert (np.diff(low.probabilities) < 0).all()
    fixed = posterior(0, flat, BetaBinomial(2, 3), support=(0, 5))
    assert fixed.values.tolist() == [2, 3]


def test_reference_frequencies_weigh_values_by_how_often_they_occur():
    flat = MatrixChannel(np.eye(4)[[0] * 4])
    reference = [0, 0, 0, 1, 1, 2]
    belief = posterior(0, flat, ReferenceFrequencies.of(reference), support=(0, 3))
    assert belief.probabilities == pytest.approx([1 / 2, 1 / 3, 1 / 6])
    smooth = posterior(0, flat, ReferenceFrequencies.of(reference, 1.0), support=(0, 3))
    assert smooth.probabilities == pytest.approx([0.4, 0.3, 0.2, 0.1])


def test_a_uniform_prior_may_have_ends():
    flat = MatrixChannel(np.eye(9)[[0] * 9])
    assert posterior(0, flat, Uniform(2, 5)).values.tolist() == [2, 3, 4, 5]


GOOD = MatrixChannel(np.array([[1.0, 0.0], [0.5, 0.5]]))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: MarkovSquare(**SQUARE, theta=1.5), "between 0 and 1"),
        (lambda: MarkovSquare(5, 20, 10, 0.1), "grand total"),
        (lambda: MarkovSquare(**SQUARE, theta=0.1).transitions(np.array([16])), "margins"),
        (lambda: MarkovSquare(**SQUARE, theta=0.1).stay(20, 21), "no values"),
        (lambda: TablePrior((), ()), "lists no value"),
        (lambda: TablePrior((1, 1), (0.5, 0.5)), "distinct"),
        (lambda: TablePrior((1, 2), (1.5, -0.5)), "negative"),
        (lambda: TablePrior((1, 2), (0.5, 0.4)), "add up to 1"),
        (lambda: BetaBinomial(alpha=0), "above 0"),
        (lambda: Uniform(3, 2), "above its highest"),
        (lambda: ReferenceFrequencies((), ()), "one frequency"),
        (lambda: ReferenceFrequencies((1,), (-1,)), "negative"),
        (lambda: posterior([], GOOD), "no cell"),
        (lambda: posterior(0, GOOD, support=(1, 0)), "no feasible value"),
        (lambda: posterior(0, GOOD, support=(0, 10**9)), "too many"),
        (lambda: posterior(0, GOOD, TablePrior((7,), (1.0,))), "Nothing is left"),
        (lambda: posterior(1, GOOD, support=(0, 0)), "Nothing is left"),
    ],
)
def test_a_mistake_is_one_clear_sentence(wrong, says):
    with pytest.raises(InputError, match=says) as caught:
        wrong()
    assert str(caught.value).endswith(".")
