from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED, Relations, Structure, complete_relations, propagate
from lustrum.numeric.structure.ragged import Lists
from structure.cases import QUICK, axis, halves, table_lists

LINE = Structure.of_tables([[axis("x", a=[0], b=[1], all=[0, 1])]]).relations


def true_ranges(
    relations: Relations, low: list[int], high: list[int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """The least and most of each cell over all whole values that obey every relation."""
    values = np.array(
        list(itertools.product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))),
        dtype=np.int64,
    ).reshape(-1, relations.width)
    good = values[~np.any(relations.matrix @ values.T, axis=0)]
    return (good.min(axis=0), good.max(axis=0)) if good.size else None


@st.composite
def bounds(draw: st.DrawFn, width: int, most: int) -> tuple[list[int], list[int]]:
    pairs = [sorted(draw(st.tuples(*[st.integers(-1, most)] * 2))) for _ in range(width)]
    return [p[0] for p in pairs], [p[1] for p in pairs]


TINY = Structure.of_tables([[axis("x", a=[0], b=[1], all=[0, 1]), axis("y", c=[0], d=[1])]])
ODD = Structure.of_tables([[axis("x", ab=[0, 1], bc=[1, 2], ca=[0, 2], a=[0], all=[0, 1, 2])]])


@QUICK
@given(bounds(6, 2))
def test_bounds_contain_the_true_ranges_in_a_small_table(
    given_bounds: tuple[list[int], list[int]],
) -> None:
    check_outer(TINY.relations, *given_bounds)


@QUICK
@given(bounds(5, 3))
def test_bounds_contain_the_true_ranges_with_any_coefficients(
    given_bounds: tuple[list[int], list[int]],
) -> None:
    check_outer(complete_relations(ODD), *given_bounds)


def check_outer(relations: Relations, low: list[int], high: list[int]) -> None:
    found = propagate(relations, low, high)
    truth = true_ranges(relations, low, high)
    assert np.all(found.low >= low)
    assert np.all(found.high <= high)
    if truth is None:
        return
    assert found.consistent
    assert found.settled
    assert np.all(found.low <= truth[0])
    assert np.all(truth[1] <= found.high)


@QUICK
@given(bounds(4, 4))
def test_bounds_of_a_single_relation_are_sharp(given_bounds: tuple[list[int], list[int]]) -> None:
    low, high = given_bounds
    relations = Structure.of_tables([[axis("x", a=[0], b=[1], c=[2], all=[0, 1, 2])]]).relations
    truth = true_ranges(relations, low, high)
    found = propagate(relations, low, high)
    assert found.consistent == (truth is not None)
    if truth is not None:
        assert found.low.tolist() == truth[0].tolist()
        assert found.high.tolist() == truth[1].tolist()


