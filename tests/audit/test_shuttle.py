"""The shuttle never cuts off a table, and with its search reaches every bound."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.fibres import QUICK
from audit.test_closed import contains, equals, released, truth
from examples import examples
from lustrum.audit import ContradictionError
from lustrum.audit.closed import Margins, closed_bounds
from lustrum.audit.shuttle import Detail, Effort, generalised, search, sharp_bounds, shuttle
from lustrum.audit.shuttle.kernels import refit
from lustrum.audit.shuttle.lattice import Lattice, collapses
from lustrum.audit.shuttle.search import Clock, _CubeSearch, _fitted
from lustrum.model import InputError
from lustrum.numeric.solve import Highs, Outcome
from lustrum.numeric.structure import Relations, propagate
from lustrum.numeric.structure.ragged import Lists

IJ = [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]]
JK = [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]]
IK = [[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]]
PAPER = Margins.of({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK, "IK": IK})
PURE = Effort(solver=None)


def pairs(k):
    return list(itertools.combinations(range(k), 2))


# CP-SAT and HiGHS ship clashing libraries, so the second solver gets a process of its own.
CP_SAT = """
import json, sys
from ortools.sat.python import cp_model
cells, total, sums = json.load(sys.stdin)
model = cp_model.CpModel()
x = [model.new_int_var(0, total, "") for _ in range(cells)]
for members, value in sums:
    model.add(sum(x[c] for c in members) == value)
found = []
for best in (model.minimize, model.maximize):
    for cell in range(cells):
        best(x[cell])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(model) == cp_model.OPTIMAL
        found.append(round(solver.objective_value))
