"""Small searches of every kind: what they find is allowed, its errors are true, and its bytes stay as they are.

The bytes belong to a version of the search: a bundle says which version made it, and a second release repeats
the first. Where one of these digests changes, so must ``SEARCH`` in ``lustrum.protect.population.public``.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, groupby, pairwise, product
from math import ceil, floor, inf, prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.model import Dataset, InputError, QueryError
from lustrum.model.finest import FinestCells
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.public import SEARCH
from lustrum.protect.population.search import forces as forces_module
from lustrum.protect.population.search import lanes, run
from lustrum.protect.population.search import layout as layouts
from lustrum.protect.population.search import walk as walk_module
from lustrum.protect.population.search.chosen import (
    all_tables,
    choose_extra_tables,
    nodes_apart,
)
from lustrum.protect.population.search.forces import add_errors, slice_fields
from lustrum.protect.population.search.kernels import places
from lustrum.protect.population.search.layout import KINDS as TABLE_KINDS
from lustrum.protect.population.search.layout import TablePlan, plan_tables
from lustrum.protect.population.search.levels import (
    ControlledLevel,
    controlled_levels,
    dependents,
    find_level,
)
from lustrum.protect.population.search.moves import moved_places
from lustrum.protect.population.search.replay import follow
from lustrum.protect.population.search.run import (
    SearchedPopulation,
    SearchProblem,
    SearchState,
    _beyond,
    _classes,
    _errors,
    _laid_out,
    _place_type,
    _sorted,
    _tally,
    _visited,
    _visits,
    search,
)
from lustrum.protect.population.search.stages import ErrorCost, Stage, _exponential_quantiles
from lustrum.protect.population.start import cell_numbers
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
from protect.population.test_start_by_hand import AGAIN
from protect.population.worlds import KEY, cells_of, town

KINDS = (ErrorCost(10, 0, 70, 3), ErrorCost(50, 1, 100, 4), ErrorCost(90, 2), ErrorCost(4))
WALL = (
    ErrorCost(20, 0, 10**6, 2),
    ErrorCost(50, 1, 10**6, 2),
    ErrorCost(90, 2, 10**6, 2),
    ErrorCost(5),
)


def counted(sizes: tuple[int, ...], mean: float, seed: int, zeros: bool = True) -> FinestCells:
    rng = np.random.default_rng(seed)
    return cells_of(town(sizes, zeros), rng.poisson(mean, sizes), seed)


def refined() -> tuple[FinestCells, FinestCells]:
    """A release of three by two cells, and the same people by two more variables."""
    rng = np.random.default_rng(8)
    counts = rng.poisson(25.0, (3, 2))
    parts = rng.multinomial(counts.ravel(), [1 / 12] * 12).reshape(3, 2, 4, 3)
    keys = rng.integers(1, 2**61, parts.shape).astype(np.uint64) * (parts > 0)
    earlier = town((3, 2), zeros=False)
    at = np.nonzero(counts)
    low = counts[at] // 3 * 3
    shown = low + 3 * ((counts[at] > low) & (np.arange(low.size) % 2 == 0))
    memory = FinestCells(earlier, np.stack(at), shown, keys.sum(axis=(2, 3))[at])
    at = np.nonzero(parts)
    return FinestCells(town((3, 2, 4, 3), zeros=False), np.stack(at), parts[at], keys[at]), memory


@dataclass(frozen=True)
class World:
    """A problem, the words of its plans and of its stages, and what becomes of it."""

    problem: SearchProblem
    dataset: Dataset
    plan: dict[str, Any]
    stages: tuple[dict[str, Any], ...]
    digest: str
    lanes: int = 1
    seed: int = 7

    def words(self) -> tuple[SearchProblem, list[Stage], int]:
        """What the search is given."""
        every = plan_tables(self.dataset, **self.plan)
        finest = plan_tables(
            self.dataset,
            self.plan["max_variables"],
            self.plan.get("agency_tables", ()),
            finest_only=True,
        )
        stages = [
            Stage(
                finest if w.get("finest") else every,
                **{"costs": KINDS, **{k: v for k, v in w.items() if k != "finest"}},
            )
            for w in self.stages
        ]
        return self.problem, stages, self.seed

    def searched(self, **words: Any) -> tuple[SearchedPopulation, list[SearchState]]:
        states: list[SearchState] = []

        def keep(state: SearchState) -> None:
            states.append(replace(state, up=state.up.copy(), fields=state.fields.copy()))

        words = {"workers": 1, **words}
        return search(*self.words(), keep=keep, **words), states


def world(cells: FinestCells, plan: dict[str, Any], *stages: dict[str, Any], **more: Any) -> World:
    words = {name: more.pop(name) for name in ("lanes", "seed", "digest") if name in more}
    prepared = prepare(cells, KEY, **{"base": 3, "small_only": False, "empty_share": 0.1, **more})
    return World(prepared.problem, cells.dataset, plan, stages, **words)


def sweeps(number: int, hot: float, cold: float, **more: Any) -> dict[str, Any]:
    return {"sweeps": number, "hot": hot, "cold": cold, **more}


FLAT = counted((8, 7), 1.5, 2)
SMALL = counted((4, 4, 3), 2.0, 3)
SPARSE = counted((8, 9, 8), 0.08, 4)
FIVE = counted((4, 2, 2, 3, 2), 0.7, 5)
LATER, MEMORY = refined()
OWN = (("v0:half", "v1", "v2"),)
WORLDS = {
    "flat": world(FLAT, {"max_variables": 2}, sweeps(2, 0.1, 0.02), digest="b4e174ebbe45d310"),
    "small": world(
        SMALL,
        {"max_variables": 2, "agency_tables": OWN, "extra_tables": 3},
        sweeps(1, 0.2, 0.1, finest=True, lost=3.0, near=2),
        sweeps(2, 0.05, 0.01),
        digest="95ea0dd50e179a1a",
    ),
    "sparse": world(
        SPARSE,
        {"max_variables": 3},
        sweeps(2, 0.05, 0.01, rings=2, near=3),
        base=4,
        empty_share=0.3,
        digest="3d6f169c028efc24",
    ),
    "lanes": world(
        FIVE,
        {"max_variables": 2, "agency_tables": OWN, "extra_tables": 4, "extra_cells": 16},
        sweeps(1, 0.1, 0.1, finest=True, lost=1.0),
        sweeps(2, 0.05, 0.01, lost=1.0),
        lanes=3,
        digest="1874bb49fb4e9226",
    ),
    "small counts": world(
        SMALL,
        {"max_variables": 3},
        sweeps(2, 0.3, 0.1),
        small_only=True,
        base=5,
        digest="aef49ac5f4345449",
    ),
    "tied": world(
        LATER,
        {"max_variables": 3},
        sweeps(2, 0.3, 0.1),
        sweeps(1, 0.1, 0.1, beyond=1, walk=20, costs=WALL),
        previous=MEMORY,
        digest="8631d9f9fc608c87",
    ),
    "held": world(
        SMALL,
        {"max_variables": 2},
        sweeps(2, 0.05, 0.02),
        held=np.sort(cell_numbers(SMALL.dataset, SMALL.codes)[::3]),
        digest="a77a0aea5266785b",
    ),
    "walk": world(
        counted((5, 5, 4), 1.0, 6),
        {"max_variables": 3, "extra_tables": 2},
        sweeps(1, 0.05, 0.05, costs=WALL),
        sweeps(2, 0.002, 0.002, costs=WALL, beyond=2, most=0.2, slack=inf, walk=60),
        sweeps(1, 0.002, 0.002, costs=WALL),
        digest="1b02dd2a14a6df58",
    ),
    "idle": world(
        counted((4, 3, 3), 1.5, 10),
        {"max_variables": 2},
        sweeps(1, 0.1, 0.1),
        sweeps(2, 0.05, 0.05, beyond=1000, walk=5),
        sweeps(1, 0.02, 0.02),
        digest="2c06162c55f9fd4f",
    ),
    "same costs": world(
        counted((4, 3, 3), 1.5, 9),
        {"max_variables": 2, "extra_tables": 2},
        sweeps(1, 0.1, 0.1),
        sweeps(2, 0.05, 0.02),
        sweeps(1, 0.01, 0.01, costs=WALL, beyond=2, walk=30),
        sweeps(1, 0.01, 0.01, costs=WALL),
        sweeps(1, 0.005, 0.005, costs=WALL),
        digest="752d7e4ca1fbdd17",
    ),
    "again": world(
        AGAIN[0],
        {"max_variables": 2},
        sweeps(3, 0.5, 0.2),
        previous=AGAIN[1],
        refresh=1.0,
        empty_share=0.45,
        lanes=2,
        digest="f19e00f2450dd198",
    ),
    "rule": world(
        counted((5, 4, 3), 0.8, 7),
        {"max_variables": 2},
        sweeps(3, 0.5, 0.2),
        empty_share=0.4,
        lanes=2,
        digest="10c16f04555d6e11",
    ),
}


@pytest.fixture(autouse=True)
def _words_that_overflow() -> Iterator[None]:
    """Without the compiler, words that overflow say so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
        yield


