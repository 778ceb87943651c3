"""Bounds that come with totals, number by number."""

from __future__ import annotations

import numpy as np

from lustrum.model import Category, TableAxis
from lustrum.protect import RoundingChannel
from lustrum.protect.totals.safe import safe_totals
from lustrum.protect.totals.summed import added_totals


def axis(name: str, *members: tuple[int, ...]) -> TableAxis:
    return TableAxis(name, name, tuple(Category(str(m), str(m), m) for m in members))


def test_a_table_without_totals_has_the_bounds_of_its_channel() -> None:
    values = np.array([0, 3, 9])
    for keyed in (False, True):
        out = safe_totals([axis("a", (0,), (1,), (2,))], values, RoundingChannel(3), keyed=keyed)
        assert out.values.tolist() == [0, 3, 9]
        assert out.low.tolist() == [0, 1, 7]
        assert out.high.tolist() == [2, 5, 11]
        assert out.hidden is None
        assert out.status is None


def test_totals_that_are_added_up_have_the_sums_of_the_bounds_of_their_parts() -> None:
    axes = [axis("a", (0,), (1,), (0, 1)), axis("b", (0,), (1,), (0, 1))]
    values = np.array([[1, 2, 0], [3, 4, 0], [0, 0, 0]])
    low, high = values - 1, values + np.array([[1, 2, 9], [3, 4, 9], [9, 9, 9]])
    out = added_totals(axes, values, low, high)
    assert out.values.tolist() == [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
    assert out.low.tolist() == [[0, 1, 1], [2, 3, 5], [2, 4, 6]]
    assert out.high.tolist() == [[2, 4, 6], [6, 8, 14], [8, 12, 20]]
