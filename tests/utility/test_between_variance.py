from __future__ import annotations

from statistics import variance

import numpy as np
import pytest
from hypothesis import assume, given

from lustrum.model import InputError, Table
from lustrum.utility import BetweenVarianceChange, between_variance, between_variance_ratio
from utility.cases import QUICK, grids, release_of


@QUICK
@given(grids(), grids())
def test_the_change_is_what_loops_make_it(one: np.ndarray, two: np.ndarray) -> None:
    two = two if one.shape == two.shape else one[::-1] + 1
    table = Table.from_counts(one, names="abc"[: one.ndim])
    found = []
    for counts in (one, two):
        flat = counts.reshape(counts.shape[0], counts.shape[1], -1)
        shares = [int(flat[a, 1].sum()) / int(flat[a].sum()) for a in range(len(flat))]
        found.append(variance(shares))
    assume(found[0] > 1e-9)
    change = BetweenVarianceChange("a", "b", "2").of(table, release_of(table, two))
    assert change == pytest.approx(abs(found[1] / found[0] - 1), rel=1e-6, abs=1e-9)


def test_areas_without_anybody_are_left_out() -> None:
    assert between_variance([1, 3, 0], [4, 4, 0]) == between_variance([1, 3], [4, 4])
    with pytest.raises(InputError, match="two areas"):
        between_variance([1, 0], [4, 0])


def test_areas_that_are_all_alike_leave_nothing_to_compare_with() -> None:
    with pytest.raises(InputError, match="do not differ"):
        between_variance_ratio([1, 1], [4, 4], [1, 2], [4, 4])


def test_wrong_names_and_areas_are_one_sentence() -> None:
    with pytest.raises(InputError, match="same areas"):
        between_variance([1, 2], [3, 4, 5])
    table = Table.from_counts([[1, 2], [3, 4]], names=["area", "sex"])
    release = release_of(table, table.values)
    with pytest.raises(InputError, match="no inner category '9'"):
        BetweenVarianceChange("area", "sex", "9").of(table, release)
    with pytest.raises(InputError, match="different axes"):
        BetweenVarianceChange("area", "area", "1").of(table, release)
    with pytest.raises(InputError, match="no axis 'region'"):
        BetweenVarianceChange("region", "sex", "1").of(table, release)
