"""Patterns by publishing: suppress all that may be, then publish the dearest cells while all stays protected.

Cells that always move in proportion are published together, so their costs count together. After a first
pattern, part of what was published is taken back and published anew in an order with some chance in it, and the
cheaper pattern is kept (iterated greedy search). The chance is drawn from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import exp, log, normal_draws
from lustrum.numeric.solve.products import uniform
from lustrum.protect.suppression.search.attacks.attack import Attacks, program_weight
from lustrum.protect.suppression.search.attacks.cuts import Needs, Slack
from lustrum.protect.suppression.search.attacks.joint import JointWitnesses, Pool
from lustrum.protect.suppression.search.attacks.space import DeviationSpace, fixed_order
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.heuristic import WitnessedPattern
from lustrum.runtime.stop import keeping_best

DIMENSIONS = 1600  # of a basis that is written down
_WRITTEN = 12_000_000  # entries of the same

_ENTRIES = 100_000  # of a basis, which take about as long as one small program
_NOISE = (
    0.1,
    0.6,
)  # how much chance there is in the order: standard deviations of the logarithm of costs
_BACK = (0.05, 0.9)  # which share of what was published is taken back
_CHEAPER = 0.9  # by how much what a fractional point suppresses is cheaper to suppress again
_PATIENCE = 80  # patterns in a row that are no cheaper before the search ends
_FIRST_WORK = 100_000  # steps for one pattern; what is not looked at by then stays suppressed
_SEVERAL = 8  # cells to publish at once, or one after the other
_PART = 16  # of as many cells as there are dimensions are published at once, at most
_SLOWER = 4  # fewer cells at once where a task needs some of them
_TOGETHER_COST = 4  # cells published at once that count as one look
_PARALLEL = 1e-11  # a squared length below this share is none
_ROUNDED = 1e-9  # a share of a cost that may be rounding
_ROOM = 50.0  # levels; a cell that can move by more is as good as one that can move by this


@dataclass(frozen=True, eq=False)
class PublishedPattern:
    """A pattern: which places are published, the cells that give all others of these away, and witnesses."""

    shut: Mask
    basis: Ints
    pool: Pool
    cost: float


class Publisher:
    """The search for one problem, among the cells that may be suppressed."""

    def __init__(
        self, tasks: Tasks, cells: Ints, space: DeviationSpace, needs: Needs | None = None
    ) -> None:
        problem = tasks.problem
        self.tasks, self.cells, self.space = tasks, cells, space
        self.choice = problem.choice[cells]
        self.cost = problem.cost[cells]
        self.targets = np.flatnonzero(
            problem.primary[cells] & (problem.upper + problem.lower + problem.sliding > 0)[cells]
        )
        self.needs = Needs(tasks) if needs is None else needs
        self.joint = JointWitnesses(tasks, cells, self.needs)
        self.luck = np.random.default_rng(0)
        # Places that stay suppressed; no attempt is made to publish them.
        self.stay_hidden = np.zeros(cells.size, dtype=np.bool_)
        self.looks = 0
        self.end = _FIRST_WORK
        self.weight = 1 + space.basis.size // _ENTRIES

    @classmethod
    def of(
        cls, tasks: Tasks, cells: Ints, most: int, needs: Needs | None = None
    ) -> Publisher | None:
        """None where the cells have too many deviations to write a basis of them down."""
        problem = tasks.problem
        part = problem.relations[:, cells].tocsr()
        part = part[fixed_order(part)]
        # A relation takes away one dimension at most.
        if cells.size - part.shape[0] > most:
            return None
        rooms = np.minimum(problem.room_up, problem.room_down)[cells].astype(np.float64)
        level = float(max(problem.upper.max(initial=1), problem.lower.max(initial=1)))
        unit = np.clip(rooms, 1.0, _ROOM * level)
        space = DeviationSpace.of(part, unit)
        return None if space is None or space.dimension > most else cls(tasks, cells, space, needs)

    def allow_more(self) -> None:
        """Allow as much work from here on as for a first pattern."""
        self.end = self.steps + _FIRST_WORK

    @property
    def steps(self) -> int:
        """The work so far: cells looked at, dearer the larger the basis is, and programs."""
        return self.looks * self.weight + self.joint.programs * program_weight(self.cells.size)

    def first(self, x: Floats | None = None, known: Pool | None = None) -> PublishedPattern | None:
        """A pattern by the dearest groups of cells first; None where some task cannot be fulfilled.

        Where a fractional point is given, what it suppresses in part is cheap. Witnesses that are ``known``
        need not be looked for.
        """
        shut = np.zeros(self.cells.size, dtype=np.bool_)
        pool = self.joint.nothing() if known is None else known
        pool = self.joint.aimed(pool, self.space.aimed, self.luck)
        witnesses = self.joint.completed(pool, shut, self.luck)
        if witnesses is None:
            return None
        space = DeviationSpace(self.space.basis.copy(), self.space.unit)
        weight = self.cost
        if x is not None:
            chance = exp(_NOISE[0] * normal_draws(self.luck, self.cells.size))
            weight = self.cost * (1.0 - 0.999 * x[self.cells]) * chance
        return self._publish(space, shut, np.zeros(0, dtype=np.int64), witnesses, weight)

    def again(
        self,
        best: PublishedPattern,
        limit: float = np.inf,
        *,
        back: tuple[float, float] = _BACK,
        x: Floats | None = None,
    ) -> PublishedPattern | None:
        """A pattern from part of what the best one publishes; None once it must cost more than a limit.

        A share between those of ``back`` is taken back. Where a fractional point is given, what it suppresses
        in part is cheap.
        """
        least, most = log(np.array(back))
        share = float(exp(least + (most - least) * self.luck.random()))
        noise = float(uniform(self.luck, *_NOISE, 1)[0])
        still_published = best.basis[self.luck.random(best.basis.size) >= share]
        space = self.space.without(still_published)
        shut = np.zeros(self.cells.size, dtype=np.bool_)
        shut[still_published] = True
        weight = self.cost * exp(noise * normal_draws(self.luck, self.cells.size))
        if x is not None:
            weight = weight * (1.0 - _CHEAPER * x[self.cells])
        pool = [rows.copy() for rows in best.pool]
        return self._publish(space, shut, still_published, pool, weight, limit)

    def improve(
        self, best: PublishedPattern, work: int, tell: Callable[[float], object]
    ) -> PublishedPattern:
        """The cheapest of many patterns, each from the best before it; ends where ``tell`` gives True."""
        self.end = end = self.steps + work
        in_vain, patience = 0, min(_PATIENCE, 3 + int(self.choice.sum()) // 20)
        with keeping_best():
            while self.steps < end and in_vain < patience:
                candidate = self.again(best, best.cost)
                cheaper = candidate is not None and candidate.cost < best.cost
                in_vain = 0 if cheaper else in_vain + 1
                if candidate is not None and candidate.cost <= best.cost:
                    best = candidate
                if tell(best.cost):
                    break
        return best

    def pattern(self, published: PublishedPattern) -> Mask:
        """The suppressed cells, among all of the problem."""
        out = self.tasks.problem.fixed.copy()
        out[self.cells[~published.shut]] = True
        return out

    def supports(self, published: PublishedPattern) -> list[Ints]:
        return self.joint.supports(published.pool, self.tasks)

    def _publish(
        self,
        space: DeviationSpace,
        shut: Mask,
        basis: Ints,
        pool: Pool,
        weight: Floats,
        limit: float = np.inf,
    ) -> PublishedPattern | None:
        held = self.stay_hidden.copy()
        chosen = basis.tolist()
        at_once = space.dimension // _PART
        slack = Slack(self.needs, self.cells, shut)
        while self.steps < self.end:
            # What no deviation moves protects nothing.
            shut = shut | (space.idle() & self.choice)
            slack.publish(shut)
            live = np.flatnonzero(~shut & ~held & self.choice)
            if not live.size:
                break
            # What is held stays suppressed, so the pattern costs at least as much.
            if float(self.cost[held & ~shut & self.choice].sum()) > limit * (1 + _ROUNDED):
                return None
            number = space.groups(live, self.luck)
            groups = _dearest_first(live, number, weight)
            at_once = min(at_once, max(space.dimension // _PART, 1))
            picked = slack.allowed(groups, max(at_once, 1))
            if not picked:
                break
            # What was passed over is needed, and stays so as more is published.
            for members in groups[: picked[0]]:
                held[members] = True
            if at_once >= _SEVERAL and len(picked) > 1:
                some = np.sort([space.longest(groups[k]) for k in picked])
                several = self._several(space, shut, some, pool)
                if several is None:
                    at_once //= _SLOWER
                else:
                    space, pool, cells = several
                    shut[cells] = True
                    chosen.extend(cells.tolist())
                    at_once *= 2
                continue
            members = groups[picked[0]]
            cell = space.longest(members)
            self.looks += 1
            shadow = space.shadow(cell)
            witnesses = None
            if not space.gives_away(cell, shadow, self.targets):
                less = shut.copy()
                less[cell] = True
                witnesses = self._without(space, pool, cell, shadow, less)
            if witnesses is None:
                held[members] = True
                at_once = 1
                continue
            pool = witnesses
            shut[cell] = True
            chosen.append(cell)
            space.publish(cell, shadow)
            at_once = max(2 * at_once, 1)
        for rows in pool:
            rows[:, shut] = 0.0
        cost = float(self.cost[~shut & self.choice].sum())
        return PublishedPattern(shut, np.array(chosen, dtype=np.int64), pool, cost)

    def _several(
        self, space: DeviationSpace, shut: Mask, some: Ints, pool: Pool
    ) -> tuple[DeviationSpace, Pool, Ints] | None:
        """The space, witnesses and cells when several are published at once; None where a task needs some."""
        self.looks += 1 + some.size // _TOGETHER_COST
        cells = space.independent(some)
        fewer = space.without(cells)
        if bool((fewer.lengths[self.targets] < _PARALLEL * space.lengths[self.targets]).any()):
            return None
        less = shut.copy()
        less[cells] = True

        def aim(places: Ints, moves: Floats) -> Floats:
            row = fewer.aimed(places, moves)
            row[less] = 0.0
            return row

        bent = []
        for rows in pool:
            projected = fewer.projected(rows)
            projected[:, less] = 0.0
            bent.append(projected)
        witnesses = self.joint.completed(self.joint.aimed(bent, aim, self.luck), less, self.luck)
        return None if witnesses is None else (fewer, witnesses, cells)

    def _without(
        self, space: DeviationSpace, pool: Pool, cell: int, shadow: Floats, less: Mask
    ) -> Pool | None:
        """Witnesses that do not move one cell more; None where some task needs it."""
        direction = space.direction(cell, shadow)

        def aim(places: Ints, moves: Floats) -> Floats:
            row = space.aimed(places, moves)
            row -= row[cell] * direction
            row[less] = 0.0
            return row

        witnesses = self.joint.aimed(self.joint.bent(pool, cell, direction, less), aim, self.luck)
        return self.joint.completed(witnesses, less, self.luck, cell)


def _dearest_first(live: Ints, number: Ints, weight: Floats) -> list[Ints]:
    """The groups of cells, those first whose weights sum up to most."""
    price = np.bincount(number, weights=weight[live])
    order = np.argsort(number, kind="stable")
    ends = [0, *np.cumsum(np.bincount(number)).tolist()]
    ordered = live[order]
    return [ordered[ends[k] : ends[k + 1]] for k in np.argsort(-price, kind="stable").tolist()]


def spread_out(rows: Floats, cells: Ints, count: int) -> Floats:
    """Deviations of some cells as deviations of all."""
    out = np.zeros((rows.shape[0], count))
    out[:, cells] = rows
    return out


def witnessed(
    attacks: Attacks, publisher: Publisher, published: PublishedPattern
) -> WitnessedPattern:
    return WitnessedPattern.of(attacks, publisher.pattern(published), publisher.supports(published))


def most_dimensions(cells: int, dimensions: int = DIMENSIONS) -> int:
    """How many dimensions a basis of deviations of some cells may have."""
    return min(dimensions, _WRITTEN // max(cells, 1))
