"""Lanes of a sweep: the same bytes for any number of threads, and never an error that is not true."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.search import lanes
from lustrum.protect.population.search.lanes import Lane, share_out
from lustrum.protect.population.search.layout import plan_tables
from lustrum.protect.population.search.replay import replay
from lustrum.protect.population.search.run import (
    SearchCells,
    SearchedPopulation,
    SearchState,
    _errors,
    _lack,
    _laid_out,
    _tally,
    search,
)
from lustrum.protect.population.search.stages import ErrorCost, Stage
from protect.population.worlds import KEY, cells_of, town

COSTS = (ErrorCost(20, 0, 200, 4), ErrorCost(50, 1), ErrorCost(90, 2), ErrorCost(5))
SIZES = (12, 6, 5, 4)


@pytest.fixture(autouse=True)
def many_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several lanes where a small dataset would have one, and few rounds, so that they often interfere."""
    monkeypatch.setattr(lanes, "_LANES", 3)
    monkeypatch.setattr(lanes, "_LANE_CELLS", 1)
    monkeypatch.setattr(lanes, "_ROUNDS", 2)


def problem_and_stages():  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    cells = cells_of(town(SIZES, zeros=False), rng.poisson(0.8, SIZES))
    finest = plan_tables(cells.dataset, 3, finest_only=True)
    every = plan_tables(cells.dataset, 3, extra_tables=3)
    prepared = prepare(cells, KEY, base=3, small_only=False, empty_share=0.2)
    stages = [
        Stage(finest, 2, 0.2, 0.1, COSTS, lost=3.0, near=2),
        Stage(every, 3, 0.05, 0.002, COSTS),
        Stage(every, 1, 0.002, 0.002, COSTS, beyond=3),
    ]
    return prepared.problem, stages


def run(
    workers: int, resume: SearchState | None = None
) -> tuple[SearchedPopulation, list[SearchState]]:
    problem, stages = problem_and_stages()
    states: list[SearchState] = []

    def keep(state: SearchState) -> None:
        states.append(SearchState(state.sweeps, state.word, state.up.copy(), state.fields.copy()))

    return search(problem, stages, 7, resume, keep, workers), states


def test_any_number_of_workers_gives_the_same_bytes() -> None:
    (found, states), *others = (run(workers) for workers in (1, 2, 4))
    assert found.moves[:, 1].min() > 0, "flips, swaps and exchanges are all made"
    for other, its_states in others:
        assert np.array_equal(other.up, found.up)
        assert np.array_equal(other.errors, found.errors)
        for one, two in zip(states, its_states, strict=True):
            assert one.word == two.word
            assert one.up.tobytes() == two.up.tobytes()
            assert one.fields.tobytes() == two.fields.tobytes()


def test_a_search_that_goes_on_after_any_sweep_ends_with_the_same_bytes() -> None:
    found, states = run(1)
    for state in states[:-1]:
        again, _ = run(2, state)
        assert np.array_equal(again.up, found.up)
        assert np.array_equal(again.errors, found.errors)


def test_errors_and_the_share_of_empty_cells_are_those_of_the_cells() -> None:
    problem, stages = problem_and_stages()
    cells, order = _laid_out(problem, stages[-1].plan)
    showing = _lack(replace(problem, empty_share=(1, 0)), cells)
    empty = _lack(replace(problem, empty_share=(0, -1)), cells)
    # The rule just holds at the start, so that many moves would break it.
    problem = replace(problem, empty_share=(empty, showing))
    lacks: list[int] = []

    def keep(state: SearchState) -> None:
        lacks.append(_lack(problem, cells._replace(up=state.up)))

    found = search(problem, stages, 7, keep=keep, workers=2)
    cells.up[:] = found.up[order]
    assert np.array_equal(found.errors, _errors(problem, cells, order, stages[-1].plan))
    assert max(lacks) <= 0


def test_every_slice_with_cells_to_visit_is_visited_once() -> None:
    block_first, visits = np.array([0, 2, 3, 3, 6]), np.array([3, 1, 5, 1, 0, 9])
    shares = share_out(np.array([3, 0, 1]), block_first, visits)
    assert [len(every) for every in shares.rounds] == [3, 3]
    visited = [[every[lane] for every in shares.rounds] for lane in range(3)]
    assert np.concatenate([s for lane in visited for s in lane]).tolist() == [3, 5, 0, 1, 2]
    assert shares.cells[-1] == 19
    assert shares.most_cells == max(visits[s].sum() for every in shares.rounds for s in every)


def test_the_number_of_lanes_depends_on_the_cells_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "_LANE_CELLS", 5)
    few, many = (share_out(np.array([0]), np.array([0, 4]), np.full(4, n)) for n in (3, 4))
    assert [len(few.rounds[0]), len(many.rounds[0])] == [1, 3]
    assert [len(few.rounds), len(many.rounds)] == [1, 2]


def some_moves(cells: SearchCells) -> list[list[int]]:
    """A flip, a swap and an exchange that are possible, as lanes write them down."""
    codes = {tuple(row): place for place, row in enumerate(cells.codes.tolist())}
    for i, own in enumerate(cells.codes.tolist()):
        for j, k in product(cells.partner[i, 0:1].tolist(), cells.partner[i, 1:2].tolist()):
            if min(j, k) < 0 or cells.up[j] == cells.up[i] or cells.up[k] == cells.up[i]:
                continue
            m = codes.get((int(cells.codes[j, 0]), int(cells.codes[k, 1]), *own[2:]), -1)
            if m >= 0 and cells.up[m] == cells.up[i]:
                return [[i, -1, -1, -1], [i, j, -1, -1], [i, j, k, m]]
    raise AssertionError("no exchange is possible")


@pytest.mark.parametrize("kind", range(3), ids=["flip", "swap", "exchange"])
def test_a_move_is_made_again_only_if_it_costs_no_more_than_it_may(kind: int) -> None:
    problem, stages = problem_and_stages()
    stage = stages[1]
    cells, order = _laid_out(problem, stage.plan)
    errors = _errors(problem, cells, order, stage.plan)
    moved = some_moves(cells)[kind]
    after = cells.up.copy()
    chosen = [c for c in moved if c >= 0]
    after[chosen] = 1 - after[chosen]
    then = _errors(problem, cells._replace(up=after), order, stage.plan)
    kinds = stage.plan.layout.cell_kind
    total = [
        sum(int(cost.of(e[kinds == n].astype(np.int64)).sum()) for n, cost in enumerate(COSTS))
        for e in (errors, then)
    ]
    for allowance, made in ((-1, False), (0, True)):
        own = cells._replace(up=cells.up.copy())
        here = errors.copy()
        forces = np.zeros((here.size, 2), dtype=np.int32)
        tally = _tally(problem, cells)
        tally[0] = -(10**6)
        common = (np.zeros((1, 2)), tally, np.zeros(1, np.uint64), np.zeros((3, 2), np.int64))
        log = np.array([moved], dtype=np.int32), np.array([total[1] - total[0] + allowance], float)
        first = Lane(0, own.up, here, forces, *common, np.array([0]), *log)
        lane = Lane(1, after.copy(), then.copy(), forces.copy(), *common, np.array([1]), *log)
        step = np.int32(problem.step)
        replay(stage.plan.layout, own, first, lane, step, stage.costs_of(problem.step))
        assert np.array_equal(own.up, after if made else cells.up)
        assert np.array_equal(here, then if made else errors)
