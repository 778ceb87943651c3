"""Linear and mixed programs in HiGHS whose bounds change from one question to the next.

One thread and fixed seeds: the same questions in the same order get the same answers, unless the clock
cuts one short.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import highspy
import numpy as np
import numpy.typing as npt

from lustrum.solve import Outcome
from lustrum.solve.highs_model import highs_model

__all__ = ["Answer", "Program"]

Floats = npt.NDArray[np.float64]
# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

_STATUS = highspy.HighsModelStatus
_OUTCOMES = {
    _STATUS.kOptimal: Outcome.OPTIMAL,
    _STATUS.kInfeasible: Outcome.INFEASIBLE,
    _STATUS.kUnboundedOrInfeasible: Outcome.INFEASIBLE,
    _STATUS.kUnbounded: Outcome.UNBOUNDED,
    _STATUS.kModelEmpty: Outcome.OPTIMAL,
}


@dataclass(frozen=True, eq=False)
class Answer:
    """How a run ended: the point, what it costs, what no point costs less than, and the row prices."""

    outcome: Outcome
    value: float
    bound: float
    point: Floats | None
    prices: Floats | None


class Program:
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
        self._model = highs_model(matrix, rows, columns, cost, whole, **options)

    def column_bounds(self, places: npt.NDArray[Any], low: Floats, high: Floats) -> None:
        """Other bounds for some columns."""
        self._model.changeColsBounds(places.size, places.astype(np.int32), low, high)

    def row_bounds(self, places: npt.NDArray[Any], low: Floats, high: Floats) -> None:
        """Other bounds for some rows."""
        for place, least, most in zip(places.tolist(), low.tolist(), high.tolist(), strict=True):
            self._model.changeRowBounds(place, least, most)

    def costs(self, cost: Floats) -> None:
        """Other costs for all columns."""
        self._model.changeColsCost(cost.size, np.arange(cost.size, dtype=np.int32), cost)

    def basis(self) -> Any:
        """Where the simplex method stands."""
        return self._model.getBasis()

    def return_to(self, basis: Any) -> None:
        """Go back to where it stood."""
        self._model.setBasis(basis)

    def start(self, point: Floats) -> None:
        """A first point for a search, in the order of the columns."""
        solution = highspy.HighsSolution()
        solution.col_value = point.tolist()
        self._model.setSolution(solution)

    def run(self, seconds: float | None = None, nodes: int | None = None) -> Answer:
        """Solve from here."""
        model = self._model
        # The clock of linear programs goes on from one question to the next, that of searches does not.
        gone = 0.0 if self._whole else model.getRunTime()
        limit = highspy.kHighsInf if seconds is None else gone + max(seconds, 1e-2)
        model.setOptionValue("time_limit", limit)
        model.setOptionValue("mip_max_nodes", highspy.kHighsIInf if nodes is None else nodes)
        model.run()
        outcome = _OUTCOMES.get(model.getModelStatus(), Outcome.CUT_SHORT)
        solution, info = model.getSolution(), model.getInfo()
        point = np.array(solution.col_value) if solution.value_valid else None
        cut_linear = outcome is not Outcome.OPTIMAL and not self._whole
        if outcome is Outcome.INFEASIBLE or point is None or cut_linear:
            bound = np.inf if outcome is Outcome.INFEASIBLE else -np.inf
            return Answer(outcome, np.inf, bound, None, None)
        value = float(info.objective_function_value)
        bound = float(info.mip_dual_bound) if self._whole else value
        prices = None if self._whole else np.array(solution.row_dual)
        return Answer(outcome, value, bound, point, prices)
