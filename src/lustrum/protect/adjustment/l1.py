"""The least sum of weighted absolute changes: by linear programs for given directions, or exactly.

Every change is split into a rise and a fall. For given directions that is a linear program. A direction
that cannot be kept may fall short at a cost, so that there is always a solution to improve. With the
directions as 0/1 variables it is the mixed program of Dandekar and Cox (2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Indices, Ints
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.products import power_of_two
from lustrum.protect.adjustment.problem import AdjustmentProblem, as_floats
from lustrum.protect.adjustment.work import WholeProgram, Work

_TOP = 1e3  # the largest weight inside a solver, whose tolerance is 1e-7
_PENALTY = 100.0 * _TOP
_RULED_OUT = 2**60  # a level this large means that a cell cannot move that way
_LARGEST_LEVEL = 2.0**20
_TIE = 2.0**-22  # of the least cost, over all directions: what decides between equal ones


@dataclass(frozen=True, eq=False)
class DirectedMovement:
    """Directions, the real movement of all groups, how far directions fall short, and the total cost."""

    directions: Ints
    moved: Floats
    short: float
    cost: float
    pull: Floats

    @property
    def feasible(self) -> bool:
        """Whether every direction is kept."""
        return self.short <= 1e-6


class Directed:
    """The linear program for given directions; each solve starts from the previous one."""

    def __init__(self, problem: AdjustmentProblem) -> None:
        self.problem = problem
        self.unit, self.scale = _unit(problem), _scale(problem)
        count, choices = problem.low.size, problem.places.size
        rows = problem.relations.shape[0]
        pick = sparse.csr_array(
            (np.ones(choices), (np.arange(choices), problem.places)), shape=(choices, count)
        )
        one = sparse.eye_array(choices, format="csr")
        none = sparse.csr_array((rows, choices))
        relations = problem.relations.astype(np.float64)
        matrix = sparse.block_array(
            [[relations, -relations, none, none], [pick, -pick, one, -one]], format="csc"
        )
        low, high = split_bounds(problem, self.unit)
        self._first = rows
        self._program = WholeProgram(
            matrix,
            (np.zeros(rows + choices), np.zeros(rows + choices)),
            (
                np.concatenate([low, np.zeros(2 * choices)]),
                np.concatenate([high, np.full(2 * choices, np.inf)]),
            ),
            np.concatenate([np.tile(problem.weights * self.scale, 2), self._penalty()]),
            presolve="off",
        )
        self._shown: Ints | None = None

    def _penalty(self) -> Floats:
        return np.full(2 * self.problem.places.size, _PENALTY)

    def solve(self, directions: Ints, work: Work | None = None) -> DirectedMovement | None:
        """The least cost with these directions, or None if there is none."""
        problem, count = self.problem, self.problem.low.size
        changed = (
            np.arange(directions.size)
            if self._shown is None
            else np.flatnonzero(self._shown != directions)
        )
        up = directions[changed] > 0
        self._program.bound_rows(
            changed + self._first,
            np.where(up, problem.up[changed] / self.unit, -np.inf),
            np.where(up, np.inf, -problem.down[changed] / self.unit),
        )
        self._shown = directions.copy()
        answer = self._program.solve(work)
        if answer.point is None or answer.prices is None:
            return None
        x = answer.point
        short = float(x[2 * count :].sum()) * self.unit
        moved = (x[:count] - x[count : 2 * count]) * self.unit
        factor = self.unit / self.scale
        pull = answer.prices[self._first :] / self.scale
        return DirectedMovement(directions.copy(), moved, short, answer.value * factor, pull)

    def mark(self) -> tuple[object, Ints | None]:
        """The present basis of the program."""
        return self._program.basis, self._shown

    def back(self, mark: tuple[object, Ints | None]) -> None:
        """Return to a basis; the next solve sets the directions."""
        self._program.basis = mark[0]


def improve(
    directed: Directed,
    start: DirectedMovement,
    work: Work,
    passes: int = 3,
    *,
    tries: int | None = None,
    until_feasible: bool = False,
) -> DirectedMovement:
    """Flip one direction at a time while that lowers the cost, or until every direction is kept.

    The cost is convex in the position of a cell, so its price times the distance to the other side bounds
    the gain of a flip; flips without a possible gain are not tried.
    """
    problem = directed.problem
    way = (problem.up + problem.down).astype(np.float64)
    best, tried = start, 0
    for _ in range(passes):
        before = best.cost
        order = np.argsort(-np.abs(best.pull) * way, kind="stable")
        for choice in order.tolist():
            hope = best.pull[choice] * best.directions[choice] * way[choice]
            if hope <= 1e-9 * (1.0 + best.cost):
                continue
            enough = tries is not None and tried >= tries
            if work.late or enough or (until_feasible and best.feasible):
                return best
            tried += 1
            mark = directed.mark()
            turned = best.directions.copy()
            turned[choice] = -turned[choice]
            candidate = directed.solve(turned, work)
            if candidate is not None and candidate.cost < best.cost - 1e-9 * (1.0 + best.cost):
                best = candidate
            else:
                directed.back(mark)
        if best.cost > before * (1.0 - 1e-3):
            break
    return best


class MixedProgram:
    """The mixed program with a 0/1 variable for each direction; some or all of them may be open."""

    def __init__(
        self, problem: AdjustmentProblem, ceiling: float, *, relaxed: bool = False
    ) -> None:
        """``ceiling`` is an achievable cost; it limits how far a cell can move in an optimum."""
        self.problem = problem
        self.unit, self.scale = _unit(problem), _scale(problem)
        count, choices = problem.low.size, problem.places.size
        relations = problem.relations.astype(np.float64)
        rows = relations.shape[0]
        low, high = split_bounds(problem, self.unit)
        reach = 1.001 * ceiling / problem.weights[problem.places] / self.unit + 1.0
        # A direction that is ruled out has an infinite level, which the solver cannot take; the variable of
        # the choice is fixed instead.
        no_rise, no_fall = problem.up >= _RULED_OUT, problem.down >= _RULED_OUT
        self._least, self._most = no_fall.astype(np.float64), 1.0 - no_rise.astype(np.float64)
        up = np.where(no_rise, 0, problem.up) / self.unit
        down = np.where(no_fall, 0, problem.down) / self.unit
        rise = np.maximum(up, np.minimum(high[problem.places], reach))
        fall = np.maximum(down, np.minimum(high[count + problem.places], reach))
        pick = sparse.csr_array(
            (np.ones(choices), (np.arange(choices), problem.places)), shape=(choices, count)
        )
        zero = sparse.csr_array((choices, count))
        matrix = sparse.block_array(
            [
                [relations, -relations, sparse.csr_array((rows, choices))],
                [pick, zero, -sparse.diags_array(up)],
                [pick, zero, -sparse.diags_array(rise)],
                [zero, pick, sparse.diags_array(down)],
                [zero, pick, sparse.diags_array(fall)],
            ],
            format="csc",
        )
        free, none = np.full(choices, np.inf), np.zeros(choices)
        row_low = np.concatenate([np.zeros(rows), none, -free, down, -free])
        row_high = np.concatenate([np.zeros(rows), free, none, free, fall])
        # Small irregular costs of rises decide between directions that are equally good.
        least = np.minimum(problem.up, problem.down) * problem.weights[problem.places]
        chance = 1.0 + np.random.default_rng(choices).random(choices)
        ties = chance * (float(least.sum()) * self.scale / self.unit * _TIE / max(choices, 1))
        self._ties = 0.0 if relaxed else float(ties.sum())
        self._program = WholeProgram(
            matrix,
            (row_low, row_high),
            (np.concatenate([low, self._least]), np.concatenate([high, self._most])),
            np.concatenate([np.tile(problem.weights * self.scale, 2), none if relaxed else ties]),
            whole=None if relaxed else np.arange(2 * count, 2 * count + choices),
            mip_rel_gap=0.0,
            mip_abs_gap=0.0,
        )

    def rounded(self, start: DirectedMovement, work: Work | None) -> Ints:
        """Directions from the relaxed program: each variable rounded to its nearer side."""
        answer = self._program.solve(work)
        if answer.point is None:
            return start.directions
        lean = answer.point[2 * self.problem.low.size :] - 0.5
        return np.where(np.abs(lean) < 1e-6, start.directions, np.sign(lean)).astype(np.int64)

    def solve(
        self,
        start: DirectedMovement,
        open_choices: Indices,
        work: Work | None,
        nodes: int | None = None,
    ) -> tuple[Ints, float, Outcome]:
        """The best open directions with the others fixed, and a lower bound of the cost.

        With a number of nodes only a search that finishes changes directions: what one that is cut short has
        met by then depends on the solver's way, which differs between processors.
        """
        count = self.problem.low.size
        chosen = np.clip((start.directions > 0).astype(np.float64), self._least, self._most)
        low, high = chosen.copy(), chosen.copy()
        low[open_choices] = self._least[open_choices]
        high[open_choices] = self._most[open_choices]
        ends = self._program.low.copy(), self._program.high.copy()
        ends[0][2 * count :], ends[1][2 * count :] = low, high
        self._program.bound(*ends)
        if start.feasible:
            moved = start.moved / self.unit
            split = (np.maximum(moved, 0.0), np.maximum(-moved, 0.0), chosen)
            self._program.start(np.concatenate(split))
        answer = self._program.solve(work, nodes)
        factor = self.unit / self.scale
        unfinished = nodes is not None and answer.outcome is not Outcome.OPTIMAL
        if answer.point is None or unfinished:
            bound = (answer.bound - self._ties) * factor
            return start.directions, bound, answer.outcome
        directions = np.where(answer.point[2 * count :] > 0.5, 1, -1).astype(np.int64)
        return directions, max((answer.bound - self._ties) * factor, 0.0), answer.outcome


def split_bounds(problem: AdjustmentProblem, unit: float) -> tuple[Floats, Floats]:
    """Bounds of all rises, then of all falls."""
    low, high = as_floats(problem.low) / unit, as_floats(problem.high) / unit
    return (
        np.concatenate([np.maximum(low, 0.0), np.maximum(-high, 0.0)]),
        np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0)]),
    )


def _unit(problem: AdjustmentProblem) -> float:
    """A power of two that scales movements to a size at which solvers are accurate."""
    forced = np.concatenate([problem.up, problem.down, problem.low, -problem.high]).astype(float)
    largest = float(np.where(np.abs(forced) < 2.0**60, forced, 0.0).max(initial=1.0))
    return max(1.0, power_of_two(largest) / _LARGEST_LEVEL)


def _scale(problem: AdjustmentProblem) -> float:
    return _TOP / float(problem.weights.max(initial=1e-300))
