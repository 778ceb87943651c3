"""What the cells show, as lists of a form: counts, and what measures with protected sums allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from lustrum.model import (
    Dataset,
    Measure,
    QueryError,
    Statistic,
    TableQuery,
    Variable,
    describe_statistics,
)
from lustrum.model.statistic import TOTAL_SHARE, Period
from lustrum.model.text import opening, say
from lustrum.server.service.served_dataset import ServedDataset, fitted
from lustrum.server.urls import forms
from lustrum.server.urls.display import TableView

MOST_SLOTS = 4
"""So many lists stand on the form, unless an address names more statistics."""
MOST_PERIODS = 12
"""Growth is offered since so many earlier periods; an address can name any."""


@dataclass(frozen=True)
class NumbersForm:
    """What the cells show and whether there are totals; ``fields`` say the rest of the question."""

    shown: Shown | None
    totals: bool
    fields: tuple[tuple[str, str], ...]


def form(served: ServedDataset, query: TableQuery, view: TableView) -> NumbersForm:
    plain = replace(fitted(query), measure=None, statistics=(), weight=None)
    without = replace(plain, by=tuple(replace(axis, total=False) for axis in plain.by))
    return NumbersForm(
        shown(served, query),
        any(axis.total for axis in query.by),
        (*parse_qsl(forms.write(without)), *view.but().pairs()),
    )


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
            _slot(i + 1, offered, asked[i] if i < len(asked) else None, plain, served)
            for i in range(places)
        ),
        _weights(served, query),
        tuple(v.label for v in _unselected_periods(served, query)),
    )


def _slot(
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
