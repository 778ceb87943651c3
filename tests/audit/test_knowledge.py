"""Knowledge: facts put together from tables of every kind."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from audit.fibres import QUICK, axis, fitting
from audit.worlds import worlds
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
from lustrum.model import CellStatus, InputError, Release, Table, Variable
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.rounding.cells import RandomRounding, RoundingChannel

ROW = axis("r", [0], [1], [0, 1])
COLUMN = axis("c", [0], [1], [0, 1])
WHOLE = Table((ROW, COLUMN), np.array([[3, 4, 7], [5, 6, 11], [8, 10, 18]], dtype=np.int64))


@QUICK
@given(worlds(clash=True))
def test_tables_together_leave_the_values_of_all_cubes_that_fit(world):
    known, every = world.known, world.every
    if len(every) == 0:
        with pytest.raises(ContradictionError):
            bounds(known, integer=True)
        return
    found = bounds(known, range(world.cells), integer=True)
    assert found.low.tolist() == every.min(axis=0).tolist()
    assert found.high.tolist() == every.max(axis=0).tolist()
    assert found.sharp.all()
    linear = bounds(known, range(world.cells))
    assert (linear.low <= found.low).all()
    assert (linear.high >= found.high).all()
    # The cells of a hidden cube come after those of the tables, and are not negative.
    assert [known.table(i).stop for i in range(len(world.tables))][-1] == world.cells
    assert (known.low[world.cells :] == 0).all()


@QUICK
@given(st.data())
def test_bounds_and_facts_are_added_to_what_is_known(data):
    """Whatever is added leaves the tables that satisfied everything before and the new fact too."""
    known = Knowledge.of("abc", low=-2).within([-1, -2, 0], [2, 1, 3])
    points = fitting(known)
    for _ in range(3):
        kind = data.draw(st.sampled_from(["fact", "bound", "within", "estimated", "zero"]))
        low = data.draw(st.integers(-3, 2))
        high = low + data.draw(st.integers(0, 3))
        cell = data.draw(st.integers(0, 2))
        name, values = "abc"[cell], points[:, cell]
        add = partial(Knowledge.bound, ref=name, low=low, high=high)
        if kind == "within":
            here = np.arange(3) == cell
            add = partial(
                Knowledge.within, low=np.where(here, low, -9), high=np.where(here, high, 9)
            )
        elif kind == "fact":
            weights = data.draw(st.tuples(*[st.integers(-2, 2)] * 3))
            ends = st.sampled_from([(low, high), (low, UNBOUNDED), (-UNBOUNDED, high)])
            low, high = data.draw(ends)
            values = points @ np.array(weights)
            named = dict(zip("abc", weights, strict=True))
            add = partial(Knowledge.fact, weights=named, low=low, high=high)
        elif kind == "estimated":
            percent = data.draw(st.sampled_from([0, 34, 50, 100]))
            add = partial(Knowledge.estimated, values=[low], percent=percent, cells=[name])
            reach = abs(low) * percent // 100
            low, high = low - reach, low + reach
        elif kind == "zero":
            which = data.draw(st.sampled_from([[name], np.arange(3) == cell]))
            add = partial(Knowledge.zero, cells=which)
            low = high = 0
        points = points[(low <= values) & (values <= high)]
        try:
            known = add(known)
        except ContradictionError:
            assert len(points) == 0
            return
    assert fitting(known).tolist() == points.tolist()


def test_suppressed_cells_are_the_only_open_ones():
    mask = np.zeros((3, 3), dtype=bool)
    mask[:2, :2] = True
    known = from_suppression(WHOLE, mask)
    assert (known.low < known.high).tolist() == mask.ravel().tolist()
    assert known.names[1] == "r=0, c=1"
    found = bounds(known)
    assert found.low[[0, 1, 3, 4]].tolist() == [0, 0, 1, 3]
    assert found.high[[0, 1, 3, 4]].tolist() == [7, 7, 8, 10]


def test_one_suppressed_cell_in_a_line_is_no_secret():
    mask = np.zeros((3, 3), dtype=bool)
    mask[0, 0] = True
    found = bounds(from_suppression(WHOLE, mask), [0])
    assert found.exact.tolist() == [True]
    assert found.low.tolist() == [3]


def test_the_values_behind_the_mask_are_never_looked_at():
    mask = np.zeros((3, 3), dtype=bool)
    mask[:2, :2] = True
    other = WHOLE.values.copy()
    other[:2, :2] = 999
    first = from_suppression(WHOLE, mask)
    second = from_suppression(Table((ROW, COLUMN), other), mask)
    assert first.low.tolist() == second.low.tolist()
    assert first.high.tolist() == second.high.tolist()


def test_a_release_with_status_letters_hides_what_is_not_free():
    status = np.full((3, 3), "F")
    status[:2, :2] = [["A", "D"], ["D", "D"]]
    published = np.where(status == "F", WHOLE.values, 0)
    release = Release((ROW, COLUMN), published, status, {"method": "suppression"})
    found = bounds(from_release(release))
    assert found.high[[0, 1, 3, 4]].tolist() == [7, 7, 8, 10]


def test_structural_zeros_stay_known_and_give_others_away():
    mask = np.zeros((3, 3), dtype=bool)
    mask[:2, :2] = True
    values = np.array([[0, 7, 7], [8, 3, 11], [8, 10, 18]], dtype=np.int64)
    structural = np.zeros((3, 3), dtype=bool)
    structural[0, 0] = True
    table = Table((ROW, COLUMN), values, structural=structural)
    assert bounds(from_suppression(table, mask)).exact.all()
    plain = from_suppression(Table((ROW, COLUMN), values), mask)
    assert not bounds(plain).exact.all()
    assert bounds(plain.zero([0])).exact.all()
    assert bounds(plain.zero(structural)).exact.all()
    with pytest.raises(InputError, match="mask"):
        plain.zero(np.array([True]))


def test_rounding_intervals_are_half_open():
    line = axis("r", [0], [1])
    assert bounds(from_tables([PublishedTable.rounded([line], [6, 0], base=3)])).count.tolist() == [
        3,
        2,
    ]
    even = bounds(from_tables([PublishedTable.rounded([line], [10, 20], base=10)]))
    assert (even.low.tolist(), even.high.tolist()) == ([5, 15], [14, 24])
    plain = PublishedTable.rounded([line], [3, 5], base=1, decimals=1)
    assert (plain.low.tolist(), plain.high.tolist(), plain.decimals) == ([3, 5], [3, 5], 1)
    signed = bounds(from_tables([PublishedTable.rounded([line], [0, -3], base=3, low=None)]))
    assert (signed.low.tolist(), signed.high.tolist()) == ([-1, -4], [1, -2])


def test_random_rounding_leaves_less_than_one_base_each_way():
    line = axis("r", [0], [1])
    found = bounds(from_tables([PublishedTable.rounded([line], [6, 0], base=3, how="adjacent")]))
    assert (found.low.tolist(), found.high.tolist()) == ([4, 0], [8, 2])


def test_margins_rounded_on_their_own_give_cells_away():
    line = axis("r", [0], [1], [0, 1])
    found = bounds(from_tables([PublishedTable.rounded([line], [3, 3, 0], base=3, how="adjacent")]))
    assert found.low.tolist() == found.high.tolist() == [1, 1, 2]


def test_a_randomly_rounded_release_has_its_own_bounds():
    table = Table((ROW, COLUMN), WHOLE.values)
    release = RandomRounding(base=3).apply(table, rng=np.random.default_rng(4))
    found = bounds(from_release(release))
    assert (found.low <= WHOLE.values.ravel()).all()
    assert (WHOLE.values.ravel() <= found.high).all()
    bare = Release(
        release.axes, release.published, release.status, release.method, channel=release.channel
    )
    assert (bounds(from_release(bare)).high <= release.published.ravel() + 2).all()


def test_merged_categories_leave_anything_up_to_their_sum():
    fine, coarse = axis("r", [0], [1], [2]), axis("r", [0], [1, 2])
    known = from_tables([PublishedTable.hidden([fine]), PublishedTable.exact([coarse], [4, 9])])
    found = bounds(known, known.table(0))
    assert (found.low.tolist(), found.high.tolist()) == ([4, 0, 0], [4, 9, 9])


def test_margins_of_a_hidden_cube_keep_their_order():
    known = from_margins({"A": 2, "B": 2}, {"A": [3, 4], "B": [2, 5]}, hidden=[()])
    assert known.names[known.table(1).start] == "everybody"
    assert bounds(known, known.table(1)).low.tolist() == [7]
    assert bounds(known, [["1", "1"]]).high.tolist() == [2]
    assert known.cell({"A": "2", "B": "1"}) == 2


def test_cells_that_no_table_shows_still_hold_nobody_less_than_nobody():
    # Only the total and one part are shown: the other part is the rest, which is not negative.
    line = axis("r", [0], [0, 1, 2])
    hidden = np.array([True, False])
    known = from_tables([PublishedTable.exact([line], [0, 9], hidden)])
    assert bounds(known, [0]).high.tolist() == [9]
    negative = from_tables([PublishedTable.exact([line], [0, 9], hidden, low=-UNBOUNDED)])
    assert bounds(negative, [0]).high.tolist() == [np.inf]


def test_an_estimate_beforehand_narrows_every_cell():
    known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 100, 100)
    found = bounds(known.estimated([60, 40], 10))
    assert (found.low.tolist(), found.high.tolist()) == ([56, 36], [64, 44])
    one = bounds(known.estimated([60], 10, cells=["x"]))
    assert (one.low.tolist(), one.high.tolist()) == ([54, 34], [66, 46])
    assert bounds(known.within([0, 30], [200, 35])).low.tolist() == [65, 30]


def test_decimals_are_counted_as_whole_units():
    known = Knowledge.of(["x", "y"], decimals=1).fact({"x": 1, "y": 1}, 25, 25)
    found = bounds(known)
    assert found.count.tolist() == [26, 26]
    assert (known.decimals, found.decimals, repr(known)) == (
        1,
        1,
        "Knowledge(2 cells, 1 fact, 1 decimal)",
    )


def test_nothing_known_in_a_repr():
    known = Knowledge.of(["x"]).bound("x", low=321, high=654)
    assert "321" not in repr(known)
    assert "654" not in repr(bounds(known))
    assert "3" not in repr(PublishedTable.exact([axis("r", [0])], [3]))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda k: k.cell(9), "no cell 9"),
        (lambda k: k.cell("z"), "no cell 'z'"),
        (lambda k: k.cell(["1"]), "not come from a table"),
        (lambda k: k.table(0), "no table 0"),
        (lambda k: k.fact({"x": 0.5}), "whole number"),
        (lambda k: k.fact({"x": 1}, 4, 3), "lower end above"),
        (lambda k: k.estimated([1, 2], -1), "percent"),
        (lambda k: k.estimated([1], 5), "2 cells are estimated"),
        (lambda k: k.bound("x", high=2**60), "beyond 2\\*\\*53"),
        (lambda k: from_tables([]), "at least one table"),
        (lambda k: from_margins({"A": 2}, {"B": [1, 2]}), "no variable 'B'"),
        (lambda k: PublishedTable.rounded([axis("r", [0])], [4], base=3), "not a multiple"),
        (lambda k: PublishedTable.rounded([axis("r", [0])], [4], base=0), "rounding base"),
        (lambda k: PublishedTable.rounded([axis("r", [0])], [3], base=3, how="up"), "nearest"),
        (lambda k: PublishedTable.exact([axis("r", [0])], [3, 4]), "shapes must be equal"),
        (
            lambda k: PublishedTable.exact([axis("r", [0])], [3], [True, False]),
            "shape of its table",
        ),
        (
            lambda k: from_tables(
                [
                    PublishedTable.exact([axis("r", [0])], [3]),
                    PublishedTable.exact([axis("r", [0])], [30], decimals=1),
                ]
            ),
            "different decimals",
        ),
        (lambda k: Knowledge(["x"], k.low, k.high, k.matrix, k.fact_low, k.fact_high), "1 names"),
        (lambda k: Knowledge(k.names, k.low[:1], k.high, k.matrix, k.low, k.low), "shape"),
    ],
)
def test_a_mistake_is_one_clear_sentence(wrong, says):
    with pytest.raises(InputError, match=says) as caught:
        wrong(Knowledge.of(["x", "y"]))
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "torn",
    [
        lambda: Knowledge.of(["x"]).bound("x", low=5, high=4),
        lambda: bounds(
            from_tables([PublishedTable.exact([axis("r", [0], [1], [0, 1])], [2, 3, 6])])
        ),
        lambda: bounds(from_margins({"A": 2, "B": 2}, {"A": [3, 4], "B": [2, 6]})),
        lambda: bounds(Knowledge.of(["x", "y"]).fact({"x": 2, "y": 2}, 5, 5), integer=True),
        lambda: bounds(Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 5, 5).zero(["x", "y"])),
    ],
)
def test_published_cells_that_contradict_each_other_are_reported(torn):
    with pytest.raises(ContradictionError, match="contradict"):
        torn()


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


X = axis("x", [0], [1], [0, 1])


def released(**more: object) -> Release:
    """3 and 5 with their total; the first is suppressed."""
    status = np.array([CellStatus.SECONDARY.value, "F", "F"])
    return Release((X,), np.array([-1, 5, 8]), status, {}, **more)  # type: ignore[arg-type]


def test_a_release_states_values_intervals_or_what_its_channel_allows() -> None:
    plain = PublishedTable.of_release(released(decimals=1), low=-4)
    assert (plain.low.tolist(), plain.high.tolist()) == ([-4, 5, 8], [UNBOUNDED, 5, 8])
    assert plain.decimals == 1
    partly = released(least=np.array([2, 4, 8]), most=np.array([6, 5, 9]))
    for least, low in ((0, 2), (3, 3)):
        seen = PublishedTable.of_release(partly, low=least)
        assert (seen.low.tolist(), seen.high.tolist()) == ([low, 4, 8], [6, 5, 9])
    open_ended = released(least=np.array([-9, 4, 8]), most=np.array([UNBOUNDED, 5, 9]))
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


def test_structural_zeros_stay_known_where_a_table_is_suppressed() -> None:
    table = Table(
        axes=(X,), values=np.array([0, 5, 5]), structural=np.array([True, False, False]), decimals=0
    )
    known = from_suppression(table, [True, True, False], low=-3)
    assert (known.low.tolist()[:3], known.high.tolist()[:3]) == ([0, -3, 5], [0, UNBOUNDED, 5])
    money = Table(axes=(X,), values=np.array([3, 5, 8]), decimals=2, kind="magnitude")
    assert from_suppression(money, [True, True, False]).decimals == 2


def test_what_no_table_holds_may_be_negative_where_a_table_is():
    rows, columns = axis("r", [0], [1]), axis("c", [0], [1])
    sums = PublishedTable.exact([rows], [3, 4])
    for shown, least in (([2, 5], 0), ([-2, 9], -UNBOUNDED)):
        known = from_tables([sums, PublishedTable.exact([columns], shown)])
        assert known.low[-4:].tolist() == [least] * 4
    assert len(from_tables([PublishedTable.hidden([rows, columns])])) == 4


def test_codes_that_no_table_shows_count_where_the_variable_has_them() -> None:
    some, everybody = axis("x", [0], [1]), PublishedTable.exact([], 10)
    shown = PublishedTable.exact([some], [3, 4])
    variable = Variable("x", "x", ("0", "1", "2"), ("", "", ""))
    known = from_tables([shown, everybody], variables=[variable])
    assert bounds(known).low.tolist()[:3] == [3, 4, 10]
    assert bounds(known).high.tolist()[-1] == 3
    with pytest.raises(ContradictionError):
        bounds(from_tables([shown, everybody]))
