"""Slow truths about contributors and lines, each written from the definition alone."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from fractions import Fraction

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Category, Table, TableAxis

QUICK = settings(deadline=None, max_examples=examples(20, 160))

contributions = st.lists(st.integers(0, 60), max_size=6)
signed = st.lists(st.integers(-60, 60), max_size=6)
percents = st.sampled_from([1, 5, 10, 12.5, 33, 50, 80, 99])


def closest_bound(
    cell: Sequence[int], total: int, coalition: int, ratio: Fraction, waived: Collection[int] = ()
) -> bool:
    """Whether some coalition bounds somebody who did not waive to within the ratio of his own value."""
    sizes = [abs(x) for x in cell]
    for target, own in enumerate(sizes):
        if target in waived:
            continue
        others = [x for i, x in enumerate(sizes) if i != target]
        for known in itertools.combinations(others, min(coalition, len(others))):
            bound = total - sum(known)
            if bound - own < ratio * own:
                return True
    return False


def dominated(
    cell: Sequence[int], total: int, n: int, k: Fraction, waived: Collection[int] = ()
) -> bool:
    """Whether n or fewer, somebody without a waiver among them, have more than k percent."""
    sizes = [abs(x) for x in cell]
    for size in range(1, n + 1):
        for group in itertools.combinations(range(len(sizes)), size):
            if set(group) <= set(waived):
                continue
            if sum(sizes[i] for i in group) * 100 > k * total:
                return True
    return False


def expanded_sum(cell: Sequence[int], weights: Sequence[Fraction], number: int) -> Fraction:
    """The sum over so many respondents, one at a time, when each stands for as many as his weight."""
    left, total = Fraction(number), Fraction(0)
    for value, weight in sorted(zip(cell, weights, strict=True), key=lambda pair: -pair[0]):
        part = min(left, weight)
        total += value * part
        left -= part
    return total


def axis_of(name: str, sets: Sequence[Sequence[int]]) -> TableAxis:
    """An axis of categories that hold these codes."""
    return TableAxis(
        name,
        name,
        tuple(Category(f"{name}{i}", f"{name}{i}", tuple(s)) for i, s in enumerate(sets)),
    )


def counted(base: np.ndarray, *sets: Sequence[Sequence[int]]) -> Table:
    """A table of counts over categories that hold some of the finest codes of ``base``."""
    values = base
    for position, categories in enumerate(sets):
        moved = np.moveaxis(values, position, 0)
        rolled = np.stack([moved[list(c)].sum(axis=0) for c in categories])
        values = np.moveaxis(rolled, 0, position)
    axes = tuple(axis_of("abc"[i], s) for i, s in enumerate(sets))
    return Table(axes=axes, values=np.ascontiguousarray(values).astype(np.int64))


HIERARCHIES = [
    [[0], [1], [2]], [[0], [1], [2], [0, 1, 2]], [[0], [1], [0, 1], [2]],
    [[0], [1], [0, 1], [2], [0, 1, 2]], [[0], [1], [0, 1, 2]], [[0, 1], [2]], [[0], [0, 1], [2]],
]  # fmt: skip


@st.composite
def count_tables(draw: st.DrawFn, dimensions: int = 2) -> Table:
    """Small tables with many zeros, with and without totals, subtotals and gaps."""
    shape = (3,) * dimensions
    cells = st.sampled_from([0, 0, 0, 1, 1, 2, 5])
    base = np.array(draw(st.lists(cells, min_size=3**dimensions, max_size=3**dimensions)))
    sets = [draw(st.sampled_from(HIERARCHIES)) for _ in shape]
    return counted(base.reshape(shape), *sets)


def lines_of(table: Table, axis: int) -> list[tuple[int | slice, ...]]:
    """Every line along an axis, as an index."""
    others = [range(n) if i != axis else [slice(None)] for i, n in enumerate(table.shape)]
    return list(itertools.product(*others))
