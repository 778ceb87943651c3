"""One step coarser: the next level of a classification, as advice and as a question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lustrum.model import Dataset, TableQuery
from lustrum.model.hierarchy import Level
from lustrum.model.text import say
from lustrum.model.variable import Variable


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
