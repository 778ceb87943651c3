"""Small searches of every kind: what they find is allowed, its errors are true, and its bytes stay as they are.

The bytes belong to a version of the search: a bundle says which version made it, and a second release repeats
the first. Where one of these digests changes, so must ``SEARCH`` in ``lustrum.protect.population.public``.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pytest

from lustrum.model import Dataset
from lustrum.model.finest import FinestCells
from lustrum.protect.population.prepare import prepare
from lustrum.protect.population.public import SEARCH
from lustrum.protect.population.search import lanes
from lustrum.protect.population.search.layout import Plan, plan_tables
from lustrum.protect.population.search.run import (
    Problem,
    Searched,
    SearchState,
    search,
)
from lustrum.protect.population.search.stages import Cost, Stage
from lustrum.protect.population.start import cell_numbers
from protect.population.worlds import KEY, cells_of, town

KINDS = (Cost(10, 0, 70, 3), Cost(50, 1, 100, 4), Cost(90, 2), Cost(4))
WALL = (Cost(20, 0, 10**6, 2), Cost(50, 1, 10**6, 2), Cost(90, 2, 10**6, 2), Cost(5))


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

    problem: Problem
    dataset: Dataset
    plan: dict[str, Any]
    stages: tuple[dict[str, Any], ...]
    digest: str
    lanes: int = 1
    seed: int = 7

    def searched(self, **words: Any) -> tuple[Searched, list[SearchState]]:
        every = plan_tables(self.dataset, **self.plan)
        finest = plan_tables(
            self.dataset, self.plan["max_variables"], self.plan.get("own", ()), finest_only=True
        )
        stages = [
            Stage(
                finest if w.get("finest") else every,
                **{"costs": KINDS, **{k: v for k, v in w.items() if k != "finest"}},
            )
            for w in self.stages
        ]
        states: list[SearchState] = []

        def keep(state: SearchState) -> None:
            states.append(replace(state, up=state.up.copy(), fields=state.fields.copy()))

        words = {"workers": 1, **words}
        return search(self.problem, stages, self.seed, keep=keep, **words), states


def world(cells: FinestCells, plan: dict[str, Any], *stages: dict[str, Any], **more: Any) -> World:
    words = {name: more.pop(name) for name in ("lanes", "seed", "digest") if name in more}
    prepared = prepare(cells, KEY, **{"base": 3, "small_only": False, "empty_share": 0.1, **more})
    return World(prepared.problem, cells.dataset, plan, stages, **words)


def sweeps(number: int, hot: float, cold: float, **more: Any) -> dict[str, Any]:
    return {"sweeps": number, "hot": hot, "cold": cold, **more}


FLAT = counted((8, 7), 1.5, 2)
SMALL = counted((4, 4, 3), 2.0, 3)
SPARSE = counted((8, 6, 5), 0.2, 4)
FIVE = counted((4, 2, 2, 3, 2), 0.7, 5)
LATER, MEMORY = refined()
OWN = (("v0:half", "v1", "v2"),)
WORLDS = {
    "flat": world(FLAT, {"max_variables": 2}, sweeps(2, 0.1, 0.02), digest="89f0c2ebcffa953a"),
    "small": world(
        SMALL,
        {"max_variables": 2, "own": OWN, "extra_tables": 3},
        sweeps(1, 0.2, 0.1, finest=True, lost=3.0, near=2),
        sweeps(2, 0.05, 0.01),
        digest="ecbf0085095f0724",
    ),
    "sparse": world(
        SPARSE,
        {"max_variables": 3},
        sweeps(2, 0.05, 0.01, rings=2, near=3),
        base=4,
        empty_share=0.3,
        digest="a2d2f9aeab48f0c1",
    ),
    "lanes": world(
        FIVE,
        {"max_variables": 2, "own": OWN, "extra_tables": 4, "extra_cells": 16},
        sweeps(1, 0.1, 0.1, finest=True, lost=1.0),
        sweeps(2, 0.05, 0.01, lost=1.0),
        lanes=3,
        digest="7a22b95aa899462e",
    ),
    "small counts": world(
        SMALL,
        {"max_variables": 3},
        sweeps(2, 0.3, 0.1),
        small_only=True,
        base=5,
        digest="501ef6bed99041e1",
    ),
    "tied": world(
        LATER,
        {"max_variables": 3},
        sweeps(2, 0.3, 0.1),
        sweeps(1, 0.1, 0.1, beyond=1, walk=20, costs=WALL),
        previous=MEMORY,
        digest="35910d7d4d3039d7",
    ),
    "held": world(
        SMALL,
        {"max_variables": 2},
        sweeps(2, 0.05, 0.02),
        held=np.sort(cell_numbers(SMALL.dataset, SMALL.codes)[::3]),
        digest="d4cdc5d376b97f82",
    ),
    "walk": world(
        counted((5, 5, 4), 1.0, 6),
        {"max_variables": 3, "extra_tables": 2},
        sweeps(1, 0.05, 0.05, costs=WALL),
        sweeps(2, 0.002, 0.002, costs=WALL, beyond=2, most=0.2, slack=inf, walk=60),
        sweeps(1, 0.002, 0.002, costs=WALL),
        digest="1555610bd551a29e",
    ),
    "rule": world(
        counted((5, 4, 3), 0.8, 7),
        {"max_variables": 2},
        sweeps(3, 0.5, 0.2),
        empty_share=0.4,
        lanes=2,
        digest="ebd4c336bc76e116",
    ),
}


@pytest.fixture
def own(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    one = WORLDS[request.param]
    monkeypatch.setattr(lanes, "_LANES", one.lanes)
    monkeypatch.setattr(lanes, "_LANE_CELLS", 1)
    monkeypatch.setattr(lanes, "_ROUNDS", 3)
    monkeypatch.setattr(lanes, "_PART", 16)
    with warnings.catch_warnings():
        # Without the compiler, words that overflow say so.
        warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)
        yield one


def true_errors(own: World, plan: Plan, up: np.ndarray) -> np.ndarray:
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


@pytest.mark.parametrize("own", WORLDS, indirect=True)
def test_the_bytes_of_a_search_belong_to_its_version(own: World) -> None:
    found, states = own.searched()
    digest = hashlib.sha256()
    for array in (found.up, found.errors, found.moves):
        digest.update(np.ascontiguousarray(array).tobytes())
    for state in states:
        digest.update(f"{state.sweeps} {state.word}".encode())
        digest.update(state.up.tobytes() + state.fields.tobytes())
    assert (SEARCH, digest.hexdigest()[:16]) == (5, own.digest)


@pytest.mark.parametrize("own", ["small", "lanes", "walk", "tied"], indirect=True)
def test_neither_threads_nor_a_break_change_a_byte(own: World) -> None:
    found, states = own.searched()
    for words in ({"workers": 3}, *({"resume": state} for state in states[:-1])):
        again, _ = own.searched(**words)
        assert np.array_equal(again.up, found.up)
        assert np.array_equal(again.errors, found.errors)
