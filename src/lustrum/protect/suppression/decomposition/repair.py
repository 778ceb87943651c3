"""From a pattern that protects every sub-table to one that protects the whole table, without idle cells."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model.arrays import Mask
from lustrum.protect.suppression.search.attacks.attack import Attacks
from lustrum.protect.suppression.search.greedy import Publisher, witnessed
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, clean_up, protect_all

Tell = Callable[[str, float, float], object]

_DIMENSIONS = 1600  # of a basis that is written down


def repaired(attacks: Attacks, suppressed: Mask, tell: Tell) -> WitnessedPattern:
    """Attack the whole table, suppress more where a level is not kept, then publish what is not needed."""
    problem = attacks.tasks.problem
    state = WitnessedPattern(attacks, suppressed)
    every = np.arange(len(attacks.tasks))
    short = state.look(every)
    protect_all(state, problem.cost, short)
    tell("repaired", problem.total_cost(state.suppressed), 0.0)
    cells = np.flatnonzero(state.suppressed & ~problem.frozen)
    publisher = Publisher.of(attacks.tasks, cells, _DIMENSIONS)
    published = None if publisher is None else publisher.first()
    if publisher is None or published is None:
        clean_up(state, problem.cost)
        return state
    attacks.steps += publisher.steps
    candidate = witnessed(attacks, publisher, published)
    if problem.total_cost(candidate.suppressed) < problem.total_cost(state.suppressed):
        return candidate
    return state
