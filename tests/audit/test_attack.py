"""Attacks: what outsiders, insiders and coalitions can still believe."""

from __future__ import annotations

from fractions import Fraction

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
    Uniform,
    attack,
    others,
)
from lustrum.model import InputError, Release
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.rounding.cells import RoundingChannel

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
    assert others(3, 9, 9) == (0, 0)
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


LINE = axis("r", [0], [1], [0, 1])
CHANNEL = RoundingChannel(3)


@QUICK
@given(st.data())
def test_a_release_is_read_through_its_channel_inside_the_feasible_ranges(data):
    """By definition: ranges from all tables that fit, and Bayes in fractions where a channel speaks."""
    true = [data.draw(st.integers(0, 7)) for _ in range(2)]
    true.append(sum(true))
    shown = [3 * (v // 3) + 3 * data.draw(st.integers(0, int(v % 3 > 0))) for v in true]
    hidden = [data.draw(st.integers(0, 4)) == 0 for _ in range(3)]
    wider = [data.draw(st.sampled_from([(0, 0), (0, 0), (1, 0), (0, 1)])) for _ in range(3)]
    low = [max(s - 2 - w[0], 0) for s, w in zip(shown, wider, strict=True)]
    high = [s + 2 + w[1] for s, w in zip(shown, wider, strict=True)]
    prior = data.draw(st.sampled_from([None, TablePrior(range(25), [0.04] * 25), Uniform(0, 12)]))
    release = Release(
        (LINE,),
        np.array(shown),
        np.where(hidden, "D", "F"),
        {"method": "random-rounding"},
        channel=CHANNEL,
        least=np.array(low),
        most=np.array(high),
    )
    known = Knowledge.of("abt").within(low, high).fact({"a": 1, "b": 1, "t": -1}, 0, 0)
    tables = fitting(known)
    belief = attack(release, prior=prior)
    for cell in range(3):
        values = range(tables[:, cell].min(), tables[:, cell].max() + 1)
        weights = dict.fromkeys(values, Fraction(1))
        # A number with a wider end than its channel's was not read through the channel alone.
        by_channel = low[cell] >= max(shown[cell] - 2, 0) and high[cell] <= shown[cell] + 2
        if not hidden[cell] and by_channel and len(values) > 1:
            weights = {v: Fraction(max(3 - abs(v - shown[cell]), 0), 3) for v in values}
        if isinstance(prior, Uniform) and len(values) > 1:
            weights = {v: w for v, w in weights.items() if v <= 12}
        wanted = {v: float(w / sum(weights.values())) for v, w in weights.items() if w}
        found, chances = belief.distribution(cell)
        assert found.tolist() == list(wanted)
        assert chances == pytest.approx(list(wanted.values()))


def test_cells_behind_a_release_are_attacked_only_where_they_are_asked_for():
    # Two sets that overlap have three inner cells behind them.
    line = axis("r", [0, 1], [1, 2])
    values, status = np.array([3, 6]), np.full(2, "F")
    release = Release((line,), values, status, {"method": "random-rounding"}, channel=CHANNEL)
    assert len(attack(release)) == 2
    more = attack(release, cells=[0, 2])
    assert more.distribution(0)[1] == pytest.approx(np.array([1, 2, 3, 2, 1]) / 9)
    assert len(set(more.distribution(1)[1].tolist())) == 1


def test_a_certain_cell_stays_certain_whatever_channel_and_prior_say():
    # 3, 3 beside 0 can only be 1, 1 and 2; the prior rules each of them out.
    values, status = np.array([3, 3, 0]), np.full(3, "F")
    release = Release((LINE,), values, status, {"method": "random-rounding"}, channel=CHANNEL)
    certain = attack(release, prior=TablePrior((9,), (1.0,)))
    assert certain.low.tolist() == [1, 1, 2]
    assert certain.count.tolist() == [1, 1, 1]


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


def test_without_a_prior_a_cell_needs_no_bounds_and_with_one_it_does():
    for low, high in (([0, 0], [3, UNBOUNDED]), ([0, -UNBOUNDED], [3, 4])):
        known = Knowledge.of("xy", low=-UNBOUNDED, decimals=2).within(low, high)
        assert attack(known).count.tolist() == [4, np.inf]
        with pytest.raises(InputError, match="bounds"):
            attack(known, prior=Uniform())
        sure = attack(known, prior=Uniform(1, 2), cells=["x"])
        assert sure.distribution(0)[0].tolist() == [1, 2]
        assert (attack(known).decimals, sure.decimals) == (2, 2)


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
        (lambda k: Insider(np.inf), "whole number"),
        (lambda k: Insider("five"), "whole number"),
        (lambda k: attack(k, "outsider"), "ttacker"),
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
