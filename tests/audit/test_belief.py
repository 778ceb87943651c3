"""Beliefs, written out or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK
from lustrum.audit import Belief
from lustrum.model import InputError


@QUICK
@given(st.integers(-5, 5), st.integers(1, 40))
def test_a_uniform_belief_is_the_same_written_out(low, m):
    lazy = Belief.uniform([low], [low + m - 1])
    values, chances = lazy.distribution(0)
    written = Belief.explicit([(values, chances)])
    assert lazy.count.tolist() == written.count.tolist() == [m]
    assert lazy.entropy(2) == pytest.approx(written.entropy(2))
    assert lazy.entropy(2) == pytest.approx([np.log2(m)])
    assert lazy.mean_squared_error(1) == pytest.approx(written.mean_squared_error(1))


def test_cells_of_both_kinds_stand_side_by_side():
    rest = Belief.uniform([0, 4, 7], [3, 4, 8])
    mixed = Belief.of_lists(
        np.array([0, 0, 2, 2]), np.array([9, 5]), np.array([0.25, 0.75]), rest=rest
    )
    assert mixed.count.tolist() == [4, 2, 2]
    assert mixed.low.tolist() == [0, 5, 7]
    assert mixed.distribution(1)[0].tolist() == [5, 9]
    assert mixed.distribution(2)[0].tolist() == [7, 8]
    assert mixed.entropy(2) == pytest.approx([2, 0.25 * 2 + 0.75 * np.log2(4 / 3), 1])
    assert mixed.expectation(lambda k: k) == pytest.approx([1.5, 6.0, 7.5])
    moved = mixed.shifted([1, -5, 0])
    assert moved.distribution(1)[0].tolist() == [0, 4]
    assert moved.low.tolist() == [1, 0, 7]


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
        (lambda: Belief.uniform([0.5], [2]), "whole numbers"),
        (lambda: Belief.uniform([0], [1, 2]), "for each cell"),
        (lambda: Belief.uniform([np.nan], [1]), "for each cell"),
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
