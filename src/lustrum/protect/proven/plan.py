"""Which tables are measured, and how much of rho each of them gets: from public facts alone.

Neighbours are two datasets of the same size in which one person has another record. A table then changes in
two cells by one, by the root of 2 in all, so discrete Gaussian noise of variance ``1 / share`` costs ``share``.

Errors follow in closed form (the residuals of Xiao, He, Zhang and Kifer 2023). A table splits into *effects*,
one for each subset of its axes, which are orthogonal. The effect of ``B`` is measured by every table ``A`` that
has the axes of ``B``: added up over the ``n`` codes of the others, its noise has variance ``n / share(A)``. The
best estimate weighs these by ``share(A) / n``; its precision is their sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt

import numpy as np

from lustrum.model.arrays import Floats, Ints
from lustrum.protect.proven.domain import Domain, Subset

_PARTS = 1_000_000
"""Shares are whole multiples of rho over this."""
_STEPS = 1000
_MOST_LEFT = 0.25
"""Neighbours of 6,000 people for whom rho 0.36 is left gained from the noisy tables, and of 60,000 with 0.21
they did not for certain (bench/neighbours.py)."""


@dataclass(frozen=True, eq=False)
class MeasurementPlan:
    """The share of rho of every table that is measured, as exact fractions that add up to rho."""

    sizes: tuple[int, ...]
    shares: Mapping[Subset, Fraction]

    @property
    def rho(self) -> Fraction:
        return sum(self.shares.values(), Fraction(0))

    @cached_property
    def precision(self) -> dict[Subset, float]:
        """How precisely each effect is known: one over the variance of its estimate in each cell, before the
        effect is centred."""
        return {
            effect: sum(
                float(share) / self.others(table, effect)
                for table, share in self.shares.items()
                if set(effect) <= set(table)
            )
            for effect in _effects(self.shares)
        }

    @property
    def precision_of_total(self) -> float:
        """How precisely the sum of all cells is known where nobody knows it."""
        return sum(float(share) / self.others(table, ()) for table, share in self.shares.items())

    def variance(self, table: Subset) -> float:
        """The mean variance of the cells of a table in the linear estimate."""
        cells = prod(self.sizes[axis] for axis in table)
        total = 0.0
        for effect, precision in self.precision.items():
            if set(effect) <= set(table):
                free = prod(self.sizes[axis] - 1 for axis in effect)
                total += free / precision / self.others(table, effect)
        return total / cells

    def typical_error(
        self,
        table: Subset,
        groups: Mapping[int, Sequence[int]] | None = None,
        *,
        total_known: bool = True,
    ) -> float:
        """The mean absolute error of a cell of a table in the linear estimate, before people are whole.

        ``groups`` are the numbers of codes in each group, for axes that are shown in groups. Along an axis of
        ``n`` codes, a group of ``m`` keeps the share ``m / n`` of an effect without the axis, and ``m - m * m /
        n`` times the variance of one with it, since effects add up to 0. The number of people is known, and
        what sums add up to is not.
        """
        total = 0.0
        precisions = dict(self.precision)
        if not total_known:
            precisions[()] = self.precision_of_total
        sizes = {axis: (groups or {}).get(axis, (1,) * self.sizes[axis]) for axis in table}
        for effect, precision in precisions.items():
            if set(effect) <= set(table):
                means = (
                    sum(m - m * m / n if axis in effect else (m / n) ** 2 for m in sizes[axis])
                    / len(sizes[axis])
                    for axis, n in ((axis, self.sizes[axis]) for axis in table)
                )
                total += prod(means) / precision
        return sqrt(total * 2 / np.pi)

    def others(self, table: Subset, effect: Subset) -> int:
        """How many cells of a table each value of an effect is spread over."""
        return prod(self.sizes[axis] for axis in table if axis not in effect)


def few_people(domain: Domain, plan: MeasurementPlan, people: int) -> str | None:
    """A warning where so few people share the cells that they hide little of each other; None otherwise.

    Somebody who knows the statistics of the population, but not the other people, does not know how many of
    these a cell holds: where ``n`` are expected, the number varies by ``n``, which hides a person as noise of
    that variance does. What is left of rho follows from sizes alone.
    """
    left = sum(
        1 / (1 / float(share) + people / int(domain.possible_table(table).sum()))
        for table, share in plan.shares.items()
    )
    if left <= _MOST_LEFT:
        return None
    return (
        f"{people:,} people are few for these tables and hide little of each other: to somebody who knows the "
        "statistics of the population, but nobody in the file, the noisy tables show a person as rho "
        f"{left:.2g} would. Take a smaller rho, fewer variables or coarser codes, and do not publish the noisy "
        "tables."
    )


def _effects(tables: Mapping[Subset, Fraction]) -> list[Subset]:
    effects: set[Subset] = set()
    for table in tables:
        places = range(1 << len(table))
        effects |= {tuple(a for i, a in enumerate(table) if bits >> i & 1) for bits in places}
    return sorted(effects - {()}, key=lambda effect: (len(effect), effect))


def plan_measurements(
    domain: Domain,
    rho: Fraction,
    *,
    max_variables: int,
    weights: tuple[float, ...],
    own: Mapping[Subset, float] | None = None,
) -> MeasurementPlan:
    """Divide rho so that the weighted sum of variances over all cells of all tables is least.

    ``weights`` says what a cell of a table of one, two and more axes counts; ``own`` what one of a named table
    counts. The sum is convex in the shares; each step moves them towards where the sum falls fastest.
    """
    sizes = domain.sizes
    tables = domain.subsets(min(max_variables, len(sizes)))
    inside = np.array([[set(b) <= set(a) for a in tables] for b in tables])
    others = np.array([[prod(sizes[i] for i in a if i not in b) for a in tables] for b in tables])
    spread = np.where(inside, 1.0 / others, 0.0)
    free = np.array([prod(sizes[i] - 1 for i in b) for b in tables], dtype=np.float64)
    weight = np.array([(own or {}).get(a, weights[min(len(a), len(weights)) - 1]) for a in tables])
    wanted = free * (spread * weight).sum(axis=1)
    share = np.full(len(tables), 1.0 / len(tables))
    for _ in range(_STEPS):
        precision = (spread * share).sum(axis=1)
        falls = (spread * (wanted / precision**2)[:, None]).sum(axis=0)
        share = share * np.sqrt(falls)
        share /= share.sum()
    return MeasurementPlan(sizes, dict(_exact_shares(tables, share, rho)))


def _exact_shares(
    tables: tuple[Subset, ...], share: Floats, rho: Fraction
) -> list[tuple[Subset, Fraction]]:
    """Whole parts of rho that add up to it; a table whose share is less than one part is not measured.

    Tables of the most axes always get a part, so that every effect is measured by some table.
    """
    largest = max(len(table) for table in tables)
    parts = np.floor(share * _PARTS).astype(np.int64)
    parts = np.maximum(parts, [int(len(table) == largest) for table in tables])
    parts[int(parts.argmax())] += _PARTS - int(parts.sum())
    return [
        (table, rho * int(part) / _PARTS) for table, part in zip(tables, parts, strict=True) if part
    ]


# The linear estimate of all tables from the noisy ones: unbiased, consistent, in closed form.
#
# Each effect is the weighted mean of what the noisy tables say of it; see :mod:`lustrum.protect.proven.plan`. A
# table is the sum of its effects and of the number of people, which is public. Estimates may be negative.


class LinearEstimate:
    """All tables of up to as many axes as were measured, from their effects.

    ``people`` is what they add up to. Sums are stated in a ``unit``, and their noise is so many times that of
    counts.
    """

    def __init__(
        self,
        plan: MeasurementPlan,
        noisy: Mapping[Subset, Ints],
        people: float,
        unit: float = 1.0,
        noise: float = 1.0,
    ) -> None:
        self.plan, self.people, self._noise = plan, people / unit, noise / unit
        self._effects = {
            effect: sum(
                float(plan.shares[table])
                / plan.others(table, effect)
                / precision
                * _effect_in(noisy[table], table, effect)
                for table in noisy
                if set(effect) <= set(table)
            )
            / unit
            for effect, precision in plan.precision.items()
        }

    def table(self, subset: Subset) -> Floats:
        plan = self.plan
        shape = tuple(plan.sizes[axis] for axis in subset)
        table = np.full(shape, self.people / plan.others(subset, ()))
        for effect, values in self._effects.items():
            if set(effect) <= set(subset):
                along = tuple(plan.sizes[axis] if axis in effect else 1 for axis in subset)
                table = table + np.reshape(values, along) / plan.others(subset, effect)
        return table

    def variance(self, subset: Subset) -> float:
        """The mean variance of the cells of a table."""
        return self.plan.variance(subset) * self._noise**2


def total_of(plan: MeasurementPlan, noisy: Mapping[Subset, Ints]) -> float:
    """What all cells add up to, where nobody knows it: the weighted mean of what the noisy tables say."""
    weights = {table: float(plan.shares[table]) / plan.others(table, ()) for table in noisy}
    return sum(w * int(noisy[t].sum()) for t, w in weights.items()) / sum(weights.values())


def _effect_in(table: Ints, axes: Subset, effect: Subset) -> Floats:
    """The effect of some axes in a table: sums over the other axes, less what fewer axes explain.

    Sums are of whole numbers, so that their order does not matter to a single bit.
    """
    summed = table.sum(axis=tuple(i for i, axis in enumerate(axes) if axis not in effect))
    centred = np.zeros(summed.shape)
    for bits in range(1 << len(effect)):
        over = tuple(i for i in range(len(effect)) if bits >> i & 1)
        size = 1
        for i in over:
            size *= summed.shape[i]
        part = summed.sum(axis=over, keepdims=True) / size
        centred = centred - part if len(over) % 2 else centred + part
    return centred
