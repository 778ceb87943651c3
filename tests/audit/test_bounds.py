"""Bounds hold, and sharp ones are reached: compared with every table there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from audit.fibres import QUICK, axis, splits
from lustrum.audit import Knowledge, PublishedTable, bounds, from_margins, from_tables
from lustrum.model import InputError
from lustrum.numeric.structure import Structure

IJ = [[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]]
JK = [[5, 2, 68], [10, 10, 85], [69, 81, 61], [7, 132, 51]]
IK = [[74, 75, 81], [3, 85, 9], [8, 61, 52], [6, 4, 123]]


@st.composite
def systems(draw: st.DrawFn) -> Knowledge:
    """A few cells in a small box, tied by any whole facts."""
    count = draw(st.integers(1, 4))
    names = [f"x{i}" for i in range(count)]
    known = Knowledge.of(names, low=-9)
    for name in names:
        low = draw(st.integers(-1, 2))
        known = known.bound(name, low, low + draw(st.integers(0, 4)))
    for _ in range(draw(st.integers(0, 3))):
        weights = {n: draw(st.sampled_from([-2, -1, 0, 1, 1, 2])) for n in names}
        low = draw(st.integers(-2, 8))
        known = known.fact(weights, low, low + draw(st.sampled_from([0, 0, 0, 1, 3])))
    return known


SETS = [list(s) for size in (1, 2) for s in itertools.combinations(range(3), size)]


@st.composite
def published(draw: st.DrawFn):
    """A table over a hidden 3 x 2 cube, any groups of codes, some cells suppressed."""
    rows = draw(st.lists(st.sampled_from(SETS), unique_by=tuple, max_size=4))
    columns = draw(st.lists(st.sampled_from([[0], [1]]), unique_by=tuple, max_size=2))
    axes = [axis("r", *rows, [0, 1, 2]), axis("c", *columns, [0, 1])]
    people = draw(st.lists(st.integers(0, 2), min_size=6, max_size=6))
    assume(sum(people) <= 5)
    structure = Structure.of_tables([axes], hidden=[axis("r", [0], [1], [2]), axis("c", [0], [1])])
    table = structure.published(np.array(people))[0]
    mask = np.array(
        draw(st.lists(st.booleans(), min_size=table.size, max_size=table.size))
    ).reshape(table.shape)
    mask[-1, -1] = False
    return axes, structure, np.array(people), table, mask


@QUICK
@given(published())
def test_a_suppressed_table_is_bounded_by_all_tables_that_show_the_same(case):
    axes, structure, people, table, mask = case
    known = from_tables([PublishedTable.exact(axes, np.where(mask, -1, table), mask)])
    found = bounds(known, known.table(0), integer=True)
    every = splits(int(people.sum()), 6) @ structure.matrix.toarray().astype(np.int64).T
    shown = ~mask.ravel()
    fits = every[(every[:, shown] == table.ravel()[shown]).all(axis=1)]
    assert found.low.tolist() == fits.min(axis=0).tolist()
    assert found.high.tolist() == fits.max(axis=0).tolist()


@QUICK
@given(published(), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_a_table_rounded_cell_by_cell_is_bounded_by_all_that_round_alike(case, base, seed):
    axes, structure, _, table, _ = case
    up = np.random.default_rng(seed).integers(0, 2, table.shape)
    rounded = table - table % base + base * up * (table % base > 0)
    known = from_tables([PublishedTable.rounded(axes, rounded, base, "adjacent")])
    found = bounds(known, known.table(0), integer=True)
    most = int(rounded[-1, -1]) + base - 1
    matrix = structure.matrix.toarray().astype(np.int64)
    every = np.vstack([splits(n, 6) @ matrix.T for n in range(most + 1)])
    fits = every[(np.abs(every - rounded.ravel()) < base).all(axis=1)]
    assert found.low.tolist() == fits.min(axis=0).tolist()
    assert found.high.tolist() == fits.max(axis=0).tolist()


def test_three_margins_need_integer_bounds_in_one_cell_only():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK, "IK": IK})
    cube = known.table(0)
    linear, whole = bounds(known.relaxed(), cube), bounds(known, cube, integer=True)
    ends = np.concatenate([linear.low, linear.high])
    broken = np.flatnonzero(np.abs(ends - np.round(ends)) > 1e-6)
    special = known.cell(["1", "3", "3"])
    assert broken.tolist() == [48 + special]
    assert linear.high[special] == pytest.approx(13.5)
    assert whole.high[special] == 13
    assert whole.sharp.all()
    for codes, ends in {"131": (54, 68), "123": (67, 81), "413": (57, 64)}.items():
        cell = known.cell(list(codes))
        assert (whole.low[cell], whole.high[cell]) == ends


def test_without_integer_programming_an_open_question_is_said_to_be_open():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK, "IK": IK})
    found = bounds(known, known.table(0))
    special = known.cell(["1", "3", "3"])
    assert found.high[special] == 13  # 13.5 drawn in
    # Whether a table with 13 is met on the way is luck; no other cell needs it.
    assert set(np.flatnonzero(~found.sharp).tolist()) <= {special}
    parity = Knowledge.of("xyz").fact({"x": 2, "y": 2, "z": 1}, 5, 5).fact({"x": 1, "z": 3}, 0, 9)
    linear, whole = bounds(parity), bounds(parity, integer=True)
    assert not linear.sharp.all()
    assert whole.sharp.all()
    assert (linear.low <= whole.low).all()


def test_a_hidden_margin_is_bounded_through_the_cube():
    known = from_margins({"I": 4, "J": 4, "K": 3}, {"IJ": IJ, "JK": JK}, hidden=["IK"])
    found = bounds(known, known.table(1))
    assert found.high.reshape(4, 3).tolist() == [
        [88, 152, 200],
        [86, 94, 78],
        [21, 120, 65],
        [74, 71, 133],
    ]
    assert found.low.reshape(4, 3).tolist() == [[0, 14, 67], [0, 0, 0], [0, 49, 0], [0, 0, 57]]
    failing = found.high.reshape(4, 3) < 1.2 * np.array(IK)
    # The paper names (3,3) instead of (4,3); its own bounds say otherwise: 65 is more than 63.
    assert np.argwhere(failing).tolist() == [[0, 0], [1, 1], [3, 2]]


def test_rounded_margins_bound_a_hidden_one_too():
    # Margins rounded to base 3 leave wider bounds than exact ones.
    i, j, k = (axis(n, *[[c] for c in range(s)]) for n, s in (("I", 4), ("J", 4), ("K", 3)))
    rounded = [
        PublishedTable.rounded([a, b], 3 * ((np.array(v) + 1) // 3), 3)
        for a, b, v in ((i, j, IJ), (j, k, JK))
    ]
    known = from_tables([PublishedTable.hidden([i, k]), *rounded])
    wide = bounds(known, known.table(0))
    assert (wide.low.reshape(4, 3) <= np.array(IK)).all()
    assert (wide.high >= [88, 152, 200, 86, 94, 78, 21, 120, 65, 74, 71, 133]).all()


def test_cells_that_nothing_ties_keep_their_own_bounds():
    found = bounds(Knowledge.of(["x", "y", "z"]).fact({"x": 1, "y": -1}, 0, 0))
    assert found.high.tolist() == [np.inf] * 3
    assert found.low.tolist() == [0] * 3
    assert found.count.tolist() == [np.inf] * 3


def test_only_the_pieces_asked_about_are_solved():
    class Counting:
        loaded = 0

        def load(self, problem):
            from solve.scipy_highs import ScipyHighs

            Counting.loaded += 1
            assert problem.low.size == 2
            return ScipyHighs().load(problem)

    known = Knowledge.of("abcd").fact({"a": 1, "b": 1}, 5, 5).fact({"c": 1, "d": 1}, 6, 6)
    assert bounds(known, ["a"], solver=Counting()).high.tolist() == [5]
    assert Counting.loaded == 1


def test_magnitudes_of_a_trillion_are_bounded_to_the_unit():
    great = 10**12
    known = Knowledge.of("abcd")
    for pair, total in (("ab", 3 * great + 1), ("cd", great + 7), ("ac", 2 * great + 3)):
        known = known.fact(dict.fromkeys(pair, 1), total, total)
    found = bounds(known)
    assert found.low.tolist() == [great - 4, great - 2, 0, 0]
    assert found.high.tolist() == [2 * great + 3, 2 * great + 5, great + 7, great + 7]
    assert found.sharp.all()


def test_real_numbers_cannot_be_counted():
    with pytest.raises(InputError, match="counted"):
        _ = bounds(Knowledge.of("x").bound("x", high=3).relaxed()).count
