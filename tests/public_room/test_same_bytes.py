"""A bundle is a function of protected cells, public words and coarse rates, and of nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model.finest import FinestCells
from lustrum.protect.population.agency import true_counts
from lustrum.protect.population.measure import public_report
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.protect.population.public import PublicReport
from lustrum.protect.population.search.plan import plan_tables
from lustrum.publish.bundles.write import pack_bundle
from protect.population.worlds import KEY, cells_of, town

SIZES = (28, 12, 8, 4)
METHOD = ProtectedPopulation(sweeps=2, empty_share=0.2)
PLAN = plan_tables(town(SIZES, zeros=False))
MOVING = {"errors", "group_errors", "rates", "free_rates", "margins", "group_margins"}
"""What a report says of errors; people who change places between cells of one shown number leave the rest."""
POLICY = (
    b'dataset = "town"\n[rules]\n[risk]\nlimit = 1.0\n[[before]]\nmethod = "protected-population"\n'
    b'[protect]\nmethod = "none"\nend = true\n'
)


@pytest.fixture(scope="module")
def world() -> tuple[FinestCells, PopulationResult]:
    counts = np.random.default_rng(5).poisson(0.9, SIZES)
    cells = cells_of(town(SIZES, zeros=False), counts)
    return cells, METHOD.protect(cells, KEY)


def report(true: np.ndarray, memory: FinestCells, key: bytes = KEY) -> PublicReport:
    """The public report of other true counts behind the same protected cells."""
    every = FinestCells(memory.dataset, memory.codes, true)
    errors = true_counts(PLAN, memory.codes, memory.counts - true)
    found: Any = SimpleNamespace(errors=errors)
    return public_report(METHOD.to_mapping(), METHOD.support, PLAN, every, memory, found, key)


def remembered(cells: FinestCells, memory: FinestCells) -> np.ndarray:
    """The true count of every remembered cell."""
    dense = np.zeros(SIZES, dtype=np.int64)
    dense[tuple(cells.codes.astype(np.intp))] = cells.counts
    return dense[tuple(memory.codes.astype(np.intp))]


def test_other_true_counts_behind_the_same_cells_and_rates_make_the_same_bundle(
    world: tuple[FinestCells, PopulationResult],
) -> None:
    """People change places between cells that show the same number; each such population fits the file."""
    cells, result = world
    memory = result.memory
    true = remembered(cells, memory)
    right = report(true, memory)
    assert right == result.public
    # Where the steps of a coarse figure begin is drawn by the key; several keys stand for all.
    keys = [bytes([k]) * 32 for k in range(8)]
    stated = [report(true, memory, key) for key in keys]
    alike = {n: np.flatnonzero(memory.counts == n) for n in np.unique(memory.counts)}
    same = []

    @settings(max_examples=25, deadline=None)
    @given(st.integers(0, 10**6), st.sampled_from([1, 2, 5]), st.integers(0, 7))
    def tried(seed: int, swaps: int, turn: int) -> None:
        right = stated[turn]
        rng = np.random.default_rng(seed)
        other = true.copy()
        for _ in range(swaps):
            places = alike[int(rng.choice([n for n in alike if alike[n].size > 40]))]
            one, two = rng.choice(places, 2, replace=False)
            other[[one, two]] = other[[two, one]]
        low, high = METHOD.support.bounds(memory.counts)
        assert ((low <= other) & (other <= high)).all()
        found = report(other, memory, keys[turn])
        bundle = pack_bundle(result.cells, POLICY, right)
        packed = pack_bundle(result.cells, POLICY, found)
        # Whatever the true counts are, they move coarse figures of one file alone.
        moved = {name for name in bundle.files if packed.files[name] != bundle.files[name]}
        assert moved <= {"report.json", "manifest.json"}
        words, others = right.to_mapping(), found.to_mapping()
        assert {name for name in words if others[name] != words[name]} <= MOVING
        for name, step in (("errors", 0.5), ("group_errors", 1.0)):
            assert all(abs(others[name][n] - error) <= step for n, error in words[name].items())
        for name, step in (("margins", 2), ("group_margins", 3)):
            for n, margins in words[name].items():
                assert np.abs(np.subtract(others[name][n], margins)).max() <= step
        assert (packed.digest == bundle.digest) == (found == right)
        if not np.array_equal(other, true):
            same.append(found == right)

    tried()
    # A third of such changes, of one to five pairs of cells, is below every step: then all bytes are equal.
    assert sum(same) >= 5
    assert len(same) > sum(same)


def test_every_figure_of_the_report_is_coarse(world: tuple[FinestCells, PopulationResult]) -> None:
    words = world[1].public.to_mapping()
    assert set(words) == {
        "method", "support", "changed", "errors", "group_errors", "rates", "free_rates", "known",
        "search", "releases", "margins", "group_margins", "largest",
    }  # fmt: skip
    assert words["method"] == METHOD.to_mapping()
    assert (words["changed"] * 20) % 1 == pytest.approx(0, abs=1e-9)
    for errors in (words["errors"], words["group_errors"]):
        assert all(error > 0 and error % 0.5 == 0 for error in errors.values())
    for margins, step in ((words["margins"], 2), (words["group_margins"], 3)):
        assert all(m > 0 and m % step == 0 for sizes in margins.values() for m in sizes)
    assert words["largest"] is None
    for rates in (words["rates"], words["free_rates"]):
        assert all(type(rate) is int for row in rates for rate in row)
    assert words["known"] == []
