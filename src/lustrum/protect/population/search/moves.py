"""Swaps and exchanges of cells that are known: what they cost exactly, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.compiled import compiled
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
def _shift(layout: Any, codes: Any, a: Any, i: Any, j: Any, v: Any) -> Any:  # pragma: no cover
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
        shift = _shift(layout, cells.codes, a, i, j, v)
        if shift != 0:
            q, r = layout.entry_first[a], layout.entry_first[a + 1]
            cost += node_cost(
                layout.entry_run[q:r],
                layout.entry_table[q:r],
                layout.entry_stride[q:r],
                layout.entry_kind[q:r],
                errors,
                inner,
                base,
                shift,
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
        shift = _shift(layout, cells.codes, a, i, j, v)
        if shift != 0:
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
                shift,
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
        across = _shift(layout, cells.codes, a, i, j, u)
        if across == 0 or cost >= bound:
            continue
        for b in range(layout.first_node[v], layout.first_node[v + 1]):
            down = _shift(layout, cells.codes, b, i, k, v)
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
        across = _shift(layout, cells.codes, a, i, j, u)
        if across == 0:
            continue
        for b in range(layout.first_node[v], layout.first_node[v + 1]):
            down = _shift(layout, cells.codes, b, i, k, v)
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
