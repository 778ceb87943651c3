"""Attacks, beliefs, priors and channels on numbers that can be checked by hand."""

from __future__ import annotations

from math import comb, log2

import numpy as np
import pytest
from scipy.special import beta as beta_function

from audit.fibres import axis
from lustrum.audit import (
    Belief,
    BetaBinomial,
    Coalition,
    Insider,
    Knowledge,
    MarkovSquare,
    ReferenceFrequencies,
    TablePrior,
    Uniform,
    attack,
    likelihood,
    others,
    posterior,
)
from lustrum.audit.belief import belief as belief_module
from lustrum.audit.belief import posterior as posterior_module
from lustrum.audit.belief.posterior import weighted
from lustrum.model import InputError, MatrixChannel, Release
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.rounding.random import RoundingChannel

LINE = axis("r", [0], [1], [0, 1])
PARTS = axis("r", [0], [1])
FLAT = MatrixChannel(np.eye(6)[[0] * 6])  # publishes 0 for every true value from 0 to 5


def rounded(axes, published, status=None, **ends):
    """A release of numbers rounded to base 3."""
    values = np.array(published, dtype=np.int64)
    return Release(
        axes,
        values,
        np.full(values.shape, "F") if status is None else np.array(status),
        {"method": "random-rounding"},
        channel=RoundingChannel(3),
        **{name: np.array(end, dtype=np.int64) for name, end in ends.items()},
    )


# Attacks


def test_a_release_is_attacked_cell_by_cell_without_the_cells_behind_it():
    # Two sets that overlap have three inner cells behind them, which nobody asks about.
    release = rounded((axis("r", [0, 1], [1, 2]),), [3, 6])
    belief = attack(release)
    assert len(belief) == 2
    assert belief.distribution(0)[0].tolist() == [1, 2, 3, 4, 5]
    assert belief.distribution(1)[0].tolist() == [4, 5, 6, 7, 8]
    # Asked for, they have no channel of their own; the cells of the table keep theirs.
    more = attack(release, cells=[0, 2])
    assert len(more) == 2
    assert more.distribution(0)[1] == pytest.approx(np.array([1, 2, 3, 2, 1]) / 9)
    values, chances = more.distribution(1)
    assert chances == pytest.approx(np.full(values.size, 1 / values.size))


def test_an_attack_is_bounded_as_the_caller_asks(monkeypatch):
    import importlib

    module = importlib.import_module("lustrum.audit.attacking")
    plain, asked = module.bounds, []

    def noted(known, cells, **rest):
        asked.append(rest)
        return plain(known, cells)

    monkeypatch.setattr(module, "bounds", noted)
    known = Knowledge.of("x").bound("x", 0, 3)
    wanted = {"integer": True, "seconds": 9.0, "workers": 1, "stop": print, "progress": repr}
    attack(known, **wanted)
    assert asked == [wanted]


def test_what_others_contribute_at_the_ends():
    assert others(3, 9, 0) == (3, 9)
    assert others(3, 9, 9) == (0, 0)
    assert others(5, 5, 2) == (3, 3)
    for low, high, own in ((6, 5, 1), (3, 9, 10), (3, 9, -1)):
        with pytest.raises(InputError):
            others(low, high, own)


def test_a_contribution_that_fills_its_cell_leaves_nothing_to_others():
    known = Knowledge.of("xy").within([0, 0], [3, 9])
    belief = attack(known, Insider(contribution=3))
    assert belief.low.tolist() == [0, 0]
    assert belief.count.tolist() == [1, 7]
    assert len(attack(known, cells=[])) == 0
    assert len(attack(known, Insider(2, "x"), cells=["y"])) == 1


def test_a_certain_cell_stays_certain_whatever_channel_and_prior_say():
    # 3, 3 beside 0 can only be 1, 1 and 2; the prior rules each of them out.
    certain = attack(rounded((LINE,), [3, 3, 0]), prior=TablePrior((9,), (1.0,)))
    assert certain.low.tolist() == [1, 1, 2]
    assert certain.count.tolist() == [1, 1, 1]


