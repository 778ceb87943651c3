"""The search: costs never rise without heat, errors are kept exactly, and a break changes nothing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.public import coarse_error, coarse_share
from lustrum.protect.population.search import lanes
from lustrum.protect.population.search.forces import set_forces
from lustrum.protect.population.search.kernels import all_fields
from lustrum.protect.population.search.layout import plan_tables
from lustrum.protect.population.search.levels import controlled_levels
from lustrum.protect.population.search.run import SearchState, _errors, _laid_out, _visited, search
from lustrum.protect.population.search.stages import ErrorCost, Stage
from lustrum.runtime.stop import Stopped, stopping
from protect.population.worlds import KEY, cells_of, dense, town


def crowd(seed: int = 1):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    return cells_of(town((12, 6, 5, 4), zeros=False), rng.poisson(0.8, (12, 6, 5, 4)))


@pytest.mark.parametrize("several", [1, 3])
def test_without_heat_no_sweep_makes_the_cost_larger_and_errors_stay_exact(
    several: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several lanes too: their moves are made one after the other in the end."""
    monkeypatch.setattr(lanes, "_LANES", several)
    monkeypatch.setattr(lanes, "_LANE_CELLS", 1)
    monkeypatch.setattr(lanes, "_ROUNDS", 2)
    cells = crowd()
    plan = plan_tables(cells.dataset, 3, (("v0:half", "v1", "v2", "v3"),))
    prepared = prepare(cells, KEY, base=3, small_only=False, empty_share=0.0)
    kinds = (ErrorCost(10, 0, 70, 3), ErrorCost(50, 1, 100, 4), ErrorCost(90, 2), ErrorCost(1))
    stage = Stage(plan, 6, 1e-12, 1e-12, kinds)
    true = dense(cells)
    problem = prepared.problem
    order = np.lexsort(problem.codes[plan.rows()])
    costs = []

    def plain_errors(up: np.ndarray) -> np.ndarray:
        """Every table added up from a dense array, without the layout's own arithmetic."""
        shown = dense(prepared.every)
        at = tuple(problem.codes[:, order].astype(np.intp))
        shown[at] = problem.low[order] + 3 * up
        names = [v.name for v in cells.dataset.variables]
        errors = np.zeros(plan.cells, dtype=np.int64)
        for table in plan.tables:
            error = shown - true
            axes = {level.variable: level for level in table.levels}
            for place in reversed(range(len(names))):
                if names[place] in axes:
                    level = axes[names[place]]
                    summed = np.zeros((*error.shape[:place], level.size, *error.shape[place + 1 :]))
                    for code, group in enumerate(level.group_of):
                        summed[(slice(None),) * place + (group,)] += error.take(code, axis=place)
                    error = summed
                else:
                    error = error.sum(axis=place)
            order_now = [n for n in names if n in axes]
            wanted = [order_now.index(level.variable) for level in table.levels]
            errors[table.places().ravel()] = np.transpose(error, wanted).ravel()
        return errors

    def keep(state: SearchState) -> None:
        e = plain_errors(state.up.astype(np.int64))
        total = 0
        for table in plan.tables:
            error = np.abs(e[table.places()])
            if table.by_agency:
                total += (90 * error**2 + 2 * error**4).sum()
            elif table.finest:
                total += (50 * error**2 + error**4 + 100 * np.maximum(error - 4, 0) ** 2).sum()
            else:
                total += (10 * error**2 + 70 * np.maximum(error - 3, 0) ** 2).sum()
        costs.append(int(total))

    found = search(problem, [stage], 1, keep=keep)
    assert all(b <= a for a, b in pairwise(costs))
    assert costs[-1] < costs[0]
    assert (found.moves[:, 1] > 0).all(), "flips, swaps and exchanges are all tried"
    assert np.array_equal(found.errors, plain_errors(found.up[order].astype(np.int64)))


def test_a_search_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    cells, method = crowd(), ProtectedPopulation(sweeps=6)
    whole = method.protect(cells, KEY)
    state = tmp_path / "search.npz"
    with stopping(state.exists), pytest.raises(Stopped):
        method.protect(cells, KEY, state=state)
    assert state.exists()
    assert state.stat().st_mode & 0o077 == 0
    steps: list[tuple[str, float]] = []
    resumed = method.protect(cells, KEY, state=state, progress=lambda *said: steps.append(said))
    told = [share for step, share in steps if step == "protecting"]
    assert told[0] > 1 / 9
    assert told == sorted(told)
    assert not state.exists()
    for name in ("codes", "counts"):
        assert np.array_equal(getattr(resumed.cells, name), getattr(whole.cells, name))
    assert resumed.public == whole.public


