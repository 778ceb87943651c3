"""Totals beside rounded cells: nobody can work an inner cell out from one table."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.model.table import inner_cells
from lustrum.protect import RandomRounding, RoundingChannel
from lustrum.protect.perturbation.design import design
from lustrum.protect.totals.safe import TotalsGuard, safe_totals
from lustrum.protect.totals.summed import added_totals, released_sums
from small import with_total, with_totals

BASE = 3


class Enumeration:
    """Every true table with counts up to the largest, with every way in which it can be published.

    With keys, cells that hold the same people go the same way.
    """

    def __init__(self, shape: tuple[int, ...], largest: int, keyed: bool) -> None:
        self.axes = [with_total(f"v{i}", size) for i, size in enumerate(shape)]
        full = tuple(size + 1 for size in shape)
        counts = itertools.product(range(largest + 1), repeat=int(np.prod(shape)))
        tables = [with_totals(np.array(c, dtype=np.int64).reshape(shape)).ravel() for c in counts]
        cells = len(tables[0])
        # Every subset of the cells rounded up; multiples stay, so that some ways stand twice.
        up = (np.arange(2**cells)[:, None] >> np.arange(cells)) & 1
        true = np.repeat(np.array(tables), len(up), axis=0)
        ways = np.tile(up, (len(tables), 1))
        if keyed:
            # A cell goes the way of the first cell with the same inner cells that hold anybody.
            members = _members(shape)
            inside = inner_cells(self.axes).ravel()
            held = members[None] & (np.array(tables)[:, inside] > 0)[:, None, :]
            same = (held[:, :, None, :] == held[:, None, :, :]).all(axis=3)
            first = same.argmax(axis=2)
            ways = np.take_along_axis(ways, np.repeat(first, len(up), axis=0), axis=1)
        rounded = true - true % BASE + BASE * np.where(true % BASE, ways, 0)
        digits = rounded // BASE
        key = np.ravel_multi_index(tuple(digits.T), tuple(digits.max(axis=0) + 1))
        _, first_way, origin = np.unique(key, return_index=True, return_inverse=True)
        guard = TotalsGuard(tuple(self.axes))
        out = [
            guard.publish(way.reshape(full), RoundingChannel(BASE), keyed=keyed)
            for way in rounded[first_way]
        ]
        low, high = (np.array([getattr(o, n).ravel() for o in out]) for n in ("low", "high"))
        assert np.all((low[origin] <= true) & (true <= high[origin]))
        # A hidden total is a mark of its own, which no number is.
        marks = [o.values if o.hidden is None else np.where(o.hidden, -1, o.values) for o in out]
        values = np.array([mark.ravel() for mark in marks])
        if keyed:
            # Whatever number is shown is the one that the records of that cell always show.
            seen = values[origin] >= 0
            assert np.array_equal(values[origin][seen], rounded[seen])
        self.published, release = np.unique(values, axis=0, return_inverse=True)
        self.least = np.full(self.published.shape, np.iinfo(np.int64).max)
        self.most = np.zeros(self.published.shape, dtype=np.int64)
        np.minimum.at(self.least, release[origin], true)
        np.maximum.at(self.most, release[origin], true)


def _members(shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """For every cell with its totals, which inner cells it holds."""
    units = np.eye(int(np.prod(shape)), dtype=np.int64).reshape(-1, *shape)
    return np.stack([with_totals(unit).ravel() for unit in units], axis=1) > 0


@pytest.mark.slow
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(("shape", "largest"), [((2,), 9), ((3,), 7), ((2, 2), 5)])
def test_no_inner_cell_of_any_small_table_can_be_worked_out(
    shape: tuple[int, ...], largest: int, keyed: bool
) -> None:
    """Enumerated: a reader who knows the method and sees the table keeps two values for every inner cell."""
    found = Enumeration(shape, largest, keyed)
    inside = inner_cells(found.axes).ravel()
    # A published value near the edge of the enumeration has origins beyond it.
    whole = found.published[:, inside].max(axis=1) + BASE - 1 <= largest
    assert np.count_nonzero(whole) > 5
    assert np.all(found.least[whole][:, inside] < found.most[whole][:, inside])


def test_a_telling_total_is_replaced_by_the_sum() -> None:
    axes = [with_total("v", 2)]
    out = safe_totals(axes, np.array([3, 3, 0]), RoundingChannel(BASE))
    assert out.values.tolist() == [3, 3, 6]
    assert (out.low[2], out.high[2]) == (2, 10)


def test_a_total_that_differs_from_a_part_tells_of_another_part_where_keys_decide() -> None:
    """With 0 and 3 beside 0 the second cannot be alone in the total, or both would show the same."""
    axes = [with_total("v", 2)]
    shown = np.array([0, 3, 0])
    alone = safe_totals(axes, shown, RoundingChannel(BASE))
    assert alone.values.tolist() == [0, 3, 0]
    keyed = safe_totals(axes, shown, RoundingChannel(BASE), keyed=True)
    assert keyed.hidden.tolist() == [False, False, True]
    assert keyed.status.tolist() == ["F", "F", "D"]
    assert (int(keyed.low[2]), int(keyed.high[2])) == (1, 7)


def test_totals_that_add_up_are_hidden_too_so_that_a_missing_total_has_two_explanations() -> None:
    axes = [with_total("v", 2)]
    for shown in ([3, 3, 0], [3, 3, 6]):
        out = safe_totals(axes, np.array(shown), RoundingChannel(BASE), keyed=True)
        assert out.values.tolist() == [3, 3, 0]
        assert out.hidden.tolist() == [False, False, True]


def test_a_harmless_total_stays_as_it_was_rounded() -> None:
    axes = [with_total("v", 3)]
    out = safe_totals(axes, np.array([6, 9, 3, 21]), RoundingChannel(BASE))
    assert out.values.tolist() == [6, 9, 3, 21]


@pytest.mark.parametrize("values", [[3, 3, 0], [6, 3, 12]])
def test_a_total_of_which_only_some_parts_are_there_is_refused_whatever_the_numbers(
    values: list[int],
) -> None:
    """3 and 3 beside a total of 0 are 1 and 1, whatever else is in the total."""
    categories = (
        Category("a", "a", (0,)),
        Category("b", "b", (1,)),
        Category("_T", "Total", (0, 1, 2)),
    )
    axes = [TableAxis("v", "v", categories)]
    shown = np.array(values)
    with pytest.raises(InputError, match="together with all of its parts"):
        safe_totals(axes, shown, RoundingChannel(BASE))
    with pytest.raises(InputError, match="together with all of its parts"):
        added_totals(axes, shown, shown, shown)


def test_a_keyed_table_with_totals_keeps_the_cells_of_the_table_without() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 2**64, (6, 4), dtype=np.uint64)
    values = rng.integers(0, 5, (6, 4))
    axes = (with_total("a", 6), with_total("b", 4))
    full_keys = keys
    for position in range(2):
        total = full_keys.sum(axis=position, keepdims=True, dtype=np.uint64)
        full_keys = np.concatenate([full_keys, total], axis=position)
    whole = Table(axes=axes, values=with_totals(values), keys=full_keys)
    bare = Table.from_counts(values, keys=keys)
    published = RandomRounding().apply(whole).published
    assert np.array_equal(published[:6, :4], RandomRounding().apply(bare).published)


def test_totals_are_hidden_without_keys_where_a_method_asks_for_it() -> None:
    axes, channel = [with_total("v", 2)], RoundingChannel(BASE)
    telling = np.array([3, 3, 0])
    summed = safe_totals(axes, telling, channel)
    assert summed.values.tolist() == [3, 3, 6]
    assert summed.hidden is None
    hidden = safe_totals(axes, telling, channel, hide=True)
    assert hidden.hidden.tolist() == [False, False, True]
    table = Table(tuple(axes), np.array([2, 2, 4]))
    release = released_sums(table, RandomRounding(3), hidden, channel=channel, notes=())
    assert release.status.tolist() == ["F", "F", "D"]
    assert release.shown.tolist() == [True, True, False]
    assert released_sums(table, RandomRounding(3), summed, channel=None, notes=()).shown.all()
    kept = safe_totals(axes, telling, channel, keyed=True, hide=False)
    assert kept.hidden is None
    assert kept.values.tolist() == [3, 3, 6]


def test_a_cell_that_everybody_knows_to_be_empty_does_not_hide_harmless_totals() -> None:
    axes, channel = [with_total("v", 3)], RoundingChannel(BASE)
    shown, empty = np.array([6, 9, 0, 12]), np.array([False, False, True, False])
    for keyed in (False, True):
        found = safe_totals(axes, shown, channel, empty, keyed=keyed)
        assert found.hidden is None
        assert found.values.tolist() == [6, 9, 0, 12]
        assert found.low.tolist()[2] == found.high.tolist()[2] == 0


@pytest.mark.parametrize("by_lines", [True, False])
def test_keys_tell_of_another_part_also_where_bounds_begin_at_the_same_number(
    by_lines: bool,
) -> None:
    # With changes of at most 1, a shown 1 is 1 or 2 and a shown 2 is 1 to 3: the total is not the first part
    # alone, so the second is not empty, and it can only be 1.
    guard = TotalsGuard((with_total("v", 2),))
    if not by_lines:
        guard.__dict__["_lines"] = None
    channel = design(1, 0.5)
    assert guard.publish(np.array([2, 0, 1]), channel, keyed=True).hidden is not None
    alone = guard.publish(np.array([2, 0, 1]), channel)
    assert alone.values.tolist() == [2, 0, 1]


@pytest.mark.parametrize("by_lines", [True, False])
def test_totals_stay_where_they_determine_each_other_but_no_inner_cell(by_lines: bool) -> None:
    # Both rows hold one person, since 0 for all is at most 2; nobody can tell in which column.
    guard = TotalsGuard((with_total("a", 2), with_total("b", 2)))
    if not by_lines:
        guard.__dict__["_lines"] = None
    shown = np.array([[0, 0, 3], [0, 0, 3], [0, 0, 0]])
    assert guard.publish(shown, RoundingChannel(BASE)).values.tolist() == shown.tolist()


@pytest.mark.parametrize("keyed", [False, True])
def test_lines_and_stored_relations_decide_alike(keyed: bool) -> None:
    rng = np.random.default_rng(8)
    axes = (with_total("a", 2), with_total("b", 2))
    quick, stored = TotalsGuard(axes), TotalsGuard(axes)
    stored.__dict__["_lines"] = None
    kept = 0
    for _ in range(300):
        true = with_totals(rng.integers(0, 2, (2, 2)))
        shown = true - true % BASE + BASE * ((true % BASE > 0) & (rng.random(true.shape) < 0.5))
        one, other = (g.publish(shown, RoundingChannel(BASE), keyed=keyed) for g in (quick, stored))
        for name in ("values", "low", "high"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert (one.hidden is None) == (other.hidden is None)
        kept += np.array_equal(one.values, shown)
    assert 30 < kept < 280


def axis(name: str, *members: tuple[int, ...]) -> TableAxis:
    return TableAxis(name, name, tuple(Category(str(m), str(m), m) for m in members))


def test_a_table_without_totals_has_the_bounds_of_its_channel() -> None:
    values = np.array([0, 3, 9])
    for keyed in (False, True):
        out = safe_totals([axis("a", (0,), (1,), (2,))], values, RoundingChannel(3), keyed=keyed)
        assert out.values.tolist() == [0, 3, 9]
        assert out.low.tolist() == [0, 1, 7]
        assert out.high.tolist() == [2, 5, 11]
        assert out.hidden is None
        assert out.status is None


def test_totals_that_are_added_up_have_the_sums_of_the_bounds_of_their_parts() -> None:
    axes = [axis("a", (0,), (1,), (0, 1)), axis("b", (0,), (1,), (0, 1))]
    values = np.array([[1, 2, 0], [3, 4, 0], [0, 0, 0]])
    low, high = values - 1, values + np.array([[1, 2, 9], [3, 4, 9], [9, 9, 9]])
    out = added_totals(axes, values, low, high)
    assert out.values.tolist() == [[1, 2, 3], [3, 4, 7], [4, 6, 10]]
    assert out.low.tolist() == [[0, 1, 1], [2, 3, 5], [2, 4, 6]]
    assert out.high.tolist() == [[2, 4, 6], [6, 8, 14], [8, 12, 20]]
