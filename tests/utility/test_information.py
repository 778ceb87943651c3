from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from lustrum.model import InputError
from lustrum.utility import Divergence, EntropyChange, cell_entropy
from utility.cases import QUICK, Pair, count_pairs


@QUICK
@given(count_pairs())
def test_entropies_are_those_of_scipy(pair: Pair) -> None:
    F, G = pair
    assert cell_entropy(F) == pytest.approx(entropy(F), abs=1e-12)
    assert EntropyChange().of_cells(F, G) == pytest.approx(abs(entropy(G) - entropy(F)), abs=1e-12)
    assert EntropyChange().of_cells(F, G) <= math.log(len(F)) + 1e-12


@QUICK
@given(count_pairs(least=1))
def test_the_divergence_is_that_of_scipy(pair: Pair) -> None:
    F, G = pair
    assert Divergence().of_cells(F, G) == pytest.approx(entropy(F, G), abs=1e-12)


@QUICK
@given(count_pairs(), st.floats(0.01, 2))
def test_smoothing_makes_the_divergence_exist(pair: Pair, extra: float) -> None:
    F, G = pair
    oracle = entropy([f + extra for f in F], [g + extra for g in G])
    assert Divergence(extra).of_cells(F, G) == pytest.approx(oracle, abs=1e-12)


def test_a_populated_cell_published_as_0_has_no_divergence() -> None:
    with pytest.raises(InputError, match="smoothing above 0"):
        Divergence().of_cells([1, 2], [0, 3])
    assert Divergence().of_cells([0, 3], [1, 2]) > 0
    with pytest.raises(InputError, match="0 or more"):
        Divergence(smoothing=-1)


def test_nobody_has_no_information() -> None:
    with pytest.raises(InputError, match="without anybody"):
        cell_entropy([0, 0])
    with pytest.raises(InputError, match="without anybody"):
        Divergence().of_cells([0, 0], [1, 1])
