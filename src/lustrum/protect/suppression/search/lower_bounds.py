"""What no safe pattern costs less than, without a search among patterns.

In each relation others must carry what a primary cell needs (:func:`simple_bound`). And a pattern that
protects the whole table protects every part too, where fewer relations are known: the optimum of the linear
program of a part is a lower bound. What its multipliers do not use of a cell's cost is left for the other
parts that hold the cell, and the bounds of all parts add up (:func:`bound_by_parts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import Attacks, attacks_on
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.decomposition import SubTable
from lustrum.protect.suppression.search.exact import BranchAndCut
from lustrum.protect.suppression.search.heuristic import WitnessedPattern
from lustrum.protect.suppression.search.parts import cut_out
from lustrum.runtime.stop import keeping_best

_ROUNDS = 30  # of cuts for one part
_LITTLE = 1e-3  # a rise of the bound by less than this share is hardly any
_STALLED = 3  # rounds with hardly any rise


def bound_by_parts(problem: SuppressionProblem, parts: Iterable[SubTable]) -> tuple[float, int]:
    """What no safe pattern costs less than, and the steps that took."""
    left, total, steps = problem.cost.copy(), 0.0, 0
    with keeping_best():  # the bounds of some parts are a bound too
        for part in parts:
            asked = problem.primary & (problem.upper + problem.lower + problem.sliding > 0)
            if not bool(asked[part.cells].any()):
                continue
            sub_problem = cut_out(problem, part.cells, part.rows).with_cost(left[part.cells])
            # Where sums of cells are judged, a secondary cell may be of use without a companion.
            attacks = attacks_on(Tasks.of(replace(sub_problem, unions=problem.unions)))
            bound, rest = _part_bound(attacks)
            left[part.cells] = rest
            total += bound
            steps += attacks.steps
    return total, steps


def _part_bound(attacks: Attacks) -> tuple[float, Floats]:
    """The bound of one part, and which costs it leaves to others."""
    problem = attacks.tasks.problem
    search = BranchAndCut(attacks, WitnessedPattern(attacks, ~problem.frozen), 0, _nothing)
    if not search.choice.size or not search.separate(np.zeros(search.choice.size)):
        return 0.0, problem.cost
    bound, rest = 0.0, problem.cost.copy()
    stalled = 0
    for _ in range(_ROUNDS):
        relaxed = search.program.relax()
        if relaxed is None:
            break
        if relaxed.bound > bound:
            stalled = 0 if relaxed.bound - bound > _LITTLE * relaxed.bound else stalled + 1
            bound = relaxed.bound
            # A multiplier of the end x <= 1 uses the cost of its cell up, and no more than that.
            rest[search.choice] = np.clip(relaxed.reduced, 0.0, problem.cost[search.choice])
        else:
            stalled += 1
        if stalled >= _STALLED or not search.separate(relaxed.x):
            break
    return bound, rest


def _nothing(what: str, cost: float, bound: float) -> None:
    """Nobody is told about parts."""


def simple_bound(problem: SuppressionProblem) -> float:
    """A lower bound without any attack: in each relation others must carry what a primary cell needs.

    What the cells suppressed in any case carry is taken off the level. Different relations may be met by the
    same cell, so what a relation takes of a cell's cost is no longer there for the next (dual ascent). A
    secondary cell needs a companion itself in relations without a primary cell; in a second ascent it takes
    over what the cheapest companion costs.
    """
    rows = [_needs(problem, row) for row in _rows_of(problem, problem.primary)]
    needs = [need for row_needs in rows for need in row_needs]
    plain = _ascent(needs, problem.cost.copy())
    if problem.unions is not None:
        return plain
    return max(plain, _ascent(needs, _with_companions(problem, needs)))


def _rows_of(problem: SuppressionProblem, cells: Mask) -> Ints:
    return np.flatnonzero(abs(problem.relations) @ cells.astype(np.int64))


def _needs(problem: SuppressionProblem, row: int) -> list[tuple[Ints, Floats]]:
    """For the primary cells of one relation: cells of which enough must be suppressed, and their weights."""
    matrix = problem.relations
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    cells, weights = matrix.indices[span], matrix.data[span]
    out = []
    for index in np.flatnonzero(problem.primary[cells]).tolist():
        cell = cells[index]
        times = -weights / weights[index]
        best: tuple[float, Ints, Floats] | None = None
        for sign, level in ((1, int(problem.upper[cell])), (-1, int(problem.lower[cell]))):
            rises = sign * times > 0
            room = np.where(rises, problem.room_up[cells], problem.room_down[cells])
            carried = np.abs(times) * room
            carried[index] = 0.0
            side = level - float(carried[problem.fixed[cells]].sum())
            useful = problem.choice[cells] & (carried > 0)
            if side <= 0 or not bool(useful.any()):
                continue
            if best is None or side > best[0]:
                best = side, cells[useful], np.minimum(carried[useful] / side, 1.0)
        if best is not None:
            out.append((best[1], best[2]))
    return out


def _ascent(needs: list[tuple[Ints, Floats]], left: Floats) -> float:
    total = 0.0
    for cells, weights in needs:
        least = float((left[cells] / weights).min())
        if least > 0:
            left[cells] -= least * weights
            total += least
    # What rounding may have added is taken off.
    return max(total * (1.0 - 1e-9), 0.0)


def _with_companions(problem: SuppressionProblem, needs: list[tuple[Ints, Floats]]) -> Floats:
    """Costs in which useful cells carry the cost of a companion in each relation without a primary cell."""
    matrix, left = problem.relations, problem.cost.copy()
    useful = np.zeros(left.size, dtype=np.bool_)
    for cells, _ in needs:
        useful[cells] = True
    free = (abs(matrix) @ problem.fixed.astype(np.int64) == 0) & (
        abs(matrix) @ useful.astype(np.int64) == 1
    )
    for row in np.flatnonzero(free).tolist():
        cells = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        cells = cells[problem.choice[cells]]
        others = cells[~useful[cells]]
        if others.size:
            least = float(left[others].min())
            left[others] -= least
            left[cells[useful[cells]]] += least
    return left
