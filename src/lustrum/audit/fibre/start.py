"""The tables from which chains start, all far from the middle of the fibre."""

from __future__ import annotations

import numpy as np

from lustrum.audit.fibre.margins import FibreMargins, junction_tree
from lustrum.audit.fibre.system import FibreBlock
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.audit.knowledge.reduce import CONTRADICTION
from lustrum.model import InputError, InternalError
from lustrum.model.arrays import Ints
from lustrum.numeric.solve.highs import FINE, Program, single_optimum, solved

_COST = 1000


def joined_table(margins: FibreMargins, rng: np.random.Generator) -> Ints:
    """A table with the given decomposable margins, which are joined one after the other along their tree.

    Each edge of the tree is a two-way table for every configuration of the separator. It is filled from a
    corner with rows and columns in random order, so that it is extreme.

    >>> joined_table(FibreMargins.two_way([3, 2], [1, 4]), np.random.default_rng(1)).sum(axis=1).tolist()
    [3, 2]
    """
    tree = junction_tree(margins.cliques, len(margins.shape))
    if tree is None:
        raise InternalError("these margins have no junction tree")
    axes = list(margins.cliques[0])
    table = margins.sums[margins.cliques[0]]
    for edge in tree:
        shared = list(edge.separator)
        mine = [a for a in axes if a not in shared]
        theirs = [a for a in edge.child if a not in shared]
        sizes = [[margins.shape[a] for a in part] for part in (shared, mine, theirs)]
        flat = [int(np.prod(s, dtype=np.int64)) for s in sizes]
        left = table.transpose([axes.index(a) for a in shared + mine]).reshape(flat[0], flat[1])
        child = margins.sums[edge.child]
        right = child.transpose([edge.child.index(a) for a in shared + theirs])
        right = right.reshape(flat[0], flat[2])
        joined = np.stack([_corner(r, c, rng) for r, c in zip(left, right, strict=True)])
        axes = shared + mine + theirs
        table = joined.reshape([size for part in sizes for size in part])
    return np.ascontiguousarray(table.transpose(np.argsort(axes, kind="stable")))


def _corner(rows: Ints, columns: Ints, rng: np.random.Generator) -> Ints:
    """The north-west corner rule, with rows and columns shuffled."""
    out = np.zeros((rows.size, columns.size), dtype=np.int64)
    r, c = rows.copy(), columns.copy()
    down, across = iter(rng.permutation(r.size).tolist()), iter(rng.permutation(c.size).tolist())
    i, j = next(down, None), next(across, None)
    while i is not None and j is not None:
        step = min(r[i], c[j])
        out[i, j] += step
        r[i] -= step
        c[j] -= step
        if r[i] == 0:
            i = next(down, None)
        else:
            j = next(across, None)
    return out


def any_table(block: FibreBlock, rng: np.random.Generator, seconds: float = 60.0) -> Ints:
    """A table of a block that is extreme in a random direction, by integer programming."""
    # Whole costs, and no table that a clock cut short: the same start however busy the machine.
    cost = rng.integers(-_COST, _COST, size=len(block), endpoint=True)
    program = block.matrix, (block.totals, block.totals), (block.low, block.high)
    # The corner with the least cost is the same everywhere, and nearly always whole.
    irregular = single_optimum(cost.astype(np.float64))
    fine = Program(*program, irregular, time_limit=seconds, dual_feasibility_tolerance=FINE)
    corner = solved(fine)
    if corner is not None and block.holds(np.rint(corner).astype(np.int64)):
        return np.rint(corner).astype(np.int64)
    # Any table will do; no proof of optimality is needed.
    every = np.arange(len(block))
    model = Program(*program, cost, every, time_limit=seconds, mip_rel_gap=0.5)
    point = solved(model)
    if model.ended == "infeasible":
        raise ContradictionError(CONTRADICTION + "no table of whole numbers fits.")
    if point is not None:
        table: Ints = np.rint(point).astype(np.int64)
        if block.holds(table):
            return table
    raise InputError("No first table was found in time; give one that fits as 'start'.")
