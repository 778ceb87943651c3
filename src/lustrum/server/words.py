"""Questions in words: headings, captions and names of files."""

from __future__ import annotations

import re

from lustrum.model import Axis, Dataset, Filter, TableQuery

__all__ = ["axis_words", "file_name", "heading", "lowered", "population", "title"]


def title(query: TableQuery, dataset: Dataset) -> str:
    """The whole question as one line: ``Age by sex, people whose region is Upper Merrow``."""
    return f"{heading(query, dataset)}, {population(query, dataset)}"


def heading(query: TableQuery, dataset: Dataset) -> str:
    """What is crossed: ``Age (ten-year bands) by sex and citizenship``."""
    names = [axis_words(axis, dataset) for axis in query.by]
    if not names:
        return f"All {dataset.units}"
    first, *others = names
    return f"{first} by {_joined([lowered(o) for o in others], 'and')}" if others else first


def population(query: TableQuery, dataset: Dataset) -> str:
    """Who is counted: ``all people`` or ``people whose region is Upper Merrow``."""
    if not query.where:
        return f"all {dataset.units}"
    said = [_condition(item, dataset) for item in query.where]
    return f"{dataset.units} whose {_joined(said, 'and whose')}"


def axis_words(axis: Axis, dataset: Dataset) -> str:
    """A variable with the level it is asked at."""
    variable = dataset.variable(axis.variable)
    if axis.groups:
        return f"{variable.label} (own groups)"
    if axis.level is None:
        return variable.label
    level = variable.level(axis.level).label
    return variable.label if level == variable.label else f"{variable.label} ({lowered(level)})"


def file_name(query: TableQuery, ending: str) -> str:
    """A name for the downloaded file, of letters, digits and hyphens only."""
    parts = [query.dataset, *(axis.variable for axis in query.by)]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', '-'.join(parts))}.{ending}"


def _condition(item: Filter, dataset: Dataset) -> str:
    variable = dataset.variable(item.variable)
    labels = [variable.category(code).label for code in item.codes]
    return f"{lowered(variable.label)} is {_joined(labels, 'or')}"


def lowered(label: str) -> str:
    """A label inside a sentence; an abbreviation such as EU keeps its capitals."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _joined(words: list[str], last: str) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
