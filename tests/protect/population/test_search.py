"""The search: cell by cell that of a plain version, within its rules, and the same bytes however it is run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Dataset, InputError, QueryError
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.public import SEARCH
from lustrum.protect.population.search import forces as forces_module
from lustrum.protect.population.search import lanes, run
from lustrum.protect.population.search import plan as planned
from lustrum.protect.population.search.forces import set_forces
from lustrum.protect.population.search.layout import KINDS, TablePlan
from lustrum.protect.population.search.levels import controlled_levels, dependents, find_level
from lustrum.protect.population.search.moves import fourth_cell
from lustrum.protect.population.search.plan import plan_tables
from lustrum.protect.population.search.run import (
    SearchedPopulation,
    SearchProblem,
    SearchState,
    _errors,  # against a plain count of every table
    _laid_out,
    search,
)
from lustrum.protect.population.search.stages import ErrorCost, Stage
from lustrum.protect.population.search.sweep import all_fields
from lustrum.protect.population.start import cell_numbers
from lustrum.runtime.stop import Stopped, reporting_progress, stopping
from protect.population.plain_search import PlainSearch, kind_of
from protect.population.worlds import AGAIN, KEY, REFINED, counted, town

COSTS = (ErrorCost(10, 0, 70, 3), ErrorCost(50, 1, 100, 4), ErrorCost(90, 2), ErrorCost(4))
WALL = (
    ErrorCost(20, 0, 10**6, 2),
    ErrorCost(50, 1, 10**6, 2),
    ErrorCost(90, 2, 10**6, 2),
    ErrorCost(5),
)
OWN = (("v0:half", "v1"),)
Words = dict[str, Any]


@pytest.fixture(autouse=True)
def few_cells(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small datasets have several lanes where a test asks for them, and several rounds."""
    monkeypatch.setattr(lanes, "_LANES", 1)
    monkeypatch.setattr(lanes, "_LANE_CELLS", 1)
    monkeypatch.setattr(lanes, "_ROUNDS", 3)
    monkeypatch.setattr(lanes, "_PART", 16)
    # Without the compiler, words that overflow say so.
    with np.errstate(over="ignore"):
        yield


def stages_of(dataset: Dataset, plan: Words, *stages: Words) -> list[Stage]:
    """Stages over the tables of a plan, or over those at finest levels."""
    own = plan.get("agency_tables", ())
    finest = plan_tables(dataset, plan["max_variables"], own, finest_only=True)
    every = plan_tables(dataset, **plan)
    return [
        Stage(
            finest if words.get("finest") else every,
            **{"costs": COSTS, **{k: v for k, v in words.items() if k != "finest"}},
        )
        for words in stages
    ]


def searched(
    problem: SearchProblem, stages: list[Stage], seed: int = 7, **words: Any
) -> tuple[SearchedPopulation, list[SearchState]]:
    """What a search finds, and its state after every sweep."""
    states: list[SearchState] = []

    def keep(state: SearchState) -> None:
        states.append(replace(state, up=state.up.copy(), fields=state.fields.copy()))

    return search(problem, stages, seed, keep=keep, **{"workers": 1, **words}), states


# --- against a plain version

heats = st.sampled_from([0.5, 0.1, 0.002])
stage_words = st.fixed_dictionaries(
    {
        "sweeps": st.integers(1, 2),
        "hot": heats,
        "cold": heats,
        "costs": st.sampled_from([COSTS, WALL]),
        "near": st.integers(1, 3),
        "rings": st.integers(1, 3),
        "beyond": st.sampled_from([0, 0, 1, 2, 4]),
        "most": st.sampled_from([1.0, 0.3]),
        "walk": st.sampled_from([0, 3, 40]),
        "to_the_end": st.booleans(),
        "finest": st.booleans(),
    }
).map(lambda w: {**w, "slack": inf, "walk": w["walk"] if w["beyond"] else 0})


