"""One deviation stands for every task that it fulfils, and for no other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lustrum.protect.suppression import ContributorView, SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import ProgramAttacks
from lustrum.protect.suppression.search.attacks.tasks import SharedMoves, Tasks
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, protect_all

SIDE = 3
CELLS = SIDE**3


def cube(seed: int) -> SuppressionProblem:
    """A table of 2 x 2 x 2 cells with its margins, and contributors who know some of them."""
    luck = np.random.default_rng(seed)
    values = np.zeros((SIDE,) * 3, dtype=np.int64)
    values[:2, :2, :2] = luck.integers(1, 30, (2, 2, 2))
    for axis in range(3):
        index: list[object] = [slice(None)] * 3
        index[axis] = 2
        values[tuple(index)] = values.sum(axis=axis)  # type: ignore[index]
    number = np.arange(CELLS).reshape((SIDE,) * 3)
    lines = [np.moveaxis(number, axis, 2).reshape(-1, SIDE) for axis in range(3)]
    relations = [(int(line[2]), line[:2].tolist()) for own in lines for line in own]
    flat = values.ravel()
    primary = np.sort(luck.choice(number[:2, :2, :2].ravel(), 3, replace=False))
    views = []
    for place in range(3):
        cells = np.sort(luck.choice(CELLS, 4, replace=False))
        low = flat[cells] * luck.integers(0, 3, 4) // 2
        known = luck.random(4) < 0.3
        low, high = np.where(known, flat[cells], np.minimum(low, flat[cells])), 10**6
        most = np.where(known, flat[cells], high)
        views.append(ContributorView(f"holding {place}", cells, low, most))
    level = np.maximum(flat[primary] // 5, 1)
    return SuppressionProblem.of(
        flat, relations, primary, level, level, sliding=level * 3, views=views
    )


def reach(tasks: Tasks, task: int, moves: list[int]) -> Fraction:
    """How far the cell of a task goes in its direction, by the largest multiple within all bounds."""
    problem, view = tasks.problem, int(tasks.view[task])
    best = Fraction(0)
    for way in (1, -1):
        times = None
        for cell, move in enumerate(moves):
            low, high = int(problem.low[cell]), int(problem.high[cell])
            if view >= 0:
                own = problem.views[view]
                for k in np.flatnonzero(own.cells == cell).tolist():
                    low, high = max(low, int(own.low[k])), min(high, int(own.high[k]))
            value = int(problem.values[cell])
            room = high - value if way * move > 0 else value - low
            if move:
                most = Fraction(room, abs(move))
                times = most if times is None else min(times, most)
        if times is not None:
            end = times * way * moves[int(tasks.cell[task])] * int(tasks.sign[task])
            best = max(best, end)
    return best


@pytest.mark.parametrize("seed", range(8))
def test_a_deviation_stands_for_the_tasks_it_fulfils_within_the_bounds_of_each_attacker(
    seed: int,
) -> None:
    problem = cube(seed)
    tasks = Tasks.of(problem)
    assert set(tasks.view.tolist()) > {-1}
    shared = SharedMoves(tasks)
    luck = np.random.default_rng(100 + seed)
    seen = set()
    for _ in range(6):
        inner = luck.integers(-2, 3, (2, 2, 2)) * (luck.random((2, 2, 2)) < 0.5)
        moved = np.zeros((SIDE,) * 3, dtype=np.int64)
        moved[:2, :2, :2] = inner
        for axis in range(3):
            index: list[object] = [slice(None)] * 3
            index[axis] = 2
            moved[tuple(index)] = moved.sum(axis=axis)  # type: ignore[index]
        moves = moved.ravel()
        cells = np.flatnonzero(moves)
        found = shared.fulfilled(cells, moves[cells].astype(np.float64))
        for task in range(len(tasks)):
            enough = tasks.sign[task] != 0 and reach(tasks, task, moves.tolist()) >= int(
                tasks.level[task]
            )
            assert found[task] == enough
            seen.add(bool(enough))
    assert seen == {False, True}


@pytest.mark.parametrize("seed", range(4))
def test_shared_deviations_save_programs_and_change_no_pattern(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = cube(seed)
    tasks = Tasks.of(problem)

    def pattern() -> tuple[list[bool], int]:
        attacks = ProgramAttacks(tasks)
        state = WitnessedPattern(attacks, problem.fixed)
        protect_all(state, problem.cost, np.arange(len(tasks)))
        assert not state.open.size
        for task, cells in enumerate(state.witness):
            assert state.suppressed[cells].all()
            assert tasks.cell[task] in cells
        return state.suppressed.tolist(), attacks.steps

    fewer = pattern()
    monkeypatch.setattr(WitnessedPattern, "share", lambda _: None)
    alone = pattern()
    assert fewer[0] == alone[0]
    assert fewer[1] < alone[1]
