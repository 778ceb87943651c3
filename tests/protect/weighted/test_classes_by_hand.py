"""Weight classes of cells that are written down: what is divided, what is joined, and what stays together."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.protect.weighted.classes import classes_of, weight_classes


@pytest.mark.parametrize(
    ("codes", "sizes", "least", "expected"),
    [
        # Parts of exactly the least size are large enough.
        ([[0, 1]], [5, 5], 5, [0, 1]),
        ([[0, 1]], [5, 4], 5, [0, 0]),
        ([[0, 1]], [2, 3], 5, [0, 0]),
        ([[0]], [1], 1, [0]),
        # Small parts are joined with each other where they are enough together.
        ([[0, 1, 2]], [9, 2, 3], 5, [0, 1, 1]),
        # Otherwise they are joined with the smallest of the large parts, the first of several alike.
        ([[0, 1, 2]], [9, 6, 2], 5, [0, 1, 1]),
        ([[0, 1, 2]], [6, 6, 2], 5, [1, 0, 1]),
        ([[0, 1, 2, 3]], [6, 9, 7, 2], 5, [2, 0, 1, 2]),
        # A single large part beside small ones is left whole, and the next variable divides.
        ([[0, 0, 1], [0, 1, 0]], [5, 5, 2], 5, [0, 1, 0]),
        # So it is with a variable of one category, and with one that has no large part.
        ([[0, 0], [0, 1]], [5, 5], 5, [0, 1]),
        ([[0, 1, 2, 3], [0, 0, 1, 1]], [3, 3, 3, 3], 5, [0, 0, 1, 1]),
        # What was joined is not divided again: a difference would be a smaller group.
        ([[0, 1, 2, 3, 4], [0, 0, 0, 1, 1]], [9, 4, 4, 4, 4], 5, [0, 1, 1, 1, 1]),
        ([[0, 1, 1, 2], [0, 0, 1, 1]], [12, 5, 5, 2], 5, [0, 1, 1, 1]),
        # What was divided is divided again.
        ([[0, 0, 1, 1], [0, 1, 0, 1]], [5, 6, 7, 8], 5, [0, 1, 2, 3]),
        ([[0, 0, 1, 1], [0, 1, 0, 1]], [9, 9, 6, 2], 5, [0, 1, 2, 2]),
    ],
)
def test_cells_come_into_the_class_that_is_written_here(
    codes: list[list[int]], sizes: list[int], least: int, expected: list[int]
) -> None:
    order = list(range(len(codes)))
    assert weight_classes(np.array(codes), np.array(sizes), order, least).tolist() == expected


def test_the_order_of_the_variables_decides() -> None:
    codes, sizes = np.array([[0, 1, 0, 1], [0, 0, 1, 1]]), np.array([4, 4, 4, 4])
    assert weight_classes(codes, sizes, [0, 1], 8).tolist() == [0, 1, 0, 1]
    assert weight_classes(codes, sizes, [1, 0], 8).tolist() == [0, 0, 1, 1]
    assert weight_classes(codes, sizes, [], 8).tolist() == [0, 0, 0, 0]


def test_too_few_respondents_make_no_class() -> None:
    codes = np.array([[0, 1]])
    with pytest.raises(InputError, match="fewer respondents than a weight class needs"):
        weight_classes(codes, np.array([2, 2]), [0], 5)
    with pytest.raises(InputError, match="at least 1 respondent"):
        weight_classes(codes, np.array([2, 2]), [0], 0)


def nearest_cell(codes: np.ndarray, order: list[int], record: np.ndarray) -> int:
    """The first cell that is nearest to a record, variable by variable in plain loops."""
    left = list(range(codes.shape[1]))
    for variable in order:
        there = sorted({int(codes[variable, cell]) for cell in left})
        larger = [code for code in there if code >= record[variable]]
        code = larger[0] if larger else there[-1]
        left = [cell for cell in left if codes[variable, cell] == code]
    return left[0]


@pytest.mark.parametrize("seed", range(6))
def test_a_record_belongs_to_the_class_of_the_nearest_cell_shown(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(15):
        variables, cells = int(rng.integers(1, 4)), int(rng.integers(1, 7))
        codes = rng.integers(0, 4, (variables, cells))
        records = rng.integers(0, 5, (variables, int(rng.integers(0, 9))))
        order = rng.permutation(variables)[: int(rng.integers(1, variables + 1))].tolist()
        group = rng.permutation(cells)
        found = classes_of(codes, group, order, records)
        assert found.tolist() == [group[nearest_cell(codes, order, r)] for r in records.T]
