"""Swaps and exchanges of cells that are known: what they cost exactly, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.numeric.compiled import compiled
from lustrum.protect.population.search.exchanges import change_pair, pair_cost
from lustrum.protect.population.search.kernels import node_cost, swap


@compiled
def apart(cells: Any, i: Any, j: Any) -> Any:  # pragma: no cover
    """The only variable along which two cells differ."""
    v = 0
    while cells.codes[i, v] == cells.codes[j, v]:
        v += 1
    return v


@compiled
def shift(layout: Any, codes: Any, a: Any, i: Any, j: Any, v: Any) -> Any:  # pragma: no cover
    """By how many categories of a node ``j`` lies behind ``i`` along a variable."""
    behind = np.int64(layout.position[a, codes[j, v]])
    return behind - np.int64(layout.position[a, codes[i, v]])


@compiled
def swap_cost(
    layout: Any,
    cells: Any,
    errors: Any,
    inner: Any,
    base: Any,
    i: Any,
    j: Any,
    v: Any,
    sign: Any,
    rise: Any,
) -> Any:  # pragma: no cover
    """What it costs to move a cell by ``sign`` steps and its partner along ``v`` back."""
    cost = np.int64(0)
    for a in range(layout.first_node[v], layout.first_node[v + 1]):
        behind = shift(layout, cells.codes, a, i, j, v)
        if behind != 0:
            q, r = layout.entry_first[a], layout.entry_first[a + 1]
            cost += node_cost(
                layout.entry_run[q:r],
                layout.entry_table[q:r],
                layout.entry_stride[q:r],
                layout.entry_kind[q:r],
                errors,
                inner,
                base,
                behind,
                sign,
                rise,
            )
    return cost


@compiled
def swap_cells(
    layout: Any,
    cells: Any,
    errors: Any,
    forces: Any,
    inner: Any,
    base: Any,
    i: Any,
    j: Any,
    v: Any,
    by: Any,
    force: Any,
) -> None:  # pragma: no cover
    """Change the errors of all tables by a swap."""
    for a in range(layout.first_node[v], layout.first_node[v + 1]):
        behind = shift(layout, cells.codes, a, i, j, v)
        if behind != 0:
            q, r = layout.entry_first[a], layout.entry_first[a + 1]
            swap(
                layout.entry_run[q:r],
                layout.entry_table[q:r],
                layout.entry_stride[q:r],
                layout.entry_kind[q:r],
                errors,
                forces,
                inner,
                base,
                behind,
                by,
                force,
            )


@compiled
def exchange_cost(
    layout: Any,
    cells: Any,
    errors: Any,
    inner: Any,
    base: Any,
    i: Any,
    j: Any,
    k: Any,
    u: Any,
    v: Any,
    sign: Any,
    rise: Any,
    bound: float,
) -> Any:  # pragma: no cover
    """What an exchange costs; beyond ``bound`` the rest of the nodes is left out."""
    nodes = layout.variable_of.size - 1
    cost = np.int64(0)
    for a in range(layout.first_node[u], layout.first_node[u + 1]):
        across = shift(layout, cells.codes, a, i, j, u)
        if across == 0 or cost >= bound:
            continue
        for b in range(layout.first_node[v], layout.first_node[v + 1]):
            down = shift(layout, cells.codes, b, i, k, v)
            if down == 0:
                continue
            q, r = layout.pair_first[a * nodes + b], layout.pair_first[a * nodes + b + 1]
            cost += pair_cost(
                layout.pair_run[q:r],
                layout.pair_table[q:r],
                layout.pair_stride[q:r],
                layout.pair_kind[q:r],
                errors,
                inner,
                base,
                across,
                down,
                sign,
                rise,
                np.inf,
            )
    return cost


@compiled
def exchange_cells(
    layout: Any,
    cells: Any,
    errors: Any,
    forces: Any,
    inner: Any,
    base: Any,
    i: Any,
    j: Any,
    k: Any,
    u: Any,
    v: Any,
    by: Any,
    force: Any,
) -> None:  # pragma: no cover
    """Change the errors of all tables by an exchange."""
    nodes = layout.variable_of.size - 1
    for a in range(layout.first_node[u], layout.first_node[u + 1]):
        across = shift(layout, cells.codes, a, i, j, u)
        if across == 0:
            continue
        for b in range(layout.first_node[v], layout.first_node[v + 1]):
            down = shift(layout, cells.codes, b, i, k, v)
            if down == 0:
                continue
            q, r = layout.pair_first[a * nodes + b], layout.pair_first[a * nodes + b + 1]
            change_pair(
                layout.pair_run[q:r],
                layout.pair_table[q:r],
                layout.pair_stride[q:r],
                layout.pair_kind[q:r],
                errors,
                forces,
                inner,
                base,
                across,
                down,
                by,
                force,
            )


@compiled
def moved_places(
    layout: Any, cells: Any, inner: Any, base: Any, i: Any, j: Any, k: Any, into: Any
) -> Any:  # pragma: no cover
    """Where the controlled cells lie that a move changes, and how many there are.

    ``j`` and ``k`` are the other cells beside the first one, or -1; ``into`` has room for four cells of every
    table.
    """
    count = 0
    if j < 0:
        for r in range(base.size):
            for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                into[count] = base[r] + inner[t]
                count += 1
        return count
    u = apart(cells, i, j)
    if k < 0:
        for a in range(layout.first_node[u], layout.first_node[u + 1]):
            across = shift(layout, cells.codes, a, i, j, u)
            if across == 0:
                continue
            for q in range(layout.entry_first[a], layout.entry_first[a + 1]):
                at = base[layout.entry_run[q]] + inner[layout.entry_table[q]]
                into[count] = at
                into[count + 1] = at + np.uint64(across * layout.entry_stride[q])
                count += 2
        return count
    v, nodes = apart(cells, i, k), layout.variable_of.size - 1
    for a in range(layout.first_node[u], layout.first_node[u + 1]):
        across = shift(layout, cells.codes, a, i, j, u)
        if across == 0:
            continue
        for b in range(layout.first_node[v], layout.first_node[v + 1]):
            down = shift(layout, cells.codes, b, i, k, v)
            if down == 0:
                continue
            # Pairs of nodes are listed with the earlier variable first.
            for q in range(layout.pair_first[a * nodes + b], layout.pair_first[a * nodes + b + 1]):
                at = base[layout.pair_run[q]] + inner[layout.pair_table[q]]
                one = np.uint64(across * layout.pair_stride[q, 0])
                two = np.uint64(down * layout.pair_stride[q, 1])
                into[count] = at
                into[count + 1] = at + one
                into[count + 2] = at + two
                into[count + 3] = at + one + two
                count += 4
    return count
