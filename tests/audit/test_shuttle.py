"""The shuttle never cuts off a table, and with programs after it reaches every bound."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK
from audit.test_closed import contains, equals, released, truth
from lustrum.audit import ContradictionError
from lustrum.audit.closed import Margins, closed_bounds
from lustrum.audit.shuttle import (
    Detail,
    Lattice,
    collapses,
    generalised,
    sharp_bounds,
    shuttle,
)
from lustrum.model import InputError

IJ = [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]]
JK = [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]]
IK = [[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]]
PAPER = Margins.of({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK, "IK": IK})


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
    found = sharp_bounds(margins)
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
    assert equals(sharp_bounds(margins, (low, high)), least, most)
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


def test_the_bounds_of_the_published_example_are_reached():
    found = sharp_bounds(PAPER)
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
    lattice = Lattice.of(Margins.of_table(table, pairs(3)), None, Detail.ALL)
    assert lattice.sums.cells.size < 500_000
    assert (lattice.low[lattice.inner] <= table.ravel()).all()
    assert (lattice.high[lattice.inner] >= table.ravel()).all()


def test_when_the_time_is_over_bounds_hold_and_are_not_called_sharp():
    full, cut = sharp_bounds(PAPER), sharp_bounds(PAPER, seconds=0)
    assert not cut.sharp.all()
    assert (cut.low <= full.low).all()
    assert (cut.high >= full.high).all()
    assert cut.low[cut.sharp].tolist() == full.low[cut.sharp].tolist()
    assert cut.high[cut.sharp].tolist() == full.high[cut.sharp].tolist()


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


def test_margins_that_no_table_has_are_a_contradiction():
    # Each pair of these agrees, but no table of whole numbers has all three.
    shown = {"AB": [[1, 0, 0], [0, 1, 0]], "BC": [[1, 0], [0, 1], [0, 0]], "AC": [[0, 1], [1, 0]]}
    margins = Margins.of({"A": 2, "B": 3, "C": 2}, shown)
    with pytest.raises(ContradictionError, match="contradict"):
        shuttle(margins)
    with pytest.raises(ContradictionError, match="contradict"):
        sharp_bounds(margins)
    with pytest.raises(ContradictionError, match="contradict"):
        generalised(Margins.of({"A": 2}, {"A": [1, 2]}), ([2, 0], [2, 2]))
    with pytest.raises(ContradictionError, match="contradict"):
        generalised(Margins.of({"A": 2}, {"A": [0, 3]}), (4, np.inf))


def test_a_box_or_a_domain_that_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="shape"):
        generalised(PAPER, ([0, 0], [1, 1]))
    with pytest.raises(InputError, match="whole numbers"):
        sharp_bounds(Margins.of({"A": 2}, {"A": [1, 2]}, whole=False))
