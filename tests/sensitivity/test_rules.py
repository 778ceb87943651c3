"""What all rules share: words, mistakes, combinations, and that nothing leaks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lustrum.sensitivity as room
from lustrum.model import InputError, Table
from lustrum.sensitivity import (
    AllOf,
    AnyOf,
    Background,
    Dominance,
    GivenCells,
    GroupDisclosure,
    KDisclosure,
    PPercent,
    PriorPosterior,
    Request,
    Rule,
    Sparsity,
    Threshold,
    Unless,
    insider_bounds,
    read_rule,
)
from lustrum.sensitivity.examples import table_of
from lustrum.sensitivity.rule import judges_contributions, ranks_of
from sensitivity.oracle import QUICK, contributions

RULES: list[Rule] = [
    Threshold(5, empty="sensitive", zeros="ignored", margin=2.5),
    Request((70, 80), minimum=2, weights="sample"),
    Dominance(3, 75.5, letters="merged"),
    PPercent(12.5, coalition=2),
    PriorPosterior(5, 40),
    KDisclosure(2, together=2),
    GroupDisclosure(1),
    Sparsity(0.8),
    AnyOf(Threshold(3), AllOf(PPercent(10), Dominance(1, 60))),
    Unless(Threshold(3), veto=Dominance(1, 90)),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_rule_is_read_back_from_its_own_words(rule: Rule) -> None:
    assert read_rule(rule.to_mapping()) == rule


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PriorPosterior(10, 10), "q must be above p"),
        (lambda: PriorPosterior(10, 5), "q must be above p"),
        (lambda: Request(()), "no share"),
        (lambda: AnyOf(), "needs one rule at least"),
        (lambda: AllOf(), "needs one rule at least"),
        (lambda: Background(waived=[-1]), "0 or more"),
        (lambda: insider_bounds(table_of([[1]]), 0), "is 0; it must be 1 or more"),
        (lambda: read_rule({"p": 3}), "needs 'rule'"),
        (lambda: read_rule({"rule": "p-pct"}), "did you mean 'p-percent'"),
        (lambda: read_rule({"rule": "dominance", "m": 3}), "no parameter 'm'"),
        (lambda: read_rule({"rule": "p-percent"}), "needs the parameter 'p'"),
        (lambda: read_rule({"rule": "any-of", "rules": "threshold"}), "list of rules"),
        (lambda: read_rule({"rule": "unless", "of": {"rule": "threshold"}}), "needs 'rule'"),
    ],
)
def test_a_mistake_is_one_clear_sentence(make: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    text = str(caught.value)
    assert says in text
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize(
    ("rule", "ranks"),
    [
        (PPercent(10), 2), (PPercent(10, coalition=3), 4), (PriorPosterior(10, 50), 2),
        (Dominance(3, 80), 3), (Request((70, 80)), 2), (Request((70,), minimum=5), 4),
        (Threshold(4, zeros="ignored"), 4),
    ],
)  # fmt: skip
def test_too_few_ranks_say_which_to_ask_for(rule: Rule, ranks: int) -> None:
    one_less = table_of([[8675309, 42, 17, 5, 3]], ranks=ranks - 1)
    without = Table(one_less.axes, one_less.values, "magnitude", contributors=one_less.contributors)
    for table in (one_less, without):
        with pytest.raises(InputError, match=f"ranks={ranks}") as caught:
            rule.judge(table)
        assert "8675309" not in str(caught.value)
    rule.judge(table_of([[8675309, 42, 17, 5, 3]], ranks=ranks))


def test_no_repr_shows_a_number_of_the_table() -> None:
    cells = table_of([[8675309, 4242], [31337]])
    secret = Background(waived=[90210], requested=[24601])
    for rule in (Threshold(3), PPercent(10), Dominance(1, 60), Request()):
        found = rule.judge(cells, secret)
        shown = repr(found) + repr(found.findings) + repr(secret) + repr(found.reasons)
        for number in ("8675309", "4242", "31337", "90210", "24601"):
            assert number not in shown
        assert not any(character.isdigit() for reason in found.reasons for character in reason.text)


def test_results_cannot_be_written_to() -> None:
    found = Threshold(3).judge(Table.from_counts([1, 5]))
    for array in (found.mask, found.status, found.lower, found.upper, found.sliding):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_a_cell_of_the_wrong_number_of_positions_is_a_mistake() -> None:
    with pytest.raises(InputError, match="has 1 positions"):
        Threshold(3).judge(Table.from_counts([1, 5])).reasons_at((0, 0))


@given(st.lists(contributions, min_size=1, max_size=4))
@QUICK
def test_combinations_join_masks_reasons_and_levels(cells: list[list[int]]) -> None:
    table = table_of(cells, ranks=6)
    few, near = Threshold(3), PPercent(20)
    one, two = few.judge(table), near.judge(table)
    either, both = AnyOf(few, near).judge(table), AllOf(few, near).judge(table)
    only = Unless(few, veto=near).judge(table)
    assert either.mask.tolist() == (one.mask | two.mask).tolist()
    assert both.mask.tolist() == (one.mask & two.mask).tolist()
    assert only.mask.tolist() == (one.mask & ~two.mask).tolist()
    for name in ("lower", "upper", "sliding"):
        a, b = getattr(one, name), getattr(two, name)
        assert getattr(either, name).tolist() == np.maximum(a, b).tolist()
        assert getattr(both, name).tolist() == (np.maximum(a, b) * both.mask).tolist()
        assert getattr(only, name).tolist() == (a * only.mask).tolist()
    for place in range(len(cells)):
        named = [r.rule for r in either.reasons_at((place,))]
        hits = [n for n, part in (("threshold", one), ("p-percent", two)) if part.mask[place]]
        assert named == hits
        assert either.status[place] == ("A" if one.mask[place] else "M" if two.mask[place] else "F")


def test_the_exported_names_are_all_there() -> None:
    assert room.__all__ == sorted(room.__all__)
    assert all(hasattr(room, name) for name in room.__all__)


@pytest.mark.parametrize(
    ("rules", "contributions", "ranks"),
    [
        ([], False, 3),
        ([Threshold(2)], False, 3),
        ([Threshold(7)], False, 8),
        ([PPercent(10)], True, 3),
        ([PPercent(10, coalition=4)], True, 6),
        ([PriorPosterior(10, 50, coalition=3)], True, 5),
        ([Dominance(n=5, k=80), Threshold(4)], True, 6),
        ([AnyOf(Threshold(9), Dominance(n=2, k=80))], True, 10),
        ([AllOf(Threshold(3), AnyOf(Threshold(4), PPercent(10, coalition=7)))], True, 9),
        ([Unless(Threshold(5), veto=PPercent(10))], True, 6),
        ([Unless(PPercent(10), veto=Threshold(5))], True, 6),
        ([Request(shares=(50, 60, 70, 80))], True, 5),
        ([Sparsity()], False, 3),
        ([GivenCells(np.zeros(1, dtype=bool), np.zeros(1, dtype=int))], False, 3),
    ],
)
def test_one_contribution_more_is_kept_than_rules_look_at(
    rules: list[Rule], contributions: bool, ranks: int
) -> None:
    assert any(map(judges_contributions, rules)) is contributions
    assert ranks_of(*rules) == ranks
