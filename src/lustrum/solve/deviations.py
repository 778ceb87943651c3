"""Deviations from a solution of linear equations: how far one column can move, and which others must go along.

All d with ``A d = 0`` and ``low <= d <= high``, where the ends change from question to question and the
equations do not. Each question goes on from the basis of the last one. Ends that are fractions with a power of
two below the line give corners of that kind, nearly always, which a solver finds without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import highspy
import numpy as np
from scipy import sparse

from lustrum.arrays import Floats
from lustrum.solve.highs_model import highs_model
from lustrum.solve.products import cleared, snapped, sparse_product

__all__ = ["DeviationProgram", "Furthest"]

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

_OPTIMAL = highspy.HighsModelStatus.kOptimal
_PRIMAL, _DUAL = 4, 1
_LEAST_PIVOTS, _PIVOTS_EACH = (
    1000,
    2,
)  # a program that goes on: in any case, and for each row and column
# Multipliers of sums of cells are nearly always multiples of one of these.
_DIVISORS = (1, 2, 6, 12, 60, 840)
_BITS = 36  # of a move; what is left of a solver's noise is below


@dataclass(frozen=True, eq=False)
class Furthest:
    """How far a column can move, and a deviation that moves it there."""

    reach: float
    deviation: Floats
    steps: int


class DeviationProgram:
    """Deviations for one matrix of whole numbers."""

    def __init__(self, matrix: Sparse) -> None:
        self.matrix = matrix.tocsr().astype(np.int64)
        self._far: Any = None
        self._light: Any = None
        width = self.matrix.shape[1]
        self._ends = np.zeros(width), np.zeros(width)
        self._light_ends = np.zeros(2 * width)
        self._light_cost = np.zeros(2 * width)
        self._weight = np.zeros(width)
        self._held = np.zeros(0, dtype=np.int64)
        self.steps = self.restarts = 0

    def furthest(
        self,
        column: int,
        sign: int,
        low: Floats,
        high: Floats,
        limit: float,
    ) -> Furthest:
        """Move one column as far as possible, up (sign 1) or down (-1), to the limit at most."""
        low, high = low.copy(), high.copy()
        low[column], high[column] = -limit, limit
        weight = np.zeros(low.size)
        weight[column] = float(sign)
        before = self.steps
        point = self.most(weight, low, high)
        return Furthest(sign * float(point[column]), point, self.steps - before)

    def most(self, weight: Floats, low: Floats, high: Floats) -> Floats:
        """The deviation with the most ``weight @ d``."""
        if self._far is None:
            self._far = _model(self.matrix, *self._ends)
        model = self._far
        self._move(model, low, high)
        changed = np.flatnonzero(weight != self._weight).astype(np.int32)
        if changed.size:
            model.changeColsCost(changed.size, changed, -weight[changed])
        self._weight = weight.copy()
        self._run(model)
        self.steps += max(int(model.getInfo().simplex_iteration_count), 0)
        return cleared(np.array(model.getSolution().col_value), _BITS)

    def reasons(self, columns: Sparse, column: int, sign: int) -> Floats:
        """Why the last question got no better answer: weights of the moves of other columns.

        ``columns`` is the transposed matrix with all columns there are, also those that cannot move and were
        left out; ``column`` is the place there of the one that was asked about. For every d with ``A d = 0``
        its move is the weighted sum of the others' moves. The weights are exact fractions unless the
        multipliers are no multiples of small ones.
        """
        duals = np.array(self._far.getSolution().row_dual)
        for divisor in _DIVISORS:
            whole = np.rint(duals * divisor)
            if np.abs(whole - duals * divisor).max(initial=0.0) < 1e-6 * divisor:
                mixed = (columns @ whole.astype(np.int64)).astype(np.float64)
                return _alone(mixed, column, sign)
        mixed = cleared(sparse_product(columns, snapped(duals, 1e-9)), _BITS)
        mixed[np.abs(mixed) < 1e-9] = 0.0
        return _alone(mixed, column, sign)

    def lightest(
        self, column: int, amount: float, low: Floats, high: Floats, weight: Floats
    ) -> Floats | None:
        """The deviation with the least ``weight @ abs(d)`` that moves one column by an amount, if any does."""
        width = self.matrix.shape[1]
        if self._light is None:
            both = sparse.hstack([self.matrix, -self.matrix], format="csr")
            self._light = _model(both, np.zeros(2 * width), self._light_ends)
        model = self._light
        ends = np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0)])
        ends[column], ends[width + column] = max(amount, 0.0), max(-amount, 0.0)
        cost = np.concatenate([weight, weight])
        cost[column] = cost[width + column] = 0.0
        floor = np.zeros(2 * width)
        floor[column], floor[width + column] = ends[column], ends[width + column]
        other = np.flatnonzero((ends != self._light_ends) | (floor != 0.0))
        changed = np.union1d(other, self._held).astype(np.int32)
        model.changeColsBounds(changed.size, changed, floor[changed], ends[changed])
        self._held = np.array([column, width + column])
        moved = np.flatnonzero(cost != self._light_cost).astype(np.int32)
        model.changeColsCost(moved.size, moved, cost[moved])
        self._light_ends, self._light_cost = ends, cost
        # With weights of 0 or more no deviation at all is dual feasible; the last basis is neither that nor
        # feasible, and ten times slower to go on from.
        model.clearSolver()
        model.setOptionValue("simplex_strategy", _DUAL)
        model.run()
        self.steps += max(int(model.getInfo().simplex_iteration_count), 0)
        if model.getModelStatus() != _OPTIMAL:
            return None
        both_ways = cleared(np.array(model.getSolution().col_value), _BITS)
        return np.asarray(both_ways[:width] - both_ways[width:])

    def _move(self, model: Any, low: Floats, high: Floats) -> None:
        changed = np.flatnonzero((low != self._ends[0]) | (high != self._ends[1])).astype(np.int32)
        if changed.size:
            model.changeColsBounds(changed.size, changed, low[changed], high[changed])
        self._ends = low, high

    def _run(self, model: Any) -> None:
        # Where ends change much, the primal simplex method may go in circles from its last basis.
        limit = _LEAST_PIVOTS + _PIVOTS_EACH * sum(self.matrix.shape)
        model.setOptionValue("simplex_strategy", _PRIMAL)
        model.setOptionValue("simplex_iteration_limit", limit)
        model.run()
        if model.getModelStatus() != _OPTIMAL:
            # No deviation at all is always feasible, so this is a circle or numerical trouble.
            self.restarts += 1
            model.clearSolver()
            model.setOptionValue("simplex_iteration_limit", highspy.kHighsIInf)
            model.setOptionValue("simplex_strategy", _DUAL)
            model.run()


def _alone(mixed: Floats, column: int, sign: int) -> Floats:
    own = -sign * mixed[column]
    mixed[column] = 0.0
    return mixed / own if own > 1e-9 else np.zeros_like(mixed)


def _model(matrix: Sparse, low: Floats, high: Floats) -> Any:
    zero = np.zeros(matrix.shape[0])
    return highs_model(matrix, (zero, zero), (low, high), presolve="off", solver="simplex")
