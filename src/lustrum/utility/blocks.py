"""The inner cells of a table as one dense block, and where their totals stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lustrum.model import InputError, TableAxis
from lustrum.model.errors import choices

Grid = tuple[Any, ...]


def inner_grid(axes: Sequence[TableAxis]) -> Grid:
    """An index of the inner cells, which form a block: a cell is inner if it is so on every axis."""
    return np.ix_(*(np.flatnonzero(axis.inner) for axis in axes)) if axes else ()


def total_position(axis: TableAxis) -> int | None:
    """Where the sum of all inner categories of an axis stands, if it is there.

    >>> total_position(TableAxis.plain("sex", ["1", "2"])) is None
    True
    """
    inner = [
        c.member_set for c, is_inner in zip(axis.categories, axis.inner, strict=True) if is_inner
    ]
    union = frozenset[int]().union(*inner)
    if sum(map(len, inner)) != len(union):
        return None
    for position, category in enumerate(axis.categories):
        if not axis.inner[position] and category.member_set == union:
            return position
    return None


def margin_grid(axes: Sequence[TableAxis], summed: Sequence[int]) -> Grid | None:
    """An index of the totals over the given axes, one wide along each of them; None if one has none."""
    picks = []
    for position, axis in enumerate(axes):
        if position not in summed:
            picks.append(np.flatnonzero(axis.inner))
            continue
        total = total_position(axis)
        if total is None:
            return None
        picks.append(np.array([total]))
    return np.ix_(*picks) if picks else ()


def axis_position(axes: Sequence[TableAxis], name: str) -> int:
    """Where the axis of that name is."""
    names = [axis.name for axis in axes]
    if name not in names:
        raise InputError(f"The table has no axis {name!r}; {choices(name, names)}.")
    return names.index(name)
