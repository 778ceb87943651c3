"""A table with some of its categories merged: values, contributors and largest contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Category, Contributions, InputError, Table, TableAxis
from lustrum.model.arrays import Ints, Mask

# How the categories of one axis may be merged, one step at a time.
#
# A state of an axis is a partition of its inner categories into blocks. What may be merged depends on the
# axis: neighbours where categories are in order (ages, size classes), siblings up to their parent where there
# is a hierarchy, any two where categories are only names.

Block = tuple[int, ...]
"""Inner categories that are published as one, by their positions along the axis, in ascending order."""
State = tuple[Block, ...]
"""The blocks of an axis, ordered by their first category."""
MergeWord = Literal["auto", "neighbours", "hierarchy", "any", "nothing"]


@dataclass(frozen=True)
class AxisWays:
    """The ways in which the blocks of one axis can grow.

    >>> ways = AxisWays(TableAxis.plain("age", ["0", "1", "2"]), "neighbours")
    >>> ways.grown(ways.finest, (1,))
    (((0, 1), (2,)), ((0,), (1, 2)))
    """

    axis: TableAxis
    how: Literal["neighbours", "hierarchy", "any", "nothing"]

    @cached_property
    def finest(self) -> State:
        """Every inner category is a block of its own."""
        return tuple((int(i),) for i in np.flatnonzero(self.axis.inner))

    @cached_property
    def parents(self) -> tuple[Block, ...]:
        """The totals and subtotals as sets of inner categories, the smallest first."""
        inner = [i for (i,) in self.finest]
        blocks: dict[Block, None] = {}
        for category in self.axis.categories:
            inside = tuple(
                i for i in inner if self.axis.categories[i].member_set <= category.member_set
            )
            if len(inside) > 1:
                blocks[inside] = None
        return tuple(sorted(blocks, key=lambda block: (len(block), block)))

    def grown(self, state: State, block: Block) -> tuple[State, ...]:
        """All smallest coarsenings of a state in which a block has grown.

        Every coarsening in which that block is larger is a coarsening of one of them, except that
        overlapping groups of a hierarchy are not combined.
        """
        index = state.index(block)
        if self.how == "neighbours":
            pairs = [(i, i + 1) for i in (index - 1, index) if 0 <= i < len(state) - 1]
            return tuple(_merged(state, pair) for pair in pairs)
        if self.how == "any":
            others = (i for i in range(len(state)) if i != index)
            return tuple(_merged(state, (index, i)) for i in others)
        if self.how == "hierarchy":
            return tuple(s for p in self._above(block) if (s := _replaced(state, p)) is not None)
        return ()

    def _above(self, block: Block) -> list[Block]:
        """The smallest totals and subtotals that hold a block and more."""
        larger = [p for p in self.parents if set(block) < set(p)]
        return [p for p in larger if not any(set(q) < set(p) for q in larger)]


def ways_of(axis: TableAxis, how: MergeWord = "auto") -> AxisWays:
    """The ways of an axis: by its hierarchy where the table shows one, otherwise by neighbours."""
    if how != "auto":
        return AxisWays(axis, how)
    ways = AxisWays(axis, "hierarchy")
    whole = tuple(i for (i,) in ways.finest)
    return ways if any(p != whole for p in ways.parents) else AxisWays(axis, "neighbours")


def grown_states(
    ways: Sequence[AxisWays], states: Sequence[State], cell: Sequence[int]
) -> tuple[tuple[State, ...], ...]:
    """All smallest recodings in which a cell of the recoded table has changed.

    ``cell`` has a position along each recoded axis, where the blocks come first. A block changes when it
    grows. A subtotal disappears only when a block inside it grows, and the total of an axis never
    disappears.
    """
    out: dict[tuple[State, ...], None] = {}
    for axis_index, (way, state, at) in enumerate(zip(ways, states, cell, strict=True)):
        inside = (state[at],) if at < len(state) else _inside(way.axis, state, at)
        for block in inside:
            for grown in way.grown(state, block):
                out[(*states[:axis_index], grown, *states[axis_index + 1 :])] = None
    return tuple(out)


def _inside(axis: TableAxis, state: State, at: int) -> tuple[Block, ...]:
    """The blocks inside a total or subtotal; none for the total of everything."""
    category = kept_categories(axis, state)[at - len(state)]
    members = axis.categories[category].member_set
    blocks = tuple(b for b in state if axis.categories[b[0]].member_set <= members)
    return () if len(blocks) == len(state) else blocks


def kept_categories(axis: TableAxis, state: State) -> list[int]:
    """The totals and subtotals that remain: those made of more than one whole block."""
    sets = [frozenset().union(*(axis.categories[i].member_set for i in b)) for b in state]
    whole = frozenset().union(*sets) if sets else frozenset()
    remaining = []
    for i, category in enumerate(axis.categories):
        members = category.member_set
        inside = [b for b in sets if not members.isdisjoint(b)]
        covers = all(b <= members for b in inside) and members & whole == frozenset().union(*inside)
        if not axis.inner[i] and len(inside) > 1 and covers:
            remaining.append(i)
    return remaining


def _merged(state: State, pair: tuple[int, int]) -> State:
    union = tuple(sorted(state[pair[0]] + state[pair[1]]))
    rest = [b for i, b in enumerate(state) if i not in pair]
    return tuple(sorted([*rest, union]))


def _replaced(state: State, parent: Block) -> State | None:
    """The state with a whole group merged; None if a block overlaps it in part."""
    inside, whole = [], set(parent)
    for block in state:
        if set(block) <= whole:
            inside.append(block)
        elif not whole.isdisjoint(block):
            return None
    return tuple(sorted([*(b for b in state if b not in inside), parent]))


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


def _shared(holder: Ints) -> Mask:
    """Where a holding occurs more than once in a cell."""
    order = np.sort(holder, axis=-1)
    return np.asarray(((order[..., 1:] == order[..., :-1]) & (order[..., 1:] >= 0)).any(axis=-1))


def _added(value: Ints, holder: Ints, shared: Mask) -> tuple[Ints, Ints]:
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
