"""The search for directions and amounts that keep the cells of all controlled tables close to the truth.

The noise of sensitive cells is left as it is. All other cells have a cost for their relative error, a little
higher in tables of few cells than in tables of many. Costs are weighted again before every sweep. In the first
sweeps the cost grows with the square of an error, which settles directions where several giants share cells. In
the last sweeps it is nearly the absolute error, so that a few cells with a giant do not outweigh all others.
Work is bounded by sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from lustrum.model.arrays import Array, Floats, Ints, Mask, Words
from lustrum.model.keys import scramble
from lustrum.numeric.arithmetic import power
from lustrum.protect.magnitudes.kernels import add_amounts, balance, largest_parts, rank_owners
from lustrum.protect.magnitudes.units import MeasureFamily, Units
from lustrum.protect.population.search.layout import TablePlan
from lustrum.protect.population.start import derived
from lustrum.runtime.stop import check_stop, report_progress

_FAR, _CLOSE = 0.2, 0.001
"""Relative errors below this cost as squares do, in the first sweep and in the last."""
_TOTAL = 1000.0
"""How much more an error of the total costs than its being the only cell of its table would make it."""

_GROUP = 16
"""Half of so many leading owners of about the same size go up."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """The absolute total and the two largest contributors of every controlled cell. Confidential.

    ``net`` is the sum that is published but for its noise: gains and losses may cancel in it.
    """

    total: Ints
    first: Ints
    second: Ints
    net: Ints

    def __repr__(self) -> str:
        return "Ranking(hidden)"

    @property
    def rest(self) -> Ints:
        return self.total - self.first - self.second

    def sensitive(self, share: tuple[int, int]) -> Mask:
        """Cells that are sensitive by the p% rule; ``share`` is p as numerator and denominator."""
        top, bottom = share
        rest, first = self.rest, self.first
        if int(self.total.max(initial=0)) >= 2**62 // max(top, bottom):
            # Products may exceed 64 bits.
            rest, first = rest.astype(object), first.astype(object)
        return np.asarray((self.total > 0) & (rest * bottom < first * top), dtype=np.bool_)


def rank_cells(plan: TablePlan, units: Units, values: Ints) -> Ranking:
    """Rank the owners of every controlled cell."""
    ranking = np.zeros((plan.cells, 5), dtype=np.int64)
    ranking[:, 4] = -1
    rank_owners(plan.layout, units.codes, units.owner, values, ranking)
    total, first, second = (np.ascontiguousarray(ranking[:, c]) for c in range(3))
    net = total
    if (values < 0).any():
        sums = np.zeros((plan.cells, 1))
        add_amounts(plan.layout, units.codes, values[:, None].astype(np.float64), sums)
        net = np.rint(sums[:, 0]).astype(np.int64)
    return Ranking(total, first, second, net)


def leading_owners(plan: TablePlan, units: Units, values: Ints, scale: Floats, part: float) -> Mask:
    """Owners of a record that is more than this part of a cell whose error costs something.

    They keep the direction that the key draws. If the search chose it, the second largest contributor of a cell
    could guess the direction of the largest one from its own.
    """
    parts = np.zeros(units.owner.size)
    largest_parts(plan.layout, units.codes, np.abs(values).astype(np.float64), scale, parts)
    leading = np.zeros(units.sign.size, dtype=np.bool_)
    leading[units.owner[parts > part]] = True
    return leading


def balance_leaders(units: Units, values: Ints, leading: Mask, secret: Words) -> None:
    """Let half of the leading owners of about the same size go up, in place: those that the key draws.

    So their noise cancels in totals. The direction of one says little about that of another: of two in the same
    group of ``_GROUP``, the second goes the other way in 8 of 15 cases.
    """
    size = np.zeros(units.sign.size)
    for column in np.abs(values).astype(np.float64).T:
        total = column.sum()  # any last bit: sums of whole numbers, rounded only beyond 53 bits
        size += np.bincount(units.owner, weights=column, minlength=size.size) / max(total, 1.0)
    owners = np.flatnonzero(leading)
    owners = owners[np.lexsort((secret[owners], -size[owners]))]
    group = np.arange(owners.size) // _GROUP
    order = np.lexsort((secret[owners], group))
    in_group = np.arange(owners.size) % _GROUP
    # Of a last group of odd size, the key draws which way the odd one goes.
    half = np.minimum(_GROUP, owners.size - group * _GROUP) // 2
    drawn = owners[order]
    odd = units.sign[drawn]
    units.sign[drawn] = np.where(in_group < half, 1, np.where(in_group < 2 * half, -1, odd))


def noise_of(units: Units) -> Ints:
    """The signed noise of every record and moved measure."""
    return np.asarray(units.sign[units.owner][:, None] * units.side * units.amount)


def search(
    plan: TablePlan,
    units: Units,
    family: MeasureFamily,
    scale: Floats,
    secret: Words,
    key: bytes,
    sweeps: int,
    locked: Mask | None = None,
) -> Floats:
    """Balance the noise in place; returns the noise of every controlled cell and shown measure.

    ``locked`` owners keep their direction and their amounts.

    ``scale[c, j]`` makes noise relative: one over the total of cell ``c``, or 0 where noise stays as it is.
    """
    prices = _prices(plan)[:, None]
    errors = np.zeros((plan.cells, len(family.shown)))
    noise = family.added(noise_of(units)).astype(np.float64)
    add_amounts(plan.layout, units.codes, noise, errors)
    for sweep in range(sweeps):
        check_stop()
        report_progress(f"balancing {family.name}", sweep / sweeps)
        order = np.argsort(scramble(derived(key, f"order {sweep}"), secret), kind="stable")
        if locked is not None:
            order = order[~locked[order]]
        weights = (
            prices * scale * scale / np.maximum(np.abs(errors) * scale, _squared(sweep, sweeps))
        )
        balance(plan.layout, units, order, family.adds, weights, errors)
    report_progress(f"balancing {family.name}", 1.0)
    return errors


def _squared(sweep: int, sweeps: int) -> float:
    """The relative error up to which a sweep counts squares: it falls from sweep to sweep by equal ratios."""
    return float(_FAR * power(_CLOSE / _FAR, (sweep + 1) / sweeps))


def _prices(plan: TablePlan) -> Floats:
    """What a relative error costs in every cell."""
    prices = np.zeros(plan.cells)
    for table in plan.tables:
        places = table.places().ravel()
        # How many times fewer cells there are, to the power 1/8: the same everywhere.
        dearer = sqrt(sqrt(sqrt(plan.cells / places.size)))
        prices[places] = dearer * (1 if table.levels else _TOTAL)
    return prices


def relative_scale(totals: Array, close: Mask) -> Floats:
    """One over the total of every cell that is to be kept close, and 0 for the others."""
    scale = np.zeros(totals.shape)
    np.divide(1.0, totals, out=scale, where=close & (totals > 0))
    return scale
