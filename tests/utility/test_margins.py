from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.utility import Impute, LargestMarginError, MarginsKept, one_way_margins
from lustrum.utility.impute import total_position
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
