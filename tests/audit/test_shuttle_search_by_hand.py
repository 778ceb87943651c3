"""The shuttle's search where narrowing alone is not enough, beside all tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from audit.test_closed_by_hand import drawn, fitting
from audit.test_shuttle_loops_by_hand import dived
from lustrum.audit import ContradictionError
from lustrum.audit.closed import Margins
from lustrum.audit.shuttle import Detail, Effort
from lustrum.audit.shuttle import effort as effort_module
from lustrum.audit.shuttle.effort import Clock
from lustrum.audit.shuttle.lattice import Lattice
from lustrum.audit.shuttle.search import _CubeSearch, _fitted
from lustrum.numeric.solve import Optimum, Outcome

PURE = Effort(solver=None)
PAIRS = [(0, 1), (0, 2), (1, 2)]


# The search from bounds that are far too wide


def wide_search(table, generators, effort=PURE, visits=0, box=None):
    """A search that knows no more than that cells lie between nothing and everybody."""
    margins = Margins.of_table(table, generators)
    inside = _CubeSearch(margins, box, effort, Clock.start(effort))
    inside.lattice = Lattice.of(margins, box, detail=Detail.SINGLES, visits=0)
    inside.cells = inside.lattice.inner
    inside.visits = visits
    width = inside.lattice.low.size
    inside.saved_low = np.empty((64, width), np.int64)
    inside.saved_high = np.empty((64, width), np.int64)
    inside.problem = inside._problem()
    return inside


WIDE = [
    # (shape, margins, people, visits)
    ((2, 2), [(0,), (1,)], 5, 0),
    ((2, 3), [(0,), (1,)], 6, 4),
    ((2, 2, 2), PAIRS, 8, 8),
    ((3, 2), [(0,)], 4, 1),
]


@pytest.mark.parametrize("case", range(len(WIDE)))
def test_each_bound_moves_to_where_a_table_is(case):
    shape, generators, people, visits = WIDE[case]
    table = drawn(shape, people, 3 + case)
    every = fitting(table, generators).reshape(-1, table.size)
    guide = _fitted(Margins.of_table(table, generators), np.ones(table.size, int))
    for cell, sign in itertools.product(range(table.size), (1, -1)):
        inside = wide_search(table, generators, visits=visits)
        assert inside.low.tolist() == [0] * table.size
        assert inside.high.tolist() == [people] * table.size
        assert inside._reach(cell, sign, guide, 10**6)
        assert case == 2 or inside.clock.nodes < PURE.nodes
        if sign > 0:
            assert inside.least[cell] == inside.low[cell] == every[:, cell].min()
        else:
            assert inside.most[cell] == inside.high[cell] == every[:, cell].max()
        # What was met on the way are tables, and no bound cuts one off.
        assert (inside.low <= every.min(axis=0)).all()
        assert (inside.high >= every.max(axis=0)).all()
        assert (inside.least >= every.min(axis=0)).all()
        assert (inside.most <= every.max(axis=0)).all()
        # A bound that is reached is left alone.
        left = inside.clock.nodes
        assert inside._reach(cell, sign, guide, 10**6)
        assert inside.clock.nodes == left


def test_a_search_that_is_cut_short_says_so_and_moves_nothing():
    table = drawn((2, 3), 6, 3)
    guide = _fitted(Margins.of_table(table, [(0,), (1,)]), np.ones(6, int))
    inside = wide_search(table, [(0,), (1,)])
    assert not inside._reach(0, 1, guide, 2)
    assert inside.clock.nodes == PURE.nodes - 2
    assert (inside.low.tolist(), inside.most.tolist()) == ([0] * 6, [-1] * 6)
    # The nodes of the clock limit a dive too, and an empty clock ends the search.
    inside.clock.nodes = 3
    assert not inside._reach(0, 1, guide, 1000)
    assert inside.clock.nodes == 0
    assert not inside._reach(0, 1, guide, 1000)
    assert (inside.low.tolist(), inside.most.tolist()) == ([0] * 6, [-1] * 6)

    inside = wide_search(table, [(0,), (1,)])
    inside.clock.end = effort_module.time.monotonic() - 1
    assert not inside._reach(0, 1, guide, 1000)
    assert inside.clock.nodes == PURE.nodes


def test_a_search_whose_dives_are_too_short_makes_them_longer():
    table = np.array([[2, 1], [1, 3]])
    every = fitting(table, [(0,), (1,)]).reshape(-1, 4)
    inside = wide_search(table, [(0,), (1,)], Effort(dive=1, solver=None))
    found = inside.run()
    assert found.low.tolist() == every.min(axis=0).tolist()
    assert found.high.tolist() == every.max(axis=0).tolist()
    assert found.sharp.all()


def test_a_range_that_is_too_wide_for_a_dive_is_tried_value_by_value():
    table = np.array([[4, 0], [0, 1]])
    margins = Margins.of_table(table, [(0,), (1,)])
    guide = _fitted(margins, np.ones(4, int))
    # Cell 0 is at least 3: of 0, 1, 2 and 3 alone a dive needs so many nodes at most.
    alone = []
    for value in range(4):
        low, high = np.zeros(4, int), np.full(4, 5)
        low[0] = high[0] = value
        alone.append(dived(margins, low, high, visits=0, guide=guide)[1])
    both = np.zeros(4, int), np.array([2, 5, 5, 5])
    both[0][0] = 1
    assert dived(margins, *both, visits=0, guide=guide)[1] > max(alone)
    inside = wide_search(table, [(0,), (1,)])
    assert inside._reach(0, 1, guide, max(alone))
    assert inside.least[0] == inside.low[0] == 3
    assert not wide_search(table, [(0,), (1,)])._reach(0, 1, guide, max(alone) - 1)


def test_open_bounds_are_named_by_cell_and_side():
    table = np.array([[3, 1], [0, 2]])
    inside = wide_search(table, [(0,), (1,)])
    both = {(c, s) for c in range(4) for s in (1, -1)}
    assert set(inside._open()) == both
    assert len(list(inside._open())) == 8
    inside._meet(table.ravel())
    assert set(inside._open()) == both - {(2, 1)}
    inside.lattice.high[inside.cells[0]] = 3
    assert set(inside._open()) == both - {(2, 1), (0, -1)}


# What is asked of a solver


class Scripted:
    """A solver that notes what it is asked and gives answers that are written down."""

    def __init__(self, *answers):
        self.answers, self.problems, self.asked = list(answers), [], []

    def load(self, problem):
        self.problems.append(problem)
        return self

    def minimise(self, cost, **how):
        self.asked.append((cost, how))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


NOTHING = Optimum(Outcome.CUT_SHORT, -np.inf)


@pytest.mark.parametrize("whole", [False, True])
def test_every_open_bound_is_asked_for_once(whole):
    table = np.array([[3, 1], [0, 2]])
    inside = wide_search(table, [(0,), (1,)])
    inside.clock.end = effort_module.time.monotonic() + 1000
    inside.lattice.low[inside.cells] = [1, 0, 0, 2]
    inside._meet(table.ravel())
    solver = Scripted(NOTHING)
    inside._ask_all(solver, whole=whole)
    asked = []
    for cost, how in solver.asked:
        (cell,) = np.flatnonzero(cost)
        sign = int(cost[cell])
        asked.append((int(cell), sign))
        end = inside.low[cell] if sign > 0 else -inside.high[cell]
        assert how["target"] == (end if whole else None)
        assert how["whole"] == whole
        assert 900 < how["seconds"] <= 1000
    assert asked == [(0, 1), (0, -1), (1, 1), (1, -1), (2, -1), (3, -1)]


def narrow_search(table):
    """Bounds as narrow as sums make them, so that only a solver can say more."""
    inside = wide_search(table, [(0,), (1,)], visits=50)
    for cell, (low, high) in enumerate([(1, 3), (1, 3), (0, 2), (0, 2)]):
        at = int(inside.cells[cell])
        assert inside._narrow(inside.lattice.low, inside.lattice.high, at, low, high)
    assert (inside.low.tolist(), inside.high.tolist()) == ([1, 1, 0, 0], [3, 3, 2, 2])
    return inside


def test_vertices_are_sought_with_a_cell_at_its_bound():
    table = np.array([[3, 1], [0, 2]])
    every = fitting(table, [(0,), (1,)]).reshape(-1, 4)
    # Rows of 4 and 2, columns of 3 and 3: where a cell at its bound leaves no table, the bound moves by 1.
    inside = wide_search(table, [(0,), (1,)], visits=50)
    inside._try_vertices(Scripted(NOTHING))
    assert (inside.low.tolist(), inside.high.tolist()) == ([1, 1, 0, 0], [3, 3, 2, 2])
    solver = Scripted(NOTHING)
    inside = narrow_search(table)
    inside.clock.end = effort_module.time.monotonic() + 1000
    inside._try_vertices(solver)
    bounds = list(itertools.product(range(4), (np.min, np.max)))
    assert len(solver.problems) == len(bounds) == 8
    for problem, (cell, end) in zip(solver.problems, bounds, strict=True):
        # One cell at its bound leaves one table.
        (only,) = every[every[:, cell] == end(every[:, cell])].tolist()
        assert problem.low.tolist() == problem.high.tolist() == only
        assert problem.matrix.shape == (4, 4)
    assert len(solver.asked) == 12 * 8
    for cost, how in solver.asked:
        assert np.isfinite(cost).all()
        assert np.abs(cost).max() <= 8
        assert len(how) == 1
        assert 900 < how["seconds"] <= 1000
    # Random costs differ from question to question and from cell to cell.
    assert len({tuple(c) for c, _ in solver.asked}) > 80
    assert all(len(set(c.tolist())) > 1 for c, _ in solver.asked[:5])


def test_vertices_are_sought_among_all_tables_with_the_bound():
    table = np.array([[3, 1, 1], [0, 2, 2]])
    every = fitting(table, [(0,), (1,)]).reshape(-1, 6)
    inside = wide_search(table, [(0,), (1,)], visits=50)
    guide = _fitted(inside.margins, np.ones(6, int))
    for cell, sign in itertools.product(range(6), (1, -1)):
        assert inside._reach(cell, sign, guide, 10**6)
    inside.least[:], inside.most[:] = 99, -1
    solver = Scripted(NOTHING)
    inside._try_vertices(solver)
    bounds = list(itertools.product(range(6), (np.min, np.max)))
    assert len(solver.problems) == len(bounds)
    for problem, (cell, end) in zip(solver.problems, bounds, strict=True):
        value = end(every[:, cell])
        left = every[every[:, cell] == value]
        assert problem.low[cell] == problem.high[cell] == value
        assert (problem.low <= left.min(axis=0)).all()
        assert (problem.high >= left.max(axis=0)).all()
        assert (problem.high <= np.where(np.arange(6) == cell, value, inside.high)).all()
    assert any((p.low < p.high).any() for p in solver.problems)


def test_a_vertex_that_is_a_table_counts_and_ends_the_question():
    table = np.array([[3, 1], [0, 2]])
    solver = Scripted(
        Optimum(Outcome.OPTIMAL, 0.0, np.array([2.5, 1.5, 0.5, 1.5])),
        Optimum(Outcome.OPTIMAL, 0.0, np.array([1.0, 3.0, 2.0, 0.0])),
        NOTHING,
    )
    inside = narrow_search(table)
    inside._try_vertices(solver)
    assert inside.least.tolist() == inside.most.tolist() == [1, 3, 2, 0]
    # The first bound takes two answers; four bounds are left, of which nothing is learnt.
    assert len(solver.problems) == 5
    assert len(solver.asked) == 2 + 4 * 12


def test_a_bound_without_a_vertex_moves_by_one():
    table = np.array([[3, 1], [0, 2]])
    impossible = Optimum(Outcome.INFEASIBLE, np.inf)
    inside = narrow_search(table)
    solver = Scripted(impossible, NOTHING)
    inside._try_vertices(solver)
    # Cell 0 is not 1, so cell 1 is at most 2, cell 2 at most 1 and cell 3 at least 1.
    assert (inside.low.tolist(), inside.high.tolist()) == ([2, 1, 0, 1], [3, 2, 1, 2])
    assert len(solver.asked) == 1 + 12 * (len(solver.problems) - 1)
    inside = narrow_search(table)
    inside._try_vertices(Scripted(*[NOTHING] * 12, impossible, NOTHING))
    assert (inside.low.tolist(), inside.high.tolist()) == ([1, 2, 1, 0], [2, 3, 2, 1])
    with pytest.raises(ContradictionError):
        narrow_search(table)._try_vertices(Scripted(impossible))
    # The clock ends the questions at once.
    inside, over = narrow_search(table), Scripted(NOTHING)
    inside.clock.nodes = 0
    inside._try_vertices(over)
    assert over.asked == []
    inside.clock.nodes = 1
    answer = over.minimise

    def once(cost, **how):
        inside.clock.nodes = 0
        return answer(cost, **how)

    over.minimise = once
    inside._try_vertices(over)
    assert len(over.asked) == 1


def test_points_near_a_table_count_by_the_size_of_its_cells():
    table = np.array([[3000, 1], [0, 2]])
    for offset, counts in (
        ([0, 0, 0, 0], True),
        ([2e-3, 0, 0, 0], True),
        ([4e-3, 0, 0, 0], False),
        ([0, 0, 1.5e-6, 0], False),
        ([0, 0, 0.5e-6, 0], True),
        ([0.4, 0, 0, 0], False),
    ):
        inside = wide_search(table, [(0,), (1,)])
        inside._meet_point(table.ravel() + np.array(offset))
        assert (inside.most.tolist() == table.ravel().tolist()) == counts


def test_a_table_counts_only_with_every_margin():
    table = np.array([[[1, 1], [1, 1]], [[1, 1], [1, 1]]])
    for axis in range(3):
        inside = wide_search(table, PAIRS)
        other = np.moveaxis(table.copy(), axis, 0)
        other[:, 0, 0] += (1, -1)
        inside._meet(table.ravel())
        before = inside.most.tolist()
        inside._meet(np.moveaxis(other, 0, axis).ravel())
        assert inside.most.tolist() == before


def test_a_central_table_has_margins_of_single_people_too():
    table = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1]])
    margins = Margins.of_table(table, [(0,), (1,)])
    fitted = _fitted(margins, np.ones(9, int), rounds=60).reshape(3, 3)
    assert fitted.sum(axis=0) == pytest.approx([1, 1, 2])
    assert fitted.sum(axis=1) == pytest.approx([1, 2, 1])
    assert fitted[0, 0] == pytest.approx(0.25)
