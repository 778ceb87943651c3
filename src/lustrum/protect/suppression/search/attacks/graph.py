"""The graph of a table that is a network, as attacks and eliminations walk it."""

from __future__ import annotations

import numpy as np

from lustrum.audit.bounding.network import slots
from lustrum.model.arrays import Ints


def adjacency(tail: Ints, head: Ints, arcs: Ints, nodes: int) -> tuple[Ints, Ints, Ints, Ints]:
    """The ends of some arcs, node by node: where they lead, their mates, and their arcs."""
    indptr, to, mate, end_index, _ = slots(tail[arcs], head[arcs], nodes)
    signed_arcs = np.concatenate([arcs, ~arcs[::-1]])  # ~k counts from the end
    return indptr, to, mate, signed_arcs[end_index]
