"""Sweeps: as good as one cold program a bound, for any number of workers, and they can be stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations, pairwise

import numpy as np
import pytest

from audit.fibres import axis
from audit.test_bounds import IJ, IK, JK
from lustrum.audit import Knowledge, PublishedTable, bounds, from_margins, from_tables
from lustrum.numeric.solve import Highs
from solve.scipy_highs import ScipyHighs


def suppressed(shape, share, seed) -> Knowledge:
    """A table with all totals shown, a share of its inner cells suppressed."""
    rng = np.random.default_rng(seed)
    values, mask = rng.integers(0, 40, shape), rng.random(shape) < share
    for place in range(len(shape)):
        values = np.concatenate([values, values.sum(axis=place, keepdims=True)], place)
        mask = np.concatenate([mask, np.zeros_like(mask.take([0], place))], place)
    axes = [
        axis(name, *[[c] for c in range(size)], list(range(size)))
        for name, size in zip("ABC", shape, strict=False)
    ]
    return from_tables([PublishedTable.exact(axes, np.where(mask, 0, values), mask)])


def two_way_margins(shape, seed) -> Knowledge:
    """All two-way margins of a random cube."""
    cube = np.random.default_rng(seed).poisson(1.5, shape)
    names = "ABCDEFG"[: len(shape)]
    margins = {
        "".join(pair): cube.sum(axis=tuple(i for i, n in enumerate(names) if n not in pair))
        for pair in combinations(names, 2)
    }
    return from_margins(dict(zip(names, shape, strict=True)), margins)


CASES = {
    "two-way": suppressed((12, 14), 0.3, 1),
    "three-way": suppressed((6, 6, 6), 0.4, 2),
    "margins": two_way_margins((3, 4, 3), 3),
    "duncan": from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK, "IK": IK}),
}


@pytest.mark.parametrize("case", CASES)
def test_bounds_equal_those_of_one_cold_program_each(case):
    known = CASES[case].relaxed()
    cells = np.flatnonzero(known.low < known.high)
    hot = bounds(known, cells)
    cold = bounds(known, cells, solver=ScipyHighs())
    assert hot.sharp.all()
    np.testing.assert_allclose(hot.low, cold.low, atol=1e-6)
    np.testing.assert_allclose(hot.high, cold.high, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_witnesses_answer_most_questions(case):
    known = CASES[case]
    found = bounds(known, np.flatnonzero(known.low < known.high), solver=Highs())
    assert 0 < found.programs < len(found)


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_any_number_of_workers_gives_the_same(case, integer):
    known = CASES[case]
    one, *more = (bounds(known, integer=integer, workers=w) for w in (1, 2, 3))
    for other in more:
        assert other.low.tolist() == one.low.tolist()
        assert other.high.tolist() == one.high.tolist()
        assert other.sharp.tolist() == one.sharp.tolist()
        assert (other.programs, other.searches) == (one.programs, one.searches)


def test_blocks_run_side_by_side_give_the_same_too(monkeypatch):
    monkeypatch.setattr("lustrum.audit.bounding.sweep._BLOCK", 3)
    monkeypatch.setattr("lustrum.audit.bounding.sweep._HARD_BLOCK", 2)
    known = two_way_margins((3, 3, 3, 2), 5)
    one, two = (bounds(known, known.table(0), integer=True, workers=w) for w in (1, 3))
    assert one.sharp.all()
    assert [one.low.tolist(), one.high.tolist()] == [two.low.tolist(), two.high.tolist()]
    assert one.searches == two.searches


@pytest.mark.parametrize("known", [two_way_margins((2,) * 5, 7), CASES["duncan"]], ids=str)
def test_sharp_whole_bounds_agree_with_a_second_solver(known):
    found = bounds(known, known.table(0), integer=True)
    assert found.sharp.all()
    ranges = [[int(a), int(b)] for a, b in zip(found.low, found.high, strict=True)]
    assert ranges == second_solver(known, known.table(0).stop)


def second_solver(known: Knowledge, cells: int) -> list[list[int]]:
    """CP-SAT in a process of its own: its library and HiGHS have symbols of the same name."""
    matrix = known.matrix.tocoo()
    case = {
        "low": known.low.tolist(),
        "high": np.minimum(known.high, known.high[known.high < 2**60].max()).tolist(),
        "entries": list(
            zip(*(a.tolist() for a in (matrix.row, matrix.col, matrix.data)), strict=True)
        ),
        "sums": known.fact_low.tolist(),
        "cells": cells,
    }
    run = subprocess.run(
        [sys.executable, "-c", CP_SAT], input=json.dumps(case), capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


CP_SAT = """
import json, sys
from ortools.sat.python import cp_model

case = json.load(sys.stdin)
model, out = cp_model.CpModel(), []
x = [model.new_int_var(lo, hi, "") for lo, hi in zip(case["low"], case["high"])]
rows = [[] for _ in case["sums"]]
for row, column, weight in case["entries"]:
    rows[row].append(weight * x[column])
for terms, total in zip(rows, case["sums"]):
    model.add(sum(terms) == total)
for cell in range(case["cells"]):
    ends = []
    for ask in (model.minimize, model.maximize):
        ask(x[cell])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(model) == cp_model.OPTIMAL
        ends.append(solver.value(x[cell]))
    out.append(ends)
json.dump(out, sys.stdout)
"""


def test_progress_is_told_and_stopping_leaves_outer_bounds():
    known = CASES["three-way"]
    full, told = bounds(known), []
    again = bounds(known, progress=told.append, workers=1)
    assert told[-1].programs == again.programs + again.searches == full.programs
    assert all(a.settled <= b.settled for a, b in pairwise(told))
    assert told[-1].settled == told[-1].asked
    assert again.sharp.all()
    cut = bounds(known, stop=lambda: True)
    assert cut.programs == 0
    assert not cut.sharp.all()
    assert (cut.low <= full.low).all()
    assert (cut.high >= full.high).all()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_progress_function_may_end_it(workers):
    class EnoughError(Exception):
        pass

    def enough(progress):
        raise EnoughError

    with pytest.raises(EnoughError):
        bounds(CASES["three-way"], progress=enough, workers=workers)
