"""A good safe pattern in seconds: cheap paths in a few orders, then publish what their union does not need.

The cheapest way to protect each cell in turn depends on the order of the cells and misses partners that
several cells could share. So it is repeated with other orders and somewhat other prices, drawn from a fixed
seed, and cells are published from the union of all these patterns. The union is small, so that a basis of its
deviations is small too; nothing is proven about the cheapest pattern.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model.arrays import Mask
from lustrum.numeric.arithmetic import exp, normal_draws
from lustrum.protect.suppression.search.attacks.attack import Attacks, ProgramAttacks
from lustrum.protect.suppression.search.greedy import DIMENSIONS, Publisher
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, clean_up, protect_all

Tell = Callable[[str, float, float], object]

_RUNS = 3  # patterns by paths whose union is published from
_CHANCE = 0.5  # the standard deviation of the logarithm of prices after the first run
_FEW = 200  # cells up to which the cheapest others join a small union
_WORK = 300  # steps of a search for cheaper patterns


def union_of_paths(attacks: Attacks, runs: int = _RUNS) -> tuple[Mask, WitnessedPattern]:
    """The cells of a few safe patterns, and the first of these; raises where a task cannot be fulfilled."""
    cost = attacks.tasks.problem.cost
    luck = np.random.default_rng(0)
    order = np.arange(len(attacks.tasks))
    first = WitnessedPattern(attacks, attacks.tasks.problem.fixed)
    protect_all(first, cost, order)
    union = first.suppressed.copy()
    for _ in range(runs - 1):
        attacks.forget_prices()
        state = WitnessedPattern(attacks, attacks.tasks.problem.fixed)
        prices = cost * exp(_CHANCE * normal_draws(luck, cost.size))
        protect_all(state, prices, luck.permutation(order))
        union |= state.suppressed
    attacks.forget_prices()
    return union, first


def quick_pattern(attacks: Attacks, tell: Tell) -> WitnessedPattern:
    """A safe pattern that has every cell for a reason; raises where a task cannot be fulfilled."""
    problem = attacks.tasks.problem
    networks = not isinstance(attacks, ProgramAttacks)
    union, state = union_of_paths(attacks, 1 if networks else _RUNS)
    tell("paths", problem.total_cost(state.suppressed), 0.0)
    if not networks:
        others = np.flatnonzero(problem.choice & ~union)
        room = max(_FEW - int(union.sum()), 0)
        union[others[np.argsort(problem.cost[others], kind="stable")[:room]]] = True
        publisher = Publisher.of(attacks.tasks, np.flatnonzero(union), DIMENSIONS)
        candidate = None if publisher is None else publisher.first()
        if publisher is not None and candidate is not None:
            candidate = publisher.improve(
                candidate, _WORK, lambda cost: tell("published", cost, 0.0)
            )
            attacks.steps += publisher.steps
            pattern = publisher.pattern(candidate)
            if problem.total_cost(pattern) <= problem.total_cost(state.suppressed):
                return WitnessedPattern.of(attacks, pattern, publisher.supports(candidate))
    clean_up(state, problem.cost)
    return state
