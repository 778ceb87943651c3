"""Swapping within tables keeps margins to the last unit, and makes all tables in reach equally likely."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis.extra import numpy as hnp
from scipy import stats

from lustrum.model import InputError, Table
from lustrum.model.hierarchy import Category
from lustrum.model.table import TableAxis

# The compiled walk takes strides.
from lustrum.protect.swapping.tables import TableSwapping, _strides, swap_table, walk
from lustrum.protect.totals.inner_table import InnerTable

shapes = st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple)


def margins(counts: np.ndarray, order: int) -> list[np.ndarray]:
    axes = range(counts.ndim)
    return [
        counts.sum(axis=tuple(a for a in axes if a not in kept))
        for kept in itertools.combinations(axes, min(order, counts.ndim))
    ]


@given(
    counts=shapes.flatmap(lambda s: hnp.arrays(np.int64, s, elements=st.integers(0, 6))),
    order=st.integers(1, 3),
    seed=st.integers(0, 2**32),
)
def test_all_margins_of_the_order_are_kept(counts: np.ndarray, order: int, seed: int) -> None:
    wide = sum(size > 1 for size in counts.shape)
    if wide <= order:
        with pytest.raises(InputError, match="is fixed by its totals"):
            swap_table(counts, order, 10, seed)
        return
    after = swap_table(counts, order, 300, seed)
    assert after.min() >= 0
    for before, now in zip(margins(counts, order), margins(after, order), strict=True):
        assert np.array_equal(before, now)


def fibre(counts: np.ndarray, order: int) -> set[tuple[int, ...]]:
    """All tables with the same margins, by trying every table of the same total."""
    total, cells = int(counts.sum()), counts.size
    wanted = [m.tolist() for m in margins(counts, order)]
    found = set()
    for bars in itertools.combinations(range(total + cells - 1), cells - 1):
        ends = (-1, *bars, total + cells - 1)
        table = np.diff(ends) - 1
        if [m.tolist() for m in margins(table.reshape(counts.shape), order)] == wanted:
            found.add(tuple(table.tolist()))
    return found


@pytest.mark.parametrize(
    ("counts", "order", "moves"),
    [
        (np.array([[[2, 1], [0, 2]], [[0, 2], [2, 1]]]), 2, 40),
        (np.array([[[1, 0], [0, 0]], [[0, 0], [0, 2]]]), 1, 400),
        (np.array([[2, 0, 1], [0, 2, 1]]), 1, 120),
    ],
)
def test_every_table_of_the_margins_is_reached_and_equally_likely(
    counts: np.ndarray, order: int, moves: int
) -> None:
    """Chi-square over 4,000 walks; false alarm rate one in a million."""
    tables = fibre(counts, order)
    rng = np.random.default_rng(11)
    seeds = rng.integers(0, 2**64, 4000, dtype=np.uint64)
    seen = Counter(tuple(swap_table(counts, order, moves, int(s)).ravel().tolist()) for s in seeds)
    assert set(seen) == tables
    assert len(tables) >= 3
    assert stats.chisquare([seen[t] for t in tables]).pvalue > 1e-6


def test_moves_are_symmetric() -> None:
    """One move from each table of a fibre: as often there as back; false alarm rate one in a million."""
    start = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    tables = sorted(fibre(start, 1))
    rng = np.random.default_rng(3)
    tries = 20_000
    counts = np.zeros((len(tables), len(tables)))
    at = {t: i for i, t in enumerate(tables)}
    for table, row in at.items():
        block = np.array(table, dtype=np.int64)
        state = rng.integers(0, 2**64, 1, dtype=np.uint64)
        for _ in range(tries // 10):
            flat = block.copy()
            walk(
                flat, np.zeros(8, np.bool_), np.array([2, 2, 2]), _strides((2, 2, 2)),
                np.arange(3), 2, 1, state,
            )  # fmt: skip
            counts[row, at[tuple(flat.tolist())]] += 1
    for i in range(len(tables)):
        for j in range(i):
            both = counts[i, j] + counts[j, i]
            if both:
                least = min(counts[i, j], counts[j, i])
                assert stats.binomtest(int(least), int(both), 0.5).pvalue > 1e-6 / len(tables) ** 2
    assert np.count_nonzero(counts - np.diag(np.diag(counts))) > 0


def plain_walk(flat, shut, shape, sides, axes, moves, seed):  # type: ignore[no-untyped-def]
    """The kernel's walk over coordinates, from the same stream of numbers."""
    table = np.array(flat).reshape(shape)
    closed = np.array(shut).reshape(shape)
    state, mask = int(seed), 2**64 - 1

    def below(count: int) -> int:
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return (((z ^ (z >> 31)) >> 32) * int(count)) >> 32

    for _ in range(moves):
        here = [below(size) for size in shape]
        joined = below(2) == 1
        there, side_of = list(here), {}
        for i in range(len(axes)):
            j = i + below(len(axes) - i)
            axes[i], axes[j] = axes[j], axes[i]
            axis = axes[i]
            if i < sides:
                other = below(shape[axis] - 1)
                there[axis] = other + (other >= here[axis])
                side_of[axis] = i
            elif joined:
                side_of[axis] = below(sides)
                there[axis] = below(shape[axis])
        change = np.zeros_like(table)
        for corner in itertools.product((0, 1), repeat=sides):
            cell = tuple(
                there[a] if a in side_of and corner[side_of[a]] else here[a]
                for a in range(len(shape))
            )
            change[cell] += (-1) ** sum(corner)
        touched = change != 0
        if (table + change >= 0).all() and not (closed & touched).any():
            table = table + change
    return table


