"""Rules at their limits: exactly k percent, exactly nobody, one person in each of two cells, decimals."""

from __future__ import annotations

import numpy as np

from lustrum.model import Contributions, Table, TableAxis
from lustrum.sensitivity import Background, PriorPosterior, Threshold
from lustrum.sensitivity.examples import table_of


def test_an_empty_sensitive_cell_is_protected_upwards_only() -> None:
    found = Threshold(3, empty="sensitive").judge(Table.from_counts([0, 2]))
    assert found.mask.tolist() == [True, True]
    assert found.lower.tolist() == [0, 1]
    assert found.upper.tolist() == [3, 1]


def test_a_waiver_of_somebody_else_does_not_free_an_empty_cell() -> None:
    table = Table(
        (TableAxis.plain("a", ["p", "q"]),),
        np.array([0, 9]),
        kind="magnitude",
        contributors=np.array([0, 1]),
        contributions=Contributions(np.array([[0], [9]]), np.array([[-1], [4]])),
    )
    found = Threshold(3, empty="sensitive").judge(table, Background(waived=frozenset({4})))
    assert found.mask.tolist() == [True, False]


def test_levels_of_counts_are_in_the_units_of_the_table() -> None:
    axes = (TableAxis.plain("a", ["p", "q"]),)
    table = Table(axes, np.array([15, 40]), decimals=1, contributors=np.array([1, 2]))
    found = Threshold(3).judge(table)
    # 10 percent of a weighted count of 4.0 by default
    assert found.upper.tolist() == [15, 4]
    assert found.lower.tolist() == [15, 4]


def test_a_margin_is_a_share_of_the_cell_rounded_up() -> None:
    table = table_of([[500], [501]])
    assert Threshold(3, margin=1).judge(table).upper.tolist() == [5, 6]
    assert Threshold(3, margin=3).judge(table).upper.tolist() == [15, 16]


def two_way(value: np.ndarray, who: np.ndarray, contributors: np.ndarray) -> Table:
    axes = tuple(TableAxis.plain(n, [str(i) for i in range(s)]) for n, s in (("a", 2), ("b", 3)))
    return Table(
        axes,
        value.sum(axis=-1),
        kind="magnitude",
        contributors=contributors,
        contributions=Contributions(value, who),
    )


def test_zeros_and_waivers_are_counted_cell_by_cell_in_tables_of_two_variables() -> None:
    value = np.array([[[9, 0], [5, 4], [0, 0]], [[7, 1], [3, 0], [8, 2]]])
    who = np.arange(12).reshape(2, 3, 2)
    table = two_way(value, who, np.full((2, 3), 2))
    ignored = Threshold(2, zeros="ignored").judge(table)
    assert ignored.mask.tolist() == [[True, False, False], [False, True, False]]
    waived = Background(waived=frozenset({0, 1, 10}))
    assert Threshold(3).judge(table, waived).mask.tolist() == [[False, True, True], [True] * 3]


def test_contributions_of_zero_are_no_question_in_a_table_of_counts() -> None:
    found = Threshold(3, zeros="ignored").judge(Table.from_counts([1, 5]))
    assert found.mask.tolist() == [True, False]


def test_percentages_of_prior_knowledge_and_margins_may_be_above_a_hundred() -> None:
    assert PriorPosterior(p=150, q=200).p == 150
    assert Threshold(minimum=3, margin=120).margin == 120
