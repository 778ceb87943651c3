"""Sampling weights: a respondent stands for as many as his weight."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.sensitivity import Dominance, PPercent
from lustrum.sensitivity.examples import table_of
from sensitivity.oracle import QUICK, expanded_sum, percents

people = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 4)), min_size=1, max_size=5)
parts = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 35)), min_size=1, max_size=5)


@given(people, st.integers(1, 3), percents)
@QUICK
def test_whole_weights_are_records_written_out(
    cell: list[tuple[int, int]], number: int, percent: float
) -> None:
    values, weights = [x for x, _ in cell], [w for _, w in cell]
    sampled = table_of([values], ranks=5, weights=[weights])
    written = table_of([[x for x, w in cell for _ in range(w)]], ranks=20)
    for rule in (PPercent(percent, coalition=number), Dominance(number, percent)):
        # The rule asks for as many ranks as respondents; five are there.
        if number + isinstance(rule, PPercent) > 5:
            continue
        one, two = rule.judge(sampled), rule.judge(written)
        assert one.mask.tolist() == two.mask.tolist()
        assert one.upper.tolist() == two.upper.tolist()
        assert one.lower.tolist() == two.lower.tolist()


@given(people, percents)
@QUICK
def test_decimals_of_a_weight_change_the_unit_only(cell: list[tuple[int, int]], p: float) -> None:
    values, weights = [x for x, _ in cell], [w for _, w in cell]
    whole = PPercent(p).judge(table_of([values], ranks=5, weights=[weights]))
    tenths = PPercent(p).judge(
        table_of([values], ranks=5, weights=[[10 * w for w in weights]], weight_decimals=1)
    )
    assert whole.mask.tolist() == tenths.mask.tolist()
    assert whole.upper[0] == -(-int(tenths.upper[0]) // 10)


@given(parts, st.integers(1, 3), percents)
@QUICK
def test_a_fraction_of_a_weight_is_a_part_of_a_respondent(
    cell: list[tuple[int, int]], n: int, k: float
) -> None:
    values, weights = [x for x, _ in cell], [w for _, w in cell]
    table = table_of([values], ranks=5, weights=[weights], weight_decimals=1)
    found = Dominance(n, k).judge(table)
    exact = [Fraction(w, 10) for w in weights]
    total = sum(x * w for x, w in zip(values, exact, strict=True))
    together = expanded_sum(values, exact, n)
    assert found.mask[0] == (together * 100 > Fraction(str(k)) * total)


@given(parts, st.integers(1, 2), percents)
@QUICK
def test_the_p_percent_rule_takes_one_respondent_and_the_next(
    cell: list[tuple[int, int]], coalition: int, p: float
) -> None:
    values, weights = [x for x, _ in cell], [w for _, w in cell]
    table = table_of([values], ranks=5, weights=[weights], weight_decimals=1)
    found = PPercent(p, coalition=coalition).judge(table)
    exact = [Fraction(w, 10) for w in weights]
    total = sum(x * w for x, w in zip(values, exact, strict=True))
    left = total - expanded_sum(values, exact, coalition + 1)
    assert found.mask[0] == (left * 100 < Fraction(str(p)) * max(values))


@given(people, percents)
@QUICK
def test_the_sample_itself_can_be_set_against_the_weighted_total(
    cell: list[tuple[int, int]], p: float
) -> None:
    values, weights = [x for x, _ in cell], [w for _, w in cell]
    found = PPercent(p, weights="sample").judge(table_of([values], ranks=5, weights=[weights]))
    total = sum(x * w for x, w in cell)
    first, second = [*sorted(values, reverse=True), 0][:2]
    assert found.mask[0] == ((total - first - second) * 100 < Fraction(str(p)) * first)


def test_the_example_of_the_handbook() -> None:
    # Two respondents of 100 and 10 with weights 4 and 7: four of 100 and seven of 10.
    table = table_of([[100, 10]], weights=[[4, 7]])
    found = PPercent(10).judge(table)
    assert found.mask.tolist() == [False]
    # 100 with weight 2 and 1 with weight 3: two of 100, total 203; a sample of 100 and 1 is no risk.
    table = table_of([[100, 1]], weights=[[2, 3]])
    assert PPercent(4).judge(table).mask.tolist() == [True]
    assert PPercent(4, weights="sample").judge(table).mask.tolist() == [False]


def test_mean_weights_of_holdings_keep_their_fractions() -> None:
    table = table_of([[30, 20]], weights=[[1.5, 1]])
    # Three parts of 30 in two respondents: 30 + 15 + ... = 45 and half of 20.
    assert Dominance(2, 84).judge(table).mask.tolist() == [True]
    assert Dominance(2, 85).judge(table).mask.tolist() == [False]


@given(parts, percents)
@QUICK
def test_small_weights_and_few_ranks_never_make_a_rule_lax(
    cell: list[tuple[int, int]], k: float
) -> None:
    values, weights = [x for x, _ in cell], [w for _, w in cell]
    full = Dominance(2, k).judge(table_of([values], ranks=5, weights=[weights], weight_decimals=1))
    few = Dominance(2, k).judge(table_of([values], ranks=2, weights=[weights], weight_decimals=1))
    assert few.mask[0] >= full.mask[0]


def test_nobody_stands_for_less_than_nobody() -> None:
    with pytest.raises(InputError, match="weight is negative"):
        PPercent(10).judge(table_of([[3, 2]], weights=[[1, -1]]))


def test_a_respondent_of_weight_0_does_not_count() -> None:
    weighted = table_of([[90, 5, 5, 4]], weights=[[0, 1, 1, 1]])
    plain = table_of([[5, 5, 4]], ranks=4)
    for rule in (PPercent(10), Dominance(1, 50)):
        assert rule.judge(weighted).mask.tolist() == rule.judge(plain).mask.tolist()