@pytest.fixture
def own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    one = WORLDS[request.param]
    monkeypatch.setattr(lanes, "_LANES", one.lanes)
    monkeypatch.setattr(lanes, "_LANE_CELLS", 1)
    monkeypatch.setattr(lanes, "_ROUNDS", 3)
    monkeypatch.setattr(lanes, "_PART", 16)
    return one


def true_errors(own: World, plan: TablePlan, up: np.ndarray) -> np.ndarray:
    """Every table added up cell by cell, without the arithmetic of the layout."""
    problem = own.problem
    change = own.problem.step * up.astype(np.int64) - problem.residue
    codes = np.concatenate([problem.codes, problem.fixed_codes], axis=1)
    change = np.concatenate([change, problem.fixed_up])
    row = {v.name: place for place, v in enumerate(own.dataset.variables)}
    errors = np.zeros(plan.cells, dtype=np.int64)
    filled = np.zeros(plan.cells, dtype=np.int64)
    for table in plan.tables:
        inside = np.zeros(table.shape, dtype=np.int64)
        at = [level.group_of[codes[row[level.variable]]] for level in table.levels]
        for place, by in zip(
            zip(*at, strict=True) if at else ((),) * change.size, change, strict=True
        ):
            inside[place] += by
        errors[table.places()] = inside
        filled[table.places()] += 1
    assert (filled == 1).all()
    return errors


@pytest.mark.parametrize("own", WORLDS, indirect=True)
def test_what_is_found_is_allowed_and_its_errors_are_true(own: World) -> None:
    problem = own.problem
    found, _ = own.searched()
    plan = plan_tables(own.dataset, **own.plan)
    assert np.array_equal(found.errors, true_errors(own, plan, found.up))
    assert (found.moves[:, 0] >= found.moves[:, 1]).all()
    assert found.moves[:, 1].sum() > 0
    # Parts of a kept number add up to it.
    for group in np.unique(problem.group[problem.group >= 0]):
        some = problem.group == group
        assert found.up[some].sum() == problem.up[some].sum()
    # Enough of the cells that show the smallest number are empty, or as few are missing as at the start.
    share, of = problem.empty_share

    def lack(up: np.ndarray) -> int:
        smallest = int((problem.low + problem.step * up == problem.step).sum())
        empty = int((problem.is_empty & up).sum())
        return share * (smallest + problem.fixed_smallest) - of * (empty + problem.fixed_empty)

    assert lack(found.up) <= max(0, lack(problem.up))


def test_a_large_base_has_many_classes_and_each_keeps_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lanes, "_LANES", 2)
    monkeypatch.setattr(lanes, "_LANE_CELLS", 1)
    one = world(
        counted((6, 5, 5), 6.0, 12),
        {"max_variables": 2},
        sweeps(1, 0.3, 0.3, near=4),
        base=8,
        digest="",
    )
    held = replace(one, problem=replace(one.problem, start_share=(1, 1)))
    problem, found = held.problem, held.searched()[0]
    plan = plan_tables(held.dataset, **held.plan)
    assert np.array_equal(found.errors, true_errors(held, plan, found.up))
    assert found.moves[:, 1].sum() > 0
    kind, least, most = _classes(problem)
    assert least.size == 14
    up = np.bincount(kind[(kind >= 0) & found.up], minlength=14)
    assert ((least <= up) & (up <= most)).all()


@pytest.mark.parametrize("walked", [False, True])
def test_a_free_cell_moves_no_cell_of_a_kept_sum(walked: bool) -> None:
    """Three corners of a rectangle may be free while the fourth belongs to a number that is kept."""
    one = WORLDS["walk"]
    cells = np.arange(one.problem.up.size)
    alone = cells % 4 == 0
    problem = replace(one.problem, group=np.where(alone, cells, -1))
    stages = (
        sweeps(1, 0.5, 0.5),
        sweeps(1, 0.002, 0.002, costs=WALL, beyond=1, walk=60),
    )
    some = replace(one, problem=problem, stages=stages[1:] if walked else stages[:1])
    found, _ = some.searched()
    assert np.array_equal(found.up[alone], problem.up[alone])
    assert (found.up[~alone] != problem.up[~alone]).any()


