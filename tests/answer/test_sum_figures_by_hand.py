"""Small parts of the figures of sums: ties, shares, and growth without a figure."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.answer.figures import sums
from lustrum.model import Measure

TURNOVER = Measure("turnover", "Turnover", "euro", earlier="before")


def test_ties_are_decided_by_every_further_value_in_turn() -> None:
    first, second = np.array([1, 1, 1, 1, 9]), np.array([5, 5, 5, 4, 0])
    third = np.array([8, 7, 9, 9, 0])
    # In order: place 3 by the second value, then 1, 0, 2 by the third, then 4.
    assert sums._places(first, second, third) == (3, 0)


@pytest.mark.parametrize(("p", "asked"), [(100.0, 1.0), (50.0, 0.5), (5.0, 0.05)])
def test_how_likely_an_estimate_is_near_is_asked_in_shares(p: float, asked: float) -> None:
    class Belief:
        def within(self, share: float) -> float:
            assert share == asked
            return 0.25

    assert sums._within(Belief(), p) == 0.25  # type: ignore[arg-type]
    assert sums._within(Belief(), None) is None  # type: ignore[arg-type]


def test_growth_without_an_error_is_not_stated() -> None:
    class Noise:
        def growth_error(self, published: object, variables: int) -> None:
            return None

    shown = np.array([3, 4], dtype=np.int64)
    assert sums._growth(TURNOVER, shown, Noise(), 1) is None  # type: ignore[arg-type]
