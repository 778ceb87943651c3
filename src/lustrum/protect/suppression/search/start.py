"""A first safe pattern for any table, and better ones while there is work left.

Where a basis of all deviations can be written down, everything that may be suppressed is, and cells are
published from there. Otherwise boxes of cells, or the cheapest way to protect each cell in turn, give a first
pattern, and cells are published from it and some cheap cells beside it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lustrum.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import Attacks, ProgramAttacks
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError
from lustrum.protect.suppression.search.attacks.joint import Pool
from lustrum.protect.suppression.search.attacks.needs import Needs
from lustrum.protect.suppression.search.boxes.boxes import protect_by_boxes
from lustrum.protect.suppression.search.greedy import Published, Publisher
from lustrum.protect.suppression.search.heuristic import Witnessed, clean_up, protect_all

__all__ = ["FirstPattern", "published_pattern"]

Tell = Callable[[str, float, float], None]

_WITH_BOXES = (
    400  # dimensions of a basis of all cells, where boxes give a first pattern more quickly
)
_DIMENSIONS = 1600  # of any other basis that is written down
_ENTRIES = 12_000_000  # of the same
_HARDLY = 1e-3  # a share of a cell that counts as none
_TRIES = 2  # times the work of a first pattern that goes into better ones among the same cells
_TRIES_AROUND = 1  # the same around one cell of a pattern
_AROUND = 60  # cheap cells around it
_ANEW = 80  # cells of the pattern near it that may be published; the others stay as they are
_FAR = 2  # relations between that cell and these
_CHANCE = 0.5  # standard deviation of the logarithm of how near a cell is
_BESIDE = 0.3  # cheap cells beside a first pattern, for each of its cells


class FirstPattern:
    """The best safe pattern so far, and others among its cells and those that a fractional point suppresses."""

    def __init__(self, attacks: Attacks, suppressed: Mask, needs: Needs) -> None:
        self.attacks, self.needs = attacks, needs
        self.best = suppressed
        self.luck = np.random.default_rng(0)
        self._pool: Pool | None = None  # witnesses of the best pattern, over all cells

    def near(self, x: Floats) -> Witnessed | None:
        """A safe pattern near a fractional point; None where the space of such patterns is too large.

        Cells that neither the best pattern nor the point suppresses stay published, so that the basis of
        what the others can do together is small.
        """
        problem = self.attacks.tasks.problem
        cells = np.flatnonzero((self.best | problem.fixed | (x > _HARDLY)) & ~problem.frozen)
        return self._among(cells, _TRIES, x)

    def around(self, suppressed: Mask) -> Witnessed | None:
        """A safe pattern among the cells of one and some cheap cells that lie near each other.

        These, and what the pattern suppresses near them, are published anew in an order with some chance in
        it. Of patterns that cost the same the last one is gone on from.
        """
        problem = self.attacks.tasks.problem
        if problem.total_cost(suppressed) < problem.total_cost(self.best):
            self.best, self._pool = suppressed.copy(), None
        mine = np.flatnonzero(self.best & problem.choice)
        others = np.flatnonzero(problem.choice & ~self.best)
        if not mine.size or not others.size:
            return None
        matrix = abs(problem.relations)
        spread = np.zeros(suppressed.size)
        spread[self.luck.choice(mine)] = 1.0
        near = np.zeros(suppressed.size)
        for _ in range(_FAR):
            spread = matrix.T @ (matrix @ spread)
            spread /= spread.sum()
            near += spread
        chance = np.exp(_CHANCE * self.luck.standard_normal(others.size))
        value = near[others] * chance / np.maximum(problem.cost[others], 1.0)
        more = others[np.argsort(-value, kind="stable")[:_AROUND]]
        kept = mine[np.argsort(-near[mine], kind="stable")[_ANEW:]]
        cells = np.union1d(np.flatnonzero(self.best), more)
        return self._among(cells, _TRIES_AROUND, kept=kept)

    def _among(
        self, cells: Ints, tries: int, x: Floats | None = None, kept: Ints | None = None
    ) -> Witnessed | None:
        """A safe pattern that suppresses some of the cells; what a point suppresses in part is cheap."""
        problem = self.attacks.tasks.problem
        publisher = Publisher.of(self.attacks.tasks, cells, _most(cells.size), self.needs)
        if publisher is None:
            return None
        publisher.luck = self.luck
        if kept is not None:
            publisher.kept = np.isin(cells, kept)
        # What moves cells of the best pattern alone moves them here too.
        known = None if self._pool is None else [rows[:, cells] for rows in self._pool]
        found = publisher.first(np.zeros(problem.values.size) if x is None else x, known)
        if found is not None:
            found = publisher.improve(found, tries * max(publisher.steps, 1), lambda cost: None)
        self.attacks.steps += publisher.steps
        if found is None:
            return None
        least, cost = problem.total_cost(self.best), problem.total_cost(publisher.pattern(found))
        if cost <= least:
            self.best = publisher.pattern(found)
            self._pool = [_spread_out(rows, cells, problem.values.size) for rows in found.pool]
        if cost < least:
            return witnessed(self.attacks, publisher, found)
        return Witnessed(self.attacks, publisher.pattern(found))


def _spread_out(rows: Floats, cells: Ints, count: int) -> Floats:
    """Deviations of some cells as deviations of all."""
    out = np.zeros((rows.shape[0], count))
    out[:, cells] = rows
    return out


def witnessed(attacks: Attacks, publisher: Publisher, found: Published) -> Witnessed:
    """A pattern that was published, with a witness for each task."""
    return Witnessed.of(attacks, publisher.pattern(found), publisher.supports(found))


def published_pattern(
    attacks: ProgramAttacks, work: int, tell: Tell
) -> tuple[Witnessed, FirstPattern | None]:
    """A safe pattern that has every cell for a reason; raises where a task cannot be fulfilled."""
    tasks = attacks.tasks
    problem = tasks.problem
    every = np.flatnonzero(~problem.frozen)
    # A cell that can move one way only, as one of value 0, is of no use to a deviation and its opposite.
    room = np.minimum(problem.room_up, problem.room_down)
    both_ways = np.flatnonzero(~problem.frozen & (problem.fixed | (room > 0)))
    needs = Needs(tasks)
    dimensions = _DIMENSIONS if problem.axes is None else _WITH_BOXES
    publisher = Publisher.of(tasks, both_ways, _most(both_ways.size, dimensions), needs)
    found = None if publisher is None else publisher.first()
    if found is None and both_ways.size < every.size:
        publisher = Publisher.of(tasks, every, _most(every.size, dimensions), needs)
    if publisher is None:
        boxed = protect_by_boxes(problem, tell)
        if boxed is not None and not boxed.without.size:
            suppressed = boxed.suppressed | problem.fixed
        else:
            state = Witnessed(attacks, problem.fixed)
            protect_all(state, problem.cost, np.arange(len(tasks)))
            tell("paths", problem.total_cost(state.suppressed), 0.0)
            suppressed = state.suppressed
        near = _with_cheap_cells(problem, suppressed)
        publisher = Publisher.of(tasks, near, _most(near.size), needs)
        if publisher is None:
            state = Witnessed(attacks, suppressed)
            protect_all(state, problem.cost, np.arange(len(tasks)))
            clean_up(state, problem.cost)
            return state, None
    if found is None:
        found = publisher.first()
    if found is None:
        raise InfeasibleError(0, np.zeros(0, dtype=np.int64))
    tell("published", found.cost, 0.0)
    found = publisher.improve(found, work, lambda cost: tell("published", cost, 0.0))
    attacks.steps += publisher.steps
    state = witnessed(attacks, publisher, found)
    return state, FirstPattern(attacks, state.suppressed, needs)


def _with_cheap_cells(problem: SuppressionProblem, suppressed: Mask) -> Ints:
    """The cells of a pattern and the cheapest others, in a number that grows with the pattern."""
    mask = suppressed.copy()
    others = np.flatnonzero(problem.choice & ~mask)
    more = int(_BESIDE * suppressed.sum())
    mask[others[np.argsort(problem.cost[others], kind="stable")[:more]]] = True
    return np.flatnonzero(mask)


def _most(cells: int, dimensions: int = _DIMENSIONS) -> int:
    return min(dimensions, _ENTRIES // max(cells, 1))
