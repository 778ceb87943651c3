"""Other questions that may be answered where one was refused: one step coarser, one variable less.

Which of them would pass is not looked up: to know that would take as many questions more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lustrum.model import Axis, Decision, Filter, TableQuery, Variable
from lustrum.model.text import say
from lustrum.server import words
from lustrum.server.offer import Offer, offered_levels

__all__ = ["Suggestion", "suggestions"]

_COARSER = ("cells", "mean-cell-size", "small-cells", "risk")


@dataclass(frozen=True)
class Suggestion:
    """A changed question, and what was changed."""

    text: str
    query: TableQuery


def suggestions(decision: Decision, offer: Offer) -> tuple[Suggestion, ...]:
    """What to try instead, the least loss first."""
    rules = {reason.rule for reason in decision.reasons}
    found: dict[TableQuery, Suggestion] = {}
    for suggestion in _changed(decision.query, rules, offer):
        found.setdefault(suggestion.query, suggestion)
    return tuple(found.values())


def _changed(query: TableQuery, rules: set[str], offer: Offer) -> Iterator[Suggestion]:
    if "method" in rules and (query.measure is not None or query.weight is not None):
        yield Suggestion(
            say("Count {units} instead", units=offer.dataset.units),
            replace(query, measure=None, weight=None),
        )
    if "nested" in rules:
        yield from _published(query, offer)
    if rules.intersection(_COARSER):
        yield from _coarser(query, offer)
    if query.where and rules - {"cells", "dimensions", "method"}:
        yield from _fewer_filters(query, offer)
    if len(query.by) > 1 and rules.intersection((*_COARSER, "dimensions")):
        for axis in query.by:
            label = offer.dataset.variable(axis.variable).label
            rest = tuple(other for other in query.by if other is not axis)
            yield Suggestion(say("Leave out {name}", name=label), replace(query, by=rest))


def _coarser(query: TableQuery, offer: Offer) -> Iterator[Suggestion]:
    """Each axis at its next coarser level, the longest axis first."""
    sized = [(len(_plain(axis, offer)), axis) for axis in query.by]
    for size, axis in sorted(sized, key=lambda pair: -pair[0]):
        variable = offer.dataset.variable(axis.variable)
        for level in offered_levels(variable, offer.rules):
            if len(level.categories) < size:
                changed = replace(axis, level=level.name, codes=None, groups=())
                yield Suggestion(
                    say(
                        "{variable} in {number} categories: {level}",
                        variable=variable.label,
                        number=len(level.categories),
                        level=level.label,
                    ),
                    _with(query, axis, changed),
                )
                break


def _published(query: TableQuery, offer: Offer) -> Iterator[Suggestion]:
    """Each axis with own or overlapping groups, in the published classification instead."""
    for axis in query.by:
        variable = offer.dataset.variable(axis.variable)
        offered = {level.name for level in offered_levels(variable, offer.rules)}
        if axis.complete and (axis.level is None or axis.level in offered):
            continue
        for level in reversed(offered_levels(variable, offer.rules)):
            changed = replace(axis, level=level.name, codes=None, groups=())
            yield Suggestion(
                say("{variable}: {level}", variable=variable.label, level=level.label),
                _with(query, axis, changed),
            )
        changed = replace(axis, level=None, codes=None, groups=())
        yield Suggestion(
            say("{variable}: every category", variable=variable.label), _with(query, axis, changed)
        )


def _fewer_filters(query: TableQuery, offer: Offer) -> Iterator[Suggestion]:
    for item in query.where:
        rest: tuple[Filter, ...] = tuple(other for other in query.where if other is not item)
        changed = replace(query, where=rest)
        yield Suggestion(
            say("Count {population}", population=words.population(changed, offer.dataset)),
            changed,
        )


def _with(query: TableQuery, old: Axis, new: Axis) -> TableQuery:
    return replace(query, by=tuple(new if axis is old else axis for axis in query.by))


def _plain(axis: Axis, offer: Offer) -> tuple[object, ...]:
    variable: Variable = offer.dataset.variable(axis.variable)
    return replace(axis, total=False).categories(variable)
