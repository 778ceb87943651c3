"""What two steps of protection leave together is never less than what a policy is credited with."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import comb, log2
from typing import Any

import pytest
from pydantic import ValidationError

from lustrum.policy import Policy
from lustrum.protect import (
    PostRandomisation,
    RandomRounding,
    RecordSwapping,
    SmallCountRounding,
    abilities_of,
)

# 1 and 4 change places, and 2 and 5.
EXCHANGED = [[int(n == (0, 4, 5, 3, 1, 2, 6)[true]) for n in range(7)] for true in range(7)]
SMALL = {"method": "small-count-rounding", "base": 3, "how": "random", "totals": "own"}


def exchange(rows: Any) -> dict[str, Any]:
    return {"method": "stochastic-perturbation", "residue_base": 1, "matrix": rows}


def test_rounding_of_what_was_moved_out_of_its_reach_is_refused() -> None:
    assert Policy.model_validate({"protect": SMALL}).entropy > 0.5
    with pytest.raises(ValidationError, match=r"only 0 bits .*'stochastic-perturbation then"):
        Policy.model_validate({"before": [exchange(EXCHANGED)], "protect": SMALL})


def test_a_step_that_undoes_another_one_is_refused() -> None:
    turn = [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    with pytest.raises(ValidationError, match="certain to change only 0 % of ones and twos"):
        Policy.model_validate({"before": [exchange(turn)] * 2, "protect": {"method": "none"}})


def test_a_step_without_a_channel_brings_nothing_to_what_stands_before_it() -> None:
    controlled, none = {"method": "controlled-rounding"}, {"method": "none"}
    assert Policy.model_validate({"before": [controlled], "protect": none}).entropy > 0.5
    with pytest.raises(ValidationError, match="leave only 0 bits"):
        Policy.model_validate({"before": [exchange(EXCHANGED), controlled], "protect": none})


def test_two_steps_on_counts_leave_what_the_product_of_their_matrices_leaves() -> None:
    stay = [[0.8, 0.2, 0, 0], [0.1, 0.8, 0.1, 0], [0, 0.1, 0.8, 0.1], [0, 0, 0.2, 0.8]]
    policy = Policy.model_validate(
        {"before": [exchange(stay)], "protect": {"method": "random-rounding", "base": 3}}
    )
    # Above its last row the matrix with a residue base of 1 moves counts by the steps of that row.
    rows = []
    for true in range(21):
        steps = stay[true] if true < 4 else [0] * (true - 1) + stay[3][2:]
        row: dict[int, float] = {}
        for count, chance in enumerate(steps):
            for shown, share in rounded(count).items():
                row[shown] = row.get(shown, 0.0) + chance * share
        rows.append(row)
    assert policy.entropy == pytest.approx(min(left([[row] for row in rows], x) for x in (1, 2)))


# A small world, enumerated: two cells of 0 to 5 people each, all pairs equally likely to the reader, who sees
# both cells afterwards and wonders about the first one.
Table = tuple[int, int]
Chances = dict[Any, float]
WORLD = list(itertools.product(range(6), repeat=2))


def rounded(count: int) -> Chances:
    down = count - count % 3
    return {down: 1.0} if down == count else {down: 1 - count % 3 / 3, down + 3: count % 3 / 3}


def small_rounded(count: int) -> Chances:
    return rounded(count) if count < 3 else {count: 1.0}


def thinned(people: int, stay: float) -> list[float]:
    return [comb(people, n) * stay**n * (1 - stay) ** (people - n) for n in range(people + 1)]


def recoded(table: Table, stay: float) -> Chances:
    """Everybody keeps the code or takes the other one."""
    found: Chances = {}
    for (a, p), (b, q) in itertools.product(*(enumerate(thinned(n, stay)) for n in table)):
        shown = (a + table[1] - b, b + table[0] - a)
        found[shown] = found.get(shown, 0.0) + p * q
    return found


def swapped(table: Table, rate: float) -> Chances:
    """All people of a cell go to the other one together."""
    found: Chances = {}
    for gone in itertools.product((0, 1), repeat=2):
        chance = 1.0
        for one in gone:
            chance *= rate if one else 1 - rate
        a, b = table
        shown = (
            (0 if gone[0] else a) + (b if gone[1] else 0),
            (0 if gone[1] else b) + (a if gone[0] else 0),
        )
        found[shown] = found.get(shown, 0.0) + chance
    return found


def left(rows: list[list[Chances]], true: int) -> float:
    """Bits left on average about a true value; each has several equally likely rows."""
    beliefs: dict[Any, dict[int, float]] = {}
    for value, several in enumerate(rows):
        for row in several:
            for shown, chance in row.items():
                found = beliefs.setdefault(shown, {})
                found[value] = found.get(value, 0.0) + chance / len(several)
    bits = 0.0
    for found in beliefs.values():
        whole = sum(found.values())
        entropy = -sum(p / whole * log2(p / whole) for p in found.values() if p > 0)
        bits += found.get(true, 0.0) * entropy
    return bits


def shown(moved: Callable[[Table], Chances], step: Callable[[int], Chances]) -> list[list[Chances]]:
    rows: list[list[Chances]] = [[] for _ in range(6)]
    for table in WORLD:
        row: Chances = {}
        for (a, b), chance in moved(table).items():
            for (x, p), (y, q) in itertools.product(step(a).items(), step(b).items()):
                row[x, y] = row.get((x, y), 0.0) + chance * p * q
        rows[table[0]].append(row)
    return rows


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("moves", [recoded, swapped])
@pytest.mark.parametrize(
    ("step", "spec"),
    [(rounded, RandomRounding(3)), (small_rounded, SmallCountRounding(3, "random"))],
)
def test_records_that_move_before_counts_change_leave_no_less_than_the_strongest_step(
    moves: Any, share: float, step: Any, spec: Any
) -> None:
    together = shown(lambda table: moves(table, share), step)
    stated = abilities_of(spec).entropy
    if 0 < share < 1:
        before = RecordSwapping("area", rate=share)
        first = PostRandomisation("sex", stay=share) if moves is recoded else before
        stated = max(stated, abilities_of(first).entropy)
    assert min(left(together, true) for true in (1, 2)) >= stated - 1e-9
