"""Inequalities that every pattern satisfies that protects all cells, strengthened.

If the move of cell p is ``sum r_i d_i`` over other cells, no pattern moves it further than the suppressed ones
among these allow, so ``sum room_i(r_i) x_i >= level`` (Fischetti and Salazar 2000). What primary cells carry
is taken off the level, and no cell counts for more than what is left. A secondary cell that the others give
away exactly protects nothing: in each relation it needs a companion, ``sum of others >= x_i``.

An attempt to publish cells that leaves a task short has a reason too, and so teaches an inequality. Whatever
would violate it need not be tried: most attempts in vain are seen beforehand, without a linear program. The
relations of a primary cell give the first inequalities.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Ints, Mask, Sparse
from lustrum.numeric.solve.cutting import Cut, stacked
from lustrum.numeric.solve.products import sparse_product
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import AttackReason
from lustrum.protect.suppression.search.attacks.tasks import SLIDING, Tasks


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


_PLAIN = 6000  # inequalities that single relations give, at most
_MOST = 12_000  # inequalities altogether
_ENTRIES = 16_000_000  # weights in all of them; they are held two or three times, of 16 bytes each
_PENDING = 24  # inequalities that are kept apart before the others are stacked with them
_CLEAR = 1e-5  # by how much an inequality must be violated; weights are shares of what is needed


class Needs:
    """The inequalities known so far, over the cells of one problem."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.cuts: list[Cut] = []
        self._seen: set[bytes] = set()
        self._entries = 0
        self._rows: Sparse = None
        self._columns: Sparse = None
        self._sides = np.zeros(0)
        choice = tasks.problem.choice
        self._column = np.where(choice, np.arange(choice.size), -1)
        self._plain()

    def learn(self, reason: AttackReason) -> None:
        """Add the inequality that follows from the reason for which a task fails, if it is new."""
        if len(self.cuts) >= _MOST or self._entries >= _ENTRIES:
            return
        try:
            cut = protection_cut(self.tasks, reason, self._column)
        except InfeasibleError:
            return  # no pattern fulfils the task, and the caller finds that out by itself
        if cut is not None and cut.key() not in self._seen:
            self._seen.add(cut.key())
            self._entries += cut.columns.size
            self.cuts.append(cut)

    def by_column(self) -> tuple[Sparse, Floats]:
        """All inequalities as a matrix that is read cell by cell, and their sides.

        Only what was learnt since the last time is added, because every search begins with this matrix.
        """
        count = self._sides.size
        if self._columns is None or count < len(self.cuts):
            fresh, sides = stacked(self.cuts[count:], self._column.size)
            self._rows = fresh if self._rows is None else _below(self._rows, fresh)
            self._sides = np.append(self._sides, sides)
            self._columns = self._rows.tocsc()
        return self._columns, self._sides

    def _plain(self) -> None:
        """What the relations of each cell attacked say by themselves."""
        matrix, tasks = self.tasks.problem.relations, self.tasks
        by_cell = matrix.tocsc()
        for task in np.flatnonzero(tasks.sign != SLIDING).tolist():
            cell = int(tasks.cell[task])
            for row in by_cell.indices[by_cell.indptr[cell] : by_cell.indptr[cell + 1]].tolist():
                if len(self.cuts) >= _PLAIN:
                    return
                span = slice(matrix.indptr[row], matrix.indptr[row + 1])
                cells, weights = matrix.indices[span], matrix.data[span].astype(np.float64)
                cell_weight = float(weights[cells == cell][0])
                other = cells != cell
                times = -float(tasks.sign[task]) * weights[other] / cell_weight
                self.learn(AttackReason(task, cells[other].astype(np.int64), times))


class Slack:
    """By how much a pattern exceeds each inequality, as cells are published one after the other.

    Cells are counted by their places among those of a search; others are published in any case.
    """

    def __init__(self, needs: Needs, cells: Ints, shut: Mask) -> None:
        self.needs, self.cells = needs, cells
        self._place = np.full(needs.tasks.problem.values.size, -1, dtype=np.int64)
        self._place[cells] = np.arange(cells.size)
        self._shut = shut.copy()
        self._count = 0
        self._recent: list[Floats] = []
        self._left = np.zeros(0)
        self._recent_left: list[float] = []
        self._stack()

    def publish(self, shut: Mask) -> None:
        """Take in which places are published now, and what was learnt since the last time."""
        gone = np.flatnonzero(shut & ~self._shut)
        self._shut[gone] = True
        if gone.size:
            rows, lost = self._lost(gone)
            np.subtract.at(self._left, rows, lost)
            for number, weights in enumerate(self._recent):
                self._recent_left[number] -= float(weights[gone].sum())
        fresh = self.needs.cuts[self._count + len(self._recent) :]
        if len(self._recent) + len(fresh) > _PENDING:
            self._stack()
            return
        for cut in fresh:
            weights = np.zeros(self.cells.size)
            places = self._place[cut.columns]
            weights[places[places >= 0]] = cut.weights[places >= 0]
            self._recent.append(weights)
            self._recent_left.append(float(weights[~self._shut].sum()) - cut.side)

    def allowed(self, groups: list[Ints], most: int) -> list[int]:
        """The first groups of places that no inequality forbids to publish all together, up to a number."""
        left, recent = self._left.copy(), list(self._recent_left)
        out: list[int] = []
        for number, places in enumerate(groups):
            if len(out) >= most:
                break
            rows, lost = self._lost(places)
            mine, gone = rows, lost
            if places.size > 1:
                mine, back = np.unique(rows, return_inverse=True)
                gone = np.bincount(back, weights=lost, minlength=mine.size).astype(np.float64)
            sums = [float(weights[places].sum()) for weights in self._recent]
            if bool((gone > left[mine] + _CLEAR).any()) or any(
                0 < total > rest + _CLEAR for total, rest in zip(sums, recent, strict=True)
            ):
                continue
            left[mine] -= gone
            recent = [rest - total for total, rest in zip(sums, recent, strict=True)]
            out.append(number)
        return out

    def _lost(self, places: Ints) -> tuple[Ints, Floats]:
        """The inequalities that some places have part in, and their weights there."""
        ends = self._columns.indptr
        spans = [np.arange(ends[p], ends[p + 1]) for p in places.tolist()]
        every = np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)
        return self._columns.indices[every], self._columns.data[every]

    def _stack(self) -> None:
        matrix, side = self.needs.by_column()
        self._count, self._recent, self._recent_left = side.size, [], []
        self._columns = matrix[:, self.cells]
        self._left = sparse_product(self._columns, (~self._shut).astype(np.float64)) - side


def _below(upper: Sparse, lower: Sparse) -> Sparse:
    """The rows of one matrix and then those of another."""
    return sparse.csr_array(
        (
            np.concatenate([upper.data, lower.data]),
            np.concatenate([upper.indices, lower.indices]),
            np.concatenate([upper.indptr, lower.indptr[1:] + upper.indptr[-1]]),
        ),
        shape=(upper.shape[0] + lower.shape[0], upper.shape[1]),
    )