@st.composite
def problems(draw: st.DrawFn) -> tuple[SearchProblem, Dataset]:
    """What a search is given: releases of all kinds, with rules that bind, and kept sums."""
    kind = draw(st.sampled_from(["first", "first", "first", "again", "refined"]))
    words: Words = {
        "base": 3,
        "small_only": False,
        "empty_share": draw(st.sampled_from([0.0, 0.1, 0.4])),
    }
    if kind == "first":
        sizes = draw(st.sampled_from([(6, 5), (5, 6), (4, 3, 2), (3, 4, 3), (3, 2, 2, 3, 2)]))
        cells = counted(sizes, draw(st.sampled_from([0.5, 1.5])), draw(st.integers(0, 99)))
        words |= {"base": draw(st.integers(2, 5)), "small_only": draw(st.booleans())}
        if draw(st.booleans()):
            words["held"] = np.sort(cell_numbers(cells.dataset, cells.codes)[::3])
    else:
        cells, words["previous"] = AGAIN if kind == "again" else REFINED
        words["refresh"] = draw(st.sampled_from([0.05, 1.0]))
    problem = prepare(cells, KEY, **words).problem
    if kind == "first" and draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        some = rng.integers(-1, 2, problem.up.size).astype(np.int32)
        problem = replace(problem, group=some)
    if draw(st.booleans()):
        problem = replace(problem, start_share=None)
    drift_part = draw(st.sampled_from([None, Fraction(0), Fraction(1, 2)]))
    return replace(problem, drift_part=drift_part), cells.dataset


