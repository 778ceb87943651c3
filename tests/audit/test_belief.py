"""Beliefs, written out or not."""

from __future__ import annotations

from fractions import Fraction
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK
from lustrum.audit import Belief
from lustrum.audit.belief import belief as belief_module
from lustrum.model import InputError


@st.composite
def cells(draw: st.DrawFn) -> tuple[Belief, list[dict[int, Fraction]]]:
    """A belief about some cells, of which some are listed and some are even, and what it means."""
    meant: list[dict[int, Fraction]] = []
    low, high, indptr, values, chances = [], [], [0], [], []
    for _ in range(draw(st.integers(1, 4))):
        low.append(draw(st.integers(-5, 5)))
        high.append(low[-1] + draw(st.integers(0, 40)))
        if draw(st.booleans()):
            weights = draw(
                st.dictionaries(st.integers(-9, 9), st.integers(0, 6), min_size=1).filter(
                    lambda w: any(w.values())
                )
            )
            total = sum(weights.values())
            values += list(weights)
            chances += [w / total for w in weights.values()]
            meant.append({v: Fraction(w, total) for v, w in sorted(weights.items()) if w})
        else:
            size = high[-1] - low[-1] + 1
            meant.append({v: Fraction(1, size) for v in range(low[-1], high[-1] + 1)})
        indptr.append(len(values))
    lists = np.array(indptr), np.array(values, dtype=np.int64), np.array(chances)
    return Belief.of_lists(*lists, rest=Belief.uniform(low, high), decimals=1), meant


@QUICK
@given(cells(), st.integers(-4, 4))
def test_a_belief_is_what_its_chances_say(case, about):
    belief, meant = case
    assert belief.decimals == 1
    assert belief.count.tolist() == [len(m) for m in meant]
    assert belief.low.tolist() == [min(m) for m in meant]
    moved = belief.shifted(np.arange(len(meant)))
    for cell, m in enumerate(meant):
        for found, by in ((belief, 0), (moved, cell)):
            values, chances = found.distribution(cell)
            assert values.tolist() == [v + by for v in m]
            assert chances == pytest.approx([float(p) for p in m.values()])
    squares = [float(sum(p * (v - about) ** 2 for v, p in m.items())) for m in meant]
    assert belief.mean_squared_error(about) == pytest.approx(squares)
    bits = [-sum(float(p) * log2(p) for p in m.values()) for m in meant]
    assert belief.entropy(2) == pytest.approx(bits, abs=1e-12)
    assert belief.entropy(4) == pytest.approx(np.array(bits) / 2, abs=1e-12)
    assert not np.signbit(belief.entropy()).any()
    written = Belief.explicit([belief.distribution(c) for c in range(len(meant))], decimals=2)
    assert written.decimals == 2
    assert written.entropy(2) == pytest.approx(bits, abs=1e-12)
    for array in (belief.low, belief.count, belief.indptr, belief.values, belief.probabilities):
        assert not array.flags.writeable


def test_values_are_written_out_and_summed_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(belief_module, "_MOST", 10)
    ten, eleven = Belief.uniform([5], [14]), Belief.uniform([5], [15])
    assert ten.distribution(0)[0].tolist() == list(range(5, 15))
    assert ten.expectation(lambda k: k) == pytest.approx([9.5])
    # The limit is one for all cells together.
    both = Belief.uniform([0, 0], [5, 5])
    for make in (
        lambda: eleven.distribution(0),
        lambda: eleven.expectation(lambda k: k),
        lambda: both.expectation(lambda k: k),
    ):
        with pytest.raises(InputError, match="too many"):
            make()


def test_certainty_has_no_entropy_and_no_bounds_have_no_end_of_it():
    belief = Belief.uniform([3, 0], [3, np.inf])
    assert belief.entropy(2).tolist() == [0, np.inf]
    sure = Belief.explicit([([1, 2], [1.0, 0.0])])
    assert sure.entropy().tolist() == [0]
    assert sure.count.tolist() == [1]


def test_a_long_range_is_run_through_in_pieces():
    belief = Belief.uniform([0], [3_000_000])
    assert belief.expectation(lambda k: k) == pytest.approx([1_500_000])


def test_the_repr_shows_no_value():
    assert repr(Belief.uniform([321], [321])) == "Belief(1 cell)"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Belief.uniform([2], [1]), "no feasible value"),
        (lambda: Belief.uniform([0, 2], [1, 1]), "no feasible value"),
        (lambda: Belief.uniform([0, 0.5], [1, 1]), "whole numbers"),
        (lambda: Belief.uniform([0, 0], [1, 1.5]), "whole numbers"),
        (lambda: Belief.uniform([0], [1, 2]), "for each cell"),
        (lambda: Belief.uniform([np.nan, 0], [1, 1]), "for each cell"),
        (lambda: Belief.uniform([0, 0], [np.nan, 1]), "for each cell"),
        (lambda: Belief.uniform([0], [1]).entropy(np.inf), "above 1"),
        (
            lambda: Belief.uniform([0], [3]).expectation(lambda k: np.where(k == 2, np.nan, 1.0)),
            "one",
        ),
        (lambda: Belief.explicit([([], [])]), "lists no value"),
        (lambda: Belief.explicit([([1], [0.5, 0.5])]), "one probability"),
        (lambda: Belief.explicit([([1, 1], [0.5, 0.5])]), "twice"),
        (lambda: Belief.explicit([([1, 2], [1.5, -0.5])]), "negative"),
        (lambda: Belief.explicit([([1, 2], [0.5, np.nan])]), "negative or not"),
        (lambda: Belief.explicit([([1, 2], [0.5, 0.4])]), "add up to 1"),
        (lambda: Belief.uniform([0], [1]).entropy(1), "above 1"),
        (lambda: Belief.uniform([0], [1]).entropy(0.5), "above 1"),
        (lambda: Belief.uniform([0], [np.inf]).distribution(0), "too many"),
        (lambda: Belief.uniform([0], [np.inf]).expectation(lambda k: k), "too many"),
        (lambda: Belief.uniform([0], [5]).expectation(lambda k: 1.0), "one number for each"),
        (lambda: Belief.of_lists(np.array([0, 0]), np.array([1])[:0], np.ones(0)), "no value"),
    ],
)
def test_a_mistake_is_one_clear_sentence(wrong, says):
    with pytest.raises(InputError, match=says) as caught:
        wrong()
    assert str(caught.value).endswith(".")
