"""Tables with releases beside them, to draw at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import CellStatus, Release, Table
from small import with_total as totalled
from small import with_totals as add_totals

# A busy machine is no failure; BRIEF is for claims about every measure.
QUICK = settings(deadline=None, max_examples=examples(25, 200))
BRIEF = settings(deadline=None, max_examples=examples(10, 80))

Pair = tuple[list[int], list[int]]


def release_of(
    table: Table, published: npt.ArrayLike, hidden: npt.ArrayLike | None = None, **more: Any
) -> Release:
    """A release of a table with these values, some of them suppressed."""
    status = np.full(table.shape, CellStatus.FREE.value)
    if hidden is not None:
        status[np.asarray(hidden, dtype=bool)] = CellStatus.SMALL_COUNT.value
    values = np.asarray(published, dtype=np.int64)
    return Release(table.axes, values, status, {"method": "test"}, decimals=table.decimals, **more)


def with_totals(inner: npt.ArrayLike, names: Sequence[str]) -> Table:
    """A table of counts with the totals over each axis behind it."""
    array = np.asarray(inner, dtype=np.int64)
    axes = tuple(totalled(n, size) for n, size in zip(names, array.shape, strict=True))
    return Table(axes=axes, values=add_totals(array))


@st.composite
def count_pairs(draw: st.DrawFn, least: int = 0, most: int = 30) -> Pair:
    """True and published counts of a few cells, with somebody in both."""
    size = draw(st.integers(1, 8))
    counts = st.lists(st.integers(least, most), min_size=size, max_size=size).filter(any)
    return draw(counts), draw(counts)


@st.composite
def grids(draw: st.DrawFn, least: int = 1, most: int = 20) -> npt.NDArray[np.int64]:
    """A two- or three-way array of counts."""
    shape = draw(st.lists(st.integers(2, 3), min_size=2, max_size=3))
    size = int(np.prod(shape))
    values = draw(st.lists(st.integers(least, most), min_size=size, max_size=size))
    return np.array(values).reshape(shape)
