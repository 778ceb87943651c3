"""Knowledge and its pieces, written out: what is kept, what is refused, and what ties cells together."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from audit.fibres import axis
from lustrum.audit import (
    ContradictionError,
    Knowledge,
    PublishedTable,
    bounds,
    from_margins,
    from_release,
    from_suppression,
    from_tables,
)
from lustrum.audit.knowledge.reduce import as_floats, narrowed, pieces
from lustrum.model import CellStatus, InputError, Release, Table, Variable
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect import RoundingChannel


def test_bounds_and_facts_are_added_to_what_is_known() -> None:
    known = Knowledge.of("abc", low=-3, decimals=1)
    assert (known.low.tolist(), known.high.tolist()) == ([-3] * 3, [UNBOUNDED] * 3)
    assert (known.decimals, len(known), known.matrix.shape) == (1, 3, (0, 3))
    known = known.bound("b", low=2, high=8).bound(1, low=1, high=9)
    assert (known.low.tolist(), known.high.tolist()[1]) == ([-3, 2, -3], 8)
    known = known.bound("b", low=4).bound("b", high=6)
    assert (known.low[1], known.high[1]) == (4, 6)
    known = known.within([0, 5, -9], [7, 9, 9])
    assert (known.low.tolist(), known.high.tolist()) == ([0, 5, -3], [7, 6, 9])
    known = known.fact({"a": 1, "c": -2}, 3, 4).fact({"b": 1})
    assert known.matrix.toarray().tolist() == [[1, 0, -2], [0, 1, 0]]
    assert known.fact_low.tolist() == [3, -UNBOUNDED]
    assert known.fact_high.tolist() == [4, UNBOUNDED]
    assert (known.relaxed().whole, known.whole) == (False, True)
    assert not known.low.flags.writeable


def test_estimates_and_structural_zeros_narrow_the_cells_they_name() -> None:
    known = Knowledge.of("abcd").within([0] * 4, [100] * 4)
    about = known.estimated([10, 50, 5, 0], 20)
    assert about.low.tolist() == [8, 40, 4, 0]
    assert about.high.tolist() == [12, 60, 6, 0]
    some = known.estimated([50], 10, ["c"])
    assert (some.low.tolist(), some.high.tolist()) == ([0, 0, 45, 0], [100, 100, 55, 100])
    assert known.estimated([7] * 4, 0).low.tolist() == [7] * 4
    none = known.zero(["b"]).zero(np.array([False, False, False, True]))
    assert none.high.tolist() == [100, 0, 100, 0]
    assert none.low.tolist() == [0] * 4
    debts = Knowledge.of("ab", low=-5).zero(["a"])
    assert (debts.low.tolist(), debts.high.tolist()) == ([0, -5], [0, UNBOUNDED])
    for wrong in (lambda: known.estimated([1] * 4, -1), lambda: known.estimated([1] * 4, np.inf),
                  lambda: known.estimated([1] * 3, 5), lambda: known.zero(np.ones(3, bool))):  # fmt: skip
        with pytest.raises(InputError):
            wrong()


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ([0, 0], [9], "shape"),
        ([0, 0], [2**53 + 1, 9], r"2\*\*53"),
        ([0, 5], [0, 4], "no value is left for b"),
        ([1, 5], [0, 9], "no value is left for a"),
    ],
)
def test_bounds_that_cannot_be_are_refused(low: list[int], high: list[int], words: str) -> None:
    none = sparse.csr_array((0, 2), dtype=np.int64)
    with pytest.raises(InputError, match=words):
        Knowledge("ab", low, high, none, [], [])
    edge = Knowledge("ab", [-(2**53), 4], [2**53, 4], none, [], [])
    assert edge.high.tolist() == [2**53, 4]
    with pytest.raises(InputError, match="2 cells but 1 names"):
        Knowledge("a", [0, 0], [1, 1], none, [], [])
    with pytest.raises(ContradictionError, match="above its upper"):
        Knowledge("ab", [0, 0], [1, 1], sparse.csr_array([[1, 1]]), [3], [2])


def test_cells_are_found_by_number_and_name() -> None:
    known = Knowledge.of(["one", "two"])
    assert (known.cell(0), known.cell(np.int64(1)), known.cell("two")) == (0, 1, 1)
    for wrong in (2, -1, "three", ("x", "y")):
        with pytest.raises(InputError):
            known.cell(wrong)
    with pytest.raises(InputError, match="whole number"):
        known.fact({"one": 0.5})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="table 0"):
        known.table(0)
    rows = [axis("r", [0], [1], [0, 1])]
    made = from_tables([PublishedTable.exact(rows, np.array([1, 2, 3]))] * 2)
    assert [made.table(0), made.table(1)] == [slice(0, 3), slice(3, 6)]
    for wrong_table in (-1, 2):
        with pytest.raises(InputError):
            made.table(wrong_table)


def test_pieces_hold_open_cells_that_facts_tie_together() -> None:
    """``a + g + b = 9`` with g given as 2; ``c - d`` from 0 to 1; e alone; f given."""
    known = Knowledge.of("agbcdef").within([0, 2, 0, 0, 0, 0, 5], [9, 2, 9, 4, 4, 3, 5])
    known = known.fact(dict.fromkeys("agb", 1), 9, 9).fact({"c": 1, "d": -1}, 0, 1)
    known = known.fact({"g": 1, "f": 1}, 7, 7).fact({"a": 1, "f": 2}, high=15)
    every = np.ones(7, dtype=np.bool_)
    first, second = pieces(known, known.low, known.high, every)
    assert first.cells.tolist() == [0, 2]
    assert first.matrix.toarray().tolist() == [[1, 1], [1, 0]]
    assert first.fact_low.tolist() == [7, -UNBOUNDED]
    assert first.fact_high.tolist() == [7, 5]
    assert (first.low.tolist(), first.high.tolist()) == ([0, 0], [9, 9])
    assert second.cells.tolist() == [3, 4]
    assert (second.fact_low.tolist(), second.fact_high.tolist()) == ([0], [1])
    only = np.arange(7) == 4
    (piece,) = pieces(known, known.low, known.high, only)
    assert piece.cells.tolist() == [3, 4]
    assert not list(pieces(known, known.low, known.high, np.arange(7) == 5))
    assert not list(pieces(known, known.low, known.high, np.arange(7) == 1))
    for low, high in ((8, 9), (5, 6)):
        wrong = known.fact({"g": 1, "f": 1}, low, high)
        with pytest.raises(ContradictionError, match="does not match"):
            list(pieces(wrong, wrong.low, wrong.high, every))


def test_a_piece_holds_a_table_that_satisfies_every_fact_and_bound() -> None:
    known = Knowledge.of("ab").within([0, 1], [4, 5]).fact({"a": 1, "b": 2}, 6, 8)
    (piece,) = pieces(known, known.low, known.high, np.ones(2, dtype=np.bool_))
    two = known.fact({"b": 1}, 2, 9)
    (both,) = pieces(two, two.low, two.high, np.ones(2, dtype=np.bool_))
    assert (both.holds(np.array([4, 1])), both.holds(np.array([4, 2]))) == (False, True)
    for point, holds in (([4, 1], True), ([0, 3], True), ([4, 2], True), ([4, 3], False),
                         ([3, 1], False), ([5, 1], False), ([6, 0], False), ([-1, 4], False),
                         ([-2, 4], False)):  # fmt: skip
        assert piece.holds(np.array(point)) == holds
    problem = piece.problem
    assert (problem.low.tolist(), problem.high.tolist()) == ([0, 1], [4, 5])
    assert (problem.row_low.tolist(), problem.row_high.tolist()) == ([6], [8])


def test_narrowing_passes_facts_on_to_cells_where_rounding_is_right() -> None:
    known = Knowledge.of("ab").fact({"a": 1, "b": 1}, 3, 5).bound("a", low=1)
    assert [a.tolist() for a in narrowed(known)] == [[1, 0], [5, 4]]
    assert [a.tolist() for a in narrowed(known.relaxed())] == [[1, 0], [5, 4]]
    twice = Knowledge.of("ab").fact({"a": 2, "b": 1}, 5, 5)
    assert narrowed(twice)[1].tolist() == [2, 5]
    assert narrowed(twice.relaxed())[1].tolist() == [UNBOUNDED] * 2
    with pytest.raises(ContradictionError, match="contradict each other"):
        narrowed(known.bound("b", low=9))
    with pytest.raises(ContradictionError, match="no value is left for a"):
        narrowed(Knowledge.of("a").within([0], [9]).fact({"a": 2}, 5, 5))


def test_numbers_that_stand_for_no_bound_become_infinite() -> None:
    ends = np.array([-UNBOUNDED, 1 - UNBOUNDED, 3, UNBOUNDED - 1, UNBOUNDED])
    assert as_floats(ends).tolist() == [-np.inf, -(2.0**62), 3, 2.0**62, np.inf]


def test_facts_are_stored_once_and_without_zeros() -> None:
    for stored in (
        sparse.csr_array(
            (np.array([1, 0, 2]), np.array([0, 1, 2]), np.array([0, 3])), shape=(1, 3)
        ),
        sparse.csr_array(
            (np.array([1, 1, 1]), np.array([0, 2, 2]), np.array([0, 3])), shape=(1, 3)
        ),
        sparse.coo_array((np.array([1, 2]), (np.array([0, 0]), np.array([0, 2]))), shape=(1, 3)),
    ):
        known = Knowledge("abc", [0] * 3, [9] * 3, stored, [4], [4])
        assert known.matrix.toarray().tolist() == [[1, 0, 2]]
        assert (known.matrix.nnz, known.matrix.has_canonical_format) == (2, True)


def test_a_repr_says_how_much_is_known_and_in_which_numbers() -> None:
    one, two = Knowledge.of("a"), Knowledge.of("ab", decimals=2).fact({"a": 1}, 3, 3)
    assert repr(one) == "Knowledge(1 cell, 0 facts, whole numbers)"
    assert repr(one.relaxed()) == "Knowledge(1 cell, 0 facts, real numbers)"
    assert repr(two) == "Knowledge(2 cells, 1 fact, 2 decimals)"
    assert repr(Knowledge.of("a", decimals=1)) == "Knowledge(1 cell, 0 facts, 1 decimal)"
    assert repr(two.relaxed()) == "Knowledge(2 cells, 1 fact, real numbers)"


X = axis("x", [0], [1], [0, 1])


def released(**more: object) -> Release:
    """3 and 5 with their total; the first is suppressed."""
    status = np.array([CellStatus.SECONDARY.value, "F", "F"])
    return Release((X,), np.array([-1, 5, 8]), status, {}, **more)  # type: ignore[arg-type]


def test_a_release_states_values_intervals_or_what_its_channel_allows() -> None:
    plain = PublishedTable.of_release(released(decimals=1), low=-4)
    assert (plain.low.tolist(), plain.high.tolist()) == ([-4, 5, 8], [UNBOUNDED, 5, 8])
    assert plain.decimals == 1
    partly = released(low=np.array([2, 4, 8]), high=np.array([6, 5, 9]))
    for least, low in ((0, 2), (3, 3)):
        seen = PublishedTable.of_release(partly, low=least)
        assert (seen.low.tolist(), seen.high.tolist()) == ([low, 4, 8], [6, 5, 9])
    open_ended = released(low=np.array([-9, 4, 8]), high=np.array([UNBOUNDED, 5, 9]))
    assert PublishedTable.of_release(open_ended, low=0).low[0] == 0
    assert PublishedTable.of_release(open_ended).low[0] == -9
    # Nobody says how low a hidden cell can be; negative numbers beside it show that it may be negative.
    debts = released()
    debts = Release(debts.axes, np.array([-1, -5, -8]), debts.status, {})
    assert PublishedTable.of_release(debts).low.tolist() == [-UNBOUNDED, -5, -8]
    assert PublishedTable.of_release(released()).low[0] == 0
    noisy = released(channel=RoundingChannel(3))
    noisy = Release(noisy.axes, np.array([-1, 6, 9]), noisy.status, {}, noisy.channel)
    seen = PublishedTable.of_release(noisy)
    assert (seen.low.tolist(), seen.high.tolist()) == ([0, 4, 7], [UNBOUNDED, 8, 11])
    # Noise may show a number below 0 for a count that is not.
    below = Release(noisy.axes, np.array([-1, -3, 9]), noisy.status, {}, noisy.channel)
    assert PublishedTable.of_release(below).low[0] == 0
    known = from_release(released(), low=-2)
    assert (known.low.tolist()[:3], known.high.tolist()[:3]) == ([-2, 5, 8], [UNBOUNDED, 5, 8])
    assert from_release(released()).low[0] == 0
    with pytest.raises(InputError, match="needs a lustrum Release"):
        from_release(np.array([1, 5, 8]))  # type: ignore[arg-type]


def test_tables_are_published_with_bounds_of_their_shape() -> None:
    seen = PublishedTable.exact([X], [3, 5, 8], [True, False, False], low=-3, decimals=2)
    assert (seen.low.tolist(), seen.high.tolist()) == ([-3, 5, 8], [UNBOUNDED, 5, 8])
    assert seen.decimals == 2
    assert not seen.low.flags.writeable
    assert isinstance(PublishedTable(seen.layout, [0, 0, 0], [1, 1, 1]).low, np.ndarray)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="shapes"):
        PublishedTable(seen.layout, np.zeros(2), np.zeros(3))
    with pytest.raises(InputError, match="shapes"):
        PublishedTable.exact([X], [3])
    with pytest.raises(InputError, match="mask"):
        PublishedTable.exact([X], [3, 5, 8], [True])
    rounded = PublishedTable.rounded([X], [3, 6, 9], 3, decimals=1)
    assert (rounded.low.tolist(), rounded.high.tolist(), rounded.decimals) == (
        [2, 5, 8],
        [4, 7, 10],
        1,
    )
    assert PublishedTable.rounded([X], [3, 5, 8], 1).high.tolist() == [3, 5, 8]
    adjacent = PublishedTable.rounded([X], [0, 2, 2], 2, "adjacent", low=None)
    assert (adjacent.low.tolist(), adjacent.high.tolist()) == ([-1, 1, 1], [1, 3, 3])
    for values, base in (([3, 5, 9], 3), ([3, 6, 9], 0), ([3, 6, 9], 1.5), ([3, 6, 9], True)):
        with pytest.raises(InputError, match=r"multiple|whole number"):
            PublishedTable.rounded([X], values, base)  # type: ignore[arg-type]


def test_structural_zeros_stay_known_where_a_table_is_suppressed() -> None:
    table = Table(
        axes=(X,), values=np.array([0, 5, 5]), structural=np.array([True, False, False]), decimals=0
    )
    known = from_suppression(table, [True, True, False], low=-3)
    assert (known.low.tolist()[:3], known.high.tolist()[:3]) == ([0, -3, 5], [0, UNBOUNDED, 5])
    money = Table(axes=(X,), values=np.array([3, 5, 8]), decimals=2, kind="magnitude")
    assert from_suppression(money, [True, True, False]).decimals == 2


def test_the_cube_behind_tables_is_added_where_no_table_holds_it() -> None:
    rows, total = axis("r", [0], [1]), axis("c", [0, 1])
    columns = axis("c", [0], [1])
    tables = [
        PublishedTable.exact([rows, total], [[3], [4]], decimals=1),
        PublishedTable.exact([columns], [2, 5], decimals=1),
    ]
    known = from_tables(tables)
    assert (len(known), known.decimals) == (8, 1)
    assert bounds(known).high.tolist() == [3, 4, 2, 5, 2, 3, 2, 4]
    assert known.low.tolist()[4:] == [0] * 4
    below = PublishedTable.exact([columns], [-2, 9], decimals=1)
    assert from_tables([tables[0], below]).low.tolist()[4:] == [-UNBOUNDED] * 4
    assert len(from_tables([PublishedTable.hidden([rows, columns])])) == 4
    with pytest.raises(InputError, match="at least one"):
        from_tables([])
    with pytest.raises(InputError, match="decimals"):
        from_tables([tables[0], PublishedTable.exact([columns], [2, 5])])


def test_codes_that_no_table_shows_count_where_the_variable_has_them() -> None:
    some, everybody = axis("x", [0], [1]), PublishedTable.exact([], 10)
    shown = PublishedTable.exact([some], [3, 4])
    variable = Variable("x", "x", ("0", "1", "2"), ("", "", ""))
    known = from_tables([shown, everybody], variables=[variable])
    assert bounds(known).low.tolist()[:3] == [3, 4, 10]
    assert bounds(known).high.tolist()[-1] == 3
    with pytest.raises(ContradictionError):
        bounds(from_tables([shown, everybody]))


def test_margins_may_be_given_over_sizes_or_axes() -> None:
    axes = (axis("A", [0], [1]), axis("S", [0], [1]))
    for cube in ({"A": 2, "S": 2}, axes):
        known = from_margins(cube, {"A": [3, 4], "S": [2, 5]}, ["A"], decimals=1)
        assert (len(known), known.decimals) == (10, 1)
        assert bounds(known).high.tolist() == [2, 3, 2, 4, 3, 4, 3, 4, 2, 5]
