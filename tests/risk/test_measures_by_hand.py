"""Risk measures on tables small enough to work out by hand: weights, limits, totals and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lustrum.model import InputError, Table, TableAxis
from lustrum.model.hierarchy import Category
from lustrum.protect.unchanged import Unchanged
from lustrum.risk.counts import NotMeasurableError, as_counts, cells_of, check_scale
from lustrum.risk.r1 import R1, r1, r1_values
from lustrum.risk.r2 import R2, r2
from lustrum.risk.simple import (
    SparseLines,
    share_of_small_cells,
    share_of_sparse_lines,
    share_of_uniques,
    share_of_zeros,
)

COUNTS = [[6, 3], [3, 0]]
TABLE = Table.from_counts(COUNTS)
TERMS = (
    1 / 4,
    1 - (0.5 * math.log(2) + 0.5 * math.log(4)) / math.log(4),
    (1 + math.log(math.sqrt(12))) / math.sqrt(12),
)


def test_the_norm_of_the_three_terms_is_another_way_to_add_them() -> None:
    wanted = math.sqrt(sum(term**2 for term in TERMS) / 3)
    assert r1(COUNTS, "l2") == pytest.approx(wanted)
    assert R1("l2").before(TABLE) == pytest.approx(wanted)
    assert R1("l2").to_mapping() == {"measure": "r1", "weights": "l2"}


def test_measures_use_their_own_weights_and_else_those_of_the_paper() -> None:
    weights = (0.5, 0.25, 0.25)
    own = sum(w * term for w, term in zip(weights, TERMS, strict=True))
    papers = sum(w * term for w, term in zip((0.1, 0.8, 0.1), TERMS, strict=True))
    assert R1(weights).before(TABLE) == R2(weights).before(TABLE) == pytest.approx(own)
    assert r1(COUNTS) == R2().before(TABLE) == pytest.approx(papers)
    assert float(r1_values(np.array(COUNTS).ravel())) == pytest.approx(papers)
    shown = [[1, 1], [1, 1]]
    assert R2(weights).after(TABLE, shown) == r2(COUNTS, shown, weights)
    assert R2(weights).after(TABLE, shown) != pytest.approx(R2().after(TABLE, shown))
    assert R2([0.5, 0.25, 0.25]).weights == weights  # type: ignore[arg-type]
    with pytest.raises(InputError, match="add up to 1"):
        R2((0.5, 0.5, 0.5))


def test_one_shared_zero_raises_the_share_to_a_power() -> None:
    assert r2([4, 4, 0, 0], [1, 1, 0, 1], (1, 0, 0)) == pytest.approx(0.5 ** (2 / 1))


def test_what_is_left_open_is_divided_by_an_entropy_below_1() -> None:
    # Shares 3/4, 1/4 seen as 1/2, 1/2: a quarter of all moved from the first cell to the second.
    left_open = 0.25 * math.log(2) + 0.25 * math.log(2)
    entropy = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert entropy < 1
    wanted = (1 - entropy / math.log(2)) * (1 - left_open / entropy)
    assert r2([3, 1], [1, 1], (0, 1, 0)) == pytest.approx(wanted)


def test_lines_of_totals_are_no_lines() -> None:
    faith = (*TableAxis.plain("", "abc").categories, Category("all", "all", (0, 1, 2)))
    axes = (TableAxis.plain("area", "xy"), TableAxis("faith", "faith", faith))
    table = Table(axes=axes, values=np.array([[9, 0, 0, 9], [1, 2, 3, 6]]))
    assert SparseLines("area").before(table) == 2 / 3  # of a, b and c, the last two lack somebody
    assert SparseLines("faith").before(table) == 1 / 2
    assert SparseLines().before(table) == 3 / 5


def test_an_axis_may_be_counted_from_the_last() -> None:
    counts = [[9, 0, 0], [1, 2, 3]]
    assert share_of_sparse_lines(counts, -2) == share_of_sparse_lines(counts, 0) == 2 / 3
    assert share_of_sparse_lines(counts, -1) == share_of_sparse_lines(counts, 1) == 1 / 2
    for axis in (-3, 2):
        with pytest.raises(InputError, match="no axis"):
            share_of_sparse_lines(counts, axis)


def test_limits_of_small_counts_are_whole_numbers_from_1_on() -> None:
    for wrong in (0, -1, 2.0, True):
        with pytest.raises(InputError, match="1 or more"):
            share_of_small_cells([1, 2], wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="1 or more"):
            share_of_sparse_lines([[1, 2]], 1, wrong)  # type: ignore[arg-type]
    assert share_of_small_cells([0, 1, 2, 3], 1) == 1 / 4


def test_one_wrong_count_among_right_ones_is_refused() -> None:
    for measure in (share_of_uniques, share_of_zeros, as_counts, r1):
        for wrong in ([0.5, 1.0], [1.0, math.nan], [-1, 1], [1, -1]):
            with pytest.raises(InputError, match=r"[Cc]ounts"):
                measure(wrong)
    for wrong in ([[1, 0], [0, 0]], [[0, 0], [0, 0]]):
        with pytest.raises(NotMeasurableError, match="nobody"):
            check_scale(np.array(wrong))
    release = Unchanged().apply(TABLE)
    object.__setattr__(release, "numbers", np.array([[6, 3], [3, -1]]))
    with pytest.raises(InputError, match="negative"):
        cells_of(release)
    with pytest.raises(InputError, match="too large"):
        as_counts([2**62, 1])
    assert as_counts([2**62 - 1]).tolist() == [2**62 - 1]


def test_cells_may_be_handed_on_as_they_are() -> None:
    cells = cells_of(TABLE)
    assert cells_of(cells) is cells
    assert r1(cells) == r1(TABLE)
    assert cells.total == 12
