"""Few sweeps over very many cells go on until no error is large: by counted sweeps, within the same rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.protect.population import public
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.search import lanes
from lustrum.protect.population.search import run as runs
from lustrum.protect.population.search.exchanges import UP_COUNTS
from lustrum.protect.population.search.lanes import working_together
from lustrum.protect.population.search.large_errors import visited_to_end
from lustrum.protect.population.search.layout import KINDS, plan_tables
from lustrum.protect.population.search.run import (
    SearchProblem,
    SearchState,
    _errors,
    _laid_out,
    _tally,
    search,
)
from lustrum.protect.population.search.stages import ErrorCost, Stage
from lustrum.protect.population.search.walk import _inside
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
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


@settings(max_examples=examples(8, 60), deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=72, max_size=72),
    st.integers(0, 2**63),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.2]),
)
def test_every_cell_stays_at_one_of_its_two_numbers_and_moves_keep_their_rules(
    values: list[int], seed: int, most: int, share: float
) -> None:
    cells = cells_of(town((6, 4, 3), zeros=False), np.array(values).reshape(6, 4, 3))
    plan = plan_tables(cells.dataset, 2, extra_tables=2)
    made = prepare(cells, KEY, base=3, small_only=False, empty_share=share)
    problem = made.problem
    end = Stage(plan, 3, 0.01, 0.01, steep(most + 1), beyond=most + 1, to_the_end=True, walk=30)
    found = search(problem, [Stage(plan, 1, 0.5, 0.5, FLAT), end], seed, workers=1)
    shown = made.shown.copy()
    shown[problem.movable] = problem.low + 3 * found.up
    true = made.every.counts
    assert (shown % 3 == 0).all()
    assert (np.abs(shown - true) < np.where(true > 0, 3, 4)).all()
    assert not shown[(true == 0) & ~problem.movable].any()
    laid, order = _laid_out(problem, plan)
    start = _tally(problem, laid)
    laid.up[:] = found.up[order]
    tally = _tally(problem, laid)
    assert tally[0] <= max(0, start[0]), "enough of the smallest numbers are empty cells"
    up = tally[UP_COUNTS:]
    assert ((laid.least_up <= up) & (up <= laid.most_up)).all()
    assert np.array_equal(found.errors, _errors(problem, laid, order, plan))


def test_where_no_error_is_large_nothing_moves_and_no_sweep_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem, stages = stages_of(crowd(1), 6)
    short = search(problem, stages[:1], 5, workers=1)
    bound = largest(stages[0].plan, short.errors)
    made: list[int] = []
    plain = runs._sweep

    def counted(*words: Any) -> int:
        made.append(plain(*words))
        return made[-1]

    monkeypatch.setattr(runs, "_sweep", counted)
    ends = [replace(stage, beyond=bound) for stage in stages[1:]]
    said: list[float] = []
    with reporting_progress(lambda _step, share: said.append(share)):
        still = search(problem, [stages[0], *ends], 5, workers=1)
    assert np.array_equal(still.up, short.up)
    assert (made[0] > 0, made[1:]) == (True, [0, 0])
    assert said[-1] == 1.0
    made.clear()
    ends = [replace(stage, beyond=bound - 1) for stage in stages[1:]]
    search(problem, [stages[0], *ends], 5, workers=1)
    assert 0 < made[1] < made[0]
    assert made[-1] == 0


def test_sweeps_are_counted_where_large_errors_cannot_be_taken_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is within a largest error of 0: all sweeps and all steps are used up, and no more."""
    problem, stages = stages_of(crowd(2), 1)
    stages = [replace(stage, beyond=min(stage.beyond, 1)) for stage in stages]
    made: list[int] = []
    plain = runs._sweep
    monkeypatch.setattr(runs, "_sweep", lambda *words: made.append(plain(*words)) or made[-1])
    steps: list[float] = []
    walk = runs.walk

    def counted(*words: Any) -> None:
        walk(*words[:-1], steps.append)

    monkeypatch.setattr(runs, "walk", counted)
    short = [stages[0], replace(stages[1], beyond=1), replace(stages[2], beyond=1, walk=7)]
    found = search(problem, short, 5, workers=1)
    assert largest(stages[0].plan, found.errors) > 1
    assert len(made) == 1 + 8 + 4
    assert len(steps) == 7


