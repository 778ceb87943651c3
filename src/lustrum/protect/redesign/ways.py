"""How the categories of one axis may be merged, one step at a time.

A state of an axis is a partition of its inner categories into blocks. What may be merged depends on the axis:
neighbours where categories are in order (ages, size classes), siblings up to their parent where there is a
hierarchy, any two where categories are only names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from lustrum.model import TableAxis

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