def test_a_prior_reaches_cells_that_no_channel_shows():
    # The first cell is hidden, the second and the total are certain.
    release = rounded((LINE,), [0, 3, 9], ["D", "F", "F"], low=[0, 3, 9], high=[9, 3, 9])
    assert attack(release).distribution(0)[0].tolist() == [6]
    open_one = rounded((PARTS,), [0, 3], ["D", "F"], low=[0, 3], high=[9, 3])
    belief = attack(open_one, prior=Uniform(2, 4), cells=[1])
    assert belief.count.tolist() == [1]
    # A channel whose cells are all certain leaves the prior to the hidden cell.
    both = rounded((LINE,), [0, 3, 0], ["D", "F", "D"], low=[0, 3, 3], high=[4, 3, 7])
    left = attack(both, prior=TablePrior((1, 2), (0.25, 0.75)), cells=[0])
    assert left.distribution(0)[0].tolist() == [1, 2]
    assert left.distribution(0)[1] == pytest.approx([0.25, 0.75])


def test_a_number_with_a_wider_end_than_its_channel_is_not_read_through_it():
    # 6 came from 4 to 8 by the channel; a method that says 3 or 9 has done something else as well.
    for low, high, size in (([3, 4], [8, 8], 6), ([4, 4], [9, 8], 6)):
        belief = attack(rounded((PARTS,), [6, 6], low=low, high=high))
        assert belief.distribution(0)[1] == pytest.approx([1 / size] * size)
        assert belief.distribution(1)[1] == pytest.approx(np.array([1, 2, 3, 2, 1]) / 9)
    # Without one of the ends all numbers came through the channel.
    for end in ({"low": [4, 4]}, {"high": [8, 8]}):
        belief = attack(rounded((PARTS,), [6, 6], **end))
        assert belief.distribution(0)[1] == pytest.approx(np.array([1, 2, 3, 2, 1]) / 9)


def test_without_a_prior_a_cell_needs_no_bounds_and_with_one_it_does():
    assert attack(Knowledge.of("x")).count.tolist() == [np.inf]
    for ends in ({"low": [0, 0], "high": [3, UNBOUNDED]}, {"low": [0, -UNBOUNDED], "high": [3, 4]}):
        known = Knowledge.of("xy", low=-UNBOUNDED).within(ends["low"], ends["high"])
        assert attack(known).count.tolist() == [4, np.inf]
        with pytest.raises(InputError, match="bounds"):
            attack(known, prior=Uniform())
        sure = attack(known, prior=Uniform(1, 2), cells=["x"])
        assert sure.distribution(0)[0].tolist() == [1, 2]


def test_units_stay_with_a_belief():
    known = Knowledge.of("xy", decimals=2).within([0, 0], [3, 0])
    assert attack(known).decimals == 2
    assert attack(known, prior=Uniform(1, 2)).decimals == 2
    assert posterior(0, FLAT, decimals=3).decimals == 3
    assert Belief.uniform([0], [1], decimals=1).decimals == 1
    assert Belief.explicit([([0], [1.0])], decimals=1).decimals == 1
    assert Belief.uniform([0], [1], decimals=1).shifted(4).decimals == 1


def test_attackers_are_attackers_with_whole_contributions():
    known = Knowledge.of("x").bound("x", 0, 3)
    with pytest.raises(InputError):
        attack(known, "outsider")
    for wrong in ("five", 1.5, np.nan, np.inf, None, True, -1):
        with pytest.raises(InputError, match="A contribution must be"):
            Insider(wrong)
    assert Insider(2.0).contributions(known).anywhere == 2


