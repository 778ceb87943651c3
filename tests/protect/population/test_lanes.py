"""Lanes of a sweep: the same bytes for any number of threads, and never an error that is not true."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.search import lanes
from lustrum.protect.population.search import run as runs
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


def test_lanes_learn_the_same_from_moves_as_from_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a lane is told by the moves of a round is all that differs from the first lane."""
    found, states = None, None
    followed: list[int] = []
    plain = runs.follow

    def counted(*words: Any) -> None:
        followed.append(int(words[4].written[0]))
        plain(*words)

    monkeypatch.setattr(runs, "follow", counted)
    for cost, by_moves in ((10**9, False), (0, True)):
        monkeypatch.setattr(lanes, "_FOLLOWED", cost)
        other, its_states = run(2)
        assert (sum(followed) > 0) == by_moves
        if found is None or states is None:
            found, states = other, its_states
            continue
        assert np.array_equal(other.up, found.up)
        assert np.array_equal(other.errors, found.errors)
        for one, two in zip(states, its_states, strict=True):
            assert one.word == two.word
            assert one.up.tobytes() == two.up.tobytes()
            assert one.fields.tobytes() == two.fields.tobytes()


def plain_shares(
    majors: np.ndarray, block_first: np.ndarray, visits: np.ndarray
) -> list[list[list[int]]]:
    """The rounds of a sweep, slice by slice."""
    slices = [s for m in majors for s in range(block_first[m], block_first[m + 1]) if visits[s] > 0]
    total = sum(int(visits[s]) for s in slices)
    many = max(lanes._ROUNDS, -(-total // (3 * lanes._ROUND_CELLS)))
    rounds: list[list[list[int]]] = [[[] for _ in range(3)] for _ in range(many)]
    done = 0
    for s in slices:
        done += int(visits[s])
        place = 3 * many * (done - (int(visits[s]) + 1) // 2) // total
        rounds[place % many][place // many].append(s)
    return rounds


@settings(
    max_examples=examples(60, 600),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=9),
    st.randoms(),
    st.integers(1, 40),
)
def test_slices_are_shared_out_as_one_by_one(
    monkeypatch: pytest.MonkeyPatch, blocks: list[list[int]], chance: Any, round_cells: int
) -> None:
    monkeypatch.setattr(lanes, "_ROUND_CELLS", round_cells)
    visits = np.array([v for block in blocks for v in block], dtype=np.int64)
    assume(visits.sum() >= 3)
    block_first = np.cumsum([0, *(len(block) for block in blocks)])
    majors = np.array(chance.sample(range(len(blocks)), len(blocks)))
    shares = share_out(majors, block_first, visits)
    assert [[lane.tolist() for lane in every] for every in shares.rounds] == plain_shares(
        majors, block_first, visits
    )


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
