"""A smaller network to repair ranges in: suppressed cells, and the cheapest ones that can carry a level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lustrum.model.arrays import Ints, Mask
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import FlowAttacks
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.parts import cut_out

_STEP = 4  # the ratio between sizes of levels that are looked at


def carriers(attacks: FlowAttacks, layers: int) -> Mask:
    """The cells of some forests, the cheapest for each size of levels among the cells that can move that far.

    The cheapest cells alone would not do: where a cell costs as much as its value, they are too small to carry
    a large level.
    """
    from lustrum.protect.suppression.elimination.graph_kernels import forests

    problem = attacks.tasks.problem
    room = np.minimum(problem.room_up, problem.room_down)
    live = np.flatnonzero(~problem.frozen)
    cost = np.where(problem.fixed, -1.0, problem.cost)[live]
    rising = live[np.argsort(cost, kind="stable")]
    out = problem.fixed.copy()
    size, largest = 1, int(attacks.tasks.level.max(initial=1))
    while True:
        some = rising[room[rising] >= size]
        layer = forests(attacks.tail, attacks.head, some, attacks.nodes, layers)
        out[some[layer < layers]] = True
        if size >= largest:
            return out
        size = min(_STEP * size, largest)


def narrowed(attacks: FlowAttacks, cells: Ints) -> FlowAttacks:
    """The same attacks with all other cells published, as a problem of deviations: its values are 0."""
    problem = attacks.tasks.problem
    used = np.flatnonzero(np.diff(problem.relations[:, cells].tocsr().indptr))
    small = cut_out(_in_deviations(problem), cells, used)
    network = attacks.tail[cells], attacks.head[cells], attacks.nodes
    return FlowAttacks(Tasks.of(small), network)


def _in_deviations(problem: SuppressionProblem) -> SuppressionProblem:
    values = problem.values
    views = tuple(
        ContributorView(
            view.name,
            view.cells,
            view.low - values[view.cells],
            view.high - values[view.cells],
            view.targets,
            view.levels,
        )
        for view in problem.views
    )
    return replace(
        problem,
        values=np.zeros_like(values),
        low=problem.low - values,
        high=problem.high - values,
        views=views,
        names=None,
        unions=None,
        axes=None,
    )
