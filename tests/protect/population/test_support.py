"""What a protected population leaves open: supports, bounds and counts left, as enumeration finds them."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Category, Dataset, InputError
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.protect.population import support as supports
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.readers import (
    KnownTotals,
    Left,
    base_needed,
    candidates,
    known_totals,
    left_to,
)
from lustrum.protect.population.support import Combinations, Support, possible_combinations
from protect.population.worlds import KEY, cells_of, dense, town

SUPPORTS = [Support(b, s, e) for b in (2, 3, 5) for s in (False, True) for e in (False, True)]


def numbers_of(true: int, support: Support) -> set[int]:
    """The numbers that a cell with this many people may show, from the definition of the method."""
    base = support.base
    if true == 0:
        return {0, base} if support.empty_shown else {0}
    if support.small_only and true >= base:
        return {true}
    return {true // base * base, -(-true // base) * base}


@pytest.mark.parametrize("support", SUPPORTS, ids=str)
def test_bounds_are_the_ends_of_all_true_counts_that_can_show_a_number(support: Support) -> None:
    base = support.base
    behind: dict[int, list[int]] = {}
    for true in range(6 * base):
        for shown in numbers_of(true, support):
            behind.setdefault(shown, []).append(true)
    for shown in range(-base, 4 * base + 1):
        if shown in behind:
            low, high = support.bounds(shown)
            assert (int(low), int(high)) == (behind[shown][0], behind[shown][-1])
        else:
            with pytest.raises(InputError, match="does not produce"):
                support.bounds([0, shown])
    assert support.most_unlisted == behind[0][-1]


@pytest.mark.parametrize("which", ["all", "small"])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_every_count_of_the_support_and_no_other_is_found_behind_a_shown_number(
    which: Literal["all", "small"], share: float
) -> None:
    """In populations of cells with up to five people each, under some keys."""
    sizes = (6, 6, 6)
    method = ProtectedPopulation(cells=which, empty_share=share, sweeps=1)
    behind: dict[int, set[int]] = {}
    for number in range(6):
        true = np.random.default_rng(number).integers(0, 6, sizes)
        result = method.protect(cells_of(town(sizes, zeros=False), true), bytes([number]) * 32)
        for shown, count in zip(dense(result.cells).ravel(), true.ravel(), strict=True):
            behind.setdefault(int(shown), set()).add(int(count))
    for shown, found in behind.items():
        low, high = method.support.bounds(np.array([shown]))
        # Larger counts than five stood in no population.
        assert found == set(range(int(low[0]), min(int(high[0]), 5) + 1)), shown


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=4),
    st.sampled_from([s for s in SUPPORTS if s.base < 5]),
)
def test_bounds_of_a_sum_hold_all_populations_and_are_reached(
    multiples: list[int], support: Support
) -> None:
    shown = support.base * np.array(multiples)
    low, high = support.bounds(shown)
    sums = {sum(x) for x in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))}
    listed = shown > 0
    least, most = support.aggregate(low[listed].sum(), high[listed].sum(), listed.sum(), shown.size)
    assert (int(least), int(most)) == (min(sums), max(sums))
    with pytest.raises(InputError, match="More finest cells are listed"):
        support.aggregate([0, 0], [1, 1], [1, 3], [1, 2])


# --- cells that can be occupied

SIZES = {"a": 3, "b": 2, "c": 4, "d": 2, "e": 3}


def some_codes(name: str) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, SIZES[name] - 1), min_size=1, max_size=3, unique=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Dataset, list[tuple[str, tuple[Category, ...]]], Any]:
    """Variables that structural zeros tie together, the axes of a table, and what filters let pass."""
    zeros = [
        {name: [f"{name}{c}" for c in draw(some_codes(name))] for name in names}
        for names in draw(
            st.lists(
                st.lists(st.sampled_from("abcde"), min_size=2, max_size=3, unique=True), max_size=4
            )
        )
    ]
    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "tied"},
            "variables": [
                {"name": name, "codes": [f"{name}{c}" for c in range(n)]}
                for name, n in SIZES.items()
            ],
            "structural_zeros": [{"reason": "Never.", "where": where} for where in zeros],
        }
    )
    by = draw(st.lists(st.sampled_from("abcde"), max_size=3, unique=True))
    axes = [
        (name, tuple(Category(str(k), str(k), tuple(draw(some_codes(name)))) for k in range(2)))
        for name in by
    ]
    filters = draw(st.lists(st.sampled_from("abcde"), max_size=2, unique=True))
    return dataset, axes, {name: frozenset(draw(some_codes(name))) for name in filters}


@settings(max_examples=examples(25, 300), deadline=None)
@given(tables())
def test_possible_cells_of_a_table_are_those_that_counting_finds(
    world: tuple[Dataset, list[tuple[str, tuple[Category, ...]]], dict[str, frozenset[int]]],
) -> None:
    dataset, axes, passing = world
    grid = np.indices(tuple(SIZES.values())).reshape(len(SIZES), -1)
    wanted = np.zeros(tuple(len(c) for _, c in axes), dtype=np.int64)
    whole = wanted.copy()
    for column in grid[:, possible_cells(dataset, grid)].T.tolist():
        codes = dict(zip(SIZES, column, strict=True))
        rows = [
            [k for k, category in enumerate(categories) if codes[name] in category.members]
            for name, categories in axes
        ]
        for place in product(*rows):
            whole[place] += 1
            wanted[place] += all(codes[name] in allowed for name, allowed in passing.items())
    assert possible_combinations(dataset, axes, passing).tolist() == wanted.tolist()
    combinations = Combinations.of(dataset)
    assert combinations.within(axes, passing).tolist() == wanted.tolist()
    assert combinations.cells(axes) == int((whole > 0).sum())


def test_zeros_that_tie_too_many_variables_are_left_out_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    zeros = [{"v0": ["00"], "v1": ["11"]}, {"v1": ["10"], "v2": ["20", "21"]}]
    source = dict(town((3, 2, 4), zeros=False).source)
    source["structural_zeros"] = [{"reason": "Never.", "where": where} for where in zeros]
    dataset = Dataset.from_mapping(source)
    for most, wanted in ((3 * 2 * 4, 24 - 4 - 6), (3 * 2 * 4 - 1, (3 * 2 - 1) * 4), (1, 24)):
        monkeypatch.setattr(supports, "_MOST_COMBINATIONS", most)
        assert int(possible_combinations(dataset)) == wanted


# --- what is left to readers who know more

DATASET = town((2, 3), zeros=True)  # the last row cannot have the first column
POSSIBLE = possible_cells(DATASET, np.indices((2, 3)).reshape(2, -1)).reshape(2, 3)


@st.composite
def shown_and_true(draw: st.DrawFn) -> tuple[Support, np.ndarray, np.ndarray]:
    """A file, and one of the populations behind it."""
    support = Support(3, empty_shown=draw(st.booleans()))
    shown = np.array(draw(st.lists(st.sampled_from([0, 0, 3, 6]), min_size=6, max_size=6)))
    shown = np.where(POSSIBLE, shown.reshape(2, 3), 0)
    low, high = support.bounds(shown)
    share = np.array(draw(st.lists(st.floats(0, 1), min_size=6, max_size=6))).reshape(2, 3)
    return support, shown, np.where(POSSIBLE, low + np.round(share * (high - low)).astype(int), 0)


@settings(max_examples=examples(30, 200), deadline=None)
@given(shown_and_true(), st.integers(0, 9), st.booleans())
def test_counts_left_to_a_coalition_with_totals_are_those_of_enumeration(
    world: tuple[Support, np.ndarray, np.ndarray], people: int, exact: bool
) -> None:
    support, shown, true = world
    cells = FinestCells(DATASET, np.stack(np.nonzero(shown)), shown[shown > 0])
    known = (KnownTotals(("v0",), tuple(true.sum(axis=1).tolist())),) if exact else ()
    low, high = support.bounds(shown)
    ends = zip(low.ravel().tolist(), np.where(POSSIBLE, high, 0).ravel().tolist(), strict=True)
    every = np.array(list(product(*(range(a, b + 1) for a, b in ends)))).reshape(-1, 2, 3)
    if exact:
        every = every[(every.sum(axis=2) == true.sum(axis=1)).all(axis=1)]
    wanted: dict[int, int] = {}
    for row, column in zip(*np.nonzero(POSSIBLE), strict=True):
        held = every[:, row, column]
        left = np.unique(held[held >= people]).size
        wanted[left] = wanted.get(left, 0) + 1
    found = left_to(cells, support, known, people)
    assert list(found.histogram().items()) == [(k, wanted[k]) for k in sorted(wanted) if k]
    assert found.pinned == wanted.get(1, 0)
    for number in range(6):
        assert found.fewer_than(number) == sum(n for k, n in wanted.items() if 0 < k < number)
    for place, number in (
        (p, int(n)) for p, n in zip(np.argwhere(shown), shown[shown > 0], strict=True)
    ):
        alone = candidates(support, number, people)
        inside = [n for n in range(12) if number in numbers_of(n, support) and n >= people]
        assert alone.left == len(inside), place
        assert (alone.low, alone.high) == (inside[0], inside[-1]) if inside else str(alone)


def test_two_sets_of_totals_leave_what_either_leaves() -> None:
    shown = np.array([[3, 0, 0], [0, 3, 6]])
    cells, support = FinestCells(DATASET, np.stack(np.nonzero(shown)), shown[shown > 0]), Support(3)
    rows, columns = KnownTotals(("v0",), (2, 12)), KnownTotals(("v1",), (5, 5, 7))
    one, other = left_to(cells, support, (rows,)), left_to(cells, support, (columns,))
    both = left_to(cells, support, (rows, columns))
    # Rows leave 0 to 2, 4 to 5 and 7 to 8; columns leave 5, 3 to 5 and 5 to 7.
    assert [one.listed.tolist(), other.listed.tolist()] == [[3, 2, 2], [1, 3, 3]]
    # Nothing is both 0 to 2 and 5: these totals contradict each other, which is not looked for.
    assert both.listed.tolist() == [0, 2, 1]
    # Of cells that are not listed the first set is followed.
    assert both.unlisted == one.unlisted
    assert left_to(cells, support, (columns, rows)).unlisted == other.unlisted
    for values, fits in (
        ((10, 9), False),
        ((4, 14), False),
        ((4, 3), False),
        ((9, 13), True),
        ((0, 4), True),
    ):
        if fits:
            assert left_to(cells, support, (KnownTotals(("v0",), values),)).listed.size == 3
        else:
            with pytest.raises(InputError, match="does not fit"):
                left_to(cells, support, (KnownTotals(("v0",), values),))


def test_a_cell_in_which_readers_cannot_be_is_not_pinned_and_exact_ones_are_not_judged() -> None:
    found = Left(np.array([0, 1, 2, 3]), {0: 4, 1: 2, 2: 7, 5: 0})
    assert (found.pinned, found.fewer_than(3)) == (1 + 2, 2 + 9)
    assert found.histogram() == {1: 3, 2: 8, 3: 1}
    shown = np.array([[3, 0, 4], [0, 3, 7]])
    cells = FinestCells(DATASET, np.stack(np.nonzero(shown)), shown[shown > 0])
    support = Support(3, small_only=True)
    # A shown 3 stands for 1 to 3, with somebody in it; 4 and 7 are exact by choice.
    assert left_to(cells, support, (), 1).listed.tolist() == [3, 0, 3, 0]
    assert left_to(cells, support, (), 3).pinned == 2


def test_totals_are_counted_at_the_level_that_is_named() -> None:
    counts = np.arange(12).reshape(4, 3)
    counts[2] = 0  # a code in which nobody is listed has a total too
    cells = cells_of(town((4, 3), zeros=False), counts)
    rows, both, half = known_totals(cells, [["v0"], ["v1", "v0"], ["v0:half"]])
    assert rows == KnownTotals(("v0",), tuple(counts.sum(axis=1).tolist()))
    assert both == KnownTotals(("v1", "v0"), tuple(counts.T.ravel().tolist()))
    assert half.values == (counts[:2].sum(), counts[2].sum(), counts[3].sum())
    assert KnownTotals.from_mapping(both.to_mapping()) == both
    with pytest.raises(InputError, match="twice"):
        known_totals(cells, [["v0", "v0:half"]])


# --- what a policy may demand


def test_a_policy_may_demand_that_enough_counts_are_left() -> None:
    cells = cells_of(town((6, 5, 4)), np.random.default_rng(3).poisson(1.0, (6, 5, 4)))
    assert ProtectedPopulation(sweeps=1, coalition=2).protect(cells, KEY).public.support.base == 3
    with pytest.raises(InputError, match=r"leaves 1 counts to 2 people.*take the base 4"):
        ProtectedPopulation(sweeps=1, coalition=2, if_fewer="refuse").protect(cells, KEY)
    mended = ProtectedPopulation(sweeps=1, coalition=2, if_fewer="larger-base").protect(cells, KEY)
    assert mended.public.support.base == base_needed(2, 2) == 4
    assert mended.public.method["base"] == 4
    assert left_to(mended.cells, mended.public.support, (), 2).fewer_than(2) == 0
    small = ProtectedPopulation(sweeps=1, cells="small", if_fewer="refuse").protect(cells, KEY)
    assert left_to(small.cells, small.public.support, (), 1).pinned == 0


def test_totals_that_tell_too_much_are_refused_or_mended() -> None:
    """One person in a row of its own: the total tells the row, whatever the numbers are."""
    counts = np.zeros((6, 5), dtype=np.int64)
    counts[:4] = 20
    cells = cells_of(town((6, 5), zeros=False), counts)
    words: dict[str, Any] = {"sweeps": 1, "known_totals": (("v0",),), "empty_share": 0.0}
    with pytest.raises(InputError, match="public elsewhere leave fewer than 2 counts"):
        ProtectedPopulation(**words, if_fewer="refuse", coalition=0).protect(cells, KEY)
    with pytest.raises(InputError, match="public elsewhere"):
        ProtectedPopulation(**words, if_fewer="larger-base", coalition=0).protect(cells, KEY)
    said = ProtectedPopulation(**words).protect(cells, KEY)
    assert said.public.known[0].values == (100, 100, 100, 100, 0, 0)
    assert left_to(said.cells, said.public.support, said.public.known).pinned > 0
