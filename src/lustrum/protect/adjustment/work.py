"""Work that is counted in steps, and the linear and mixed programs that spend it.

One thread and fixed seeds: the same questions in the same order get the same answers. On another kind of
processor the solver takes other steps to them, so work is counted by the size of questions. Only a search for
the best of all directions is stopped by its own steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Floats, Indices, Sparse
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.highs import NO_LIMIT, Limits, Program
from lustrum.numeric.solve.products import cleared, dot, floored
from lustrum.runtime.stop import check_stop

STEPS = 500_000
"""Steps that a search takes at most, unless the caller says otherwise; a linear program counts by its size."""

SEARCH_STEP = 500
"""A look that a search for whole numbers takes at its limits counts as this many steps of a linear program."""

_COLUMNS_A_STEP = 8  # rows and columns of a linear program for each step that it counts for
_SEARCH_OF_FEW = 4 * SEARCH_STEP  # steps that a search with a limit of nodes counts for
_BITS = 30  # of a column, and of a price in units of the largest
_OUTCOMES = {
    "optimal": Outcome.OPTIMAL,
    "infeasible": Outcome.INFEASIBLE,
    "unbounded or infeasible": Outcome.INFEASIBLE,
    "unbounded": Outcome.UNBOUNDED,
    "empty": Outcome.OPTIMAL,
}


class Work:
    """A number of steps; steps spent from a part are spent from the whole, too.

    >>> work = Work(100)
    >>> part = work.part(0.5)
    >>> part.spend(60)
    >>> part.late, work.left
    (True, 40)
    """

    def __init__(self, steps: int, whole: Work | None = None) -> None:
        self._left = steps
        self._whole = whole

    @property
    def left(self) -> int:
        """Steps left, never below 0."""
        whole = self._left if self._whole is None else self._whole.left
        return max(0, min(self._left, whole))

    @property
    def late(self) -> bool:
        return self.left <= 0

    def part(self, share: float) -> Work:
        return Work(int(self.left * share), self)

    def spend(self, steps: int) -> None:
        """Subtract steps that were done."""
        self._left -= steps
        if self._whole is not None:
            self._whole.spend(steps)


@dataclass(frozen=True, eq=False)
class ProgramSolution:
    """The outcome of a run: the point, its cost, a lower bound of the cost, and the row prices."""

    outcome: Outcome
    value: float
    bound: float
    point: Floats | None
    prices: Floats | None


class WholeProgram(Program):
    """A program of which some columns may be whole, run with counted work."""

    def __init__(
        self,
        matrix: Sparse,
        rows: tuple[Floats, Floats],
        columns: tuple[Floats, Floats],
        cost: Floats,
        whole: Indices | None = None,
        **options: object,
    ) -> None:
        super().__init__(matrix, rows, columns, cost, whole, **options)
        self._whole = whole is not None
        self._steps = 1 + sum(matrix.shape) // _COLUMNS_A_STEP

    def solve(self, work: Work | None = None, nodes: int | None = None) -> ProgramSolution:
        """Solve from the present basis; a search ends after the given number of nodes, or with the work."""
        check_stop()
        self.set(mip_max_nodes=NO_LIMIT if nodes is None else nodes)
        if self._whole and nodes is None:
            # Branch and bound checks its limits after steps that are counted, never by the clock.
            most = NO_LIMIT if work is None else max(1, work.left // SEARCH_STEP)
            with Limits(most).watching(self) as looks:
                self.run()
            spent = max(len(looks), 1) * SEARCH_STEP
        else:
            self.run()
            spent = _SEARCH_OF_FEW if self._whole else self._steps
        if work is not None:
            work.spend(spent)
        check_stop()
        outcome = _OUTCOMES.get(self.ended, Outcome.CUT_SHORT)
        point = None
        if self.model.getSolution().value_valid:
            # Without the noise of a solver's binary.
            point = cleared(self.point, _BITS)
        cut_linear = outcome is not Outcome.OPTIMAL and not self._whole
        if outcome is Outcome.INFEASIBLE or point is None or cut_linear:
            bound = np.inf if outcome is Outcome.INFEASIBLE else -np.inf
            return ProgramSolution(outcome, np.inf, bound, None, None)
        value = dot(self.cost, point)
        bound = floored(self.whole_bound) if self._whole else value
        prices = None
        if not self._whole:
            size = max(float(np.abs(self.prices).max(initial=0.0)), 1e-300)
            prices = cleared(self.prices, _BITS, size)
        return ProgramSolution(outcome, value, bound, point, prices)
