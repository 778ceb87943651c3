"""The shuttle and its search on fixed small cubes, with every table that has the margins as the truth."""

from __future__ import annotations

import importlib
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from audit.test_closed_by_hand import drawn, fitting
from lustrum.audit import ContradictionError
from lustrum.audit.closed import Margins
from lustrum.audit.shuttle import Detail, Effort, generalised, sharp_bounds, shuttle
from lustrum.audit.shuttle import lattice as lattice_module
from lustrum.audit.shuttle.effort import Clock
from lustrum.audit.shuttle.kernels import CUT, FOUND, NO_TABLE, dive, drain, narrow, refit
from lustrum.audit.shuttle.lattice import Lattice, collapses
from lustrum.audit.shuttle.search import _box, _CubeSearch, _fitted
from lustrum.model import InputError
from lustrum.numeric.solve import Outcome

PURE = Effort(solver=None)
PAIRS = [(0, 1), (0, 2), (1, 2)]
CASES = [
    ((2, 3, 2), 5, PAIRS),
    ((3, 2, 2), 5, [(0, 1), (2,)]),
    ((2, 2, 2), 6, PAIRS),
    ((2, 2, 2, 2), 4, [(0, 1), (1, 2), (2, 3), (0, 3)]),
    ((3, 3), 6, [(0,), (1,)]),
    ((3, 3), 6, [(0,)]),
    ((1, 3, 2), 5, [(1,), (2,)]),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("seed", range(2))
def test_every_bound_holds_and_the_search_reaches_it(case, seed):
    shape, people, generators = CASES[case]
    table = drawn(shape, people, 20 * case + seed)
    margins = Margins.of_table(table, generators)
    every = fitting(table, generators)
    least, most = every.min(axis=0).ravel(), every.max(axis=0).ravel()
    outer = [shuttle(margins), *(generalised(margins, detail=d) for d in Detail)]
    for found in outer:
        assert (found.low <= least).all()
        assert (found.high >= most).all()
        assert found.sharp.tolist() == (found.low == found.high).tolist()
    for wide, tight in itertools.pairwise(outer):
        assert (wide.low <= tight.low).all()
        assert (wide.high >= tight.high).all()
    for effort in (None, PURE, Effort(dive=1)):
        found = sharp_bounds(margins, effort=effort)
        assert found.low.tolist() == least.tolist()
        assert found.high.tolist() == most.tolist()
        assert found.sharp.all()


@pytest.mark.parametrize("seed", range(3))
def test_cells_bounded_beforehand_narrow_the_others(seed):
    generators = PAIRS
    table = drawn((2, 3, 2), 5, seed)
    margins = Margins.of_table(table, generators)
    low, high = np.maximum(table - 1, 0), table + 1
    every = fitting(table, generators)
    inside = every[((every >= low) & (every <= high)).reshape(len(every), -1).all(axis=1)]
    least, most = inside.min(axis=0).ravel(), inside.max(axis=0).ravel()
    for effort in (None, PURE):
        found = sharp_bounds(margins, (low, high), effort=effort)
        assert found.low.tolist() == least.tolist()
        assert found.high.tolist() == most.tolist()
    wide = generalised(margins, (low, high))
    assert (wide.low <= least).all()
    assert (wide.high >= most).all()
    assert (wide.low >= low.ravel()).all()
    assert (wide.high <= high.ravel()).all()


def test_one_step_of_the_shuttle_by_hand():
    # Rows of 5 and 3, columns of 6 and 2.
    margins = Margins.of({"A": 2, "B": 2}, {"A": [5, 3], "B": [6, 2]})
    found = shuttle(margins)
    assert found.low.tolist() == [3, 0, 1, 0]
    assert found.high.tolist() == [5, 2, 3, 2]
    none = shuttle(margins, rounds=0)
    assert none.low.tolist() == [0] * 4
    assert none.high.tolist() == [8] * 4
    one = shuttle(Margins.of({"A": 2}, {"A": [5, 3]}))
    assert one.low.tolist() == one.high.tolist() == [5, 3]
    assert one.sharp.all()


def test_bounds_given_beforehand_are_cut_to_what_can_be():
    margins = Margins.of({"A": 2, "B": 2}, {"A": [5, 3], "B": [6, 2]})
    assert _box(margins, None) is None
    low, high = _box(margins, (-3, np.inf))
    assert (low.tolist(), high.tolist()) == ([[0, 0], [0, 0]], [[8, 8], [8, 8]])
    low, high = _box(margins, ([1, 2, 0, 0], [[9, 4], [1, 1]]))
    assert (low.tolist(), high.tolist()) == ([[1, 2], [0, 0]], [[8, 4], [1, 1]])
    for wrong in (([0, 0], 9), (0, [1, 2, 3])):
        with pytest.raises(InputError, match="shape"):
            _box(margins, wrong)
    with pytest.raises(InputError, match="whole numbers"):
        sharp_bounds(Margins.of({"A": 2}, {"A": [1, 2]}, whole=False))


@pytest.mark.parametrize("detail", list(Detail))
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_sets_of_categories_and_all_their_sums(size, detail):
    sets = collapses(size, detail)
    held = {tuple(row) for row in sets.holds.tolist()}
    assert len(held) == sets.count
    wanted = {
        Detail.SINGLES: {1, size},
        Detail.OTHERS: {1, size - 1, size},
        Detail.ALL: set(range(1, size + 1)),
    }[detail]
    every = itertools.product((0, 1), repeat=size)
    assert held == {row for row in every if sum(row) in wanted and any(row)}
    assert sets.holds[-1].tolist() == [1] * size
    assert sets.holds[sets.single].tolist() == np.eye(size, dtype=int).tolist()
    for union, *members in sets.sums:
        assert sets.holds[members].sum(axis=0).tolist() == sets.holds[union].tolist()
    said = [(u, *sorted(m)) for u, *m in sets.sums]
    assert len(set(said)) == len(said)
    if detail is Detail.ALL and size > 2:
        # Every set of two or more categories, split in two in every way.
        assert len(said) == sum(2 ** (sum(row) - 1) - 1 for row in held)
    elif size > 1 and detail is not Detail.ALL:
        assert len(said) == (1 if size == 2 or detail is Detail.SINGLES else 1 + 2 * size)


def test_a_lattice_knows_sums_of_what_was_released():
    table = drawn((2, 3), 6, 1)
    lattice = Lattice.of(Margins.of_table(table, [(0,), (1,)]), visits=0)
    sets = [collapses(2, Detail.ALL), collapses(3, Detail.ALL)]
    low = lattice.low.reshape(3, 7)
    high = lattice.high.reshape(3, 7)
    for i, own in enumerate(sets[1].holds):
        assert low[-1, i] == high[-1, i] == table.sum(axis=0) @ own
    for i, own in enumerate(sets[0].holds):
        assert low[i, -1] == high[i, -1] == table.sum(axis=1) @ own
    assert not low[:2, :6].any()
    assert (high[:2, :6] == 6).all()
    # Without narrowing nothing else is known; every sum adds up for the table itself.
    whole = np.einsum("ia,jb,ab->ij", sets[0].holds, sets[1].holds, table).ravel()
    for row in range(lattice.indptr.size - 1):
        total, *parts = lattice.items[lattice.indptr[row] : lattice.indptr[row + 1]].tolist()
        assert whole[total] == whole[parts].sum()
    assert lattice.indptr.size - 1 == 1 * 7 + 6 * 3
    assert whole[lattice.inner].tolist() == table.ravel().tolist()
    for cell in range(lattice.low.size):
        users = lattice.users[lattice.user_ptr[cell] : lattice.user_ptr[cell + 1]].tolist()
        rows = np.searchsorted(lattice.indptr, np.flatnonzero(lattice.items == cell), side="right")
        assert sorted(users) == sorted((rows - 1).tolist())
    assert repr(lattice) == "Lattice(21 cells, 25 sums)"


def test_variables_with_many_categories_are_collapsed_in_less_detail(monkeypatch):
    def counts(shape, room, detail=Detail.ALL):
        monkeypatch.setattr(lattice_module, "_ROOM", room)
        return [s.count for s in lattice_module._detailed(shape, detail)]

    assert counts((5, 6, 2), 10**9) == [31, 13, 3]
    assert counts((5, 6, 2), 10**9, Detail.OTHERS) == [11, 13, 3]
    assert counts((5, 6, 2), 10**9, Detail.SINGLES) == [6, 7, 3]
    # The room is how many cells all sums have: seven sets crossed with six splits in two, both ways.
    sets = [collapses(3, Detail.ALL)] * 2
    size = lattice_module._room(sets)
    assert size == 2 * 7 * 6 * 3
    assert counts((3, 3), size) == [7, 7]
    assert counts((3, 3), size - 1) == [4, 7]
    assert counts((3, 3), 0) == [4, 4]


def test_contradictions_are_reported_at_once():
    one = Margins.of({"A": 2}, {"A": [1, 2]})
    for within in (([2, 0], [2, 2]), ([0, 0], [0, 2])):
        for method in (generalised, sharp_bounds):
            with pytest.raises(ContradictionError, match="contradict"):
                method(one, within)
    two = Margins.of({"A": 2, "B": 2}, {"A": [5, 3], "B": [6, 2]})
    for method in (generalised, sharp_bounds):
        with pytest.raises(ContradictionError, match="contradict"):
            method(two, (0, 2))
    shown = {"AB": [[1, 0, 0], [0, 1, 0]], "BC": [[1, 0], [0, 1], [0, 0]], "AC": [[0, 1], [1, 0]]}
    with pytest.raises(ContradictionError, match="contradict"):
        shuttle(Margins.of({"A": 2, "B": 3, "C": 2}, shown))


# The parts of the search


def search(effort=PURE, box=None):
    table = np.array([[[1, 0], [0, 2], [1, 1]], [[0, 1], [1, 0], [0, 1]]])
    margins = Margins.of_table(table, PAIRS)
    return table, _CubeSearch(margins, box, effort, Clock.start(effort))


def test_only_tables_with_all_margins_count():
    table, inside = search()
    inside._meet(table.ravel())
    assert inside.least.tolist() == inside.most.tolist() == table.ravel().tolist()
    before = inside.least.copy(), inside.most.copy()
    wrong = table.copy()
    wrong[0, 0] += (1, -1)
    far = table.copy()
    far[0, 0, 0] += 1
    for other in (wrong, far):
        inside._meet(other.ravel())
    assert (inside.least.tolist(), inside.most.tolist()) == tuple(b.tolist() for b in before)
    # A step that keeps all pairs may leave a cell below 0.
    step = np.array([[[1, -1], [-1, 1], [0, 0]], [[-1, 1], [1, -1], [0, 0]]])
    inside._meet((table + step).ravel())
    assert inside.least.tolist() == before[0].tolist()
    boxed_table, boxed = search(box=(np.zeros((2, 3, 2), int), table + 0))
    boxed._meet(boxed_table.ravel())
    assert boxed.most.tolist() == boxed_table.ravel().tolist()
    other = next(t for t in fitting(table, PAIRS) if (t != table).any())
    boxed._meet(other.ravel())
    assert boxed.most.tolist() == boxed_table.ravel().tolist()
    inside._meet(other.ravel())
    assert inside.least.tolist() == np.minimum(table, other).ravel().tolist()
    assert inside.most.tolist() == np.maximum(table, other).ravel().tolist()


def test_a_cell_is_sharp_only_where_both_ends_were_met():
    effort = Effort(nodes=0, solver=None)
    table, inside = search(effort)
    inside._meet(table.ravel())
    found = inside.run()
    low, high = inside.low, inside.high
    assert (found.low.tolist(), found.high.tolist()) == (low.tolist(), high.tolist())
    at_low, at_high = table.ravel() <= low, table.ravel() >= high
    assert found.sharp.tolist() == (at_low & at_high).tolist()
    # The table meets one end of some cells and not the other.
    assert (at_low & ~at_high).any()
    assert (~at_low & at_high).any()


@pytest.mark.parametrize("seed", range(3))
def test_each_way_of_searching_keeps_all_tables(seed):
    table = drawn((2, 3, 2), 5, seed)
    margins = Margins.of_table(table, PAIRS)
    every = fitting(table, PAIRS).reshape(-1, 12)
    least, most = every.min(axis=0), every.max(axis=0)
    effort = Effort()
    for way in ("vertices", "programs", "whole programs", "dives"):
        inside = _CubeSearch(margins, None, effort, Clock.start(effort))
        if way == "vertices":
            inside._try_vertices(effort.solver)
        elif way == "dives":
            inside._dive_all(100)
        else:
            inside._ask_all(effort.solver.load(inside.problem), whole=way == "whole programs")
        assert (inside.low <= least).all()
        assert (inside.high >= most).all()
        # What counts as met was met by some table.
        assert all(v in every[:, c] for c, v in enumerate(inside.most) if v >= 0)
        assert all(v in every[:, c] for c, v in enumerate(inside.least) if inside.most[c] >= 0)
        if way in ("whole programs", "dives"):
            assert inside.least.tolist() == inside.low.tolist() == least.tolist()
            assert inside.most.tolist() == inside.high.tolist() == most.tolist()


def test_the_detail_that_is_asked_for_is_used(monkeypatch):
    module = importlib.import_module("lustrum.audit.shuttle.search")
    plain, asked = Lattice.of, []

    def noted(margins, within=None, *, detail=Detail.ALL):
        asked.append(detail)
        return plain(margins, within, detail=detail)

    monkeypatch.setattr(module.Lattice, "of", noted)
    margins = Margins.of({"A": 2, "B": 2}, {"A": [5, 3], "B": [6, 2]})
    for detail in Detail:
        generalised(margins, detail=detail)
    assert asked == list(Detail)


def test_points_of_a_solver_count_where_they_are_whole():
    table, inside = search()
    inside._meet_point(table.ravel() + 0.4)
    assert inside.most.max() == -1
    inside._meet_point(table.ravel() + 1e-5)
    assert inside.most.max() == -1
    inside._meet_point(table.ravel() + 1e-7)
    assert inside.most.tolist() == table.ravel().tolist()


def optimum(bound, point=None, outcome=Outcome.OPTIMAL):
    return SimpleNamespace(outcome=outcome, bound=bound, point=point)


def test_answers_of_a_solver_move_bounds_to_whole_numbers():
    table, inside = search()
    every = fitting(table, PAIRS)
    assert inside.low.tolist() <= every.min(axis=0).ravel().tolist()
    cell = int(np.argmax(inside.high - inside.low))
    low, high = int(inside.low[cell]), int(inside.high[cell])
    assert high > low
    inside._learn(cell, 1, optimum(-np.inf))
    assert (inside.low[cell], inside.high[cell]) == (low, high)
    # A least value of a little more than the bound is the next whole number, unless it is a rounding error.
    inside._learn(cell, 1, optimum(low + 1e-9))
    assert inside.low[cell] == low
    inside._learn(cell, -1, optimum(-high + 0.5))
    assert inside.high[cell] == high - 1
    with pytest.raises(ContradictionError):
        inside._learn(cell, 1, optimum(0.0, outcome=Outcome.INFEASIBLE))
    fresh = search()[1]
    fresh._learn(cell, 1, optimum(low + 0.1))
    assert fresh.low[cell] == low + 1
    # A lower bound never moves back.
    fresh._learn(cell, 1, optimum(low - 3.0))
    assert fresh.low[cell] == low + 1
    with pytest.raises(ContradictionError):
        fresh._move(cell, 1, high + 1)
    reached = search()[1]
    reached._learn(cell, 1, optimum(low + 0.0, point=table.ravel().astype(float)))
    assert reached.most.tolist() == table.ravel().tolist()


def test_open_bounds_are_those_that_no_table_reaches():
    table, inside = search()
    assert len(list(inside._open())) == 2 * table.size
    for other in fitting(table, PAIRS):
        inside._meet(other.ravel())
    left = set(inside._open())
    least, most = (f(fitting(table, PAIRS), axis=0).ravel() for f in (np.min, np.max))
    assert left == {(c, 1) for c in np.flatnonzero(least > inside.low)} | {
        (c, -1) for c in np.flatnonzero(most < inside.high)
    }
    inside.clock.nodes = 0
    assert list(inside._open()) == []


def test_the_problem_of_a_search_has_a_row_for_each_released_sum():
    table, inside = search()
    problem = inside.problem
    sums = np.concatenate([table.sum(axis=a).ravel() for a in (2, 1, 0)])
    assert (problem.matrix @ table.ravel()).tolist() == sums.tolist()
    assert problem.row_low.tolist() == problem.row_high.tolist() == sums.tolist()
    assert problem.matrix.shape == (6 + 4 + 6, 12)
    assert set(problem.matrix.sum(axis=0).tolist()) == {3}
    assert problem.low.tolist() == inside.low.tolist()
    assert problem.high.tolist() == inside.high.tolist()


def test_a_fitted_table_has_the_margins_and_keeps_empty_cells():
    table, _ = search()
    margins = Margins.of_table(table + 1, PAIRS)
    fitted = _fitted(margins, np.ones(12, dtype=int), rounds=200).reshape(2, 3, 2)
    for axis in range(3):
        assert fitted.sum(axis=axis) == pytest.approx((table + 1).sum(axis=axis), abs=1e-6)
    closed = np.ones(12, dtype=int)
    closed[3] = 0
    assert _fitted(margins, closed).ravel()[3] == 0
    nobody = Margins.of_table(np.zeros((2, 2), int), [(0,), (1,)])
    assert _fitted(nobody, np.zeros(4, int)).tolist() == [0] * 4


def test_an_effort_ends_and_bounds_still_hold():
    for wrong in ({"nodes": -1}, {"dive": 0}, {"seconds": -1.0}):
        with pytest.raises(InputError, match="effort"):
            Effort(**wrong)
    Effort(nodes=0, dive=1, seconds=0.0)
    assert Clock.start(Effort()).seconds is None
    assert not Clock.start(Effort()).over
    assert Clock.start(Effort(nodes=0)).over
    assert not Clock.start(Effort(nodes=1)).over
    assert Clock.start(Effort(seconds=0.0)).over
    assert not Clock.start(Effort(seconds=1000.0)).over
    assert 990 < Clock.start(Effort(seconds=1000.0)).seconds <= 1000
    table = drawn((2, 3, 2), 5, 1)
    margins = Margins.of_table(table, PAIRS)
    every = fitting(table, PAIRS)
    for effort in (Effort(nodes=0), Effort(nodes=1, solver=None), Effort(nodes=3, solver=None)):
        found = sharp_bounds(margins, effort=effort)
        assert (found.low <= every.min(axis=0).ravel()).all()
        assert (found.high >= every.max(axis=0).ravel()).all()
        sharp = found.sharp
        assert found.low[sharp].tolist() == every.min(axis=0).ravel()[sharp].tolist()
        assert found.high[sharp].tolist() == every.max(axis=0).ravel()[sharp].tolist()


# The loops


def one_sum(low, high):
    """A total of two parts, as a sum that the loops take."""
    sums = np.array([0, 3]), np.array([0, 1, 2]), np.array([0, 1, 2, 3]), np.zeros(3, np.int64)
    return *sums, np.array(low), np.array(high), np.zeros(1, np.int64), np.zeros(1, bool)


def test_bounds_pass_along_one_sum():
    def drained(low, high, visits=9, count=1):
        parts = one_sum(low, high)
        fine = bool(drain(*parts, count, visits))
        assert not parts[7].any()
        return parts[4].tolist(), parts[5].tolist(), fine

    # total 10 to 12, parts 3 to 20 and 4 to 5
    assert drained([10, 3, 4], [12, 20, 5]) == ([10, 5, 4], [12, 8, 5], True)
    assert drained([0, 3, 4], [99, 6, 5]) == ([7, 3, 4], [11, 6, 5], True)
    assert drained([10, 3, 4], [12, 4, 5])[2] is False
    # Nothing is done without a visit, or without a sum in the queue.
    assert drained([10, 3, 4], [12, 20, 5], visits=0) == ([10, 3, 4], [12, 20, 5], True)
    assert drained([10, 3, 4], [12, 20, 5], count=0) == ([10, 3, 4], [12, 20, 5], True)


def test_one_cell_is_narrowed_with_what_follows():
    def narrowed(cell, least, most):
        parts = one_sum([10, 0, 0], [10, 10, 10])
        fine = bool(narrow(*parts, 9, cell, least, most))
        return parts[4].tolist(), parts[5].tolist(), fine

    assert narrowed(1, 3, 4) == ([10, 3, 6], [10, 4, 7], True)
    assert narrowed(1, -5, 20) == ([10, 0, 0], [10, 10, 10], True)
    assert narrowed(1, -5, 4) == ([10, 0, 6], [10, 4, 10], True)
    assert narrowed(1, 3, 20) == ([10, 3, 0], [10, 10, 7], True)
    assert narrowed(1, 11, 20)[2] is False
    assert narrowed(1, 5, 4)[2] is False
    assert narrowed(1, 10, 10) == ([10, 10, 0], [10, 10, 0], True)


def dived(table, generators, nodes=1000, box=None, depth=64):
    margins = Margins.of_table(table, generators)
    inside = _CubeSearch(margins, box, PURE, Clock.start(PURE))
    low, high = inside.lattice.low.copy(), inside.lattice.high.copy()
    saved = np.empty((depth, low.size), np.int64), np.empty((depth, low.size), np.int64)
    outcome, used = dive(
        *inside.lattice.sums,
        low,
        high,
        inside.queue,
        inside.queued,
        inside.visits,
        *inside.released,
        inside.cells,
        _fitted(margins, inside.high),
        nodes,
        *saved,
        np.empty((depth, 3), np.int64),
    )
    return outcome, used, low[inside.cells].reshape(table.shape)


def test_a_dive_ends_at_a_table_or_proves_that_there_is_none():
    table = drawn((2, 3, 2), 5, 3)
    outcome, used, found = dived(table, PAIRS)
    assert outcome == FOUND
    assert any((found == other).all() for other in fitting(table, PAIRS))
    if used:
        assert dived(table, PAIRS, nodes=used)[0] == FOUND
        assert dived(table, PAIRS, nodes=used - 1)[0] == CUT
        assert dived(table, PAIRS, depth=0)[0] == CUT
    # Wide sums: many cells have to be fixed one after the other.
    loose = np.array([[3, 1, 2], [0, 2, 4]])
    outcome, used, found = dived(loose, [(0,), (1,)])
    assert (outcome, found.sum(axis=0).tolist()) == (FOUND, loose.sum(axis=0).tolist())
    assert found.sum(axis=1).tolist() == loose.sum(axis=1).tolist()
    assert used >= 1
    assert {FOUND, NO_TABLE, CUT} == {1, 0, -1}


def test_a_guide_is_scaled_to_sums_inside_the_bounds():
    # One sum of 10 over two cells from 2 to 9 and from 0 to 3.
    guide = np.array([50.0, 1.0])
    ends = np.array([2, 0]), np.array([9, 3])
    refit(np.array([0, 2]), np.array([0, 1]), np.array([10.0]), np.arange(2), *ends, guide, 1)
    # 9 and 1: 8 of 8 above the lower ends are wanted.
    assert guide == pytest.approx([9.0, 1.0])
    guide = np.array([5.0, 1.0])
    refit(np.array([0, 2]), np.array([0, 1]), np.array([10.0]), np.arange(2), *ends, guide, 1)
    # 3 and 1 above the ends become 6 and 2.
    assert guide == pytest.approx([8.0, 2.0])
    refit(np.array([0, 2]), np.array([0, 1]), np.array([1.0]), np.arange(2), *ends, guide, 1)
    assert guide == pytest.approx([2.0, 0.0])
    refit(np.array([0, 2]), np.array([0, 1]), np.array([10.0]), np.arange(2), *ends, guide, 0)
    assert guide == pytest.approx([2.001, 0.001])
    # Half a person above the lower ends is scaled to eight, as far as the upper ends allow.
    guide = np.array([2.25, 0.25])
    refit(np.array([0, 2]), np.array([0, 1]), np.array([10.0]), np.arange(2), *ends, guide, 1)
    assert guide == pytest.approx([6.0, 3.0])