def plain_propagate(
    relations: Relations, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The same narrowing in exact floats of small numbers, one cell at a time."""
    low, high = low.astype(float), high.astype(float)
    for _ in range(1000):
        before = low.copy(), high.copy()
        for i in range(relations.count):
            part = slice(relations.indptr[i], relations.indptr[i + 1])
            cells, factors = relations.cells[part], relations.coefficients[part]
            for k, (cell, c) in enumerate(zip(cells, factors, strict=True)):
                rest = np.arange(cells.size) != k
                ends = np.stack([low[cells[rest]], high[cells[rest]]]) * -factors[rest] / c
                low[cell] = max(low[cell], np.ceil(ends.min(axis=0).sum()))
                high[cell] = min(high[cell], np.floor(ends.max(axis=0).sum()))
                if low[cell] > high[cell]:
                    return None
        if np.array_equal(before, (low, high)):
            return low, high
    raise AssertionError("narrowing goes on for ever")


def relations_of(rows: list[dict[int, int]], width: int) -> Relations:
    return Relations.of(Lists.of([list(r) for r in rows], [list(r.values()) for r in rows]), width)


@QUICK
@given(table_lists(nested=True, tables=2), st.data())
def test_the_compiled_narrowing_equals_plain_arithmetic(
    structure: Structure, data: st.DataObject
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    truth = structure.matrix @ rng.integers(0, 20, structure.inner)
    low = (truth - rng.integers(0, 9, truth.size)).astype(float)
    high = (truth + rng.integers(0, 9, truth.size)).astype(float)
    low[rng.random(truth.size) < 0.3] = -np.inf
    high[rng.random(truth.size) < 0.3] = np.inf
    found = propagate(structure.relations, low, high)
    slow = plain_propagate(structure.relations, low, high)
    assert found.consistent
    assert np.all((found.low <= truth) & (truth <= found.high))
    assert np.array_equal(np.where(found.low == -UNBOUNDED, -np.inf, found.low), slow[0])
    assert np.array_equal(np.where(found.high == UNBOUNDED, np.inf, found.high), slow[1])


@QUICK
@given(st.data())
def test_any_coefficients_are_narrowed_as_by_plain_arithmetic(data: st.DataObject) -> None:
    """Relations between five cells, with bounds around values that fit or nearly fit them."""
    value = [data.draw(st.integers(-4, 8)) for _ in range(5)]
    rows = []
    for last in (3, 4)[: data.draw(st.integers(1, 2))]:
        others = data.draw(st.sets(st.integers(0, last - 1), min_size=1))
        row = {c: data.draw(st.sampled_from([-3, -2, -1, 1, 1, 2])) for c in sorted(others)}
        value[last] = sum(w * value[c] for c, w in row.items())
        rows.append(row | {last: -1})
    value[0] += data.draw(st.sampled_from([0, 0, 0, 0, 6]))
    reach, far = st.integers(0, 3), st.integers(0, 3).map(lambda k: k == 0)
    low = np.array([-np.inf if data.draw(far) else v - data.draw(reach) for v in value])
    high = np.array([np.inf if data.draw(far) else v + data.draw(reach) for v in value])
    relations = relations_of(rows, 5)
    found, wanted = propagate(relations, low, high), plain_propagate(relations, low, high)
    assert found.consistent == (wanted is not None)
    if wanted is None:
        assert not found.settled
        assert found.low[found.conflict] > found.high[found.conflict]
        return
    assert found.settled
    assert np.array_equal(np.where(found.low == -UNBOUNDED, -np.inf, found.low), wanted[0])
    assert np.array_equal(np.where(found.high == UNBOUNDED, np.inf, found.high), wanted[1])


def test_infinite_bounds_are_narrowed_by_finite_ones() -> None:
    low, high = propagate(LINE, [0, 0, -np.inf], [np.inf, np.inf, 7.9])
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [7, 7, 7]


def test_bounds_between_whole_numbers_are_drawn_in() -> None:
    found = propagate(LINE, [0.5, -np.inf, 0.0], [2.5, 3.0, np.inf])
    assert (found.low.tolist(), found.high.tolist()) == ([1, -2, 0], [2, 3, 5])
    assert not found.low.flags.writeable
    edge = propagate(LINE, [0, -(2**61), -(2**61)], [0, 2**61, 2**61])
    assert (edge.low.tolist()[1:], edge.high.tolist()[1:]) == ([-UNBOUNDED] * 2, [UNBOUNDED] * 2)


def test_unsigned_bounds_are_bounds_too() -> None:
    low, high = propagate(LINE, np.zeros(3, np.uint8), np.array([3, 4, 2**64 - 1], np.uint64))
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [3, 4, 7]


def test_what_nothing_bounds_stays_unbounded() -> None:
    low, high = propagate(LINE, [0, -np.inf, -np.inf], [5, UNBOUNDED, np.inf])
    assert low.tolist() == [0, -UNBOUNDED, -UNBOUNDED]
    assert high.tolist() == [5, UNBOUNDED, UNBOUNDED]


def test_a_contradiction_is_a_value() -> None:
    found = propagate(LINE, [5, 5, 0], [9, 9, 3])
    assert not found.consistent
    assert not found.settled
    assert repr(found) == f"Intervals(3 cells, no value left for cell {found.conflict})"
    assert propagate(LINE, [3, 0, 0], [2, 9, 9]).conflict == 0


def test_rounds_that_run_out_leave_valid_bounds() -> None:
    structure = Structure.of_tables([[halves("x", 4), halves("y", 3)]])
    rng = np.random.default_rng(3)
    truth = structure.matrix @ rng.integers(0, 9, structure.inner)
    low, high = truth - rng.integers(0, 4, truth.size), truth + rng.integers(0, 4, truth.size)
    none = propagate(structure.relations, low, high, rounds=0)
    once = propagate(structure.relations, low, high, rounds=1)
    full = propagate(structure.relations, low, high)
    assert np.array_equal(none.low, low)
    assert not once.settled
    assert full.settled
    for wide, narrow in ((none, once), (once, full)):
        assert np.all(wide.low <= narrow.low)
        assert np.all(narrow.low <= truth)
        assert np.all(narrow.high <= wide.high)
        assert np.all(truth <= narrow.high)


@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_too_far_for_sums_count_as_none(sign: int) -> None:
    """With 2**60 in both parts their sum is as good as endless, and nothing overflows."""
    far = 2**60
    pair = relations_of([{0: sign, 1: sign, 2: -sign}], 3)
    found = propagate(pair, [0, 0, 0], [far, far, UNBOUNDED])
    assert found.high.tolist() == [far, far, UNBOUNDED]
    assert propagate(pair, [0, 0, 0], [far - 1, far, UNBOUNDED]).high[2] == 2 * far - 1
    assert propagate(pair, [-far, -far, -UNBOUNDED], [0, 0, 0]).low[2] == -UNBOUNDED
    assert propagate(pair, [-far, 1 - far, -UNBOUNDED], [0, 0, 0]).low[2] == 1 - 2 * far
    tripled = relations_of([{0: 3 * sign, 1: -sign}], 2)
    assert propagate(tripled, [0, 0], [far, UNBOUNDED]).high.tolist() == [far, UNBOUNDED]
    assert propagate(tripled, [0, 0], [far // 2, UNBOUNDED]).high.tolist() == [
        far // 2,
        3 * far // 2,
    ]
    assert propagate(tripled, [0, 0], [UNBOUNDED, 10]).high.tolist() == [3, 9]
    assert propagate(tripled, [-UNBOUNDED, -10], [0, 0]).low.tolist() == [-3, -9]


def test_numbers_that_would_overflow_bound_nothing() -> None:
    far = 2**60
    many = relations_of([{**dict.fromkeys(range(10), 1), 10: -1}], 11)
    for low, high in (([0] * 11, [far] * 10 + [UNBOUNDED]), ([-far] * 10 + [-UNBOUNDED], [0] * 11)):
        found = propagate(many, low, high)
        assert (found.low.tolist(), found.high.tolist()) == (low, high)
        assert found.settled
    for weight in (16, -16):
        times = relations_of([{0: weight, 1: 1}], 2)
        found = propagate(times, [0, -UNBOUNDED], [far, UNBOUNDED])
        assert (found.low.tolist()[0], found.high.tolist()[0]) == (0, far)
        assert (found.low[1], found.high[1]) == ((-UNBOUNDED, 0) if weight > 0 else (0, UNBOUNDED))
        assert found.settled
    # 2**60 and more beside two parts of 1.25 times that: the sum of the parts is too far to tell.
    wide = relations_of([{0: 1, 1: -1, 2: -1}], 3)
    part = 5 * far // 4
    found = propagate(wide, [far, 0, 0], [UNBOUNDED, part, part])
    assert (found.low.tolist(), found.high.tolist()) == ([far, 0, 0], [UNBOUNDED, part, part])
    assert found.settled
    found = propagate(wide, [-UNBOUNDED, -part, -part], [-far, 0, 0])
    assert (found.low.tolist(), found.high.tolist()) == ([-UNBOUNDED, -part, -part], [-far, 0, 0])
    assert found.settled


def test_coefficients_round_towards_whole_numbers() -> None:
    twice = Relations.of(Lists.of([[0, 1]], [[2, -1]]), 2)  # cell 1 is twice cell 0
    low, high = propagate(twice, [-9, 1], [9, 7])
    assert low.tolist() == [1, 2]
    assert high.tolist() == [3, 6]


def test_no_bound_shows_in_the_words_of_a_result() -> None:
    assert repr(propagate(LINE, [71, 0, 0], [71, 9, 99])) == "Intervals(3 cells, consistent)"


@pytest.mark.parametrize(
    ("low", "sentence"),
    [
        ([0, 0], "3 published cells, but 2 bounds"),
        ([0, 0, np.nan], "not a number"),
        (["a", "b", "c"], "must be numbers"),
    ],
)
def test_bad_bounds_are_one_clear_sentence(low: list[object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        propagate(LINE, low, [9, 9, 9])
