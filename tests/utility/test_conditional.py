from __future__ import annotations

import itertools
from statistics import variance
from typing import cast

import numpy as np
import pytest
from hypothesis import assume, given

from lustrum.model import InputError, Table
from lustrum.utility import (
    BetweenVarianceChange,
    ConditionalError,
    between_variance,
    between_variance_ratio,
    conditional_errors,
)
from lustrum.utility.measures.association import Summary
from utility.cases import QUICK, grids, release_of


@QUICK
@given(grids(least=0), grids(least=0))
def test_errors_are_what_loops_make_them(one: np.ndarray, two: np.ndarray) -> None:
    two = two if one.shape == two.shape else one[::-1].copy()
    assume(one.any())
    table = Table.from_counts(one, names="abc"[: one.ndim])
    errors = []
    for place in itertools.product(*(range(n) for n in one.shape[1:])):
        true, shown = one[(slice(None), *place)], two[(slice(None), *place)]
        if true.sum() == 0:
            continue
        for t, s in zip(true, shown, strict=True):
            errors.append(abs(t / true.sum() - (s / shown.sum() if shown.sum() else 0)))
    release = release_of(table, two)
    assert ConditionalError("a").of(table, release) == pytest.approx(sum(errors) / len(errors))
    assert ConditionalError("a", summary="largest").of(table, release) == pytest.approx(max(errors))


def test_what_is_not_given_is_summed_over() -> None:
    counts = np.arange(1, 13).reshape(2, 3, 2)
    noisy = counts[:, ::-1].copy()
    table = Table.from_counts(counts, names=["a", "b", "c"])
    direct = conditional_errors(counts.sum(axis=1), noisy.sum(axis=1), axis=1)
    given_a = ConditionalError("c", given=("a",)).of(table, release_of(table, noisy))
    assert given_a == pytest.approx(direct.mean()) == pytest.approx(0)
    assert ConditionalError("c").of(table, release_of(table, noisy)) > 0.01


def test_wrong_questions_are_one_sentence() -> None:
    with pytest.raises(InputError, match="at once"):
        ConditionalError("a", given=("a",))
    with pytest.raises(InputError, match="'summary' must be 'mean' or 'largest'"):
        ConditionalError("a", summary=cast(Summary, "median"))
    with pytest.raises(InputError, match="without anybody"):
        conditional_errors([[0, 0]], [[1, 1]], axis=1)


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
