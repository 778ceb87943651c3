"""The builder: what its form shows for a question."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from lustrum.answer.preliminary import inner_count
from lustrum.model import Axis, Filter, TableQuery, Variable
from lustrum.model.text import say, say_many
from lustrum.server.pages.pickers import Picker, axis_picker, filter_pickers
from lustrum.server.pages.shown import Shown, shown
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.table_view import titles
from lustrum.server.urls import forms
from lustrum.server.urls.forms import PLACES

SLOTS = 3
_PLACES = {
    "rows": say("Rows"),
    "columns": say("Columns"),
    "wafers": say("Above the columns, or separate tables"),
}


@dataclass(frozen=True)
class BuilderOption:
    """A way to put a variable into a table; ``why`` says why not, beside what is chosen already."""

    value: str
    text: str
    selected: bool
    why: str = ""


@dataclass(frozen=True)
class VariableSlot:
    """A place for a variable of the table, with a list of its categories once it is chosen."""

    number: int
    label: str
    groups: tuple[tuple[str, tuple[BuilderOption, ...]], ...]
    picker: Picker | None


@dataclass(frozen=True)
class Arranged:
    """A variable of the table, and the places it can take."""

    variable: Variable
    options: tuple[BuilderOption, ...]


@dataclass(frozen=True)
class BuilderForm:
    """The builder with choices filled in."""

    filters: tuple[Picker, ...]
    population: str
    selected: tuple[tuple[str, str], ...]
    area: VariableSlot | None
    slots: tuple[VariableSlot, ...]
    places: tuple[Arranged, ...]
    totals: bool
    shown: Shown | None
    count: str
    over: bool


def form(served: ServedDataset, query: TableQuery | None) -> BuilderForm:
    """The form of a dataset, empty or with a question filled in.

    It has as many places for variables as the policy allows, up to a few more than are in use.
    """
    dataset, rules = served.dataset, served.rules
    asked = TableQuery(dataset.name, ()) if query is None else query
    for item in asked.where:
        item.members(dataset.variable(item.variable))
    area = served.area
    areas = [axis for axis in asked.by if area is not None and axis.variable == area.name]
    others = [axis for axis in asked.by if axis not in areas]
    spare = rules.max_dimensions - len(areas) - len(others)
    places = len(others) + max(0, min(spare, max(SLOTS - len(others), 1)))
    slots = tuple(
        _slot(served, asked, others[i] if i < len(others) else None, i + 1) for i in range(places)
    )
    cells = inner_count(asked, dataset) if asked.by else 0
    return BuilderForm(
        filters=filter_pickers(served, asked) if rules.max_filters else (),
        population=titles.population(asked, dataset),
        selected=tuple(
            (
                titles.condition(item, dataset),
                f"/datasets/{dataset.name}?{forms.write(_without(asked, item))}",
            )
            for item in asked.where
        ),
        area=None
        if area is None
        else _slot(served, asked, areas[0] if areas else None, 0, (area,)),
        slots=slots,
        places=tuple(_arranged(served, axis, i, len(asked.by)) for i, axis in enumerate(asked.by))
        if len(asked.by) > 1
        else (),
        totals=True if not asked.by else any(axis.total for axis in asked.by),
        shown=shown(served, asked),
        count=_count(asked, served, cells),
        over=cells > rules.max_cells,
    )


def _without(query: TableQuery, item: Filter) -> TableQuery:
    return replace(query, where=tuple(other for other in query.where if other is not item))


def _count(query: TableQuery, served: ServedDataset, cells: int) -> str:
    most = served.rules.max_cells
    if not query.by:
        return say("At most {most:,} cells.", most=most)
    sizes = [
        len(axis.categories(served.dataset.variable(axis.variable))) - axis.total
        for axis in query.by
    ]
    counted = say_many(
        "{number:,} cell of at most {most:,}.",
        "{number:,} cells of at most {most:,}.",
        cells,
        most=most,
    )
    if len(sizes) == 1:
        return counted
    product: str = say("{size:,}", size=sizes[0])
    for size in sizes[1:]:
        product = say("{product} × {size:,}", product=product, size=size)
    return say("{product} = {counted}", product=product, counted=counted)


def _slot(
    served: ServedDataset,
    query: TableQuery,
    axis: Axis | None,
    number: int,
    variables: Sequence[Variable] | None = None,
) -> VariableSlot:
    if variables is None:
        variables = [v for v in served.variables if v != served.area]
    if axis is not None and axis.variable not in {v.name for v in variables}:
        # A variable that is not offered can still be named in an address; the form does not lose it.
        variables = [*variables, served.dataset.variable(axis.variable)]
    beside = {other.variable for other in query.by if other is not axis}
    chosen = beside | {item.variable for item in query.where}
    label = say("Variable {number}", number=number) if number else say("Type of area")
    return VariableSlot(
        number,
        label,
        tuple((v.label, _options(served, v, axis, beside, chosen)) for v in variables),
        None if axis is None else axis_picker(served, axis, number),
    )


def _options(
    served: ServedDataset,
    variable: Variable,
    axis: Axis | None,
    beside: Collection[str],
    chosen: Collection[str],
) -> tuple[BuilderOption, ...]:
    if variable.name in beside:
        why: str = say("already in the table")
    else:
        why = served.conflict(variable.name, chosen)
    now = ""
    if axis is not None and axis.variable == variable.name:
        now = axis.variable if axis.level is None else f"{axis.variable}:{axis.level}"
    ways = list(served.axes(variable))
    options = tuple(BuilderOption(way.value, way.text, way.value == now, why) for way in ways)
    if now and not any(option.selected for option in options):
        level = variable.level(now.partition(":")[2])
        text = say("{variable}: {level}", variable=variable.label, level=level.label)
        options = (*options, BuilderOption(now, text, True, why))
    return options


def _arranged(served: ServedDataset, axis: Axis, position: int, many: int) -> Arranged:
    named = [*PLACES, *(str(i) for i in range(len(PLACES) + 1, many + 1))][:many]
    return Arranged(
        served.dataset.variable(axis.variable),
        tuple(
            BuilderOption(
                f"{axis.variable}:{value}",
                _PLACES.get(value) or say("Separate tables within these ({place})", place=value),
                i == position,
            )
            for i, value in enumerate(named)
        ),
    )
