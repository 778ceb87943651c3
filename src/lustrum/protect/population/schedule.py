"""Which stages a search has: how many sweeps over which tables, what errors cost there, and temperatures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from lustrum.model import Dataset
from lustrum.protect.population.public import (
    FEW_SWEEPS,
    LARGEST,
    SEARCH_OF_MANY_CODES,
    search_version,
)
from lustrum.protect.population.search.layout import TablePlan
from lustrum.protect.population.search.plan import Shared, plan_tables
from lustrum.protect.population.search.stages import ErrorCost, Stage
from lustrum.runtime.stop import still_working

_WALLS = ((10_000, 0.003), (50_000, 0.002), (200_000, 0.002), (1_000_000, 0.002))
"""How steeply costs rise beyond the largest error aimed at, and temperatures: what is mended at little cost is
mended first."""
_REPAIR = 0.25
"""How many more sweeps over the few cells that still lie in a large error there are for every sweep."""
_WALK = 1500
"""How many moves a walk makes at most to take the last large errors away."""
_LOST = 3.0
"""An exchange is given up when its first tables cost so many temperatures too much."""
_WALL = 50_000
"""How steeply costs rise in the last stages of few sweeps."""
_END, _END_SHARE, _END_WALK = 16, 1 / 16, 400
"""How many more sweeps there are at most until no error is large, each over about this share of all cells at
most, and how many moves a walk makes for those that are left."""
_SHARED_SWEEPS, _SHARED_WEIGHT = 2, 8
"""How many sweeps a block makes in a turn for tables that it shares, and how much an error in them costs beside
one in its own."""
_FINE = 64
"""Costs of shared tables are parts of those of own ones, so that all are multiplied by this."""


@dataclass(frozen=True)
class Schedule:
    """The stages of a method; see :class:`~lustrum.protect.population.method.ProtectedPopulation`."""

    base: int
    sweeps: int
    max_variables: int
    tables: tuple[tuple[str, ...], ...]
    own_weight: int
    extra_tables: int

    def plan(self, dataset: Dataset, shared: Shared | None = None) -> TablePlan:
        """All tables that are kept close."""
        return plan_tables(
            dataset, self.max_variables, self.tables, extra_tables=self.extra_tables, shared=shared
        )

    def stages(self, dataset: Dataset) -> tuple[Stage, ...]:
        """Tables at finest levels, all tables, then large errors: with many sweeps by ever steeper costs."""
        finest = plan_tables(dataset, self.max_variables, self.tables, finest_only=True)
        still_working()
        every = self.plan(dataset)

        # Costs were tuned for base 3; errors grow with the base.
        def cost(quadratic: float, quartic: float, steep: float = 0, beyond: int = 0) -> ErrorCost:
            return ErrorCost.scaled(quadratic, quartic, steep, beyond, self.base)

        weight = self.own_weight
        first, second = cost(200, 1), cost(200, 1, 200, 7)
        extra = cost(12, 0, 100, 8)

        def steep_costs(steep: float, beyond: int, extra: ErrorCost) -> tuple[ErrorCost, ...]:
            finest = cost(200, 1, steep, beyond)
            return cost(20, 0, steep, beyond), finest, weight * finest, extra

        many = self.sweeps > FEW_SWEEPS
        # With few sweeps there is no time to look far.
        near = 4 if many else max(2, self.sweeps - 4)
        mend: tuple[Stage, ...] = tuple(
            Stage(
                every,
                max(1, self.sweeps // 12),
                heat,
                heat,
                steep_costs(steep, 10, cost(12, 0)),
                near=near,
            )
            for steep, heat in _WALLS
        )
        large = max(1, round(10 * self.base / 3))
        repair = Stage(
            every,
            max(1, int(_REPAIR * self.sweeps)),
            0.002,
            0.002,
            mend[-1].costs,
            beyond=large,
            near=16,
            rings=32,
            most=1 / 16,
            slack=inf,
            walk=_WALK,
        )
        if many:
            # What the walk spoils elsewhere is mended by a last sweep, which makes no large errors again.
            mend = (*mend, repair, mend[-1], replace(repair, sweeps=1))
        else:
            large = max(1, round(9 * self.base / 3))
            steeper = steep_costs(50_000, 9, extra)
            mend = (Stage(every, self.sweeps // 4, 0.003, 0.002, steeper, beyond=large, near=near),)
        stages = (
            Stage(
                finest,
                max(1, self.sweeps // 3),
                0.12 if many else 0.03,
                0.06 if many else 0.03,
                (cost(50, 1), first, weight * first, extra),
                lost=_LOST,
                near=2,
            ),
            Stage(
                every,
                max(1, 5 * self.sweeps // 6),
                0.03,
                0.004,
                (cost(20, 0, 200, 7), second, weight * second, extra),
                lost=_LOST,
                near=near,
            ),
            *(stage for stage in mend if stage.sweeps),
        )
        return (*stages, self._to_the_end(stages[-1], max(len(v.codes) for v in dataset.variables)))

    def _to_the_end(self, last: Stage, most_codes: int) -> Stage:
        """Go on over cells in large errors until none is left, by counted sweeps.

        A move changes a thousand table cells. An error that is left in one of them costs less than the move
        would in all the others, unless a steep wall stands behind it.
        """
        if search_version(self.sweeps, most_codes) == SEARCH_OF_MANY_CODES:
            finest = ErrorCost.scaled(200, 1, _WALL, 9, self.base)
            coarser, extra = (ErrorCost.scaled(q, 0, _WALL, 9, self.base) for q in (20, 12))
            costs: tuple[ErrorCost, ...] = coarser, finest, self.own_weight * finest, extra
            return Stage(
                last.plan,
                _END,
                0.002,
                0.002,
                costs,
                beyond=max(1, round(10 * self.base / 3)),
                near=16,
                rings=32,
                most=_END_SHARE,
                slack=inf,
                walk=_END_WALK,
                to_the_end=True,
            )
        wall = ErrorCost.scaled(0, 0, _WALL, 27, self.base)
        costs = tuple(
            cost
            if cost.steep >= wall.steep
            else replace(cost, steep=wall.steep, beyond=wall.beyond)
            for cost in last.costs
        )
        return Stage(
            last.plan,
            _END,
            0.002,
            0.002,
            costs,
            beyond=LARGEST * self.base,
            near=4,
            most=_END_SHARE,
            walk=_END_WALK,
            to_the_end=True,
        )

    def last_pass(self, plan: TablePlan, others: int) -> tuple[Stage, ...]:
        """What a block does for the tables that it shares, while so many others have their turn after it.

        Each takes over an even part of the errors that are there: an error costs less in shared tables than in
        own ones, the less the more blocks can still mend it. Without others the turn is for large errors that
        are left after all have had theirs.
        """

        def costs(steep: float, factor: int) -> tuple[ErrorCost, ...]:
            def cost(quadratic: float, quartic: float) -> ErrorCost:
                return factor * ErrorCost.scaled(quadratic, quartic, steep, 10, self.base)

            return cost(20, 0), cost(200, 1), self.own_weight * cost(200, 1), cost(12, 0)

        own = costs(_WALLS[1][0], _FINE)
        part = costs(200, max(_SHARED_WEIGHT * _FINE // max(others, 1), 1))
        stage = Stage(plan, _SHARED_SWEEPS, 0.004, 0.002, own, shared_costs=part, near=4)
        if others:
            return (stage,)
        end = self._to_the_end(stage, max(len(v.codes) for v in plan.dataset.variables))
        return (replace(end, shared_costs=end.costs),)
