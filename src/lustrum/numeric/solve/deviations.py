"""Deviations from a solution of linear equations: how far one column can move, and which others must go along.

All d with ``A d = 0`` and ``low <= d <= high``, where the ends change from question to question and the
equations do not. Ends that are fractions with a power of two below the line give corners of that kind, nearly
always, which a solver finds without rounding.

Most questions have many answers, and which of them a solver meets depends on its way, which differs between
processors. So each question is made one with a single answer: of all furthest deviations the one that moves
least, counted with irregular weights, and of all reasons the one that is best when every end is a little
wider.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Sparse
from lustrum.numeric.solve.highs import FINE, NO_LIMIT, SIMPLEX, Program
from lustrum.numeric.solve.products import cleared, power_of_two, snapped, sparse_product

_NEARLY = 1e-9  # the limit of a question counts as reached up to this share
_LEAST_PIVOTS, _PIVOTS_EACH = (
    1000,
    2,
)  # a program that goes on: in any case, and for each row and column
# Multipliers of sums of cells are nearly always multiples of one of these.
_DIVISORS = (1, 2, 6, 12, 60, 840, 2520)
_BITS = 36  # of a move; what is left of a solver's noise is below
_CORNER_BITS = 26  # of a move at a corner, which may be far away
# Moves have small irregular costs, so that one deviation is the best. They are far above what a solver
# tells apart, and so far below the weights of a question that thousands of moves do not outweigh one.
_UNIT = 2.0**6  # the least weight of a question
_LARGEST = 2.0**18  # the largest, where they differ much
_MOVE = 2.0**-8
# In questions for reasons ends are wider by this share of how far the cell in question may move.
_WIDER = 2.0**-12
_FAR = 2.0**10  # times as far, which is as good as any distance


@dataclass(frozen=True, eq=False)
class Furthest:
    """How far a column can move, and a deviation that moves it there."""

    reach: float
    deviation: Floats


class DeviationProgram:
    """Deviations for one matrix of whole numbers.

    Say that no row follows from others where it is so: reasons are then found many times quicker.
    """

    def __init__(self, matrix: Sparse, *, independent: bool = False) -> None:
        self.matrix = matrix.tocsr().astype(np.int64)
        self._independent = independent
        # One program for each kind of question, made when it is first asked.
        self._programs: dict[str, Program] = {}
        width = self.matrix.shape[1]
        self._columns: Sparse = None
        # Between 1 and 2, the same for the same number of columns.
        self._chance = 1.0 + np.random.default_rng(width).random(2 * width)
        self.restarts = 0

    def furthest(self, column: int, sign: int, low: Floats, high: Floats, limit: float) -> Furthest:
        """Move one column as far as possible, up (sign 1) or down (-1), to the limit at most.

        Of all deviations that do, it is one that moves little.
        """
        width = self.matrix.shape[1]
        ends = np.concatenate([high, -low])
        ends[[column, width + column]] = limit
        cost = self._chance * _MOVE
        cost[column] -= sign * _UNIT
        cost[width + column] += sign * _UNIT
        # No deviation at all, with what is asked about at its end, is dual feasible and near to the answer; to
        # go on from the last basis takes three times as long.
        point = self._both_ways(np.zeros(2 * width), ends, cost)
        point = np.zeros(width) if point is None else point
        return Furthest(sign * float(point[column]), point)

    def _both_ways(self, low: Floats, high: Floats, cost: Floats) -> Floats | None:
        """The cheapest deviation, rises and falls counted apart; None where there is none within the ends."""
        width = self.matrix.shape[1]
        program = self._programs.get("both ways")
        if program is None:
            both = sparse.hstack([self.matrix, -self.matrix], format="csr")
            program = self._programs["both ways"] = _program(both, dual_feasibility_tolerance=FINE)
        program.bound(low, high)
        program.price(cost)
        program.forget()
        if program.run() != "optimal":
            return None
        both_ways = cleared(program.point, _BITS)
        return np.asarray(both_ways[:width] - both_ways[width:])

    def corner(self, weight: Floats, low: Floats, high: Floats) -> Floats:
        """The deviation with the most ``weight @ d``, and of these the one that small irregular costs choose.

        It may move columns that need not move, but goes on from the last question, which is up to a hundred
        times quicker than :meth:`furthest` on large tables.
        """
        width = self.matrix.shape[1]
        # Costs of both signs, so that the corner without a question is nowhere special.
        uneven = np.where(np.arange(width) % 2, self._chance[:width], -self._chance[:width])
        point = self._corner("corner", uneven * _MOVE - weight * _factor(weight), low, high)
        return np.clip(cleared(point, _CORNER_BITS), low, high)

    def _corner(self, kind: str, cost: Floats, low: Floats, high: Floats) -> Floats:
        """The cheapest corner, from that of the last question of its kind."""
        program = self._programs.get(kind)
        if program is None:
            program = self._programs[kind] = _program(self.matrix, dual_feasibility_tolerance=FINE)
        program.bound(low, high)
        program.price(cost)
        self._go_on(program)
        return program.point

    def reasons(
        self, columns: Sparse, position: int, question: tuple[int, int, Floats, Floats, float]
    ) -> tuple[float, Floats]:
        """No further than this, and why: weights of the moves of other columns.

        The question is that of :meth:`furthest`. ``columns`` is the transposed matrix with all columns there
        are, also those that cannot move and were left out; ``position`` is where the one asked about stands.
        For every d with ``A d = 0`` its move is the weighted sum of the others' moves. The weights are exact
        fractions unless the multipliers are no multiples of small ones.
        """
        column, sign, low, high, limit = question
        program = self._programs.get("why")
        if program is None:
            # Where rows follow from others, many mixtures of rows are the same reason here, but not in columns
            # that were left out. Wider rows decide between them.
            wider = _WIDER * (1.0 + np.random.default_rng(1).random(self.matrix.shape[0]))
            rows = None if self._independent else wider
            program = _program(self.matrix, rows, primal_feasibility_tolerance=FINE)
            self._programs["why"] = program
            self._columns = self.matrix.T.tocsr()
        unit = power_of_two(limit)
        wider = self._chance[: self.matrix.shape[1]] * _WIDER
        least, most = np.maximum(low / unit, -_FAR) - wider, np.minimum(high / unit, _FAR) + wider
        least[column], most[column] = -limit / unit, limit / unit
        program.bound(least, most)
        cost = np.zeros(least.size)
        cost[column] = -float(sign)
        program.price(cost)
        self._go_on(program)
        duals = program.prices
        mixed, inside = _mixed(columns, duals), _mixed(self._columns, duals)
        column_weight = -sign * float(inside[column])
        mixed[position] = inside[column] = 0.0
        if column_weight <= 1e-9:
            return limit, np.zeros_like(mixed)
        # The cell in question moves no further than the others carry it, and no further than its own end.
        carried = np.where(inside > 0, inside * high, inside * low) / column_weight
        return min(float(carried.sum()), limit), mixed / column_weight

    def reaches(self, question: tuple[int, int, Floats, Floats, float]) -> bool:
        """Whether the column of a question for reasons gets to its limit; quicker than to find out why not."""
        column, sign, low, high, limit = question
        unit = power_of_two(limit)
        least, most = np.maximum(low / unit, -_FAR), np.minimum(high / unit, _FAR)
        least[column], most[column] = -limit / unit, limit / unit
        cost = np.zeros(least.size)
        cost[column] = -float(sign)
        point = self._corner("plain", cost, least, most)
        return sign * float(point[column]) * unit >= limit * (1.0 - _NEARLY)

    def lightest(
        self, column: int, amount: float, low: Floats, high: Floats, weight: Floats
    ) -> Floats | None:
        """The deviation with the least ``weight @ abs(d)`` that moves one column by an amount, if any does."""
        width = self.matrix.shape[1]
        floor, ends = (
            np.zeros(2 * width),
            np.concatenate([np.maximum(high, 0), np.maximum(-low, 0)]),
        )
        moved = [column, width + column]
        ends[moved] = floor[moved] = max(amount, 0.0), max(-amount, 0.0)
        # Small irregular costs decide between deviations that are equally light.
        cost = np.concatenate([weight, weight]) * _factor(weight) + self._chance * _MOVE
        cost[moved] = 0.0
        # With weights of 0 or more no deviation at all is dual feasible; the last basis is neither that nor
        # feasible, and ten times slower to go on from.
        return self._both_ways(floor, ends, cost)

    def _go_on(self, program: Program) -> None:
        """Run from the last basis.

        All columns have two ends, so any basis is dual feasible once each stands at the right one, and the
        dual method goes on from it. Where ends change much, it may go in circles.
        """
        limit = _LEAST_PIVOTS + _PIVOTS_EACH * sum(self.matrix.shape)
        program.set(simplex_iteration_limit=limit)
        if program.run() != "optimal":
            # No deviation at all is always feasible, so this is a circle or numerical trouble.
            self.restarts += 1
            program.forget()
            program.set(simplex_iteration_limit=NO_LIMIT)
            program.run()


def _factor(weight: Floats) -> float:
    """A power of two that brings weights far above the small costs of moves."""
    size = np.abs(weight[weight != 0.0])
    if not size.size:
        return 1.0
    least = _UNIT / power_of_two(float(size.min()))
    return min(least, _LARGEST / power_of_two(float(size.max())))


def _mixed(columns: Sparse, duals: Floats) -> Floats:
    """What multipliers of rows give for each column, without a solver's noise."""
    for divisor in _DIVISORS:
        whole = np.rint(duals * divisor)
        if np.abs(whole - duals * divisor).max(initial=0.0) < 1e-6 * divisor:
            return np.asarray((columns @ whole.astype(np.int64)).astype(np.float64))
    mixed = cleared(sparse_product(columns, snapped(duals, 1e-9)), _BITS)
    mixed[np.abs(mixed) < 1e-9] = 0.0
    return mixed


def _program(matrix: Sparse, wider: Floats | None = None, **options: object) -> Program:
    rows = np.zeros(matrix.shape[0]) if wider is None else wider
    none = np.zeros(matrix.shape[1])
    return Program(matrix, (-rows, rows), (none, none), None, None, **(SIMPLEX | options))
