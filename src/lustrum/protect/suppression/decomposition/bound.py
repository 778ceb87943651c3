"""A lower bound from parts of a table: each part alone needs at least something, of costs that are shared out.

A pattern that protects the whole table protects every part too, where fewer relations are known. So the
optimum of the linear program of a part is a lower bound. What its multipliers do not use of a cell's cost is
left for the other parts that hold the cell, and the bounds of all parts add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lustrum.model.arrays import Floats
from lustrum.protect.suppression.decomposition.subtables import SubTable
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import Attacks, attacks_on
from lustrum.protect.suppression.search.attacks.tasks import Tasks
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