json.dump([found[:cells], found[cells:]], sys.stdout)
"""


def by_cp_sat(margins):
    """All bounds by another solver, one question at a time."""
    place, sums = np.arange(margins.size).reshape(margins.shape), []
    for g in margins.generators:
        known = margins.margin(g)
        kept = np.moveaxis(place, sorted(g), range(len(g))).reshape(known.size, -1)
        sums += [[c.tolist(), v] for c, v in zip(kept, known.ravel().tolist(), strict=True)]
    asked = json.dumps([margins.size, margins.total, sums])
    command = [sys.executable, "-c", CP_SAT]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout))


@QUICK
@given(released())
def test_shuttles_contain_every_table_and_the_search_reaches_every_bound(case):
    table, generators = case
    margins = Margins.of_table(table, generators)
    least, most, _ = truth(table, generators)
    plain, wide = shuttle(margins), generalised(margins)
    assert contains(plain, least, most)
    assert contains(wide, least, most)
    assert (wide.low >= plain.low).all()
    assert (wide.high <= plain.high).all()
    for effort in (None, PURE):
        found = sharp_bounds(margins, effort=effort)
        assert equals(found, least, most)
        assert found.sharp.all()
    outer = closed_bounds(margins)
    assert (outer.low <= least.ravel()).all()
    assert (outer.high >= most.ravel()).all()
    if outer.sharp.all():
        # Known theorem: for these margins the generalised shuttle needs no search.
        assert equals(wide, least, most)


@QUICK
@given(released(), st.data())
def test_cells_bounded_beforehand_are_searched_together_with_the_margins(case, data):
    table, generators = case
    margins = Margins.of_table(table, generators)
    low = np.maximum(table - data.draw(st.integers(0, 2)), 0)
    high = table + np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=table.size, max_size=table.size))
    ).reshape(table.shape)
    every = truth(table, generators)[2]
    inside = ((every >= low) & (every <= high)).reshape(len(every), -1).all(axis=1)
    least, most = every[inside].min(axis=0), every[inside].max(axis=0)
    for effort in (None, PURE):
        assert equals(sharp_bounds(margins, (low, high), effort=effort), least, most)
    assert contains(generalised(margins, (low, high)), least, most)


@QUICK
@given(released(), st.data())
def test_one_margin_more_never_widens_a_bound(case, data):
    table, generators = case
    more = data.draw(st.sets(st.sampled_from(range(table.ndim))))
    for method in (sharp_bounds, generalised, shuttle):
        before = method(Margins.of_table(table, generators))
        after = method(Margins.of_table(table, [*generators, more]))
        assert (after.low >= before.low).all()
        assert (after.high <= before.high).all()


@pytest.mark.parametrize("effort", [None, PURE])
def test_the_bounds_of_the_published_example_are_reached(effort):
    found = sharp_bounds(PAPER, effort=effort)
    low, high = found.low.reshape(4, 4, 3), found.high.reshape(4, 4, 3)
    assert found.sharp.all()
    assert (low[0, 2, 0], high[0, 2, 0]) == (54, 68)
    assert (low[0, 1, 2], high[0, 1, 2]) == (67, 81)
    assert (low[3, 0, 2], high[3, 0, 2]) == (57, 64)
    assert high[0, 2, 2] == 13  # a linear program says 13.5
    assert by_cp_sat(PAPER) == (found.low.tolist(), found.high.tolist())


@pytest.mark.parametrize(("people", "seed"), [(1.0, 3), (20.0, 4)])
def test_two_to_the_sixth_with_all_pairs_is_sharp_and_agrees_with_another_solver(people, seed):
    table = np.random.default_rng(seed).poisson(people, (2,) * 6)
    margins = Margins.of_table(table, pairs(6))
    found = sharp_bounds(margins)
    assert found.sharp.all()
    if people < 5:
        assert by_cp_sat(margins) == (found.low.tolist(), found.high.tolist())


@settings(deadline=None, max_examples=examples(8, 60))
@given(released(smallest=1))
def test_the_compiled_narrowing_ends_where_the_plain_one_does(case):
    table, generators = case
    margins = Margins.of_table(table, generators)
    lattice = Lattice.of(margins, visits=0)
    weights = np.ones(lattice.items.size, dtype=np.int64)
    weights[lattice.indptr[:-1]] = -1
    relations = Relations.of(Lists(lattice.indptr, lattice.items, weights), lattice.low.size)
    plain = propagate(relations, lattice.low, lattice.high)
    narrowed = Lattice.of(margins)
    assert narrowed.low.tolist() == plain.low.tolist()
    assert narrowed.high.tolist() == plain.high.tolist()


def test_the_compiled_fit_ends_where_the_plain_one_does():
    table = np.random.default_rng(8).poisson(9, (3, 4, 2)) + 1
    margins = Margins.of_table(table, pairs(3))
    inside = _CubeSearch(margins, None, PURE, Clock.start(PURE))
    low = np.zeros_like(inside.lattice.low)
    high = np.full_like(low, margins.total)
    guide = np.ones(table.size)
    refit(inside.released, inside.cells, low, high, guide, 400)
    plain = _fitted(margins, inside.high, rounds=400)
    assert guide == pytest.approx(plain, abs=1e-6)
    assert guide.reshape(table.shape).sum(axis=2) == pytest.approx(table.sum(axis=2), abs=1e-6)


@pytest.mark.parametrize("detail", list(Detail))
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_sums_of_sets_are_unions_without_overlap(size, detail):
    sets = collapses(size, detail)
    assert sets.holds[-1].tolist() == [1] * size
    assert sets.holds[sets.single].tolist() == np.eye(size, dtype=int).tolist()
    for union, *members in sets.sums:
        assert sets.holds[members].sum(axis=0).tolist() == sets.holds[union].tolist()


def test_less_detail_gives_wider_bounds_that_hold():
    found = [generalised(PAPER, detail=d) for d in Detail]
    sharp = sharp_bounds(PAPER)
    for wide, tight in itertools.pairwise([*found, sharp]):
        assert (wide.low <= tight.low).all()
        assert (wide.high >= tight.high).all()


def test_large_variables_are_looked_at_in_less_detail():
    table = np.random.default_rng(2).poisson(2, (30, 12, 6))
    lattice = Lattice.of(Margins.of_table(table, pairs(3)))
    assert lattice.items.size < 500_000
    assert (lattice.low[lattice.inner] <= table.ravel()).all()
    assert (lattice.high[lattice.inner] >= table.ravel()).all()


def test_when_the_effort_is_spent_bounds_hold_and_are_not_called_sharp():
    full = sharp_bounds(PAPER)
    for effort in (Effort(nodes=0), Effort(seconds=0), Effort(nodes=30, solver=None)):
        cut = sharp_bounds(PAPER, effort=effort)
        assert not cut.sharp.all()
        assert (cut.low <= full.low).all()
        assert (cut.high >= full.high).all()
        assert cut.low[cut.sharp].tolist() == full.low[cut.sharp].tolist()
        assert cut.high[cut.sharp].tolist() == full.high[cut.sharp].tolist()


def test_integer_programs_settle_what_neither_vertices_nor_dives_do(monkeypatch):
    monkeypatch.setattr(search, "_SHAKES", 0)
    found, full = sharp_bounds(PAPER, effort=Effort(dive=1)), sharp_bounds(PAPER, effort=PURE)
    assert found.sharp.all()
    assert found.low.tolist() == full.low.tolist()
    assert found.high.tolist() == full.high.tolist()


class Vague:
    """A solver that proves bounds, perhaps weaker ones, and shows the tables that it is allowed to."""

    def __init__(self, points: bool, slack: float) -> None:
        self.points, self.slack = points, slack

    def load(self, problem):
        loaded = Highs().load(problem)

        def minimise(*words, **named):
            found = loaded.minimise(*words, **named)
            if found.outcome is Outcome.INFEASIBLE:
                return found
            point = found.point if self.points else None
            return replace(
                found, point=point, bound=found.bound - self.slack, outcome=Outcome.CUT_SHORT
            )

        return SimpleNamespace(minimise=minimise)


@pytest.mark.parametrize("shakes", [0, 3])
@pytest.mark.parametrize("solver", [Vague(False, 0.0), Vague(False, 1.3), Vague(True, 2.0)])
@QUICK
@given(released())
def test_a_solver_that_shows_little_leaves_bounds_that_hold(solver, shakes, case):
    """What neither a table nor a proof settles must not be called sharp."""
    table, generators = case
    margins = Margins.of_table(table, generators)
    least, most, _ = truth(table, generators)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_SHAKES", shakes)
        found = sharp_bounds(margins, effort=Effort(solver=solver, dive=2))
    assert contains(found, least, most)
    assert found.low[found.sharp].tolist() == least.ravel()[found.sharp].tolist()
    assert found.high[found.sharp].tolist() == most.ravel()[found.sharp].tolist()


@QUICK
@given(released())
def test_the_shuttle_ends_where_its_formulas_change_nothing(case):
    table, generators = case
    margins = Margins.of_table(table, generators)
    found = shuttle(margins)
    lows, highs = found.low.reshape(table.shape), found.high.reshape(table.shape)
    low, high = np.zeros(table.shape, int), np.full(table.shape, margins.total)
    for _ in range(40):
        for g in generators:
            for cell in np.ndindex(table.shape):
                line = tuple(cell[a] if a in g else slice(None) for a in range(table.ndim))
                total = table[line].sum()
                ends = total - high[line].sum() + high[cell], total - low[line].sum() + low[cell]
                low[cell], high[cell] = max(low[cell], ends[0]), min(high[cell], ends[1])
    assert (lows.tolist(), highs.tolist()) == (low.tolist(), high.tolist())
    assert found.sharp.tolist() == (found.low == found.high).tolist()
    early = shuttle(margins, rounds=1)
    assert contains(early, found.low, found.high)


def test_the_same_question_gets_the_same_answer_twice():
    one, other = sharp_bounds(PAPER), sharp_bounds(PAPER)
    assert one.low.tolist() == other.low.tolist()
    assert one.high.tolist() == other.high.tolist()


@pytest.mark.parametrize("effort", [None, PURE])
def test_margins_that_no_table_has_are_a_contradiction(effort):
    # Each pair of these agrees, but no table of whole numbers has all three.
    shown = {"AB": [[1, 0, 0], [0, 1, 0]], "BC": [[1, 0], [0, 1], [0, 0]], "AC": [[0, 1], [1, 0]]}
    margins = Margins.of({"A": 2, "B": 3, "C": 2}, shown)
    with pytest.raises(ContradictionError, match="contradict"):
        shuttle(margins)
    with pytest.raises(ContradictionError, match="contradict"):
        sharp_bounds(margins, effort=effort)
    with pytest.raises(ContradictionError, match="contradict"):
        generalised(Margins.of({"A": 2}, {"A": [1, 2]}), ([2, 0], [2, 2]))
    with pytest.raises(ContradictionError, match="contradict"):
        generalised(Margins.of({"A": 2}, {"A": [0, 3]}), (4, np.inf))


def test_an_effort_or_a_box_that_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="effort"):
        Effort(nodes=-1)
    for wrong in ({"dive": 0}, {"seconds": -1.0}):
        with pytest.raises(InputError, match="effort"):
            Effort(**wrong)
    with pytest.raises(InputError, match="shape"):
        generalised(PAPER, ([0, 0], [1, 1]))
    with pytest.raises(InputError, match="whole numbers"):
        sharp_bounds(Margins.of({"A": 2}, {"A": [1, 2]}, whole=False))