def test_a_state_of_other_records_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "search.npz"
    method = ProtectedPopulation(sweeps=6)
    with stopping(state.exists), pytest.raises(Stopped):
        method.protect(crowd(), KEY, state=state)
    with pytest.raises(InputError, match="other records"):
        method.protect(crowd(2), KEY, state=state)
    with pytest.raises(InputError, match="other records"):
        method.protect(crowd(), b"another key of 32 bytes, or more", state=state)
    state.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot be read"):
        method.protect(crowd(), KEY, state=state)


def test_a_function_of_another_variable_is_a_level_of_that_variable() -> None:
    from lustrum.demo.descriptions import description_path
    from lustrum.tabulate import read_description

    demo = read_description(description_path("demo"))
    levels = controlled_levels(demo)
    assert "region" not in levels
    assert [level.size for level in levels["area"]] == [158, 14, 2]
    plan = plan_tables(demo)
    assert len(plan.tables) == 995
    assert plan.cells == 832_927
    finest = plan_tables(demo, finest_only=True)
    assert len(finest.tables) == 151
    assert sum(t.places().size for t in finest.tables if t.finest) == 261_818
    places = np.concatenate([table.places().ravel() for table in plan.tables])
    assert np.array_equal(np.sort(places), np.arange(plan.cells))


def test_extra_tables_are_those_with_the_fewest_cells() -> None:
    dataset = town((9, 4, 3, 2, 2), zeros=False)
    every = plan_tables(dataset, 2, extra_tables=1000)
    sizes = {t.label: 4 ** (len(t.levels) - 3) * t.places().size for t in every.tables if t.extra}
    # All tables of three variables and more at finest levels; the halves of the first one are hardly coarser.
    assert len(sizes) == 10 + 5 + 1
    few = plan_tables(dataset, 2, extra_tables=7)
    taken = [sizes[t.label] for t in few.tables if t.extra]
    assert sorted(taken) == sorted(sizes.values())[:7]
    places = np.concatenate([table.places().ravel() for table in every.tables])
    assert np.array_equal(np.sort(places), np.arange(every.cells))


def test_the_last_stage_moves_nothing_but_lowers_large_errors() -> None:
    cells = crowd()
    plan = plan_tables(cells.dataset, 2, extra_tables=5)
    prepared = prepare(cells, KEY, base=3, small_only=False, empty_share=0.0)
    costs = (ErrorCost(1, 0, 100, 4),) * 4
    stage = Stage(plan, 4, 1e-12, 1e-12, costs, beyond=5)
    before = search(prepared.problem, [Stage(plan, 0, 1, 1, costs)], 1)
    after = search(prepared.problem, [stage], 1)
    few = [t for t in plan.tables if not t.extra]
    largest = [max(np.abs(f.errors[t.places()]).max() for t in few) for f in (before, after)]
    assert largest[1] < largest[0]
    again = search(prepared.problem, [stage], 1)
    assert np.array_equal(after.up, again.up)
    still = Stage(plan, 4, 1e-12, 1e-12, costs, beyond=int(largest[0]))
    assert np.array_equal(search(prepared.problem, [still], 1).up, before.up)


def test_a_repair_visits_cells_in_large_errors_and_of_many_an_even_share() -> None:
    cells = crowd()
    plan = plan_tables(cells.dataset, 2, extra_tables=5)
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=0.0).problem
    laid, order = _laid_out(problem, plan)
    errors = _errors(problem, laid, order, plan)
    # All records lie in the total, which would hide the others.
    errors[plan.tables[0].places()] = 0
    column = {name: place for place, name in enumerate(plan.variables)}
    expected = np.zeros(laid.up.size, dtype=np.bool_)
    for table in plan.tables:
        codes = [level.group_of[laid.codes[:, column[level.variable]]] for level in table.levels]
        if not table.extra:
            expected |= np.abs(errors[table.places()][tuple(codes)]) > 20
    assert 0.1 * expected.size < expected.sum() < 0.9 * expected.size, expected.sum()
    costs = (ErrorCost(1),) * 4
    visited = []
    for most in (1.0, 0.01):
        stage = Stage(plan, 1, 1, 1, costs, beyond=20, most=most)
        visited.append(_visited(stage, laid.codes, errors, np.array([5], dtype=np.uint64)) > 0)
    assert np.array_equal(visited[0], expected)
    assert not (visited[1] & ~expected).any()
    assert 1 <= visited[1].sum() <= 0.01 * expected.size
    far = Stage(plan, 1, 1, 1, costs, beyond=10**6)
    assert not _visited(far, laid.codes, errors, np.array([5], dtype=np.uint64)).any()


