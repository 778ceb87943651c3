"""The least sum of weighted squares for given directions: a convex quadratic program without choices.

Castro (2006) adjusts tables this way, and spreads the change over many cells instead of a few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.products import cleared
from lustrum.numeric.solve.quadratic import QuadraticProblem, minimise_quadratic
from lustrum.protect.adjustment.problem import AdjustmentProblem, as_floats
from lustrum.protect.adjustment.work import Work
from lustrum.runtime.stop import check_stop

Signs = npt.NDArray[np.int64]

_TOLERANCE = 1e-8
_BITS = 20  # of a movement, in steps of the table, and of a pressure
CHEAPER = 1e-6  # a cost that is lower by a smaller share is the same, for all that a solver tells
_STEPS = 1000  # the work of a quadratic program, in steps of linear ones


@dataclass(frozen=True, eq=False)
class SquaredMovement:
    """Directions, the real movement of all groups, its weighted squares, and the pressure on each direction."""

    directions: Signs
    moved: Floats
    cost: float
    pull: Floats
    residual: float


def least_squares(
    problem: AdjustmentProblem, directions: Signs, work: Work | None = None
) -> SquaredMovement | None:
    """The optimum for these directions, or None if they cannot be kept or the work ran out."""
    low, high = problem.bounds(directions)
    if bool((low > high).any()):
        return None
    check_stop()
    if work is not None:
        work.spend(_STEPS)
    scale = 1.0 / max(float(problem.weights.max(initial=0.0)), 1e-300)
    # Solve the smaller system: that of the free movements, or that of the relations between groups.
    by_relations = problem.span.shape[1] > problem.relations.shape[0]
    matrix = problem.relations if by_relations else problem.rest
    optimum = minimise_quadratic(
        QuadraticProblem(
            2.0 * problem.weights * scale,
            np.zeros(low.size),
            matrix,
            np.zeros(matrix.shape[0]),
            as_floats(low),
            as_floats(high),
            span=None if by_relations else problem.floats,
        ),
        tolerance=_TOLERANCE,
    )
    if optimum.outcome is not Outcome.OPTIMAL or optimum.point is None or optimum.pressure is None:
        return None
    pull = optimum.pressure[problem.places] / scale
    # The optimum is the same everywhere, the last digits of what approaches it need not be.
    moved = cleared(optimum.point, _BITS)
    pull = cleared(pull, _BITS, max(float(np.abs(pull).max(initial=0.0)), 1e-300))
    return SquaredMovement(
        directions.copy(), moved, problem.distance(moved, "l2"), pull, optimum.residual
    )


def improve_squares(
    problem: AdjustmentProblem, start: SquaredMovement, work: Work, tries: int = 12
) -> SquaredMovement:
    """Flip the direction under the most pressure, and keep the flip if it lowers the cost."""
    way = (problem.up + problem.down).astype(np.float64)
    best, failed = start, set[int]()
    for _ in range(tries):
        hope = best.pull * best.directions * way
        order = [c for c in np.argsort(-hope, kind="stable").tolist() if c not in failed]
        if not order or hope[order[0]] <= 1e-9 * best.cost or work.late:
            break
        turned = best.directions.copy()
        turned[order[0]] = -turned[order[0]]
        candidate = least_squares(problem, turned, work)
        failed.add(order[0])
        if candidate is not None and candidate.cost < best.cost * (1.0 - CHEAPER):
            best = candidate
    return best
