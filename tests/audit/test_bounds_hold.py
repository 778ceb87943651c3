"""Bounds hold and sharp ones are reached, whatever a solver answers and however the work is cut up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from audit.fibres import QUICK, fitting
from audit.test_bounds import systems
from examples import examples
from lustrum.audit import Bounds, ContradictionError, Knowledge, bounds
from lustrum.audit.bounding import sweep as sweeps
from lustrum.audit.bounding.sweep import Progress
from lustrum.audit.knowledge.reduce import pieces
from lustrum.numeric.solve import Highs, LinearProblem, Optimum, Outcome, Solver
from solve.scipy_highs import ScipyHighs

BOUNDING = "lustrum.audit.bounding"


def assert_contained(found: Bounds, tables: np.ndarray) -> None:
    """Every table lies between the bounds, and some table reaches those that are called sharp."""
    least, most = tables.min(axis=0), tables.max(axis=0)
    assert (found.low <= least).all()
    assert (found.high >= most).all()
    assert found.low[found.sharp].tolist() == least[found.sharp].tolist()
    assert found.high[found.sharp].tolist() == most[found.sharp].tolist()


def assert_exact(found: Bounds, tables: np.ndarray) -> None:
    assert_contained(found, tables)
    assert found.sharp.all()


@st.composite
def knapsacks(draw: st.DrawFn) -> Knowledge:
    """Large weights: linear bounds are often not reached, and must not say that they are."""
    weights = draw(st.lists(st.sampled_from([3, 4, 5, 7, 9]), min_size=3, max_size=4))
    names = "abcd"[: len(weights)]
    point = [draw(st.integers(0, 7)) for _ in weights]
    total = sum(w * x for w, x in zip(weights, point, strict=True))
    known = Knowledge.of(names).within(0, 7)
    return known.fact(dict(zip(names, weights, strict=True)), total, total)


SYSTEMS = st.one_of(systems(), knapsacks())


class Unreliable:
    """A solver whose bounds are true and whose points may be anything, a table or not."""

    def __init__(self, seed: int) -> None:
        self.luck = np.random.default_rng(seed)

    def load(self, problem: LinearProblem) -> Any:
        return _Answers(self.luck, problem)


class _Answers:
    def __init__(self, luck: np.random.Generator, problem: LinearProblem) -> None:
        self.luck, self.problem, self.loaded = luck, problem, Highs().load(problem)

    def again(self) -> _Answers:
        return _Answers(self.luck, self.problem)

    def minimise(self, *words: Any, **named: Any) -> Optimum:
        found = self.loaded.minimise(*words, **named)
        if found.outcome is Outcome.INFEASIBLE:
            return found
        weaker = found.bound - float(self.luck.choice([0, 0, 1e-9, 0.4, 2.0, np.inf]))
        point = found.point
        kind = self.luck.integers(6)
        if point is not None and kind < 4:
            size = point.size
            point = [
                point + 1e-8 * self.luck.standard_normal(size),  # the precision of a solver
                point + 0.3,  # between whole numbers
                np.round(point) + self.luck.integers(-1, 2, size),  # whole, and perhaps no table
                np.round(self.luck.uniform(self.problem.low, self.problem.high)),
            ][kind]
        return Optimum(Outcome.CUT_SHORT, weaker, None if kind == 4 else point)


@QUICK
@given(SYSTEMS, st.integers(0, 99))
def test_bounds_hold_and_sharp_ones_are_reached_whatever_points_a_solver_shows(
    known: Knowledge, seed: int
) -> None:
    tables = fitting(known)
    assume(len(tables))
    for integer in (False, True):
        found = bounds(known, integer=integer, solver=Unreliable(seed), workers=1)
        assert_contained(found, tables)


@QUICK
@given(systems())
def test_a_piece_holds_the_tables_that_satisfy_every_fact_and_bound(known: Knowledge) -> None:
    """Every table that makes a bound sharp passes this check."""
    every = np.ones(len(known), dtype=np.bool_)
    try:
        found = list(pieces(known, known.low, known.high, every))
    except ContradictionError:
        assert len(fitting(known)) == 0
        return
    for piece in found:
        around = replace(known, low=known.low - 1, high=known.high + 1, matrix=known.matrix[:0],
                         fact_low=known.fact_low[:0], fact_high=known.fact_high[:0])  # fmt: skip
        for point in np.unique(fitting(around)[::7, piece.cells], axis=0):
            sums = piece.matrix.toarray() @ point
            inside = all(a <= x <= b for a, x, b in zip(piece.low, point, piece.high, strict=True))
            ends = zip(piece.fact_low, sums, piece.fact_high, strict=True)
            assert piece.holds(point) == (inside and all(a <= s <= b for a, s, b in ends))


SIZES: list[dict[str, Any]] = [
    {"sweep._BLOCK": 2, "sweep._MOST_BLOCKS": 3, "sweep._ROUND": 1, "sweep._FEW": 100},
    {"sweep._BLOCK": 2, "sweep._HARD_BLOCK": 1, "sweep._ROUND": 2, "compute._THREADED": 1},
    {"lattice_walk.LEAST": 1, "sweep._FEW": 1, "sweep._TRIES": (0, 40, 40)},
    {"lattice_walk.LEAST": 1, "sweep._FEW": 1, "sweep._TRIES": (40, 400), "sweep._BLOCK": 2},
]


@pytest.mark.parametrize("sizes", SIZES, ids=["rounds", "threads", "short walks", "walks"])
@pytest.mark.parametrize("solver", [None, Highs(), ScipyHighs()], ids=["own", "highs", "scipy"])
@settings(deadline=None, max_examples=examples(5, 60))
@given(SYSTEMS)
def test_bounds_are_the_range_of_all_tables_however_the_work_is_cut_up(
    sizes: dict[str, Any], solver: Solver | None, known: Knowledge
) -> None:
    tables, told = fitting(known), list[Progress]()
    with pytest.MonkeyPatch.context() as patch:
        for name, size in sizes.items():
            patch.setattr(f"{BOUNDING}.{name}", size)
        if len(tables) == 0:
            with pytest.raises(ContradictionError):
                bounds(known, integer=True, solver=solver, workers=2)
            return
        assert_contained(bounds(known, solver=solver, workers=2), tables)
        exact = bounds(known, integer=True, solver=solver, workers=2, progress=told.append)
        assert_exact(exact, tables)
    assert exact.exact.tolist() == (tables.min(axis=0) == tables.max(axis=0)).tolist()
    assert exact.count.tolist() == (np.ptp(tables, axis=0) + 1).tolist()
    for before, after in pairwise(told):
        assert before.settled <= after.settled
        assert before.programs <= after.programs
    if told:
        assert told[-1].settled == told[-1].asked
        assert told[-1].programs == exact.programs + exact.searches + exact.flows


def halting(after: int) -> Callable[[], bool]:
    """Say stop once this has been asked so many times."""
    left = iter(range(after))
    return lambda: next(left, None) is None


@QUICK
@given(SYSTEMS, st.integers(0, 6), st.sampled_from([None, Highs()]))
def test_a_stopped_audit_claims_nothing_that_it_has_not_seen(
    known: Knowledge, questions: int, solver: Solver | None
) -> None:
    tables = fitting(known)
    assume(len(tables))
    found = bounds(known, stop=halting(questions), integer=True, solver=solver, workers=1)
    assert_contained(found, tables)
    assert found.programs + found.searches <= questions


@QUICK
@given(SYSTEMS)
@example(Knowledge.of("ab").within(0, 9).fact({"a": 1, "b": 2}, 3, 3))
@example(Knowledge.of("abc").within(0, 7).fact({"a": 4, "b": 7, "c": 9}, 33, 33))
def test_linear_bounds_are_those_of_linear_programs_drawn_in_to_whole_numbers(
    known: Knowledge,
) -> None:
    assume(len(fitting(known)))
    rows = known.matrix.toarray()
    box = list(zip(known.low.tolist(), known.high.tolist(), strict=True))
    facts: tuple[Any, ...] = (np.vstack((rows, -rows)), np.append(known.fact_high, -known.fact_low))
    facts = facts if rows.size else (None, None)
    for solver in (None, Highs()):
        found = bounds(known.relaxed(), integer=True, solver=solver, workers=1)
        whole = bounds(known, solver=solver, workers=1)
        for cell in range(len(known)):
            for sign, end, drawn in ((1, found.low, whole.low), (-1, found.high, whole.high)):
                best = linprog(sign * np.eye(len(known))[cell], *facts, bounds=box).fun
                assert end[cell] == pytest.approx(sign * best, abs=1e-6)
                assert sign * drawn[cell] >= np.ceil(best - 1e-6)
        assert found.sharp.all()
        assert_contained(whole, fitting(known))
        assert not found.whole
        assert (found.searches, whole.searches) == (0, 0)


def test_cells_without_an_end_stay_without_one_and_are_sharp() -> None:
    known = Knowledge.of("abc").fact({"a": 1, "b": -1, "c": 2}, 3, 3).bound("c", high=1)
    for solver in (None, Highs()):
        for asked in (known, known.relaxed()):
            found = bounds(asked, solver=solver, integer=True)
            assert found.low.tolist() == pytest.approx([1.0, 0.0, 0.0])
            assert found.high.tolist() == [np.inf, np.inf, 1.0]
            assert found.sharp.all()
    below = Knowledge.of("ab", low=-5).fact({"a": 1, "b": 1}, 0, 0)
    below = replace(below, low=np.array([-(2**62), -5]))
    found = bounds(below, solver=Highs())
    assert (found.low.tolist(), found.high.tolist()) == ([-np.inf, -5.0], [5.0, np.inf])


def test_some_cells_have_the_bounds_that_they_have_among_all() -> None:
    known = Knowledge.of("xyz", decimals=2).within(0, [3, 4, 5])
    known = known.fact({"x": 1, "y": 2, "z": 1}, 6, 8)
    found = bounds(known, integer=True)
    assert found.decimals == 2
    for cells in (["z", "x"], slice(1, 3), [1]):
        some, again = found.of(known, cells), bounds(known, cells, integer=True)
        places = list(range(len(known)))[cells] if isinstance(cells, slice) else [
            known.cell(c) for c in cells
        ]  # fmt: skip
        for one in (some, again):
            assert one.cells.tolist() == places
            assert one.low.tolist() == found.low[places].tolist()
            assert one.high.tolist() == found.high[places].tolist()
            assert one.sharp.tolist() == [True] * len(places)
            assert len(one) == len(places)
    marked = replace(found, sharp=np.arange(len(known)) == 1)
    assert marked.of(known, [1, 0]).sharp.tolist() == [True, False]
    for name in ("cells", "low", "high", "sharp"):
        assert not getattr(found, name).flags.writeable


def test_a_fact_left_out_by_mistake_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver works without facts that follow from others; its tables are held against all of them."""
    known = Knowledge.of("abc").within([0] * 3, [9] * 3).fact({"a": 1, "b": 1}, 5, 5)
    known = known.fact({"b": 1, "c": 1}, 7, 7).fact({"a": 1, "c": 2}, 6, 11)
    rows: list[int] = []

    def drops_the_last(piece: Any) -> Any:
        kept = slice(0, piece.matrix.shape[0] - 1)
        ends = {"fact_low": piece.fact_low[kept], "fact_high": piece.fact_high[kept]}
        return replace(piece, matrix=piece.matrix[kept], **ends)

    class Noting:
        def load(self, problem: LinearProblem) -> Any:
            rows.append(problem.matrix.shape[0])
            return Highs().load(problem)

    monkeypatch.setattr(sweeps, "without_repeats", drops_the_last)
    assert_exact(bounds(known, integer=True, solver=Noting()), fitting(known))
    assert set(rows) == {2, 3}
