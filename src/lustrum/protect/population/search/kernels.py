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

from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import below, next_word
from lustrum.protect.population.search.exchanges import allowed, exchange, move, note
from lustrum.protect.population.search.forces import (
    add_move,
    change,
    place_inner,
    place_outer,
    slice_fields,
)

_FRESH = 16
"""After so many moves within a slice the forces on its cells are added up anew."""


@compiled
def places(layout: Any, codes: Any, p: Any, inner: Any, base: Any) -> None:  # pragma: no cover
    """Where a finest cell lies: its place in one slice, and where each of its slices begins."""
    place_inner(layout, codes, p, inner)
    place_outer(layout, p, base)


@compiled
def flip_cost(
    layout: Any, errors: Any, inner: Any, base: Any, sign: Any, rise: Any
) -> Any:  # pragma: no cover
    """What the cost changes by if one finest cell moves by ``sign`` steps."""
    reach = np.int64(rise.shape[1] // 2)
    total = np.int64(0)
    for r in range(base.size):
        b = base[r]
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            e = min(max(sign * np.int64(errors[b + inner[t]]), -reach), reach)
            total += rise[layout.kind[r, t], np.uint64(reach + e)]
    return total


@compiled
def node_cost(
    run: Any,
    table: Any,
    stride: Any,
    kind: Any,
    errors: Any,
    inner: Any,
    base: Any,
    apart: Any,
    sign: Any,
    rise: Any,
) -> Any:  # pragma: no cover
    """What the tables with one node cost if a cell moves by ``sign`` steps and its partner back."""
    reach = np.int64(rise.shape[1] // 2)
    total = np.int64(0)
    for q in range(np.uint64(run.size)):
        at = base[run[q]] + inner[table[q]]
        x = sign * np.int64(errors[at])
        y = sign * np.int64(errors[at + np.uint64(apart * stride[q])])
        x = min(max(x, -reach), reach)
        y = min(max(y, -reach), reach)
        total += rise[kind[q], np.uint64(reach + x)] + rise[kind[q], np.uint64(reach - y)]
    return total


@compiled
def shuffle(items: Any, state: Any) -> None:  # pragma: no cover
    """Put items in an order drawn from the stream."""
    for j in range(items.size - 1, 0, -1):
        other = below(state, j + 1)
        items[j], items[other] = items[other], items[j]


@compiled
def swap(
    run: Any,
    table: Any,
    stride: Any,
    kind: Any,
    errors: Any,
    forces: Any,
    inner: Any,
    base: Any,
    apart: Any,
    by: Any,
    force: Any,
) -> None:  # pragma: no cover
    """Change the errors of the tables with one node by a swap."""
    for q in range(np.uint64(run.size)):
        at = base[run[q]] + inner[table[q]]
        change(errors, forces, at, by, kind[q], force)
        change(errors, forces, at + np.uint64(apart * stride[q]), -by, kind[q], force)


@compiled
def _about(fields: Any, i: Any, o: Any, sign: Any, share: float) -> float:  # pragma: no cover
    """About what a swap costs."""
    about = sign * (np.float64(fields[i, 0]) - np.float64(fields[o, 0]))
    return float(about + share * (np.float64(fields[i, 1]) + np.float64(fields[o, 1])))


@compiled
def all_fields(
    layout: Any, codes: Any, slice_first: Any, slices: Any, forces: Any, fields: Any
) -> None:  # pragma: no cover
    """Add up the forces on all finest cells of some slices."""
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    sums = np.empty((layout.table_end[-1], 2), dtype=np.int32)
    for g in slices:
        slice_fields(
            layout,
            codes,
            slice_first[g],
            slice_first[g + 1],
            forces,
            p,
            inner,
            base,
            sums,
            fields,
        )


@compiled
def sweep_slices(
    layout: Any,
    cells: Any,
    slices: Any,
    lane: Any,
    step: Any,
    costs: Any,
    temperature: float,
    slack: float,
    lost: float,
    rings: Any,
    most_near: Any,
    visited: Any,
) -> None:  # pragma: no cover
    """Try a flip of every cell of some slices, swaps with next neighbours along every variable, and exchanges.

    ``fields`` keeps, for every cell, half the difference and half the sum of what a step up and a step down
    cost when its slice was last visited. From those of two cells follows about what a swap would cost, with
    the weight of the tables with a node among all; only promising moves are worked out. ``rings`` is how many
    neighbours are tried along a variable, ``most_near`` how many for exchanges. Cells that are not ``visited``
    move as partners only.
    """
    none = np.int64(-1)
    variables = layout.first_node.size - 1
    near = np.empty((variables, most_near), dtype=np.int64)
    fourth_cells = np.empty(((variables * most_near) ** 2, 2), dtype=np.uint64)
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    sums = np.empty((layout.table_end[-1], 2), dtype=np.int32)
    errors, forces, fields, tally, word, tried = (
        lane.errors,
        lane.forces,
        lane.fields,
        lane.tally,
        lane.word,
        lane.tried,
    )
    for g in slices:
        low = cells.slice_first[g]
        count = cells.slice_first[g + 1] - low
        order = np.arange(count)
        shuffle(order, word)
        moved = _FRESH
        for j in range(count):
            i = np.int64(low + order[j])
            if visited[i] == 0:
                continue
            if moved >= _FRESH:
                slice_fields(
                    layout, cells.codes, low, low + count, forces, p, inner, base, sums, fields
                )
                moved = 0
            placed = False
            before = tried[0, 1] + tried[1, 1] + tried[2, 1]
            if cells.group[i] < 0:
                sign = np.int64(-1 if cells.up[i] else 1)
                alone = sign * np.float64(fields[i, 0]) + np.float64(fields[i, 1])
                limit = temperature * costs.quantiles[next_word(word) >> np.uint64(52)]
                if alone <= limit + slack:
                    place_inner(layout, cells.codes[i], p, inner)
                    placed = True
                    tried[0, 0] += 1
                    cost = flip_cost(layout, errors, inner, base, sign, costs.rise)
                    if cost <= limit and allowed(cells, tally, i, none, none, none):
                        add_move(layout, errors, forces, inner, base, step * sign, costs)
                        fields[i, 0] += np.float32(sign * 2.0 * np.float64(fields[i, 1]))
                        move(cells, tally, i)
                        tried[0, 1] += 1
                        note(lane, limit, i, none, none, none)
            for v in range(variables):
                first = layout.first_node[v]
                stop = layout.first_node[v + 1]
                code = cells.codes[i, v]
                o = np.int64(cells.partner[i, v])
                for _ in range(rings):
                    if o < 0 or o == i:
                        break
                    if cells.up[o] != cells.up[i] and (
                        not cells.tied or cells.group[o] == cells.group[i]
                    ):
                        sign = np.int64(-1 if cells.up[i] else 1)
                        other = cells.codes[o, v]
                        share = 0.0
                        for k in range(first, stop):
                            if layout.position[k, other] != layout.position[k, code]:
                                share += costs.shares[k]
                        limit = temperature * costs.quantiles[next_word(word) >> np.uint64(52)]
                        if _about(fields, i, o, sign, share) <= limit + slack:
                            if not placed:
                                place_inner(layout, cells.codes[i], p, inner)
                                placed = True
                            tried[1, 0] += 1
                            cost = np.int64(0)
                            for k in range(first, stop):
                                apart = np.int64(layout.position[k, other])
                                apart -= np.int64(layout.position[k, code])
                                if apart != 0:
                                    q = layout.entry_first[k]
                                    r = layout.entry_first[k + 1]
                                    cost += node_cost(
                                        layout.entry_run[q:r],
                                        layout.entry_table[q:r],
                                        layout.entry_stride[q:r],
                                        layout.entry_kind[q:r],
                                        errors,
                                        inner,
                                        base,
                                        apart,
                                        sign,
                                        costs.rise,
                                    )
                            if cost <= limit and allowed(cells, tally, i, o, none, none):
                                for k in range(first, stop):
                                    apart = np.int64(layout.position[k, other])
                                    apart -= np.int64(layout.position[k, code])
                                    if apart != 0:
                                        q = layout.entry_first[k]
                                        r = layout.entry_first[k + 1]
                                        swap(
                                            layout.entry_run[q:r],
                                            layout.entry_table[q:r],
                                            layout.entry_stride[q:r],
                                            layout.entry_kind[q:r],
                                            errors,
                                            forces,
                                            inner,
                                            base,
                                            apart,
                                            step * sign,
                                            costs.force,
                                        )
                                move(cells, tally, i)
                                move(cells, tally, o)
                                tried[1, 1] += 1
                                note(lane, limit, i, o, none, none)
                                # Moving back would cost about as much as it gained.
                                back = np.float32(sign * 2.0 * share * np.float64(fields[i, 1]))
                                fields[i, 0] += back
                                fields[o, 0] -= back
                    o = np.int64(cells.partner[o, v])
            exchange(
                layout,
                cells,
                i,
                near,
                fourth_cells,
                p,
                inner,
                placed,
                base,
                lane,
                step,
                costs,
                temperature,
                slack,
                lost,
            )
            moved += tried[0, 1] + tried[1, 1] + tried[2, 1] - before
