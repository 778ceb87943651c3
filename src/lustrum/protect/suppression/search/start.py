"""Safe patterns before anything is proven: a good one in seconds, or a first one to be improved.

The quick pattern takes the cheapest way to protect each cell in turn. That depends on the order of the cells
and misses partners that several cells could share. So where a table is no network it is repeated with other
orders and somewhat other prices, drawn from a fixed seed, and cells are published from the union of all these
patterns. The union is small, so that a basis of its deviations is small too.

The first pattern of a longer search publishes cells from all that may be suppressed, where a basis of all
deviations can be written down. Otherwise boxes of cells, or the cheapest way to protect each cell in turn,
give a pattern, and cells are published from it and some cheap cells beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import exp, normal_draws
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.anew import FreshPatterns
from lustrum.protect.suppression.search.attacks.attack import Attacks, FlowAttacks, ProgramAttacks
from lustrum.protect.suppression.search.attacks.cuts import InfeasibleError, Needs
from lustrum.protect.suppression.search.attacks.joint import Pool
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.boxes import protect_by_boxes
from lustrum.protect.suppression.search.greedy import (
    DIMENSIONS,
    PublishedPattern,
    Publisher,
    most_dimensions,
    spread_out,
    witnessed,
)
from lustrum.protect.suppression.search.heuristic import (
    WitnessedPattern,
    clean_up,
    improve,
    protect_all,
)
from lustrum.protect.suppression.search.parts import cut_out

Tell = Callable[[str, float, float], object]

_WITH_BOXES = (
    400  # dimensions of a basis of all cells, where boxes give a first pattern more quickly
)
_WHOLE = 400  # dimensions of a basis of all cells with which patterns are made anew from the whole
_HARDLY = 1e-3  # a share of a cell that counts as none
_TRIES = 2  # times the work of a first pattern that goes into better ones among the same cells
_TRIES_MOST = 2000  # steps of the same
_BESIDE = 0.3  # cheap cells beside a first pattern, for each of its cells
_RUNS = 3  # quick patterns by paths whose union is published from
_CHANCE = 0.5  # the standard deviation of the logarithm of prices after the first run
_FEW = 200  # cells up to which the cheapest others join a small union
_WORK = 300  # steps of a search for cheaper quick patterns
_WORK_FLOWS = 2000  # the same for networks, in attacks
_NARROWED = 5000  # cells of a network from which on only some are looked at
_LAYERS = 3  # forests for each size of levels
_STEP = 4  # the ratio between sizes of levels that are looked at


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
    attacks: ProgramAttacks, work: int, tell: Tell, begin: Mask | None = None
) -> tuple[WitnessedPattern, FirstPattern | None]:
    """A safe pattern that has every cell for a reason; raises where a task cannot be fulfilled.

    Where there is a pattern to ``begin`` with, that fulfils most tasks, it is made near this one, which takes
    a small part of the time.
    """
    tasks = attacks.tasks
    problem = tasks.problem
    every = np.flatnonzero(~problem.frozen)
    # A cell that can move one way only, as one of value 0, is of no use to a deviation and its opposite.
    room = np.minimum(problem.room_up, problem.room_down)
    both_ways = np.flatnonzero(~problem.frozen & (problem.fixed | (room > 0)))
    needs = Needs(tasks)
    dimensions = DIMENSIONS if problem.axes is None else _WITH_BOXES
    publisher = candidate = None
    if begin is None:
        most = most_dimensions(both_ways.size, dimensions)
        publisher = Publisher.of(tasks, both_ways, most, needs)
        candidate = None if publisher is None else publisher.first()
        if candidate is None and both_ways.size < every.size:
            publisher = Publisher.of(tasks, every, most_dimensions(every.size, dimensions), needs)
    whole = publisher is not None and publisher.space.dimension <= _WHOLE
    if publisher is None:
        boxed = None if begin is not None else protect_by_boxes(problem, tell)
        if boxed is not None and not boxed.without.size:
            suppressed = boxed.suppressed | problem.fixed
        else:
            known = problem.fixed if begin is None else begin | problem.fixed
            state = WitnessedPattern(attacks, known)
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


def quick_pattern(attacks: Attacks, work: int | None, tell: Tell) -> Mask:
    """A safe pattern that has every cell for a reason; raises where a task cannot be fulfilled."""
    problem = attacks.tasks.problem
    if isinstance(attacks, FlowAttacks):
        return _quick_in_network(attacks, work, tell)
    union, state = union_of_paths(attacks)
    tell("paths", problem.total_cost(state.suppressed), 0.0)
    others = np.flatnonzero(problem.choice & ~union)
    room = max(_FEW - int(union.sum()), 0)
    union[others[np.argsort(problem.cost[others], kind="stable")[:room]]] = True
    publisher = Publisher.of(attacks.tasks, np.flatnonzero(union), DIMENSIONS)
    candidate = None if publisher is None else publisher.first()
    if publisher is not None and candidate is not None:
        steps = _WORK if work is None else min(work, _WORK)
        candidate = publisher.improve(candidate, steps, lambda cost: tell("published", cost, 0.0))
        attacks.steps += publisher.steps
        pattern = publisher.pattern(candidate)
        if problem.total_cost(pattern) <= problem.total_cost(state.suppressed):
            return pattern
    clean_up(state, problem.cost)
    return state.suppressed


def _quick_in_network(attacks: FlowAttacks, work: int | None, tell: Tell) -> Mask:
    """The cheapest paths, in a large network among few cells, and then without one cell after the other."""
    problem = attacks.tasks.problem
    steps = _WORK_FLOWS if work is None else min(work, _WORK_FLOWS)
    every = np.flatnonzero(~problem.frozen)
    for cells in (_carriers(attacks), every) if len(problem) > _NARROWED else (every,):
        few = attacks if cells is every else _narrowed(attacks, cells)
        fixed = few.tasks.problem.fixed
        state, cost = WitnessedPattern(few, fixed), few.tasks.problem.cost
        try:
            protect_all(state, cost, np.arange(len(few.tasks)))
        except InfeasibleError:
            if cells is every:
                raise
            continue  # other cells may help
        tell("paths", few.tasks.problem.total_cost(state.suppressed), 0.0)
        clean_up(state, cost)
        tell("cleaned up", few.tasks.problem.total_cost(state.suppressed), 0.0)
        state = improve(state, cost, steps)
        if few is attacks:
            return state.suppressed
        attacks.steps += few.steps
        out = problem.fixed.copy()
        out[cells[state.suppressed]] = True
        return out
    raise AssertionError


def _carriers(attacks: FlowAttacks) -> Ints:
    """The cells of some forests, the cheapest for each size of levels among the cells that can move that far.

    The cheapest cells alone would not do: where a cell costs as much as its value, they are too small to carry
    a large level.
    """
    from lustrum.protect.suppression.search.attacks.network_kernels import forests

    problem = attacks.tasks.problem
    room = np.minimum(problem.room_up, problem.room_down)
    live = np.flatnonzero(~problem.frozen)
    cost = np.where(problem.fixed, -1.0, problem.cost)[live]
    rising = live[np.argsort(cost, kind="stable")]
    out = problem.fixed.copy()
    size, largest = 1, int(attacks.tasks.level.max(initial=1))
    while True:
        some = rising[room[rising] >= size]
        layer = forests(attacks.tail, attacks.head, some, attacks.nodes, _LAYERS)
        out[some[layer < _LAYERS]] = True
        if size >= largest:
            return np.flatnonzero(out)
        size = min(_STEP * size, largest)


def _narrowed(attacks: FlowAttacks, cells: Ints) -> FlowAttacks:
    """The same attacks with all other cells published, as a problem of deviations: its values are 0."""
    problem = attacks.tasks.problem
    values = problem.values
    views = tuple(
        replace(view, low=view.low - values[view.cells], high=view.high - values[view.cells])
        for view in problem.views
    )
    moved = replace(
        problem,
        values=np.zeros_like(values),
        low=problem.low - values,
        high=problem.high - values,
        views=views,
        names=None,
        unions=None,
        axes=None,
    )
    used = np.flatnonzero(np.diff(problem.relations[:, cells].tocsr().indptr))
    network = attacks.tail[cells], attacks.head[cells], attacks.nodes
    return FlowAttacks(Tasks.of(cut_out(moved, cells, used)), network)
