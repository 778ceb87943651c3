"""Contributors attack linked tables with all that they contribute to any of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from examples import examples
from lustrum.model import Category, Contributions, InputError, Table, TableAxis
from lustrum.protect.suppression import (
    ContributorView,
    Suppression,
    SuppressionProblem,
    audit_pattern,
    contributor_views,
    linked_patterns,
    linked_problem,
    suppress,
)
from lustrum.protect.suppression.contributors import (
    RankedContributions,
    contributor_numbers,
    ranked_contributions,
    views_of,
)
from lustrum.protect.suppression.solve import SearchRequest
from lustrum.sensitivity import GivenCells, PPercent, Threshold

# Every firm has an area, an activity and a size class; one table is by activity, the other by size.
SHAPE = (2, 2, 2)
CUBE = [tuple(place) for place in product(*map(range, SHAPE))]
NOTHING = GivenCells(np.zeros((3, 3), np.bool_), np.zeros((3, 3), np.int64))
RULE = Suppression(rule=Threshold(2), attacker="holdings")


@dataclass(frozen=True)
class Firm:
    holding: int
    place: tuple[int, int, int]
    amount: int


def axis(name: str, size: int) -> TableAxis:
    codes = tuple(Category(f"{name}{i}", f"{name}{i}", (i,)) for i in range(size))
    return TableAxis(name, name, (*codes, Category("_T", "Total", tuple(range(size)))))


def sums(firms: list[Firm], over: int) -> np.ndarray:
    """The table without one variable, with totals, as the plain sum over firms."""
    out = np.zeros((3, 3), dtype=np.int64)
    for firm in firms:
        first, second = (firm.place[k] for k in range(3) if k != over)
        for i, j in product((first, 2), (second, 2)):
            out[i, j] += firm.amount
    return out


def made(firms: list[Firm], over: int, ranks: int) -> Table:
    values = sums(firms, over)
    holdings = sorted({firm.holding for firm in firms})
    parts = np.stack([sums([f for f in firms if f.holding == h], over) for h in holdings], axis=-1)
    order = np.argsort(-parts, axis=-1, kind="stable")[..., :ranks]
    value = np.take_along_axis(parts, order, axis=-1)
    names = ["area", "activity", "size"]
    return Table(
        tuple(axis(names[k], 2) for k in range(3) if k != over),
        values,
        kind="magnitude",
        contributors=(parts > 0).sum(axis=-1),
        contributions=Contributions(value, np.where(value > 0, np.array(holdings)[order], -1)),
    )


def pair(firms: list[Firm], ranks: int = 9) -> list[Table]:
    return [made(firms, 2, ranks), made(firms, 1, ranks)]


def random_firms(rng: np.random.Generator) -> list[Firm]:
    count = int(rng.integers(6, 12))
    places = [CUBE[int(k)] for k in rng.integers(0, 8, count)]
    return [Firm(int(rng.integers(0, 6)), p, int(rng.integers(1, 40))) for p in places]


@dataclass(frozen=True)
class Knows:
    """What an attacker knows beside published values: ends of cells, by arithmetic on the records."""

    low: np.ndarray
    high: np.ndarray


def end(
    problem: SuppressionProblem, shown: np.ndarray, knows: Knows, cell: int, sign: int
) -> float:
    """The least (1) or the largest (-1) value of a cell, over what stands behind both tables."""
    low, high = np.maximum(problem.low, knows.low), np.minimum(problem.high, knows.high)
    low, high = (np.where(shown, problem.values, one) for one in (low, high))
    fixed = low == high
    done = linprog(
        sign * BOTH[cell],
        A_ub=np.vstack([BOTH[~fixed], -BOTH[~fixed]]),
        b_ub=np.concatenate([high[~fixed], -low[~fixed]]),
        A_eq=BOTH[fixed],
        b_eq=low[fixed],
    )
    assert done.status == 0
    return float(sign * done.fun)


def both_tables() -> np.ndarray:
    """The cells of both tables as sums of areas by activities by sizes."""
    rows = np.zeros((18, 8))
    for k, place in enumerate(CUBE):
        for table, over in enumerate((2, 1)):
            rows[9 * table : 9 * table + 9, k] = sums([Firm(0, place, 1)], over).ravel()
    return rows


BOTH = both_tables()


def knowledge(
    firms: list[Firm], holding: int, attacker: Literal["singletons", "holdings"]
) -> Knows:
    own = np.concatenate(
        [sums([f for f in firms if f.holding == holding], over).ravel() for over in (2, 1)]
    )
    every = np.concatenate([sums(firms, over).ravel() for over in (2, 1)])
    alone = (own == every) & (own > 0)
    low = np.where(alone, own, 0 if attacker == "singletons" else own)
    return Knows(low, np.where(alone, own, 10**6))


def left_short(
    problem: SuppressionProblem,
    suppressed: np.ndarray,
    firms: list[Firm],
    attacker: Literal["singletons", "holdings"],
) -> set[int]:
    """The primary cells that an outsider or some contributor finds out more about than they may."""
    outsider = Knows(np.zeros(18), np.full(18, 10**6))
    known = [outsider]
    known += [knowledge(firms, h, attacker) for h in sorted({f.holding for f in firms})]
    short = set()
    nothing = np.zeros(18, dtype=np.bool_)
    for knows in known:
        for cell in np.flatnonzero(problem.primary).tolist():
            if knows.low[cell] == knows.high[cell]:
                continue
            least = end(problem, nothing, knows, cell, 1)
            low, high = (end(problem, ~suppressed, knows, cell, sign) for sign in (1, -1))
            value = int(problem.values[cell])
            down = min(int(problem.lower[cell]), value - least)
            if low > value - down + 1e-5 or high < value + problem.upper[cell] - 1e-5:
                short.add(cell)
    return short


def given_cells(rng: np.random.Generator, tables: list[Table]) -> list[Suppression]:
    specs = []
    for table in tables:
        cells = (rng.random(table.shape) < 0.3) & (table.values > 0)
        level = np.where(cells, rng.integers(1, 6, table.shape), 0)
        specs.append(Suppression(rule=GivenCells(cells, level)))
    return specs


@pytest.mark.parametrize("attacker", ["singletons", "holdings"])
@settings(max_examples=examples(3, 20), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_the_audit_of_linked_tables_agrees_with_what_each_contributor_can_infer(
    seed: int, attacker: Literal["singletons", "holdings"]
) -> None:
    rng = np.random.default_rng(seed)
    firms = random_firms(rng)
    tables = pair(firms)
    specs = [replace(s, attacker=attacker, zeros=True) for s in given_cells(rng, tables)]
    problem = linked_problem(specs, tables)
    for share in (0.4, 0.8):
        suppressed = problem.primary | (rng.random(18) < share)
        audit = audit_pattern(problem, suppressed, workers=1)
        assert {cell for cell, _ in audit.short} == left_short(problem, suppressed, firms, attacker)


@pytest.mark.parametrize("attacker", ["singletons", "holdings"])
@settings(max_examples=examples(2, 12), deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_patterns_of_linked_tables_hold_against_every_contributor(
    seed: int, attacker: Literal["singletons", "holdings"]
) -> None:
    rng = np.random.default_rng(seed)
    firms = random_firms(rng)
    tables = pair(firms)
    specs = [replace(s, attacker=attacker, work=200) for s in given_cells(rng, tables)]
    found = linked_patterns(specs, tables, workers=1)
    problem = linked_problem(specs, tables)
    suppressed = np.concatenate([one.suppressed for one in found])
    short = left_short(problem, suppressed, firms, attacker)
    assert found[0].safe == (not short)
    assert short <= {cell.cell for cell in found[0].unprotectable}


def second_table(own: int) -> tuple[list[Suppression], list[Table]]:
    """Cell 0 of the first table has 54 and must be able to rise by 60; holding 1 has ``own`` of cell 1."""
    firms = [
        Firm(0, (0, 0, 0), 50), Firm(2, (0, 0, 0), 4), Firm(1, (0, 1, 1), own),
        Firm(3, (0, 1, 1), 20), Firm(4, (0, 1, 1), 20), Firm(8, (0, 1, 1), 54 - own),
        Firm(5, (1, 0, 0), 80), Firm(9, (1, 0, 0), 80), Firm(6, (1, 1, 1), 170),
        Firm(7, (1, 1, 1), 171),
    ]  # fmt: skip
    tables = pair(firms)
    # The first table does not say who contributes, only that nobody is alone.
    contributions = tables[0].contributions
    nobody = Contributions(contributions.value * 0, contributions.holding * 0 - 1)
    tables[0] = replace(tables[0], contributions=nobody)
    cells = np.zeros((3, 3), dtype=np.bool_)
    cells[0, 0] = True
    wanted = GivenCells(cells, np.where(cells, 60, 0), np.where(cells, 1, 0))
    return [Suppression(rule=rule, attacker="holdings") for rule in (wanted, NOTHING)], tables


@pytest.mark.parametrize(("own", "safe"), [(34, True), (35, False)])
def test_own_contributions_to_the_second_table_count_in_the_attack_on_the_first(
    own: int, safe: bool
) -> None:
    """Cells 0 and 1 of the first table have the sum 148, and cell 1 is that of the second table.

    One who has 35 there knows that cell 0 is at most 113, not 54 + 60.
    """
    specs, tables = second_table(own)
    problem = linked_problem(specs, tables)
    square = np.zeros(18, dtype=np.bool_)
    # Both inner tables are suppressed, all totals are published; the sizes of an area are its activities.
    square[[0, 1, 3, 4, 9, 10, 12, 13]] = True
    row = np.zeros((1, 18), dtype=np.int64)
    row[0, 1], row[0, 10] = 1, -1
    tied = replace(
        problem, relations=type(problem.relations)(np.vstack([problem.relations.toarray(), row]))
    )
    audit = audit_pattern(tied, square, workers=1)
    assert audit.safe == safe
    assert all(tied.views[view].cells.min() >= 9 for _, view in audit.short)
    # The search begins without this attacker, and takes it in once the audit finds it.
    found = suppress(tied, workers=1)
    assert found.safe
    assert left_over(tied, found.suppressed) >= 60


def left_over(problem: SuppressionProblem, suppressed: np.ndarray) -> int:
    """How far cell 0 can rise for the attacker who knows most about the second table."""
    attackers = [v for v in problem.views if 10 in v.cells.tolist()]
    found = []
    for view in attackers:
        alone = replace(problem, views=(), low=problem.low.copy())
        low = alone.low.copy()
        low[view.cells] = np.maximum(low[view.cells], view.low)
        outside = audit_pattern(replace(alone, low=low), suppressed, workers=1)
        found.append(int(outside.cells.high[0] - problem.values[0]))
    return min(found, default=60)


def test_a_contributor_to_a_cell_who_is_alone_beside_it_does_not_find_the_others_out() -> None:
    """Holding 1 has all of one suppressed cell and part of the other: subtraction would reveal holding 0."""
    values = np.array([100, 50, 60, 300, 510])
    axes = (axis("a", 4),)
    table = Table(
        axes,
        values,
        kind="magnitude",
        contributors=np.array([2, 1, 9, 9, 21]),
        contributions=Contributions(
            np.array([[90, 10], [50, 0], [20, 20], [30, 30], [90, 60]]),
            np.array([[0, 1], [1, -1], [2, 3], [4, 5], [0, 1]]),
        ),
    )
    for attacker in ("singletons", "holdings"):
        spec = Suppression(rule=PPercent(p=10), attacker=attacker)  # type: ignore[arg-type]
        problem = spec.problem(table)
        alone = np.array([True, True, False, False, False])
        assert not audit_pattern(problem, alone).safe, attacker
        pattern = spec.pattern(table)
        assert pattern.safe
        assert pattern.secondary.tolist() == [False, False, True, False, False]
    # Contributors attack unless somebody says that none does.
    assert Suppression(rule=PPercent(p=10)).pattern(table).secondary.sum() == 1
    outside = Suppression(rule=PPercent(p=10), attacker="outsider")
    assert outside.pattern(table).secondary.sum() == 0


def sole(values: list[list[int]], count: list[list[int]], name: str) -> Table:
    """Two rows and two columns with totals, and numbers of contributors only."""
    inner, numbers = np.array(values), np.array(count)
    full, every = (
        np.block([[a, a.sum(1, keepdims=True)], [a.sum(0), a.sum()]]) for a in (inner, numbers)
    )
    return Table((axis("area", 2), axis(name, 2)), full, kind="magnitude", contributors=every)


def test_sole_contributors_without_names_are_one_where_one_has_the_total_of_the_other() -> None:
    first = sole([[40, 0], [20, 31]], [[1, 0], [5, 6]], "activity")
    second = sole([[0, 40], [25, 26]], [[0, 1], [5, 6]], "size")
    specs = [replace(RULE, attacker="singletons")] * 2
    problem = linked_problem(specs, [first, second], named=False)
    # Area 0 has one contributor: cells 0 and 2 of the first table, 1 and 2 of the second are its own.
    assert [v.cells.tolist() for v in problem.views] == [[0, 2, 10, 11]]
    apart = linked_problem(specs, [sole([[40, 7], [20, 31]], [[1, 9], [5, 6]], "activity")] * 2)
    assert [v.cells.tolist() for v in apart.views] == [[0, 9]], "one cell in two tables"


def test_names_that_mean_nothing_outside_their_cell_are_not_joined() -> None:
    firms = [
        Firm(0, (0, 0, 0), 50),
        Firm(1, (0, 1, 1), 9),
        Firm(1, (1, 1, 1), 8),
        Firm(2, (1, 0, 0), 7),
    ]
    tables = pair(firms)
    specs = [replace(RULE, attacker="singletons")] * 2
    by_name = linked_problem(specs, tables)
    own = {tuple(v.cells.tolist()) for v in by_name.views}
    # Holding 1 is alone in two areas, in both tables, and so in the totals of an activity and of a size.
    assert (1, 4, 7, 10, 13, 16) in own
    without = {tuple(v.cells.tolist()) for v in linked_problem(specs, tables, named=False).views}
    # The sole contributor of a total is that of its parts. No area has only one, so nothing ties the tables.
    assert without == {(0,), (3,), (1, 4, 7), (9,), (12,), (10, 13, 16)}


def test_contributions_bound_nothing_where_values_can_be_negative() -> None:
    table = Table(
        (axis("a", 2),),
        np.array([10, -4, 6]),
        kind="magnitude",
        contributors=np.array([2, 1, 3]),
        contributions=Contributions(
            np.array([[30, -20], [-4, 0], [30, -20]]), np.array([[0, 1], [2, -1], [0, 1]])
        ),
    )
    primary = np.array([True, True, False])
    problem = SuppressionProblem.of(
        table.values.ravel(), [(2, [0, 1])], np.flatnonzero(primary), [1, 1], low=-100, high=100
    )
    views = contributor_views([table], problem, alone_only=False)
    assert [v.cells.tolist() for v in views] == [[1]]


def test_linked_tables_name_one_attacker_and_no_unions() -> None:
    tables = pair([Firm(0, (0, 0, 0), 5), Firm(1, (1, 1, 1), 6)])
    with pytest.raises(InputError, match="same 'attacker'"):
        linked_problem([RULE, replace(RULE, attacker="outsider")], tables)
    with pytest.raises(InputError, match="one table"):
        linked_problem([replace(RULE, unions=True)] * 2, tables)
    plain = [replace(table, contributions=None) for table in tables]
    with pytest.raises(InputError, match="largest contributions"):
        linked_problem([RULE] * 2, plain)
    with pytest.raises(InputError, match="number of contributors"):
        linked_problem(
            [replace(RULE, attacker="singletons", rule=NOTHING)] * 2,
            [replace(table, contributors=None) for table in plain],
        )


def test_a_search_that_begins_without_contributors_ends_safe_from_all_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import lustrum.protect.suppression.choose as choose

    searched: list[int] = []
    right = choose._searched
    monkeypatch.setattr(
        choose, "_searched", lambda p, asked: searched.append(len(p.views)) or right(p, asked)
    )
    rng = np.random.default_rng(7)
    returned = compared = 0
    for _ in range(12):
        tables = pair(random_firms(rng))
        problem = linked_problem([RULE, RULE], tables)
        if not problem.views or not problem.primary.any():
            continue
        searched.clear()
        found = suppress(problem)
        assert searched[0] == 0
        returned += searched[-1] > 0
        # It ends in an audit of everybody, or names cells that nothing protects.
        audit = audit_pattern(problem, found.suppressed)
        assert audit.safe == found.safe
        everybody, _, hopeless = right(problem, SearchRequest("auto", None, lambda *_: None))
        assert {cell.cell for cell in hopeless} == {cell.cell for cell in found.unprotectable}
        if not hopeless:
            # Who searches with all contributors from the beginning finds a pattern of the same cost.
            cost = problem.total_cost(everybody.suppressed)
            assert found.cost == cost == found.lower_bound == everybody.lower_bound
            compared += 1
    assert returned  # the audit sent some searches back
    assert compared


def _pooled(
    contributions: RankedContributions, members: tuple[int, ...], numbers: np.ndarray
) -> RankedContributions:
    """What members of a coalition contribute together, cell by cell."""
    picks = np.isin(contributions.holding, members)
    cell, cell_index, times = np.unique(
        contributions.cell[picks], return_inverse=True, return_counts=True
    )
    amount = np.zeros(cell.size, dtype=np.int64)
    np.add.at(amount, cell_index, contributions.amount[picks])
    alone = np.zeros(cell.size, dtype=np.bool_)
    np.logical_or.at(alone, cell_index, contributions.alone[picks])
    alone |= times >= numbers[cell]
    return RankedContributions(cell, np.zeros(cell.size, dtype=np.int64), amount, alone)


@pytest.mark.parametrize("seed", range(12))
def test_the_pairs_that_are_kept_find_all_that_any_two_holdings_find(seed: int) -> None:
    """Few pairs stand for all: the same cells are short as to every two holdings, one pair after the other."""
    rng = np.random.default_rng(seed)
    firms = [
        Firm(
            int(rng.integers(4)) if rng.random() < 0.4 else 10 + i,
            CUBE[int(rng.integers(8))],
            amount,
        )
        for i, amount in enumerate(rng.integers(1, 90, size=int(rng.integers(4, 9))).tolist())
    ]
    table = made(firms, 2, ranks=9)
    problem = replace(RULE, rule=PPercent(10)).problem(table)
    every = sorted({firm.holding for firm in firms})
    two = list(combinations(every, 2))
    levels = np.stack([problem.lower, problem.upper, problem.sliding])
    about = problem.values, problem.relations, problem.primary, levels
    ranked = ranked_contributions([table], [0], problem.relations, alone_only=False)
    slow = views_of(ranked, *about) + tuple(
        view
        for members in two
        for view in views_of(_pooled(ranked, members, contributor_numbers([table])), *about)
    )
    quick = contributor_views([table], problem, alone_only=False, pairs=True)
    for _ in range(6):
        hidden = problem.fixed | (rng.random(problem.values.size) < 0.5)
        found = [
            {cell for cell, _ in audit_pattern(replace(problem, views=views), hidden).short}
            for views in (slow, quick)
        ]
        assert found[0] == found[1]


def test_a_total_needs_protection_from_two_as_far_down_as_they_contribute_to_parts_that_cross() -> (
    None
):
    # 0 and 3 contribute 1332 of 1371; only 1310 of it stands among the largest contributions to the total.
    firms = [
        Firm(0, (0, 0, 0), 22), Firm(1, (0, 1, 0), 23), Firm(2, (1, 0, 0), 16), Firm(3, (1, 1, 0), 1310),
    ]  # fmt: skip
    table = made(firms, 2, ranks=2)
    problem = replace(RULE, rule=PPercent(10), attacker="pairs").problem(table)
    total = problem.values.size - 1
    assert problem.values[total] - problem.lower[total] < 1332
    two = next(
        number
        for number, view in enumerate(problem.views)
        if "pair" in view.name and _knows(view, (0, 4))
    )
    view = problem.views[two]
    at = int(np.flatnonzero(view.cells == total)[0])
    assert view.low[at] == 1332
    assert view.levels[0, at] == 1371 - 1332
    everything = np.ones(problem.values.size, dtype=np.bool_)
    assert audit_pattern(problem, everything).safe
    # Once 23 of somebody else are published, the two know that the total is at least 1355.
    everything[1] = False
    assert (total, two) in audit_pattern(problem, everything).short


def _knows(view: ContributorView, cells: tuple[int, ...]) -> bool:
    """Whether an attacker knows these cells exactly."""
    return set(cells) <= set(view.cells[view.low == view.high].tolist())


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    firms = [Firm(i, CUBE[i % 8], 10 + i) for i in range(9)]
    monkeypatch.setattr("lustrum.protect.suppression.contributors.MOST_PAIRS", 3)
    with pytest.raises(InputError, match="pairs, and at most 3 can be attacked with"):
        replace(RULE, attacker="pairs").problem(made(firms, 2, ranks=3))


def test_pairs_need_contributors() -> None:
    with pytest.raises(InputError, match="'pairs' needs sums with the number of contributors"):
        Suppression(attacker="pairs").problem(Table.from_counts([[1, 8], [9, 7]]))
