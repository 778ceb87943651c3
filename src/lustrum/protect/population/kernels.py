"""The compiled loops of the search: what a move would change, and the sweep that tries moves.

A finest cell stands at the lower or the upper of two adjacent numbers, one step apart. A *flip* moves one
cell, a *swap* moves two cells that differ in one variable in opposite directions, which leaves every table
without that variable as it is, and an *exchange* moves four. ``rise[kind, e + reach]`` says what the cost
of a controlled cell changes by when its error ``e`` grows by one step; costs are symmetric, so that
``rise[kind, reach - e]`` belongs to a step down. All costs are whole numbers, and sums of them are the same
on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.compiled import compiled
from lustrum.protect.population.exchanges import NEAR, allowed, exchange, move
from lustrum.stream import below, next_word

__all__ = ["add_errors", "cells_beyond", "places", "shuffle", "sweep_blocks"]


@compiled
def places(layout: Any, codes: Any, p: Any, inner: Any, base: Any) -> None:  # pragma: no cover
    """Where a finest cell lies: its place in one slice, and where each of its slices begins."""
    nodes = layout.variable_of.size - 1
    for k in range(nodes):
        p[k] = layout.position[k, codes[layout.variable_of[k]]]
    for t in range(inner.size):
        parent = inner[layout.table_parent[t]] if t > 0 else np.uint64(0)
        inner[t] = parent * layout.table_size[t] + p[layout.table_node[t]]
    for t in range(inner.size):
        inner[t] += layout.table_offset[t]
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
def cells_beyond(
    layout: Any, codes: Any, errors: Any, kind_counts: Any, beyond: Any, found: Any
) -> None:  # pragma: no cover
    """Find the finest cells that lie in a controlled cell with an error larger than ``beyond``.

    Tables count if their kind does.
    """
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    for i in range(found.size):
        places(layout, codes[i], p, inner, base)
        found[i] = 0
        for r in range(base.size):
            b = base[r]
            for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                if abs(errors[b + inner[t]]) > beyond and kind_counts[layout.kind[r, t]]:
                    found[i] = 1


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
def _refresh(
    layout: Any, errors: Any, inner: Any, base: Any, rise: Any, reach: Any, fields: Any, i: Any
) -> None:  # pragma: no cover
    """Note what a step up and a step down of a cell cost now."""
    up, down = _flip_costs(layout, errors, inner, base, rise, reach)
    fields[i, 0] = np.float32(0.5 * (up - down))
    fields[i, 1] = np.float32(0.5 * (up + down))


@compiled
def _about(fields: Any, i: Any, o: Any, sign: Any, share: float) -> float:  # pragma: no cover
    """About what a swap costs; not a number if one of both cells has never been visited."""
    about = sign * (np.float64(fields[i, 0]) - np.float64(fields[o, 0]))
    return float(about + share * (np.float64(fields[i, 1]) + np.float64(fields[o, 1])))


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
    shares: Any,
    pair_shares: Any,
    temperature: float,
    slack: float,
    quantiles: Any,
    rings: Any,
    visited: Any,
    exchanges: bool,
    tried: Any,
) -> None:  # pragma: no cover
    """Try a flip of every cell of some blocks, and swaps with its next neighbours along every variable.

    ``fields`` keeps, for every cell, half the difference and half the sum of what a step up and a step down
    cost when it was last visited, or nothing before the first visit. From those of two cells follows about
    what a swap would cost, with ``shares``, the weight of the tables with a node among all; only promising
    swaps are worked out. ``rings`` is how many neighbours are tried along a variable. Cells that are not
    ``visited`` move as partners only.
    """
    reach = np.int64(rise.shape[1] // 2)
    none = np.int64(-1)
    variables = layout.first_node.size - 1
    near = np.empty((variables, NEAR), dtype=np.int64)
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
            if visited[i] == 0:
                continue
            places(layout, cells.codes[i], p, inner, base)
            _refresh(layout, errors, inner, base, rise, reach, fields, i)
            if cells.group[i] < 0:
                sign = np.int64(-1 if cells.up[i] else 1)
                alone = sign * np.float64(fields[i, 0]) + np.float64(fields[i, 1])
                limit = temperature * quantiles[next_word(state) >> np.uint64(52)]
                tried[0, 0] += 1
                if alone <= limit and allowed(cells, tally, i, none, none, none):
                    _add(layout, errors, inner, base, step * sign)
                    move(cells, tally, i)
                    tried[0, 1] += 1
                    _refresh(layout, errors, inner, base, rise, reach, fields, i)
            for v in range(variables):
                first = layout.first_node[v]
                stop = layout.first_node[v + 1]
                own = cells.codes[i, v]
                o = np.int64(cells.partner[v, i])
                for _ in range(rings):
                    if o < 0 or o == i:
                        break
                    if cells.up[o] != cells.up[i] and cells.group[o] == cells.group[i]:
                        sign = np.int64(-1 if cells.up[i] else 1)
                        other = cells.codes[o, v]
                        share = 0.0
                        for k in range(first, stop):
                            if layout.position[k, other] != layout.position[k, own]:
                                share += shares[k]
                        limit = temperature * quantiles[next_word(state) >> np.uint64(52)]
                        if not _about(fields, i, o, sign, share) > limit + slack:
                            tried[1, 0] += 1
                            cost = np.int64(0)
                            for k in range(first, stop):
                                apart = np.int64(layout.position[k, other])
                                apart -= np.int64(layout.position[k, own])
                                if apart != 0:
                                    cost += _node_cost(
                                        layout, errors, inner, base, k, apart, sign, rise, reach
                                    )
                            if cost <= limit and allowed(cells, tally, i, o, none, none):
                                for k in range(first, stop):
                                    apart = np.int64(layout.position[k, other])
                                    apart -= np.int64(layout.position[k, own])
                                    if apart != 0:
                                        _swap(layout, errors, inner, base, k, apart, step * sign)
                                move(cells, tally, i)
                                move(cells, tally, o)
                                tried[1, 1] += 1
                                # Moving back would cost about as much as it gained.
                                back = np.float32(sign * 2.0 * share * np.float64(fields[i, 1]))
                                fields[i, 0] += back
                                fields[o, 0] -= back
                    o = np.int64(cells.partner[v, o])
            if exchanges:
                exchange(
                    layout,
                    cells,
                    i,
                    near,
                    inner,
                    base,
                    errors,
                    fields,
                    tally,
                    state,
                    step,
                    rise,
                    pair_shares,
                    temperature,
                    slack,
                    quantiles,
                    tried,
                )
