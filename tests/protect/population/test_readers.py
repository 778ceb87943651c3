"""Readers who know more: what enumeration leaves to them, and what a policy may demand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import InputError
from lustrum.protect.population.cells import FinestCells, possible_cells
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.readers import KnownTotals, base_needed, known_totals, left_to
from lustrum.protect.population.support import Support
from protect.population.worlds import KEY, cells_of, town

DATASET = town((2, 3), zeros=True)  # the last row cannot have the first column
GRID = np.indices((2, 3)).reshape(2, -1)
POSSIBLE = possible_cells(DATASET, GRID).reshape(2, 3)
SUPPORT = Support(3)


@st.composite
def shown_and_true(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A file, and one of the populations behind it."""
    shown = np.array(draw(st.lists(st.sampled_from([0, 0, 3, 6]), min_size=6, max_size=6)))
    shown = np.where(POSSIBLE, shown.reshape(2, 3), 0)
    low, high = SUPPORT.bounds(shown)
    share = np.array(draw(st.lists(st.floats(0, 1), min_size=6, max_size=6))).reshape(2, 3)
    return shown, np.where(POSSIBLE, low + np.round(share * (high - low)).astype(int), 0)


@settings(max_examples=examples(20, 160), deadline=None)
@given(shown_and_true(), st.integers(0, 3), st.booleans())
def test_what_is_left_is_what_enumeration_leaves(
    world: tuple[np.ndarray, np.ndarray], people: int, exact: bool
) -> None:
    shown, true = world
    cells = FinestCells(DATASET, np.stack(np.nonzero(shown)), shown[shown > 0])
    known = (KnownTotals(("v0",), tuple(true.sum(axis=1).tolist())),) if exact else ()
    low, high = SUPPORT.bounds(shown)
    high = np.where(POSSIBLE, high, 0)
    every = np.array(
        [
            x
            for x in product(
                *(range(a, b + 1) for a, b in zip(low.ravel(), high.ravel(), strict=True))
            )
        ]
    ).reshape(-1, 2, 3)
    if exact:
        every = every[(every.sum(axis=2) == true.sum(axis=1)).all(axis=1)]
    wanted: dict[int, int] = {}
    for place in zip(*np.nonzero(POSSIBLE), strict=True):
        held = every[:, place[0], place[1]]
        left = np.unique(held[held >= people]).size
        wanted[left] = wanted.get(left, 0) + 1
    found = left_to(cells, SUPPORT, known, people)
    assert found.histogram() == {k: wanted[k] for k in sorted(wanted) if k}
    assert found.pinned == wanted.get(1, 0)


def test_several_sets_of_totals_hold_together() -> None:
    shown = np.array([[3, 0, 0], [0, 3, 6]])
    cells = FinestCells(DATASET, np.stack(np.nonzero(shown)), shown[shown > 0])
    rows = KnownTotals(("v0",), (4, 9))
    columns = KnownTotals(("v1",), (4, 2, 7))
    one, both = left_to(cells, SUPPORT, (rows,)), left_to(cells, SUPPORT, (rows, columns))
    assert (both.listed <= one.listed).all()
    with pytest.raises(InputError, match="does not fit"):
        left_to(cells, SUPPORT, (KnownTotals(("v0",), (99, 9)),))
    with pytest.raises(InputError, match="twice"):
        left_to(cells, SUPPORT, (KnownTotals(("v0", "v0"), (1, 2, 3, 4)),))


def test_totals_are_counted_at_the_level_that_is_named() -> None:
    dataset = town((4, 3), zeros=False)
    counts = np.arange(12).reshape(4, 3)
    cells = cells_of(dataset, counts)
    by_row, by_cell = known_totals(cells, [["v0"], ["v1", "v0"]])
    assert by_row.values == tuple(counts.sum(axis=1).tolist())
    assert by_cell.values == tuple(counts.T.ravel().tolist())
    assert KnownTotals.from_mapping(by_row.to_mapping()) == by_row


def test_a_policy_may_demand_that_enough_counts_are_left() -> None:
    rng = np.random.default_rng(3)
    cells = cells_of(town((6, 5, 4)), rng.poisson(1.0, (6, 5, 4)))
    assert ProtectedPopulation(sweeps=1, coalition=2).protect(cells, KEY).public.support.base == 3
    with pytest.raises(InputError, match=r"leaves 1 counts to 2 people.*take the base 4"):
        ProtectedPopulation(sweeps=1, coalition=2, if_fewer="refuse").protect(cells, KEY)
    mended = ProtectedPopulation(sweeps=1, coalition=2, if_fewer="larger-base").protect(cells, KEY)
    assert mended.public.support.base == base_needed(2, 2) == 4
    assert mended.public.method["base"] == 4
    assert left_to(mended.cells, mended.public.support, (), 2).fewer_than(2) == 0


def test_counts_that_are_exact_by_choice_are_not_judged() -> None:
    counts = np.random.default_rng(3).poisson(2.0, (6, 5, 4))
    method = ProtectedPopulation(sweeps=1, cells="small", if_fewer="refuse")
    result = method.protect(cells_of(town((6, 5, 4)), counts), KEY)
    assert (result.cells.counts > 3).any()
    assert left_to(result.cells, result.public.support, (), 1).pinned == 0


def test_totals_that_tell_too_much_are_refused_or_mended() -> None:
    """One person in a row of its own: the total tells the row, whatever the numbers are."""
    counts = np.zeros((6, 5), dtype=np.int64)
    counts[:4] = 20
    cells = cells_of(town((6, 5), zeros=False), counts)
    words = {"sweeps": 1, "known_totals": (("v0",),), "empty_share": 0.0}
    with pytest.raises(InputError, match="public elsewhere leave fewer than 2 counts"):
        ProtectedPopulation(**words, if_fewer="refuse", coalition=0).protect(cells, KEY)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="public elsewhere"):
        ProtectedPopulation(**words, if_fewer="larger-base", coalition=0).protect(cells, KEY)  # type: ignore[arg-type]
    said = ProtectedPopulation(**words).protect(cells, KEY)  # type: ignore[arg-type]
    assert said.public.known[0].values == (100, 100, 100, 100, 0, 0)
    assert left_to(said.cells, said.public.support, said.public.known).pinned > 0
