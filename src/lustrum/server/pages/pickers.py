"""Lists of categories to tick in the builder: for a variable of the table, and for who is counted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lustrum.model import Axis, Category, Filter, TableQuery, Variable
from lustrum.model.text import say, say_many
from lustrum.server.pages import cut_points
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.urls.code_lists import escaped, listed

LONG = 60
"""Longer lists are filled in when they are opened, or chosen from on a page of their own."""


@dataclass(frozen=True)
class Tick:
    """A category that can be ticked."""

    code: str
    label: str
    checked: bool


@dataclass(frozen=True)
class CategoryList:
    """Categories of one level and the codes chosen; ``level`` is empty for the finest."""

    level: str
    label: str
    categories: Sequence[Category]
    chosen: Collection[str]

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The categories to tick, made when they are shown: a long list is not."""
        return tuple(Tick(c.code, c.label, c.code in self.chosen) for c in self.categories)


@dataclass(frozen=True)
class GroupFields:
    """The fields of an own group: its name, and its categories to tick."""

    number: int
    label: str
    ticks: tuple[Tick, ...]

    @property
    def size(self) -> int:
        """How many categories are ticked."""
        return sum(tick.checked for tick in self.ticks)


@dataclass(frozen=True)
class Picker:
    """A list of categories to tick, of a variable in the table (``codes``) or for a selection (``where``)."""

    id: str
    kind: str
    variable: Variable
    lists: tuple[CategoryList, ...]
    chosen: tuple[Category, ...]
    level: str = ""
    why: str = ""
    full: bool = False
    groups: tuple[str, ...] = ()
    grouping: bool = False
    fields: tuple[GroupFields, ...] = ()
    cutting: str = ""

    @property
    def size(self) -> int:
        """How many categories there are to tick."""
        return sum(len(part.categories) for part in self.lists)

    @property
    def long(self) -> bool:
        """Whether the list is too long to stand in the form."""
        return self.size > LONG

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes chosen."""
        return tuple(category.code for category in self.chosen)

    @property
    def listed(self) -> str:
        """The codes chosen, as a list."""
        return listed(self.codes)

    @property
    def name(self) -> str:
        """The parameter that takes the list of codes."""
        return "codes" if self.kind == "codes" else "among"

    @property
    def key(self) -> str:
        """What the list is of; the same list need not be shown anew."""
        many = f"{len(self.fields)} groups" if self.fields else ""
        return "|".join((self.kind, self.variable.name, self.level, self.why, many))

    @property
    def said(self) -> str:
        """How many are chosen, in words."""
        if not self.chosen:
            return say("all") if self.kind == "codes" else ""
        return say("{some:,} of {size:,} chosen", some=len(self.chosen), size=self.size)


def axis_picker(served: ServedDataset, axis: Axis, number: int) -> Picker:
    """The categories of a variable in the table, at its level; codes of other levels are not lost."""
    variable = served.dataset.variable(axis.variable)
    level = axis.level
    every = variable.finest if level is None else variable.level(level).categories
    label = variable.label if level is None else variable.level(level).label
    chosen = tuple(variable.category(code) for code in axis.codes or ())
    codes = set(axis.codes or ())
    lists = [CategoryList(level or "", label, every, codes)]
    further = tuple(c for c in chosen if not variable.is_at(c.code, level))
    if further:
        lists.append(CategoryList("", say("Of other levels"), further, codes))
    return Picker(
        f"codes-{number}",
        "codes",
        variable,
        tuple(lists),
        chosen,
        level or "",
        groups=tuple(
            f"{variable.name}:{escaped(group.label, '%=')}={listed(group.members)}"
            for group in axis.groups
        ),
        grouping=not served.rules.nested_only or bool(axis.groups),
        fields=_group_fields(variable, axis),
        # The workspace, which has every bundle, cuts a variable beside its name.
        cutting=""
        if served.rules.nested_only or (served.snapshot is not None and served.snapshot.from_bundle)
        else cut_points.example(variable),
    )


def _group_fields(variable: Variable, axis: Axis) -> tuple[GroupFields, ...]:
    """Fields for every own group and for one more; none where there are too many categories to tick."""
    if len(variable.finest) > LONG:
        return ()
    known = {category.code for category in variable.finest}
    fields = []
    for number, group in enumerate((*axis.groups, None), start=1):
        members = set(group.members) if group is not None else set[str]()
        further = [variable.category(code) for code in sorted(members - known)]
        ticks = (Tick(c.code, c.label, c.code in members) for c in (*variable.finest, *further))
        fields.append(GroupFields(number, group.label if group is not None else "", tuple(ticks)))
    return tuple(fields)


def filter_pickers(served: ServedDataset, query: TableQuery) -> tuple[Picker, ...]:
    """The categories by which a population can be selected, a list for each variable, coarse levels first."""
    filters = {item.variable: item for item in query.where}
    variables = [v for v in served.dataset.variables if v in served.variables or v.name in filters]
    chosen = {axis.variable for axis in query.by} | set(filters)
    full = len(filters) >= served.rules.max_filters
    return tuple(_filter(served, v, filters.get(v.name), chosen, full) for v in variables)


def _filter(
    served: ServedDataset,
    variable: Variable,
    item: Filter | None,
    chosen: Collection[str],
    full: bool,
) -> Picker:
    codes = set(item.codes if item else ())
    lists = [
        CategoryList(level.name, level.label, level.groups, codes)
        for level in reversed(served.levels(variable))
        if level.groups
    ]
    lists.append(CategoryList("", variable.label, variable.finest, codes))
    groups = {c.code for part in lists[:-1] for c in part.categories}
    further = tuple(
        variable.category(code) for code in sorted(codes - groups) if not variable.is_at(code)
    )
    if further:
        lists.append(CategoryList("", say("Of other levels"), further, codes))
    why = served.conflict(variable.name, chosen) if item is None else ""
    full = full and item is None and not why
    if full:
        why = say_many(
            "Only {number} variable may select who is counted; untick the other first.",
            "Only {number} variables may select who is counted; untick one first.",
            served.rules.max_filters,
        )
    return Picker(
        f"where-{variable.name}",
        "where",
        variable,
        tuple(lists),
        tuple(variable.category(code) for code in (item.codes if item else ())),
        why=why,
        full=full,
    )
