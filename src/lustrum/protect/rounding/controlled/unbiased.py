"""Unbiased controlled rounding of one-way and two-way tables (Cox 1987), in whole numbers throughout.

The published numbers are the flows of a circulation (see ``two_way``). If one of the numbers at a node is
not a multiple of the base, at least one other is not either; so a walk along such numbers closes a cycle.
Along it, all numbers can move up or down together and the table still adds up. The first multiple is
reached after ``up`` units upwards or ``down`` units downwards; the cycle goes up with probability ``down /
(up + down)``, which keeps every mean. Each move makes one more number a multiple, so the walk ends.

Every published number, totals too, becomes one of its two adjacent multiples and is right on average. Two
values with a known mean have known probabilities: up with ``r / b``. Each number on its own is therefore
published as by :class:`~lustrum.protect.rounding.cells.RoundingChannel`, exactly; together they add up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Array, Ints
from lustrum.numeric.compiled import compiled
from lustrum.protect.rounding.controlled.two_way import checked_counts, layout_of


def unbiased_rounding(
    values: npt.ArrayLike,
    base: int,
    rng: np.random.Generator,
    *,
    groups: Sequence[Sequence[int]] = (),
    rows: bool = True,
    columns: bool = True,
    grand: bool = True,
) -> Ints:
    """Rounded inner cells; they and all published totals are adjacent multiples and right on average.

    The totals of the rounded table are the sums of its cells. Random numbers are whole numbers from the
    generator, so that the means are exact.

    >>> rounded = unbiased_rounding([[1, 5], [7, 0]], 3, np.random.default_rng(1))
    >>> rounded.tolist(), rounded.sum(axis=1).tolist()
    ([[3, 3], [6, 0]], [6, 6])
    """
    cells = checked_counts(values, base)
    layout = layout_of(cells, groups, rows, columns, grand)
    true = layout.published(cells)
    residue = true % base
    moving = np.flatnonzero(residue)
    left = residue[moving]
    while True:
        open_ = (left > 0) & (left < base)
        if not open_.any():
            break
        # One word for each cell is enough unless one is rejected, about once in 2**62 draws.
        random_words = rng.integers(0, 2**64, size=int(open_.sum()), dtype=np.uint64)
        _walk(layout.tail[moving], layout.head[moving], left, base, layout.nodes, random_words)
    true[moving] += left - residue[moving]
    return layout.inner(true).reshape(cells.shape)


@compiled
def _walk(  # pragma: no cover
    tail: Array, head: Array, left: Array, base: int, count: int, random_words: Array
) -> int:
    """Round the residues ``left`` on the arcs in place, while words last; returns how many were used."""
    size = np.zeros(count, dtype=np.int64)
    for arc in range(tail.size):
        if 0 < left[arc] < base:
            size[tail[arc]] += 1
            if head[arc] != tail[arc]:
                size[head[arc]] += 1
    begin = np.zeros(count + 1, dtype=np.int64)
    begin[1:] = np.cumsum(size)
    around = np.empty(begin[count], dtype=np.int64)
    size[:] = 0
    for arc in range(tail.size):
        if 0 < left[arc] < base:
            around[begin[tail[arc]] + size[tail[arc]]] = arc
            size[tail[arc]] += 1
            if head[arc] != tail[arc]:
                around[begin[head[arc]] + size[head[arc]]] = arc
                size[head[arc]] += 1

    path_index = np.full(count, -1, dtype=np.int64)
    nodes = np.empty(count + 1, dtype=np.int64)
    arcs = np.empty(count + 1, dtype=np.int64)
    most = np.uint64(0xFFFFFFFFFFFFFFFF)
    used = 0
    for start in range(count):
        nodes[0] = start
        path_index[start] = 0
        length = 0  # arcs walked; node number ``length`` is the present one
        while True:
            node = nodes[length]
            came_by = arcs[length - 1] if length else -1
            next_arc = -1
            at, last = begin[node], size[node] - 1
            k = last
            while k >= 0:
                arc = around[at + k]
                if left[arc] == 0 or left[arc] == base:
                    around[at + k] = around[at + last]
                    last -= 1
                    k = min(k, last)
                elif arc == came_by:
                    k -= 1
                else:
                    next_arc = arc
                    break
            size[node] = last + 1
            if next_arc < 0:
                break
            arcs[length] = next_arc
            length += 1
            end = head[next_arc] if tail[next_arc] == node else tail[next_arc]
            if path_index[end] < 0:
                nodes[length] = end
                path_index[end] = length
                continue
            first = path_index[end]
            up, down = base, base
            for k in range(first, length):
                room = left[arcs[k]]
                if tail[arcs[k]] == nodes[k]:
                    room = base - room
                up = min(up, room)
                down = min(down, base - room)
            total = np.uint64(up + down)
            while (
                used < random_words.size
                and most - random_words[used] < (most % total + np.uint64(1)) % total
            ):
                used += 1
            if used == random_words.size:
                return used
            step = up if random_words[used] % total < np.uint64(down) else -down
            used += 1
            for k in range(first, length):
                left[arcs[k]] += step if tail[arcs[k]] == nodes[k] else -step
                if k > first:
                    path_index[nodes[k]] = -1
            length = first
        path_index[start] = -1
    return used
