"""Steps 1 and 3: preliminary rules.

Rules about the question alone come first and cost nothing. Rules about numbers look at *protected*
numbers, so that a refusal reveals nothing that a released table would not. They are applied three times: to
everybody, at the selected population with every choice of codes undone, and at what is shown,
so that neither a filter nor a choice gets around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lustrum.model import Category, Dataset, Reason, Release, TableQuery, Variable
from lustrum.model.arrays import Ints
from lustrum.model.hierarchy import Level
from lustrum.model.table import inner_cells
from lustrum.model.text import listed, say, say_many
from lustrum.policy import Rules

TOTAL = "_T"


def question_rules(query: TableQuery, dataset: Dataset, rules: Rules) -> Iterator[Reason]:
    """The reasons against a question before anything is counted."""
    dimensions = len(query.by)
    if dimensions == 0:
        yield Reason(
            "dimensions", say("No variable was chosen."), say("Choose at least one variable.")
        )
    if dimensions > rules.max_dimensions:
        extra = dimensions - rules.max_dimensions
        yield Reason(
            "dimensions",
            say(
                "The table has {asked} variables; at most {most} are allowed.",
                asked=dimensions,
                most=rules.max_dimensions,
            ),
            say(
                "Leave out {extra} of: {names}.",
                extra=extra,
                names=listed([dataset.variable(axis.variable).label for axis in query.by]),
            ),
        )
    if len(query.where) > rules.max_filters:
        yield Reason(
            "filters",
            say_many(
                "The population is selected by {asked} variables; at most {number} is allowed.",
                "The population is selected by {asked} variables; at most {number} are allowed.",
                rules.max_filters,
                asked=len(query.where),
            ),
            say("Select by fewer variables, or put one of them into the table."),
        )
    for axis in query.by:
        variable = dataset.variable(axis.variable)
        shown = replace(axis, total=False).categories(variable)
        if not query.selected(variable, shown):
            yield Reason(
                "filters",
                say(
                    "{variable}: none of the categories in the table is in the selection.",
                    variable=variable.label,
                ),
                say("Select other categories, or leave the selection out."),
            )
    cells = inner_count(query, dataset)
    if cells > rules.max_cells:
        yield Reason(
            "cells",
            say(
                "The table has {cells:,} cells; at most {most:,} are allowed.",
                cells=cells,
                most=rules.max_cells,
            ),
            advice(query, dataset) or say("Choose fewer variables."),
        )
    yield from _combinations(query, dataset, rules)
    if rules.nested_only:
        yield from _nesting(query, dataset)


def inner_count(query: TableQuery, dataset: Dataset) -> int:
    """How many cells a table has, totals not counted."""
    cells = 1
    for axis in query.by:
        shown = axis.categories(dataset.variable(axis.variable))
        cells *= sum(category.code != TOTAL for category in shown)
    return cells


def number_rules(
    release: Release, population: str, query: TableQuery, dataset: Dataset, rules: Rules
) -> Iterator[Reason]:
    """The reasons against a question by the protected numbers of one population.

    Where areas are judged one by one, the size of cells is a matter of each area.
    """
    inner = release.numbers[release.inner]
    people = int(inner.sum())
    possible = inner
    if release.structural is not None:
        possible = inner[~release.structural[release.inner]]
    if people < rules.min_population:
        yield Reason(
            "population",
            say(
                "There are fewer than {least:,} {units} {population}.",
                least=rules.min_population,
                units=dataset.units,
                population=population,
            ),
            say("Select a larger population."),
        )
    if area_axis(release, rules) is not None:
        return

    def help_() -> str:
        return advice(query, dataset) or say("Choose fewer variables or a larger population.")

    if inner.size and people / inner.size < rules.min_mean_cell_size:
        yield Reason(
            "mean-cell-size",
            say(
                "The cells {population} would hold fewer than {least:g} {units} on average.",
                population=population,
                least=rules.min_mean_cell_size,
                units=dataset.units,
            ),
            help_(),
        )
    if _small_share(possible, rules) > rules.max_small_share:
        yield Reason(
            "small-cells",
            say(
                "More than {share:.0%} of the cells {population} are small.",
                share=rules.max_small_share,
                population=population,
            ),
            help_(),
        )


def area_axis(release: Release, rules: Rules) -> int | None:
    """The axis whose categories are judged one by one, if the table has it."""
    names = [axis.name for axis in release.axes]
    return names.index(rules.per_area) if rules.per_area in names else None


def failing_areas(release: Release, rules: Rules) -> frozenset[str]:
    """The codes of the areas that the protected numbers speak against; the total is no area."""
    position = area_axis(release, rules)
    if position is None:
        return frozenset()
    others = inner_cells([a for i, a in enumerate(release.axes) if i != position])
    failing = set()
    for index, category in enumerate(release.axes[position].categories):
        if category.code == TOTAL:
            continue
        cells = np.take(release.numbers, index, axis=position)[others]
        people = int(cells.sum())
        possible = cells
        if release.structural is not None:
            possible = cells[~np.take(release.structural, index, axis=position)[others]]
        if (
            people < rules.min_area_population
            or people < rules.min_mean_cell_size * cells.size
            or _small_share(possible, rules) > rules.max_small_share
        ):
            failing.add(category.code)
    return frozenset(failing)


def _small_share(cells: Ints, rules: Rules) -> float:
    """The share of small cells among those that can hold somebody. A published 0 may stand for a few."""
    return float(np.mean(cells <= rules.small_up_to)) if cells.size else 0.0


def _combinations(query: TableQuery, dataset: Dataset, rules: Rules) -> Iterator[Reason]:
    asked = list(dict.fromkeys([a.variable for a in query.by] + [f.variable for f in query.where]))
    for group in rules.disallowed:
        if group and set(group) <= set(asked):
            named = _listed([dataset.variable(name).label for name in group])
            yield Reason(
                "combination",
                say("{names} may not be asked for together.", names=named)
                if len(group) > 1
                else say("{name} is not available.", name=named),
                say("Leave out one of them.")
                if len(group) > 1
                else say("Leave out {name}.", name=named),
            )
    for group in rules.at_most_one:
        variables = [name for name in asked if name in group]
        if len(variables) > 1:
            named = _listed([dataset.variable(name).label for name in variables])
            yield Reason(
                "one-of",
                say("Only one of {names} may be in a question.", names=named),
                say("Keep one of them."),
            )


def _listed(labels: list[str]) -> str:
    if len(labels) == 1:
        return labels[0]
    return say("{some} and {last}", some=listed(labels[:-1]), last=labels[-1])


def _nesting(query: TableQuery, dataset: Dataset) -> Iterator[Reason]:
    asked: list[tuple[Variable, tuple[Category, ...]]] = []
    for axis in query.by:
        variable = dataset.variable(axis.variable)
        asked.append((variable, axis.categories(variable)))
    for item in query.where:
        variable = dataset.variable(item.variable)
        # Several codes in a filter make one group: those who pass.
        passing = item.members(variable)
        asked.append((variable, (Category("filter", "the selection", tuple(sorted(passing))),)))
    for variable, categories in asked:
        allowed = _nested_sets(variable)
        odd = next((c for c in categories if c.member_set not in allowed), None)
        if odd is None:
            continue
        levels = variable.hierarchies[0].levels if variable.hierarchies else ()
        offered = ", ".join(f"{level.label!r}" for level in levels)
        yield Reason(
            "nested",
            say(
                "{variable}: {category!r} is not a category of the published classification; groups of "
                "one's own could be compared with it to single people out.",
                variable=variable.label,
                category=odd.label,
            ),
            say("Use single categories or the level {levels}.", levels=offered)
            if offered
            else say("Use single categories."),
        )


def _nested_sets(variable: Variable) -> set[frozenset[int]]:
    sets = {c.member_set for c in variable.finest} | {variable.everything}
    if variable.hierarchies:
        sets |= {c.member_set for level in variable.hierarchies[0].levels for c in level.categories}
    return sets


# One step coarser: the next level of a classification, as advice and as a question.


@dataclass(frozen=True)
class Coarser:
    """A question with one variable at a coarser level."""

    query: TableQuery
    variable: Variable
    level: Level


def coarser(
    query: TableQuery, dataset: Dataset, variables: Sequence[str] = ()
) -> Iterator[Coarser]:
    """The question one level coarser along each axis: the axes named, in that order, or the longest first."""
    candidates: list[tuple[int, Coarser]] = []
    for index, axis in enumerate(query.by):
        variable = dataset.variable(axis.variable)
        if not variable.hierarchies or axis.groups or axis.codes is not None:
            continue
        if variables and axis.variable not in variables:
            continue
        now = len(axis.categories(variable)) - axis.total
        for level in variable.hierarchies[0].levels:
            if len(level.categories) < now:
                by = tuple(
                    replace(a, level=level.name) if i == index else a
                    for i, a in enumerate(query.by)
                )
                rank = variables.index(axis.variable) if variables else -now
                candidates.append((rank, Coarser(replace(query, by=by), variable, level)))
                break
    for _, one in sorted(candidates, key=lambda pair: pair[0]):
        yield one


def advice(query: TableQuery, dataset: Dataset) -> str:
    """The first of them in words, or nothing."""
    first = next(coarser(query, dataset), None)
    if first is None:
        return ""
    return say(
        "Use the level {level!r} of {variable}.",
        level=first.level.label,
        variable=first.variable.label,
    )
