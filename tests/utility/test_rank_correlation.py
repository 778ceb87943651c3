from __future__ import annotations

import pytest
from hypothesis import assume, given
from scipy.stats import rankdata, spearmanr

from lustrum.model import InputError
from lustrum.utility import RankCorrelation
from lustrum.utility.measures.association import average_ranks
from utility.cases import QUICK, Pair, count_pairs


@QUICK
@given(count_pairs(most=5))
def test_the_correlation_is_that_of_scipy_with_ties_and_all(pair: Pair) -> None:
    F, G = pair
    assume(len(set(F)) > 1 and len(set(G)) > 1)
    assert RankCorrelation().of_cells(F, G) == pytest.approx(spearmanr(F, G).statistic)
    assert average_ranks(F).tolist() == rankdata(F).tolist()


def test_equal_cells_have_no_ranks() -> None:
    with pytest.raises(InputError, match="all equal"):
        RankCorrelation().of_cells([2, 2], [1, 3])
