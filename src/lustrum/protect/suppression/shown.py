"""Ranges that a few deviations show: each stands for many cells, where a program for every cell takes too long.

A deviation that keeps all relations, moves suppressed cells only and stays within the bounds is a table that an
attacker cannot rule out. So what it reaches is possible. The deviations come from a search that is not trusted:
they are checked here against the relations and bounds of the problem.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lustrum.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem
from lustrum.protect.suppression.search.attacks.joint import JointWitnesses
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.solve.products import sparse_product

__all__ = ["as_known", "checked_ends", "deviations", "shown_ends"]

_MUCH = 1_000_000  # targets times cells tied to them from which on deviations are shared
_EVEN = 1e-9  # by how much of its largest move a deviation may miss a relation


def shown_ends(
    problem: SuppressionProblem, suppressed: Mask, targets: Ints, view: ContributorView | None
) -> tuple[Floats, Floats] | None:
    """How far up and down some deviations move each target; None where programs for single cells are quicker.

    Deviations show what real numbers can be, so there are none for counts.
    """
    if problem.whole or _ties(problem, suppressed, targets) < _MUCH:
        return None
    known = as_known(problem, view)
    moved = deviations(known, suppressed, targets)
    return None if moved is None else checked_ends(known, suppressed, targets, moved)


def as_known(problem: SuppressionProblem, view: ContributorView | None) -> SuppressionProblem:
    """The problem with what one attacker knows as its bounds."""
    if view is None:
        return replace(problem, views=(), unions=None)
    low, high = problem.low.copy(), problem.high.copy()
    low[view.cells] = np.maximum(low[view.cells], view.low)
    high[view.cells] = np.minimum(high[view.cells], view.high)
    return replace(problem, low=low, high=high, views=(), unions=None)


def deviations(problem: SuppressionProblem, suppressed: Mask, targets: Ints) -> Floats | None:
    """Deviations, one a row, that move the targets as far as their levels; None where some cannot be moved."""
    mine = np.zeros(problem.values.size, dtype=np.bool_)
    mine[targets] = suppressed[targets]
    asked = replace(
        problem,
        primary=mine,
        upper=np.where(mine, problem.upper, 0),
        lower=np.where(mine, problem.lower, 0),
        sliding=np.where(mine, problem.sliding, 0),
        never=problem.never & ~mine,
        views=(),
        unions=None,
    )
    cells = np.flatnonzero(suppressed)
    joint = JointWitnesses(Tasks.of(asked), cells)
    made = joint.completed(
        joint.nothing(), np.zeros(cells.size, dtype=np.bool_), np.random.default_rng(0)
    )
    if not made:
        return None
    moved = np.zeros((made[0].shape[0], problem.values.size))
    moved[:, cells] = made[0]
    return moved


def checked_ends(
    problem: SuppressionProblem, suppressed: Mask, targets: Ints, moved: Floats
) -> tuple[Floats, Floats]:
    """How far deviations, one a row, move targets up and down within the bounds; wrong ones count as none."""
    up, down = np.zeros(targets.size), np.zeros(targets.size)
    rise, fall = problem.room_up.astype(np.float64), problem.room_down.astype(np.float64)
    for row in moved:
        size = float(np.abs(row).max(initial=0.0))
        if size == 0.0 or bool((row[~suppressed] != 0.0).any()):
            continue
        if float(np.abs(sparse_product(problem.relations, row)).max(initial=0.0)) > _EVEN * size:
            continue
        for way in (row, -row):
            ahead, back = way > 0, way < 0
            times = min(
                float((rise[ahead] / way[ahead]).min(initial=np.inf)),
                float((fall[back] / -way[back]).min(initial=np.inf)),
            )
            reached = times * way[targets]
            up, down = np.maximum(up, reached), np.maximum(down, -reached)
    return up, down


def _ties(problem: SuppressionProblem, suppressed: Mask, targets: Ints) -> int:
    """The sum over targets of the suppressed cells that relations tie to them."""
    cells = np.flatnonzero(suppressed)
    part = sparse.csr_array(problem.relations[:, cells])
    rows = part.shape[0]
    links = part.tocoo()
    graph = sparse.coo_array(
        (np.ones(links.nnz, dtype=np.int8), (links.row, rows + links.col)),
        shape=(rows + cells.size, rows + cells.size),
    )
    _, label = connected_components(graph.tocsr(), directed=False)
    own = label[rows:]
    sizes = np.bincount(own, minlength=int(label.max(initial=0)) + 1)
    places = np.searchsorted(cells, targets[suppressed[targets]])
    return int(sizes[own[places]].sum())
