from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from scipy.stats import chi2_contingency, rankdata, spearmanr
from scipy.stats.contingency import association

from lustrum.model import InputError, Table
from lustrum.utility import ChiSquareChange, CramersVChange, chi_square, cramers_v, rank_correlation
from lustrum.utility.measures.association import average_ranks
from utility.cases import QUICK, Pair, count_pairs, grids, release_of


@QUICK
@given(grids())
def test_chi_square_and_cramers_v_are_those_of_scipy(counts: np.ndarray) -> None:
    two_way = counts.reshape(counts.shape[0], -1)
    assert chi_square(two_way) == pytest.approx(
        chi2_contingency(two_way, correction=False).statistic, abs=1e-9
    )
    assert cramers_v(two_way) == pytest.approx(association(two_way, method="cramer"), abs=1e-7)


@QUICK
@given(grids(least=0))
def test_chi_square_is_what_a_loop_makes_it_and_empty_lines_do_not_matter(
    counts: np.ndarray,
) -> None:
    two_way = counts.reshape(counts.shape[0], -1)
    total = int(two_way.sum())
    assume(total)
    statistic = 0.0
    for i in range(two_way.shape[0]):
        for j in range(two_way.shape[1]):
            expected = int(two_way[i].sum()) * int(two_way[:, j].sum()) / total
            if expected:
                statistic += (two_way[i, j] - expected) ** 2 / expected
    assert chi_square(two_way) == pytest.approx(statistic)
    padded = np.pad(two_way, 1)
    assert chi_square(padded) == pytest.approx(statistic)


def test_without_a_choice_the_first_axis_stands_against_the_others_together() -> None:
    counts = np.arange(1, 13).reshape(2, 3, 2)
    noisy = counts.copy()
    noisy[0, 0, 0] = 7
    table = Table.from_counts(counts, names=["a", "b", "c"])
    release = release_of(table, noisy)
    flat = [chi_square(x.reshape(2, 6)) for x in (counts, noisy)]
    assert ChiSquareChange().of(table, release) == pytest.approx(abs(flat[1] - flat[0]))
    pair = [cramers_v(x.sum(axis=1).T) for x in (counts, noisy)]
    assert CramersVChange(axes=("c", "a")).of(table, release) == pytest.approx(
        abs(pair[1] - pair[0])
    )


def test_what_has_no_association_says_so() -> None:
    table = Table.from_counts([1, 2])
    with pytest.raises(InputError, match="two variables"):
        ChiSquareChange().of(table, release_of(table, [1, 2]))
    two_way = Table.from_counts([[1, 2], [3, 4]], names=["sex", "age"])
    release = release_of(two_way, two_way.values)
    with pytest.raises(InputError, match="did you mean 'sex'"):
        ChiSquareChange(axes=("sexx", "age")).of(two_way, release)
    with pytest.raises(InputError, match="different"):
        ChiSquareChange(axes=("age", "age")).of(two_way, release)
    with pytest.raises(InputError, match="populated"):
        cramers_v([[1, 2], [0, 0]])
    with pytest.raises(InputError, match="without anybody"):
        chi_square([[0, 0], [0, 0]])
    with pytest.raises(InputError, match="two-way"):
        chi_square([1, 2])
    with pytest.raises(InputError, match="0 or more"):
        chi_square([[1, math.nan], [1, 1]])


@QUICK
@given(count_pairs(most=5))
def test_the_correlation_is_that_of_scipy_with_ties_and_all(pair: Pair) -> None:
    F, G = pair
    assume(len(set(F)) > 1 and len(set(G)) > 1)
    assert rank_correlation(F, G) == pytest.approx(spearmanr(F, G).statistic)
    assert average_ranks(F).tolist() == rankdata(F).tolist()


def test_equal_cells_have_no_ranks() -> None:
    with pytest.raises(InputError, match="all equal"):
        rank_correlation([2, 2], [1, 3])