@pytest.mark.parametrize("own", WORLDS, indirect=True)
def test_the_bytes_of_a_search_belong_to_its_version(own: World) -> None:
    assert (SEARCH, digest_of(*own.searched())) == (8, own.digest)


def digest_of(found: SearchedPopulation, states: list[SearchState]) -> str:
    digest = hashlib.sha256()
    for array in (found.up, found.errors, found.moves):
        digest.update(np.ascontiguousarray(array).tobytes())
    for state in states:
        digest.update(f"{state.sweeps} {state.word}".encode())
        digest.update(state.up.tobytes() + state.fields.tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("own", ["lanes", "again", "rule"], indirect=True)
def test_lanes_hear_of_each_other_move_by_move_or_all_at_once(
    own: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[int] = []
    real = run.follow

    def noted(*words: Any) -> None:
        followed.append(int(words[4].written[0]))
        real(*words)

    monkeypatch.setattr(run, "follow", noted)
    for times, by_move in ((0, True), (10**9, False)):
        followed.clear()
        monkeypatch.setattr(lanes, "_FOLLOWED", times)
        assert digest_of(*own.searched()) == own.digest
        assert (sum(followed) > 0) == by_move


@pytest.mark.parametrize("own", ["walk", "lanes", "idle"], indirect=True)
def test_progress_rises_with_the_work_and_a_stop_is_heard_in_every_round(own: World) -> None:
    told: list[float] = []
    with reporting_progress(
        lambda step, share: told.append(share) if step == "protecting" else None
    ):
        found, _ = own.searched()
    plan = plan_tables(own.dataset, **own.plan)
    finest = plan_tables(
        own.dataset, own.plan["max_variables"], own.plan.get("agency_tables", ()), finest_only=True
    )
    work = [
        w["sweeps"] * len((finest if w.get("finest") else plan).tables) * w.get("most", 1.0)
        for w in own.stages
    ]
    ends = [
        (sum(work[:place]) + own_work * (sweep + 1) / w["sweeps"]) / sum(work)
        for place, (w, own_work) in enumerate(zip(own.stages, work, strict=True))
        for sweep in range(w["sweeps"])
    ]
    assert told == sorted(told)
    for end in ends:
        assert min(abs(share - end) for share in told) < 1e-9
    assert told[-1] == pytest.approx(1.0)
    assert 0 < told[0] <= ends[0] + 1e-9
    asked = []
    with stopping(lambda: bool(asked.append(1))):
        again, _ = own.searched()
    rounds = 3 if own.lanes > 1 else 1
    assert len(asked) >= rounds * sum(w["sweeps"] for w in own.stages if "beyond" not in w)
    left = iter([False] * min(3, len(asked) - 1))
    with stopping(lambda: next(left, True)), pytest.raises(Stopped):
        own.searched()
    assert np.array_equal(again.up, found.up)
    assert np.array_equal(search(*own.words(), workers=1).up, found.up), "nothing is kept"


@pytest.mark.parametrize(("beyond", "all_of_them"), [(1000, False), (1, True)])
def test_a_stage_to_the_end_ends_when_no_error_is_large(beyond: int, all_of_them: bool) -> None:
    """Without a large error nothing is visited; with many in few cells sweeps are used up."""
    one = WORLDS["small"]
    some = replace(
        one,
        stages=(
            sweeps(1, 0.1, 0.1),
            sweeps(3, 0.02, 0.01, beyond=beyond, to_the_end=True, walk=5),
            sweeps(1, 0.02, 0.01),
        ),
    )
    told: list[float] = []
    with reporting_progress(lambda step, share: told.append(share)):
        found, states = some.searched()
    assert [s.sweeps for s in states] == ([1, 2, 3, 4, 5] if all_of_them else [1, 5])
    assert told[-1] == pytest.approx(1.0)
    plan = plan_tables(one.dataset, **one.plan)
    assert np.array_equal(found.errors, true_errors(some, plan, found.up))
    # Where it ends early the last stage goes on from what the first one left.
    without = replace(some, stages=(some.stages[0],)).searched()[1]
    assert np.array_equal(states[0].up, without[0].up)
    # Cells in large errors, of extra tables too, are visited; others stay as they are.
    alone = replace(some, stages=(sweeps(1, 0.02, 0.02, beyond=beyond, to_the_end=True),))
    far = np.abs(true_errors(alone, plan, one.problem.up)) > beyond
    assert np.array_equal(alone.searched()[0].up, one.problem.up) != (all_of_them and far.any())


def test_progress_ends_at_the_whole_and_is_told_again_while_a_walk_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, ended = WORLDS["small"], set()
    for beyond in range(1, 8):
        first = sweeps(1, 0.3, 0.3)
        last = sweeps(4, 0.02, 0.01, costs=WALL, beyond=beyond, to_the_end=True)
        told: list[float] = []
        with reporting_progress(
            lambda step, share, told=told: told.append(share) if step == "protecting" else None
        ):
            states = replace(one, stages=(first, last)).searched()[1]
        assert told == sorted(told)
        assert told[-1] == pytest.approx(1.0)
        ended.add(len(states))
    assert len(ended) > 2, "at once, after some sweeps and not at all"
    told = []
    with reporting_progress(
        lambda step, share: told.append(share) if step == "protecting" else None
    ):
        replace(one, stages=(sweeps(1, 0.3, 0.3, beyond=1, walk=9, costs=WALL),)).searched()
    assert told == sorted(told)
    assert told.count(1.0) > 2
    asked: list[int] = []
    monkeypatch.setattr(run, "check_stop", lambda: asked.append(1))
    one.searched()
    assert len(asked) == sum(w["sweeps"] for w in one.stages)


def test_a_move_changes_the_places_that_are_listed_for_it() -> None:
    problem, stages, _ = WORLDS["flat"].words()
    plan = stages[-1].plan
    cells, _ = _laid_out(problem, plan)
    layout, codes = plan.layout, cells.codes
    at = {tuple(c): i for i, c in enumerate(codes.tolist())}
    seen: set[int] = set()
    for i, (a, b) in enumerate(codes.tolist()):
        for c, d in product(range(8), range(8)):
            j, k, m = at.get((c, b), -1), at.get((a, d), -1), at.get((c, d), -1)
            moves = [(i, -1, -1, -1), (i, j, -1, -1), (i, j, k, m)]
            for cs in moves if min(j, k, m) >= 0 and c != a and d != b else moves[:1]:
                by = np.zeros(len(codes), dtype=np.int32)
                for own, sign in zip(cs, (1, -1, -1, 1), strict=True):
                    by[own] += sign * (own >= 0)
                changed = np.zeros(plan.cells, dtype=np.int32)
                add_errors(plan, codes, by, changed)
                p = np.zeros(layout.variable_of.size, dtype=np.uint64)
                inner = np.empty(layout.table_offset.size, dtype=np.uint64)
                base = np.empty(layout.run_offset.size, dtype=np.uint64)
                places(layout, codes[i], p, inner, base)
                into = np.empty(4 * len(plan.tables), dtype=np.uint64)
                count = moved_places(layout, cells, inner, base, *map(np.int64, cs[:3]), into)
                assert set(np.flatnonzero(changed).tolist()) <= set(into[:count].tolist())
                seen |= {place for place, own in enumerate(cs) if own == 0}
                if 0 in cs[1:]:
                    lane = SimpleNamespace(
                        up=cells.up.copy(),
                        errors=np.zeros(plan.cells, np.int32),
                        forces=np.zeros((plan.cells, 2), np.int32),
                        cells=np.array([cs]),
                        written=np.array([1]),
                    )
                    first = SimpleNamespace(
                        up=lane.up ^ (by != 0),
                        errors=changed,
                        forces=np.stack([changed, -changed], axis=1),
                    )
                    plain = getattr(follow, "py_func", follow)
                    plain(layout, cells, first, lane, lane, len(plan.tables))
                    assert np.array_equal(lane.up, first.up)
                    assert np.array_equal(lane.errors, first.errors)
                    assert np.array_equal(lane.forces, first.forces)
        if i > 3 and {0, 1, 2, 3} <= seen:
            break
    assert {0, 1, 2} <= seen


def test_a_table_of_all_variables_in_pairs_shows_no_single_cell() -> None:
    pairs = [{"code": "p", "members": ["0", "1"]}, {"code": "q", "members": ["2", "3"]}]
    hierarchy = {"name": "h", "levels": [{"name": "pair", "groups": pairs}]}
    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "d"},
            "variables": [
                {"name": "a", "codes": ["0", "1", "2", "3"], "hierarchies": [hierarchy]},
                {"name": "b", "codes": ["x", "y", "z"]},
            ],
        }
    )
    plan = plan_tables(dataset, 2)
    kinds = {
        tuple(level.label for level in table.levels): set(
            plan.layout.cell_kind[table.places().ravel()].tolist()
        )
        for table in plan.tables
    }
    single = {TABLE_KINDS.index("single")}
    assert {frozenset(k) for k, v in kinds.items() if v == single} == {frozenset({"a", "b"})}
    assert {frozenset(k) for k in kinds} > {frozenset({"a:pair", "b"})}


