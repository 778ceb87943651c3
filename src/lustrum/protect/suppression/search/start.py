"""A first safe pattern for any table, and better ones while there is work left.

Where a basis of all deviations can be written down, everything that may be suppressed is, and cells are
published from there. Otherwise the cheapest way to protect each cell in turn gives a first pattern, and
cells are published from it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.protect.suppression.search.attacks import ProgramAttacks
from lustrum.protect.suppression.search.cuts import InfeasibleError
from lustrum.protect.suppression.search.greedy import Publisher
from lustrum.protect.suppression.search.heuristic import Witnessed, clean_up, protect_all

__all__ = ["published_pattern"]

Tell = Callable[[str, float, float], None]

_DIMENSIONS = 1600  # of a basis that is written down
_ENTRIES = 12_000_000  # of the same


def published_pattern(attacks: ProgramAttacks, work: int, tell: Tell) -> Witnessed:
    """A safe pattern that has every cell for a reason; raises where a task cannot be fulfilled."""
    tasks = attacks.tasks
    problem = tasks.problem
    every = np.flatnonzero(~problem.frozen)
    publisher = Publisher.of(tasks, every, _most(every.size))
    if publisher is None:
        state = Witnessed(attacks, problem.fixed)
        protect_all(state, problem.cost, np.arange(len(tasks)))
        tell("paths", problem.total_cost(state.suppressed), 0.0)
        near = np.flatnonzero(state.suppressed)
        publisher = Publisher.of(tasks, near, _most(near.size))
        if publisher is None:
            clean_up(state, problem.cost)
            return state
    found = publisher.first()
    if found is None:
        raise InfeasibleError(0, np.zeros(0, dtype=np.int64))
    tell("published", found.cost, 0.0)
    found = publisher.improve(found, work, lambda cost: tell("published", cost, 0.0))
    attacks.steps += publisher.steps
    return Witnessed.of(attacks, publisher.pattern(found), publisher.supports(found))


def _most(cells: int) -> int:
    return min(_DIMENSIONS, _ENTRIES // max(cells, 1))
