"""The dominance rule against its definition."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from lustrum.sensitivity import Background, Dominance, insider_bounds
from lustrum.sensitivity.examples import table_of
from sensitivity.oracle import QUICK, contributions, dominated, percents, signed


def test_the_example_of_robertson_and_ethier() -> None:
    cells = table_of([[59, 40, 1], [61, 20, 19]])
    found = Dominance(n=1, k=60).judge(cells)
    assert found.mask.tolist() == [False, True]
    # The cell that the rule calls safe lets the second contributor come closer to the largest.
    assert insider_bounds(cells).tolist() == [60, 80]


@given(st.lists(contributions, min_size=1, max_size=4), st.integers(1, 4), percents)
@QUICK
def test_sensitive_is_when_n_or_fewer_have_more_than_k(
    cells: list[list[int]], n: int, k: float
) -> None:
    found = Dominance(n=n, k=k).judge(table_of(cells, ranks=6))
    expected = [dominated(cell, sum(cell), n, Fraction(str(k))) for cell in cells]
    assert found.mask.tolist() == expected


@given(contributions, st.integers(1, 4), percents)
@QUICK
def test_the_upper_level_is_the_smallest_that_makes_the_cell_safe(
    cell: list[int], n: int, k: float
) -> None:
    found = Dominance(n=n, k=k).judge(table_of([cell], ranks=6))
    share, total = Fraction(str(k)), sum(cell)
    upper = int(found.upper[0])
    assert not dominated(cell, total + upper, n, share)
    if upper:
        assert dominated(cell, total + upper - 1, n, share)
    assert found.lower[0] == min(upper, total)


@given(contributions, st.integers(1, 4), percents, percents)
@QUICK
def test_a_larger_k_finds_no_more_cells(cell: list[int], n: int, one: float, two: float) -> None:
    table = table_of([cell], ranks=6)
    strict, loose = sorted((one, two))
    assert Dominance(n, strict).judge(table).mask[0] >= Dominance(n, loose).judge(table).mask[0]


def test_letters_say_how_many_dominate() -> None:
    cells = table_of([[90, 5, 5], [50, 45, 5], [32, 32, 32, 4], [25, 25, 25, 25]])
    assert Dominance(n=3, k=85).judge(cells).status.tolist() == ["O", "T", "M", "F"]
    merged = Dominance(n=3, k=85, letters="merged").judge(cells)
    assert merged.status.tolist() == ["G", "G", "M", "F"]


def test_n_of_two_never_says_more_than_two() -> None:
    cells = table_of([[90, 5, 5], [50, 45, 5]])
    assert Dominance(n=2, k=85).judge(cells).status.tolist() == ["O", "T"]
    assert Dominance(n=1, k=85).judge(cells).status.tolist() == ["O", "F"]


@given(contributions, st.sets(st.integers(0, 5)), st.integers(1, 3), percents)
@QUICK
def test_a_contributor_who_waived_needs_no_protection(
    cell: list[int], waived: set[int], n: int, k: float
) -> None:
    found = Dominance(n=n, k=k).judge(table_of([cell], ranks=6), Background(waived=waived))
    share = Fraction(str(k))
    assert found.mask[0] == dominated(cell, sum(cell), n, share, waived)
    upper = int(found.upper[0])
    assert not dominated(cell, sum(cell) + upper, n, share, waived)
    if upper:
        assert dominated(cell, sum(cell) + upper - 1, n, share, waived)
    # With few ranks the rule may be too careful, but never too lax.
    few = Dominance(n=n, k=k).judge(table_of([cell], ranks=n), Background(waived=waived))
    assert few.mask[0] >= found.mask[0]
    assert few.upper[0] >= upper


def test_somebody_below_the_ranks_may_need_protection() -> None:
    cell, waived = [[50, 40, 30]], Background(waived=[0, 1])
    assert Dominance(1, 10).judge(table_of(cell, ranks=2), waived).mask.tolist() == [True]
    # Nobody below the ranks can have more than what is left.
    small = table_of([[50, 40, 1]], ranks=2)
    assert Dominance(1, 10).judge(small, waived).mask.tolist() == [False]


@given(signed, st.sets(st.integers(0, 5)), st.integers(1, 2), percents)
@QUICK
def test_few_ranks_waivers_and_negative_values_never_make_the_rule_lax(
    cell: list[int], waived: set[int], n: int, k: float
) -> None:
    # A cell that shows the measure can be negative stands beside it.
    table = table_of([cell, [-1]], ranks=n)
    found = Dominance(n, k).judge(table, Background(waived=waived))
    total = sum(abs(x) for x in cell)
    assert found.mask[0] >= dominated(cell, total, n, Fraction(str(k)), waived)


def test_what_cancels_out_below_the_ranks_is_not_taken_for_nothing() -> None:
    table = table_of([[50, 30, -30], [-1]], ranks=1)
    assert Dominance(1, 25).judge(table, Background(waived=[0])).mask[0]
