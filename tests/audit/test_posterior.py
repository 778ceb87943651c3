"""Bayes: compared with the formula written out, value by value."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from audit.fibres import QUICK
from lustrum.audit import BetaBinomial, MarkovSquare, TablePrior, Uniform, likelihood, posterior
from lustrum.model import InputError, MatrixChannel
from lustrum.protect.rounding.cells import RoundingChannel

SQUARE = {"row": 15, "column": 18, "total": 115}
PRIOR = TablePrior(range(1, 10), [0.3, 0.3, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01])

shares = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any)


class Pairs:
    """A channel that states chances pair by pair and nothing else."""

    def __init__(self, matrix: MatrixChannel) -> None:
        self.chances = matrix.probabilities
        self.support = matrix.support


class Lists:
    """A channel that lists what true values lead to and nothing else."""

    def __init__(self, matrix: MatrixChannel) -> None:
        self.transitions = matrix.transitions
        self.support = matrix.support


@QUICK
@given(
    st.lists(shares, min_size=4, max_size=4),
    st.lists(shares, min_size=1, max_size=4),
    st.sampled_from([lambda matrix: matrix, Pairs, Lists]),
    st.data(),
)
def test_the_posterior_is_bayes_written_out(rows, weights, kind, data):
    matrix = [[Fraction(v, sum(r)) for v in r] for r in rows]
    prior = [Fraction(w, sum(weights[0])) for w in weights[0]]
    channel = kind(MatrixChannel(np.array(matrix, dtype=float)))
    shown, ends = [], []
    for _ in weights:
        shown.append(data.draw(st.integers(0, 3)))
        first = data.draw(st.integers(0, 3))
        ends.append((first, data.draw(st.integers(first, 3))))
    joint = [
        [prior[k] * matrix[k][p] for k in range(a, b + 1)]
        for p, (a, b) in zip(shown, ends, strict=True)
    ]
    support = tuple(np.array(e) for e in zip(*ends, strict=True))
    listed = TablePrior(range(4), [float(p) for p in prior])
    if not all(map(any, joint)):
        with pytest.raises(InputError, match="Nothing is left"):
            posterior(shown, channel, listed, support)
        return
    belief = posterior(shown, channel, listed, support, decimals=3)
    assert (len(belief), belief.decimals) == (len(shown), 3)
    for cell, (found, (first, _)) in enumerate(zip(joint, ends, strict=True)):
        wanted = {first + k: float(p / sum(found)) for k, p in enumerate(found) if p}
        values, chances = belief.distribution(cell)
        assert values.tolist() == list(wanted)
        assert chances == pytest.approx(list(wanted.values()))


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


def written_out(square: MarkovSquare, true: int, published: int) -> float:
    """The likelihood by its definition: who stays above the least value, and who comes in."""
    theta, movers = Fraction(square.theta), square.most - true
    enter = theta * true / (square.column - true) if movers else Fraction(0)
    if enter > 1:
        return 0.0
    above, total = true - square.least, Fraction(0)
    for stay in range(above + 1):
        come = published - square.least - stay
        if 0 <= come <= movers:
            total += (
                comb(above, stay) * (1 - theta) ** stay * theta ** (above - stay)
                * comb(movers, come) * enter**come * (1 - enter) ** (movers - come)
            )  # fmt: skip
    return float(total)


@QUICK
@given(st.data(), st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.5, 0.9, 1.0]))
def test_the_markov_likelihood_is_the_formula_of_the_paper(data, theta):
    total = data.draw(st.integers(0, 20))
    row, column = data.draw(st.integers(0, total)), data.draw(st.integers(0, total))
    square = MarkovSquare(row, column, total, theta)
    possible = range(max(0, row + column - total), min(row, column) + 1)
    assert [a.tolist() for a in square.support(np.array([3]))] == [[possible[0]], [possible[-1]]]
    for published in possible:
        wanted = [written_out(square, true, published) for true in possible]
        assert likelihood(published, square, possible) == pytest.approx(wanted, abs=1e-14)
    stays = [written_out(square, true, true) for true in possible]
    first = data.draw(st.sampled_from(possible))
    last = data.draw(st.sampled_from(range(first, possible[-1] + 1)))
    part = stays[first - possible[0] : last + 1 - possible[0]]
    assert square.stay(first, last) == pytest.approx(np.mean(part))
    assert square.stay(0, None) == pytest.approx(np.mean(stays))
    for outside in (possible[0] - 1, possible[-1] + 1):
        with pytest.raises(InputError, match="margins"):
            square.transitions(np.array([possible[0], outside]))


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


@QUICK
@given(st.data())
def test_a_beta_binomial_prior_is_its_formula(data):
    low, size = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 5))
    alpha, beta = (data.draw(st.sampled_from([0.5, 1.0, 2.0, 3.0])) for _ in range(2))
    first = data.draw(st.none() | st.integers(low - 1, low + size))
    last = data.draw(
        st.none() | st.integers(low if first is None else max(first, low), low + size + 1)
    )
    found = BetaBinomial(first, last, alpha=alpha, beta=beta).weights(
        np.arange(12), np.full(12, low), np.full(12, low + size)
    )
    begin, end = low if first is None else first, low + size if last is None else last
    inside = stats.betabinom(end - begin, alpha, beta, loc=begin)
    assert found == pytest.approx([inside.pmf(k) for k in range(12)])
    even = Uniform(first, last).weights(np.arange(12), np.full(12, low), np.full(12, low + size))
    wanted = [(first is None or first <= k) and (last is None or k <= last) for k in range(12)]
    assert even.tolist() == wanted


GOOD = MatrixChannel(np.array([[1.0, 0.0], [0.5, 0.5]]))


class Given(NamedTuple):
    """A prior with the weights that a test gives to 0 and 1."""

    first: float
    second: float

    def weights(self, values, low, high):
        return np.array(self)[values]


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
        (lambda: BetaBinomial(beta=np.inf), "above 0"),
        (lambda: BetaBinomial(3, 2), "above its highest"),
        (lambda: posterior(0, GOOD, Given(1, -1)), "negative weight"),
        (lambda: posterior(0, GOOD, Given(1, np.nan)), "negative weight"),
        (lambda: MarkovSquare(-1, 5, 10, 0.1), "grand total"),
        (lambda: MarkovSquare(5, -1, 10, 0.1), "grand total"),
        (lambda: MarkovSquare(11, 5, 10, 0.1), "grand total"),
        (lambda: Uniform(3, 2), "above its highest"),
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
