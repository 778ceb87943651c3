"""The linear estimate of all tables from the noisy ones: unbiased, consistent, in closed form.

Each effect is the weighted mean of what the noisy tables say of it; see :mod:`lustrum.protect.proven.plan`. A
table is the sum of its effects and of the number of people, which is public. Estimates may be negative.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lustrum.model.arrays import Floats, Ints
from lustrum.protect.proven.domain import Subset
from lustrum.protect.proven.plan import MeasurementPlan


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
