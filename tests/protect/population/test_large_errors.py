"""Few sweeps over very many cells go on until no error is large: by counted sweeps, within the same rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lustrum.protect.population import public
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.search import run as runs
from lustrum.protect.population.search.layout import KINDS
from lustrum.protect.population.search.plan import plan_tables
from lustrum.protect.population.search.run import SearchProblem, SearchState, search
from lustrum.protect.population.search.stages import ErrorCost, Stage
from lustrum.runtime.stop import Stopped, stopping
from protect.population.worlds import KEY, cells_of, dense, town

SIZES = (12, 6, 5, 4)
FLAT = (ErrorCost(1), ErrorCost(1), ErrorCost(1), ErrorCost(1))


def steep(most: int) -> tuple[ErrorCost, ...]:
    """Costs that rise steeply just below a largest error."""
    return tuple(ErrorCost(q, 0, 50_000, most - 1) for q in (20, 200, 800, 12))


def crowd(seed: int, sizes: tuple[int, ...] = SIZES, mean: float = 0.8) -> Any:
    """People of a town, most of them alone in their cell."""
    rng = np.random.default_rng(seed)
    return cells_of(town(sizes, zeros=False), rng.poisson(mean, sizes))


def stages_of(cells: Any, most: int, share: float = 1.0) -> tuple[SearchProblem, list[Stage]]:
    """A short search that leaves errors larger than ``most``, and two stages that go on to the end.

    The first of them looks near only.
    """
    plan = plan_tables(cells.dataset, 2, extra_tables=40)
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=0.2).problem
    short = Stage(plan, 1, 0.5, 0.5, FLAT)
    near = Stage(plan, 8, 0.002, 0.002, steep(most), beyond=most, most=share, to_the_end=True)
    return problem, [short, near, replace(near, sweeps=4, near=16, rings=32, walk=400)]


def largest(plan: Any, errors: Any) -> int:
    """The largest error of all tables that cost something."""
    return int(np.abs(errors[plan.layout.cell_kind < KINDS.index("single")]).max())


def test_errors_that_few_sweeps_leave_are_taken_away_under_every_key() -> None:
    before, after = [], []
    for seed in range(8):
        problem, stages = stages_of(crowd(seed), 6, share=1 / 4)
        left = search(problem, stages[:1], seed, workers=1)
        found = search(problem, stages, seed, workers=1)
        before.append(largest(stages[0].plan, left.errors))
        after.append(largest(stages[0].plan, found.errors))
    assert min(before) > 6, before
    assert max(after) <= 6, after


def test_a_file_with_very_many_codes_keeps_the_largest_error_that_the_method_aims_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells = crowd(3, (40, 9, 4, 3, 2), 0.5)
    method = ProtectedPopulation(sweeps=1, extra_tables=20)
    plain = method.protect(cells, KEY)
    assert plain.agency.over()["largest"] > 10
    assert plain.public.search == public.SEARCH
    monkeypatch.setattr(public, "MANY_CODES", 40)
    closer = method.protect(cells, KEY)
    assert closer.agency.over()["largest"] <= 10
    assert closer.agency.over()["mean"] < 1.05 * plain.agency.over()["mean"]
    assert closer.public.search == public.SEARCH_OF_MANY_CODES
    monkeypatch.setattr(public, "MANY_CODES", 41)
    again = method.protect(cells, KEY)
    assert np.array_equal(again.cells.counts, plain.cells.counts)


def test_readers_learn_no_more_of_a_file_that_goes_on_to_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Transitions, empty cells behind a shown 3, and how often a row names an attribute stay as they were."""
    cells = crowd(3, (40, 9, 4, 3, 2), 0.5)
    method = ProtectedPopulation(sweeps=1, extra_tables=20)
    plain = method.protect(cells, KEY).agency
    monkeypatch.setattr(public, "MANY_CODES", 40)
    closer = method.protect(cells, KEY).agency
    assert closer.transitions != plain.transitions
    assert closer.rounded_up() == pytest.approx(plain.rounded_up(), abs=0.01)
    assert closer.empty_share >= max(0.1, plain.empty_share - 0.01)
    judged = [
        (x, y) for x, y in zip(plain.attributes, closer.attributes, strict=True) if x.people >= 200
    ]
    assert len(judged) >= 4
    assert all(y.named <= x.named + 0.02 and y.gain <= x.gain + 0.02 for x, y in judged)


def test_where_no_error_is_large_nothing_moves() -> None:
    problem, stages = stages_of(crowd(1), 6)
    short = search(problem, stages[:1], 5, workers=1)
    bound = largest(stages[0].plan, short.errors)
    for beyond, same in ((bound, True), (bound - 1, False)):
        ends = [replace(stage, beyond=beyond) for stage in stages[1:]]
        found = search(problem, [stages[0], *ends], 5, workers=1)
        assert np.array_equal(found.up, short.up) is same


def test_somebody_may_stop_the_end_and_go_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public, "MANY_CODES", 40)
    cells = crowd(3, (40, 9, 4, 3, 2), 0.5)
    method = ProtectedPopulation(sweeps=1, extra_tables=20)
    whole = method.protect(cells, KEY)
    state = tmp_path / "search.npz"
    kept: list[int] = []
    plain = runs.SearchState

    def noted(sweeps: int, *words: Any) -> SearchState:
        kept.append(sweeps)
        return plain(sweeps, *words)

    monkeypatch.setattr(runs, "SearchState", noted)
    # The first two sweeps are those of a search that does not go on to the end.
    with stopping(lambda: len(kept) > 2), pytest.raises(Stopped):
        method.protect(cells, KEY, state=state)
    assert kept == [1, 2, 3]
    resumed = method.protect(cells, KEY, state=state)
    assert np.array_equal(dense(resumed.cells), dense(whole.cells))
    assert resumed.public == whole.public
    assert not state.exists()
