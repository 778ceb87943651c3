"""The nearest whole numbers that satisfy relations: controlled rounding to base 1.

Given a real solution, each number goes to the whole number below or above it so that all relations hold
again and the cost is least. Between two neighbouring whole numbers the cost is linear, so this is a linear
program, and for tables of two dimensions its vertices are whole (Cox and Ernst 1982). If they are not, a
search over whole numbers follows; if it finds nothing, numbers may move further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.solve import Outcome
from lustrum.protect.adjustment.programs import ProgramSolution, WholeProgram
from lustrum.protect.adjustment.work import Work

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any
Cost = Callable[[Ints], Floats]

_WHOLE = 1e-6
_WIDTHS = (0, 1, 3, 8)
_TOP = 1e3


def nearest_whole(
    matrix: Sparse,
    target: Ints,
    point: Floats,
    low: Ints,
    high: Ints,
    cost: Cost,
    work: Work,
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
        answer = self._program(False).run(work)
        return None if answer.outcome is Outcome.CUT_SHORT else answer

    def search(self, work: Work) -> tuple[Ints | None, bool]:
        """The same over whole numbers."""
        answer = self._program(True).run(work)
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