def test_cells_to_visit_are_those_inside_large_errors_and_of_many_those_of_some_categories() -> (
    None
):
    problem, stages = stages_of(crowd(4), 6)
    stage = stages[1]
    plan = stage.plan
    cells, order = _laid_out(problem, plan)
    errors = _errors(problem, cells, order, plan)
    kinds = plan.layout.cell_kind
    assert {KINDS.index("extra"), KINDS.index("single")} <= set(kinds.tolist())
    majors = np.random.default_rng(1).permutation(np.flatnonzero(np.diff(cells.first)))
    with working_together(2) as together:
        for beyond in (3, 6, int(np.abs(errors).max())):
            some = replace(stage, beyond=beyond)
            far = np.flatnonzero((np.abs(errors) > beyond) & (kinds < KINDS.index("single")))
            inside = np.zeros(len(cells.codes), dtype=bool)
            for target in far:
                inside |= _inside(plan, cells.codes, int(target))
            found = visited_to_end(some, 0, cells, errors, majors, together)
            assert np.array_equal(found > 0, inside)
        single = errors.copy()
        single[kinds != KINDS.index("single")] = 0
        assert not visited_to_end(
            replace(stage, beyond=0), 0, cells, single, majors, together
        ).any()
        # Of many cells those of the categories whose turn it is are visited first, until there are enough.
        for beyond, part, sweep in ((3, 1 / 5, 0), (6, 1 / 5, 3), (6, 1 / 40, 41)):
            some = replace(stage, beyond=beyond, most=part)
            share = visited_to_end(some, sweep, cells, errors, majors, together)
            turns = round(1 / part)
            due = [major for major in majors if major % turns == sweep % turns]
            in_turn = [*due, *(major for major in majors if major % turns != sweep % turns)]
            most = int(part * len(cells.codes))
            own = np.zeros(len(cells.codes), dtype=bool)
            others = own.copy()
            for target in np.flatnonzero(
                (np.abs(errors) > beyond) & (kinds < KINDS.index("single"))
            ):
                levels = plan.tables[plan.table_of_cell[target]].levels
                inside = _inside(plan, cells.codes, int(target))
                if any(level.variable == plan.major and level.finest for level in levels):
                    own |= inside
                else:
                    others |= inside
            assert own.any()
            assert (others & ~own).any()
            expected = first_categories(own, cells.first, in_turn, most)
            expected |= first_categories(others & ~own, cells.first, in_turn, most)
            assert np.array_equal(share > 0, expected)


def first_categories(marked: Any, first: Any, majors: Any, most: int) -> Any:
    """The marked cells of one category after the other, until there are enough."""
    taken = np.zeros(marked.size, dtype=bool)
    for major in majors:
        if taken.sum() >= most:
            break
        part = slice(first[major], first[major + 1])
        taken[part] = marked[part]
    return taken


def test_the_end_gives_the_same_bytes_in_parts_and_on_any_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "_LANE_CELLS", 64)
    problem, stages = stages_of(crowd(5), 3, share=1 / 4)
    states: list[SearchState] = []

    def keep(state: SearchState) -> None:
        states.append(SearchState(state.sweeps, state.word, state.up.copy(), state.fields.copy()))

    found = search(problem, stages, 9, keep=keep, workers=1)
    assert len(states) > 3
    for state in states:
        again = search(problem, stages, 9, resume=state, workers=2)
        assert np.array_equal(again.up, found.up)
        assert np.array_equal(again.errors, found.errors)


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


@pytest.mark.parametrize(
    ("sweeps", "codes", "version"),
    [
        (3, public.MANY_CODES, public.SEARCH_OF_MANY_CODES),
        (7, 190_000, public.SEARCH_OF_MANY_CODES),
        (3, public.MANY_CODES - 1, public.SEARCH),
        (8, 190_000, public.SEARCH),
    ],
)
def test_the_version_of_the_search_follows_from_sweeps_and_codes(
    sweeps: int, codes: int, version: int
) -> None:
    assert public.search_version(sweeps, codes) == version