@pytest.mark.parametrize(
    ("name", "searched"), [("lanes", False), ("small", False), ("lanes", True)]
)
def test_a_walk_looks_at_extra_tables_only_at_the_end(
    name: str, searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, stages, seed = WORLDS[name].words()
    plan = stages[-1].plan
    if searched:
        # What is left after a search are errors of extra tables, which cost less.
        settled = replace(WORLDS[name], stages=(sweeps(4, 0.02, 0.002),)).searched()[0]
        problem = replace(problem, up=settled.up.astype(problem.up.dtype))
        stage = sweeps(1, 0.02, 0.02, beyond=3, to_the_end=True)
        _, states = replace(WORLDS[name], problem=problem, stages=(stage,)).searched()
        assert len(states) == 1
    cells, order = _laid_out(problem, plan)
    kind, errors = plan.layout.cell_kind, _errors(problem, cells, order, plan)

    def walked(beyond: int, to_the_end: bool, steps: int = 8) -> tuple[np.ndarray, list[float]]:
        stage = replace(stages[-1], costs=WALL, beyond=beyond, walk=steps, to_the_end=to_the_end)
        own, found, told = cells._replace(up=cells.up.copy()), errors.copy(), []
        state = np.array([seed], dtype=np.uint64)
        words = (_tally(problem, own), state, np.int32(problem.step), told.append)
        walk_module.walk(stage, own, found, *words)
        again = _errors(problem, own, order, plan)
        assert np.array_equal(found, again)
        return found, told

    def excess(found: np.ndarray, kinds: list[str], beyond: int) -> int:
        own = np.isin(kind, [TABLE_KINDS.index(k) for k in kinds])
        return int(np.maximum(np.abs(found[own]) - beyond, 0).sum())

    usual = ["coarser", "finest", "own"]
    for beyond in range(int(np.abs(errors).max()) + 1):
        for to_the_end in (False, True):
            looked_at = [*usual, "extra"] if to_the_end else usual
            found, told = walked(beyond, to_the_end)
            before = excess(errors, looked_at, beyond)
            if before == 0:
                assert (np.array_equal(found, errors), told) == (True, [])
            else:
                # The best of all states on the way; after a search there may be no better one.
                assert excess(found, looked_at, beyond) < before + searched
                assert len(told) > 0
                assert told == [step / 8 for step in range(len(told))]
    large_extra = excess(errors, ["extra"], 3) > 0 and excess(errors, usual, 3) == 0
    assert large_extra == searched
    # Of very many cells there are four steps for each large error, but for the end.
    monkeypatch.setattr(walk_module, "_MANY_CELLS", errors.size)
    large = int(((np.abs(errors) > 1) & (kind < TABLE_KINDS.index("extra"))).sum())
    assert large > 2
    assert walked(1, False, 1)[1][:2] == [0.0, 1 / (4 * large)]
    assert walked(1, True, 1)[1] == [0.0]
    assert walked(1, False, 4 * large + 5)[1][:2] == [0.0, 1 / (4 * large + 5)]
    monkeypatch.setattr(walk_module, "_MANY_CELLS", errors.size + 1)
    assert walked(1, False, 1)[1] == [0.0]


@pytest.mark.parametrize("own", ["flat", "small", "lanes"], indirect=True)
def test_progress_of_laying_out_cells_rises_from_nothing_to_the_first_sweep(own: World) -> None:
    told: list[tuple[str, float]] = []
    with reporting_progress(lambda step, share: told.append((step, share))):
        own.searched()
    # Work that takes long says its last share again.
    shares = [share for (step, share), _ in groupby(told) if step == "laying out cells"]
    kinds = [bool(w.get("finest")) for w in own.stages]
    plans = 1 + sum(a != b for a, b in pairwise(kinds))
    variables = len(own.problem.every)
    assert shares == sorted(shares)
    assert (shares[0], len(shares)) == (0.0, 2 + variables + plans)
    assert len(set(shares[: 2 + variables])) == 2 + variables
    # The first tables come before the first sweep, others when their stage begins.
    assert shares[-plans] == pytest.approx(0.9)
    assert shares[len(shares) - plans + 1 :] == [1.0] * (plans - 1)
    assert max(shares[:-plans]) < 0.9


def test_cells_are_laid_out_in_slices_of_the_outer_variables() -> None:
    for name, outer_variables in (("small", 1), ("lanes", 2)):
        problem, stages, _ = WORLDS[name].words()
        plan = stages[-1].plan
        cells, order = _laid_out(problem, plan)
        outer = cells.codes[:, -plan.outer :]
        for begin, end in pairwise(cells.slice_first.tolist()):
            assert (outer[begin:end] == outer[begin]).all()
            assert begin == 0 or (outer[begin] != outer[begin - 1]).any()
        assert (cells.slice_first[0], cells.slice_first[-1]) == (0, len(order))
        assert plan.outer == outer_variables
    assert [_place_type(n) for n in (5, 100, 2**31 - 1)] == [np.int32] * 3
    assert [_place_type(n) for n in (2**31, 2**40)] == [np.int64] * 2


def test_cells_are_sorted_by_more_combinations_than_64_bits_count() -> None:
    rng = np.random.default_rng(3)
    for sizes in ((3 * 2**21, 2**21, 2**21), (2**22, 2**22, 2**22), (9, 8, 7)):
        codes = np.stack([rng.integers(0, size, 50) for size in sizes])
        codes[:, :10] = np.array(sizes)[:, None] - 1 - rng.integers(0, 2, (3, 10))
        codes = np.unique(codes, axis=1)[:, ::-1]
        plan = SimpleNamespace(
            rows=lambda: [0, 2, 1],
            dataset=SimpleNamespace(variables=[SimpleNamespace(codes=range(s)) for s in sizes]),
        )
        order = _sorted(plan, codes)  # type: ignore[arg-type]
        keys = [tuple(codes[[1, 2, 0], c].tolist()) for c in order]
        assert keys == sorted(map(tuple, codes[[1, 2, 0]].T.tolist()))


def test_cells_to_visit_are_counted_by_slice_and_extra_tables_are_left_aside() -> None:
    slices = np.array([0, 2, 3, 5])
    assert _visits(np.array([1, 0, 1, 1, 0], np.uint8), slices).tolist() == [1, 1, 1]
    assert _visits(np.array([0, 0, 0, 1, 1], np.uint8), slices).tolist() == [0, 0, 2]
    assert _visits(np.ones(5, np.uint8), slices).tolist() == [2, 1, 2]
    problem, stages, _ = WORLDS["lanes"].words()
    plan = stages[-1].plan
    cells, _ = _laid_out(problem, plan)
    for kind in range(len(TABLE_KINDS)):
        errors = np.where(plan.layout.cell_kind == kind, 9, 0)
        counts = kind < TABLE_KINDS.index("extra") and bool(errors.any())
        assert _beyond(plan, cells.codes, errors, 8).any() == counts
        assert not _beyond(plan, cells.codes, errors, 9).any()
    assert (plan.layout.cell_kind == TABLE_KINDS.index("extra")).any()


def test_classes_of_cells_keep_their_share_of_upper_numbers() -> None:
    """Within a twentieth of the chance with which they start there, or as far as they start from it."""
    rng = np.random.default_rng(2)
    for step, (share, of) in product((3, 4, 5), ((1, 1), (9, 10))):
        residue, low = rng.integers(0, step - 1, 400), step * rng.integers(0, 3, 400)
        up = (rng.random(400) < 0.4).astype(np.uint8)
        problem = SimpleNamespace(
            residue=residue, low=low, up=up, step=step, start_share=(share, of)
        )
        kind, least, most = _classes(problem)  # type: ignore[arg-type]
        assert (kind[residue == 0] < 0).all()
        assert least.size == most.size == 2 * (step - 1)
        for large, r in product((0, 1), range(1, step)):
            place = large * (step - 1) + r - 1
            own = (residue == r) & ((low > 0) == large)
            assert ((kind == place) == own).all()
            chance = Fraction(r * share, step * of)
            ends = [own.sum() * (chance + by * Fraction(1, 20)) for by in (-1, 1)]
            start = up[own].sum()
            assert least[place] == min(start, floor(ends[0]))
            assert most[place] == max(start, ceil(ends[1]))
        cells = SimpleNamespace(
            kind=kind,
            up=up,
            least_up=least,
            high_smallest=np.zeros(400, int),
            low_smallest=np.zeros(400, int),
            is_empty=np.zeros(400, int),
        )
        more = {"fixed_smallest": 7, "fixed_empty": 2, "empty_share": (1, 3)}
        tally = _tally(SimpleNamespace(**more), cells)  # type: ignore[arg-type]
        wanted = [up[kind == k].sum() for k in range(2 * (step - 1))]
        assert tally.tolist() == [1 * 7 - 3 * 2, 1, 3, *wanted]
        problem.start_share = None
        free, *ends_of_none = _classes(problem)  # type: ignore[arg-type]
        assert (free < 0).all()
        assert [e.size for e in ends_of_none] == [0, 0]


@pytest.mark.parametrize("name", ["small", "sparse", "lanes"])
def test_tables_with_a_single_finest_cell_are_known_and_every_place_is_of_one_table(
    name: str,
) -> None:
    """Errors of such tables cost nothing: otherwise shown numbers would tell the true ones."""
    dataset = WORLDS[name].dataset
    plan = plan_tables(dataset, **WORLDS[name].plan)
    places: set[int] = set()
    for table in plan.tables:
        by_variable = {level.variable: level.group_of for level in table.levels}
        inside: dict[tuple[int, ...], int] = {}
        for codes in product(*(range(len(v.codes)) for v in dataset.variables)):
            named = zip(dataset.variables, codes, strict=True)
            at = {v.name: int(by_variable[v.name][c]) for v, c in named if v.name in by_variable}
            key = tuple(at[level.variable] for level in table.levels)
            inside[key] = inside.get(key, 0) + 1
        kinds = set(plan.layout.cell_kind[table.places().ravel()].tolist())
        assert kinds <= {*range(len(TABLE_KINDS))}
        assert (kinds == {TABLE_KINDS.index("single")}) == (1 in inside.values())
        own = {place for place in range(-1, plan.cells + 1) if table.categories(place) is not None}
        assert own == set(table.places().ravel().tolist())
        for at in np.ndindex(*table.shape):
            assert table.categories(int(table.places()[at])) == at
        assert not own & places
        places |= own
    assert places == set(range(plan.cells))


def test_errors_are_added_up_in_parts_and_costs_stay_within_32_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = WORLDS["lanes"]
    problem, stages, _ = one.words()
    plan = stages[-1].plan
    cells, order = _laid_out(problem, plan)
    wanted = true_errors(one, plan, problem.up)
    slices = len(np.unique(cells.codes[:, -plan.outer :], axis=0))
    for some in (1, 2, slices - 1, slices, slices + 1):
        monkeypatch.setattr(forces_module, "_SLICES", some)
        told: list[float] = []
        asked: list[int] = []
        with (
            stopping(lambda asked=asked: bool(asked.append(1))),
            reporting_progress(lambda step, share, told=told: told.append(share)),
        ):
            assert np.array_equal(_errors(problem, cells, order, plan), wanted)
        assert told[-1] == 1.0
        assert {0.0, *told} == {*(k / slices for k in range(0, slices, some)), 1.0}
        assert len(asked) >= -(-slices // some)
    runs = plan.layout.run_first.size
    dear = replace(stages[-1], costs=(ErrorCost(10**9),) * 4)
    force = np.abs(dear.costs_of(3).force.astype(np.int64)).max()
    # As much as all tables of a cell can add up to.
    assert force * runs < 2**31 <= (force + 1) * runs


@pytest.mark.parametrize("most", [1, 2, 3])
def test_extra_tables_are_the_smallest_of_more_variables_at_levels_far_apart(most: int) -> None:
    """All tables are listed; each further variable counts like four times the cells."""
    levels = [ControlledLevel("v", None, np.arange(n)) for n in (12, 7, 6, 3, 5, 4, 2, 8, 2, 3)]
    nodes = list(zip([0, 0, 0, 0, 1, 1, 1, 2, 2, 3], levels, strict=True))
    # 7 is more than half of 12, 6 is half of it; 4 is more than half of 5; 2 of 5 is less.
    assert nodes_apart(nodes) == [0, 2, 3, 4, 6, 7, 8, 9]
    assert nodes_apart(nodes[::-1]) == [0, 1, 2, 3, 5, 6, 7, 9], "in any order"
    of = {v: [k for k, (owner, _) in enumerate(nodes) if owner == v] for v in range(4)}
    every = [
        table
        for count in range(5)
        for variables in combinations(range(4), count)
        for table in product(*(of[v] for v in variables))
    ]
    assert sorted(all_tables(nodes, most)) == sorted(t for t in every if len(t) <= most)
    apart = {0, 2, 3, 4, 6, 7, 8, 9}

    def size(table: tuple[int, ...]) -> int:
        cells = prod(nodes[k][1].size for k in table)
        return cells * 4 ** max(0, len(table) - most - 1)

    for cells in (1, 35, 36, 120, 10_000):
        able = [t for t in every if len(t) > most and apart.issuperset(t) and size(t) <= cells]
        able.sort(key=lambda t: (size(t), t))
        for tables in (0, 1, 5, 1000):
            assert choose_extra_tables(nodes, most, tables, cells) == able[:tables]


def test_levels_are_the_distinct_ways_to_group_the_codes_of_a_variable() -> None:
    """A region is a function of its area; a hierarchy repeats it, and one group of all is the total."""
    areas = ["a0", "a1", "a2", "a3", "a4"]
    regions = {"r0": ["a3", "a4"], "r1": ["a0", "a1"], "r2": ["a2"]}
    zeros = [
        {
            "reason": "Elsewhere.",
            "where": {"region": [r], "area": [a for a in areas if a not in own]},
        }
        for r, own in regions.items()
    ]
    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "d"},
            "variables": [
                {"name": "region", "codes": ["r0", "r1", "r2"]},
                {
                    "name": "area",
                    "codes": areas,
                    "hierarchies": [
                        {
                            "name": "place",
                            "levels": [
                                {
                                    "name": "pair",
                                    "groups": [{"code": "p", "members": ["a0", "a1"]}],
                                },
                                {
                                    "name": "region",
                                    "groups": [
                                        {"code": r, "members": own} for r, own in regions.items()
                                    ],
                                },
                                {"name": "all", "groups": [{"code": "x", "members": areas}]},
                            ],
                        }
                    ],
                },
                {"name": "same", "codes": ["s0", "s1"]},
                {"name": "twin", "codes": ["t0", "t1"]},
                {"name": "one", "codes": ["o"]},
            ],
            "structural_zeros": [
                *zeros,
                {"reason": "Twins.", "where": {"same": ["s0"], "twin": ["t0"]}},
                {"reason": "Twins.", "where": {"same": ["s1"], "twin": ["t1"]}},
            ],
        }
    )
    found = controlled_levels(dataset)
    assert list(found) == ["area", "same"]
    # A region is a function of its area, a twin of the same; one code follows from any variable.
    functions = [dependents(dataset, place) for place in range(5)]
    assert [set(f) - {4} for f in functions] == [set(), {0}, {3}, set(), set()]
    assert sum(f.count(4) for f in functions) == 1
    finest, pair, region = found["area"]
    assert (finest.name, finest.finest, finest.size, finest.label) == (None, True, 5, "area")
    assert (pair.name, pair.size, pair.label) == ("pair", 4, "area:pair")
    assert pair.group_of.tolist() == [0, 0, 1, 2, 3]
    assert region.group_of.tolist() == [0, 0, 1, 2, 2]
    assert set(region.same_as) == {("region", None), ("area", "region")}
    assert not region.finest
    (twins,) = found["same"]
    assert set(twins.same_as) == {("same", None), ("twin", None)}
    for word, level in (
        ("area", finest), ("area:pair", pair), ("area:region", region), ("region", region),
        ("twin", twins),
    ):  # fmt: skip
        assert find_level(found, dataset, word) is level
    with pytest.raises(InputError, match="puts all records into one group"):
        find_level(found, dataset, "one")
    with pytest.raises(InputError, match="puts all records into one group"):
        find_level(found, dataset, "area:all")
    with pytest.raises(QueryError, match="nowhere"):
        find_level(found, dataset, "area:nowhere")
    twice = (("area", "region"),)
    with pytest.raises(InputError, match="names one variable twice"):
        plan_tables(dataset, 2, twice)
    single = Dataset.from_mapping(
        {"dataset": {"name": "d"}, "variables": [{"name": "one", "codes": ["o"]}]}
    )
    with pytest.raises(InputError, match="No variable of the dataset has two codes"):
        plan_tables(single)


