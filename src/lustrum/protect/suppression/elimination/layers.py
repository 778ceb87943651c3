"""The cells that can matter: the cheapest cells that all others depend on, and the cheapest such of the rest.

Cells are published the dearest first. Say that a cell depends on cheaper ones in two ways that have no cell in
common. Then no single primary cell is in every deviation that moves it, and it can be published without further
thought. So only two layers of cells are left to decide about: a cheapest basis of the columns of all relations,
and a cheapest basis of what is left without it. In a network these are two spanning forests. Primary cells
belong to the first layer as far as they are independent.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from lustrum.audit.knowledge.reduce import echelon
from lustrum.model.arrays import Ints
from lustrum.protect.suppression.search.attacks.attack import FlowAttacks, ProgramAttacks

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

PRIME = 2**31 - 1
_STEPS = 3 * 10**9  # entries that are looked at for one layer


def layers_of(attacks: FlowAttacks | ProgramAttacks, rising: Ints, most: int) -> Ints | None:
    """The layer of each cell of ``rising``, in which cheap cells come first; ``most`` for cells in none.

    None where the relations fill in too much.
    """
    if isinstance(attacks, FlowAttacks):
        from lustrum.protect.suppression.elimination.graph_kernels import forests

        layers: Ints = forests(attacks.tail, attacks.head, rising, attacks.nodes, most)
        return layers
    columns = attacks.rows[:, rising].T.tocsr()
    uses = np.bincount(columns.indices, minlength=columns.shape[1]).astype(np.int64)
    layer = np.full(rising.size, most, dtype=np.int64)
    for number in range(most):
        rest = np.flatnonzero(layer == most)
        part = columns[rest]
        independent, *_, done = echelon(
            part.indptr.astype(np.int64),
            part.indices.astype(np.int64),
            part.data % PRIME,
            np.zeros(rest.size, dtype=np.int64),
            np.arange(rest.size),
            uses,
            _STEPS,
            PRIME,
        )
        if not done:
            return None
        layer[rest[independent]] = number
    return layer
