"""Attacks: what outsiders, insiders and coalitions can still believe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK, axis, fitting
from lustrum.audit import (
    Coalition,
    Insider,
    Knowledge,
    Outsider,
    TablePrior,
    attack,
    others,
    posterior,
)
from lustrum.model import InputError, Release, Table
from lustrum.protect.rounding.random import RandomRounding, RoundingChannel

ROW, COLUMN = axis("r", [0], [1], [0, 1]), axis("c", [0], [1], [0, 1])


def square(row: tuple[int, int], column: int) -> Knowledge:
    """A 2 x 2 table of which only the margins are known."""
    total = sum(row)
    known = Knowledge.of("abcd")
    for pair, value in (("ab", row[0]), ("cd", row[1]), ("ac", column), ("bd", total - column)):
        known = known.fact(dict.fromkeys(pair, 1), value, value)
    return known.within([0] * 4, [total] * 4)


@st.composite
def squares(draw: st.DrawFn) -> Knowledge:
    row = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    return square(row, draw(st.integers(0, sum(row))))


@QUICK
@given(squares())
def test_a_uniform_belief_runs_over_the_values_that_occur_in_some_table(known):
    points = fitting(known)
    belief = attack(known)
    for cell in range(4):
        assert belief.distribution(cell)[0].tolist() == np.unique(points[:, cell]).tolist()


@QUICK
@given(squares(), st.integers(0, 3), st.data())
def test_an_insider_keeps_the_tables_that_hold_their_own_contribution(known, cell, data):
    points = fitting(known)
    own = data.draw(st.integers(0, int(points[:, cell].max())))
    left = points[points[:, cell] >= own]
    belief = attack(known, Insider(contribution=own, cell=cell))
    for other in range(4):
        wanted = np.unique(left[:, other]) - (own if other == cell else 0)
        assert belief.distribution(other)[0].tolist() == wanted.tolist()


def test_the_largest_contributor_seen_by_the_second_largest():
    known = Knowledge.of(["z"]).bound("z", low=995, high=1004)
    for attacker in (Insider(400), Insider(400, "z"), Coalition((Insider(300, "z"), Insider(100)))):
        belief = attack(known, attacker)
        assert (belief.low.tolist(), belief.count.tolist()) == ([595], [10])
    assert others(995, 1004, 400) == (595, 604)
    assert others(3, 9, 5) == (0, 4)
    assert attack(known).low.tolist() == attack(known, Outsider()).low.tolist() == [995]


def test_an_insider_somewhere_is_judged_cell_by_cell():
    known = Knowledge.of("xyz").within([0, 0, 5], [3, 10, 20])
    belief = attack(known, Insider(contribution=4))
    # Nobody can give 4 to the first cell, so of that one the attacker knows what everybody knows.
    assert belief.low.tolist() == [0, 0, 1]
    assert belief.count.tolist() == [4, 7, 16]


def test_members_of_a_coalition_add_up():
    known = square((4, 4), 4)
    both = Coalition((Insider(2, "a"), Insider(1, "a"), Insider(3, "d")))
    belief = attack(known, both)
    assert belief.low.tolist() == [0, 0, 0, 0]
    assert belief.count.tolist() == [2, 2, 2, 2]


def test_random_rounding_without_totals_is_bayes_cell_by_cell():
    table = Table.from_counts([[1, 5, 7], [0, 2, 11]])
    release = RandomRounding(base=3).apply(table, rng=np.random.default_rng(3))
    belief = attack(release)
    plain = posterior(release.published.ravel(), release.channel)
    assert belief.values.tolist() == plain.values.tolist()
    assert belief.probabilities == pytest.approx(plain.probabilities)


def rounded(axes, published, **ends):
    """A release of numbers rounded to base 3, all of them shown."""
    values = np.array(published, dtype=np.int64)
    return Release(
        axes,
        values,
        np.full(values.shape, "F"),
        {"method": "random-rounding"},
        channel=RoundingChannel(3),
        **{name: np.array(end, dtype=np.int64) for name, end in ends.items()},
    )


def test_published_totals_narrow_what_the_channel_leaves():
    line = axis("r", [0], [1], [0, 1])
    certain = attack(rounded((line,), [3, 3, 0]))
    assert certain.low.tolist() == [1, 1, 2]
    assert certain.count.tolist() == [1, 1, 1]
    # Beside a total of 3, which is 5 at most, each part is 1 to 4, and as probable as the channel says.
    values, chances = attack(rounded((line,), [3, 3, 3])).distribution(0)
    assert values.tolist() == [1, 2, 3, 4]
    assert chances == pytest.approx(np.array([1, 2, 3, 2]) / 8)


def test_a_total_that_may_have_been_added_up_is_not_read_through_the_channel():
    line = axis("r", [0], [1])
    belief = attack(rounded((line,), [6, 6], low=[3, 4], high=[9, 8]))
    assert belief.distribution(0)[1] == pytest.approx([1 / 7] * 7)
    assert belief.distribution(1)[1] == pytest.approx(np.array([1, 2, 3, 2, 1]) / 9)


def test_suppressed_cells_have_no_channel_and_exact_ones_need_no_prior():
    values = np.array([[3, 4, 7], [5, 6, 11], [8, 10, 18]], dtype=np.int64)
    status = np.full((3, 3), "F")
    status[:2, :2] = "D"
    release = Release((ROW, COLUMN), values, status, {"method": "suppression"})
    prior = TablePrior((1, 2, 3), (0.5, 0.25, 0.25))
    belief = attack(release, prior=prior, cells=[0, 8])
    assert belief.distribution(0)[0].tolist() == [1, 2, 3]
    assert belief.distribution(0)[1] == pytest.approx([0.5, 0.25, 0.25])
    assert belief.distribution(1)[0].tolist() == [18]
    assert len(attack(release)) == 9


def test_a_channel_and_a_prior_meet_inside_the_bounds():
    table = Table.from_counts([4, 4])
    release = RandomRounding(base=3).apply(table, rng=np.random.default_rng(5))
    prior = TablePrior((1, 4, 5), (0.2, 0.4, 0.4))
    belief = attack(release, prior=prior)
    wanted = posterior(release.published, release.channel, prior)
    assert belief.values.tolist() == wanted.values.tolist()
    assert belief.probabilities == pytest.approx(wanted.probabilities)


def test_no_repr_shows_a_contribution():
    member = Insider(contribution=98765, cell="a")
    for shown in (
        member,
        Insider(98765),
        Coalition((member,)),
        member.contributions(square((1, 1), 1)),
    ):
        assert "98765" not in repr(shown)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda k: attack(k, Insider(9, "a")), "larger than the published cells allow"),
        (lambda k: attack(k, Insider(9)), "larger than any"),
        (lambda k: attack(k, Coalition((Insider(3, "a"), Insider(3, "a")))), "larger than"),
        (lambda k: attack(k, Coalition((Insider(3, "a"), Insider(3, "b")))), "larger than"),
        (lambda k: Insider(-1), "0 or more"),
        (lambda k: Insider(1.5), "whole number"),
        (lambda k: Insider(True), "whole number"),
        (lambda k: Coalition(()), "at least one member"),
        (lambda k: attack(k.relaxed()), "whole numbers"),
        (lambda k: attack(Knowledge.of("x"), prior=TablePrior((1,), (1.0,))), "bounds"),
        (lambda k: others(5, 4, 1), "above its upper"),
        (lambda k: others(5, 6, 7), "between 0 and"),
    ],
)
def test_a_mistake_is_one_clear_sentence_without_numbers(wrong, says):
    with pytest.raises(InputError, match=says) as caught:
        wrong(square((4, 4), 4))
    assert str(caught.value).endswith(".")
    assert "9" not in str(caught.value)


def test_a_contradiction_stays_one_when_nobody_is_inside():
    known = Knowledge.of("ab").fact({"a": 1, "b": 1}, 3, 3).zero(["a", "b"])
    with pytest.raises(InputError, match="contradict"):
        attack(known)