@pytest.mark.parametrize("sizes", [(5, 4), (4, 5), (4, 3, 2), (4, 2, 2, 3, 2)])
@pytest.mark.parametrize("finest", [False, True])
def test_a_plan_holds_every_table_once_with_its_kind(sizes: tuple[int, ...], finest: bool) -> None:
    dataset = town(sizes)
    own = (("v0:half", "v1"), ("v0", "v1"))
    plan = plan_tables(dataset, 2, own, finest_only=finest, extra_tables=3, extra_cells=30)
    labels = [frozenset(level.label for level in table.levels) for table in plan.tables]
    assert len(set(labels)) == len(labels)
    for table, label in zip(plan.tables, labels, strict=True):
        asked = label in ({"v0:half", "v1"}, {"v0", "v1"})
        assert table.by_agency == (asked and (not finest or "v0:half" not in label))
        assert table.extra == (len(label) > 2)
        assert table.shape == tuple(level.size for level in table.levels)
        assert table.finest == ("v0:half" not in label)
        full = len(label) == len(sizes)
        kind = (
            "single"
            if full
            else "own"
            if table.by_agency
            else "extra"
            if table.extra
            else "finest"
            if table.finest
            else "coarser"
        )
        assert (plan.layout.cell_kind[table.places()] == TABLE_KINDS.index(kind)).all()
        assert (plan.table_of_cell[table.places()] == plan.tables.index(table)).all()
        assert table.label == (" x ".join(level.label for level in table.levels) or "all records")
    variables = len(sizes)
    small = [label for label in labels if len(label) <= 2]
    # v0 has two levels; at finest levels alone it has both only where it is the major variable.
    levels = {"v0": 1 if finest and plan.major != "v0" else 2}
    counts = [levels.get(f"v{k}", 1) for k in range(variables)]
    expected = 1 + sum(counts) + sum(a * b for a, b in combinations(counts, 2))
    assert len(small) == expected
    assert sum(t.extra for t in plan.tables) == {2: 0, 3: 1, 5: 3}[variables]
    assert plan.variables[-1] == plan.major
    assert plan.outer == (2 if variables >= 5 else 1)
    assert plan.rows() == [int(name[1:]) for name in plan.variables]


