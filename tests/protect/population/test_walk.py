"""The walk that takes the last large errors away: never worse than before, and its errors are true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.search import walk as walks
from lustrum.protect.population.search.layout import KINDS, plan_tables
from lustrum.protect.population.search.run import (
    SearchState,
    _errors,
    _lack,
    _laid_out,
    _tally,
    search,
)
from lustrum.protect.population.search.stages import ErrorCost, Stage
from lustrum.protect.population.search.walk import _inside, walk
from protect.population.worlds import KEY, cells_of, town

SIZES = (12, 6, 5, 4)
WALL = (
    ErrorCost(20, 0, 10**6, 3),
    ErrorCost(50, 1, 10**6, 3),
    ErrorCost(90, 2, 10**6, 3),
    ErrorCost(5),
)


def searched(seed: int, share: float = 0.2) -> Any:
    """A problem, a stage with a walk, and cells and errors that a short search has left."""
    rng = np.random.default_rng(seed)
    cells = cells_of(town(SIZES, zeros=False), rng.poisson(0.8, SIZES))
    plan = plan_tables(cells.dataset, 3, extra_tables=3)
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=share).problem
    stage = Stage(plan, 3, 0.05, 0.002, WALL)
    found = search(problem, [stage], seed, workers=1)
    laid, order = _laid_out(problem, plan)
    laid.up[:] = found.up[order]
    return problem, replace(stage, beyond=3, walk=300), laid, order, found.errors.copy()


def excess(stage: Stage, errors: np.ndarray) -> int:
    counted = np.abs(errors[stage.plan.layout.cell_kind != KINDS.index("extra")])
    return int(np.maximum(counted - stage.beyond, 0).sum())


def walked(seed: int) -> tuple[int, int]:
    problem, stage, cells, order, errors = searched(seed)
    before = excess(stage, errors)
    showing = _lack(replace(problem, empty_share=(1, 0)), cells)
    empty = _lack(replace(problem, empty_share=(0, -1)), cells)
    # The rule of empty cells just holds, so that many moves would break it.
    problem = replace(problem, empty_share=(empty, showing))
    tally = _tally(problem, cells)
    walk(stage, cells, errors, tally, np.array([seed], dtype=np.uint64), np.int32(problem.step))
    assert np.array_equal(errors, _errors(problem, cells, order, stage.plan))
    assert tally[0] == _lack(problem, cells) <= 0
    return before, excess(stage, errors)


def test_a_walk_takes_away_large_errors_that_sweeps_leave() -> None:
    found = [walked(seed) for seed in range(6)]
    assert all(after <= before for before, after in found)
    assert sum(after for _, after in found) < sum(before for before, _ in found) / 2, found


def test_a_walk_that_leads_nowhere_leaves_every_cell_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, stage, cells, _, errors = searched(1)
    assert excess(stage, errors) > 0
    made = []
    plain = walks._make

    def counted(*words: Any) -> None:
        made.append(1)
        plain(*words)

    monkeypatch.setattr(walks, "_make", counted)
    # No state is ever called better, and so the walk goes back to where it began.
    monkeypatch.setattr(walks, "_beyond", lambda errors, most: 5)
    up, before = cells.up.copy(), errors.copy()
    tally = _tally(problem, cells)
    walk(stage, cells, errors, tally, np.array([1], dtype=np.uint64), np.int32(problem.step))
    assert len(made) > 10
    assert np.array_equal(cells.up, up)
    assert np.array_equal(errors, before)


def test_cells_inside_a_controlled_cell_are_those_with_its_codes() -> None:
    """A flip of each cell inside changes the error of the controlled cell, and no other flip does."""
    problem, stage, cells, order, errors = searched(2)
    rng = np.random.default_rng(1)
    for target in rng.choice(errors.size, 12, replace=False):
        inside = _inside(stage.plan, cells.codes, int(target))
        for cell in rng.choice(inside.size, 25, replace=False):
            cells.up[cell] = 1 - cells.up[cell]
            changed = _errors(problem, cells, order, stage.plan)[target] != errors[target]
            cells.up[cell] = 1 - cells.up[cell]
            assert changed == inside[cell]


def test_a_search_with_a_walk_gives_the_same_bytes_in_parts_and_on_any_cores() -> None:
    problem, stage, *_ = searched(3)
    stages = [replace(stage, beyond=0, walk=0), replace(stage, sweeps=1), replace(stage, walk=0)]
    states: list[SearchState] = []

    def keep(state: SearchState) -> None:
        states.append(SearchState(state.sweeps, state.word, state.up.copy(), state.fields.copy()))

    found = search(problem, stages, 9, keep=keep, workers=1)
    for state in states[2:-1]:
        again = search(problem, stages, 9, resume=state, workers=2)
        assert np.array_equal(again.up, found.up)
        assert np.array_equal(again.errors, found.errors)


def test_the_walk_keeps_account_of_large_errors_without_looking_at_all_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After every step the errors that it takes for large are all that are."""
    problem, stage, cells, _, errors = searched(1)
    counts = stage.plan.layout.cell_kind < KINDS.index("extra")
    plain, seen = walks._still_far, []

    def compared(far: Any, changed: Any, *words: Any) -> Any:
        found = plain(far, changed, *words)
        assert np.array_equal(found, np.flatnonzero(counts & (np.abs(errors) > stage.beyond)))
        seen.append(found.size)
        return found

    monkeypatch.setattr(walks, "_still_far", compared)
    tally = _tally(problem, cells)
    walk(stage, cells, errors, tally, np.array([1], dtype=np.uint64), np.int32(problem.step))
    assert len(seen) > 10


def test_large_errors_of_very_many_cells_have_more_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    left, taken = [], []
    for more in (1, 0):
        problem, stage, cells, _, errors = searched(4)
        monkeypatch.setattr(walks, "_MANY_CELLS", errors.size + more)
        said: list[float] = []
        words = np.array([4], dtype=np.uint64), np.int32(problem.step), said.append
        walk(replace(stage, walk=1), cells, errors, _tally(problem, cells), *words)
        taken.append(len(said))
        left.append(excess(stage, errors))
    assert taken[0] == 1 < taken[1]
    assert left[1] < left[0]


def test_the_cells_of_a_controlled_cell_lie_in_its_stretch() -> None:
    _, stage, cells, _, errors = searched(5)
    narrow = 0
    for target in range(errors.size):
        low, high = walks._stretch(stage.plan, cells.first, target)
        inside = np.flatnonzero(_inside(stage.plan, cells.codes, target))
        assert not inside.size or (low <= inside[0] and inside[-1] < high)
        narrow += high - low < len(cells.codes)
    assert narrow > errors.size / 4


def test_a_place_has_the_categories_of_its_table_and_of_no_other() -> None:
    plan = searched(1)[1].plan
    for number, table in enumerate(plan.tables):
        grid = table.places()
        for place in range(-3, plan.cells + 3):
            found = table.categories(place)
            own = 0 <= place < plan.cells and plan.table_of_cell[place] == number
            assert (found is not None) == own
            if found is not None:
                assert grid[found] == place
