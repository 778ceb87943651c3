"""Errors of sums by size, and growth, against cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.utility.measures.margins import growth_errors, relative_errors_by_size


def test_errors_by_size_worked_by_hand() -> None:
    found = relative_errors_by_size([0, 8, 10, 100, 400], [3, 10, 9, 100, 300], edges=[5, 50])
    assert [(f.least, f.cells) for f in found] == [(5.0, 2), (50.0, 2)]
    # 2 of 8 and 1 of 10; nothing of 100 and 100 of 400.
    assert found[0].mean == pytest.approx((0.25 + 0.1) / 2)
    assert found[1].mean == pytest.approx(0.125)
    assert found[1].largest == 0.25


def test_a_class_without_cells_has_no_error() -> None:
    assert relative_errors_by_size([1], [1], edges=[5])[0].cells == 0


@pytest.mark.parametrize("edges", [[], [0, 1], [5, 1], [1, 1]])
def test_edges_must_rise_from_above_nought(edges: list[float]) -> None:
    with pytest.raises(InputError, match="rise and begin above 0"):
        relative_errors_by_size([1], [1], edges=edges)


def test_growth_worked_by_hand() -> None:
    # True growth 10 %, -20 %; shown 5 % and 10 %; the third cell had nothing before.
    found = growth_errors([110, 80, 5], [100, 100, 0], [105, 110, 7], [100, 100, 0])
    assert found.cells == 2
    assert found.mean == pytest.approx((5 + 30) / 2)
    assert found.sign_kept == 0.5


def test_equal_factors_keep_growth_exactly() -> None:
    rng = np.random.default_rng(4)
    before, now = rng.integers(1000, 2000, 50), rng.integers(1000, 2000, 50)
    assert growth_errors(now, before, now * 3, before * 3).mean == 0.0


def test_periods_of_other_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="same cells"):
        growth_errors([1, 2], [1], [1, 2], [1])
