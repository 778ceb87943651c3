"""Other questions where one was refused: coarser, with fewer variables, or about more people.

Those that are shown were tried. Each was decided under the policy like any other question, so that to know
it would pass tells nothing that asking it would not. How many are tried is counted; the clock decides nothing,
so that the same question has the same suggestions on a busy machine.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lustrum.answer import Precheck, Snapshot
from lustrum.answer.preliminary import question_rules
from lustrum.model import (
    Axis,
    Dataset,
    Decision,
    Filter,
    LustrumError,
    Reason,
    TableQuery,
    Variable,
    plugins,
)
from lustrum.model.text import say
from lustrum.runtime.stop import check_stop
from lustrum.server.http.errors import Problem, ProblemError
from lustrum.server.service.served_dataset import ServedDataset, offered_levels
from lustrum.server.table_view import titles

# --- What a question will need, worked out from the question and the classifications alone, before it is taken
# The estimate must not look at the data: that a table is refused or made in the background would then tell
# something of them.

_PER_CELL = 1024
"""Bytes for a cell that is shown. Measured: 140 to 200 for rounding and its JSON or page, up to 900 in a
workbook."""

_MADE = 250
"""Bytes for a cell of a bundle that is made and kept. Measured: 145 to 156 where cells are many."""

_AS = {"job": 0, "json": 300, "page": 400}
"""Bytes for each such cell while it is written in a form; a format says it as ``cell_bytes``, or takes all of
``_PER_CELL``. Measured: 1 for Parquet, 57 for CSV, 51 for JSON-stat, 534 to 900 for a workbook."""

_PER_CATEGORY = 2048
"""Bytes for a category of a table of a bundle, with its label. Measured: 800."""

_PER_OTHER_CELL = 140
"""Bytes for a cell of a bundle that only the rules look at. Measured: 45."""

_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Estimate:
    """The cells that are worked on, those among them that are written, and the memory for them in bytes."""

    cells: int
    written: int
    categories: int = 0
    from_bundle: bool = False

    def memory(self, form: str = "xlsx") -> int:
        """Bytes that the answer may need at its peak in a form: of a file, ``page``, ``json``, or ``job``."""
        each = _PER_CELL
        if self.from_bundle:
            group = "lustrum.formats"
            writer = plugins.load(group, form) if form in plugins.names(group) else None
            needed = _AS.get(form, getattr(writer, "cell_bytes", _PER_CELL))
            each = min(_MADE + needed, _PER_CELL)
        names = self.categories * _PER_CATEGORY if self.from_bundle else 0
        return self.written * each + names + (self.cells - self.written) * _PER_OTHER_CELL


def estimate(query: TableQuery, dataset: Dataset, *, from_bundle: bool = False) -> Estimate:
    """What a question will need: a total is protected beside all its parts, also those not asked for.

    In a bundle everything is protected already: the rules look at parts that are not asked for, and no more.

    Every statistic takes the cells of the numbers it is worked out from; a quantile takes one for each class.
    """
    layers = 0
    for statistic in query.asked:
        for quantity in statistic.quantities(query.weight):
            classes = quantity.histogram
            layers += 1 if classes is None else len(dataset.variable(classes).codes)
    sizes, shown = [layers], [layers]
    for axis in query.by:
        variable = dataset.variable(axis.variable)
        asked = len(axis.categories(variable))
        whole = len(replace(axis, codes=None, groups=(), total=True).categories(variable))
        sizes.append(max(asked, whole))
        shown.append(asked)
    cells = math.prod(sizes)
    if not from_bundle:
        return Estimate(cells, cells)
    return Estimate(cells, math.prod(shown), sum(shown[1:]), from_bundle=True)


def require_memory(needed: Estimate, most: int, form: str) -> None:
    """End a request for a table that needs more memory than there is for one question, in words."""
    if needed.memory(form) > most >= needed.memory("parquet"):
        sentence = say(
            "The table has about {cells:,} cells, more than this server has memory for in this form; ask for "
            "it as Parquet (format=parquet), or for a smaller one: fewer variables, coarser levels or fewer "
            "categories.",
            cells=needed.written,
        )
        raise ProblemError(Problem.of_status(422, sentence))
    if needed.memory(form) > most:
        sentence = say(
            "The table has about {cells:,} cells with its totals, more than this server has memory for; ask "
            "for a smaller one: fewer variables, coarser levels or fewer categories.",
            cells=needed.cells,
        )
        raise ProblemError(Problem.of_status(422, sentence))


def available_memory() -> int:
    """The memory of the machine in bytes, or as much of it as this process is allowed."""
    return min(_limits())


def _limits() -> Iterator[int]:
    yield 8 * 2**30  # enough for any table that somebody can read, and where nothing is known
    try:
        import resource
    except ImportError:  # pragma: no cover - a system without such limits
        return
    if "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield soft
    for path in _CGROUPS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit():
            yield int(text)


TRIES = 12
ENOUGH = 3
CELLS = 400_000
"""How many questions are tried, how many good ones are enough, and how many cells they may have in all.

