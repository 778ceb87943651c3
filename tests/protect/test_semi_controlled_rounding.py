"""Semi-controlled rounding: exact probabilities for every cell, adjacent totals for every slice."""

from __future__ import annotations

import itertools
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

from lustrum.model import InputError, Table
from lustrum.protect.additive.apportion import systematic
from lustrum.protect.rounding.semi_controlled import SemiControlledRounding, round_by_slices

tables = arrays(np.int64, (3, 4, 2), elements=st.integers(0, 40))
overs = st.sampled_from(["table", ("a",), ("b",), ("c", "a"), ("a", "b", "c")])


def adjacent(true: np.ndarray, shown: np.ndarray, base: int) -> bool:
    return bool(np.all(shown % base == 0) and np.all(np.abs(shown - true) < base))


@pytest.mark.parametrize(
    ("values", "slices"),
    [
        ([1, 2, 2, 4, 0], [0, 0, 0, 0, 0]),
        ([1, 1, 1, 2, 5], [0, 1, 0, 1, 1]),
        ([7, 3, 4], [0, 0, 1]),
    ],
)
@pytest.mark.parametrize("base", [2, 3, 5])
@pytest.mark.parametrize("overall", [False, True])
def test_every_cell_goes_up_with_exactly_its_probability(
    values: list[int], slices: list[int], base: int, overall: bool
) -> None:
    """All orders of the cells and all starts, counted one by one."""
    counts, parts = np.array(values), np.array(slices)
    number = int(parts.max()) + 1
    ups, ways = np.zeros(counts.size, dtype=np.int64), 0
    if overall:
        starts = [
            (np.array([s]), np.array(o))
            for s in range(base)
            for o in itertools.permutations(range(number))
        ]
    else:
        starts = [(np.array(s), None) for s in itertools.product(range(base), repeat=number)]
    for order in itertools.permutations(range(counts.size)):
        for start, places in starts:
            words = np.array(order, dtype=np.uint64)
            out = round_by_slices(counts, base, parts, words, start, places)
            assert adjacent(counts, out, base)
            for part in range(number):
                own = parts == part
                assert adjacent(counts[own].sum(), out[own].sum(), base)
                for residue in range(1, base):
                    cells = own & (counts % base == residue)
                    expected = Fraction(residue * int(cells.sum()), base)
                    went = np.count_nonzero(out[cells] > counts[cells])
                    assert abs(went - expected) < 1
            if overall:
                assert adjacent(counts.sum(), out.sum(), base)
            ups += out > counts
            ways += 1
    for value, up in zip(values, ups.tolist(), strict=True):
        assert Fraction(up, ways) == Fraction(value % base, base)


@given(values=tables, base=st.integers(2, 11), over=overs, seed=st.integers(0, 2**32))
def test_kept_totals_become_adjacent_multiples(
    values: np.ndarray, base: int, over: object, seed: int
) -> None:
    table = Table.from_counts(values, names=["a", "b", "c"])
    for overall in (False, True):
        method = SemiControlledRounding(base, over, overall)  # type: ignore[arg-type]
        release = method.apply(table, np.random.default_rng(seed))
        assert adjacent(values, release.published, base)
        kept = () if over == "table" else over
        summed = tuple(i for i, n in enumerate("abc") if n not in kept)  # type: ignore[operator]
        assert adjacent(values.sum(axis=summed), release.published.sum(axis=summed), base)
        if overall:
            assert adjacent(values.sum(), release.published.sum(), base)


def test_a_total_that_is_a_multiple_is_kept_exactly() -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(0, 20, (50, 6))
    values[:, 0] += (-values.sum(axis=1)) % 5
    table = Table.from_counts(values, names=["area", "faith"])
    release = SemiControlledRounding(5, ("area",)).apply(table, rng)
    assert np.array_equal(release.published.sum(axis=1), values.sum(axis=1))
    assert np.count_nonzero(release.published != values) > 100


def test_the_same_slice_is_rounded_alike_in_overlapping_tables() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 2**64, (8, 5), dtype=np.uint64)
    values = rng.integers(0, 30, (8, 5))
    method = SemiControlledRounding(3, ("area",))
    names = ["area", "faith"]
    whole = method.apply(Table.from_counts(values, names=names, keys=keys)).published
    some = method.apply(Table.from_counts(values[3:6], names=names, keys=keys[3:6])).published
    turned = method.apply(Table.from_counts(values.T, names=names[::-1], keys=keys.T)).published
    assert np.array_equal(whole[3:6], some)
    assert np.array_equal(whole, turned.T)


def test_a_table_without_cells_is_left_alone() -> None:
    release = SemiControlledRounding().apply(Table.from_counts([]), np.random.default_rng(1))
    assert release.published.size == 0


def test_sampling_along_a_line_hits_each_place_as_often_as_its_size_says() -> None:
    sizes = np.array([3, 0, 7, 10, 1, 4])
    hits = sum(systematic(sizes, 10, start).astype(int) for start in range(10))
    assert hits.tolist() == sizes.tolist()


def test_wrong_parameters_are_one_sentence() -> None:
    for over in ("area", (), (1,), 5):
        with pytest.raises(InputError, match="'table' or"):
            SemiControlledRounding(3, over)  # type: ignore[arg-type]
    table = Table.from_counts([[1, 2]], names=["area", "sex"])
    with pytest.raises(InputError, match="no axis 'region'"):
        SemiControlledRounding(3, ("region",)).apply(table, np.random.default_rng(1))
    with pytest.raises(InputError, match="no record keys"):
        SemiControlledRounding().apply(table)
