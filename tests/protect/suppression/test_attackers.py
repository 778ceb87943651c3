"""What contributors know, unions of cells under a rule, and the check of deviations against every attacker."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from lustrum.model import Contributions, InputError, Table, TableAxis
from lustrum.protect.suppression import (
    RuleOnUnions,
    Suppression,
    SuppressionProblem,
    coalition,
    contributor_views,
    singleton_views,
)
from lustrum.protect.suppression.check import audit_deviations
from lustrum.protect.suppression.contributors import ranked_contributions
from lustrum.protect.suppression.problem import ContributorView
from lustrum.protect.suppression.search.boxes import Deviations
from lustrum.sensitivity import Background, Dominance, PPercent, Request, Threshold
from protect.suppression.test_problem_parts import magnitudes

NO_END = np.iinfo(np.int64).max // 8


def table(contributors: list[int] | None) -> Table:
    """Four cells; holding 0 is alone in the first and shares the second with holding 7."""
    return Table(
        (TableAxis.plain("a", ["p", "q", "r", "s"]),),
        np.array([40, 100, 60, 9]),
        kind="magnitude",
        contributors=None if contributors is None else np.array(contributors),
        contributions=Contributions(
            np.array([[40, 0], [70, 20], [30, 10], [5, 4]]),
            np.array([[0, -1], [0, 7], [7, 8], [8, 9]]),
        ),
    )


def one_line(primary: list[int]) -> SuppressionProblem:
    """The four cells of the table, with levels of 60 for the primary ones, and no relation between them."""
    level = np.minimum(60, np.array([40, 100, 60, 9])[primary])
    return SuppressionProblem.of(
        [40, 100, 60, 9], np.zeros((0, 2)).tolist(), primary, [60] * len(primary), level
    )


@pytest.mark.parametrize("contributors", [[1, 5, 4, 3], None])
def test_a_holding_knows_its_own_part_and_all_of_a_cell_that_it_has_alone(
    contributors: list[int] | None,
) -> None:
    views = contributor_views([table(contributors)], one_line([2]), alone_only=False)
    assert [v.name for v in views] == ["holding 1", "holding 2", "holding 3", "holding 4"]
    assert [v.cells.tolist() for v in views] == [[0, 1], [1, 2], [2, 3], [3]]
    assert [v.low.tolist() for v in views] == [[40, 70], [20, 30], [10, 5], [4]]
    assert views[0].high[0] == 40
    assert (np.concatenate([views[0].high[1:], views[1].high, views[2].high]) > NO_END).all()


def test_a_cell_needs_its_levels_against_those_who_contribute_to_it() -> None:
    views = contributor_views([table([1, 5, 4, 3])], one_line([0, 2]), alone_only=False)
    own = [v.levels.tolist() for v in views if v.levels is not None]
    # Holding 0 is alone in the first cell. The third can fall by what holding 7, or 8, does not have of it.
    assert own == [
        [[0, 0], [0, 0], [0, 0]],
        [[0, 30], [0, 60], [0, 0]],
        [[50, 0], [60, 0], [0, 0]],
        [[0], [0], [0]],
    ]


def test_of_those_who_share_one_cell_the_largest_knows_most() -> None:
    made = table([1, 5, 4, 3])
    holding = np.array([[0, -1], [1, 2], [3, 4], [5, 6]])
    apart = replace(made, contributions=Contributions(made.contributions.value, holding))
    views = contributor_views([apart], one_line([2]), alone_only=False)
    assert [(v.cells.tolist(), v.low.tolist()) for v in views] == [
        ([0], [40]),
        ([1], [70]),
        ([2], [30]),
        ([3], [5]),
    ]


def test_a_sole_contributor_of_several_cells_knows_exactly_those() -> None:
    views = singleton_views([4, 7, 9, 2], [True, False, True, True], [5, 5, 5, 0])
    assert [(v.cells.tolist(), v.low.tolist(), v.high.tolist()) for v in views] == [
        ([3], [2], [2]),
        ([0, 2], [4, 9], [4, 9]),
    ]
    assert [v.name for v in views] == ["sole contributor 1", "sole contributor 2"]


def test_a_coalition_knows_a_cell_from_the_closer_ends_of_its_members() -> None:
    one = ContributorView("one", np.array([1, 2]), np.array([3, 0]), np.array([9, 50]))
    two = ContributorView("two", np.array([2, 4]), np.array([5, 1]), np.array([60, 8]))
    both = coalition("both", [one, two])
    assert both.cells.tolist() == [1, 2, 4]
    assert both.low.tolist() == [3, 5, 1]
    assert both.high.tolist() == [9, 50, 8]


def test_a_holding_in_several_cells_of_a_union_is_one_contributor() -> None:
    made = table([1, 5, 4, 3])
    # Cells q and r: holdings 0, 7 and 8 are seen, 7 in both, and 5 of the 9 contributors are not seen.
    union = np.array([1, 2])
    assert not RuleOnUnions(made, Threshold(8)).reveals(union)
    assert RuleOnUnions(made, Threshold(9)).reveals(union)


def test_the_largest_contributions_of_a_union_are_added_up_by_holding() -> None:
    made = table([1, 5, 4, 3])
    # Of 160 in q and r holding 0 has 70 and holding 7 has 50: 75 percent together, 44 percent the first.
    union = np.array([1, 2])
    assert RuleOnUnions(made, Dominance(n=2, k=74)).reveals(union)
    assert not RuleOnUnions(made, Dominance(n=2, k=76)).reveals(union)
    assert RuleOnUnions(made, Dominance(n=1, k=43)).reveals(union)
    assert not RuleOnUnions(made, Dominance(n=1, k=45)).reveals(union)
    # Of 140 in p and q holding 0 has 110.
    assert RuleOnUnions(made, Dominance(n=1, k=78)).reveals(np.array([0, 1]))
    assert not RuleOnUnions(made, Dominance(n=1, k=79)).reveals(np.array([0, 1]))


# Two by two cells with totals: 10 20 | 30, 30 40 | 70, 40 60 | 100.
VALUES = [10, 20, 30, 30, 40, 70, 40, 60, 100]
SUMS = [(2, [0, 1]), (5, [3, 4]), (8, [6, 7]), (6, [0, 3]), (7, [1, 4]), (8, [2, 5])]
SQUARE = np.array([True, True, False, True, True, False, False, False, False])


def problem(
    views: tuple[ContributorView, ...] = (), sliding: int = 0, level: int = 5
) -> SuppressionProblem:
    return SuppressionProblem.of(VALUES, SUMS, [0], [level], sliding=[sliding], views=views)


def deviations(up: int, down: int) -> Deviations:
    """The square moved up at its first cell, and down."""
    turn = np.array([1, -1, -1, 1])
    return Deviations(
        target=np.array([0]),
        first=np.array([0, 4]),
        cells=np.array([0, 1, 3, 4]),
        amounts=up * turn,
        lower=-down * turn,
    )


def test_deviations_must_reach_the_sliding_level() -> None:
    assert audit_deviations(problem(sliding=14), SQUARE, deviations(8, 6)).safe
    assert not audit_deviations(problem(sliding=15), SQUARE, deviations(8, 6)).safe


def view(cell: int, low: int, high: int, targets: list[int] | None = None) -> ContributorView:
    marks = None if targets is None else np.isin(np.arange(9), targets)
    return ContributorView("knows", np.array([cell]), np.array([low]), np.array([high]), marks)


def test_what_a_contributor_knows_of_the_target_counts_if_the_target_is_protected_from_it() -> None:
    shown = deviations(8, 6)
    own = view(0, 10, 10)
    assert audit_deviations(problem((own,)), SQUARE, shown).safe, "its levels count with it already"
    assert not audit_deviations(
        problem((replace(own, targets=np.arange(9) == 0),)), SQUARE, shown
    ).safe
    other = view(1, 12, 26, targets=[0])
    assert audit_deviations(problem((other,)), SQUARE, shown).safe


def shared(low: int, own: list[int], targets: list[int] | None = None) -> ContributorView:
    """One who has ``low`` of the first cell, which needs levels (lower, upper, sliding) against it."""
    known = view(0, low, NO_END, targets)
    return replace(known, levels=np.array(own, dtype=np.int64).reshape(3, 1))


def test_part_of_a_deviation_of_counts_is_whole_where_all_moves_are_of_one_size() -> None:
    counts = replace(problem((shared(8, [2, 5, 0]),)), whole=True)
    assert audit_deviations(counts, SQUARE, deviations(8, 6)).safe
    # Half of a move of 1 is no count. The last cells move against each other, by another amount.
    every = np.ones(9, dtype=np.bool_)
    turn = np.array([1, 0, 1, -1, 0, -1])
    odd = Deviations(
        target=np.array([0]),
        first=np.array([0, 6]),
        cells=np.array([0, 1, 2, 3, 4, 5]),
        amounts=8 * turn + np.array([0, 1, 1, 0, -1, -1]),
        lower=-6 * turn - np.array([0, 1, 1, 0, -1, -1]),
    )
    assert audit_deviations(replace(counts, views=()), every, odd).safe
    assert not audit_deviations(counts, every, odd).safe
    assert audit_deviations(replace(counts, whole=False), every, odd).safe


def test_a_coalition_asks_for_what_the_least_protected_member_asks_for() -> None:
    """Levels of its own cells are the smallest of its members, and none where it knows the cell."""
    one = ContributorView(
        "one", np.array([1, 2]), np.array([3, 0]), np.array([9, 50]),
        levels=np.array([[5, 6], [7, 8], [1, 2]]),
    )  # fmt: skip
    two = ContributorView(
        "two", np.array([2, 4]), np.array([5, 1]), np.array([60, 1]),
        levels=np.array([[4, 9], [9, 9], [3, 3]]),
    )  # fmt: skip
    both = coalition("both", [one, two])
    assert both.levels.tolist() == [[5, 4, 0], [7, 8, 0], [1, 2, 0]]
    bare = ContributorView("bare", np.array([1]), np.array([0]), np.array([99]))
    three = coalition("three", [one, two, bare])
    assert three.levels.tolist() == [[0, 4, 0], [0, 8, 0], [0, 2, 0]]
    assert coalition("none", [bare]).levels is None
    assert both.levels.dtype == both.low.dtype == both.high.dtype == np.int64


# Two cells that need protection and four others, with one sum: 10 + 12 + 9 + 9 + 9 + 9 = 58.
LINE = [10, 12, 9, 9, 9, 9, 58]
# Moves of the first or the second cell, upwards: of one size, also with a cell that stays, and of two sizes.
EVEN, STILL = {"self": 4, 2: -4}, {"self": 4, 2: -4, 3: 0}
PARTS, RISES = {"self": 4, 2: -2, 3: -2}, {"self": 2, 2: -1, 3: -1}


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kinds", [(EVEN, EVEN), (STILL, EVEN), (PARTS, EVEN), (EVEN, RISES)])
def test_levels_against_contributors_are_proven_cell_by_cell(
    whole: bool, kinds: tuple[dict[Any, int], ...]
) -> None:
    """Small cases against the rule in words: which cells ask, how far they reach, which parts are whole."""
    moves = [{cell if c == "self" else c: a for c, a in k.items()} for cell, k in enumerate(kinds)]
    shown = Deviations(
        target=np.array([0, 1]),
        first=np.cumsum([0, *map(len, moves)]),
        cells=np.array([c for m in moves for c in m]),
        amounts=np.array([a for m in moves for a in m.values()]),
        lower=-np.array([a for m in moves for a in m.values()]),
    )
    hidden = np.arange(7) < 6
    outcomes = set()
    for below, above, level, other in product((0, 1, 4), (0, 1, 4), range(4), ([0] * 3, [1, 0, 0])):
        own = np.array([[level == 1, level == 2, 2 * (level == 3)], other]).T.astype(np.int64)
        for targets in (None, [0, 1], [1], [0]):
            known = ContributorView(
                "knows",
                np.array([0, 1]),
                np.array([10 - below, 12 - 1]),
                np.array([10 + above, 12 + 9]),
                targets=None if targets is None else np.isin(np.arange(7), targets),
                levels=own,
            )
            asked = SuppressionProblem.of(
                LINE, [(6, list(range(6)))], [0, 1], [2, 2], whole=whole, views=(known,)
            )
            short = []
            for cell, (down, up) in enumerate(((below, above), (1, 9))):
                reach = moves[cell][cell]
                lower, upper, sliding = own[:, cell].tolist()
                down, up = min(down, reach), min(up, reach)
                kept = down >= lower and up >= upper and down + up >= sliding
                sizes = {abs(a) for a in moves[cell].values() if a}
                if whole and len(sizes) > 1:
                    kept = False
                if any(own[:, cell] > 0) and cell in (targets or [0, 1]) and not kept:
                    short.append((cell, -1))
            found = audit_deviations(asked, hidden, shown)
            assert found.short == tuple(short), (below, above, own.tolist(), targets)
            outcomes.add(found.short)
    assert len(outcomes) >= 2


def test_what_attackers_are_made_from_is_checked() -> None:
    with pytest.raises(InputError, match="3 cells, but 4 holdings"):
        singleton_views([4, 7, 9], [True, False, True], [5, -1, 5, 6])
    with pytest.raises(InputError, match="at least one member"):
        coalition("nobody", [])
    bare = Table((TableAxis.plain("a", ["p", "q"]),), np.array([4, 10]))
    with pytest.raises(InputError, match="largest contributions"):
        RuleOnUnions(bare, Threshold(3))
    nothing = sparse.csr_array((0, 2), dtype=np.int64)
    with pytest.raises(InputError, match="largest contributions"):
        ranked_contributions([bare], [0], nothing, alone_only=False)
    # The number of contributors says who is alone, not how many of them are seen.
    one_seen = Table(
        (TableAxis.plain("a", ["p", "q"]),),
        np.array([40, 100]),
        kind="magnitude",
        contributors=np.array([1, 3]),
        contributions=Contributions(np.array([[40], [100]]), np.array([[2], [3]])),
    )
    found = ranked_contributions([one_seen], [0], nothing, alone_only=False)
    assert found.cell.tolist() == [0, 1]
    assert found.alone.tolist() == [True, False]


def own_contributors() -> object:
    """Every inner cell has one contributor of its own, who holds all of it."""
    values = np.array([[50, 40, 30], [45, 60, 35], [55, 65, 70]])
    return magnitudes(values, np.arange(9).reshape(3, 3), np.full((3, 3), 9))


def test_a_waiver_takes_a_cell_out_of_the_primary_ones() -> None:
    spec = Suppression(rule=PPercent(p=10), attacker="outsider")
    made = own_contributors()
    every = spec.pattern(made).primary.reshape(4, 4)[:3, :3]
    assert every.all()
    some = Background(waived=[1, 2, 3, 4, 5, 6, 7, 8])
    pattern = spec.pattern(made, background=some)
    assert np.flatnonzero(pattern.primary).tolist() == [0]
    release = spec.release(made, pattern, some)
    assert not release.shown[0, 0]
    assert release.status[0, 0] == "N"
    assert int((~release.shown).sum()) == 4


def test_a_request_is_honoured_only_with_the_background() -> None:
    spec = Suppression(rule=Request(shares=(70,)))
    made = own_contributors()
    assert not spec.judge(made).mask.any()
    asked = Background(requested=[4])
    assert np.argwhere(spec.judge(made, asked).mask).tolist() == [[1, 1]]
    pattern = spec.pattern(made, background=asked)
    assert pattern.safe
    assert pattern.suppressed.reshape(4, 4)[1, 1]


def test_sums_of_cells_are_judged_with_waivers_and_requests() -> None:
    made = own_contributors()
    rule = Request(shares=(30,))
    cells = np.array([0, 1])
    assert not RuleOnUnions(made, rule).reveals(cells)
    assert RuleOnUnions(made, rule, Background(requested=[0])).reveals(cells)
    strict = PPercent(p=10)
    assert RuleOnUnions(made, strict).reveals(cells)
    assert not RuleOnUnions(made, strict, Background(waived=[0, 1])).reveals(cells)
