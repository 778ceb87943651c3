"""The threshold and request rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError, Table, TableAxis
from lustrum.sensitivity import Background, Request, Threshold
from lustrum.sensitivity.examples import table_of
from lustrum.sensitivity.rules.threshold import DEFAULT_MARGIN
from sensitivity.oracle import QUICK, contributions


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(1, 8))
@QUICK
def test_counts_below_the_minimum_are_sensitive_up_to_it(counts: list[int], minimum: int) -> None:
    found = Threshold(minimum).judge(Table.from_counts(counts))
    for count, hit, upper, lower in zip(
        counts, found.mask, found.upper.tolist(), found.lower.tolist(), strict=True
    ):
        assert hit == (0 < count < minimum)
        if hit:
            assert count + upper >= minimum > count + upper - 1
            assert lower == min(upper, count)
        else:
            assert (upper, lower) == (0, 0)


def test_empty_cells_are_sensitive_if_an_agency_says_so() -> None:
    table = Table.from_counts([0, 1, 3])
    assert Threshold(3, empty="sensitive").judge(table).mask.tolist() == [True, True, False]


def test_cells_that_cannot_hold_anybody_are_never_sensitive() -> None:
    axis = TableAxis.plain("a", ["1", "2"])
    structural = np.array([True, False])
    table = Table(axes=(axis,), values=np.array([0, 0]), structural=structural)
    assert Threshold(3, empty="sensitive").judge(table).mask.tolist() == [False, True]


def test_a_contribution_of_zero_counts_or_not() -> None:
    cells = table_of([[5, 4, 0], [5, 4, 3, 0], [0, 0, 0]])
    assert Threshold(3).judge(cells).mask.tolist() == [False, False, False]
    assert Threshold(3, zeros="ignored").judge(cells).mask.tolist() == [True, False, False]


@given(contributions, st.integers(1, 4))
@QUICK
def test_ranks_as_many_as_the_minimum_tell_zeros_apart(cell: list[int], minimum: int) -> None:
    found = Threshold(minimum, zeros="ignored").judge(table_of([cell], ranks=minimum))
    assert found.mask[0] == (0 < sum(x > 0 for x in cell) < minimum)


def test_magnitudes_need_the_margin_asked_for_and_one_unit_at_least() -> None:
    cells = table_of([[500, 301], [-7]])
    assert Threshold(3).judge(cells).upper.tolist() == [81, 1]
    assert Threshold(3).margin == DEFAULT_MARGIN == 10
    found = Threshold(3, margin=25).judge(cells)
    assert found.upper.tolist() == found.lower.tolist() == [201, 2]
    assert Threshold(3, margin=0.01).judge(cells).upper.tolist() == [1, 1]


def test_a_margin_of_nothing_is_out_of_range() -> None:
    with pytest.raises(InputError, match="margin"):
        Threshold(3, margin=0)


def test_a_cell_is_free_only_if_all_its_contributors_waived() -> None:
    cells = table_of([[5, 4], [5]])
    rule = Threshold(3)
    assert rule.judge(cells, Background(waived=[0])).mask.tolist() == [True, False]
    assert rule.judge(cells, Background(waived=[0, 1])).mask.tolist() == [False, False]
    # What the ranks do not show did not waive.
    assert rule.judge(table_of([[5, 4]], ranks=1), Background(waived=[0, 1])).mask[0]


def test_a_magnitude_without_contributors_says_what_is_missing() -> None:
    axis = TableAxis.plain("a", ["1"])
    table = Table(axes=(axis,), values=np.array([77]), kind="magnitude")
    with pytest.raises(InputError, match="how many contribute"):
        Threshold(3).judge(table)
    assert not Threshold(3).judge(Table(axes=(axis,), values=np.array([77]))).mask.any()


def test_only_who_asked_is_protected() -> None:
    cells = table_of([[80, 15, 5], [15, 80, 5], [45, 44, 11]])
    rule = Request(shares=(70, 85))
    assert not rule.judge(cells).mask.any()
    assert rule.judge(cells, Background(requested=[0])).status.tolist() == ["O", "F", "F"]
    assert rule.judge(cells, Background(requested=[0, 1])).status.tolist() == ["O", "O", "T"]
    taken_back = Background(requested=[0, 1], waived=[0])
    assert rule.judge(cells, taken_back).status.tolist() == ["F", "O", "F"]


@given(contributions, st.sets(st.integers(0, 5)))
@QUICK
def test_requests_count_for_the_largest_only(cell: list[int], asked: set[int]) -> None:
    found = Request(shares=(50, 60)).judge(table_of([cell], ranks=2), Background(requested=asked))
    order = sorted(range(len(cell)), key=lambda i: (-cell[i], i))
    total, hit, need = sum(cell), False, 0
    for n, share in ((1, 50), (2, 60)):
        group = order[:n]
        together = sum(cell[i] for i in group)
        if together * 100 > share * total and set(group) <= asked:
            hit = True
            need = max(need, -(-(100 * together - share * total) // share))
    assert (found.mask[0], found.upper[0]) == (hit, need)


def test_few_contributors_are_sensitive_if_one_of_them_asked() -> None:
    cells = table_of([[50, 50], [50, 50, 50], [0, 0]])
    rule = Request(shares=(90,), minimum=3)
    assert rule.judge(cells, Background(requested=[1])).status.tolist() == ["A", "F", "A"]
    assert not rule.judge(cells, Background(requested=[7])).mask.any()
