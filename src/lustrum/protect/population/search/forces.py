"""What errors ask of the finest cells: a force on every controlled cell, and their sums over all tables.

Beside the error of a controlled cell stands its *force*: by how much a step up costs more there than a step
down, and what both cost together. The finest cells that share the categories of the outer variables lie
in one *slice*. Their runs begin at the same places, so that the forces of all runs are added up once for the
slice, and each of its cells finds its own sum with one look per slice table. The sums say about what a move
costs; what seems worth it is then worked out exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lustrum.model.arrays import Array, Whole
from lustrum.numeric.compiled import compiled
from lustrum.protect.population.search.layout import SearchLayout, TablePlan
from lustrum.runtime.stop import check_stop, report_progress, still_working

_DENSE = 4
"""Adding up whole slices takes about a quarter of the time per cell that looking up single ones takes."""
_SLICES = 1 << 17
"""How many slices are added up before somebody may stop the work."""


class Costs(NamedTuple):
    """What steps cost, for every kind of table and every error from ``-reach`` to ``reach``."""

    rise: Array  # (kinds, errors): a step up
    force: (
        Array  # (kinds, errors, 2): a step up less a step down, and both together; cut off far out
    )
    shares: Array  # node -> the weight of the tables that have it among all tables
    pair_shares: Array  # node * nodes + node -> the same for tables that have both
    quantiles: Array  # of the exponential distribution


@compiled
def change(
    errors: Array, forces: Array, at: Whole, by: Whole, kind: Whole, force: Array
) -> None:  # pragma: no cover
    """Change the error of a controlled cell, and with it the force."""
    error = errors[at] + by
    errors[at] = error
    reach = np.int64(force.shape[1] // 2)
    index = np.uint64(min(max(np.int64(error), -reach), reach) + reach)
    forces[at, 0] = force[kind, index, 0]
    forces[at, 1] = force[kind, index, 1]


@compiled
def set_forces(
    errors: Array, kinds: Array, force: Array, forces: Array, low: Whole, high: Whole
) -> None:  # pragma: no cover
    """Work out the forces of the controlled cells ``low`` to ``high`` from their errors."""
    reach = np.int64(force.shape[1] // 2)
    for at in range(low, min(high, errors.size)):
        index = np.uint64(min(max(np.int64(errors[at]), -reach), reach) + reach)
        forces[at, 0] = force[kinds[at], index, 0]
        forces[at, 1] = force[kinds[at], index, 1]


class Places(NamedTuple):
    """Where a finest cell lies: room that is filled in for one cell after the other."""

    category: Array  # at every node; the last one is a dummy
    inner: Array  # the place in one slice, by slice table
    base: Array  # where its slices begin, by run
    changed: Array  # controlled cells that a move changes


@compiled
def room(layout: SearchLayout) -> Places:  # pragma: no cover
    """Room for the places of a finest cell."""
    return Places(
        np.zeros(layout.variable_of.size, dtype=np.uint64),
        np.empty(layout.table_offset.size, dtype=np.uint64),
        np.empty(layout.run_offset.size, dtype=np.uint64),
        np.empty(4 * (layout.run_stop - layout.run_first).sum(), dtype=np.uint64),
    )


@compiled
def place_inner(layout: SearchLayout, codes: Array, lies: Places) -> None:  # pragma: no cover
    """Find the categories of a finest cell, and its place in one slice."""
    category, inner = lies.category, lies.inner
    for k in range(layout.variable_of.size - 1):
        category[k] = layout.position[k, codes[layout.variable_of[k]]]
    for t in range(inner.size):
        parent = inner[layout.table_parent[t]] if t > 0 else np.uint64(0)
        inner[t] = parent * layout.table_size[t] + category[layout.table_node[t]]
    for t in range(inner.size):
        inner[t] += layout.table_offset[t]


@compiled
def place(layout: SearchLayout, codes: Array, lies: Places) -> None:  # pragma: no cover
    """Find where a finest cell lies: in one slice, and where each of its slices begins."""
    place_inner(layout, codes, lies)
    for r in range(lies.base.size):
        at = layout.run_offset[r]
        for j in range(layout.run_node.shape[0]):
            step = np.int64(layout.run_stride[j, r])
            at += np.int64(lies.category[layout.run_node[j, r]]) * step
        lies.base[r] = np.uint64(at)


@compiled
def _is_dense(layout: SearchLayout, cells: Whole) -> bool:  # pragma: no cover
    """Whether whole slices are added up sooner than the places of so many cells in them."""
    lookups = -layout.table_offset.size
    whole = 0
    for r in range(layout.run_first.size):
        lookups += layout.run_stop[r] - layout.run_first[r]
        whole += layout.table_end[layout.run_stop[r] - 1] - layout.table_offset[layout.run_first[r]]
    return bool(_DENSE * lookups * cells > whole)


@compiled
def slice_fields(
    layout: SearchLayout,
    codes: Array,
    low: Whole,
    high: Whole,
    forces: Array,
    lies: Places,
    sums: Array,
    fields: Array,
) -> None:  # pragma: no cover
    """Note half of what the forces on the cells ``low`` to ``high`` of one slice add up to.

    ``sums`` is room for the forces of one slice. The numbers are the same in both ways of adding up.
    """
    place(layout, codes[low], lies)
    inner, base = lies.inner, lies.base
    slices = layout.table_offset.size
    dense = _is_dense(layout, high - low)
    flat_sums = sums.reshape(-1)
    flat_forces = forces.reshape(-1)
    if dense:
        sums[:] = 0
        for r in range(base.size):
            first = np.int64(layout.table_offset[layout.run_first[r]])
            stop = layout.table_end[layout.run_stop[r] - 1]
            begin = np.int64(base[r]) + first
            into = flat_sums[2 * first : 2 * stop]
            some = flat_forces[2 * begin : 2 * (begin + stop - first)]
            for x in range(into.size):
                into[x] += some[x]
    for i in range(low, high):
        place_inner(layout, codes[i], lies)
        pull = np.int64(0)
        both = np.int64(0)
        if dense:
            for t in range(slices):
                pull += sums[inner[t], 0]
                both += sums[inner[t], 1]
        else:
            for r in range(base.size):
                b = base[r]
                for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                    pull += forces[b + inner[t], 0]
                    both += forces[b + inner[t], 1]
        fields[i, 0] = np.float32(0.5 * pull)
        fields[i, 1] = np.float32(0.5 * both)


def add_errors(plan: TablePlan, codes: Array, by: Array, errors: Array) -> None:
    """Add up what finest cells changed by, over all controlled tables."""
    if not by.size:
        return
    outer = codes[:, -plan.outer :]
    still_working()
    order = np.lexsort(outer.T)
    still_working()
    ordered = outer[order]
    begins = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)])
    first = np.r_[begins, by.size].astype(np.int64)
    by = by.astype(errors.dtype)
    for begin in range(0, begins.size, _SLICES):
        check_stop()
        report_progress("adding up tables", begin / begins.size)
        some = first[begin : begin + _SLICES + 1]
        _add_slices(plan.layout, codes, order, some, by, errors)
    report_progress("adding up tables", 1.0)


@compiled
def _add_slices(
    layout: SearchLayout, codes: Array, order: Array, first: Array, by: Array, errors: Array
) -> None:  # pragma: no cover
    """Add up the cells of every slice by itself, and then the slice to all runs."""
    lies = room(layout)
    inner, base = lies.inner, lies.base
    sums = np.zeros(layout.table_end[-1], dtype=errors.dtype)
    for g in range(first.size - 1):
        place(layout, codes[order[first[g]]], lies)
        dense = _is_dense(layout, first[g + 1] - first[g])
        sums[:] = 0
        for j in range(first[g], first[g + 1]):
            i = order[j]
            if by[i] == 0:
                continue
            place_inner(layout, codes[i], lies)
            if dense:
                for t in range(inner.size):
                    sums[inner[t]] += by[i]
            else:
                for r in range(base.size):
                    b = base[r]
                    for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                        errors[b + inner[t]] += by[i]
        if dense:
            for r in range(base.size):
                low = np.int64(layout.table_offset[layout.run_first[r]])
                stop = layout.table_end[layout.run_stop[r] - 1]
                begin = np.int64(base[r]) + low
                into = errors[begin : begin + stop - low]
                some = sums[low:stop]
                for x in range(into.size):
                    into[x] += some[x]
