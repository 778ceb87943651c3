"""The nearest whole numbers that satisfy relations: controlled rounding to base 1.

Given a real solution, each number goes to the whole number below or above it so that all relations hold
again and the cost is least. Between two neighbouring whole numbers the cost is linear, so this is a linear
program, and for tables of two dimensions its vertices are whole (Cox and Ernst 1982). If they are not, a
search over whole numbers follows; if it finds nothing, numbers may move further.

Where hardly any number is whole, the free cells are rounded instead (:func:`whole_moves`). If they move by
whole numbers, all cells do, and everything adds up. Only where a total then violates a bound, a small search
chooses the free cells around it again. Few bounds are violated, so the searches stay small.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Ints, Mask, Sparse
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.products import sparse_product
from lustrum.protect.adjustment.problem import AdjustmentProblem, as_floats
from lustrum.protect.adjustment.work import ProgramSolution, WholeProgram, Work

Cost = Callable[[Ints], Floats]

_WHOLE = 1e-6
_WIDTHS = (0, 1, 3, 8)
_TOP = 1e3
_REACH = 4  # how far a free cell may move away from its rounded value
_GAP = 0.05


def nearest_whole(
    matrix: Sparse, target: Ints, point: Floats, low: Ints, high: Ints, cost: Cost, work: Work
) -> tuple[Ints | None, bool]:
    """Whole x near the point with ``matrix @ x = target``, and whether it is the best next to it.

    ``cost`` gives, for whole numbers in all places, what each costs; it must be convex. None if the work
    runs out, or if no solution is near.
    """
    snapped = np.round(point)
    near = np.abs(point - snapped) < _WHOLE
    # Bounds may be so large that floats cannot hold every whole number.
    floor = np.where(near, snapped, np.floor(point)).astype(np.int64)
    floor = np.clip(floor, low, high)
    if near.all() and np.array_equal(matrix @ floor, target):
        return floor, True
    for width in _WIDTHS:
        steps = _Steps(matrix, target, floor, low, high, cost, width)
        if steps.crossed:
            continue
        relaxation = steps.linear(work)
        if relaxation is None:
            return None, False
        if relaxation.outcome is Outcome.INFEASIBLE:
            continue
        moved = steps.read(relaxation)
        if moved is not None:
            return moved, width == 0
        moved, best = steps.search(work)
        if moved is not None:
            return moved, best and width == 0
        if work.late:
            break
    return None, False


class _Steps:
    """``x = floor - width + steps``, where each step is at most 1 and costs more than the one before."""

    def __init__(
        self,
        matrix: Sparse,
        target: Ints,
        floor: Ints,
        low: Ints,
        high: Ints,
        cost: Cost,
        width: int,
    ) -> None:
        self.matrix, self.target = matrix, target
        self.low = np.maximum(floor - width, low)
        top = np.minimum(floor + 1 + width, high)
        self.crossed = bool((self.low > top).any())
        self.room = top - self.low
        count = 2 * width + 1
        prices, columns = [], []
        before = cost(self.low)
        for step in range(1, count + 1):
            now = cost(self.low + step)
            open_cells = np.flatnonzero(self.room >= step)
            prices.append((now - before)[open_cells])
            columns.append(open_cells)
            before = now
        self.cell_of_step = np.concatenate(columns)
        self.prices = np.concatenate(prices)
        self.scale = _TOP / max(float(np.abs(self.prices).max(initial=0.0)), 1e-300)
        self.side = (target - matrix @ self.low).astype(np.float64)

    def _program(self, whole: bool) -> WholeProgram:
        steps = self.matrix.tocsc().astype(np.float64)[:, self.cell_of_step]
        size = self.cell_of_step.size
        return WholeProgram(
            steps,
            (self.side, self.side),
            (np.zeros(size), np.ones(size)),
            self.prices * self.scale,
            whole=np.arange(size) if whole else None,
            **({"mip_rel_gap": 1e-4} if whole else {}),
        )

    def linear(self, work: Work) -> ProgramSolution | None:
        """Solve the linear program; None if the work runs out."""
        answer = self._program(False).solve(work)
        return None if answer.outcome is Outcome.CUT_SHORT else answer

    def search(self, work: Work) -> tuple[Ints | None, bool]:
        """The same over whole numbers."""
        answer = self._program(True).solve(work)
        moved = None if answer.point is None else self.read(answer)
        return moved, answer.outcome is Outcome.OPTIMAL

    def read(self, answer: ProgramSolution) -> Ints | None:
        """The numbers of a vertex, if they are whole and all relations hold exactly."""
        if answer.point is None:
            return None
        taken = np.bincount(self.cell_of_step, weights=answer.point, minlength=self.low.size)
        whole = np.round(taken)
        if bool((np.abs(taken - whole) > 1e-4).any()):
            return None
        moved = self.low + whole.astype(np.int64)
        return moved if np.array_equal(self.matrix @ moved, self.target) else None


def whole_moves(
    problem: AdjustmentProblem, point: Floats, low: Ints, high: Ints, work: Work
) -> Ints | None:
    """Whole movements within the bounds near the point, or None if the work runs out first."""
    span = problem.span.tocsr()
    if problem.rest.shape[0]:
        return None
    start = _free_part(problem, point)
    chosen = _kept_inside(problem, start, low, high)
    open_cells = np.zeros(chosen.size, dtype=np.bool_)
    while True:
        moved = span @ chosen
        failed = (moved < low) | (moved > high)
        if not failed.any():
            return np.asarray(moved)
        wider = _around(problem, failed, open_cells)
        if np.array_equal(wider, open_cells) or work.late:
            return None
        open_cells = wider
        rechosen = _chosen_anew(problem, start, chosen, open_cells, low, high, work)
        chosen = chosen if rechosen is None else rechosen


def _free_part(problem: AdjustmentProblem, point: Floats) -> Floats:
    """The values of the free cells in a movement."""
    span = problem.span.tocsr()
    alone = np.flatnonzero(np.diff(span.indptr) == 1)
    free_index, sign = span.indices[span.indptr[alone]], span.data[span.indptr[alone]]
    units = np.abs(sign) == 1
    free = np.zeros(span.shape[1])
    free[free_index[units]] = point[alone[units]] * sign[units]
    return free


def _kept_inside(problem: AdjustmentProblem, start: Floats, low: Ints, high: Ints) -> Ints:
    """Each free cell rounded, inside its bounds."""
    span = problem.span.tocsr()
    alone = np.flatnonzero(np.diff(span.indptr) == 1)
    free_index, sign = span.indices[span.indptr[alone]], span.data[span.indptr[alone]]
    least = np.full(start.size, np.iinfo(np.int64).min // 2)
    most = np.full(start.size, np.iinfo(np.int64).max // 2)
    units = np.abs(sign) == 1
    plus = sign[units] > 0
    cells = alone[units]
    np.maximum.at(least, free_index[units], np.where(plus, low[cells], -high[cells]))
    np.minimum.at(most, free_index[units], np.where(plus, high[cells], -low[cells]))
    return np.clip(np.round(start).astype(np.int64), least, most)


def _around(problem: AdjustmentProblem, failed: Mask, open_cells: Mask) -> Mask:
    """The free cells in failed cells, and those that share a cell with free cells that are already open."""
    touches = abs(problem.span)
    wider = open_cells | np.asarray((touches.T @ failed.astype(np.int64)) > 0)
    if open_cells.any() and np.array_equal(wider, open_cells):
        small = np.diff(problem.span.indptr) <= 4 * max(
            1, int(np.median(np.diff(problem.span.indptr)))
        )
        near = (touches @ open_cells.astype(np.int64) > 0) & small
        wider = wider | np.asarray((touches.T @ near.astype(np.int64)) > 0)
        if np.array_equal(wider, open_cells):
            wider = np.ones_like(open_cells)
    return np.asarray(wider)


def _chosen_anew(
    problem: AdjustmentProblem,
    start: Floats,
    chosen: Ints,
    open_cells: Mask,
    low: Ints,
    high: Ints,
    work: Work,
) -> Ints | None:
    """Choose the open free cells so that all bounds hold, near the real solution by a linear cost."""
    places = np.flatnonzero(open_cells)
    span = problem.span.tocsr()
    moved = span @ chosen
    part = span[:, places].tocsr()
    bounded = (np.abs(as_floats(low)) < np.inf) | (np.abs(as_floats(high)) < np.inf)
    rows = np.flatnonzero((np.diff(part.indptr) > 0) & bounded)
    stiff = sparse_product(abs(span[:, places]).T, problem.weights)
    # Steps up and down cost the same, minus the part that brings the cell nearer to the real solution.
    off = start[places] - chosen[places]
    price = np.concatenate([stiff * (1.0 - off), stiff * (1.0 + off)])
    price = 1e3 * np.maximum(price, 0.0) / max(float(price.max(initial=0.0)), 1e-300)
    matrix = sparse.hstack([part[rows], -part[rows]], format="csc")
    program = WholeProgram(
        matrix,
        (as_floats(low)[rows] - moved[rows], as_floats(high)[rows] - moved[rows]),
        (np.zeros(2 * places.size), np.full(2 * places.size, float(_REACH))),
        price,
        whole=np.arange(2 * places.size),
        mip_rel_gap=_GAP,
    )
    answer = program.solve(work)
    if answer.point is None:
        return None
    steps = np.round(answer.point).astype(np.int64)
    rechosen = chosen.copy()
    rechosen[places] += steps[: places.size] - steps[places.size :]
    return rechosen
