"""Whole movements near a real movement of a table, found through the free cells.

If the free cells move by whole numbers, all cells do, and everything adds up. So the free cells are
rounded. Only where a total then violates a bound, a small search chooses the free cells around it again.
Few bounds are violated, so the searches stay small.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.solve.products import sparse_product
from lustrum.protect.adjustment.problem import AdjustmentProblem, as_floats
from lustrum.protect.adjustment.programs import WholeProgram
from lustrum.protect.adjustment.work import Work

_REACH = 4  # how far a free cell may move away from its rounded value
_GAP = 0.05


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
    answer = program.run(work)
    if answer.point is None:
        return None
    steps = np.round(answer.point).astype(np.int64)
    rechosen = chosen.copy()
    rechosen[places] += steps[: places.size] - steps[places.size :]
    return rechosen
