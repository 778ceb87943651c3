"""Rules about groups of people: along every line, with and without totals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError, Table, TableAxis
from lustrum.sensitivity import GroupDisclosure, KDisclosure, Sparsity
from lustrum.sensitivity.examples import table_of
from sensitivity.oracle import QUICK, count_tables, counted, lines_of

any_table = st.one_of(count_tables(1), count_tables(2), count_tables(3))


def groups_of(axis: TableAxis) -> list[tuple[frozenset[int], list[int]]]:
    """Groups along an axis, each with the places that add up to it, by trying all sets of places."""
    sets = [c.member_set for c in axis.categories]
    found = [(s, [i]) for i, s in enumerate(sets)]
    everything = frozenset().union(*sets)
    if everything not in sets:
        for size in range(2, len(sets) + 1):
            for places in itertools.combinations(range(len(sets)), size):
                parts = [sets[i] for i in places]
                if frozenset().union(*parts) == everything and sum(map(len, parts)) == len(
                    everything
                ):
                    return [*found, (everything, list(places))]
    return found


def k_disclosed(table: Table, k: int) -> np.ndarray:
    """The level that each cell needs, line by line and group by group."""
    need = np.zeros(table.shape, dtype=np.int64)
    for axis, own in enumerate(table.axes):
        for line in lines_of(table, axis):
            counts, out = table.values[line], need[line]
            for members, places in groups_of(own):
                size = sum(int(counts[i]) for i in places)
                for i, category in enumerate(own.categories):
                    inside = int(counts[i])
                    if category.member_set < members and inside > 0 and size - inside <= k:
                        out[i] = max(out[i], min(k + 1 - (size - inside), inside))
    return need


@given(any_table, st.integers(0, 3))
@QUICK
def test_a_cell_with_all_but_k_of_a_group_is_sensitive(table: Table, k: int) -> None:
    found = KDisclosure(k).judge(table)
    need = k_disclosed(table, k)
    assert found.mask.tolist() == (need > 0).tolist()
    assert found.lower.tolist() == need.tolist()
    assert not found.upper.any()


@given(any_table, st.integers(0, 3))
@QUICK
def test_a_larger_coalition_finds_no_fewer_cells(table: Table, k: int) -> None:
    assert (KDisclosure(k).judge(table).mask <= KDisclosure(k + 1).judge(table).mask).all()
    one, two = KDisclosure(k), KDisclosure(k, together=2)
    assert (one.judge(table).mask <= two.judge(table).mask).all()


def test_a_total_changes_nothing_that_its_parts_tell() -> None:
    base = np.array([[6, 0, 0], [5, 1, 0], [2, 2, 2]])
    plain, fine = [[0], [1], [2]], [[0], [1], [2], [0, 1, 2]]
    without, with_totals = counted(base, plain, plain), counted(base, fine, fine)
    for rule in (KDisclosure(1), GroupDisclosure(1), Sparsity(0.5)):
        assert rule.judge(with_totals).mask[:3, :3].tolist() == rule.judge(without).mask.tolist()


@given(
    st.lists(
        st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=4, max_size=4), min_size=2, max_size=4
    ),
    st.integers(0, 3),
    st.integers(2, 3),
)
@QUICK
def test_the_largest_cells_of_a_line_that_hold_a_group_together_are_found_together(
    counts: list[list[int]], k: int, together: int
) -> None:
    table = Table.from_counts(counts)
    need = k_disclosed(table, k)
    for axis in range(2):
        for line in lines_of(table, axis):
            cells, out = table.values[line], need[line]
            for size in range(2, min(together, cells.size) + 1):
                sums = {
                    s: cells[list(s)].sum() for s in itertools.combinations(range(cells.size), size)
                }
                largest = [s for s, total in sums.items() if total == max(sums.values())]
                short = k + 1 - int(cells.sum() - max(sums.values()))
                chosen = sorted({place for s in largest for place in s})
                if short > 0 and len(chosen) < cells.size and (cells[chosen] > 0).all():
                    out[chosen] = np.maximum(out[chosen], np.minimum(short, cells[chosen]))
    assert KDisclosure(k, together=together).judge(table).lower.tolist() == need.tolist()


def test_a_total_of_more_than_is_shown_leaves_room_elsewhere() -> None:
    # Codes 0 and 1 of three are shown, and the total of all.
    base = np.array([4, 0, 3])
    table = counted(base, [[0], [1], [0, 1, 2]])
    assert not KDisclosure(2).judge(table).mask.any()
    assert KDisclosure(3).judge(table).mask.tolist() == [True, False, False]


def test_what_cannot_be_otherwise_discloses_nothing() -> None:
    structural = np.array([[False, True, True], [False, False, True]])
    axes = (TableAxis.plain("a", ["1", "2"]), TableAxis.plain("b", ["1", "2", "3"]))
    table = Table(axes=axes, values=np.array([[4, 0, 0], [4, 0, 0]]), structural=structural)
    for rule in (KDisclosure(0), GroupDisclosure(1), Sparsity(0.4)):
        assert rule.judge(table).mask.tolist() == [[False] * 3, [True, False, False]]
    assert KDisclosure(0, together=2).judge(table).mask.tolist() == [
        [False] * 3,
        [True, False, False],
    ]


@given(any_table, st.integers(1, 3))
@QUICK
def test_a_line_of_few_populated_cells_is_sensitive(table: Table, populated: int) -> None:
    expected = np.zeros(table.shape, dtype=np.bool_)
    lines = GroupDisclosure(populated).lines(table)
    for axis, own in enumerate(table.axes):
        for line in lines_of(table, axis):
            inner = np.flatnonzero(own.inner)
            filled = int(np.count_nonzero(table.values[line][inner]))
            hit = 1 <= filled <= populated and filled < inner.size
            place = tuple(0 if i == axis else p for i, p in enumerate(line))
            assert lines[axis][place] == hit
            if hit:
                expected[line] |= own.inner & (table.values[line] > 0)
    assert GroupDisclosure(populated).judge(table).mask.tolist() == expected.tolist()


@given(any_table, st.sampled_from([0, 0.3, 0.5, 0.7]))
@QUICK
def test_a_line_of_many_empty_cells_is_sensitive(table: Table, share: float) -> None:
    expected = np.zeros(table.shape, dtype=np.bool_)
    for axis, own in enumerate(table.axes):
        for line in lines_of(table, axis):
            counts = table.values[line]
            empty = int(np.count_nonzero(counts[own.inner] == 0))
            cells = int(np.count_nonzero(own.inner))
            if empty < cells and empty > share * cells:
                expected[line] |= own.inner & (counts > 0)
    found = Sparsity(share).judge(table)
    assert found.mask.tolist() == expected.tolist()


def test_levels_let_as_many_be_elsewhere_as_the_line_lacks() -> None:
    table = Table.from_counts([[9, 0, 0, 0, 0]])
    # Two people elsewhere could make three populated cells; three would fill all but one of four.
    assert GroupDisclosure(2).judge(table).lower.tolist() == [[2, 0, 0, 0, 0]]
    assert Sparsity(0.2).judge(table).lower.tolist() == [[3, 0, 0, 0, 0]]
    small = Table.from_counts([[1, 0, 0, 0, 0]])
    assert GroupDisclosure(2).judge(small).lower.tolist() == [[1, 0, 0, 0, 0]]


def test_a_subtotal_of_one_code_is_not_another_cell() -> None:
    table = counted(np.array([5, 0, 0]), [[0], [0], [1], [2], [0, 1, 2]])
    assert GroupDisclosure(1).judge(table).mask.tolist() == [True, True, False, False, False]
    assert KDisclosure(0).judge(table).mask.tolist() == [True, True, False, False, False]
    spread = counted(np.array([3, 2, 0]), [[0], [0], [1], [2]])
    assert KDisclosure(0, together=2).judge(spread).mask.tolist() == [True, True, True, False]


def test_a_table_of_one_number_has_no_lines() -> None:
    alone = Table(axes=(), values=np.array(1))
    for rule in (KDisclosure(3), GroupDisclosure(2), Sparsity(0)):
        assert not rule.judge(alone).mask.any()


@pytest.mark.parametrize("rule", [KDisclosure(1), GroupDisclosure(2), Sparsity(0.5)])
def test_magnitudes_have_no_people_to_place(rule: KDisclosure) -> None:
    with pytest.raises(InputError, match="whole counts"):
        rule.judge(table_of([[5, 3]]))
