"""Bounds passed through all tables that are held: true for the people behind them, and narrow."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.audit.test_overlap import BASE, CODES, EVERYTHING, NOISE, axis
from tests.examples import examples

from lustrum.audit.grids import EMPTY, HIDDEN, GridAxis, PopulationGrid, PopulationStructure
from lustrum.audit.held import HeldBounds, NarrowCount
from lustrum.audit.overlap import Holdings
from lustrum.model.arrays import Ints
from lustrum.protect.rounding.cells import RoundingChannel

NAMES = tuple(sorted(CODES))
CHANNEL = RoundingChannel(BASE)


def bounds(*grids: PopulationGrid) -> HeldBounds:
    holdings = Holdings(PopulationStructure(EVERYTHING), NOISE)
    holdings.add(grids)
    return HeldBounds(holdings, CHANNEL)


def true_counts(cube: Ints, axes: tuple[GridAxis, ...]) -> Ints:
    """Counts of each combination of categories, one by one."""
    by_name = {one.variable: one.parts for one in axes}
    parts = [by_name.get(name, (EVERYTHING[name],)) for name in NAMES]
    found = []
    for chosen in product(*parts):
        codes = [
            [code for code in range(CODES[name]) if part >> code & 1]
            for name, part in zip(NAMES, chosen, strict=True)
        ]
        found.append(int(cube[np.ix_(*codes)].sum()))
    return np.array(found).reshape([len(by_name[n]) for n in NAMES if n in by_name])


def shown(cube: Ints, axes: tuple[GridAxis, ...], keys: dict[bytes, int]) -> Ints:
    """Rounded by the people who count: the same people show the same number everywhere."""
    by_name = {one.variable: one.parts for one in axes}
    parts = [by_name.get(name, (EVERYTHING[name],)) for name in NAMES]
    numbers = []
    for chosen in product(*parts):
        mask = np.ones(cube.shape, bool)
        for at, (name, part) in enumerate(zip(NAMES, chosen, strict=True)):
            kept = np.array([bool(part >> code & 1) for code in range(CODES[name])])
            mask &= kept.reshape([-1 if one == at else 1 for one in range(len(NAMES))])
        people = np.where(mask, cube, 0)
        count, draw = int(people.sum()), keys.setdefault(people.tobytes(), len(keys) * 7 % BASE)
        residue = count % BASE
        numbers.append(count - residue + (BASE if draw < residue else 0))
    return np.array(numbers).reshape([len(by_name[n]) for n in NAMES if n in by_name])


@given(st.data())
@settings(max_examples=examples(40, 500), deadline=None)
def test_what_is_said_is_true_of_the_people_behind_it(data: st.DataObject) -> None:
    """No bound excludes the truth, whatever tables of however few people are held."""
    counts = data.draw(st.lists(st.integers(0, 4), min_size=24, max_size=24))
    cube = np.array(counts, dtype=np.int64).reshape([CODES[name] for name in NAMES])
    keys: dict[bytes, int] = {}
    grids = []
    for _ in range(data.draw(st.integers(1, 6))):
        chosen = data.draw(st.sets(st.sampled_from(NAMES), max_size=3))
        axes = []
        for name in sorted(chosen):
            codes = data.draw(st.sets(st.sampled_from(range(CODES[name])), min_size=1))
            axes.append(axis(name, *((code,) for code in sorted(codes))))
        numbers = shown(cube, tuple(axes), keys)
        hidden = data.draw(st.integers(0, 5)) == 0
        grids.append(PopulationGrid(tuple(axes), np.where(hidden, HIDDEN, numbers)))
    found = bounds(*grids)
    for grid, low, high in zip(found.grids, found.low, found.high, strict=True):
        true = true_counts(cube, grid.axes)
        assert (low <= true).all()
        assert (true <= high).all()
    for one in found.narrow(small=2, values=3):
        whole = true_counts(cube, tuple(GridAxis(n, (b,)) for n, b in one.cell)).sum()
        if one.left_of is not None:
            inner = dict(one.cell)
            for name, bits in one.left_of:
                inner[name] = inner.get(name, EVERYTHING[name]) & bits
            whole -= true_counts(
                cube, tuple(GridAxis(n, (b,)) for n, b in sorted(inner.items()))
            ).sum()
        assert one.low <= whole <= one.high


def test_one_person_between_two_tables_is_named() -> None:
    """A group shows 6 and all but one of its people 9: whoever holds both knows of exactly one person."""
    whole = PopulationGrid((axis("a", (0,)),), np.array([6]))
    part = PopulationGrid((axis("a", (0,)), axis("c", (0,))), np.array([[9]]))
    [one] = [found for found in bounds(whole, part).narrow(2, 1) if found.left_of is not None]
    assert one == NarrowCount((("a", 1),), 1, 1, (("a", 1), ("c", 1)))
    assert one.certain


def test_the_same_people_by_other_variables_are_named_where_the_description_tells() -> None:
    """Who has the last code of ``a`` has the second of ``c``: a 0 of which a part shows 3 is two."""
    rules = [{"a": 0b100, "c": 0b01}, {"a": 0b011, "c": 0b10}]
    whole = PopulationGrid((axis("c", (1,)),), np.array([0]))
    parts = PopulationGrid((axis("a", (2,)), axis("b")), np.array([[3, 0, 0, 0]]))

    def named(*known: dict[str, int]) -> set[tuple[int, int]]:
        holdings = Holdings(PopulationStructure(EVERYTHING, known), NOISE)
        holdings.add((whole, parts))
        found = HeldBounds(holdings, CHANNEL).narrow(2, 1)
        return {(one.low, one.high) for one in found if one.certain}

    assert named() == set()
    assert named(*rules) == {(1, 1), (2, 2)}


def test_other_numbers_are_one_person_apart_and_no_more() -> None:
    """Rounded to base 5 a group shows 5 (1 to 9) and some of its people 10 (6 to 14): they are 6 to 8."""
    holdings = Holdings(PopulationStructure(EVERYTHING), NOISE)
    part = (axis("a", (0,)), axis("c", (0,)))
    holdings.add(
        [PopulationGrid((axis("a", (0,)),), np.array([5])), PopulationGrid(part, np.array([[10]]))]
    )
    found = HeldBounds(holdings, RoundingChannel(5))
    ends = {
        len(grid.axes): (low.item(), high.item())
        for grid, low, high in zip(found.grids, found.low, found.high, strict=True)
    }
    assert ends == {1: (7, 9), 2: (6, 8)}


@pytest.mark.parametrize(("total", "parts", "certain"), [(0, (3, 0), True), (30, (15, 15), False)])
def test_small_cells_of_a_small_total_are_named(
    total: int, parts: tuple[int, int], certain: bool
) -> None:
    """A total of at most two people with a part that shows another number: one person is in it."""
    found = bounds(
        PopulationGrid((), np.array(total)), PopulationGrid((axis("c"),), np.array(parts))
    )
    assert any(one.certain for one in found.narrow(2, 3)) is certain


def test_what_everybody_knows_to_be_empty_is_not_named() -> None:
    found = bounds(PopulationGrid((axis("c"),), np.array([EMPTY, 60])))
    assert not list(found.narrow(2, 3))
