"""A pattern against exact disclosure: publish the dearest cells first, as long as no primary cell follows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression.elimination.layers import PRIME, layers_of
from lustrum.protect.suppression.search.attacks.attack import FlowAttacks, ProgramAttacks
from lustrum.protect.suppression.search.attacks.graph import adjacency

_STEPS = 6 * 10**9  # entries that are looked at
_ENTRIES = 3 * 10**7  # entries that are kept


@dataclass(frozen=True, eq=False)
class Undisclosed:
    """A pattern that discloses no primary cell exactly, and the layer of each cell."""

    suppressed: Mask
    layer: Ints
    steps: int


def undisclosed_pattern(
    attacks: FlowAttacks | ProgramAttacks, most_layers: int = 2
) -> Undisclosed | None:
    """What is left if cells are published in the order of falling cost; None where that takes too long.

    A cell is published unless a primary cell with a level would then follow from the published cells by the
    relations alone, whatever the bounds are. Of cells that cost the same the first comes first. A primary cell
    that follows even if everything else is suppressed is passed over.
    """
    problem = attacks.tasks.problem
    moves = ~problem.frozen & ((problem.room_up > 0) | (problem.room_down > 0))
    target = problem.primary & (problem.upper + problem.lower + problem.sliding > 0) & moves
    choice = np.flatnonzero(problem.choice & moves)
    falling = choice[np.argsort(-problem.cost[choice], kind="stable")]
    always = np.flatnonzero(problem.fixed & moves)
    # Targets first: what depends on them needs nothing else.
    always = always[np.argsort(~target[always], kind="stable")]
    rising = np.concatenate([always, falling[::-1]])
    layer = layers_of(attacks, rising, most_layers)
    if layer is None:
        return None
    every = np.full(problem.values.size, most_layers, dtype=np.int64)
    every[rising] = layer
    order = falling[every[falling] < 2]
    cells = np.sort(np.concatenate([always, order]))
    cell_index = np.full(problem.values.size, -1, dtype=np.int64)
    cell_index[cells] = np.arange(cells.size)
    if isinstance(attacks, FlowAttacks):
        from lustrum.protect.suppression.elimination.graph_kernels import needed_arcs

        tail, head = attacks.tail[cells], attacks.head[cells]
        graph = adjacency(tail, head, np.arange(cells.size), attacks.nodes)
        shown, steps = needed_arcs(cell_index[order], target[cells], tail, head, *graph)
    else:
        from lustrum.protect.suppression.elimination.dictionary_kernels import needed_cells

        rows = attacks.rows[:, cells].tocsr()
        rows.sort_indices()
        shown, steps, done = needed_cells(
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int64),
            rows.data % PRIME,
            cells.size,
            cell_index[rising[layer == 0]],
            target[cells],
            cell_index[order],
            _STEPS,
            _ENTRIES,
            PRIME,
        )
        if not done:
            return None
    suppressed = problem.fixed.copy()
    suppressed[order[~shown[cell_index[order]]]] = True
    return Undisclosed(suppressed, every, int(steps))
