"""A table with some of its categories merged: values, contributors and largest contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import Category, Contributions, InputError, Table, TableAxis
from lustrum.model.arrays import Ints
from lustrum.protect.redesign.ways import Block, State, kept_categories


def recoded(table: Table, states: Sequence[State]) -> Table:
    """The table in which blocks replace the inner categories of each axis; totals stay.

    A block that is a category of the table already keeps that category, with its exact contributors.
    Otherwise the contributors of its parts are put together. Contributions of one holding are added up;
    where a holding contributes to several parts, the number of contributors is a lower bound, so that a
    rule never finds a cell safe by mistake.

    >>> table = Table.from_counts([[1, 5], [4, 2], [7, 8]])
    >>> recoded(table, [((0, 1), (2,)), ((0,), (1,))]).values.tolist()
    [[5, 7], [7, 8]]
    """
    out = table
    for axis_index, state in enumerate(states):
        out = _along(out, axis_index, state)
    return out


def recoded_axis(axis: TableAxis, state: State) -> tuple[TableAxis, list[Block]]:
    """The axis after merging, and for each of its categories the categories that make it up."""
    by_set: dict[frozenset[int], int] = {}
    for i, category in enumerate(axis.categories):
        by_set.setdefault(category.member_set, i)
    block_sets = [frozenset().union(*(axis.categories[i].member_set for i in b)) for b in state]
    categories: list[Category] = []
    parts: list[Block] = []
    for block, members in zip(state, block_sets, strict=True):
        if members in by_set:
            index = by_set[members]
            categories.append(axis.categories[index])
            parts.append((index,))
        else:
            first, last = axis.categories[block[0]], axis.categories[block[-1]]
            categories.append(_joined(axis, block, first, last, members))
            parts.append(block)
    for i in kept_categories(axis, state):
        categories.append(axis.categories[i])
        parts.append((i,))
    return TableAxis(axis.name, axis.label, tuple(categories)), parts


def _joined(
    axis: TableAxis, block: Block, first: Category, last: Category, members: frozenset[int]
) -> Category:
    inner = np.flatnonzero(axis.inner).tolist()
    start = inner.index(block[0])
    run = tuple(inner[start : start + len(block)]) == block and len(block) > 2
    codes = [axis.categories[i].code for i in block]
    labels = [axis.categories[i].label for i in block]
    code = f"{first.code}-{last.code}" if run else "+".join(codes)
    label = f"{first.label} to {last.label}" if run else " and ".join(labels)
    return Category(code, label, tuple(sorted(members)))


def _along(table: Table, axis_index: int, state: State) -> Table:
    axis, parts = recoded_axis(table.axes[axis_index], state)

    def summed(array: npt.NDArray[Any] | None, how: Any = np.sum) -> Any:
        if array is None:
            return None
        moved = np.moveaxis(array, axis_index, 0)
        return np.moveaxis(np.stack([how(moved[list(p)], axis=0) for p in parts]), 0, axis_index)

    contributors, contributions = table.contributors, table.contributions
    if contributions is not None:
        contributors, contributions = _merged_contributions(table, contributions, axis_index, parts)
    else:
        contributors = summed(contributors)
    keys = table.keys
    return replace(
        table,
        axes=(*table.axes[:axis_index], axis, *table.axes[axis_index + 1 :]),
        values=summed(table.values),
        contributors=contributors,
        keys=None if keys is None else summed(keys),
        contributions=contributions,
        structural=summed(table.structural, np.all),
    )


def _merged_contributions(
    table: Table, contributions: Contributions, axis_index: int, parts: Sequence[Block]
) -> tuple[Ints | None, Contributions]:
    values, holders, weights, counts = [], [], [], []
    count = None if table.contributors is None else np.moveaxis(table.contributors, axis_index, 0)
    moved = [
        None if a is None else np.moveaxis(a, axis_index, 0)
        for a in (contributions.value, contributions.holding, contributions.weight)
    ]
    assert moved[0] is not None
    assert moved[1] is not None
    for part in parts:
        rows = list(part)
        value, holder = (np.concatenate(list(a[rows]), axis=-1) for a in moved[:2] if a is not None)
        weight = None if moved[2] is None else np.concatenate(list(moved[2][rows]), axis=-1)
        number = None if count is None else count[rows].sum(axis=0)
        if len(rows) > 1:
            shared = _shared(holder)
            if bool(shared.any()):
                if weight is not None:
                    raise InputError(
                        "A holding with weights contributes to several categories; merge them in the records."
                    )
                value, holder = _added(value, holder, shared)
                if number is not None and count is not None:
                    listed = np.count_nonzero(holder >= 0, axis=-1)
                    least = np.maximum(count[rows].max(axis=0), listed)
                    # A holding that is listed twice may also be among those not listed; the lower bound is
                    # certain.
                    number = np.where(shared, least, number)
        order = np.argsort(-np.abs(value) * (holder >= 0) - (holder >= 0), axis=-1, kind="stable")
        order = order[..., : contributions.value.shape[-1]]
        values.append(np.take_along_axis(value, order, axis=-1))
        holders.append(np.take_along_axis(holder, order, axis=-1))
        if weight is not None:
            weights.append(np.take_along_axis(weight, order, axis=-1))
        counts.append(number)
    value, holder = (np.moveaxis(np.stack(a), 0, axis_index) for a in (values, holders))
    weight = np.moveaxis(np.stack(weights), 0, axis_index) if weights else None
    merged = replace(contributions, value=value, holding=holder, weight=weight)
    if count is None:
        return None, merged
    return np.moveaxis(np.stack([c for c in counts if c is not None]), 0, axis_index), merged


def _shared(holder: Ints) -> npt.NDArray[np.bool_]:
    """Where a holding occurs more than once in a cell."""
    order = np.sort(holder, axis=-1)
    return np.asarray(((order[..., 1:] == order[..., :-1]) & (order[..., 1:] >= 0)).any(axis=-1))


def _added(value: Ints, holder: Ints, shared: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The contributions of each holding added up, in cells where one occurs more than once."""
    value, holder = value.copy(), holder.copy()
    for cell in zip(*np.nonzero(shared), strict=True):
        first: dict[int, int] = {}
        for rank, holding in enumerate(holder[cell].tolist()):
            if holding < 0:
                continue
            if holding in first:
                value[(*cell, first[holding])] += value[(*cell, rank)]
                value[(*cell, rank)], holder[(*cell, rank)] = 0, -1
            else:
                first[holding] = rank
    return value, holder
