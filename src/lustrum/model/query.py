"""A question for a table, as a value: what the table shows, who is counted, what is summed.

One form serves the page, the API, the command line, saved links and logs::

    {"dataset": "demo",
     "by": ["sex", {"variable": "age", "level": "ten-year", "total": true},
            {"variable": "citizenship", "groups": [{"label": "EU", "members": ["1", "2"]}]}],
     "where": {"region": ["1"]}}

Without more it asks for counts. ``measure`` asks for the sum of a measure, ``statistics`` for several numbers
in one table (see :mod:`lustrum.model.statistic`), and ``weight`` weights all of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lustrum.model.errors import QueryError, check_known, choices
from lustrum.model.hierarchy import Category
from lustrum.model.statistic import TOTAL_SHARE, Quantity, Statistic
from lustrum.model.text import Label, listed, say
from lustrum.model.variable import RESERVED, REST_CODE, TOTAL_CODE, Variable, codes_for

if TYPE_CHECKING:
    from lustrum.model.dataset import Dataset

# What an own group holds, in words: its categories, those of numbers that follow each other as one range.

_NUMBERS = re.compile(r"(\d+)(?: to (\d+)|( and over))?\Z")


def in_words(places: Sequence[int], labels: Sequence[str]) -> str:
    """The categories at some places of a classification, by their labels.

    >>> in_words([0, 1, 2, 5], ["0 to 4", "5 to 9", "10 to 14", "25 and over"])
    '0 to 14, 25 and over'
    >>> in_words([0, 1], ["Spain", "France"])
    'Spain, France'
    """
    said: list[str] = []
    start = 0
    for at in range(1, len(places) + 1):
        if at < len(places) and _follows(places, labels, at):
            continue
        said.append(_range(labels[start], labels[at - 1]))
        start = at
    return listed(said)


def _follows(places: Sequence[int], labels: Sequence[str], at: int) -> bool:
    """Whether the numbers of a category go on where those of the one before it end."""
    before, numbers = _NUMBERS.match(labels[at - 1]), _NUMBERS.match(labels[at])
    if before is None or numbers is None or before[3] or places[at] != places[at - 1] + 1:
        return False
    return int(numbers[1]) == int(before[2] or before[1]) + 1


def _range(first: str, last: str) -> str:
    if first == last:
        return first
    low, high = _NUMBERS.match(first), _NUMBERS.match(last)
    assert low is not None
    assert high is not None
    if not high[3]:
        return say("{low} to {high}", low=low[1], high=high[2] or high[1])

    def opened(text: str) -> str:
        """The open end of the last label behind the first number, in any language."""
        return re.sub(r"^\d+", low[1], text, count=1)

    return last.each(opened) if isinstance(last, Label) else opened(last)


MOST_STATISTICS = 12


@dataclass(frozen=True)
class Group:
    """An own group: a label and the codes (finest or groups) that it joins."""

    label: str
    members: tuple[str, ...]
    code: str = ""


@dataclass(frozen=True)
class Axis:
    """One variable of a table: at a level, or some of its codes, or own groups; with a total or not.

    >>> Axis("age", level="ten-year", total=True).complete
    True
    """

    variable: str
    level: str | None = None
    codes: tuple[str, ...] | None = None
    groups: tuple[Group, ...] = ()
    total: bool = False

    def __post_init__(self) -> None:
        if self.groups and (self.codes is not None or self.level is not None):
            raise QueryError(
                say(
                    "Variable {variable!r}: own groups cannot be mixed with a level or a choice of "
                    "codes; put the codes into the groups.",
                    variable=self.variable,
                )
            )
        if self.codes is not None and not self.codes:
            raise QueryError(
                say(
                    "Variable {variable!r}: the choice of codes is empty; name at least one, or leave "
                    "the choice out to have all.",
                    variable=self.variable,
                )
            )

    @property
    def complete(self) -> bool:
        return self.codes is None and not self.groups

    def categories(self, variable: Variable) -> tuple[Category, ...]:
        """What stands along the axis, the total last.

        The total is always that of the whole variable, chosen codes or not: a total of the chosen
        ones alone would be a new category, which could be differenced against the others.
        """
        shown = self._chosen(variable)
        seen: set[str] = set()
        for category in shown:
            if category.code in seen:
                raise QueryError(
                    say(
                        "Variable {variable!r}: the category {code!r} is asked for twice; ask for it once.",
                        variable=variable.name,
                        code=category.code,
                    )
                )
            seen.add(category.code)
        if not self.total:
            return shown
        return (*shown, Category(TOTAL_CODE, "Total", tuple(sorted(variable.everything))))

    def _chosen(self, variable: Variable) -> tuple[Category, ...]:
        if self.groups:
            return tuple(_own_group(g, i, variable) for i, g in enumerate(self.groups, start=1))
        offered = variable.finest if self.level is None else variable.level(self.level).categories
        if self.codes is None:
            return offered
        return tuple(variable.category(code) for code in self.codes)

    def widened(self, variable: Variable) -> tuple[Category, ...]:
        """The axis without the choice: all categories, so that no choice gets around a rule.

        Own groups and codes of several levels keep their place; the people they leave out stand
        together in one further category.
        """
        if self.complete:
            return self._chosen(variable)
        shown = self._chosen(variable)
        offered = variable.finest if self.level is None else variable.level(self.level).categories
        if {c.code for c in shown} <= {c.code for c in offered}:
            return offered
        rest = variable.everything.difference(*(c.members for c in shown))
        if not rest:
            return shown
        return (*shown, Category(REST_CODE, "All others", tuple(sorted(rest))))

    def to_mapping(self) -> str | dict[str, Any]:
        """The shortest form that :meth:`TableQuery.from_mapping` reads back."""
        out: dict[str, Any] = {"variable": self.variable}
        if self.level is not None:
            out["level"] = self.level
        if self.codes is not None:
            out["codes"] = list(self.codes)
        if self.groups:
            out["groups"] = [
                {"label": g.label, "members": list(g.members)}
                | ({"code": g.code} if g.code else {})
                for g in self.groups
            ]
        if self.total:
            out["total"] = True
        return self.variable if len(out) == 1 else out


def _own_group(group: Group, number: int, variable: Variable) -> Category:
    members = sorted({p for code in group.members for p in variable.category(code).members})
    if not members:
        raise QueryError(
            say(
                "Variable {variable!r}: the group {group!r} is empty; name its members.",
                variable=variable.name,
                group=group.label,
            )
        )
    code = group.code or _free_code(number, variable)
    if variable.holds(code):
        raise QueryError(
            say(
                "Variable {variable!r}: the group {group!r} has the code of a category, {code!r}; "
                "give it another or none.",
                variable=variable.name,
                group=group.label,
                code=code,
            )
        )
    labels = [variable.labels[position] for position in members]
    return Category(code, group.label, tuple(members), in_words(members, labels))


def _free_code(number: int, variable: Variable) -> str:
    code = f"G{number}"
    while variable.holds(code):
        code = f"_{code}"
    return code


@dataclass(frozen=True)
class Filter:
    """Who is counted: only records whose variable has one of these codes (finest or groups).

    >>> Filter("sex", ("1",)).codes
    ('1',)
    """

    variable: str
    codes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.codes:
            raise QueryError(
                say(
                    "The filter on {variable!r} names no code; name at least one, or drop the filter.",
                    variable=self.variable,
                )
            )

    def members(self, variable: Variable) -> frozenset[int]:
        """The positions of the finest codes that pass."""
        return frozenset(p for code in self.codes for p in variable.category(code).members)


@dataclass(frozen=True)
class TableQuery:
    """A question for a table.

    >>> TableQuery("town", (Axis("area"),), (Filter("sex", ("1",)),)).to_mapping()
    {'dataset': 'town', 'by': ['area'], 'where': {'sex': ['1']}}
    """

    dataset: str
    by: tuple[Axis, ...]
    where: tuple[Filter, ...] = ()
    measure: str | None = None
    weight: str | None = None
    statistics: tuple[Statistic, ...] = ()

    def __post_init__(self) -> None:
        self._settle_statistics()
        for name, times in Counter(axis.variable for axis in self.by).items():
            if times > 1:
                raise QueryError(
                    say("The variable {name!r} is in the table twice; name it once.", name=name)
                )
        for name, times in Counter(f.variable for f in self.where).items():
            if times > 1:
                raise QueryError(
                    say(
                        "There are two filters on {name!r}; write one filter with all the codes wanted.",
                        name=name,
                    )
                )

    def _settle_statistics(self) -> None:
        """One question has one form: a count alone names nothing, and a sum alone its measure."""
        if self.statistics and self.measure is not None:
            raise QueryError(
                say("'measure' asks for a sum alone; name the measure in each of the statistics.")
            )
        if len(self.statistics) > MOST_STATISTICS:
            raise QueryError(
                say("A table shows at most {most} statistics; name fewer.", most=MOST_STATISTICS)
            )
        settled = tuple(self._settled(statistic) for statistic in self.statistics)
        if len(set(settled)) < len(settled):
            twice = next(s for s, times in Counter(settled).items() if times > 1)
            raise QueryError(
                say("The statistic {text!r} is asked for twice; ask for it once.", text=twice.text)
            )
        if len(settled) == 1 and not settled[0].derived:
            object.__setattr__(self, "measure", settled[0].measure)
            settled = ()
        object.__setattr__(self, "statistics", settled)

    def _settled(self, statistic: Statistic) -> Statistic:
        """A share of rows or columns by the name of their variable."""
        names = [axis.variable for axis in self.by]
        axis_index = {"row": 0, "column": -1}.get(statistic.of or "")
        if axis_index is not None and statistic.of not in names and len(names) > 1:
            return replace(statistic, of=names[axis_index])
        if statistic.of not in (None, TOTAL_SHARE, *names):
            raise QueryError(
                say(
                    "A share is of 'total' or within a variable of the table, not of {name!r}; {choices}.",
                    name=statistic.of,
                    choices=choices(statistic.of or "", [TOTAL_SHARE, *names]),
                )
            )
        return statistic

    @cached_property
    def asked(self) -> tuple[Statistic, ...]:
        """All that the cells show, also where the question does not say so: a count, or a sum."""
        if self.statistics:
            return self.statistics
        return (Statistic() if self.measure is None else Statistic("sum", self.measure),)

    def part(self, quantity: Quantity, totals: Sequence[str] = ()) -> TableQuery:
        """The question for one protected number of this table, with a total along some more variables."""
        where = self.where
        if quantity.period is not None:
            where = tuple(
                replace(f, codes=(quantity.period.code,))
                if f.variable == quantity.period.variable
                else f
                for f in where
            )
        classes = () if quantity.histogram is None else (Axis(quantity.histogram),)
        return TableQuery(
            self.dataset,
            (
                *(replace(axis, total=axis.total or axis.variable in totals) for axis in self.by),
                *classes,
            ),
            where,
            quantity.measure,
            quantity.weight,
        )

    def selected(self, variable: Variable, categories: Sequence[Category]) -> list[int]:
        """The places of the categories that hold somebody of the selected population.

        Nobody was counted in the others: their number would be 0 by the question, not by the people.
        """
        item = next((item for item in self.where if item.variable == variable.name), None)
        if item is None:
            return list(range(len(categories)))
        passing = item.members(variable)
        return [i for i, c in enumerate(categories) if not passing.isdisjoint(c.members)]

    def in_codes(self, dataset: Dataset) -> TableQuery:
        """The same question with codes wherever it names categories by labels or ranges of labels."""

        def axis_in_codes(axis: Axis) -> Axis:
            variable = dataset.variable(axis.variable)
            every = None if axis.level is None else variable.level(axis.level).categories
            codes = None if axis.codes is None else codes_for(axis.codes, variable, every)
            groups = (replace(g, members=codes_for(g.members, variable)) for g in axis.groups)
            return replace(axis, codes=codes, groups=tuple(groups))

        chosen = any(axis.codes or axis.groups for axis in self.by)
        return replace(
            self,
            by=tuple(map(axis_in_codes, self.by)) if chosen else self.by,
            where=tuple(
                replace(item, codes=codes_for(item.codes, dataset.variable(item.variable)))
                for item in self.where
            ),
        )

    @property
    def with_totals(self) -> TableQuery:
        return replace(self, by=tuple(replace(axis, total=True) for axis in self.by))

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> TableQuery:
        """Read a question from its JSON form; every mistake is one clear sentence."""
        if not isinstance(raw, Mapping):
            raise QueryError(
                'A table query is an object, such as {"dataset": "demo", "by": ["sex"]}.'
            )
        known = ("dataset", "by", "where", "measure", "weight", "statistics", "totals")
        check_known(raw, known, "A table query has no key", QueryError)
        dataset = raw.get("dataset")
        if not isinstance(dataset, str):
            raise QueryError("A table query needs 'dataset', the name of a dataset in quotes.")
        by = raw.get("by", ())
        if not isinstance(by, Sequence) or isinstance(by, str):
            raise QueryError('\'by\' must be a list of variables, such as ["age", "sex"].')
        where = raw.get("where", {})
        where = {} if where is None else where
        if not isinstance(where, Mapping):
            raise QueryError('\'where\' must map variables to codes, such as {"region": ["1"]}.')
        totals = raw.get("totals", False)
        if not isinstance(totals, bool):
            raise QueryError("'totals' must be true or false.")
        query = cls(
            dataset=dataset,
            by=tuple(_axis(a) for a in by),
            where=tuple(
                Filter(str(v), _codes(c, f"The filter on {v!r}")) for v, c in where.items()
            ),
            weight=_name(raw, "weight"),
            **_statistics(raw),
        )
        return query.with_totals if totals else query

    def to_mapping(self) -> dict[str, Any]:
        """The JSON form; :meth:`from_mapping` reads it back unchanged."""
        out: dict[str, Any] = {"dataset": self.dataset, "by": [a.to_mapping() for a in self.by]}
        if self.where:
            out["where"] = {f.variable: list(f.codes) for f in self.where}
        if self.measure is not None:
            out["measure"] = self.measure
        if self.weight is not None:
            out["weight"] = self.weight
        if self.statistics:
            out["statistics"] = [statistic.to_mapping() for statistic in self.statistics]
        return out


def _statistics(raw: Mapping[str, Any]) -> dict[str, Any]:
    """``measure`` alone is a sum; beside statistics it is the measure of those that name none."""
    measure, said = _name(raw, "measure"), raw.get("statistics")
    if said is None:
        return {"measure": measure}
    if not isinstance(said, Sequence) or isinstance(said, str) or not said:
        raise QueryError(
            '\'statistics\' must be a list that is not empty, such as ["count", "mean:turnover"].'
        )
    return {"statistics": tuple(Statistic.from_mapping(entry, measure) for entry in said)}


def _axis(raw: object) -> Axis:
    if isinstance(raw, str):
        return Axis(raw)
    if not isinstance(raw, Mapping) or not isinstance(raw.get("variable"), str):
        raise QueryError(
            "Each entry of 'by' must be a variable's name or an object with 'variable'."
        )
    variable = raw["variable"]
    known = ("variable", "level", "codes", "groups", "total")
    check_known(raw, known, f"Variable {variable!r}: unknown key", QueryError)
    codes = raw.get("codes")
    groups = raw.get("groups", ())
    if not isinstance(groups, Sequence) or isinstance(groups, str):
        raise QueryError(f"Variable {variable!r}: 'groups' must be a list of groups.")
    total = raw.get("total", False)
    if not isinstance(total, bool):
        raise QueryError(f"Variable {variable!r}: 'total' must be true or false.")
    return Axis(
        variable=variable,
        level=_name(raw, "level"),
        codes=None if codes is None else _codes(codes, f"Variable {variable!r}, 'codes'"),
        groups=tuple(_group(g, variable) for g in groups),
        total=total,
    )


def _group(raw: object, variable: str) -> Group:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("label"), str):
        raise QueryError(f"Variable {variable!r}: each group needs a 'label' and its 'members'.")
    code = raw.get("code", "")
    if not isinstance(code, str) or code in RESERVED:
        raise QueryError(f"Variable {variable!r}: the code of a group must be a text of its own.")
    return Group(raw["label"], _codes(raw.get("members"), f"Variable {variable!r}, a group"), code)


def _codes(raw: object, where: str) -> tuple[str, ...]:
    if isinstance(raw, str):
        return (raw,)
    if not isinstance(raw, Sequence) or not all(isinstance(c, str) for c in raw):
        raise QueryError(f"{where} must be a code or a list of codes, each a text in quotes.")
    return tuple(raw)


def _name(raw: Mapping[str, Any], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise QueryError(f"{key!r} must be a name in quotes.")
    return value
