"""What an engine counted, by atoms, and the tables that can be put together from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Category, Contributions, Dataset, Table
from lustrum.numeric.counting.plan import Plan
from lustrum.numeric.counting.structural import PossibleCells
from lustrum.numeric.structure import Atoms

View = Literal["shown", "widened", "unfiltered"]


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
    possible: PossibleCells | None = None

    def shown(self) -> Table:
        """The table that was asked for."""
        axes = [(axis.shown, axis.shown_atoms) for axis in self.plan.axes]
        table = self._table(axes, filtered=True)
        if self.contributors is None:
            return table
        return replace(table, contributors=self.contributors, contributions=self.contributions)

    def widened(self, *, structural: bool = True, keys: bool = True) -> Table:
        """The table of the filtered population with every choice along an axis undone.

        Without ``structural`` it does not say which cells cannot hold anybody, which takes time; without
        ``keys`` it has none, nor words about where it comes from.
        """
        return self._table(self._wide, filtered=True, structural=structural, keys=keys)

    def unfiltered(self, *, structural: bool = True, keys: bool = True) -> Table:
        """The table of everybody, with neither choice nor filter."""
        return self._table(self._wide, filtered=False, structural=structural, keys=keys)

    @property
    def is_wide(self) -> bool:
        """Whether the table that was asked for is that of everybody: nothing chosen, filtered or added up."""
        return not self.plan.filters and self.is_widened

    @property
    def is_widened(self) -> bool:
        """Whether the table that was asked for is that of the filtered population: nothing is chosen."""
        return all(axis.shown == axis.wide for axis in self.plan.axes)

    def completed(self, view: View = "shown") -> tuple[Table, list[npt.NDArray[np.intp]]]:
        """A view with all parts of its totals, and where its own cells stand in it.

        A total whose parts are not all there would be protected without regard to the missing ones, and tell
        of the others: 3 and 3 beside a total of 0 are 1 and 1, no matter who else is in the total.
        """
        axes, picks = [], []
        for axis in self.plan.axes:
            categories = axis.shown if view == "shown" else axis.wide
            axes.append(axis.completed_shown if view == "shown" else axis.completed_wide)
            picks.append(np.arange(len(categories), dtype=np.intp))
        table = self._table(axes, filtered=view != "unfiltered")
        return table, picks

    @property
    def _wide(self) -> list[tuple[tuple[Category, ...], Atoms]]:
        return [(axis.wide, axis.wide_atoms) for axis in self.plan.axes]

    def _table(
        self,
        axes: list[tuple[tuple[Category, ...], Atoms]],
        filtered: bool,
        structural: bool = True,
        keys: bool = True,
    ) -> Table:
        layers = slice(0, 1) if filtered else slice(None)

        def rolled(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            out = array[layers].sum(axis=0, dtype=array.dtype, keepdims=True)
            for position, (_, atoms) in enumerate(axes, start=1):
                out = atoms.roll_up(out, position)
            one = np.array(out[0], order="C")  # keeps the shape of a table without variables
            one.setflags(write=False)
            return one

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
            # Records; how many holdings they belong to is only known for what is shown.
            contributors=None if measure and measure.holding else counts,
            keys=rolled(self.keys) if keys and self.keys is not None else None,
            structural=self._structural([c for c, _ in axes], filtered) if structural else None,
            provenance=self._origin(filtered) if keys else {},
        )

    def _origin(self, filtered: bool) -> dict[str, Any]:
        asked = self.plan.query if filtered else replace(self.plan.query, where=())
        return {"dataset": self.dataset.name, "query": asked.to_mapping()}

    def _structural(
        self, axes: list[tuple[Category, ...]], filtered: bool
    ) -> npt.NDArray[np.bool_]:
        """The cells that cannot hold anybody."""
        names = [axis.variable.name for axis in self.plan.axes]
        passing = {f.variable.name: f.passing for f in self.plan.filters} if filtered else {}
        possible = self.possible or PossibleCells(self.dataset)
        return possible.impossible(list(zip(names, axes, strict=True)), passing)
