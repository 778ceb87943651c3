"""Bounds hold and sharp ones are reached, on small systems of every kind, each against all its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from audit.fibres import fitting
from lustrum.audit import ContradictionError, Knowledge, bounds
from lustrum.audit.bounding import sweep as sweeps
from lustrum.audit.bounding.sweep import Progress, Watch
from lustrum.numeric.solve import Highs, LinearProblem, Loaded, Optimum, Outcome
from solve.scipy_highs import ScipyHighs


def systems(seed: int, many: int) -> Iterator[tuple[Knowledge, np.ndarray]]:
    """Systems of three to five cells that some table satisfies, with all their tables."""
    rng = np.random.default_rng(seed)
    made = 0
    while made < many:
        count = int(rng.integers(3, 6))
        names = [f"x{i}" for i in range(count)]
        low = rng.integers(-1, 2, count)
        known = Knowledge.of(names, low=-9).within(low, low + rng.integers(1, 5, count))
        somewhere = rng.integers(known.low, known.high + 1)
        for _ in range(int(rng.integers(1, 4))):
            weights = rng.choice([-2, -1, 0, 1, 1, 2, 3], count)
            total = int(weights @ somewhere)
            slack = int(rng.choice([0, 0, 0, 1, 2]))
            row = dict(zip(names, weights.tolist(), strict=True))
            known = known.fact(row, total - slack, total + int(rng.integers(0, slack + 1)))
        made += 1
        yield known, fitting(known)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("solver", [None, Highs(), ScipyHighs()], ids=["own", "highs", "scipy"])
def test_bounds_hold_sharp_ones_are_reached_and_whole_ones_are_exact(
    seed: int, solver: Any
) -> None:
    for known, tables in systems(seed, 8):
        least, most = tables.min(axis=0), tables.max(axis=0)
        found = bounds(known, solver=solver, workers=1)
        assert (found.low <= least).all()
        assert (found.high >= most).all()
        assert found.low[found.sharp].tolist() == least[found.sharp].tolist()
        assert found.high[found.sharp].tolist() == most[found.sharp].tolist()
        exact = bounds(known, integer=True, solver=solver, workers=1)
        assert exact.low.tolist() == least.tolist()
        assert exact.high.tolist() == most.tolist()
        assert exact.sharp.all()
        assert exact.exact.tolist() == (least == most).tolist()
        assert exact.count.tolist() == (most - least + 1).tolist()
        assert (exact.decimals, exact.whole) == (0, True)


def networks(seed: int, many: int) -> Iterator[tuple[Knowledge, np.ndarray]]:
    """Cells of small two-way tables with sums of rows and columns, exact or not, some sums unknown."""
    rng = np.random.default_rng(seed)
    for _ in range(many):
        rows, columns = (2, 3) if rng.random() < 0.7 else (2, 2)
        names = [f"x{r}{c}" for r in range(rows) for c in range(columns)]
        low = rng.integers(0, 2, len(names))
        known = Knowledge.of(names).within(low, low + rng.integers(1, 4, len(names)))
        somewhere = rng.integers(known.low, known.high + 1).reshape(rows, columns)
        lines = [([f"x{r}{c}" for c in range(columns)], somewhere[r].sum()) for r in range(rows)]
        lines += [
            ([f"x{r}{c}" for r in range(rows)], somewhere[:, c].sum()) for c in range(columns)
        ]
        for line, total in lines:
            kind = int(rng.integers(0, 5))
            down, up = [(0, 0), (0, 0), (1, 0), (0, 2), (2, 1)][kind]
            if rng.random() < 0.85:
                known = known.fact(dict.fromkeys(line, 1), int(total) - down, int(total) + up)
        yield known, fitting(known)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_networks_are_exact_without_any_program(seed: int) -> None:
    for known, tables in networks(seed, 3):
        found = bounds(known, workers=1)
        assert found.low.tolist() == tables.min(axis=0).tolist()
        assert found.high.tolist() == tables.max(axis=0).tolist()
        assert found.sharp.all()
        assert (found.programs, found.searches) == (0, 0)
        some = bounds(known, [0, 2], workers=1)
        assert some.low.tolist() == found.low[[0, 2]].tolist()
        assert some.high.tolist() == found.high[[0, 2]].tolist()


def test_a_network_that_nothing_fits_is_a_contradiction() -> None:
    known = Knowledge.of(["a", "b", "c", "d"]).within([0] * 4, [3] * 4)
    for pair, total in (("ab", 4), ("cd", 3), ("ac", 2), ("bd", 6)):
        known = known.fact(dict.fromkeys(pair, 1), total, total)
    with pytest.raises(ContradictionError):
        bounds(known)


def test_linear_bounds_are_drawn_in_to_whole_numbers_and_no_further() -> None:
    """One equation with large weights: linear bounds are often not reached, and must not say that they are."""
    half_reached = 0
    for total in range(30, 50, 3):
        known = (
            Knowledge.of("abc")
            .within([0] * 3, [7] * 3)
            .fact({"a": 4, "b": 7, "c": 9}, total, total)
        )
        tables = fitting(known)
        least, most = tables.min(axis=0), tables.max(axis=0)
        linear = bounds(known.relaxed())
        for stop in (None, iter(range(2))):
            found = bounds(
                known, workers=1,
                stop=None if stop is None else lambda stop=stop: next(stop, None) is None,
            )  # fmt: skip
            assert (found.low <= least).all()
            assert (found.high >= most).all()
            both = (found.low == least) & (found.high == most)
            assert both[found.sharp].all()
            half_reached += int(((found.low == least) ^ (found.high == most)).sum())
            if stop is None:
                assert found.low.tolist() == np.ceil(linear.low - 1e-6).tolist()
                assert found.high.tolist() == np.floor(linear.high + 1e-6).tolist()
    assert half_reached


@pytest.mark.parametrize("solver", [None, Highs()], ids=["own", "highs"])
def test_bounds_of_real_numbers_are_those_of_one_program_each(solver: Any) -> None:
    for known, _ in systems(9, 8):
        found = bounds(known.relaxed(), integer=True, solver=solver, workers=1)
        rows = known.matrix.toarray()
        box = list(zip(known.low.tolist(), known.high.tolist(), strict=True))
        facts = np.vstack((rows, -rows)), np.concatenate((known.fact_high, -known.fact_low))
        for cell in range(len(known)):
            for sign, end in ((1.0, found.low), (-1.0, found.high)):
                cost = np.zeros(len(known))
                cost[cell] = sign
                best = linprog(cost, *facts, bounds=box).fun
                assert end[cell] == pytest.approx(sign * best, abs=1e-6)
        assert found.sharp.all()
        assert not found.whole
        assert found.searches == 0


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
    known, _ = next(systems(3, 1))
    known = replace(known, decimals=2)
    found = bounds(known, integer=True)
    assert found.decimals == 2
    for cells in (["x2", "x0"], slice(1, 3), [1]):
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


def test_what_nothing_fits_is_a_contradiction_of_whole_numbers_or_of_any() -> None:
    halves = Knowledge.of("ab").fact({"a": 2, "b": 4}, 7, 7)
    with pytest.raises(ContradictionError):
        bounds(halves, integer=True, solver=Highs())
    odd = Knowledge.of("abc").within([0] * 3, [1] * 3)
    for pair in ("ab", "bc", "ac"):
        odd = odd.fact(dict.fromkeys(pair, 1), 1, 1)
    for solver in (None, Highs()):
        with pytest.raises(ContradictionError):
            bounds(odd, integer=True, solver=solver)


def test_a_stopped_audit_claims_nothing_that_it_has_not_seen() -> None:
    for known, tables in systems(5, 12):
        least, most = tables.min(axis=0), tables.max(axis=0)
        for questions in (0, 1, 2, 4):
            left = iter(range(questions))
            found = bounds(
                known, integer=True, solver=Highs(), workers=1,
                stop=lambda left=left: next(left, None) is None,
            )  # fmt: skip
            assert (found.low <= least).all()
            assert (found.high >= most).all()
            assert found.low[found.sharp].tolist() == least[found.sharp].tolist()
            assert found.high[found.sharp].tolist() == most[found.sharp].tolist()


def test_a_watch_adds_up_what_is_done_and_stops_once() -> None:
    told: list[Progress] = []
    watch = Watch(10, progress=told.append)
    watch.tell(2, programs=3)
    watch.tell(1, searches=4, flows=5)
    assert told == [Progress(2, 10, 3), Progress(3, 10, 12)]
    assert (watch.programs, watch.searches, watch.flows) == (3, 4, 5)
    assert watch.left is None
    assert not watch.over
    watch.halt()
    assert watch.over
    ended = Watch(1, seconds=0.0)
    assert ended.over
    assert ended.left is not None
    assert ended.left <= 0
    asked = [False, True, False]
    once = Watch(1, stop=lambda: asked.pop(0))
    assert [once.over, once.over, once.over] == [False, True, True]
    assert asked == [False]
    patient = Watch(1, seconds=1000.0)
    assert not patient.over
    assert patient.left is not None
    assert 0 < patient.left <= 1000


class Forgetful:
    """A solver that answers the first question by a table which breaks a fact it was not told."""

    def __init__(self) -> None:
        self.loads: list[LinearProblem] = []

    def load(self, problem: LinearProblem) -> Loaded:
        self.loads.append(problem)
        return Highs().load(problem)


def test_a_fact_left_out_by_mistake_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver works without facts that follow from others; its tables are held against all of them."""
    known = Knowledge.of("abc").within([0] * 3, [9] * 3)
    known = (
        known.fact({"a": 1, "b": 1}, 5, 5)
        .fact({"b": 1, "c": 1}, 7, 7)
        .fact({"a": 1, "c": 2}, 6, 11)
    )
    expected = bounds(known, integer=True)

    def drops_the_last(piece: Any) -> Any:
        kept = slice(0, piece.matrix.shape[0] - 1)
        return replace(
            piece, matrix=piece.matrix[kept],
            fact_low=piece.fact_low[kept], fact_high=piece.fact_high[kept],
        )  # fmt: skip

    monkeypatch.setattr(sweeps, "without_repeats", drops_the_last)
    solver = Forgetful()
    found = bounds(known, integer=True, solver=solver)
    assert found.low.tolist() == expected.low.tolist()
    assert found.high.tolist() == expected.high.tolist()
    assert {p.matrix.shape[0] for p in solver.loads} == {2, 3}


class Vague:
    """A solver that proves bounds but never has a table to show."""

    def load(self, problem: LinearProblem) -> Loaded:
        class Without:
            def minimise(self, *words: Any, **named: Any) -> Optimum:
                found = Highs().load(problem).minimise(*words, **named)
                return replace(found, point=None, outcome=Outcome.CUT_SHORT)

            def again(self) -> Loaded:
                return self  # type: ignore[return-value]

        return Without()  # type: ignore[return-value]


def test_bounds_that_no_table_was_seen_to_reach_are_not_called_sharp() -> None:
    known = Knowledge.of("abcd").within([0] * 4, [9] * 4)
    known = known.fact({"a": 1, "b": 1, "c": 1}, 4, 6).fact({"b": 2, "c": 1, "d": 1}, 5, 5)
    found = bounds(known, solver=Vague())
    tables = fitting(known)
    assert (found.low <= tables.min(axis=0)).all()
    assert (found.high >= tables.max(axis=0)).all()
    assert not found.sharp.any()
