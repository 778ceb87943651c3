"""The graph of a table that is a network, as attacks and eliminations walk it."""

from __future__ import annotations

import numpy as np

from lustrum.arrays import Ints
from lustrum.structure.ragged import pointers

__all__ = ["adjacency"]


def adjacency(tail: Ints, head: Ints, arcs: Ints, nodes: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The ends of some arcs, node by node: where they lead, their mates, and their arcs."""
    near = np.concatenate([tail[arcs], head[arcs]])
    far = np.concatenate([head[arcs], tail[arcs]])
    order = np.argsort(near, kind="stable")
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    mate = np.concatenate([place[arcs.size :], place[: arcs.size]])
    own = np.concatenate([arcs, ~arcs])
    indptr = pointers(np.bincount(near, minlength=nodes))
    return indptr, far[order], mate[order], own[order]
