"""The shuttle's loops, dives, plain form and lattice beside all tables and formulas."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from audit.test_closed_by_hand import drawn, fitting
from lustrum.audit import ContradictionError
from lustrum.audit.closed import Margins
from lustrum.audit.shuttle import Detail, Effort, shuttle
from lustrum.audit.shuttle import effort as effort_module
from lustrum.audit.shuttle import lattice as lattice_module
from lustrum.audit.shuttle.effort import Clock
from lustrum.audit.shuttle.kernels import CUT, FOUND, NO_TABLE, _settle, dive, drain, narrow
from lustrum.audit.shuttle.lattice import Lattice
from lustrum.audit.shuttle.search import _CubeSearch, _fitted

PURE = Effort(solver=None)
PAIRS = [(0, 1), (0, 2), (1, 2)]


# Bounds along sums, without any order


def settled(sums, low, high):
    """Every sum in turn until nothing changes; None if a cell has no value left."""
    low, high = list(low), list(high)
    changed = True
    while changed:
        changed = False
        for total, *parts in sums:
            for cell in (total, *parts):
                others = [p for p in parts if p != cell]
                if cell == total:
                    ends = sum(low[p] for p in parts), sum(high[p] for p in parts)
                else:
                    ends = (
                        low[total] - sum(high[p] for p in others),
                        high[total] - sum(low[p] for p in others),
                    )
                new = max(low[cell], ends[0]), min(high[cell], ends[1])
                changed |= new != (low[cell], high[cell])
                low[cell], high[cell] = new
                if new[0] > new[1]:
                    return None
    return low, high


def arrays(sums, cells):
    """Sums as the loops take them, and an empty queue."""
    indptr = np.cumsum([0, *map(len, sums)])
    items = np.array([c for s in sums for c in s], dtype=np.int64)
    users = [[r for r, s in enumerate(sums) if c in s] for c in range(cells)]
    user_ptr = np.cumsum([0, *map(len, users)])
    flat = np.array([r for rows in users for r in rows], dtype=np.int64)
    return indptr, items, user_ptr, flat


def random_sums(rng):
    """Three to six cells in up to four sums of two or three parts."""
    cells = int(rng.integers(4, 8))
    sums = [
        rng.choice(cells, int(rng.integers(3, 5)), replace=False).tolist()
        for _ in range(int(rng.integers(1, 5)))
    ]
    low = rng.integers(0, 3, cells)
    return sums, low, low + rng.integers(0, 8, cells)


def test_bounds_pass_along_sums_until_nothing_changes():
    rng = np.random.default_rng(1)
    feasible = 0
    for _ in range(60):
        sums, low, high = random_sums(rng)
        rows = len(sums)
        wanted = settled(sums, low, high)
        queue, queued = np.arange(rows), np.ones(rows, bool)
        least, most = low.copy(), high.copy()
        fine = drain(*arrays(sums, low.size), least, most, queue, queued, rows, 10**6)
        assert fine == (wanted is not None)
        assert not queued.any()
        if wanted is not None:
            feasible += 1
            assert (least.tolist(), most.tolist()) == wanted
            # The same from one cell that is narrowed.
            cell = int(rng.integers(low.size))
            ends = int(least[cell]) + 1, int(most[cell])
            one = least.copy(), most.copy()
            wanted = None
            if ends[0] <= ends[1]:
                start = one[0].copy()
                start[cell] += 1
                wanted = settled(sums, start, one[1])
            fine = narrow(*arrays(sums, low.size), *one, queue, queued, 10**6, cell, *ends)
            assert fine == (wanted is not None)
            assert not queued.any()
            if wanted is not None:
                assert (one[0].tolist(), one[1].tolist()) == wanted
    assert 15 < feasible < 55


def test_so_many_sums_are_visited_and_the_rest_forgotten():
    # Five totals of two parts each, all narrow to 2 and 3; a visit settles one of them.
    sums = [[3 * k, 3 * k + 1, 3 * k + 2] for k in range(5)]
    for visits in range(7):
        low, high = np.tile([5, 0, 0], 5), np.tile([5, 2, 3], 5)
        queue, queued = np.array([3, 1, 4, 0, 2]), np.ones(5, bool)
        assert drain(*arrays(sums, 15), low, high, queue, queued, 5, visits)
        done = [k for k in range(5) if low[3 * k + 1] == 2]
        assert sorted(done) == sorted([3, 1, 4, 0, 2][:visits])
        assert not queued.any()
    # A sum is visited again after a cell of it changed, which costs a visit too.
    sums = [[0, 1, 2], [2, 3, 4]]
    for visits, wanted in ((0, [0, 0]), (1, [5, 0]), (2, [5, 0]), (3, [5, 3]), (9, [5, 3])):
        low, high = np.array([9, 0, 0, 0, 0]), np.array([9, 4, 9, 2, 9])
        queue, queued = np.array([0, 0]), np.array([True, False])
        assert drain(*arrays(sums, 5), low, high, queue, queued, 1, visits)
        assert low[[2, 4]].tolist() == wanted


def test_a_cell_that_is_wide_enough_already_moves_nothing():
    sums = [[0, 1, 2]]
    for least, most in ((0, 9), (-1, 9), (0, 10)):
        # The bounds could be narrowed, but nothing new is known.
        low, high = np.array([5, 0, 0]), np.array([9, 9, 3])
        given = low.copy(), high.copy()
        queue, queued = np.zeros(1, np.int64), np.zeros(1, bool)
        assert narrow(*arrays(sums, 3), low, high, queue, queued, 9, 1, least, most)
        assert (low.tolist(), high.tolist()) == tuple(a.tolist() for a in given)
    # A cell in no sum has no value left.
    low, high = np.array([5, 0, 0, 1]), np.array([9, 9, 9, 3])
    queue, queued = np.zeros(1, np.int64), np.zeros(1, bool)
    assert not narrow(*arrays(sums, 4), low, high, queue, queued, 9, 3, 4, 5)
    low, high = np.array([5, 0, 0, 1]), np.array([9, 9, 9, 3])
    assert narrow(*arrays(sums, 4), low, high, queue, queued, 9, 3, 3, 5)
    assert (low[3], high[3]) == (3, 3)


def test_settled_cells_are_checked_against_every_sum():
    def checked(sums, low, high):
        rows = len(sums)
        own = low.copy(), high.copy()
        queue, queued = np.zeros(rows, np.int64), np.zeros(rows, bool)
        return bool(_settle(*arrays(sums, low.size), *own, queue, queued))

    rng = np.random.default_rng(2)
    for _ in range(80):
        sums, low, high = random_sums(rng)
        fixed = rng.random(low.size) < 0.6
        high = np.where(fixed, low, high)
        assert checked(sums, low, high) == (settled(sums, low, high) is not None)
    # More sums than any small number of visits, of which one does not add up.
    many = [[3 * k, 3 * k + 1, 3 * k + 2] for k in range(130)]
    values = np.tile([5, 2, 3], 130)
    assert checked(many, values, values)
    for wrong in (0, 64, 129):
        other = values.copy()
        other[3 * wrong] = 6
        assert not checked(many, other, other)


# Dives


def dived(margins, low, high, *, visits, nodes=10**6, depth=40, guide=None, lean=1):
    """The outcome of a dive between bounds of the inner cells, with hardly any narrowing on the way.

    The sums to which the guide is fitted are ``lean`` times too large, which misleads it.
    """
    lattice = Lattice.of(margins, detail=Detail.SINGLES, visits=0)
    least, most = lattice.low.copy(), lattice.high.copy()
    least[lattice.inner] = np.maximum(least[lattice.inner], low)
    most[lattice.inner] = np.minimum(most[lattice.inner], high)
    inside = _CubeSearch(margins, None, PURE, Clock.start(PURE))
    fitted_to = inside.released[2] * lean
    fitted_to.setflags(write=False)  # as in a search, so that nothing is compiled again
    rows, width = lattice.indptr.size - 1, least.size
    outcome, used = dive(
        *lattice.sums,
        least,
        most,
        np.zeros(rows, np.int64),
        np.zeros(rows, bool),
        visits,
        *inside.released[:2],
        fitted_to,
        lattice.inner,
        _fitted(margins, np.ones(low.size, int)) if guide is None else guide.astype(float),
        nodes,
        np.full((depth + 2, width), -99),
        np.full((depth + 2, width), -99),
        np.full((depth, 3), -99),
    )
    return outcome, used, least[lattice.inner], most[lattice.inner]


DIVES = [((2, 3), [(0,), (1,)], 5), ((2, 2, 2), PAIRS, 6), ((2, 2, 2), [(0, 1), (2,)], 4)]


@pytest.mark.parametrize("case", range(len(DIVES)))
@pytest.mark.parametrize("visits", [0, 1, 1000])
def test_a_dive_finds_a_table_exactly_where_there_is_one(case, visits):
    shape, generators, people = DIVES[case]
    rng = np.random.default_rng(case)
    outcomes, most_used = [], 0
    for seed in range(12):
        table = drawn(shape, people, seed)
        margins = Margins.of_table(table, generators)
        every = fitting(table, generators).reshape(-1, table.size)
        one = every[rng.integers(len(every))]
        low = np.maximum(one - rng.integers(0, 2, table.size), 0)
        high = low + rng.integers(0, 3, table.size)
        inside = every[((low <= every) & (every <= high)).all(axis=1)]
        guide = rng.integers(-1, 4, table.size)
        outcome, used, least, most = dived(margins, low, high, visits=visits, guide=guide)
        outcomes.append(outcome)
        assert outcome == (FOUND if len(inside) else NO_TABLE)
        if outcome == FOUND:
            assert least.tolist() == most.tolist()
            assert least.tolist() in inside.tolist()
        # A guide that is always too low, or too high, leads astray and changes no outcome.
        for lean in (0, 50):
            astray, _, *ends = dived(margins, low, high, visits=visits, guide=guide, lean=lean)
            assert astray == outcome
            assert astray == NO_TABLE or ends[0].tolist() in inside.tolist()
        if used:
            again = dived(margins, low, high, visits=visits, guide=guide, nodes=used)
            assert again[:2] == (outcome, used)
            short = dived(margins, low, high, visits=visits, guide=guide, nodes=used - 1)
            assert short[:2] == (CUT, used - 1)
        most_used = max(used, most_used)
    assert {FOUND, NO_TABLE} == set(outcomes)
    if visits < 2:
        assert most_used > 3


def test_a_dive_that_is_too_deep_is_cut_short():
    table = np.array([[3, 1, 2], [0, 2, 4]])
    margins = Margins.of_table(table, [(0,), (1,)])
    low, high = np.zeros(6, int), np.full(6, 6)
    depths = [dived(margins, low, high, visits=0, depth=d)[:2] for d in range(12)]
    found = [d for d, (outcome, _) in enumerate(depths) if outcome == FOUND]
    assert found == list(range(found[0], 12))
    assert found[0] == 6
    assert [o for o, _ in depths[: found[0]]] == [CUT] * 6
    assert [used for _, used in depths[:4]] == [0, 1, 2, 3]


# Plain shuttle, lattice and clock


def plain_shuttle(margins, rounds):
    """The formulas of the shuttle, cell by cell."""
    shape = margins.shape
    cells = list(np.ndindex(*shape))
    low, high = dict.fromkeys(cells, 0), dict.fromkeys(cells, margins.total)
    for _ in range(rounds):
        for g in margins.generators:
            sums = margins.margin(g)
            lines: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
            for c in cells:
                lines.setdefault(
                    tuple(c[a] if a in g else 0 for a in range(len(shape))), []
                ).append(c)
            new_low, new_high = dict(low), dict(high)
            for at, line in lines.items():
                for c in line:
                    others = [d for d in line if d != c]
                    new_low[c] = max(low[c], int(sums[at]) - sum(high[d] for d in others))
                    new_high[c] = min(high[c], int(sums[at]) - sum(low[d] for d in others))
            low, high = new_low, new_high
    if any(low[c] > high[c] for c in cells):
        return None
    return [low[c] for c in cells], [high[c] for c in cells]


@pytest.mark.parametrize("rounds", [1, 2, 3, 30])
def test_the_shuttle_goes_on_until_nothing_changes(rounds):
    moved = set()
    for seed in range(8):
        table = drawn((3, 3, 2), 14, seed)
        margins = Margins.of_table(table, PAIRS)
        found = shuttle(margins, rounds=rounds)
        wanted = plain_shuttle(margins, rounds)
        assert (found.low.tolist(), found.high.tolist()) == wanted
        if rounds > 3:
            assert (shuttle(margins).low.tolist(), shuttle(margins).high.tolist()) == wanted
            first = next(r for r in range(9) if plain_shuttle(margins, r) == wanted)
            moved.add(first)
    assert rounds <= 3 or moved == {1, 2}


def test_the_shuttle_goes_on_while_one_side_moves():
    pairs = list(itertools.combinations(range(4), 2))
    for seed in (67, 124, 137):
        margins = Margins.of_table(drawn((2, 2, 2, 2), 20, seed), pairs)
        wanted = plain_shuttle(margins, 12)
        assert plain_shuttle(margins, 1) != wanted == plain_shuttle(margins, 13)
        found = shuttle(margins)
        assert (found.low.tolist(), found.high.tolist()) == wanted


def test_the_shuttle_sees_contradictions_in_any_cell():
    raised = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shown = {"AB": rng.integers(0, 2, (2, 3)), "BC": rng.integers(0, 2, (3, 2))}
        shown["BC"] = shown["BC"] * 0
        for b in range(3):
            shown["BC"][b, rng.integers(2)] = shown["AB"][:, b].sum()
        a, c = shown["AB"].sum(axis=1), shown["BC"].sum(axis=0)
        x = int(rng.integers(max(0, a[0] - c[1]), min(a[0], c[0]) + 1))
        shown["AC"] = [[x, a[0] - x], [c[0] - x, a[1] - c[0] + x]]
        margins = Margins.of({"A": 2, "B": 3, "C": 2}, shown)
        wanted = plain_shuttle(margins, 30)
        if wanted is None:
            raised += 1
            with pytest.raises(ContradictionError):
                shuttle(margins)
            first = next(r for r in range(30) if plain_shuttle(margins, r) is None)
            with pytest.raises(ContradictionError):
                shuttle(margins, rounds=first)
            shuttle(margins, rounds=first - 1)
        else:
            found = shuttle(margins)
            assert (found.low.tolist(), found.high.tolist()) == wanted
    assert 5 < raised < 35


def test_a_cell_without_a_value_is_a_contradiction_before_any_sum():
    for table, within in (
        (np.array([3]), (5, 9)),
        (np.array([[3]]), (0, 2)),
    ):
        margins = Margins.of_table(table, [tuple(range(table.ndim))])
        with pytest.raises(ContradictionError):
            Lattice.of(margins, within)
    two = Margins.of({"A": 2}, {"A": [3, 4]})
    for within in (([4, 0], 9), (0, [9, 3])):
        with pytest.raises(ContradictionError):
            Lattice.of(two, within, visits=0)


def test_the_variable_with_the_most_sets_gives_way_first(monkeypatch):
    def counts(shape, room):
        monkeypatch.setattr(lattice_module, "_ROOM", room)
        return [s.count for s in lattice_module._detailed(shape, Detail.ALL)]

    def room(*sizes_and_details):
        return lattice_module._room([lattice_module.collapses(s, d) for s, d in sizes_and_details])

    ways = [
        ((3, Detail.ALL), (4, Detail.ALL)),
        ((3, Detail.ALL), (4, Detail.OTHERS)),
        ((3, Detail.ALL), (4, Detail.SINGLES)),
    ]
    assert counts((3, 4), room(*ways[0])) == [7, 15]
    assert counts((3, 4), room(*ways[0]) - 1) == [7, 9]
    assert counts((3, 4), room(*ways[1]) - 1) == [7, 5]
    assert counts((3, 4), room(*ways[2]) - 1) == [4, 5]
    assert counts((3, 9), 0) == [4, 10]


def test_a_clock_ends_when_its_time_has_come(monkeypatch):
    now = SimpleNamespace(monotonic=lambda: 100.0)
    monkeypatch.setattr(effort_module, "time", now)
    clock = Clock.start(Effort(seconds=2.0))
    for time, over in ((100.0, False), (101.5, False), (102.0, True), (103.0, True)):
        now.monotonic = lambda time=time: time
        assert clock.over == over
        assert clock.seconds == 102.0 - time
