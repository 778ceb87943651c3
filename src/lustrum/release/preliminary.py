"""Step 1: preliminary rules.

Rules about the question alone come first and cost nothing. Rules about numbers look at *protected*
numbers, so that a refusal tells nothing that a released table would not; and they look three times: at
everybody, at the selected population with every choice of codes undone, and at what is shown,
so that neither a filter nor a choice gets around them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lustrum.model import Category, Dataset, Reason, Release, TableQuery, Variable
from lustrum.policy import Rules

__all__ = ["number_rules", "question_rules"]


def question_rules(query: TableQuery, dataset: Dataset, rules: Rules) -> Iterator[Reason]:
    """Whatever speaks against the question before anything is counted."""
    dimensions = len(query.by)
    if dimensions == 0:
        yield Reason("dimensions", "No variable was chosen.", "Choose at least one variable.")
    if dimensions > rules.max_dimensions:
        extra = dimensions - rules.max_dimensions
        yield Reason(
            "dimensions",
            f"The table has {dimensions} variables; at most {rules.max_dimensions} are allowed.",
            f"Leave out {extra} of: {', '.join(_labels(query, dataset))}.",
        )
    if len(query.where) > rules.max_filters:
        yield Reason(
            "filters",
            f"The population is selected by {len(query.where)} variables; at most "
            f"{rules.max_filters} {'is' if rules.max_filters == 1 else 'are'} allowed.",
            "Select by fewer variables, or put one of them into the table.",
        )
    cells = 1
    for axis in query.by:
        cells *= len(
            [c for c in axis.categories(dataset.variable(axis.variable)) if c.code != "_T"]
        )
    if cells > rules.max_cells:
        yield Reason(
            "cells",
            f"The table has {cells:,} cells; at most {rules.max_cells:,} are allowed.",
            coarser(query, dataset) or "Choose fewer variables.",
        )
    if rules.nested_only:
        yield from _nesting(query, dataset)


def number_rules(
    release: Release, population: str, query: TableQuery, dataset: Dataset, rules: Rules
) -> Iterator[Reason]:
    """Whatever the protected numbers of one population speak against."""
    inner = release.published[release.inner]
    help_ = coarser(query, dataset) or "Choose fewer variables or a larger population."
    people = int(inner.sum())
    if people < rules.min_population:
        yield Reason(
            "population",
            f"There are fewer than {rules.min_population:,} {dataset.units} {population}.",
            "Select a larger population.",
        )
    if inner.size and people / inner.size < rules.min_mean_cell_size:
        yield Reason(
            "mean-cell-size",
            f"The cells {population} would hold fewer than {rules.min_mean_cell_size:g} "
            f"{dataset.units} on average.",
            help_,
        )
    small = (inner > 0) & (inner <= rules.small_up_to)
    if inner.size and float(np.mean(small)) > rules.max_small_share:
        yield Reason(
            "small-cells",
            f"More than {rules.max_small_share:.0%} of the cells {population} are small.",
            help_,
        )


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
            f"{variable.label}: {odd.label!r} is not a category of the published classification; "
            "groups of one's own could be compared with it to single people out.",
            f"Use single categories{f' or the level {offered}' if offered else ''}.",
        )


def _nested_sets(variable: Variable) -> set[frozenset[int]]:
    sets = {c.member_set for c in variable.finest} | {variable.everything}
    if variable.hierarchies:
        sets |= {c.member_set for level in variable.hierarchies[0].levels for c in level.categories}
    return sets


def coarser(query: TableQuery, dataset: Dataset) -> str:
    """A way forward: the widest axis that has a coarser level, and that level."""
    best: tuple[int, str] | None = None
    for axis in query.by:
        variable = dataset.variable(axis.variable)
        if not variable.hierarchies or axis.groups or axis.codes is not None:
            continue
        levels = variable.hierarchies[0].levels
        now = len(axis.categories(variable)) - axis.total
        for level in levels:
            if len(level.categories) < now:
                advice = f"Use the level {level.label!r} of {variable.label}."
                if best is None or now > best[0]:
                    best = (now, advice)
                break
    return best[1] if best else ""


def _labels(query: TableQuery, dataset: Dataset) -> list[str]:
    return [dataset.variable(axis.variable).label for axis in query.by]
