"""Linear and mixed programs in HiGHS whose bounds change from one question to the next.

One thread and fixed seeds: the same questions in the same order get the same answers. On another kind of
processor the solver takes other steps to them, so work is counted by the size of questions. Only a search for
the best of all directions is stopped by its own steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import highspy
import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.highs_model import highs_model
from lustrum.numeric.solve.products import cleared, dot, floored
from lustrum.numeric.solve.running import run
from lustrum.protect.adjustment.work import SEARCH_STEP, Work
from lustrum.runtime.stop import check_stop

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

_COLUMNS_A_STEP = 8  # rows and columns of a linear program for each step that it counts for
_SEARCH_OF_FEW = 4 * SEARCH_STEP  # steps that a search with a limit of nodes counts for
_BITS = 30  # of a column, and of a price in units of the largest
_STATUS = highspy.HighsModelStatus
_OUTCOMES = {
    _STATUS.kOptimal: Outcome.OPTIMAL,
    _STATUS.kInfeasible: Outcome.INFEASIBLE,
    _STATUS.kUnboundedOrInfeasible: Outcome.INFEASIBLE,
    _STATUS.kUnbounded: Outcome.UNBOUNDED,
    _STATUS.kModelEmpty: Outcome.OPTIMAL,
}


@dataclass(frozen=True, eq=False)
class ProgramSolution:
    """The outcome of a run: the point, its cost, a lower bound of the cost, and the row prices."""

    outcome: Outcome
    value: float
    bound: float
    point: Floats | None
    prices: Floats | None


class WholeProgram:
    """``row_low <= A x <= row_high``, ``low <= x <= high``, some x whole, at the least ``cost x``."""

    def __init__(
        self,
        matrix: Sparse,
        rows: tuple[Floats, Floats],
        columns: tuple[Floats, Floats],
        cost: Floats,
        whole: npt.NDArray[np.intp] | None = None,
        **options: float | str | bool,
    ) -> None:
        self._whole = whole is not None
        self._cost = np.asarray(cost, dtype=np.float64)
        self._model = highs_model(matrix, rows, columns, cost, whole, **options)
        self._steps = 1 + sum(matrix.shape) // _COLUMNS_A_STEP

    def column_bounds(self, places: npt.NDArray[Any], low: Floats, high: Floats) -> None:
        """Other bounds for some columns."""
        self._model.changeColsBounds(places.size, places.astype(np.int32), low, high)

    def row_bounds(self, places: npt.NDArray[Any], low: Floats, high: Floats) -> None:
        """Other bounds for some rows."""
        for row, least, most in zip(places.tolist(), low.tolist(), high.tolist(), strict=True):
            self._model.changeRowBounds(row, least, most)

    def costs(self, cost: Floats) -> None:
        """Other costs for all columns."""
        self._cost = np.asarray(cost, dtype=np.float64)
        self._model.changeColsCost(cost.size, np.arange(cost.size, dtype=np.int32), cost)

    def basis(self) -> Any:
        """The present basis of the simplex method."""
        return self._model.getBasis()

    def return_to(self, basis: Any) -> None:
        """Return to a basis."""
        self._model.setBasis(basis)

    def start(self, point: Floats) -> None:
        """A first point for a search, in the order of the columns."""
        solution = highspy.HighsSolution()
        solution.col_value = point.tolist()
        self._model.setSolution(solution)

    def run(self, work: Work | None = None, nodes: int | None = None) -> ProgramSolution:
        """Solve from the present basis; a search ends after the given number of nodes, or with the work."""
        model = self._model
        check_stop()
        model.setOptionValue("mip_max_nodes", highspy.kHighsIInf if nodes is None else nodes)
        if self._whole and nodes is None:
            self._search(work)
        else:
            run(model)
            if work is not None:
                work.spend(_SEARCH_OF_FEW if self._whole else self._steps)
        check_stop()
        outcome = _OUTCOMES.get(model.getModelStatus(), Outcome.CUT_SHORT)
        solution, info = model.getSolution(), model.getInfo()
        point = None
        if solution.value_valid:
            # Without the noise of a solver's binary.
            point = cleared(np.array(solution.col_value), _BITS)
        cut_linear = outcome is not Outcome.OPTIMAL and not self._whole
        if outcome is Outcome.INFEASIBLE or point is None or cut_linear:
            bound = np.inf if outcome is Outcome.INFEASIBLE else -np.inf
            return ProgramSolution(outcome, np.inf, bound, None, None)
        value = dot(self._cost, point)
        bound = floored(float(info.mip_dual_bound)) if self._whole else value
        prices = None
        if not self._whole:
            prices = np.array(solution.row_dual)
            prices = cleared(prices, _BITS, max(float(np.abs(prices).max(initial=0.0)), 1e-300))
        return ProgramSolution(outcome, value, bound, point, prices)

    def _search(self, work: Work | None) -> None:
        """Branch and bound; it checks its limits after steps that are counted, never by the clock."""
        looks = 0
        most = None if work is None else max(1, work.left // SEARCH_STEP)

        def look(event: Any) -> None:
            nonlocal looks
            looks += 1
            if most is not None and looks > most:
                event.data_in.user_interrupt = True

        self._model.cbMipInterrupt.subscribe(look)
        try:
            run(self._model)
        finally:
            self._model.cbMipInterrupt.unsubscribe(look)
        if work is not None:
            work.spend(max(looks, 1) * SEARCH_STEP)
