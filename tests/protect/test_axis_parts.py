"""What a category is made of, by the definition in sets, and what adds up from it."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from lustrum.model import Category, InputError, TableAxis
from lustrum.model.table import inner_cells
from lustrum.protect.totals.inner_table import InnerTable
from lustrum.protect.totals.summed import AxisParts, Totals, added_totals


@st.composite
def axes(draw: st.DrawFn, name: str = "x") -> TableAxis:
    """Any categories over five codes: nested, equal, overlapping or empty."""
    sets = draw(st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=7))
    return TableAxis(
        name, name, tuple(Category(f"c{i}", f"c{i}", tuple(sorted(s))) for i, s in enumerate(sets))
    )


@given(axis=axes(), turn=st.randoms(use_true_random=False))
def test_parts_are_those_of_the_definition_in_any_order(axis: TableAxis, turn: object) -> None:
    inner = np.flatnonzero(axis.inner).tolist()
    turn.shuffle(inner)  # type: ignore[attr-defined]
    sets = [c.member_set for c in axis.categories]
    parts = AxisParts.of(axis, inner)
    assert parts.inner.tolist() == inner
    for own, held, whole in zip(sets, parts.held, parts.whole.tolist(), strict=True):
        inside = [n for n, place in enumerate(inner) if own and sets[place] and sets[place] <= own]
        if own:
            assert list(held) == inside
        members = sorted(m for n in held for m in sets[inner[n]])
        assert whole == (members == sorted(own))
    assert parts.disjoint == all(
        sets[a].isdisjoint(sets[b]) for a, b in itertools.combinations(inner, 2)
    )


@given(first=axes("a"), second=axes("b"), seed=st.integers(0, 999))
def test_covered_totals_are_sums_of_inner_cells_and_nothing_else_changes(
    first: TableAxis, second: TableAxis, seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, 50, (len(first), len(second)))
    totals = Totals.of((first, second))
    out = totals.added_up(values)
    parts = [AxisParts.of(axis) for axis in (first, second)]
    for i, j in np.ndindex(values.shape):
        places = [p.inner[list(p.held[k])] for p, k in zip(parts, (i, j), strict=True)]
        inner = first.inner[i] and second.inner[j]
        covered = parts[0].whole[i] and parts[1].whole[j] and not inner
        assert totals.covered[i, j] == covered
        assert out[i, j] == (values[np.ix_(*places)].sum() if covered else values[i, j])
    if not (totals.covered | inner_cells((first, second))).all():
        with pytest.raises(InputError, match="together with all of its parts"):
            added_totals((first, second), values, values - 1, values + 1)
        return
    published = added_totals((first, second), values, values - 1, values + 1)
    assert np.array_equal(published.values, out)
    assert np.array_equal(published.low, totals.added_up(values - 1))
    assert np.array_equal(published.high, totals.added_up(values + 1))


def of_sets(**sets: tuple[int, ...]) -> TableAxis:
    return TableAxis("x", "x", tuple(Category(c, c, s) for c, s in sets.items()))


def test_a_total_of_more_than_is_shown_is_refused_unless_parts_will_do() -> None:
    axis = of_sets(total=(0, 1, 2), b=(1,), a=(0,))
    with pytest.raises(InputError, match="'total' of 'x' is not"):
        InnerTable.of([axis], "A test")
    inner = InnerTable.of([axis], "A test", partial=True)
    assert inner.take(np.array([9, 5, 2])).tolist() == [2, 5]
    assert inner.added_up(np.array([2, 5])).tolist() == [7, 5, 2]


@pytest.mark.parametrize("partial", [False, True])
def test_categories_that_overlap_are_refused(partial: bool) -> None:
    with pytest.raises(InputError, match="do not overlap"):
        InnerTable.of([of_sets(a=(0, 1), b=(1, 2))], "A test", partial=partial)
