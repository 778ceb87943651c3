from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.utility import Impute, LargestMarginError, MarginsKept, one_way_margins
from lustrum.utility.impute import total_position
from lustrum.utility.measures.margins import growth_errors, relative_errors_by_size
from utility.cases import QUICK, add_totals, grids, release_of, totalled, with_totals


@QUICK
@given(grids(), grids())
def test_without_totals_margins_are_sums(one: np.ndarray, two: np.ndarray) -> None:
    if one.shape != two.shape:
        two = one + 1
    table = Table.from_counts(one)
    release = release_of(table, two)
    same, worst, number = 0, 0, 0
    for axis in range(one.ndim):
        for category in range(one.shape[axis]):
            gap = abs(int(np.take(one, category, axis).sum() - np.take(two, category, axis).sum()))
            same, worst, number = same + (gap == 0), max(worst, gap), number + 1
    assert MarginsKept().of(table, release) == pytest.approx(same / number)
    assert LargestMarginError().of(table, release) == worst


def test_a_shown_total_speaks_for_itself() -> None:
    inner = np.array([[1, 2], [3, 4]])
    table = with_totals(inner, "ab")
    rounded = add_totals(np.array([[0, 3], [3, 3]]))
    rounded[:, 2], rounded[2, :] = [3, 7, 10], [4, 6, 10]
    release = release_of(table, rounded)
    assert MarginsKept().of(table, release) == 1
    assert LargestMarginError().of(table, release) == 0


def test_a_suppressed_total_gives_way_to_the_sum_of_its_cells() -> None:
    table = with_totals([[1, 2], [3, 4]], "ab")
    published = table.values.copy()
    published[0, 2] = 50
    hidden = np.zeros((3, 3), dtype=bool)
    hidden[0, 2] = True
    true, shown = one_way_margins(table, release_of(table, published, hidden), Impute())
    assert true.tolist() == shown.tolist() == [3, 7, 4, 6]


def test_a_table_of_one_variable_has_its_cells_as_margin() -> None:
    table = with_totals([1, 2], "a")
    published = table.values.copy()
    published[1] = 3
    assert MarginsKept().of(table, release_of(table, published)) == 0.5


def test_a_table_without_variables_has_no_margins() -> None:
    table = Table.from_counts(np.array(5))
    with pytest.raises(InputError, match="no margins"):
        MarginsKept().of(table, release_of(table, np.array(5)))


def test_a_total_over_categories_that_overlap_is_not_their_sum() -> None:
    sets = {"x": (0, 1), "y": (1, 2), "all": (0, 1, 2)}
    overlapping = TableAxis("a", "a", tuple(Category(c, c, m) for c, m in sets.items()))
    assert total_position(overlapping) is None
    assert total_position(totalled("a", 3)) == 3


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
