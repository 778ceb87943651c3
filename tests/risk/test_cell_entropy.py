"""The reciprocal of entropy, and the general model of cell risk."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.audit import Belief, Insider, Knowledge, PublishedTable, attack, from_tables
from lustrum.model import InputError, TableAxis
from lustrum.risk.entropy import cell_entropy, expected_risk


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_risk_falls_as_more_values_are_possible(one, other):
    fewer, more = sorted((one, other))
    risk = cell_entropy(Belief.uniform([0, 0], [fewer - 1, more - 1]))
    assert risk[0] >= risk[1]
    assert (risk > 0).all()


@given(st.integers(2, 10**9), st.sampled_from([2.0, np.e, 10.0]))
def test_a_uniform_belief_has_risk_one_over_log_m(m, base):
    risk = cell_entropy(Belief.uniform([5], [m + 4]), base)
    assert risk == pytest.approx([np.log(base) / np.log(m)])


def test_exact_disclosure_is_infinite_and_warns_about_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        risk = cell_entropy(
            Belief.of_lists(
                np.array([0, 0, 1, 1]),
                np.array([4]),
                np.array([1.0]),
                rest=Belief.uniform([7, 0, 0], [7, 1, np.inf]),
            )
        )
    assert risk.tolist() == [np.inf, np.inf, 0.0]


def test_the_figures_of_domingo_ferrer_oganian_and_torra():
    assert cell_entropy(Belief.uniform([0], [406])) == pytest.approx([0.11535], abs=1e-5)
    axis = TableAxis.plain("cell", ["inside", "zero"])
    rounded = attack(from_tables([PublishedTable.rounded([axis], [6, 0], base=3)]))
    assert cell_entropy(rounded) == pytest.approx([0.6309, 1.0], abs=5e-5)


def test_an_insider_finds_a_cell_riskier_than_an_outsider_does():
    known = Knowledge.of(["z"]).bound("z", low=0, high=1004)
    outside, inside = cell_entropy(attack(known)), cell_entropy(attack(known, Insider(1000)))
    assert inside[0] > outside[0]


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.floats(0, 5), st.floats(-3, 3))
def test_expected_risk_is_the_sum_of_harm_times_probability(weights, scale, power):
    p = np.array(weights) / sum(weights)
    k = np.arange(1, p.size + 1)
    belief = Belief.explicit([(k, p)])
    wanted = sum(scale * float(v) ** power * q for v, q in zip(k, p, strict=True))
    found = expected_risk(belief, lambda v: scale * v.astype(float) ** power)
    assert found == pytest.approx([wanted])


def test_only_small_values_may_be_harmful():
    rounded = Belief.uniform([1, 4], [5, 8])
    assert expected_risk(rounded, lambda k: k <= 2).tolist() == [0.4, 0.0]


@pytest.mark.parametrize("base", [1.0, 0.5, 0.0, -2.0, np.inf, np.nan])
def test_a_logarithm_needs_a_base_above_one(base):
    with pytest.raises(InputError, match="above 1"):
        cell_entropy(Belief.uniform([0], [1]), base)


def test_harm_is_not_negative():
    with pytest.raises(InputError, match="negative"):
        expected_risk(Belief.uniform([0], [1]), lambda k: -k)