def test_attackers_name_their_cell_and_nothing_else():
    assert repr(Insider(7)) == "Insider()"
    assert repr(Insider(7, "a")) == "Insider(cell='a')"
    members = [Insider(7, "a"), Insider(2)]
    assert Coalition(members) == Coalition(tuple(members))
    assert hash(Coalition(members)) == hash(Coalition(tuple(members)))


# Beliefs


def test_the_mean_squared_error_by_hand():
    for belief in (Belief.uniform([0], [2]), Belief.explicit([([0, 1, 2], [1 / 3] * 3)])):
        assert belief.mean_squared_error(1) == pytest.approx([2 / 3])
        assert belief.mean_squared_error(3) == pytest.approx([14 / 3])


def test_a_belief_cannot_be_changed_and_a_uniform_one_lists_nothing():
    belief = Belief.uniform([0, 1], [3, 3])
    assert belief.values.size == belief.probabilities.size == 0
    listed = Belief.explicit([([0, 1], [0.5, 0.5])])
    for array in (belief.low, belief.count, listed.values, listed.probabilities, listed.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_beliefs_about_several_cells_are_checked_cell_by_cell():
    nan = np.nan
    wrong = [
        (lambda: Belief.uniform([nan, 0], [1, 1]), "for each cell"),
        (lambda: Belief.uniform([0, 0], [nan, 1]), "for each cell"),
        (lambda: Belief.uniform([0, 2], [1, 1]), "no feasible value"),
        (lambda: Belief.uniform([0, 0.5], [1, 1]), "whole numbers"),
        (lambda: Belief.uniform([0, 0], [1, 1.5]), "whole numbers"),
        (lambda: Belief.uniform([0], [1]).entropy(np.inf), "above 1"),
        (lambda: Belief.of_lists(np.array([0, 1, 1]), np.array([4]), np.ones(1)), "no value"),
        (lambda: Belief.uniform([0], [3]).expectation(lambda k: 1 / (k != 2) * nan), "one number"),
        (
            lambda: Belief.uniform([0], [3]).expectation(lambda k: np.where(k == 2, nan, 1.0)),
            "one number",
        ),
        (lambda: posterior([0, 0], FLAT, support=([0, 1], [1, 0])), "no feasible value"),
        (lambda: posterior([0, 1], FLAT, support=([0, 0], [5, 5])), "Nothing is left"),
    ]
    for make, says in wrong:
        with pytest.raises(InputError, match=says), np.errstate(divide="ignore", invalid="ignore"):
            make()
    assert len(Belief.explicit([])) == 0


def test_entropy_of_mixed_cells_and_of_certain_ones():
    belief = Belief.of_lists(
        np.array([0, 1, 1, 3]),
        np.array([4, 1, 2]),
        np.array([1.0, 0.25, 0.75]),
        rest=Belief.uniform([0, 0, 0], [0, 7, 0]),
    )
    wanted = [0, 3, 0.25 * 2 + 0.75 * log2(4 / 3)]
    assert belief.entropy(2) == pytest.approx(wanted)
    assert belief.entropy(4) == pytest.approx(np.array(wanted) / 2)
    # A certain cell has plainly no entropy, without the sign of a rounding error.
    assert not np.signbit(Belief.explicit([([1], [1.0])]).entropy()).any()
    assert not np.signbit(Belief.uniform([1], [1]).entropy()).any()


def test_values_are_written_out_and_summed_up_to_a_limit(monkeypatch):
    for too_many in (10**8, 3 * 10**9):
        belief = Belief.uniform([0], [too_many])
        with pytest.raises(InputError, match="too many"):
            belief.distribution(0)
        with pytest.raises(InputError, match="too many"):
            belief.expectation(lambda k: k)
    monkeypatch.setattr(belief_module, "_MOST", 10)
    ten, eleven = Belief.uniform([5], [14]), Belief.uniform([5], [15])
    assert ten.distribution(0)[0].tolist() == list(range(5, 15))
    assert ten.expectation(lambda k: k) == pytest.approx([9.5])
    for make in (lambda: eleven.distribution(0), lambda: eleven.expectation(lambda k: k)):
        with pytest.raises(InputError, match="too many"):
            make()
    # The limit is one for all cells together.
    with pytest.raises(InputError, match="too many"):
        Belief.uniform([0, 0], [5, 5]).expectation(lambda k: k)


def test_values_are_weighed_up_to_a_limit(monkeypatch):
    ends = np.array([0]), np.array([2 * 10**7])
    with pytest.raises(InputError, match="too many"):
        weighted(*ends, Uniform())
    assert weighted(np.array([0]), np.array([999]), Uniform()).count.tolist() == [1000]
    monkeypatch.setattr(posterior_module, "_MOST", 10)
    assert weighted(np.array([0]), np.array([9]), Uniform()).count.tolist() == [10]
    with pytest.raises(InputError, match="too many"):
        weighted(np.array([0]), np.array([10]), Uniform())


# Priors


class Given:
    """A prior with the weights that a test gives."""

    def __init__(self, weights):
        self.given = np.array(weights, dtype=np.float64)

    def weights(self, values, low, high):
        return self.given[values]


def test_a_prior_gives_weights_of_0_or_more():
    ends = np.array([0]), np.array([2])
    assert weighted(*ends, Given([3, 0, 1])).probabilities.tolist() == [0.75, 0.25]
    for wrong in ([1, -1, 1], [-1, -1, -1], [1, np.nan, 1]):
        with pytest.raises(InputError, match="negative weight"):
            weighted(*ends, Given(wrong))
    # Without a channel nothing was published through it.
    assert weighted(*ends, Given([3, 0, 1]), np.array([0])).values.tolist() == [0, 2]


def test_ends_of_a_uniform_prior_are_each_optional():
    ends = np.zeros(5, int), np.full(5, 4)
    assert Uniform(low=2).weights(np.arange(5), *ends).tolist() == [0, 0, 1, 1, 1]
    assert Uniform(high=2).weights(np.arange(5), *ends).tolist() == [1, 1, 1, 0, 0]
    assert Uniform(2, 2).weights(np.arange(5), *ends).tolist() == [0, 0, 1, 0, 0]
    for kind in (Uniform, BetaBinomial):
        with pytest.raises(InputError, match="above its highest"):
            kind(3, 2)


@pytest.mark.parametrize(
    ("prior", "first", "last"),
    [
        (BetaBinomial(alpha=2, beta=3), 0, 5),
        (BetaBinomial(low=1, alpha=2, beta=3), 1, 5),
        (BetaBinomial(high=4, alpha=2, beta=0.5), 0, 4),
        (BetaBinomial(1, 3, alpha=0.5, beta=3), 1, 3),
    ],
)
def test_a_beta_binomial_prior_is_its_formula(prior, first, last):
    values = np.arange(6)
    found = prior.weights(values, np.zeros(6, int), np.full(6, 5))
    n = last - first
    wanted = [
        comb(n, x - first)
        * beta_function(x - first + prior.alpha, n - x + first + prior.beta)
        / beta_function(prior.alpha, prior.beta)
        if first <= x <= last
        else 0.0
        for x in range(6)
    ]
    assert found == pytest.approx(wanted)
    assert found.sum() == pytest.approx(1.0)


def test_priors_refuse_what_is_no_weight():
    for alpha, beta in ((np.inf, 1), (1, np.inf), (0, 1), (1, 0)):
        with pytest.raises(InputError, match="above 0"):
            BetaBinomial(alpha=alpha, beta=beta)
    for frequencies, smoothing in (((2, -1), 0), ((1, 1), np.inf), ((1, 1), -1)):
        with pytest.raises(InputError, match="negative"):
            ReferenceFrequencies((0, 1), frequencies, smoothing)
    assert ReferenceFrequencies((0, 1), (0, 3)).weights(
        np.arange(3), np.zeros(3), np.zeros(3)
    ).tolist() == [0, 3, 0]


def test_a_listed_prior_is_the_same_from_lists_and_tuples():
    one, two = TablePrior([1, 2], [0.5, 0.5]), TablePrior((1, 2), (0.5, 0.5))
    assert one == two
    assert hash(one) == hash(two)


# The Markov perturbed square


def written_out(square, true, published):
    """The likelihood by its definition: who stays above the least value, and who comes in."""
    least, most = square.least, square.most
    if most > true:
        enter = square.theta * true / (square.column - true)
        if enter > 1:
            return 0.0
    else:
        enter = 0.0
    total = 0.0
    for stay in range(true - least + 1):
        come = published - least - stay
        if 0 <= come <= most - true:
            total += (
                comb(true - least, stay)
                * (1 - square.theta) ** stay
                * square.theta ** (true - least - stay)
                * comb(most - true, come)
                * enter**come
                * (1 - enter) ** (most - true - come)
            )
    return total


@pytest.mark.parametrize(
    ("row", "column", "total", "theta"),
    [(9, 8, 12, 0.1), (4, 6, 8, 0.3), (3, 5, 5, 1.0), (2, 6, 10, 0.0), (5, 5, 12, 0.9)],
)
def test_a_square_moves_people_as_it_is_defined(row, column, total, theta):
    square = MarkovSquare(row, column, total, theta)
    range_ = range(square.least, square.most + 1)
    for published in range_:
        wanted = [written_out(square, true, published) for true in range_]
        assert likelihood(published, square, range_) == pytest.approx(wanted)
    found = square.transitions(np.array(range_))
    assert set(found.published.tolist()) <= set(range_)
    stays = [written_out(square, true, true) for true in range_]
    assert square.stay(0, None) == pytest.approx(np.mean(stays))
    for first in range_:
        for last in range(first, square.most + 1):
            wanted = np.mean(stays[first - square.least : last + 1 - square.least])
            assert square.stay(first, last) == pytest.approx(wanted)
    for outside in (square.least - 1, square.most + 1):
        with pytest.raises(InputError, match="margins"):
            square.transitions(np.array([square.least, outside]))


def test_margins_of_a_square_reach_from_nobody_to_everybody():
    assert MarkovSquare(0, 0, 0, 0.1).most == 0
    assert MarkovSquare(0, 5, 5, 0.1).most == 0
    assert (MarkovSquare(5, 5, 5, 0.1).least, MarkovSquare(5, 5, 5, 0.1).most) == (5, 5)
    for row, column, total in ((-1, 5, 10), (5, -1, 10), (11, 5, 10), (-1, -1, 10), (5, 11, 10)):
        with pytest.raises(InputError, match="grand total"):
            MarkovSquare(row, column, total, 0.1)
    for theta in (-0.1, 1.1):
        with pytest.raises(InputError, match="between 0 and 1"):
            MarkovSquare(5, 5, 10, theta)


def test_a_channel_that_states_chances_pair_by_pair_is_believed_like_one_that_lists_them():
    """The same belief from all three ways in which a channel may state its chances."""
    matrix = MatrixChannel(np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]))

    class Pairs:
        """Nothing but chances of pairs."""

        def chances(self, true, published):
            return matrix.probabilities(true, published)

    class Lists:
        """Nothing but rows, with what they lead to."""

        def transitions(self, true):
            return matrix.transitions(true)

    low, high, shown = np.zeros(3, int), np.full(3, 2), np.array([0, 1, 2])
    found = [
        weighted(low, high, Uniform(), shown, channel) for channel in (matrix, Pairs(), Lists())
    ]
    for belief in found:
        assert belief.values.tolist() == [0, 1, 0, 1, 2, 1, 2]
        assert belief.probabilities.tolist() == pytest.approx(
            [2 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3, 2 / 3]
        )
    with pytest.raises(InputError):
        weighted(low, high, Uniform(), np.full(3, 9), Lists())