@settings(
    max_examples=examples(25, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    problems(),
    st.lists(stage_words, min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(0, 4),
    st.integers(1, 3),
    st.integers(0, 2**64 - 1),
)
def test_the_search_ends_where_a_plain_version_ends(
    monkeypatch: pytest.MonkeyPatch,
    given_problem: tuple[SearchProblem, Dataset],
    stages: list[Words],
    max_variables: int,
    extra: int,
    most_lanes: int,
    seed: int,
) -> None:
    """The same moves, errors and draws; so every move costs what it must, and every rule is kept."""
    monkeypatch.setattr(lanes, "_LANES", most_lanes)
    problem, dataset = given_problem
    own = OWN if "half" in str(dataset.source) else ()
    plan = {"max_variables": max_variables, "agency_tables": own, "extra_tables": extra}
    words = stages_of(dataset, plan, *stages)
    found, states = searched(problem, words, seed)
    plain = PlainSearch(problem, words, seed)
    assert [state.word for state in states] == list(plain.run())
    assert found.up[plain.order].tolist() == [bool(u) for u in plain.up]
    assert found.errors.tolist() == plain.errors(words[-1].plan)
    for again in ({"workers": 3}, {"resume": states[len(states) // 2]} if states else {}):
        assert np.array_equal(searched(problem, words, seed, **again)[0].up, found.up)
    for group in set(problem.group.tolist()) - {-1}:
        kept = problem.group == group
        assert found.up[kept].sum() == problem.up[kept].sum()


# --- bytes

FIVE = counted((4, 2, 2, 3, 2), 0.7, 5)
SMALL = counted((4, 4, 3), 2.0, 3)
ALL = (("v0:half", "v1", "v2"),)


def sweeps(number: int, hot: float, cold: float, **more: Any) -> Words:
    return {"sweeps": number, "hot": hot, "cold": cold, **more}


WORLDS: dict[str, tuple[Any, Words, tuple[Words, ...], Words, int, str]] = {
    "small": (
        SMALL,
        {"max_variables": 2, "agency_tables": ALL, "extra_tables": 3},
        (sweeps(1, 0.2, 0.1, finest=True, lost=3.0, near=2), sweeps(2, 0.05, 0.01)),
        {},
        1,
        "95ea0dd50e179a1a",
    ),
    "sparse": (
        counted((8, 9, 8), 0.08, 4),
        {"max_variables": 3},
        (sweeps(2, 0.05, 0.01, rings=2, near=3),),
        {"base": 4, "empty_share": 0.3},
        1,
        "3d6f169c028efc24",
    ),
    "lanes": (
        FIVE,
        {"max_variables": 2, "agency_tables": ALL, "extra_tables": 4, "extra_cells": 16},
        (sweeps(1, 0.1, 0.1, finest=True, lost=1.0), sweeps(2, 0.05, 0.01, lost=1.0)),
        {},
        3,
        "1874bb49fb4e9226",
    ),
    "same costs": (
        counted((4, 3, 3), 1.5, 9),
        {"max_variables": 2, "extra_tables": 2},
        (
            sweeps(1, 0.1, 0.1),
            sweeps(2, 0.05, 0.02),
            sweeps(1, 0.01, 0.01, costs=WALL, beyond=2, walk=30),
            sweeps(1, 0.01, 0.01, costs=WALL),
            sweeps(1, 0.005, 0.005, costs=WALL),
        ),
        {},
        1,
        "752d7e4ca1fbdd17",
    ),
    "again": (
        AGAIN[0],
        {"max_variables": 2},
        (sweeps(3, 0.5, 0.2),),
        {"previous": AGAIN[1], "refresh": 1.0, "empty_share": 0.45},
        2,
        "834245bcee168a33",
    ),
}


def world(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[SearchProblem, list[Stage]]:
    cells, plan, stages, words, most_lanes, _ = WORLDS[name]
    monkeypatch.setattr(lanes, "_LANES", most_lanes)
    words = {"base": 3, "small_only": False, "empty_share": 0.1, **words}
    return prepare(cells, KEY, **words).problem, stages_of(cells.dataset, plan, *stages)


def digest_of(found: SearchedPopulation, states: list[SearchState]) -> str:
    digest = hashlib.sha256()
    for array in (found.up, found.errors, found.moves):
        digest.update(np.ascontiguousarray(array).tobytes())
    for state in states:
        digest.update(f"{state.sweeps} {state.word}".encode())
        digest.update(state.up.tobytes() + state.fields.tobytes())
    return digest.hexdigest()[:16]


@pytest.mark.parametrize("followed", [None, 0, 10**9])
@pytest.mark.parametrize("name", WORLDS)
def test_the_bytes_of_a_search_belong_to_its_version(
    name: str, followed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a digest changes so must ``SEARCH``: a bundle states it, and a second release repeats the first.

    Lanes may hear of each other move by move or all at once.
    """
    if followed is not None:
        monkeypatch.setattr(lanes, "_FOLLOWED", followed)
    problem, stages = world(name, monkeypatch)
    found, states = searched(problem, stages)
    assert (SEARCH, digest_of(found, states)) == (10, WORLDS[name][-1])
    if followed is None:
        for words in ({"workers": 3}, *({"resume": state} for state in states)):
            again, later = searched(problem, stages, **words)
            assert np.array_equal(again.up, found.up)
            assert np.array_equal(again.errors, found.errors)
            assert [s.sweeps for s in later] == [s.sweeps for s in states][-len(later) or 99 :]


def test_what_decides_the_bytes_of_a_large_search_belongs_to_its_version() -> None:
    """Small searches never come to these limits."""
    from lustrum.protect.population.search import large_errors, moves, stages, sweep

    limits = (
        *(large_errors._TRIED, large_errors._STEPS, large_errors._MANY_CELLS),
        *(large_errors._NEAR, moves._FARTHEST, sweep._FRESH, stages._REACH, planned._MOST_CELLS),
    )
    assert (SEARCH, *limits) == (10, 10000, 4, 1 << 24, 32, 4, 16, 4096, 2**31)


@pytest.mark.parametrize("name", ["small", "lanes", "same costs"])
def test_progress_rises_to_the_whole_and_a_stop_is_heard(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, stages = world(name, monkeypatch)
    told: list[tuple[str, float]] = []
    asked: list[int] = []
    with (
        reporting_progress(lambda step, share: told.append((step, share))),
        stopping(lambda: bool(asked.append(1))),
    ):
        found, _ = searched(problem, stages)
    for step in ("laying out cells", "protecting"):
        shares = [share for name_, share in told if name_ == step]
        assert shares == sorted(shares)
        assert len(set(shares)) > 2
        assert shares[-1] == pytest.approx(1.0) or step == "laying out cells"
    work = [s.sweeps * len(s.plan.tables) for s in stages]
    ends = [sum(work[: k + 1]) / sum(work) for k in range(len(work))]
    assert all(any(abs(share - end) < 1e-9 for _, share in told) for end in ends)
    assert len(asked) >= sum(s.sweeps for s in stages)
    left = iter([False] * (len(asked) - 1))
    with stopping(lambda: next(left, True)), pytest.raises(Stopped):
        searched(problem, stages)
    assert np.array_equal(search(problem, stages, 7).up, found.up), "without keeping anything"


def crowd(seed: int = 1) -> Any:
    return counted((12, 6, 5, 4), 0.8, seed, zeros=False)


def test_a_search_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    cells, method = crowd(), ProtectedPopulation(sweeps=6)
    whole = method.protect(cells, KEY)
    state = tmp_path / "search.npz"
    with stopping(state.exists), pytest.raises(Stopped):
        method.protect(cells, KEY, state=state)
    assert state.stat().st_mode & 0o077 == 0
    for other, key in ((crowd(2), KEY), (cells, b"another key of 32 bytes, or more")):
        with pytest.raises(InputError, match="other records"):
            method.protect(other, key, state=state)
    steps: list[tuple[str, float]] = []
    resumed = method.protect(cells, KEY, state=state, progress=lambda *said: steps.append(said))
    told = [share for step, share in steps if step == "protecting"]
    assert told[0] > 1 / 9
    assert told == sorted(told)
    assert not state.exists()
    for name in ("codes", "counts"):
        assert np.array_equal(getattr(resumed.cells, name), getattr(whole.cells, name))
    assert resumed.public == whole.public
    state.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="cannot be read"):
        method.protect(cells, KEY, state=state)


# --- what moves seem to cost


@pytest.mark.parametrize("people", [0.02, 1.5])
def test_forces_on_a_cell_are_what_a_step_up_and_a_step_down_cost(people: float) -> None:
    """Few cells in a slice are looked up one by one, many by sums over the slice; both are exact."""
    cells = counted((5, 9, 4, 3, 2), people, 3, zeros=False)
    plan = plan_tables(cells.dataset, 3, extra_tables=4)
    stage = Stage(plan, 1, 1, 1, COSTS)
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
        cost = dict(zip(KINDS, (*COSTS, ErrorCost(0)), strict=True))[kind_of(plan, table)]
        codes = [level.group_of[laid.codes[:, column[level.variable]]] for level in table.levels]
        error = errors[table.places()][tuple(codes)] * np.ones(laid.up.size, dtype=np.int64)
        up += cost.of(error + 3) - cost.of(error)
        down += cost.of(error - 3) - cost.of(error)
    assert np.allclose(fields[:, 0], (up - down) / 2, rtol=1e-6)
    assert np.allclose(fields[:, 1], (up + down) / 2, rtol=1e-6)


def test_forces_of_all_tables_of_a_cell_fit_32_bits() -> None:
    plan = plan_tables(FIVE.dataset, 2)
    runs = plan.layout.run_first.size
    dear = Stage(plan, 1, 1, 1, (ErrorCost(10**9),) * 4)
    force = np.abs(dear.costs_of(3).force.astype(np.int64)).max()
    assert force * runs < 2**31 <= (force + 1) * runs


def test_costs_are_scaled_with_the_base_and_weigh_tables_by_their_levels() -> None:
    cost = ErrorCost.scaled(20, 2, 200, 7, 9)
    assert cost == ErrorCost(180, 2, 1800, 21)
    assert 3 * cost == ErrorCost(540, 6, 5400, 21)
    plan = plan_tables(town((4, 3)), 2)
    stage = Stage(plan, 3, 0.4, 0.1, (cost, ErrorCost(5), ErrorCost(7), ErrorCost(9)))
    made = stage.costs_of(3)
    weight = [
        0 if len(t.levels) == 2 and t.finest else 45 if t.finest else int(cost.of(np.array([3]))[0])
        for t in plan.tables
    ]
    # The only table of both variables that costs something is that of halves.
    assert [kind_of(plan, t) for t in plan.tables].count("single") == 2
    weight = [
        0 if kind_of(plan, t) == "single" else w for t, w in zip(plan.tables, weight, strict=True)
    ]
    levels = [len(t.levels) for t in plan.tables]
    total = sum(w * n for w, n in zip(weight, levels, strict=True))
    assert made.shares.sum() == pytest.approx(total / sum(weight))
    pairs = sum(w for w, n in zip(weight, levels, strict=True) if n == 2)
    assert made.pair_shares.sum() == pytest.approx(pairs / sum(weight))


def test_a_slot_that_belongs_to_another_cell_is_no_fourth_cell() -> None:
    """Half a word may be that of another cell, as happens very rarely, so that codes decide."""
    problem = prepare(SMALL, KEY, base=3, small_only=False, empty_share=0.1).problem
    cells, _ = _laid_out(problem, plan_tables(SMALL.dataset, 2))
    codes = [tuple(c) for c in cells.codes.tolist()]
    i, j, k = next(
        (i, j, k)
        for i, j, k in product(range(len(codes)), repeat=3)
        if codes[i][0] != codes[j][0]
        and codes[i][1:] == codes[j][1:]
        and codes[i][1] != codes[k][1]
        and codes[i][::2] == codes[k][::2]
        and (codes[j][0], codes[k][1], codes[i][2]) in codes
    )
    m = fourth_cell(cells, i, j, k, 0, 1)
    assert codes[m] == (codes[j][0], codes[k][1], codes[i][2])
    at = int(np.flatnonzero((cells.slot & np.uint64(0xFFFFFFFF)) == np.uint64(m + 1))[0])
    cells.slot[at] = (cells.slot[at] & np.uint64(0xFFFFFFFF00000000)) | np.uint64(i + 1)
    assert fourth_cell(cells, i, j, k, 0, 1) == -1


# --- plans


def groupings(plan: TablePlan) -> Iterator[tuple[frozenset[str], Any]]:
    for table in plan.tables:
        yield frozenset(level.label for level in table.levels), table


@pytest.mark.parametrize("sizes", [(5,), (5, 4), (4, 5), (4, 3, 2), (4, 2, 2, 3, 2)])
@pytest.mark.parametrize("finest", [False, True])
@pytest.mark.parametrize(
    "own", [(), (("v0:half", "v1"), ("v0", "v1")), (("v2", "v1"), ("v0", "v1", "v2"))]
)
def test_a_plan_holds_every_table_once_with_its_kind(
    sizes: tuple[int, ...], finest: bool, own: tuple[tuple[str, ...], ...]
) -> None:
    dataset = town(sizes, zeros=len(sizes) > 1)
    own = tuple(t for t in own if all(int(word[1]) < len(sizes) for word in t))
    plan = plan_tables(dataset, 2, own, finest_only=finest, extra_tables=3, extra_cells=30)
    assert plan_tables(dataset).variables == plan.variables, "stages share the order"
    labels = dict(groupings(plan))
    # v0 has two levels; at finest levels alone it has both only where it is the major variable.
    half = not finest or plan.major == "v0"
    every = [["v0", "v0:half"] if half else ["v0"], *([f"v{k}"] for k in range(1, len(sizes)))]
    small = {
        frozenset(labels_)
        for order in range(3)
        for chosen in combinations(every, order)
        for labels_ in product(*chosen)
    }
    asked = {frozenset(t) for t in own if not finest or "v0:half" not in t}
    assert small | asked <= set(labels)
    extra = set(labels) - small - asked
    assert len(labels) == len(plan.tables)
    assert (
        len(extra)
        == {1: 0, 2: 0, 3: int(asked != {frozenset(("v0", "v1", "v2"))}), 5: 3}[len(sizes)]
        or own
    )
    places = np.concatenate([table.places().ravel() for table in plan.tables])
    assert np.array_equal(np.sort(places), np.arange(plan.cells))
    for number, table in enumerate(plan.tables):
        label = frozenset(level.label for level in table.levels)
        assert table.by_agency == (label in asked)
        assert table.extra == (len(label) > 2 and label not in asked)
        assert table.label == (" x ".join(level.label for level in table.levels) or "all records")
        grid = table.places()
        kind = KINDS.index(kind_of(plan, table))
        assert (plan.layout.cell_kind[grid] == kind).all()
        assert (plan.table_of_cell[grid] == number).all()
        for place in range(-3, plan.cells + 3):
            at = table.categories(place)
            assert (at is not None) == (
                0 <= place < plan.cells and plan.table_of_cell[place] == number
            )
            assert at is None or grid[at] == place


@pytest.mark.parametrize("most", [1, 2, 3])
def test_extra_tables_are_those_with_the_fewest_cells(most: int) -> None:
    """Each further variable counts like four times the cells, and levels are twice as coarse or left out."""
    dataset = town((9, 4, 3, 2, 2), zeros=False)
    every = plan_tables(dataset, most, extra_tables=1000, extra_cells=10**6)
    sizes = {
        t.label: 4 ** (len(t.levels) - most - 1) * t.places().size for t in every.tables if t.extra
    }
    finest = [c for n in range(most + 1, 6) for c in combinations(range(5), n)]
    assert len(sizes) == len(finest), "the halves of the first variable are hardly coarser"
    for number in (0, 1, 7):
        few = plan_tables(dataset, most, extra_tables=number)
        taken = [sizes[t.label] for t in few.tables if t.extra]
        assert sorted(taken) == sorted(sizes.values())[:number]
    small = plan_tables(dataset, most, extra_tables=1000, extra_cells=100)
    assert sorted(t.label for t in small.tables if t.extra) == sorted(
        label for label, size in sizes.items() if size <= 100
    )


def test_the_tables_of_two_nodes_that_weigh_most_come_first() -> None:
    pairs = plan_tables(town((4, 3, 2, 2)), 3, (("v0:half", "v1", "v2"),)).layout.pairs
    rank = [KINDS.index(k) for k in ("own", "finest", "extra", "coarser", "single")]
    seen = set()
    for first, stop in pairwise(pairs.first.tolist()):
        ranks = [rank.index(kind) for kind in pairs.kind[first:stop].tolist()]
        assert ranks == sorted(ranks)
        seen.add(tuple(ranks))
    assert any(ranks[0] < ranks[-1] for ranks in seen if ranks)


def test_errors_are_added_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, stages = world("lanes", monkeypatch)
    plan = stages[-1].plan
    cells, order = _laid_out(problem, plan)
    wanted = PlainSearch(problem, stages, 0).errors(plan)
    for some in (1, 2, 10**6):
        monkeypatch.setattr(forces_module, "_SLICES", some)
        assert _errors(problem, cells, order, plan).tolist() == wanted


def test_cells_are_sorted_by_more_combinations_than_64_bits_count() -> None:
    """Private, as no dataset of a test has so many combinations."""
    from types import SimpleNamespace

    rng = np.random.default_rng(3)
    for sizes in ((3 * 2**21, 2**21, 2**21), (2**22, 2**22, 2**22), (9, 8, 7)):
        codes = np.stack([rng.integers(0, size, 50) for size in sizes])
        codes[:, :10] = np.array(sizes)[:, None] - 1 - rng.integers(0, 2, (3, 10))
        codes = np.unique(codes, axis=1)[:, ::-1]
        plan = SimpleNamespace(
            rows=lambda: [0, 2, 1],
            dataset=SimpleNamespace(variables=[SimpleNamespace(codes=range(s)) for s in sizes]),
        )
        order = run._sorted(plan, codes)  # type: ignore[arg-type]
        keys = [tuple(codes[[1, 2, 0], c].tolist()) for c in order]
        assert keys == sorted(map(tuple, codes[[1, 2, 0]].T.tolist()))


def test_tables_that_cannot_be_controlled_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="twice"):
        plan_tables(town((4, 3, 2)), 2, (("v0", "v0:half"),))
    single = {"dataset": {"name": "d"}, "variables": [{"name": "one", "codes": ["o"]}]}
    with pytest.raises(InputError, match="No variable of the dataset has two codes"):
        plan_tables(Dataset.from_mapping(single))
    cells = plan_tables(town((4, 3)), 2).cells
    monkeypatch.setattr(planned, "_MOST_CELLS", cells + 1)
    assert plan_tables(town((4, 3)), 2).cells == cells
    monkeypatch.setattr(planned, "_MOST_CELLS", cells)
    with pytest.raises(InputError, match=f"have {cells} cells; control tables of fewer variables"):
        plan_tables(town((4, 3)), 2)


def geography() -> Dataset:
    """Areas with a level of pairs; regions, with pairs of their own, follow from areas, and twins from each
    other."""
    areas = ["a0", "a1", "a2", "a3"]
    regions = {"r0": ["a0"], "r1": ["a1"], "r2": ["a2", "a3"]}

    def variable(name: str, codes: list[str], *levels: tuple[str, list[str]]) -> Words:
        named = [{"name": n, "groups": [{"code": f"{n}!", "members": m}]} for n, m in levels]
        hierarchies = [{"name": f"h {one['name']}", "levels": [one]} for one in named]
        return {"name": name, "codes": codes, "hierarchies": hierarchies}

    zeros = [
        {"region": [r], "area": [a for a in areas if a not in inside]}
        for r, inside in regions.items()
    ]
    zeros += [{"same": ["s0"], "twin": ["t0"]}, {"same": ["s1"], "twin": ["t1"]}]
    return Dataset.from_mapping(
        {
            "dataset": {"name": "d"},
            "variables": [
                variable("area", areas, ("pair", ["a0", "a1"]), ("all", areas)),
                variable("region", [*regions], ("pair", ["r1", "r2"])),
                variable("same", ["s0", "s1"]),
                variable("twin", ["t0", "t1"]),
                variable("one", ["o"]),
            ],
            "structural_zeros": [{"reason": "Never.", "where": where} for where in zeros],
        }
    )


def test_levels_are_the_distinct_ways_to_group_the_codes_of_a_variable() -> None:
    dataset = geography()
    found = controlled_levels(dataset)
    assert list(found) == ["area", "same"]
    groups = {level.label: level.group_of.tolist() for level in found["area"]}
    # Both variables have a level called pair, and the region with all areas in it is the total.
    assert groups == {
        "area": [0, 1, 2, 3],
        "area:region": [0, 1, 2, 2],
        "area:pair": [0, 0, 1, 2],
        "area:region.pair": [0, 1, 1, 1],
    }
    functions = [set(dependents(dataset, place)) - {4} for place in range(5)]
    assert functions == [{1}, set(), {3}, set(), set()]
    by_label = {level.label: level for levels in found.values() for level in levels}
    for word, label in (
        *(("area", "area"), ("area:pair", "area:pair"), ("region", "area:region")),
        *(("region:pair", "area:region.pair"), ("twin", "same"), ("same", "same")),
    ):
        assert find_level(found, dataset, word) is by_label[label]
    for word in ("one", "area:all"):
        with pytest.raises(InputError, match="puts all records into one group"):
            find_level(found, dataset, word)
    with pytest.raises(QueryError, match="nowhere"):
        find_level(found, dataset, "area:nowhere")
    with pytest.raises(InputError, match="names one variable twice"):
        plan_tables(dataset, 2, (("area", "region"),))


def test_the_demo_census_has_the_tables_that_its_figures_are_about() -> None:
    from lustrum.demo.draws import description_path
    from lustrum.tabulate import read_description

    demo = read_description(description_path("demo"))
    assert [level.size for level in controlled_levels(demo)["area"]] == [158, 14, 2]
    plan, finest = plan_tables(demo), plan_tables(demo, finest_only=True)
    assert (len(plan.tables), plan.cells, len(finest.tables)) == (995, 832_927, 151)
    assert sum(t.places().size for t in finest.tables if t.finest) == 261_818


def test_a_table_in_which_every_cell_holds_several_finest_ones_costs_something() -> None:
    """Errors of single finest cells cost nothing: otherwise shown numbers would tell the true ones."""
    pairs = [{"code": "p", "members": ["0", "1"]}, {"code": "q", "members": ["2", "3"]}]
    hierarchy = {"name": "h", "levels": [{"name": "pair", "groups": pairs}]}
    variables = [
        {"name": "a", "codes": ["0", "1", "2", "3"], "hierarchies": [hierarchy]},
        {"name": "b", "codes": ["x", "y", "z"]},
    ]
    plan = plan_tables(Dataset.from_mapping({"dataset": {"name": "d"}, "variables": variables}), 2)
    kinds = {
        label: set(plan.layout.cell_kind[t.places().ravel()].tolist())
        for label, t in groupings(plan)
    }
    single = {KINDS.index("single")}
    assert [k for k, v in kinds.items() if v == single] == [frozenset({"a", "b"})]
    assert frozenset({"a:pair", "b"}) in kinds