The work is counted, not timed: the same refusal has the same suggestions on a busy machine, too.
"""

_COARSER = frozenset(("areas", "audit", "cells", "mean-cell-size", "risk", "small-cells"))
_FEWER = _COARSER | {"dimensions", "population", "too-little"}
_WIDER = _FEWER | {"filters", "nested"}


@dataclass(frozen=True)
class Suggestion:
    """A changed question, and what was changed."""

    text: str
    query: TableQuery


def passing(
    decision: Decision,
    served: ServedDataset,
    *,
    tries: int = TRIES,
    enough: int = ENOUGH,
    cells: int = CELLS,
) -> tuple[Suggestion, ...]:
    """Other questions that are answered, least loss first; each was asked and found good.

    What a rule about the question alone speaks against is passed over without being counted as a try. Where
    answers are counted together, that is all that is tried: whether numbers pass would be one more answer.
    """
    if served.snapshot is None:
        return ()

    def left(changed: TableQuery, snapshot: Snapshot = served.snapshot) -> tuple[Reason, ...]:
        if snapshot.counted_together:
            return snapshot.precheck(changed).reasons
        answer = snapshot.answer(changed)
        return answer.reasons if answer.release is None else ()

    return _found(decision.query, decision.reasons, served, left, (tries, enough, cells))


def advice(
    query: TableQuery,
    reasons: tuple[Reason, ...],
    served: ServedDataset,
    precheck: Callable[[TableQuery], Precheck],
) -> Suggestion | None:
    """The first other question that passes the preliminary rules, for a hint while a question is made."""

    def left(changed: TableQuery) -> tuple[Reason, ...]:
        seen = precheck(changed)
        return () if seen.passes else seen.reasons

    return next(iter(_found(query, reasons, served, left, (4, 1, CELLS))), None)


def suggestions(
    query: TableQuery, reasons: Iterable[Reason], served: ServedDataset
) -> tuple[Suggestion, ...]:
    """What might be tried instead, one change each, the least loss first."""
    rules = {reason.rule for reason in reasons}
    by_query: dict[TableQuery, Suggestion] = {}
    for suggestion in _changed(query, rules, served):
        if suggestion.query.by and suggestion.query != query:
            by_query.setdefault(suggestion.query, suggestion)
    return tuple(by_query.values())


def _found(
    query: TableQuery,
    reasons: tuple[Reason, ...],
    served: ServedDataset,
    left: Callable[[TableQuery], tuple[Reason, ...]],
    limits: tuple[int, int, int],
) -> tuple[Suggestion, ...]:
    """Try one change, then two and three, until enough is found or enough was tried.

    ``left`` says what speaks against a question; nothing means that it is good.
    """
    tries, enough, cells = limits
    good: list[Suggestion] = []
    seen = {query}
    front = [(Suggestion("", query), reasons)]
    for _ in range(3):
        following: list[tuple[Suggestion, tuple[Reason, ...]]] = []
        for base, against in front:
            for change in suggestions(base.query, against, served):
                if change.query in seen:
                    continue
                seen.add(change.query)
                if tries <= 0 or len(good) >= enough:
                    return tuple(good)
                both = change if not base.text else _joined(base, change)
                try:
                    barred = tuple(question_rules(change.query, served.dataset, served.rules))
                    if barred:
                        following.append((both, barred))
                        continue
                    needed = estimate(change.query, served.dataset).cells
                    if needed > cells:
                        # Too much to try, but what is coarser still may be little enough.
                        following.append((both, against))
                        continue
                    check_stop()
                    cells -= needed
                    tries -= 1
                    still = left(change.query)
                except LustrumError:
                    continue
                if still:
                    following.append((both, still))
                else:
                    good.append(both)
        if good:
            break
        front = following
    return tuple(good)


def _joined(first: Suggestion, second: Suggestion) -> Suggestion:
    return Suggestion(say("{first}; {second}", first=first.text, second=second.text), second.query)


def _changed(query: TableQuery, rules: set[str], served: ServedDataset) -> Iterator[Suggestion]:
    if "method" in rules and (query.measure or query.weight or query.statistics):
        yield Suggestion(
            say("Count {units} instead", units=served.dataset.units),
            replace(query, measure=None, weight=None, statistics=()),
        )
    if "nested" in rules:
        yield from _published(query, served)
    if rules & _COARSER:
        yield from _coarser(query, served)
    if rules & {"combination", "one-of"}:
        yield from _apart(query, served)
    if rules & _WIDER:
        yield from _wider(query, served)
    if "too-little" in rules:
        yield from _complete(query, served)
    if len(query.by) > 1 and rules & _FEWER:
        for axis in reversed(query.by):
            yield _without(query, axis, served)


def _without(query: TableQuery, axis: Axis, served: ServedDataset) -> Suggestion:
    label = served.dataset.variable(axis.variable).label
    rest = tuple(other for other in query.by if other is not axis)
    # A share within a variable goes with the variable.
    statistics = tuple(s for s in query.statistics if s.of != axis.variable)
    return Suggestion(
        say("Leave out {name}", name=label), replace(query, by=rest, statistics=statistics)
    )


def _coarser(query: TableQuery, served: ServedDataset) -> Iterator[Suggestion]:
    """Each axis at its next coarser level, the longest axis first."""
    sized = [(len(_plain(axis, served)), axis) for axis in query.by]
    for size, axis in sorted(sized, key=lambda pair: -pair[0]):
        variable = served.dataset.variable(axis.variable)
        for level in offered_levels(variable, served.rules):
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


def _published(query: TableQuery, served: ServedDataset) -> Iterator[Suggestion]:
    """Each axis with own or overlapping groups, in the published classification instead."""
    for axis in query.by:
        variable = served.dataset.variable(axis.variable)
        offered = {level.name for level in offered_levels(variable, served.rules)}
        if axis.complete and (axis.level is None or axis.level in offered):
            continue
        for level in reversed(offered_levels(variable, served.rules)):
            changed = replace(axis, level=level.name, codes=None, groups=())
            yield Suggestion(
                say("{variable}: {level}", variable=variable.label, level=level.label),
                _with(query, axis, changed),
            )
        changed = replace(axis, level=None, codes=None, groups=())
        yield Suggestion(
            say("{variable}: every category", variable=variable.label), _with(query, axis, changed)
        )


def _apart(query: TableQuery, served: ServedDataset) -> Iterator[Suggestion]:
    """Without one of the variables that may not stand together."""
    sets = [set(group) for group in (*served.rules.disallowed, *served.rules.at_most_one)]
    bound = set().union(*sets) if sets else set[str]()
    for axis in reversed(query.by):
        if axis.variable in bound:
            yield _without(query, axis, served)
    for item in query.where:
        if item.variable in bound:
            yield _unfiltered(query, item, served)


def _wider(query: TableQuery, served: ServedDataset) -> Iterator[Suggestion]:
    """Each selection one level up, or left out."""
    for item in query.where:
        variable = served.dataset.variable(item.variable)
        members = item.members(variable)
        for level in offered_levels(variable, served.rules):
            above = next((c for c in level.groups if c.member_set > members), None)
            if above is not None:
                new = replace(item, codes=(above.code,))
                where = tuple(new if other is item else other for other in query.where)
                yield _counting(replace(query, where=where), served)
                break
    for item in query.where:
        yield _unfiltered(query, item, served)


def _unfiltered(query: TableQuery, item: Filter, served: ServedDataset) -> Suggestion:
    rest = tuple(other for other in query.where if other is not item)
    return _counting(replace(query, where=rest), served)


def _counting(query: TableQuery, served: ServedDataset) -> Suggestion:
    population = titles.population(query, served.dataset)
    return Suggestion(say("Count {population}", population=population), query)


def _complete(query: TableQuery, served: ServedDataset) -> Iterator[Suggestion]:
    """Each axis with all its categories instead of some."""
    for axis in query.by:
        if not axis.complete:
            variable = served.dataset.variable(axis.variable)
            yield Suggestion(
                say("{variable}: every category", variable=variable.label),
                _with(query, axis, replace(axis, codes=None, groups=())),
            )


def _with(query: TableQuery, old: Axis, new: Axis) -> TableQuery:
    return replace(query, by=tuple(new if axis is old else axis for axis in query.by))


def _plain(axis: Axis, served: ServedDataset) -> tuple[object, ...]:
    variable: Variable = served.dataset.variable(axis.variable)
    return replace(axis, total=False).categories(variable)
