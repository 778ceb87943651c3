"""What an engine counted, by atoms, and the tables that can be put together from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import Category, Contributions, Dataset, Table
from lustrum.structure import Atoms
from lustrum.tabulate.plan import Plan

__all__ = ["Cube"]


@dataclass(frozen=True, repr=False)
class Cube:
    """Sums by atoms: one layer for those who pass every filter, the others for those who do not."""

    plan: Plan
    dataset: Dataset
    counts: npt.NDArray[np.int64]
    keys: npt.NDArray[np.uint64] | None = None
    sums: npt.NDArray[np.int64] | None = None
    contributors: npt.NDArray[np.int64] | None = None
    contributions: Contributions | None = None

    def shown(self) -> Table:
        """The table that was asked for."""
        axes = [(axis.shown, axis.shown_atoms) for axis in self.plan.axes]
        table = self._table(axes, filtered=True)
        if self.contributors is None:
            return table
        return replace(table, contributors=self.contributors, contributions=self.contributions)

    def widened(self) -> Table:
        """The table of the filtered population with every choice along an axis undone."""
        return self._table(self._wide, filtered=True)

    def unfiltered(self) -> Table:
        """The table of everybody, with neither choice nor filter."""
        return self._table(self._wide, filtered=False)

    @property
    def _wide(self) -> list[tuple[tuple[Category, ...], Atoms]]:
        return [(axis.wide, axis.wide_atoms) for axis in self.plan.axes]

    def _table(self, axes: list[tuple[tuple[Category, ...], Atoms]], filtered: bool) -> Table:
        layers = slice(0, 1) if filtered else slice(None)

        def rolled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            out = array[layers].sum(axis=0, dtype=array.dtype)
            for position, (_, atoms) in enumerate(axes):
                out = atoms.roll_up(out, position)
            return np.ascontiguousarray(out)

        counts = rolled(self.counts)
        measure = self.plan.query.measure and self.dataset.measure(self.plan.query.measure)
        weight = self.plan.query.weight and self.dataset.weight(self.plan.query.weight)
        decimals = (measure.decimals if measure else 0) + (weight.decimals if weight else 0)
        shown_axes = tuple(
            axis.table_axis(categories)
            for axis, (categories, _) in zip(self.plan.axes, axes, strict=True)
        )
        return Table(
            axes=shown_axes,
            values=counts if self.sums is None else rolled(self.sums),
            kind="magnitude" if measure else "count",
            decimals=decimals,
            unit=measure.unit if measure else self.dataset.units,
            contributors=counts,
            keys=None if self.keys is None else rolled(self.keys),
            structural=self._structural([c for c, _ in axes], filtered),
            provenance={"dataset": self.dataset.name, "query": self.plan.query.to_mapping()},
        )

    def _structural(
        self, axes: list[tuple[Category, ...]], filtered: bool
    ) -> npt.NDArray[np.bool_]:
        """The cells all of whose people would be of a combination that cannot exist."""
        shape = tuple(len(categories) for categories in axes)
        mask = np.zeros(shape, dtype=np.bool_)
        position = {axis.variable.name: i for i, axis in enumerate(self.plan.axes)}
        allowed = {f.variable.name: f.passing for f in self.plan.filters} if filtered else {}
        for zero in self.dataset.structural_zeros:
            if not all(name in position or name in allowed for name in zero.where):
                continue
            hit = np.ones(shape, dtype=np.bool_)
            for name, members in zero.where.items():
                passing = allowed.get(name)
                if name not in position:
                    hit &= passing is not None and passing <= members
                    continue
                flags = np.array(
                    [
                        (c.member_set if passing is None else c.member_set & passing) <= members
                        for c in axes[position[name]]
                    ]
                )
                hit &= flags.reshape(-1, *[1] * (len(shape) - position[name] - 1))
            mask |= hit
        return mask
