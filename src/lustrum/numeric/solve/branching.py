"""Whole optima of covering programs, the same on every processor.

HiGHS proves most of them quickest. With small irregular costs an optimum is the only one, and only what is
proven is used (:func:`finished_search`): where a search stands that is cut short depends on its way. For these
there is a search of our own that takes one way everywhere (:func:`search_whole`).

Least ``cost @ x`` over x of 0 and 1 with ``matrix @ x >= side``. Each node asks two programs: one for the least
cost, which is a single number whatever optimum a solver meets, and one with small irregular costs added,
which has a single optimum to branch on. Nothing else of a solver's way is used: no multipliers, no basis, no
count of its steps. So the search decides alike everywhere, also where it ends before it is finished. Columns
to branch on are chosen by what they raised the least cost before, tried out at first (reliability branching).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Floats, Indices, Sparse
from lustrum.numeric.solve.highs import FINE, SIMPLEX, Program, single_optimum
from lustrum.numeric.solve.products import cleared, dot, power_of_two

_WHOLE = 1e-6  # a value this near to a whole number is one
_VALUE_BITS = 32  # of a least cost, in units of all costs together
_SCORE_BITS = 20  # of what columns are compared by
_TRIED = 8  # columns that are tried out at a node, at most
_RELIABLE = 2  # times that a column was branched on or tried out before what it raised is believed
_PROGRAMS = 8  # for each node that is allowed, at most


# The caller has patterns of its own; searches within searches take most of the time otherwise.
_NO_HEURISTICS: dict[str, object] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_feasibility_jump": False,
    # Few of the cuts that HiGHS finds itself are worth their place among ours.
    "mip_pool_soft_limit": 200,
}


@dataclass(frozen=True, eq=False)
class WholeSearch:
    """The best x found, the cost that none is below, how many programs that took, and whether all was seen."""

    x: Floats | None
    bound: float
    programs: int
    finished: bool


def finished_search(
    matrix: Sparse,
    side: Floats,
    cost: Floats,
    nodes: int,
    below: float = np.inf,
) -> WholeSearch | None:
    """The same by HiGHS; None where it does not finish within these nodes."""
    irregular, limit = cost, below
    if bool((cost == np.rint(cost)).all()):
        # All together are less than 1/2, so that the best with them is one of the best without. Other costs
        # have no ties.
        chance = 1.0 + np.random.default_rng(cost.size).random(cost.size)
        irregular = cost + chance / (4.0 * cost.size)
        limit = np.ceil(below - 1e-6) - 0.5
    program = Program(
        matrix,
        (side, np.full(side.size, np.inf)),
        (np.zeros(cost.size), np.ones(cost.size)),
        irregular,
        np.arange(cost.size),
        mip_rel_gap=0.0,
        mip_abs_gap=0.0,
        mip_max_nodes=nodes,
        **_NO_HEURISTICS,
    )
    if np.isfinite(below):
        program.set(objective_bound=limit)
    ended = program.run()
    if ended in ("infeasible", "bound"):
        return WholeSearch(None, np.inf, 0, True)
    if ended != "optimal":
        return None
    x = np.round(program.point)
    least = dot(cost, x)
    return WholeSearch(x if least + 1e-9 * (1.0 + least) < below else None, least, 0, True)


def search_whole(
    matrix: Sparse,
    side: Floats,
    cost: Floats,
    nodes: int,
    below: float = np.inf,
) -> WholeSearch:
    """Search within a number of nodes for the cheapest x that costs less than ``below``."""
    return _Search(matrix, side, cost, below).run(nodes)


class _Search:
    def __init__(self, matrix: Sparse, side: Floats, cost: Floats, below: float) -> None:
        self.cost = cost
        rows = side, np.full(side.size, np.inf)
        ends = np.zeros(cost.size), np.ones(cost.size)
        fine: dict[str, object] = {"dual_feasibility_tolerance": FINE, **SIMPLEX}
        self._value = Program(matrix, rows, ends, cost, None, **SIMPLEX)
        self._point = Program(matrix, rows, ends, single_optimum(cost), None, **fine)
        self._whole = bool((cost == np.rint(cost)).all())
        self._grid = power_of_two(float(np.abs(cost).sum()) or 1.0)
        self.best: Floats | None = None
        self.least = below
        self.programs = 0
        # How much a column raised the least cost in proportion, down and up, and how often that was seen.
        self._raised = np.zeros((2, cost.size))
        self._seen = np.zeros((2, cost.size), dtype=np.int64)

    def run(self, nodes: int) -> WholeSearch:
        zero, one = np.zeros(self.cost.size), np.ones(self.cost.size)
        waiting: list[tuple[float, int, Floats, Floats]] = []
        node: tuple[Floats, Floats] | None = (zero, one)
        value, number, seen = -np.inf, 0, 0
        while node is not None or waiting:
            if node is None:
                value, _, *ends = heapq.heappop(waiting)
                node = ends[0], ends[1]
                if self._is_dear(value):
                    return self._found(np.inf, True)  # all others are at least as dear
            if seen >= nodes or self.programs >= nodes * _PROGRAMS:
                heapq.heappush(waiting, (value, number + 1, *node))
                return self._found(min(one[0] for one in waiting), False)
            seen += 1
            value = max(value, self._least(*node))
            branches = None if self._is_dear(value) else self._branched(value, *node)
            if branches is None:
                node = None
                continue
            value, near, far = branches
            number += 1
            heapq.heappush(waiting, (value, -number, *far))
            node = near
        return self._found(np.inf, True)

    def _found(self, bound: float, finished: bool) -> WholeSearch:
        # Least costs are rounded, up at times.
        bound -= 0.0 if finished else math.ldexp(self._grid, -_VALUE_BITS)
        return WholeSearch(self.best, min(bound, self.least), self.programs, finished)

    def _is_dear(self, value: float) -> bool:
        """Whether nothing that is looked for costs this much."""
        least = np.ceil(value - 1e-6) if self._whole else value
        step = 1.0 - 1e-6 if self._whole else 1e-9 * (1.0 + abs(self.least))
        return bool(least > self.least - step)

    def _branched(
        self, value: float, low: Floats, high: Floats
    ) -> tuple[float, tuple[Floats, Floats], tuple[Floats, Floats]] | None:
        """The least cost of a node and its two parts, the one to go on with first; None where it is done."""
        while True:
            x = self._solved(self._point, low, high)
            if x is None:
                return None
            x = cleared(np.clip(x, 0.0, 1.0), 26)
            off = np.flatnonzero(np.abs(x - np.rint(x)) > _WHOLE)
            if not off.size:
                cost = dot(self.cost, np.rint(x))
                if cost < self.least:
                    self.best, self.least = np.rint(x), cost
                off = np.flatnonzero(low < high)
                # The small costs may prefer another x than the cheapest.
                if self._is_dear(value) or cost <= value + 1e-6 * (1 + abs(value)) or not off.size:
                    return None
            column, forced = self._column(x, off, value, low, high)
            parts = [(low, _at(high, column, 0.0)), (_at(low, column, 1.0), high)]
            if forced is not None:
                # One part holds nothing that is looked for.
                (low, high), value = parts[forced[0]], max(value, forced[1])
                if self._is_dear(value):
                    return None
                continue
            gains = self._raised[0, column] * x[column], self._raised[1, column] * (1 - x[column])
            up = int(gains[1] <= gains[0])
            return value, parts[up], parts[1 - up]

    def _column(
        self, x: Floats, off: Indices, value: float, low: Floats, high: Floats
    ) -> tuple[int, tuple[int, float] | None]:
        """The column to branch on; where one part holds nothing, also the other and its least cost."""
        order = off[np.argsort(np.abs(x[off] - 0.5), kind="stable")]
        trusted = self._seen[:, order].min(axis=0) >= _RELIABLE
        for column in order[~trusted][:_TRIED].tolist():
            ends: list[float] = []
            for way in (0, 1):
                part = (low, _at(high, column, 0.0)) if way == 0 else (_at(low, column, 1.0), high)
                ends.append(max(self._least(*part), value))
                self._note(way, column, ends[way] - value, x[column])
            dear = [self._is_dear(end) for end in ends]
            if any(dear):
                return column, (int(dear[0]), ends[int(dear[0])])
        known = np.where(self._seen > 0, self._raised, 0.0)
        score = np.maximum(known[0, order] * x[order], 1e-6 * self._unit)
        score = score * np.maximum(known[1, order] * (1.0 - x[order]), 1e-6 * self._unit)
        size = float(score.max())
        return int(order[int(np.argmax(cleared(score, _SCORE_BITS, size)))]), None

    @property
    def _unit(self) -> float:
        return float(self.cost.max(initial=1.0)) or 1.0

    def _note(self, way: int, column: int, rise: float, x: float) -> None:
        """Take in by how much a part costs more than the whole, for each unit by which the column moved."""
        moved = x if way == 0 else 1.0 - x
        if not np.isfinite(rise) or moved < _WHOLE:
            rise, moved = self._unit, 1.0
        count = self._seen[way, column]
        self._raised[way, column] = (self._raised[way, column] * count + rise / moved) / (count + 1)
        self._seen[way, column] += 1

    def _least(self, low: Floats, high: Floats) -> float:
        """The least cost of the linear program, rounded; infinite where it has no point."""
        if self._solved(self._value, low, high) is None:
            return np.inf
        return float(cleared(np.array([self._value.value]), _VALUE_BITS, self._grid)[0])

    def _solved(self, program: Program, low: Floats, high: Floats) -> Floats | None:
        self.programs += 1
        program.bound(low, high)
        return program.point if program.finds() else None


def _at(ends: Floats, column: int, value: float) -> Floats:
    out = ends.copy()
    out[column] = value
    return out
