"""The stages of a search: what errors cost in each kind of table, and how temperatures fall."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from math import inf

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.arithmetic import power
from lustrum.protect.population.search.forces import Costs
from lustrum.protect.population.search.layout import TablePlan

_QUANTILES = 4096
_REACH = 4096


@dataclass(frozen=True)
class ErrorCost:
    """The cost of an error ``e``: ``quadratic * e**2 + quartic * e**4``, and ``steep * (abs(e) - beyond)**2``
    on top of it where ``abs(e)`` is larger than ``beyond``; all whole numbers."""

    quadratic: int
    quartic: int = 0
    steep: int = 0
    beyond: int = 0

    @classmethod
    def scaled(
        cls, quadratic: float, quartic: float, steep: float, beyond: int, base: int
    ) -> ErrorCost:
        """Costs meant for base 3, for errors that grow with the base."""
        ratio = base / 3
        return cls(
            round(quadratic * ratio * ratio),
            round(quartic),
            round(steep * ratio * ratio),
            round(beyond * ratio),
        )

    def __rmul__(self, factor: int) -> ErrorCost:
        return ErrorCost(
            factor * self.quadratic, factor * self.quartic, factor * self.steep, self.beyond
        )

    def of(self, error: Array) -> Array:
        """The cost of every error."""
        over = np.maximum(np.abs(error) - self.beyond, 0)
        return np.asarray(
            self.quadratic * error**2 + self.quartic * error**4 + self.steep * over**2
        )


@dataclass(frozen=True)
class Stage:
    """Some sweeps over the tables of one plan, with a cost for each kind of table.

    Temperatures fall geometrically from ``hot`` to ``cold``, in units of what a flip costs where all tables
    are exact. With ``beyond`` a sweep visits only cells that lie in a table cell with a larger error, those of
    extra tables left aside. An exchange whose first tables cost ``lost`` temperatures too much is given up
    before the others are looked at. Along each variable ``rings`` neighbours are tried for swaps, and
    ``near`` for exchanges. A sweep visits at most a share ``most`` of all cells. A move is worked out if
    it seems to cost at most ``slack`` temperatures too much; near a steep wall that says little. After the last
    sweep a walk of up to ``walk`` steps takes away errors larger than ``beyond``. With ``to_the_end`` those of
    extra tables count too, and the stage is over as soon as no such error is left. Tables that a block shares
    with others cost what ``shared_costs`` say.
    """

    plan: TablePlan
    sweeps: int
    hot: float
    cold: float
    costs: tuple[ErrorCost, ...]
    beyond: int = 0
    lost: float = inf
    near: int = 8
    rings: int = 8
    most: float = 1.0
    slack: float = 0.5
    walk: int = 0
    to_the_end: bool = False
    shared_costs: tuple[ErrorCost, ...] = ()

    def rises(self, step: int) -> Array:
        """What a step up costs in each kind of table, at every error from ``-reach`` to ``reach``."""
        error = np.arange(-_REACH, _REACH + step + 1, dtype=np.int64)
        # Tables with single finest cells cost nothing.
        rows = [cost.of(error) for cost in (*self.costs, ErrorCost(0), *self.shared_costs)]
        return np.stack([row[step:] - row[:-step] for row in rows])

    def costs_of(self, step: int) -> Costs:
        """What steps cost, as the compiled search wants it."""
        rise = self.rises(step)
        down = rise[:, ::-1]
        most = (2**31 - 1) // max(1, self.plan.layout.run_first.size)
        force = np.clip(np.stack([rise - down, rise + down], axis=2), -most, most)
        return Costs(
            rise,
            np.ascontiguousarray(force.astype(np.int32)),
            self.shares(rise),
            self.pair_shares(rise),
            _exponential_quantiles(),
        )

    def weights(self, rises: Array) -> Array:
        """What a step costs in each kind of table where there is no error."""
        return np.asarray(rises[:, _REACH], dtype=np.float64)

    def shares(self, rises: Array) -> Array:
        """For every node, the weight of the tables that have it among all tables."""
        layout, weights = self.plan.layout, self.weights(rises)
        entries = weights[layout.nodes.kind]
        total = np.r_[0.0, np.cumsum(entries)]
        share = total[layout.nodes.first[1:]] - total[layout.nodes.first[:-1]]
        return np.asarray(share / self._unit(weights))

    def pair_shares(self, rises: Array) -> Array:
        """For every pair of nodes, the weight of the tables that have both among all tables."""
        layout, weights = self.plan.layout, self.weights(rises)
        total = np.r_[0.0, np.cumsum(weights[layout.pairs.kind])]
        share = total[layout.pairs.first[1:]] - total[layout.pairs.first[:-1]]
        return np.asarray(share / self._unit(weights))

    def _unit(self, weights: Array) -> float:
        layout = self.plan.layout
        return float(
            sum(
                weights[row[first:stop]].sum()
                for first, stop, row in zip(
                    layout.run_first, layout.run_stop, layout.kind, strict=True
                )
            )
        )

    def temperature(self, sweep: int, rises: Array) -> float:
        """The temperature of a sweep, a whole number so that all machines agree."""
        share = sweep / max(1, self.sweeps - 1)
        unit = self._unit(self.weights(rises))
        return float(round(unit * self.hot * float(power(self.cold / self.hot, share))))


@cache
def _exponential_quantiles() -> Array:
    """Quantiles of the exponential distribution in fixed point, the same on every machine."""
    with localcontext() as context:
        context.prec = 30
        middles = ((Decimal(2 * j + 1) / (2 * _QUANTILES)) for j in range(_QUANTILES))
        exact = [int((-m.ln() * 2**20).to_integral_value()) for m in middles]
    return np.array(exact, dtype=np.float64) / 2**20
