"""What a published table looks like: its axes, and the filters it was made under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lustrum.model import Category, Dataset, InputError, Table, TableAxis, TableQuery, Variable
from lustrum.model.arrays import Ints
from lustrum.numeric.structure.atoms import atom_of_codes, listed
from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.ragged import Lists, pointers


@dataclass(frozen=True)
class TableLayout:
    """The axes along which a table is shown, and the filters under which it was counted.

    A filter is an axis of one category that is not shown: the table keeps the shape of its axes. A
    filter on a variable that is also an axis has already narrowed the categories of that axis.

    >>> sex = TableAxis.plain("sex", ["m", "f"])
    >>> TableLayout((sex,)).shape
    (2,)
    """

    axes: tuple[TableAxis, ...]
    filters: tuple[TableAxis, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for axis in self.axes:
            if axis.name in seen:
                raise InputError(
                    f"The variable {axis.name!r} stands twice in one table; use it once."
                )
            seen.add(axis.name)
            _check_axis(axis)
        for axis in self.filters:
            _check_axis(axis)
            if len(axis) != 1:
                raise InputError(f"The filter on {axis.name!r} must be exactly one category.")

    @classmethod
    def of(cls, table: TableLayout | Table | Sequence[TableAxis]) -> TableLayout:
        if isinstance(table, TableLayout):
            return table
        return cls(tuple(table.axes if isinstance(table, Table) else table))

    @classmethod
    def of_query(cls, query: TableQuery, dataset: Dataset) -> TableLayout:
        passing = {f.variable: f.members(dataset.variable(f.variable)) for f in query.where}
        axes = []
        for asked in query.by:
            variable = dataset.variable(asked.variable)
            shown = asked.categories(variable)
            if variable.name in passing:
                shown = tuple(_narrowed(c, passing[variable.name]) for c in shown)
            axes.append(TableAxis(variable.name, variable.label, shown))
        filters = []
        for where in query.where:
            variable = dataset.variable(where.variable)
            label = " or ".join(variable.category(code).label for code in where.codes)
            members = tuple(sorted(passing[variable.name]))
            only = Category("+".join(where.codes), label, members)
            filters.append(TableAxis(variable.name, variable.label, (only,)))
        return cls(tuple(axes), tuple(filters))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)

    @property
    def parts(self) -> tuple[TableAxis, ...]:
        """The axes and the filters on further variables: all that says who is counted where."""
        shown = {axis.name for axis in self.axes}
        return self.axes + tuple(f for f in self.filters if f.name not in shown)


def _narrowed(category: Category, passing: frozenset[int]) -> Category:
    return Category(
        category.code, category.label, tuple(m for m in category.members if m in passing)
    )


def _check_axis(axis: TableAxis) -> None:
    seen: set[str] = set()
    for category in axis.categories:
        if category.code in seen:
            raise InputError(
                f"Variable {axis.name!r}: the category {category.code!r} stands twice on one axis; "
                "use it once."
            )
        seen.add(category.code)
        if category.members and min(category.members) < 0:
            raise InputError(
                f"Variable {axis.name!r}: the category {category.code!r} holds a negative "
                "position; positions in a code list start at 0."
            )


@dataclass(frozen=True, eq=False)
class CutVariable:
    """A variable of the hidden cube; ``atom_of[i]`` is the atom of finest code ``i``, or -1."""

    name: str
    label: str
    atom_of: Ints
    count: int

    def __repr__(self) -> str:
        return f"CutVariable({self.name}, {self.count} atoms)"

    def lists(self, axis: TableAxis | None) -> Lists:
        """The atoms of each category of an axis; an axis that is absent is one list of all."""
        if axis is None:
            return Lists.everything(self.count)
        sizes = [len(c.members) for c in axis.categories]
        codes = np.fromiter((m for c in axis.categories for m in c.members), np.int64, sum(sizes))
        row = np.repeat(np.arange(len(axis), dtype=np.int64), sizes)
        pairs = np.unique(row * max(1, self.count) + self.atom_of[codes])
        row, atoms = np.divmod(pairs, max(1, self.count))
        return Lists(pointers(np.bincount(row, minlength=len(axis))), atoms)


def cut(
    layouts: Sequence[TableLayout], hidden: Sequence[TableAxis], known: Mapping[str, Variable]
) -> tuple[CutVariable, ...]:
    """Cut every variable that a table or the hidden cube names, in the order they are first met.

    A table in which a variable is absent counts everybody, whatever their code; so the cut then
    covers the whole code list. Without a known variable the list ends at the last code that any
    category holds, and has one code at least.
    """
    axes: dict[str, list[TableAxis]] = {axis.name: [axis] for axis in hidden}
    for layout in layouts:
        for axis in layout.parts:
            axes.setdefault(axis.name, []).append(axis)
    return tuple(
        _cut_one(name, variable_axes, layouts, known) for name, variable_axes in axes.items()
    )


def _cut_one(
    name: str,
    axes: Sequence[TableAxis],
    layouts: Sequence[TableLayout],
    known: Mapping[str, Variable],
) -> CutVariable:
    sets = {c.members: None for axis in axes for c in axis.categories}
    last = max((members[-1] for members in map(sorted, sets) if members), default=-1)
    if name in known:
        codes = len(known[name].codes)
        if last >= codes:
            raise InputError(
                f"Variable {name!r} has {codes} codes, but a category holds position {last}; the "
                "tables and the variable must name the same code list."
            )
    else:
        codes = max(1, last + 1)
        _check_same_codes(name, axes)
    if any(name not in {axis.name for axis in layout.parts} for layout in layouts):
        sets[tuple(range(codes))] = None
    atom_of = atom_of_codes(codes, listed(list(sets)))
    return CutVariable(name, axes[0].label, atom_of, int(atom_of.max()) + 1)


def _check_same_codes(name: str, axes: Iterable[TableAxis]) -> None:
    meaning: dict[str, frozenset[int]] = {}
    for axis in axes:
        for category in axis.categories:
            if meaning.setdefault(category.code, category.member_set) != category.member_set:
                raise InputError(
                    f"Variable {name!r}: the category {category.code!r} does not hold the same "
                    "codes in all tables; tables over one population must share one code list."
                )


# The plain fields of a structure: the tables, the hidden cube, and how categories sit in both.
#
# Relations, rank and the incidence matrix are read off these fields alone, so every other file of the room
# imports this one, and none of them imports the :class:`~lustrum.numeric.structure.Structure` that joins them.


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
        return pointers([int(np.prod(t.shape, dtype=np.int64)) for t in self.tables])

    @property
    def rows(self) -> int:
        return int(self.offsets[-1])

    @property
    def shape(self) -> tuple[int, ...]:
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