def test_the_tables_of_two_nodes_that_weigh_most_come_first() -> None:
    layout = plan_tables(town((4, 3, 2, 2)), 3, (("v0:half", "v1", "v2"),)).layout
    rank = [TABLE_KINDS.index(k) for k in ("own", "finest", "extra", "coarser", "single")]
    seen = set()
    for first, stop in pairwise(layout.pair_first.tolist()):
        ranks = [rank.index(kind) for kind in layout.pair_kind[first:stop].tolist()]
        assert ranks == sorted(ranks)
        seen.add(tuple(ranks))
    assert {ranks[0] for ranks in seen if ranks} >= {0, 1}
    assert any(ranks[0] < ranks[-1] for ranks in seen if ranks)


def test_a_level_with_the_name_of_another_one_gets_the_name_of_its_variable() -> None:
    """Regions are a function of areas, and both variables have a level called "pair"."""
    areas = ["a0", "a1", "a2", "a3"]
    own = {"r0": ["a0"], "r1": ["a1"], "r2": ["a2", "a3"]}

    def variable(name: str, codes: list[str], members: list[str]) -> dict[str, Any]:
        levels = [{"name": "pair", "groups": [{"code": "p", "members": members}]}]
        return {"name": name, "codes": codes, "hierarchies": [{"name": "h", "levels": levels}]}

    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "d"},
            "variables": [
                variable("area", areas, ["a0", "a1"]),
                variable("region", [*own], ["r1", "r2"]),
            ],
            "structural_zeros": [
                {
                    "reason": "Elsewhere.",
                    "where": {"region": [r], "area": [a for a in areas if a not in inside]},
                }
                for r, inside in own.items()
            ],
        }
    )
    found = controlled_levels(dataset)["area"]
    groups = {level.label: level.group_of.tolist() for level in found}
    assert groups == {
        "area": [0, 1, 2, 3],
        "area:pair": [0, 0, 1, 2],
        "area:region": [0, 1, 2, 2],
        "area:region.pair": [0, 1, 1, 1],
    }


