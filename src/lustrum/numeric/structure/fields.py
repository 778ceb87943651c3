"""The plain fields of a structure: the tables, the hidden cube, and how categories sit in both.

Relations, rank and the incidence matrix are read off these fields alone, so every other file of the room
imports this one, and none of them imports the :class:`~lustrum.numeric.structure.Structure` that joins them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lustrum.model import TableAxis
from lustrum.model.arrays import Ints
from lustrum.numeric.structure.cube import CutVariable
from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.layout import TableLayout
from lustrum.numeric.structure.ragged import Lists, pointers


@dataclass(frozen=True, eq=False)
class StructureFields:
    """Published tables over one population, and the variables of the hidden cube they are sums of.

    ``columns`` are the inner cells that are kept, by their position in the cube; without it, all are.
    """

    tables: tuple[TableLayout, ...]
    variables: tuple[CutVariable, ...]
    columns: Ints | None = None

    @cached_property
    def offsets(self) -> Ints:
        """Where the rows of each table begin, and where the last ends."""
        return pointers([int(np.prod(t.shape, dtype=np.int64)) for t in self.tables])

    @property
    def rows(self) -> int:
        """How many published cells there are."""
        return int(self.offsets[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole hidden cube."""
        return tuple(v.count for v in self.variables)

    @property
    def inner(self) -> int:
        """How many inner cells there are: those of the cube, or those kept."""
        if self.columns is not None:
            return int(self.columns.size)
        return int(np.prod(self.shape, dtype=object))

    @property
    def coordinates(self) -> tuple[Ints, ...]:
        """For each variable, the atom of every inner cell."""
        flat = np.arange(self.inner, dtype=np.int64) if self.columns is None else self.columns
        atoms = np.unravel_index(flat, self.shape) if self.shape else ()
        return tuple(c.astype(np.int64, copy=False) for c in atoms)

    def memberships(self, table: int) -> tuple[Lists, ...]:
        """For each variable of the cube, the atoms of each category that the table shows of it."""
        return self._memberships[table]

    @cached_property
    def _memberships(self) -> tuple[tuple[Lists, ...], ...]:
        lists_by_key: dict[tuple[int, TableAxis | None], Lists] = {}
        tables = []
        for layout in self.tables:
            parts = {axis.name: axis for axis in layout.parts}
            table_lists = []
            for position, variable in enumerate(self.variables):
                axis = parts.get(variable.name)
                key = (position, axis)
                if key not in lists_by_key:
                    lists_by_key[key] = variable.lists(axis)
                table_lists.append(lists_by_key[key])
            tables.append(tuple(table_lists))
        return tuple(tables)

    @cached_property
    def families(self) -> tuple[tuple[Family, ...], ...]:
        """For each table and each variable of the cube, the categories as a family of sets."""
        family_by_id: dict[int, Family] = {}
        tables = []
        for table_lists in self._memberships:
            for lists, atoms in zip(table_lists, self.shape, strict=True):
                # Equal axes share their lists, so their forests are sorted once.
                family_by_id.setdefault(id(lists), Family(lists, atoms))
            tables.append(tuple(family_by_id[id(lists)] for lists in table_lists))
        return tuple(tables)

    def strides(self, table: int) -> tuple[int, ...]:
        """For each variable of the cube, the step between rows of the table; 0 if not shown."""
        layout, step, steps = self.tables[table], 1, {}
        for axis in reversed(layout.axes):
            steps[axis.name] = step
            step *= len(axis)
        return tuple(steps.get(v.name, 0) for v in self.variables)
