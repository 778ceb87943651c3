"""Inequalities that every pattern satisfies that protects all cells, strengthened.

If the move of cell p is ``sum r_i d_i`` over other cells, no pattern moves it further than the suppressed ones
among these allow, so ``sum room_i(r_i) x_i >= level`` (Fischetti and Salazar 2000). What primary cells carry
is taken off the level, and no cell counts for more than what is left. A secondary cell that the others give
away exactly protects nothing: in each relation it needs a companion, ``sum of others >= x_i``.
"""

from __future__ import annotations

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.solve.cutting import Cut
from lustrum.numeric.solve.products import sparse_product
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import AttackReason
from lustrum.protect.suppression.search.attacks.tasks import Tasks


class InfeasibleError(Exception):
    """A task that no pattern fulfils."""

    def __init__(self, task: int, cells: Ints) -> None:
        super().__init__(task)
        self.task, self.cells = task, cells


def protection_cut(
    tasks: Tasks, reason: AttackReason, column: Ints, tolerance: float = 1e-7
) -> Cut | None:
    """The inequality that follows from the reason for which a task fails; None where it says nothing."""
    problem = tasks.problem
    up, down = tasks.rooms(int(tasks.view[reason.task]))
    level = float(tasks.level[reason.task])
    cells, carried = _carried(reason, up, down)
    if reason.other is not None:
        others, more = _carried(reason.other, up, down)
        every = np.union1d(cells, others)
        total = np.zeros(every.size)
        np.add.at(total, np.searchsorted(every, cells), carried)
        np.add.at(total, np.searchsorted(every, others), more)
        cells, carried = every, total
    side = level - reason.bound_move - float(carried[problem.fixed[cells]].sum())
    if reason.other is not None:
        side -= reason.other.bound_move
    if side <= tolerance * level:
        return None
    usable = (column[cells] >= 0) & (carried > 0)
    if not usable.any():
        raise InfeasibleError(reason.task, cells)
    weights = np.minimum(carried[usable] / side, 1.0)
    columns = column[cells[usable]]
    order = np.argsort(columns, kind="stable")
    return Cut(columns[order].astype(np.intp), weights[order], 1.0)


def _carried(reason: AttackReason, up: Floats, down: Floats) -> tuple[Ints, Floats]:
    room = np.where(reason.weights > 0, up[reason.cells], down[reason.cells])
    return reason.cells, np.abs(reason.weights) * room


def companion_cuts(problem: SuppressionProblem, x: Floats, column: Ints) -> list[Cut]:
    """For relations without a cell that is suppressed in any case: no secondary cell stands alone."""
    matrix = problem.relations
    sums = sparse_product(abs(matrix), x)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    largest = np.zeros(matrix.shape[0])
    np.maximum.at(largest, rows, x[matrix.indices])
    cuts = []
    for row in np.flatnonzero(sums - 2 * largest < -1e-4).tolist():
        cells = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if problem.fixed[cells].any():
            continue
        alone = int(cells[np.argmax(x[cells])])
        choice_cells = np.sort(cells[column[cells] >= 0])
        columns = column[choice_cells]
        cuts.append(Cut(columns.astype(np.intp), np.where(choice_cells == alone, -1.0, 1.0), 0.0))
    return cuts


def outside_cut(column: Ints, suppressed: Mask) -> Cut:
    """At least one more cell than those of a pattern that was found wanting, or of any part of it."""
    columns = column[~suppressed & (column >= 0)]
    return Cut(np.sort(columns).astype(np.intp), np.ones(columns.size), 1.0)
