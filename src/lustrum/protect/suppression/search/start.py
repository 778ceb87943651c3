"""A first safe pattern for any table, and better ones while there is work left.

Where a basis of all deviations can be written down, everything that may be suppressed is, and cells are
published from there. Otherwise boxes of cells, or the cheapest way to protect each cell in turn, give a first
pattern, and cells are published from it and some cheap cells beside it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.anew import FreshPatterns
from lustrum.protect.suppression.search.attacks.attack import Attacks, ProgramAttacks
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.joint import Pool
from lustrum.protect.suppression.search.attacks.needs import Needs
from lustrum.protect.suppression.search.boxes.boxes import protect_by_boxes
from lustrum.protect.suppression.search.greedy import (
    DIMENSIONS,
    PublishedPattern,
    Publisher,
    most_dimensions,
    spread_out,
    witnessed,
)
from lustrum.protect.suppression.search.heuristic import WitnessedPattern, clean_up, protect_all

Tell = Callable[[str, float, float], object]

_WITH_BOXES = (
    400  # dimensions of a basis of all cells, where boxes give a first pattern more quickly
)
_WHOLE = 400  # dimensions of a basis of all cells with which patterns are made anew from the whole
_HARDLY = 1e-3  # a share of a cell that counts as none
_TRIES = 2  # times the work of a first pattern that goes into better ones among the same cells
_TRIES_MOST = 2000  # steps of the same
_BESIDE = 0.3  # cheap cells beside a first pattern, for each of its cells


class FirstPattern:
    """The best safe pattern so far, and others among its cells and those that a fractional point suppresses."""

    def __init__(
        self,
        attacks: Attacks,
        suppressed: Mask,
        needs: Needs,
        whole: tuple[Publisher, PublishedPattern] | None = None,
    ) -> None:
        self.attacks, self.needs = attacks, needs
        self.anew = FreshPatterns(attacks, needs, whole)
        self.best = suppressed
        self.luck = np.random.default_rng(0)
        self._pool: Pool | None = None  # witnesses of the best pattern, over all cells

    def near(self, x: Floats) -> WitnessedPattern | None:
        """A safe pattern near a fractional point; None where the space of such patterns is too large.

        Cells that neither the best pattern nor the point suppresses stay published, so that the basis of
        what the others can do together is small.
        """
        if self.anew.whole is not None:
            return self.anew.near(x)
        problem = self.attacks.tasks.problem
        cells = np.flatnonzero((self.best | problem.fixed | (x > _HARDLY)) & ~problem.frozen)
        publisher = Publisher.of(self.attacks.tasks, cells, most_dimensions(cells.size), self.needs)
        if publisher is None:
            return None
        publisher.luck = self.luck
        # What moves cells of the best pattern alone moves them here too.
        known = None if self._pool is None else [rows[:, cells] for rows in self._pool]
        candidate = publisher.first(x, known)
        if candidate is not None:
            work = min(_TRIES * publisher.steps, _TRIES_MOST)
            candidate = publisher.improve(candidate, work, lambda cost: None)
        self.attacks.steps += publisher.steps
        if candidate is None:
            return None
        least, cost = (
            problem.total_cost(self.best),
            problem.total_cost(publisher.pattern(candidate)),
        )
        if cost <= least:
            self.best = publisher.pattern(candidate)
            self._pool = [spread_out(rows, cells, problem.values.size) for rows in candidate.pool]
        if cost < least:
            return witnessed(self.attacks, publisher, candidate)
        return WitnessedPattern(self.attacks, publisher.pattern(candidate))


def published_pattern(
    attacks: ProgramAttacks, work: int, tell: Tell
) -> tuple[WitnessedPattern, FirstPattern | None]:
    """A safe pattern that has every cell for a reason; raises where a task cannot be fulfilled."""
    tasks = attacks.tasks
    problem = tasks.problem
    every = np.flatnonzero(~problem.frozen)
    # A cell that can move one way only, as one of value 0, is of no use to a deviation and its opposite.
    room = np.minimum(problem.room_up, problem.room_down)
    both_ways = np.flatnonzero(~problem.frozen & (problem.fixed | (room > 0)))
    needs = Needs(tasks)
    dimensions = DIMENSIONS if problem.axes is None else _WITH_BOXES
    publisher = Publisher.of(tasks, both_ways, most_dimensions(both_ways.size, dimensions), needs)
    candidate = None if publisher is None else publisher.first()
    if candidate is None and both_ways.size < every.size:
        publisher = Publisher.of(tasks, every, most_dimensions(every.size, dimensions), needs)
    whole = publisher is not None and publisher.space.dimension <= _WHOLE
    if publisher is None:
        boxed = protect_by_boxes(problem, tell)
        if boxed is not None and not boxed.without.size:
            suppressed = boxed.suppressed | problem.fixed
        else:
            state = WitnessedPattern(attacks, problem.fixed)
            protect_all(state, problem.cost, np.arange(len(tasks)))
            tell("paths", problem.total_cost(state.suppressed), 0.0)
            suppressed = state.suppressed
        near = _with_cheap_cells(problem, suppressed)
        publisher = Publisher.of(tasks, near, most_dimensions(near.size), needs)
        if publisher is None:
            state = WitnessedPattern(attacks, suppressed)
            protect_all(state, problem.cost, np.arange(len(tasks)))
            clean_up(state, problem.cost)
            return state, None
    if candidate is None:
        candidate = publisher.first()
    if candidate is None:
        raise InfeasibleError(0, np.zeros(0, dtype=np.int64))
    tell("published", candidate.cost, 0.0)
    candidate = publisher.improve(candidate, work, lambda cost: tell("published", cost, 0.0))
    attacks.steps += publisher.steps
    state = witnessed(attacks, publisher, candidate)
    again = (publisher, candidate) if whole else None
    return state, FirstPattern(attacks, state.suppressed, needs, again)


def _with_cheap_cells(problem: SuppressionProblem, suppressed: Mask) -> Ints:
    """The cells of a pattern and the cheapest others, in a number that grows with the pattern."""
    mask = suppressed.copy()
    others = np.flatnonzero(problem.choice & ~mask)
    more = int(_BESIDE * suppressed.sum())
    mask[others[np.argsort(problem.cost[others], kind="stable")[:more]]] = True
    return np.flatnonzero(mask)
