"""The compiled loops of the search: what a move would change, and the sweep that tries moves.

A finest cell stands at the lower or the upper of two adjacent numbers, one ``step`` apart. A *flip* moves
one cell, a *swap* moves two cells that differ in one variable in opposite directions, which leaves every
table without that variable as it is. The cost of errors ``e`` is the weighted sum of ``quadratic * e**2 +
e**4``. Errors, weights and steps are whole numbers far below ``2**53`` in all sums, so that sums of floats
are exact and the same in every order, on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.compiled import compiled
from lustrum.stream import below, next_word

__all__ = ["add_errors", "shuffle", "sweep_blocks"]


@compiled
def _places(layout: Any, codes: Any, p: Any, inner: Any, base: Any) -> None:  # pragma: no cover
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


def _flip_cost(
    layout: Any, errors: Any, inner: Any, base: Any, step: float, quadratic: float
) -> float:  # pragma: no cover
    """What the cost changes by if one finest cell moves by ``step``."""
    s2 = step * step
    c0 = quadratic * s2 + s2 * s2
    c1 = 2.0 * quadratic * step + 4.0 * s2 * step
    c2 = 6.0 * s2
    c3 = 4.0 * step
    total = 0.0
    for r in range(base.size):
        b = base[r]
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            x = np.float64(errors[b + inner[t]])
            total += layout.weight[r, t] * (c0 + x * (c1 + x * (c2 + x * c3)))
    return total


def _node_cost(
    layout: Any,
    errors: Any,
    inner: Any,
    base: Any,
    node: Any,
    apart: Any,
    step: float,
    quadratic: float,
) -> float:  # pragma: no cover
    """What the tables with one node change by if a cell moves by ``step`` and its partner by ``-step``."""
    s2 = step * step
    c0 = 2.0 * (quadratic * s2 + s2 * s2)
    c1 = 2.0 * quadratic * step + 4.0 * s2 * step
    c2 = 6.0 * s2
    c3 = 4.0 * step
    total = 0.0
    for q in range(np.uint64(layout.entry_first[node]), np.uint64(layout.entry_first[node + 1])):
        at = base[layout.entry_run[q]] + inner[layout.entry_table[q]]
        x = np.float64(errors[at])
        y = np.float64(errors[at + np.uint64(apart * layout.entry_stride[q])])
        total += layout.entry_weight[q] * (
            c0 + x * (c1 + x * (c2 + x * c3)) - y * (c1 - y * (c2 - y * c3))
        )
    return total


# Sums may be taken in any order, since all of them are exact.
_flip_cost = compiled(_flip_cost, fastmath={"reassoc"})
_node_cost = compiled(_node_cost, fastmath={"reassoc"})


@compiled
def add_errors(layout: Any, codes: Any, change: Any, errors: Any) -> None:  # pragma: no cover
    """Add up what finest cells changed by, over all controlled tables."""
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    for i in range(change.size):
        if change[i] != 0:
            _places(layout, codes[i], p, inner, base)
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
def sweep_blocks(
    layout: Any,
    cells: Any,
    blocks: Any,
    errors: Any,
    tally: Any,
    state: Any,
    step: float,
    quadratic: float,
    temperature: float,
    quantiles: Any,
    tried: Any,
) -> None:  # pragma: no cover
    """Try a flip of every cell of some blocks, and a swap with its next neighbour along every variable."""
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
            i = low + order[j]
            _places(layout, cells.codes[i], p, inner, base)
            if cells.group[i] < 0:
                d = -step if cells.up[i] else step
                limit = temperature * quantiles[next_word(state) >> np.uint64(52)]
                cost = _flip_cost(layout, errors, inner, base, d, quadratic)
                tried[0, 0] += 1
                if cost <= limit and _allowed(cells, tally, np.int64(i), np.int64(-1)):
                    _add(layout, errors, inner, base, np.float32(d))
                    _move(cells, tally, i)
                    tried[0, 1] += 1
            for v in range(variables):
                o = np.int64(cells.partner[v, i])
                if o < 0 or cells.up[o] == cells.up[i] or cells.group[o] != cells.group[i]:
                    continue
                d = -step if cells.up[i] else step
                limit = temperature * quantiles[next_word(state) >> np.uint64(52)]
                cost = 0.0
                for k in range(layout.first_node[v], layout.first_node[v + 1]):
                    apart = np.int64(layout.position[k, cells.codes[o, v]]) - np.int64(p[k])
                    if apart != 0:
                        cost += _node_cost(layout, errors, inner, base, k, apart, d, quadratic)
                tried[1, 0] += 1
                if cost <= limit and _allowed(cells, tally, np.int64(i), o):
                    change = np.float32(d)
                    for k in range(layout.first_node[v], layout.first_node[v + 1]):
                        apart = np.int64(layout.position[k, cells.codes[o, v]]) - np.int64(p[k])
                        if apart != 0:
                            for q in range(layout.entry_first[k], layout.entry_first[k + 1]):
                                at = base[layout.entry_run[q]] + inner[layout.entry_table[q]]
                                errors[at] += change
                                errors[at + np.uint64(apart * layout.entry_stride[q])] -= change
                    _move(cells, tally, i)
                    _move(cells, tally, o)
                    tried[1, 1] += 1
