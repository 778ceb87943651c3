"""Nearest controlled rounding: adjacent, additive, zero-restricted, always there, and really the nearest."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats
from scipy.optimize import Bounds, LinearConstraint, milp

from examples import examples
from lustrum.model import InputError
from lustrum.protect.rounding.controlled.two_way import CirculationLayout, nearest_rounding

PAPER = np.array([[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]])
PRINTED = np.array([[3, 87, 69, 72], [6, 9, 81, 3], [3, 3, 6, 108], [63, 6, 57, 6]])
flags = st.fixed_dictionaries({name: st.booleans() for name in ("rows", "columns", "grand")})


@st.composite
def hierarchies(draw, height: int) -> list[list[int]]:
    """Any family of groups of rows that nests, one row and all rows among them, in any order."""
    found: list[list[int]] = []

    def part(rows: list[int]) -> None:
        if draw(st.booleans()):
            found.append(rows)
        if len(rows) > 1:
            cut = draw(st.integers(1, len(rows) - 1))
            part(rows[:cut])
            part(rows[cut:])

    part(draw(st.permutations(range(height))))
    return draw(st.permutations(found))


@st.composite
def tables(draw, largest: int, count: int = 40):
    height, width = draw(st.integers(1, largest)), draw(st.integers(1, largest))
    size = height * width
    cells = draw(st.lists(st.integers(0, count), min_size=size, max_size=size))
    groups = draw(hierarchies(height)) if draw(st.booleans()) else []
    return np.array(cells).reshape(height, width), groups


def assert_controlled(layout: CirculationLayout, values, rounded, base: int) -> None:
    """Totals are sums of cells by how they are computed; all are adjacent multiples, multiples stay."""
    true, shown = layout.published(values), layout.published(rounded)
    assert np.all(shown % base == 0)
    assert np.all(np.abs(shown - true) < base)


def brute_force(layout: CirculationLayout, values, base: int, weights, power: int) -> int:
    """The least distance over all roundings of the inner cells whose totals are adjacent too."""
    true, floor = layout.published(values), values - values % base
    best = None
    for ups in itertools.product(*[(0, base) if v % base else (0,) for v in values.ravel()]):
        away = np.abs(layout.published(floor + np.reshape(ups, values.shape)) - true)
        if away.max() < base:
            distance = int((weights * away**power).sum())
            best = distance if best is None else min(best, distance)
    assert best is not None
    return best


@given(table=tables(3), base=st.sampled_from([2, 3, 4, 5, 10]), options=flags, data=st.data())
@settings(max_examples=examples(60, 480))
def test_no_adjacent_rounding_of_a_tiny_table_is_nearer(table, base, options, data) -> None:
    values, groups = table
    layout = CirculationLayout(*values.shape, groups, **options)
    size = layout.published(values).size
    weights = data.draw(
        st.none() | st.lists(st.integers(0, 4), min_size=size, max_size=size).map(np.array)
    )
    for norm, power in (("l1", 1), ("l2", 2)):
        found = nearest_rounding(values, base, norm=norm, groups=groups, weights=weights, **options)
        assert_controlled(layout, values, found.cells, base)
        away = np.abs(layout.published(found.cells) - layout.published(values))
        given_weights = np.ones(size, dtype=int) if weights is None else weights
        assert found.distance == (given_weights * away**power).sum()
        assert found.distance == brute_force(layout, values, base, given_weights, power)


@given(
    table=tables(12, 10_000), base=st.integers(2, 30), options=flags, seed=st.none() | st.just(1)
)
def test_every_table_with_one_hierarchy_has_a_controlled_rounding(
    table, base, options, seed
) -> None:
    values, groups = table
    rng = None if seed is None else np.random.default_rng(seed)
    found = nearest_rounding(values, base, groups=groups, rng=rng, **options)
    assert_controlled(
        CirculationLayout(*values.shape, groups, **options), values, found.cells, base
    )


@given(values=st.lists(st.integers(0, 99), min_size=1, max_size=9), data=st.data())
def test_one_way_tables_with_any_tree_are_rounded_as_near_as_can_be(values, data) -> None:
    values = np.array(values)
    base, grand = data.draw(st.integers(2, 7)), data.draw(st.booleans())
    groups = data.draw(hierarchies(values.size))
    layout = CirculationLayout(values.size, 1, groups, rows=False, columns=False, grand=grand)
    found = nearest_rounding(values, base, groups=groups, grand=grand)
    assert found.cells.shape == values.shape
    assert_controlled(layout, values, found.cells, base)
    assert found.distance == brute_force(layout, values, base, 1, 1)


def by_integer_program(layout: CirculationLayout, values, base: int) -> int:
    """One binary a published number and one equation a sum, from the definition of each sum."""
    cells = values.size
    units = np.eye(cells, dtype=np.int64).reshape(cells, *values.shape)
    sums = np.array([layout.published(unit) for unit in units]).T
    true = sums @ values.ravel()
    residue, count = true % base, len(sums)
    up = np.zeros((count - cells, count))
    up[:, :cells] = sums[cells:]
    up[np.arange(count - cells), np.arange(cells, count)] = -1
    down = (true // base)[cells:] - sums[cells:] @ (values.ravel() // base)
    found = milp(
        base - 2 * residue,
        integrality=np.ones(count),
        bounds=Bounds(0, residue > 0),
        constraints=[LinearConstraint(up, down, down)],
        options={"mip_rel_gap": 0.0},
    )
    assert found.status == 0
    return round(found.fun) + int(residue.sum())


@pytest.mark.parametrize("base", [3, 5, 10])
def test_medium_tables_agree_with_an_integer_program(base: int) -> None:
    rng = np.random.default_rng(base)
    values = rng.negative_binomial(1, 0.1, (12, 9))
    regions = [[0, 1, 2], [3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6], [8, 10, 11], [10, 11]]
    for groups in ([], regions):
        for rows, columns, grand in [(True, True, True), (False, True, False), (True, False, True)]:
            layout = CirculationLayout(12, 9, groups, rows, columns, grand)
            found = nearest_rounding(
                values, base, groups=groups, rows=rows, columns=columns, grand=grand
            )
            assert found.distance == by_integer_program(layout, values, base)


def test_the_published_example_is_a_controlled_rounding_and_ours_is_no_further_away() -> None:
    everything = CirculationLayout(4, 4)
    assert_controlled(everything, PAPER, PRINTED, 3)
    assert PRINTED.sum(axis=1).tolist() == [231, 99, 120, 132]
    assert PRINTED.sum(axis=0).tolist() == [75, 105, 213, 189]
    assert PRINTED.sum() == 582
    inner_only = np.repeat([1, 0], [16, 9])
    for norm, power in (("l1", 1), ("l2", 2)):
        for weights in (np.ones(25, dtype=int), inner_only):
            away = np.abs(everything.published(PRINTED) - everything.published(PAPER))
            found = nearest_rounding(PAPER, 3, norm=norm, weights=weights)
            assert_controlled(everything, PAPER, found.cells, 3)
            assert found.distance <= (weights * away**power).sum()
    assert nearest_rounding(PAPER, 3).distance == 20
    assert nearest_rounding(PAPER, 3, norm="l2").distance == 24


def test_subtotals_are_rounded_too() -> None:
    """Both rows of the group become 0 unless their subtotals count."""
    values = np.array([[1, 1], [1, 1], [0, 3]])
    with_groups = nearest_rounding(values, 3, groups=[[0, 1]], rows=False, columns=False)
    assert with_groups.cells[:2].sum(axis=0).tolist() in ([3, 0], [0, 3], [3, 3])
    assert nearest_rounding(values, 3, rows=False, columns=False, grand=False).cells.tolist() == [
        [0, 0],
        [0, 0],
        [0, 3],
    ]


def test_unpublished_totals_bind_nothing() -> None:
    values = np.random.default_rng(4).integers(0, 50, (6, 5))
    free = nearest_rounding(values, 5, rows=False, columns=False, grand=False)
    assert np.array_equal(free.cells, (values + 2) // 5 * 5)


def test_ties_are_broken_always_alike_or_by_chance_but_never_at_a_distance() -> None:
    values = np.ones((3, 3), dtype=int)
    best = nearest_rounding(values, 3)
    assert best.cells.tobytes() == nearest_rounding(values, 3).cells.tobytes()
    drawn = [nearest_rounding(values, 3, rng=np.random.default_rng(seed)) for seed in range(300)]
    assert {found.distance for found in drawn} == {best.distance}
    # The six permutation matrices are all that is nearest, and each is met.
    assert len({found.cells.tobytes() for found in drawn}) == 6
    again = nearest_rounding(values, 3, rng=np.random.default_rng(7))
    assert again.cells.tobytes() == drawn[7].cells.tobytes()


@given(table=tables(8, 300), base=st.integers(2, 9), seed=st.integers(0, 99))
def test_chance_never_costs_any_distance(table, base, seed) -> None:
    values, groups = table
    by_chance = nearest_rounding(values, base, groups=groups, rng=np.random.default_rng(seed))
    assert by_chance.distance == nearest_rounding(values, base, groups=groups).distance


def test_chance_rounds_halves_both_ways() -> None:
    """A residue of half the base is as near above as below: 1,000 draws, false alarm one in a million."""
    rng = np.random.default_rng(9)
    found = [nearest_rounding([2], 4, grand=False, rng=rng).cells[0] for _ in range(1000)]
    assert stats.binomtest(found.count(4), 1000).pvalue > 1e-6


@given(table=tables(5), base=st.integers(3, 9), options=flags, data=st.data())
def test_one_more_in_any_cell_may_stand_behind_any_published_table(
    table, base, options, data
) -> None:
    """So no published table tells a cell exactly: itself and this one look the same."""
    shown, groups = table[0] * base, table[1]
    row = data.draw(st.integers(0, shown.shape[0] - 1))
    column = data.draw(st.integers(0, shown.shape[1] - 1))
    more = shown.copy()
    more[row, column] += 1
    for values in (shown, more):
        found = nearest_rounding(values, base, groups=groups, **options)
        assert np.array_equal(found.cells, shown)


def test_large_numbers_stay_exact() -> None:
    values = np.array([[10**15 + 1, 2], [3, 10**17 + 4]])
    base = 10**9 + 7
    for norm, power in (("l1", 1), ("l2", 2)):
        found = nearest_rounding(values, base, norm=norm, weights=np.full(9, 3))
        assert_controlled(CirculationLayout(2, 2), values, found.cells, base)
        moves = CirculationLayout(2, 2).published(found.cells) - CirculationLayout(2, 2).published(
            values
        )
        assert found.distance == sum(3 * abs(d) ** power for d in moves.tolist())


def test_empty_tables_stay_empty() -> None:
    for shape in ((0, 3), (3, 0), (0,)):
        assert nearest_rounding(np.zeros(shape, dtype=int), 3).cells.shape == shape


def test_the_distance_is_not_shown() -> None:
    assert "distance" not in repr(nearest_rounding(PAPER, 3))


@pytest.mark.parametrize(
    ("values", "options", "says"),
    [
        ([[1]], {"base": 1}, "whole base of 2 or more"),
        ([[1]], {"base": 3.0}, "whole base of 2 or more"),
        ([[1]], {"base": True}, "whole base of 2 or more"),
        ([[[1]]], {}, "one or two axes"),
        (1, {}, "one or two axes"),
        ([[1.5]], {}, "whole numbers"),
        ([[-1]], {}, "negative"),
        ([[2**62]], {}, "too large"),
        ([[1]], {"norm": "l3"}, "'l1' or 'l2'"),
        ([[1], [2], [3]], {"groups": [[0, 1], [1, 2]]}, "Groups 0 and 1 of the rows overlap"),
        ([[1], [2], [3]], {"groups": [[0], [0, 1, 2], [0, 1], [1, 2]]}, "overlap in part"),
        ([[1], [2]], {"groups": [[0, 2]]}, "from 0 to 1"),
        ([[1], [2]], {"groups": [[]]}, "some rows"),
        ([[1], [2]], {"groups": [[1, 1]]}, "each once"),
        ([[1]], {"weights": [1, 1]}, "must be 4 whole numbers"),
        ([[1]], {"weights": [1, 1, 1, -1]}, "0 or more"),
        ([[1]], {"weights": [2**58] * 4}, "smaller weights"),
        ([[1]], {"weights": [2**53] * 4, "rng": np.random.default_rng(1)}, "break ties"),
    ],
)
def test_bad_input_is_told_in_one_sentence(values, options, says) -> None:
    with pytest.raises(InputError, match=says) as error:
        nearest_rounding(values, **({"base": 3} | options))
    assert str(error.value).count(".") == 1 or "3.0" in str(error.value)
