"""The builder: what its form shows for a question."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lustrum.answer.preliminary import inner_count
from lustrum.model import (
    Axis,
    Dataset,
    Filter,
    Measure,
    QueryError,
    Statistic,
    TableQuery,
    Variable,
    describe_statistics,
)
from lustrum.model.statistic import TOTAL_SHARE, Period
from lustrum.model.text import opening, say, say_many
from lustrum.server.pages.pickers import Picker, axis_picker, filter_pickers
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


# --- What the cells show, as lists of the builder: counts, and what measures with protected sums allow

MOST_SLOTS = 4
"""So many lists stand on the form, unless an address names more statistics."""
MOST_PERIODS = 12
"""Growth is offered since so many earlier periods; an address can name any."""


@dataclass(frozen=True)
class StatisticOption:
    """A statistic that can be shown."""

    value: str
    text: str
    selected: bool


@dataclass(frozen=True)
class NumberSlot:
    """A list of statistics, by the measure they are of; the first one always shows something."""

    number: int
    groups: tuple[tuple[str, tuple[StatisticOption, ...]], ...]


@dataclass(frozen=True)
class Shown:
    """What the cells show, and by what they are weighted; ``periods`` must be selected to see growth."""

    slots: tuple[NumberSlot, ...]
    weights: tuple[StatisticOption, ...]
    periods: tuple[str, ...] = ()


def shown(served: ServedDataset, query: TableQuery) -> Shown | None:
    """The lists for a question; none where only counts can be asked for and only counts are."""
    counts_only = query.measure is None and query.weight is None and not query.statistics
    numeric = any(variable.edges or variable.period for variable in served.variables)
    if not (served.measures or served.weights or numeric) and counts_only:
        return None
    asked = query.asked
    places = max(len(asked), min(len(asked) + 1, MOST_SLOTS))
    plain = replace(query, measure=None, statistics=())
    offered = [
        (label, [(s.text, _label(plain, s, served.dataset)) for s in statistics])
        for label, statistics in _offered(served, query)
    ]
    return Shown(
        tuple(
            _variable_slot(i + 1, offered, asked[i] if i < len(asked) else None, plain, served)
            for i in range(places)
        ),
        _weights(served, query),
        tuple(v.label for v in _unselected_periods(served, query)),
    )


def _variable_slot(
    number: int,
    offered: list[tuple[str, list[tuple[str, str]]]],
    chosen: Statistic | None,
    plain: TableQuery,
    served: ServedDataset,
) -> NumberSlot:
    now = "" if chosen is None else chosen.text
    groups = [
        (label, tuple(StatisticOption(value, text, value == now) for value, text in pairs))
        for label, pairs in offered
    ]
    if chosen is not None and not any(o.selected for _, options in groups for o in options):
        # What an address names and the form does not served stays in the question.
        option = StatisticOption(now, _label(plain, chosen, served.dataset), True)
        groups.append((say("In the question"), (option,)))
    return NumberSlot(number, tuple(groups))


def _offered(served: ServedDataset, query: TableQuery) -> Iterator[tuple[str, list[Statistic]]]:
    within = [axis.variable for axis in query.by] if len(query.by) > 1 else []
    shares = [TOTAL_SHARE, *within]
    periods = _earlier_periods(served, query)
    units = served.dataset.units
    yield (
        opening(units),
        [
            Statistic(),
            *(Statistic("share", of=of) for of in shares),
            *(Statistic("growth", since=period) for period in periods),
            *(Statistic("median", variable=v.name) for v in _classes(served, query)),
        ],
    )
    measures = served.summed(query.weight)
    earlier = {m.earlier for m in measures}
    there = {m.name for m in measures}
    for measure in measures:
        statistics = [Statistic("sum", measure.name), Statistic("mean", measure.name)]
        if measure.name not in earlier:
            statistics += [Statistic("share", measure.name, of=of) for of in shares]
            if measure.earlier in there:
                statistics.append(Statistic("growth", measure.name, since=measure.earlier))
            statistics += [Statistic("growth", measure.name, since=period) for period in periods]
            statistics += [
                Statistic("ratio", measure.name, per=other.name)
                for other in measures
                if other != measure and other.name not in earlier
            ]
        yield _with_unit(measure), statistics


def _earlier_periods(served: ServedDataset, query: TableQuery) -> list[Period]:
    """The periods before the selected one, the latest first."""
    periods = []
    for item in query.where:
        variable = served.dataset.variable(item.variable)
        if variable.period:
            first = min(item.members(variable))
            periods += [Period(variable.name, code) for code in reversed(variable.codes[:first])]
    return periods[:MOST_PERIODS]


def _unselected_periods(served: ServedDataset, query: TableQuery) -> list[Variable]:
    """The periods of which none is selected yet."""
    selected = {item.variable for item in query.where}
    return [v for v in served.variables if v.period and v.name not in selected]


def _classes(served: ServedDataset, query: TableQuery) -> list[Variable]:
    """The variables with quantiles that are not in the table and may stand beside it."""
    chosen = [axis.variable for axis in query.by] + [item.variable for item in query.where]
    spare = served.rules.max_dimensions > len(query.by) and query.weight is None
    return [
        v
        for v in served.variables
        if spare and v.edges and v.name not in chosen and not served.conflict(v.name, chosen)
    ]


def _with_unit(measure: Measure) -> str:
    if not measure.unit:
        return measure.label
    return say("{label} ({unit})", label=measure.label, unit=measure.unit)


def _label(plain: TableQuery, statistic: Statistic, dataset: Dataset) -> str:
    try:
        return describe_statistics(replace(plain, statistics=(statistic,)), dataset)[0].label
    except QueryError:
        return statistic.text


def _weights(served: ServedDataset, query: TableQuery) -> tuple[StatisticOption, ...]:
    names = {w.name: w.label for w in served.weights}
    if query.weight is not None and query.weight not in names:
        names[query.weight] = query.weight
    return tuple(
        StatisticOption(name, label, name == query.weight) for name, label in names.items()
    )
