"""The p% and prior-posterior rules against what attackers can work out."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from lustrum.sensitivity import Background, Dominance, PPercent, PriorPosterior, insider_bounds
from lustrum.sensitivity.examples import table_of
from sensitivity.oracle import QUICK, closest_bound, contributions, percents, signed

HUNDRED = Fraction(1, 100)


@given(st.lists(contributions, min_size=1, max_size=4), st.integers(1, 3), percents)
@QUICK
def test_sensitive_is_when_some_coalition_comes_within_p_percent(
    cells: list[list[int]], coalition: int, p: float
) -> None:
    found = PPercent(p, coalition=coalition).judge(table_of(cells, ranks=6))
    ratio = Fraction(str(p)) * HUNDRED
    assert found.mask.tolist() == [closest_bound(c, sum(c), coalition, ratio) for c in cells]


@given(contributions, st.integers(1, 3), percents)
@QUICK
def test_as_many_ranks_as_attackers_and_one_are_enough(
    cell: list[int], coalition: int, p: float
) -> None:
    rule = PPercent(p, coalition=coalition)
    few, all_of_them = rule.judge(table_of([cell], coalition + 1)), rule.judge(table_of([cell], 6))
    assert few.mask.tolist() == all_of_them.mask.tolist()
    assert few.upper.tolist() == all_of_them.upper.tolist()


@given(contributions, st.integers(1, 3), percents, st.integers(1, 20))
@QUICK
def test_the_upper_level_is_the_smallest_that_makes_the_cell_safe(
    cell: list[int], coalition: int, p: float, more: int
) -> None:
    q = p + more
    found = PriorPosterior(p, q, coalition=coalition).judge(table_of([cell], ranks=6))
    ratio, total, upper = Fraction(str(p)) / Fraction(str(q)), sum(cell), int(found.upper[0])
    assert not closest_bound(cell, total + upper, coalition, ratio)
    if upper:
        assert closest_bound(cell, total + upper - 1, coalition, ratio)
    assert found.lower[0] == min(upper, total)


def test_the_level_is_that_of_the_handbook() -> None:
    # p / 100 x_1 - (X - x_1 - x_2) with x = (300, 20, 10): 45 - 10.
    found = PPercent(15).judge(table_of([[300, 20, 10]]))
    assert (found.upper.tolist(), found.lower.tolist()) == ([35], [35])
    # 100 / 85 x_1 - X: 352.94 - 330, which whole units meet at 23.
    assert Dominance(1, 85).judge(table_of([[300, 20, 10]])).upper.tolist() == [23]


@given(contributions, st.integers(1, 3), percents)
@QUICK
def test_prior_knowledge_of_nothing_is_the_p_percent_rule(
    cell: list[int], coalition: int, p: float
) -> None:
    table = table_of([cell], ranks=6)
    one, two = (
        PPercent(p, coalition=coalition).judge(table),
        PriorPosterior(p, 100, coalition=coalition).judge(table),
    )
    assert one.mask.tolist() == two.mask.tolist()
    assert one.upper.tolist() == two.upper.tolist()


@given(contributions, st.sampled_from([(25, 80), (60, 62.5)]))
@QUICK
def test_what_is_safe_by_two_of_k_is_safe_by_the_p_that_belongs_to_it(
    cell: list[int], pair: tuple[int, float]
) -> None:
    # k = 100 * 100 / (100 + p).
    p, k = pair
    table = table_of([cell], ranks=6)
    assert PPercent(p).judge(table).mask[0] <= Dominance(2, k).judge(table).mask[0]


@given(contributions, st.sets(st.integers(0, 5)), st.integers(1, 3), percents)
@QUICK
def test_a_contributor_who_waived_needs_no_protection(
    cell: list[int], waived: set[int], coalition: int, p: float
) -> None:
    background, ratio = Background(waived=waived), Fraction(str(p)) * HUNDRED
    rule = PPercent(p, coalition=coalition)
    expected = closest_bound(cell, sum(cell), coalition, ratio, waived)
    found = rule.judge(table_of([cell], ranks=6), background)
    assert found.mask[0] == expected
    upper = int(found.upper[0])
    assert not closest_bound(cell, sum(cell) + upper, coalition, ratio, waived)
    if upper:
        assert closest_bound(cell, sum(cell) + upper - 1, coalition, ratio, waived)
    # With few ranks the rule may be too careful, but never too lax.
    few = rule.judge(table_of([cell], ranks=coalition + 1), background)
    assert few.mask[0] >= expected
    assert few.upper[0] >= upper


def test_a_cell_is_free_when_all_whom_it_exposes_waived() -> None:
    cells = table_of([[90, 8, 2], [90, 8, 2], [50]])
    rule = PPercent(10)
    assert rule.judge(cells).mask.tolist() == [True, True, True]
    assert rule.judge(cells, Background(waived=[0])).mask.tolist() == [False, False, False]
    # The second of these is exposed to the first, waiver or not.
    exposed = table_of([[90, 80, 2]])
    assert rule.judge(exposed, Background(waived=[0])).mask.tolist() == [True]


@given(signed, st.integers(1, 3), percents)
@QUICK
def test_negative_contributions_count_by_their_size(
    cell: list[int], coalition: int, p: float
) -> None:
    ratio = Fraction(str(p)) * HUNDRED
    rule = PPercent(p, coalition=coalition)
    expected = closest_bound(cell, sum(abs(x) for x in cell), coalition, ratio)
    assert rule.judge(table_of([cell], ranks=6)).mask[0] == expected
    assert rule.judge(table_of([cell], ranks=coalition + 1)).mask[0] >= expected


@given(st.lists(signed, min_size=2, max_size=3), st.sets(st.integers(0, 5)), percents)
@QUICK
def test_few_ranks_waivers_and_negative_values_never_make_a_rule_lax(
    cells: list[list[int]], waived: set[int], p: float
) -> None:
    # A cell that shows the measure can be negative stands beside the others.
    cells = [*cells, [-1]]
    ratio = Fraction(str(p)) * HUNDRED
    found = PPercent(p).judge(table_of(cells, ranks=2), Background(waived=waived))
    for cell, judged in zip(cells, found.mask.tolist(), strict=True):
        assert judged >= closest_bound(cell, sum(abs(x) for x in cell), 1, ratio, waived)


def test_values_that_cancel_out_are_judged_all_the_same() -> None:
    found = PPercent(10).judge(table_of([[50, -50], [0, 0], []]))
    assert found.mask.tolist() == [True, False, False]
    assert found.lower.tolist() == found.upper.tolist() == [5, 0, 0]


@given(st.lists(st.integers(0, 2**59), min_size=1, max_size=3), percents)
@QUICK
def test_large_numbers_are_judged_exactly(cell: list[int], p: float) -> None:
    found = PPercent(p).judge(table_of([cell], ranks=2))
    ratio = Fraction(str(p)) * HUNDRED
    assert found.mask[0] == closest_bound(cell, sum(cell), 1, ratio)
    upper = int(found.upper[0])
    assert not closest_bound(cell, sum(cell) + upper, 1, ratio)
    if upper:
        assert closest_bound(cell, sum(cell) + upper - 1, 1, ratio)


def test_products_beyond_64_bits_do_not_wrap_around() -> None:
    big = 2**60
    found = PPercent(33).judge(table_of([[big, 5, big // 3], [big, big, big]]))
    assert found.mask.tolist() == [True, False]
    near = PPercent(33).judge(table_of([[big, big // 10, 7]]))
    assert near.upper.tolist() == [-(-33 * big // 100) - 7]


@given(contributions.filter(bool), st.integers(1, 3))
@QUICK
def test_an_insider_bounds_the_largest_by_what_is_left(cell: list[int], coalition: int) -> None:
    ordered = sorted(cell, reverse=True)
    bound = insider_bounds(table_of([cell], ranks=6), coalition).tolist()
    assert bound == [sum(cell) - sum(ordered[1 : coalition + 1])]
