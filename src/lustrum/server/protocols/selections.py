"""What a request of another protocol selects, as a question of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from lustrum.answer import TableService
from lustrum.model import (
    Axis,
    DescribedStatistic,
    QueryError,
    Release,
    Statistic,
    TableAxis,
    TableQuery,
    Variable,
    describe_statistics,
)
from lustrum.model.arrays import Array
from lustrum.model.errors import choices
from lustrum.model.variable import TOTAL_CODE
from lustrum.public.prepared import PreparedFolder
from lustrum.public.prepared.folder import PreparedTable
from lustrum.server.http.errors import not_found
from lustrum.server.pages.prepared import find_programme, programmes
from lustrum.server.service.served_dataset import ServedDataset, find

_CALL = re.compile(r"(TOP|BOTTOM|RANGE|FROM|TO)\((.*)\)", re.IGNORECASE | re.DOTALL)
_MOST_PATTERNS = 100
_MOST_STARS = 4


@dataclass(frozen=True)
class Offer:
    """A dataset as other protocols see it: a table of all its variables, each of which may be left out."""

    served: ServedDataset

    @property
    def name(self) -> str:
        return self.served.dataset.name

    @property
    def weight(self) -> str | None:
        """What records are weighted with: of a sample every number is an estimate."""
        return self.served.weights[0].name if self.served.weights else None

    @cached_property
    def contents(self) -> tuple[DescribedStatistic, ...]:
        """What its cells can show: the count, and of each measure the sum and the mean."""
        dataset = self.served.dataset
        statistics = [Statistic()]
        for measure in self.served.summed(self.weight):
            statistics += [Statistic("sum", measure.name), Statistic("mean", measure.name)]
        found = []
        for statistic in statistics:
            described = describe_statistics(
                TableQuery(dataset.name, (), weight=self.weight, statistics=(statistic,)), dataset
            )
            found.append(DescribedStatistic(statistic.text, *_facts(described[0])))
        return tuple(found)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.served.variables

    def levels(self, name: str) -> tuple[str, ...]:
        return tuple(one.name for one in self.served.levels(self.variable(name)))

    def variable(self, name: str) -> Variable:
        """The variable of that name; one that the policy keeps back looks like one that is not there."""
        names = [variable.name for variable in self.variables]
        if name not in names:
            raise QueryError(
                f"The table {self.name!r} has no variable {name[:80]!r}; {choices(name, names)}."
            )
        return self.served.dataset.variable(name)

    def codes(self, name: str, level: str | None) -> list[str]:
        variable, offered = self.variable(name), self.levels(name)
        if level is None:
            return list(variable.codes)
        if level not in offered:
            raise QueryError(
                f"Variable {name!r} has no level {level[:80]!r}; {choices(level, offered)}."
            )
        return list(variable.level(level).codes)

    def axis(self, name: str, expressions: Sequence[str], level: str | None = None) -> Axis:
        """A variable with the codes that some expressions select, or without a choice where that is all."""
        codes = self.codes(name, level)
        chosen = selected(expressions, codes, name)
        return Axis(name, level, None if set(chosen) == set(codes) else tuple(chosen))

    def mixed(self, variable: Variable, codes: Sequence[str]) -> Axis | None:
        """A variable with codes of any of its levels, ``*`` for all the finest and ``_T`` for its total.

        The total alone leaves it out of the table.
        """
        total = TOTAL_CODE in codes
        rest = list(dict.fromkeys(code for code in codes if code != TOTAL_CODE))
        if "*" in rest and not variable.holds("*"):
            rest = list(variable.codes)
        if not rest:
            return None
        for level in (None, *self.levels(variable.name)):
            every = self.codes(variable.name, level)
            if set(rest) == set(every):
                return Axis(variable.name, level, total=total)
        known = self.known(variable)
        for code in rest:
            if code not in known:
                raise QueryError(
                    f"Variable {variable.name!r} has no category {code[:80]!r}; {choices(code[:80], known)}."
                )
        return Axis(variable.name, None, tuple(rest), total=total)

    def known(self, variable: Variable) -> dict[str, str]:
        """All codes of the levels that are offered, the finest first, with their labels."""
        levels = self.served.levels(variable)
        groups = {g.code: g.label for level in levels for g in level.categories}
        return {c.code: c.label for c in variable.finest} | groups

    def query(self, axes: Iterable[Axis], contents: Sequence[str]) -> TableQuery:
        """The question for these variables and contents, the count where none is named."""
        statistics = tuple(Statistic.parse(text) for text in contents)
        return TableQuery(self.name, tuple(axes), weight=self.weight, statistics=statistics)

    def of(self, query: TableQuery) -> tuple[DescribedStatistic, ...]:
        known = {content.code: content for content in self.contents}
        return tuple(known[statistic.text] for statistic in query.asked)


def _facts(one: DescribedStatistic) -> tuple[str, str, int]:
    return one.label, one.unit, one.decimals


def selected(expressions: Sequence[str], codes: Sequence[str], what: str) -> list[str]:
    """The codes that expressions select, each once: codes, ``*`` and ``?``, ``TOP(n)``, ``BOTTOM(n)``,
    ``RANGE(a,b)``, ``FROM(a)`` and ``TO(a)``; ``TOP(n,skipped)`` leaves some out. A code is itself before
    it is an expression.

    >>> selected(["TOP(1)", "b?", "RANGE(c1,c3)"], ["a", "b1", "b2", "c1", "c2", "c3"], "age")
    ['a', 'b1', 'b2', 'c1', 'c2', 'c3']
    >>> selected(["BOTTOM(2,1)"], ["a", "b", "c", "d"], "age")
    ['b', 'c']
    """
    places = {code: place for place, code in enumerate(codes)}
    found: dict[str, None] = {}
    patterns = 0
    for text in dict.fromkeys(expressions):
        call = _CALL.fullmatch(text.strip())
        if text in places and text != "*":
            found[text] = None
        elif text == "*":
            found |= dict.fromkeys(codes)
        elif call is not None:
            found |= dict.fromkeys(_called(call[1].upper(), call[2], codes, places, what))
        elif "*" in text or "?" in text:
            patterns += 1
            if patterns > _MOST_PATTERNS or text.count("*") > _MOST_STARS:
                raise QueryError(
                    f"The selection of {what!r} has too many wildcards; name at most {_MOST_PATTERNS} patterns "
                    f"with {_MOST_STARS} stars each."
                )
            parts = (re.escape(part).replace(r"\?", ".") for part in text.split("*"))
            form = re.compile(".*".join(parts), re.IGNORECASE | re.DOTALL)
            found |= dict.fromkeys(code for code in codes if form.fullmatch(code))
        else:
            raise QueryError(
                f"Variable {what!r} has no category {text[:80]!r}; {choices(text[:80], codes)}."
            )
    if not found:
        raise QueryError(f"The selection of {what!r} holds no category; select at least one.")
    return list(found)


def _called(
    name: str, inside: str, codes: Sequence[str], places: dict[str, int], what: str
) -> Sequence[str]:
    given = [part.strip() for part in inside.split(",")]
    if name in ("TOP", "BOTTOM"):
        if len(given) > 2 or not all(
            one.isascii() and one.isdigit() and len(one) < 10 for one in given
        ):
            raise QueryError(f"{name} takes a number of categories of {what!r}, such as {name}(5).")
        count, skipped = int(given[0]), int(given[1]) if len(given) > 1 else 0
        end = max(len(codes) - skipped, 0)
        return (
            codes[skipped : skipped + count] if name == "TOP" else codes[max(end - count, 0) : end]
        )
    for code in given:
        if code not in places:
            raise QueryError(
                f"Variable {what!r} has no category {code[:80]!r}; {choices(code[:80], codes)}."
            )
    if len(given) != (2 if name == "RANGE" else 1):
        such_as = "RANGE(a,b)" if name == "RANGE" else f"{name}(a)"
        raise QueryError(f"{name} takes codes of {what!r}, as {such_as}.")
    first = 0 if name == "TO" else places[given[0]]
    last = len(codes) - 1 if name == "FROM" else places[given[-1]]
    return codes[first : last + 1]


def listed_values(text: str) -> list[str]:
    """The values of a parameter, between commas that stand in no brackets; ``[a,b]`` is the value ``a,b``.

    >>> listed_values("1,TOP(2,1),[x,y]")
    ['1', 'TOP(2,1)', 'x,y']
    """
    values, depth, start = [], 0, 0
    for place, letter in enumerate(f"{text},"):
        depth += (letter in "([") - (letter in ")]" and depth > 0)
        if letter == "," and (depth == 0 or place == len(text)):
            value = text[start:place].strip()
            values.append(value[1:-1] if value[:1] == "[" and value[-1:] == "]" else value)
            start = place + 1
    return [value for value in values if value]


# Prepared tables as tables of PxWebApi, each response of each table by itself: ``programme.table.response``.
#
# What is selected is a part of what is published; a variable that is not selected stands for its total.


class PreparedOffer:
    """A prepared table as other protocols see it, with what :class:`Offer` has for a dataset."""

    def __init__(self, folder: PreparedFolder, table: PreparedTable) -> None:
        self.folder, self.table = folder, table
        self.name = f"{folder.name}.{table.id}"
        self.release = folder.release(table)
        unit = self.release.unit or table.unit
        label = table.label.removeprefix(f"{table.title}: ")
        what = DescribedStatistic(table.response, label, unit, self.release.decimals)
        self.contents = (what,)
        self.variables = self.release.axes

    @property
    def title(self) -> str:
        return self.table.label

    def levels(self, name: str) -> tuple[str, ...]:
        return ()

    def codes(self, name: str, level: str | None) -> list[str]:
        return list(self.variable(name).codes)

    def variable(self, name: str) -> TableAxis:
        """The variable of that name; a clear error where there is none."""
        names = [variable.name for variable in self.variables]
        if name not in names:
            raise QueryError(
                f"The table {self.name!r} has no variable {name[:80]!r}; {choices(name, names)}."
            )
        return self.variables[names.index(name)]

    def axis(self, name: str, expressions: Sequence[str], level: str | None = None) -> Axis:
        """A variable with the codes that some expressions select."""
        return Axis(name, level, tuple(selected(expressions, self.variable(name).codes, name)))

    def part(self, axes: Sequence[Axis]) -> Release:
        """The table by these variables, in this order; all of it where none is named."""
        asked = {axis.variable: axis.codes or () for axis in axes}
        if len(asked) < len(axes):
            raise QueryError("The selection names a variable twice; name it once.")
        picks, kept = [], []
        for place, axis in enumerate(self.release.axes):
            codes = asked.get(axis.name, axis.codes if not axes else (TOTAL_CODE,))
            if axis.name in asked or not axes:
                kept.append(place)
            elif TOTAL_CODE not in axis.codes:
                raise QueryError(
                    f"The variable {axis.name!r} has no total, so that it cannot be left out; select it."
                )
            picks.append([axis.codes.index(code) for code in codes])
        part = self.release.take(picks)
        names = [*asked] or [axis.name for axis in part.axes]
        order = sorted(range(len(kept)), key=lambda at: names.index(part.axes[kept[at]].name))

        def turned(array: Array) -> Array:
            return array.reshape([part.shape[place] for place in kept]).transpose(order)

        return replace(
            part, axes=tuple(part.axes[kept[at]] for at in order), **part.each_array(turned)
        )


def offered(service: TableService, name: str) -> Offer | PreparedOffer:
    """The dataset or the prepared table of an address; a clear problem where there is none."""
    programme, dot, table = name.partition(".")
    if not dot:
        return Offer(find(service, name))
    folder = find_programme(service, programme)
    if table not in [one.id for one in folder.tables]:
        raise not_found(f"There is no prepared table {name[:80]!r}.")
    return PreparedOffer(folder, folder.table(table))


def prepared_offers(service: TableService) -> list[PreparedOffer]:
    """All prepared tables that may be served."""
    return [
        PreparedOffer(folder, table) for folder in programmes(service) for table in folder.tables
    ]