@pytest.mark.parametrize("people", [0.02, 1.5])
def test_forces_on_a_cell_are_what_a_step_up_and_a_step_down_cost(people: float) -> None:
    """Few cells in a slice are looked up one by one, many by sums over the slice; both are exact."""
    rng = np.random.default_rng(3)
    sizes = (5, 9, 4, 3, 2)
    cells = cells_of(town(sizes, zeros=False), rng.poisson(people, sizes))
    plan = plan_tables(cells.dataset, 3, extra_tables=4)
    stage = Stage(
        plan, 1, 1, 1, (ErrorCost(10, 0, 70, 3), ErrorCost(50, 1), ErrorCost(90, 2), ErrorCost(3))
    )
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=0.1).problem
    laid, order = _laid_out(problem, plan)
    errors = _errors(problem, laid, order, plan)
    costs = stage.costs_of(3)
    forces = np.empty((errors.size, 2), dtype=np.int32)
    set_forces(errors, plan.layout.cell_kind, costs.force, forces, 0, errors.size)
    fields = np.full((laid.up.size, 2), np.nan, dtype=np.float32)
    slices = np.arange(laid.slice_first.size - 1)
    all_fields(plan.layout, laid.codes, laid.slice_first, slices, forces, fields)
    up, down = np.zeros(laid.up.size), np.zeros(laid.up.size)
    column = {name: place for place, name in enumerate(plan.variables)}
    for table in plan.tables:
        cost = stage.costs[2 if table.by_agency else 3 if table.extra else 1 if table.finest else 0]
        codes = [level.group_of[laid.codes[:, column[level.variable]]] for level in table.levels]
        error = errors[table.places()][tuple(codes)] * np.ones(laid.up.size, dtype=np.int64)
        up += cost.of(error + 3) - cost.of(error)
        down += cost.of(error - 3) - cost.of(error)
    assert np.allclose(fields[:, 0], (up - down) / 2, rtol=1e-6)
    assert np.allclose(fields[:, 1], (up + down) / 2, rtol=1e-6)


def test_stages_share_the_order_of_variables() -> None:
    """The first variable has more levels, the third more codes: which of them is outer must not change."""
    dataset = town((5, 9, 7, 2, 2))
    assert plan_tables(dataset).variables == plan_tables(dataset, finest_only=True).variables


def test_an_exchange_that_is_given_up_early_never_makes_the_cost_larger() -> None:
    cells = crowd()
    plan = plan_tables(cells.dataset, 3)
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=0.0).problem
    costs = (ErrorCost(10), ErrorCost(50), ErrorCost(50), ErrorCost(10))
    totals = []
    for sweeps in range(3):
        stage = Stage(plan, sweeps, 1e-12, 1e-12, costs, lost=0.0)
        errors = search(problem, [stage], 1).errors
        kinds = plan.layout.cell_kind
        totals.append(sum(int(c.of(errors[kinds == k]).sum()) for k, c in enumerate(costs)))
    assert totals[0] > totals[1] >= totals[2]


def test_own_tables_are_checked_in_one_sentence() -> None:
    dataset = town((4, 3, 2))
    with pytest.raises(InputError, match="twice"):
        plan_tables(dataset, 2, (("v0", "v0:half"),))
    plan = plan_tables(dataset, 1, (("v0:half", "v1"), ("v1",)))
    own = {frozenset(t.label.split(" x ")) for t in plan.tables if t.by_agency}
    assert own == {frozenset({"v0:half", "v1"}), frozenset({"v1"})}


def test_public_figures_are_coarse_and_never_certain() -> None:
    keys = [bytes([k]) * 16 for k in range(60)]
    assert {coarse_share(0.0, k, "x") for k in keys} == {0.05}
    assert {coarse_share(1.0, k, "x") for k in keys} == {0.95}
    assert {coarse_share(0.52, k, "x") for k in keys} == {0.5, 0.55}
    errors = {coarse_error(2.2, k, "x") for k in keys}
    assert errors == {2.5, 3.0}
    assert min(coarse_error(0.0, k, "x") for k in keys) == 0.5
