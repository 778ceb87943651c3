from __future__ import annotations

import itertools
from typing import cast

import numpy as np
import pytest
from hypothesis import given

from lustrum.model import InputError, Table
from lustrum.utility import ConditionalError, conditional_errors
from lustrum.utility.measures.association import Summary
from utility.cases import QUICK, grids, release_of


@QUICK
@given(grids(least=0), grids(least=0))
def test_errors_are_what_loops_make_them(one: np.ndarray, two: np.ndarray) -> None:
    two = two if one.shape == two.shape else one[::-1].copy()
    if not one.any():
        return
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