@given(
    shape=st.lists(st.integers(1, 3), min_size=2, max_size=4).map(tuple),
    seed=st.integers(0, 2**32),
    order=st.integers(1, 2),
)
def test_the_compiled_walk_is_the_plain_one(shape: tuple[int, ...], seed: int, order: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, shape)
    closed = rng.random(shape) < 0.1
    axes = [a for a, size in enumerate(shape) if size > 1]
    assume(len(axes) > order)
    compiled = swap_table(counts, order, 60, seed, closed)
    plain = plain_walk(counts.ravel(), closed.ravel(), shape, order + 1, list(axes), 60, seed)
    assert np.array_equal(compiled, plain)


def with_totals(counts: np.ndarray) -> Table:
    """Every axis with a group of its first two codes and a total."""
    axes = []
    for number, size in enumerate(counts.shape):
        plain = TableAxis.plain(f"v{number}", [str(i) for i in range(size)]).categories
        extra = (Category("G", "G", (0, 1)), Category("_T", "Total", tuple(range(size))))
        axes.append(TableAxis(f"v{number}", f"v{number}", (*plain, *extra)))
        counts = np.concatenate(
            (counts, counts.take([0, 1], number).sum(number, keepdims=True),
             counts.sum(number, keepdims=True)), number
        )  # fmt: skip
    return Table(tuple(axes), counts)


@given(seed=st.integers(0, 2**32), order=st.integers(1, 2))
def test_totals_add_up_and_bounds_hold_the_truth(seed: int, order: int) -> None:
    rng = np.random.default_rng(seed)
    table = with_totals(rng.integers(0, 5, (3, 3, 3)))
    release = TableSwapping(order, sweeps=20).apply(table, rng)
    inner = InnerTable.of(table.axes, "A test")
    assert np.array_equal(release.published, inner.added_up(inner.take(release.published)))
    assert np.all((release.least <= table.values) & (table.values <= release.most))
    pinned = release.least == release.most
    assert np.array_equal(release.published[pinned], table.values[pinned])
    totals = (np.indices((5, 5, 5)) == 4).sum(axis=0)  # how many axes are at their total
    assert np.array_equal(pinned, 3 - totals <= order)
    assert release.channel is None


def test_a_total_of_more_than_is_shown_moves_with_what_is_shown() -> None:
    whole = with_totals(np.random.default_rng(0).integers(1, 5, (3, 3, 3)))
    part = whole.take([[0, 1, 4], [0, 1, 2, 4], [0, 1, 2, 4]])
    release = TableSwapping(1).apply(part, np.random.default_rng(2))
    change = release.published - part.values
    assert change.any()
    assert np.array_equal(change[2], change[:2].sum(axis=0))


@given(seed=st.integers(0, 2**32))
def test_a_turned_and_sorted_table_is_swapped_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, (5, 5, 5), dtype=np.uint64)
    table = replace(with_totals(rng.integers(0, 5, (3, 3, 3))), keys=keys)
    picks = [rng.permutation(5) for _ in range(3)]
    order = rng.permutation(3).tolist()
    moved = table.take(picks)
    turned = Table(
        tuple(moved.axes[a] for a in order), moved.values.transpose(order),
        keys=keys[np.ix_(*picks)].transpose(order),
    )  # fmt: skip
    straight = TableSwapping(1, sweeps=5).apply(table).published
    assert np.array_equal(
        TableSwapping(1, sweeps=5).apply(turned).published,
        straight[np.ix_(*picks)].transpose(order),
    )


def test_impossible_cells_stay_empty_and_keys_decide_without_a_generator() -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 5, (4, 4))
    structural = np.zeros((4, 4), np.bool_)
    structural[0, 1] = structural[2, 2] = True
    counts[structural] = 0
    plain = Table.from_counts(counts, keys=rng.integers(0, 2**64, (4, 4), dtype=np.uint64))
    table = Table(plain.axes, plain.values, keys=plain.keys, structural=structural)
    once, again = (TableSwapping(1).apply(table) for _ in range(2))
    assert once.published.tobytes() == again.published.tobytes()
    assert not np.array_equal(once.published, counts)
    assert not once.published[structural].any()
    with pytest.raises(InputError, match="give a random generator"):
        TableSwapping(1).apply(Table.from_counts(counts))


def test_overlapping_categories_are_refused() -> None:
    axis = TableAxis("v", "v", (Category("a", "a", (0, 1)), Category("b", "b", (1, 2))))
    other = TableAxis.plain("w", ["1", "2"])
    with pytest.raises(InputError, match="overlap"):
        TableSwapping(1).apply(
            Table((axis, other), np.ones((2, 2), np.int64)), np.random.default_rng(0)
        )


def test_a_table_that_nothing_can_move_in_says_what_would_be_right() -> None:
    with pytest.raises(InputError, match="needs an order of 1 at most"):
        TableSwapping(2).apply(Table.from_counts([[1, 2], [3, 4]]), np.random.default_rng(0))
    with pytest.raises(InputError, match="two such variables"):
        TableSwapping(1).apply(Table.from_counts([1, 2]), np.random.default_rng(0))
