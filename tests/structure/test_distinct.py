"""Different numbers without sorting are those that sorting finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lustrum.numeric.structure.ragged import distinct, distinct_columns


@given(
    shape=arrays.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=12),
    reach=st.sampled_from([0, 3, 100, 2**62]),
    data=st.data(),
)
def test_different_numbers_are_those_of_sorting(
    shape: tuple[int, ...], reach: int, data: st.DataObject
) -> None:
    numbers = data.draw(arrays.arrays(np.int64, shape, elements=st.integers(-reach, reach)))
    values, place = distinct(numbers)
    expected, inverse = np.unique(numbers, return_inverse=True)
    assert values.dtype == expected.dtype
    assert values.tolist() == expected.tolist()
    assert place.shape == numbers.shape
    assert place.ravel().tolist() == inverse.ravel().tolist()
    assert (values[place] == numbers).all()


def test_numbers_at_both_ends_of_64_bits_are_told_apart() -> None:
    ends = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0])
    values, place = distinct(ends)
    assert values.tolist() == sorted(ends.tolist())
    assert place.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "numbers", [[0.5, 0.25, 0.5], [True, False], np.array([2**64 - 1, 3], "u8")]
)
def test_numbers_of_other_types_are_told_apart_too(numbers: Any) -> None:
    values, place = distinct(np.asarray(numbers))
    assert values.tolist() == sorted(set(np.asarray(numbers).tolist()))
    assert values[place].tolist() == np.asarray(numbers).tolist()


@given(columns=st.integers(0, 20), reach=st.sampled_from([1, 4, 2**62]), data=st.data())
def test_different_columns_are_those_of_sorting(
    columns: int, reach: int, data: st.DataObject
) -> None:
    matrix = data.draw(arrays.arrays(np.int64, (3, columns), elements=st.integers(-reach, reach)))
    values, place = distinct_columns(matrix)
    if columns:
        expected, inverse = np.unique(matrix, axis=1, return_inverse=True)
        assert values.tolist() == expected.tolist()
        assert place.tolist() == inverse.ravel().tolist()
    assert (values[:, place] == matrix).all()