@pytest.mark.parametrize(
    ("sizes", "most", "own", "extra"),
    [
        ((5,), 1, (), 0),
        ((4, 4, 3), 1, (("v0", "v1", "v2"),), 0),
        ((4, 3, 3, 2), 1, (("v0", "v1", "v2", "v3"),), 0),
        ((4, 3, 2, 2), 1, (("v1", "v2", "v3"), ("v0:half", "v2", "v3")), 0),
        ((4, 3, 2, 2, 2), 1, (("v0", "v2", "v3"), ("v0", "v1", "v4")), 2),
    ],
)
def test_tables_with_gaps_between_them_lie_apart_and_add_up(
    sizes: tuple[int, ...], most: int, own: tuple[tuple[str, ...], ...], extra: int
) -> None:
    """Slices of many cells are added up whole and others cell by cell, also where a run begins late."""
    plan = plan_tables(town(sizes, zeros=False), most, own, extra_tables=extra)
    layout = plan.layout
    labels = [frozenset(level.label for level in table.levels) for table in plan.tables]
    single = {frozenset()} | {frozenset({f"v{k}"}) for k in range(len(sizes))}
    asked = {*single, frozenset({"v0:half"}), *map(frozenset, own)}
    assert len(labels) == len(set(labels)) == len(asked) + extra
    assert asked <= set(labels)
    places = np.concatenate([table.places().ravel() for table in plan.tables])
    assert sorted(places.tolist()) == list(range(plan.cells))
    assert bool((layout.run_first > 0).any()) == (len(sizes) > 1)
    every = np.array([*product(*map(range, sizes))], dtype=np.uint8)[:, plan.rows()]
    order = np.lexsort(every.T)
    rng = np.random.default_rng(11)
    for share in (1.0, 0.3, 0.05):
        codes = np.ascontiguousarray(every[order][rng.random(len(every)) < share])
        by = rng.integers(-2, 3, len(codes)).astype(np.int32)
        errors = np.zeros(plan.cells, dtype=np.int32)
        add_errors(plan, codes, by, errors)
        expected, lies_in = np.zeros(plan.cells, dtype=np.int64), []
        column = {name: place for place, name in enumerate(plan.variables)}
        for table in plan.tables:
            groups = [level.group_of[codes[:, column[level.variable]]] for level in table.levels]
            at = np.broadcast_to(table.places()[tuple(groups)], len(codes))
            np.add.at(expected, at, by)
            lies_in.append(at)
        assert errors.tolist() == expected.tolist()
        forces = rng.integers(-50, 50, (plan.cells, 2)).astype(np.int32)
        outer = codes[:, -plan.outer :]
        begins = np.flatnonzero(np.r_[True, (outer[1:] != outer[:-1]).any(axis=1)][: len(codes)])
        fields = np.full((len(codes), 2), np.nan, dtype=np.float32)
        p = np.zeros(layout.variable_of.size, dtype=np.uint64)
        inner = np.empty(layout.table_offset.size, dtype=np.uint64)
        base = np.empty(layout.run_offset.size, dtype=np.uint64)
        sums = np.zeros((int(layout.table_end[-1]), 2), dtype=np.int32)
        for low, high in pairwise([*begins.tolist(), len(codes)]):
            slice_fields(layout, codes, low, high, forces, p, inner, base, sums, fields)
        pulls = sum(forces[at].astype(np.int64) for at in lies_in)
        assert fields.tolist() == (pulls / 2).tolist()


