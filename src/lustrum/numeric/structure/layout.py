"""What a published table looks like: its axes, and the filters it was made under."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lustrum.model import Category, Dataset, InputError, Table, TableAxis, TableQuery


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
        """The layout of a table, or of bare axes."""
        if isinstance(table, TableLayout):
            return table
        return cls(tuple(table.axes if isinstance(table, Table) else table))

    @classmethod
    def of_query(cls, query: TableQuery, dataset: Dataset) -> TableLayout:
        """The layout that a question asks for."""
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
        """Categories along each shown axis."""
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
