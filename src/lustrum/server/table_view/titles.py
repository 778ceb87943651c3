"""Questions in words: headings, captions and names of files."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

from lustrum.model import (
    Axis,
    Category,
    Dataset,
    Filter,
    Quantity,
    QueryError,
    TableAxis,
    TableQuery,
    Variable,
    describe_statistics,
)
from lustrum.model.plugins import load, names
from lustrum.model.text import listed, lowered, say
from lustrum.server.urls import code_lists

_WANTED = ("csv", "xlsx", "json-stat", "parquet")
"""The formats that most people want, these first."""

_NAMED = 3
"""So many statistics are named in a heading."""

_LONGEST = 80
"""Letters of the name of a file, and of a selection in each of its rows."""


def file_kinds() -> dict[str, str]:
    """Every registered format by name, and what it is called on pages; those first that most people want."""
    group = "lustrum.formats"
    there = names(group)
    order = dict.fromkeys([*(name for name in _WANTED if name in there), *there])
    return {name: getattr(load(group, name), "title", name) for name in order}


def title(query: TableQuery, dataset: Dataset) -> str:
    """The whole question as one line: ``Age by sex, people whose region is Upper Merrow``."""
    return say(
        "{heading}, {population}",
        heading=heading(query, dataset, defined=True),
        population=population(query, dataset),
    )


def heading(query: TableQuery, dataset: Dataset, *, defined: bool = False) -> str:
    """What the table shows: ``Age (ten-year bands) by sex and citizenship``; ``defined`` with own groups."""
    what = shown(query, dataset)
    if what:
        inside = [axis_words(axis, dataset, inside=True, defined=defined) for axis in query.by]
        return say("{first} by {others}", first=what, others=_and(inside)) if inside else what
    if not query.by:
        return say("All {units}", units=dataset.units)
    first, *others = query.by
    if not others:
        return axis_words(first, dataset, defined=defined)
    inside = [axis_words(axis, dataset, inside=True, defined=defined) for axis in others]
    opening = axis_words(first, dataset, defined=defined)
    return say("{first} by {others}", first=opening, others=_and(inside))


def shown(query: TableQuery, dataset: Dataset) -> str:
    """What the cells show where that is no count: ``Turnover, mean per business``; nothing otherwise."""
    if query.measure is None and query.weight is None and not query.statistics:
        return ""
    try:
        labels = [statistic.label for statistic in describe_statistics(query, dataset)]
    except QueryError:
        # A question that cannot be answered has a heading too.
        labels = [statistic.text for statistic in query.asked]
    if len(labels) > _NAMED:
        more = say("{number} more numbers", number=len(labels) - _NAMED + 1)
        labels = [*labels[: _NAMED - 1], more]
    return _and([labels[0], *(lowered(label) for label in labels[1:])])


def _together(query: TableQuery, dataset: Dataset) -> Variable | None:
    """Periods that a question neither shows nor chooses from, so that its numbers add them up."""
    named = {axis.variable for axis in query.by} | {item.variable for item in query.where}
    several = (v for v in dataset.variables if v.period and len(v.codes) > 1)
    return next((v for v in several if v.name not in named), None)


def population(query: TableQuery, dataset: Dataset) -> str:
    """Who is counted: ``all people`` or ``people whose region is Upper Merrow``."""
    periods = _together(query, dataset)
    if periods:
        whole = population(replace(query, by=(*query.by, Axis(periods.name))), dataset)
        ends = (periods.labels[0], periods.labels[-1])
        return say(
            "{population}, {first} to {last} together",
            population=whole,
            first=ends[0],
            last=ends[1],
        )
    if not query.where:
        return say("all {units}", units=dataset.units)
    first, *rest = [condition(item, dataset) for item in query.where]
    said: str = say("{units} whose {condition}", units=dataset.units, condition=first)
    for further in rest:
        said = say("{some} and whose {condition}", some=said, condition=further)
    return said


def axis_words(axis: Axis, dataset: Dataset, *, inside: bool = False, defined: bool = False) -> str:
    """A variable with the level it is asked at; ``inside`` a sentence it begins in lower case."""
    variable = dataset.variable(axis.variable)
    label = lowered(variable.label) if inside else variable.label
    if axis.groups:
        groups = (
            listed(_definitions(axis, dataset), semicolons=True) if defined else say("own groups")
        )
        return say("{variable} ({level})", variable=label, level=groups)
    if axis.level is None:
        return label
    level = variable.level(axis.level).label
    if level == variable.label:
        return label
    return say("{variable} ({level})", variable=label, level=lowered(level))


def definitions(query: TableQuery, dataset: Dataset) -> tuple[str, ...]:
    """What the own groups of a question hold, a sentence for each variable that has some."""
    return tuple(
        say(
            "Own groups of {variable}: {groups}.",
            variable=lowered(dataset.variable(axis.variable).label),
            groups=listed(_definitions(axis, dataset), semicolons=True),
        )
        for axis in query.by
        if axis.groups
    )


def _definitions(axis: Axis, dataset: Dataset) -> list[str]:
    try:
        categories = axis.categories(dataset.variable(axis.variable))
    except QueryError:
        # A question that cannot be answered has a title too.
        return [group.label for group in axis.groups]
    return [
        say("{name} = {what}", name=c.label, what=c.note) if c.note != c.label else c.label
        for c in categories
        if c.note
    ]


def question_id(query: TableQuery) -> str:
    """A name for the question that never changes: the same question has it on every server."""
    text = json.dumps(query.to_mapping(), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def file_name(query: TableQuery, ending: str, show: str = "counts") -> str:
    """A name for the downloaded file, of letters, digits and hyphens only; other questions have another one.

    What has no short name, such as own groups, stands in a few letters of :func:`question_id`.
    """
    what = [] if query == query.part(Quantity()) else [s.text for s in query.asked[:_NAMED]]
    parts = [query.dataset, *what]
    for axis in query.by:
        parts += [axis.variable, *([axis.level] if axis.level else [])]
    for item in query.where:
        parts += [item.variable, *item.codes[:_NAMED]]
    parts += ["totals"] if any(axis.total for axis in query.by) else []
    parts += [show] if show != "counts" else []
    name = re.sub(r"[^A-Za-z0-9]+", "-", "-".join(parts))
    plain = all(axis.complete for axis in query.by) and len(query.asked) <= _NAMED
    short = all(len(item.codes) == 1 and item.codes[0].isalnum() for item in query.where)
    if not plain or not short or len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{question_id(query)[:8]}"
    return f"{name}.{ending}"


def selection(query: TableQuery, dataset: Dataset) -> tuple[TableAxis, ...]:
    """Who is counted, as variables of one category: what was selected of each."""
    axes = []
    for item in query.where:
        variable = dataset.variable(item.variable)
        members = tuple(sorted(item.members(variable)))
        what = _joined([variable.category(code).label for code in item.codes])
        codes = code_lists.listed(item.codes)
        if len(codes) + len(what) > _LONGEST:
            # It stands in every row of a file; the address of the table says all of it.
            codes = question_id(query)[:8]
            what = f"{len(members)} of {len(variable.codes)} categories"
        axes.append(TableAxis(item.variable, variable.label, (Category(codes, what, members),)))
    return tuple(axes)


def condition(item: Filter, dataset: Dataset) -> str:
    variable = dataset.variable(item.variable)
    labels = [variable.category(code).label for code in item.codes]
    return say("{variable} is {what}", variable=lowered(variable.label), what=_joined(labels))


def _joined(labels: list[str]) -> str:
    some, last = labels[:-1], labels[-1]
    return say("{some} or {last}", some=listed(some), last=last) if some else last


def _and(phrases: list[str]) -> str:
    if len(phrases) == 1:
        return phrases[0]
    return say("{some} and {last}", some=listed(phrases[:-1]), last=phrases[-1])