def test_tables_have_fewer_cells_than_numbers_of_32_bits_can_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert layouts._MOST_CELLS == 2**31
    cells = plan_tables(town((4, 3)), 2).cells
    monkeypatch.setattr(layouts, "_MOST_CELLS", cells + 1)
    assert plan_tables(town((4, 3)), 2).cells == cells
    monkeypatch.setattr(layouts, "_MOST_CELLS", cells)
    with pytest.raises(InputError, match=f"have {cells} cells; control tables of fewer variables"):
        plan_tables(town((4, 3)), 2)


def test_costs_rise_as_their_formula_says() -> None:
    cost = ErrorCost.scaled(20, 2, 200, 7, 9)
    assert cost == ErrorCost(180, 2, 1800, 21)
    assert 3 * cost == ErrorCost(540, 6, 5400, 21)
    error = np.array([-24, -21, -1, 0, 2, 23])
    expected = [180 * e**2 + 2 * e**4 + 1800 * max(abs(e) - 21, 0) ** 2 for e in error.tolist()]
    assert cost.of(error).tolist() == expected
    plan = plan_tables(town((4, 3)), 2)
    stage = Stage(plan, 3, 0.4, 0.1, (cost, ErrorCost(5), ErrorCost(7), ErrorCost(9)))
    rises = stage.rises(3)
    errors = np.arange(-4096, 4097)
    assert np.array_equal(rises[0], cost.of(errors + 3) - cost.of(errors))
    made = stage.costs_of(3)
    down = cost.of(errors - 3) - cost.of(errors)
    most = (2**31 - 1) // plan.layout.run_first.size
    assert np.array_equal(made.force[0, :, 0], np.clip(rises[0] - down, -most, most))
    assert np.array_equal(made.force[0, :, 1], np.clip(rises[0] + down, -most, most))
    # Tables with single finest cells cost nothing: here, all of both variables.
    weight = {t: 0 if len(t.levels) == 2 else 45 if t.finest else 1782 for t in plan.tables}
    unit = sum(weight.values())
    heats = [stage.temperature(k, rises) for k in range(3)]
    assert heats == [round(unit * 0.4), round(unit * 0.2), round(unit * 0.1)]
    assert replace(stage, sweeps=1).temperature(0, rises) == round(unit * 0.4)
    quantiles = made.quantiles
    assert quantiles.size == 4096
    assert np.array_equal(quantiles, _exponential_quantiles.__wrapped__())
    middles = (2 * np.arange(4096) + 1) / 8192
    assert np.abs(quantiles + np.log(middles)).max() < 2**-20
    # The tables with a node, and with two of them, by their weight among all.
    layout = plan.layout
    for k in range(layout.entry_first.size - 1):
        entries = range(layout.entry_first[k], layout.entry_first[k + 1])
        expected = sum((1782, 45, 0, 0, 0)[int(layout.entry_kind[e])] for e in entries) / unit
        assert made.shares[k] == pytest.approx(expected)
    assert made.shares.sum() == pytest.approx(
        sum(len(t.levels) * w for t, w in weight.items()) / unit
    )
    assert made.pair_shares.sum() == pytest.approx(
        sum(w for t, w in weight.items() if len(t.levels) == 2) / unit
    )


def test_a_sweep_visits_all_cells_or_an_even_share_of_those_in_large_errors() -> None:
    cells = counted((4, 4, 3), 1.2, 6)
    plan = plan_tables(cells.dataset, 2, extra_tables=2)
    stage = Stage(plan, 1, 0.1, 0.1, KINDS)
    problem = prepare(cells, KEY, base=3, small_only=False, empty_share=0.1).problem
    laid, _ = _laid_out(problem, plan)
    state = np.array([5], dtype=np.uint64)
    errors = np.zeros(plan.cells, dtype=np.int32)
    assert _visited(stage, laid.codes, errors, state).tolist() == [1] * len(laid.codes)
    assert state[0] == 5
    large = replace(stage, beyond=4, most=0.1)
    assert not _visited(large, laid.codes, errors, state).any()
    row = {name: place for place, name in enumerate(plan.variables)}
    extra = next(t for t in plan.tables if t.extra)
    errors[extra.places().ravel()] = 99
    assert not _visited(large, laid.codes, errors, state).any(), "extra tables are left aside"
    own = next(t for t in plan.tables if len(t.levels) == 1 and t.levels[0].finest)
    errors[own.places()[1]] = -5
    errors[own.places()[0]] = 4
    (level,) = own.levels
    inside = laid.codes[:, row[level.variable]] == 1
    few = replace(large, most=1.0)
    assert _visited(few, laid.codes, errors, state).tolist() == inside.astype(int).tolist()
    assert state[0] == 5
    some = _visited(large, laid.codes, errors, state)
    assert state[0] != 5
    most = max(1, int(0.1 * len(laid.codes)))
    apart = -(-int(inside.sum()) // most)
    assert set(some.tolist()) <= {0, 1}
    assert not some[~inside].any()
    chosen = np.flatnonzero(np.flatnonzero(inside)[:, None] == np.flatnonzero(some))
    assert 0 < some.sum() <= most
    places = [np.flatnonzero(inside).tolist().index(c) for c in np.flatnonzero(some)]
    assert {b - a for a, b in pairwise(places)} <= {apart}
    assert places[0] < apart
    assert chosen.size
    single = replace(large, most=1e-9)
    assert _visited(single, laid.codes, errors, state).sum() == 1


@pytest.mark.parametrize("own", ["small", "lanes", "walk", "tied"], indirect=True)
def test_neither_threads_nor_a_break_change_a_byte(own: World) -> None:
    found, states = own.searched()
    for words in ({"workers": 3}, *({"resume": state} for state in states)):
        again, later = own.searched(**words)
        assert np.array_equal(again.up, found.up)
        assert np.array_equal(again.errors, found.errors)
        assert [s.sweeps for s in later] == [s.sweeps for s in states][len(states) - len(later) :]
        if "resume" in words:
            assert len(later) == len(states) - words["resume"].sweeps, "sweeps are not made twice"
