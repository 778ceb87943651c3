"""The compiled loops of the search: what a move would change, and the sweep that tries moves.

A finest cell stands at the lower or the upper of two adjacent numbers, one step apart. A *flip* moves one
cell, a *swap* moves two cells that differ in one variable in opposite directions, which leaves every table
without that variable as it is. ``rise[kind, e + reach]`` says what the cost of a controlled cell changes by
when its error ``e`` grows by one step; costs are symmetric, so that ``rise[kind, reach - e]`` belongs to a
step down. All costs are whole numbers, and sums of them are the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.compiled import compiled
from lustrum.stream import below, next_word

__all__ = ["add_errors", "places", "shuffle", "sweep_blocks"]


@compiled
def places(layout: Any, codes: Any, p: Any, inner: Any, base: Any) -> None:  # pragma: no cover
    """Where a finest cell lies: its place in one slice, and where each of its slices begins."""
    nodes = layout.variable_of.size - 1
    for k in range(nodes):
        p[k] = layout.position[k, codes[layout.variable_of[k]]]
    for t in range(inner.size):
        inner[t] = layout.table_offset[t]
    for j in range(layout.table_node.shape[0]):
        for t in range(inner.size):
            inner[t] += p[layout.table_node[j, t]] * layout.table_stride[j, t]
    for r in range(base.size):
        at = layout.run_offset[r]
        for j in range(layout.run_node.shape[0]):
            at += np.int64(p[layout.run_node[j, r]]) * np.int64(layout.run_stride[j, r])
        base[r] = np.uint64(at)


@compiled
def _add(layout: Any, errors: Any, inner: Any, base: Any, change: Any) -> None:  # pragma: no cover
    """Change the errors of all tables by what one finest cell changed."""
    for r in range(base.size):
        b = base[r]
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            errors[b + inner[t]] += change


@compiled
def _flip_costs(
    layout: Any, errors: Any, inner: Any, base: Any, rise: Any, reach: Any
) -> Any:  # pragma: no cover
    """What the cost changes by if one finest cell moves a step up, and if it moves a step down."""
    up = np.int64(0)
    down = np.int64(0)
    for r in range(base.size):
        b = base[r]
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            e = min(max(np.int64(errors[b + inner[t]]), -reach), reach)
            up += rise[layout.kind[r, t], np.uint64(reach + e)]
            down += rise[layout.kind[r, t], np.uint64(reach - e)]
    return up, down


@compiled
def _node_cost(
    layout: Any,
    errors: Any,
    inner: Any,
    base: Any,
    node: Any,
    apart: Any,
    sign: Any,
    rise: Any,
    reach: Any,
) -> Any:  # pragma: no cover
    """What the tables with one node cost if a cell moves by ``sign`` steps and its partner back."""
    total = np.int64(0)
    for q in range(np.uint64(layout.entry_first[node]), np.uint64(layout.entry_first[node + 1])):
        at = base[layout.entry_run[q]] + inner[layout.entry_table[q]]
        x = sign * np.int64(errors[at])
        y = sign * np.int64(errors[at + np.uint64(apart * layout.entry_stride[q])])
        x = min(max(x, -reach), reach)
        y = min(max(y, -reach), reach)
        kind = layout.entry_kind[q]
        total += rise[kind, np.uint64(reach + x)] + rise[kind, np.uint64(reach - y)]
    return total


@compiled
def add_errors(layout: Any, codes: Any, change: Any, errors: Any) -> None:  # pragma: no cover
    """Add up what finest cells changed by, over all controlled tables."""
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    for i in range(change.size):
        if change[i] != 0:
            places(layout, codes[i], p, inner, base)
            _add(layout, errors, inner, base, change[i])


@compiled
def shuffle(items: Any, state: Any) -> None:  # pragma: no cover
    """Put items in an order drawn from the stream."""
    for j in range(items.size - 1, 0, -1):
        other = below(state, j + 1)
        items[j], items[other] = items[other], items[j]


@compiled
def _allowed(cells: Any, tally: Any, i: Any, o: Any) -> bool:  # pragma: no cover
    """Whether enough of the cells that show the smallest number stay empty in truth after a move.

    ``o`` is the partner of a swap, or -1. The rule never stands in the way of a move that mends it.
    """
    empty = tally[0]
    smallest = tally[1]
    for c in (i, o):
        if c >= 0:
            sign = -1 if cells.up[c] else 1
            empty += sign * cells.is_empty[c]
            smallest += sign * (cells.high_smallest[c] - cells.low_smallest[c])
    lack_now = tally[2] * tally[1] - tally[3] * tally[0]
    lack_then = tally[2] * smallest - tally[3] * empty
    return bool(lack_then <= 0 or lack_then <= lack_now)


@compiled
def _move(cells: Any, tally: Any, c: Any) -> None:  # pragma: no cover
    """Note that a cell has moved."""
    sign = -1 if cells.up[c] else 1
    tally[0] += sign * cells.is_empty[c]
    tally[1] += sign * (cells.high_smallest[c] - cells.low_smallest[c])
    cells.up[c] = 1 - cells.up[c]


@compiled
def _swap(
    layout: Any, errors: Any, inner: Any, base: Any, node: Any, apart: Any, change: Any
) -> None:  # pragma: no cover
    """Change the errors of the tables with one node by a swap."""
    for q in range(layout.entry_first[node], layout.entry_first[node + 1]):
        at = base[layout.entry_run[q]] + inner[layout.entry_table[q]]
        errors[at] += change
        errors[at + np.uint64(apart * layout.entry_stride[q])] -= change


@compiled
def sweep_blocks(
    layout: Any,
    cells: Any,
    blocks: Any,
    errors: Any,
    fields: Any,
    tally: Any,
    state: Any,
    step: Any,
    rise: Any,
    temperature: float,
    quantiles: Any,
    rings: Any,
    tried: Any,
) -> None:  # pragma: no cover
    """Try a flip of every cell of some blocks, and swaps with its next neighbours along every variable.

    ``fields`` keeps, for every cell, half the difference and half the sum of what a step up and a step down
    cost when it was last visited, or nothing before the first visit. From those of two cells follows about
    what a swap would cost; only promising swaps are worked out. ``rings`` is how many neighbours are tried
    along a variable.
    """
    reach = np.int64(rise.shape[1] // 2)
    variables = layout.first_node.size - 1
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    for block in blocks:
        low = cells.first[block]
        count = cells.first[block + 1] - low
        order = np.arange(count)
        shuffle(order, state)
        for j in range(count):
            i = np.int64(low + order[j])
            places(layout, cells.codes[i], p, inner, base)
            up, down = _flip_costs(layout, errors, inner, base, rise, reach)
            fields[i, 0] = np.float32(0.5 * (up - down))
            fields[i, 1] = np.float32(0.5 * (up + down))
            if cells.group[i] < 0:
                cost = down if cells.up[i] else up
                limit = temperature * quantiles[next_word(state) >> np.uint64(52)]
                tried[0, 0] += 1
                if cost <= limit and _allowed(cells, tally, i, np.int64(-1)):
                    _add(layout, errors, inner, base, -step if cells.up[i] else step)
                    _move(cells, tally, i)
                    tried[0, 1] += 1
                    up, down = _flip_costs(layout, errors, inner, base, rise, reach)
                    fields[i, 0] = 0.5 * (up - down)
                    fields[i, 1] = 0.5 * (up + down)
            for v in range(variables):
                o = np.int64(cells.partner[v, i])
                for _ in range(rings):
                    if o < 0 or o == i:
                        break
                    if cells.up[o] != cells.up[i] and cells.group[o] == cells.group[i]:
                        sign = np.int64(-1 if cells.up[i] else 1)
                        share = 0.0
                        for k in range(layout.first_node[v], layout.first_node[v + 1]):
                            if layout.position[k, cells.codes[o, v]] != np.uint32(p[k]):
                                share += layout.node_share[k]
                        about = sign * (np.float64(fields[i, 0]) - np.float64(fields[o, 0]))
                        about += share * (np.float64(fields[i, 1]) + np.float64(fields[o, 1]))
                        limit = temperature * quantiles[next_word(state) >> np.uint64(52)]
                        if not about > limit + temperature:
                            tried[1, 0] += 1
                            cost = np.int64(0)
                            for k in range(layout.first_node[v], layout.first_node[v + 1]):
                                apart = np.int64(layout.position[k, cells.codes[o, v]])
                                apart -= np.int64(p[k])
                                if apart != 0:
                                    cost += _node_cost(
                                        layout, errors, inner, base, k, apart, sign, rise, reach
                                    )
                            if cost <= limit and _allowed(cells, tally, i, o):
                                for k in range(layout.first_node[v], layout.first_node[v + 1]):
                                    apart = np.int64(layout.position[k, cells.codes[o, v]])
                                    apart -= np.int64(p[k])
                                    if apart != 0:
                                        _swap(layout, errors, inner, base, k, apart, step * sign)
                                _move(cells, tally, i)
                                _move(cells, tally, o)
                                tried[1, 1] += 1
                                # Moving back would cost about as much as it gained.
                                back = np.float32(sign * 2.0 * share * np.float64(fields[i, 1]))
                                fields[i, 0] += back
                                fields[o, 0] -= back
                    o = np.int64(cells.partner[v, o])
