"""A question for a table as a query string, and back.

One form serves the page, the API and saved links::

    by=age:ten-year&by=sex&codes=age:1..4&where=region:1&totals=on

=============  =====================================================================================
``by``         a variable, or ``variable:level``; once for each variable of the table, rows first
``codes``      only these categories of a variable in the table, as ``variable:1,2,7..12``
``group``      an own group of a variable in the table, as ``variable:label=1,2,7..12``
``where``      who is counted, as ``variable:code``; repeated for one variable, any of its codes counts
``among``      the same for many codes, as ``variable:1,2,7..12``
``place``      ``variable:rows``, ``variable:columns``, ``variable:layers`` or a number such as ``variable:4``:
               moves a variable of the table there; of two for one place the later one goes first
``totals``     ``on`` adds a total to every variable; ``off``, like nothing, adds none
``measure``    a numeric column to sum instead of counting, or that of each statistic which names none
``statistic``  what the cells show, as ``mean:turnover``; once for each
``weight``     a column of weights to count or sum with
``query``      the JSON form of the whole question, for what the others cannot say (totals on some
               variables only, codes for own groups); it stands alone
=============  =====================================================================================

How lists of codes are written stands in ``code_lists``. Labels and their ranges, such as ``15-64``, may stand
where codes do; :meth:`~lustrum.model.TableQuery.in_codes` reads them. In the label of a group an equals sign is
``%3D`` and a percent sign ``%25``. A parameter without a value counts as absent, since that is what a form
sends for a list that was left alone. A parameter that is not known is a mistake: to ignore it would answer
another question.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from fastapi import Request, Response
from fastapi.routing import APIRoute

from lustrum.model import Axis, Filter, Group, QueryError, Statistic, TableQuery
from lustrum.model.errors import choices
from lustrum.model.text import say
from lustrum.server.urls.code_lists import escaped, list_of, listed

# --- JSON in which every name of an object stands once: of two values, one would be left out without a word

_MISTAKE = "lustrum.mistake"


def read_json(text: str | bytes) -> Any:
    """What a text says; a name that stands twice in one object is a mistake.

    >>> read_json('{"by": ["sex"]}')
    {'by': ['sex']}
    """
    return json.loads(text, object_pairs_hook=_one_of_each)


def _one_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name, many in times.items() if many > 1)
        raise QueryError(say("The name {name!r} is given twice; give it once.", name=twice))
    return by_name


class JSONRoute(APIRoute):
    """A route that reads bodies in this way."""

    def get_route_handler(self) -> Any:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            response: Response = await handle(_Request(request.scope, request.receive))
            return response

        return handler


class _Request(Request):
    """A request that notes the mistake: an exception here would become one without words."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            try:
                self._json = read_json(await self.body())
            except QueryError as error:
                self.scope[_MISTAKE] = error
                self._json = {}
        return self._json


def check_names(request: Request) -> None:
    """Refuse a request in whose body a name stood twice."""
    if _MISTAKE in request.scope:
        raise request.scope[_MISTAKE]


PARAMETERS = ("by", "where", "totals", "measure", "statistic", "weight", "query")
CHOICES = ("codes", "group", "among", "place")
"""What says more about the variables of a question."""

PLACES = ("rows", "columns", "layers")
_SWITCH = {"on": True, "off": False}
_FEW = 3


@dataclass
class _Parameters:
    """What the parameters say, sorted."""

    by: list[tuple[str, str | None]] = field(default_factory=list)
    codes: dict[str, list[str]] = field(default_factory=dict)
    groups: dict[str, list[Group]] = field(default_factory=dict)
    where: dict[str, list[str]] = field(default_factory=dict)
    statistics: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    single: dict[str, str] = field(default_factory=dict)

    def take(self, name: str, value: str) -> None:
        """Take one parameter in."""
        if name == "by":
            self.by.extend(_axis(one) for one in value.split(","))  # no name holds a comma
        elif name == "where":
            variable, code = _named(
                value, say("'where' must be a variable and its code"), "region:1"
            )
            self.where.setdefault(variable, []).append(code)
        elif name in ("codes", "among"):
            what = say("{name!r} must be a variable and a list of its codes", name=name)
            variable, text = _named(value, what, "age:1,2,7..12")
            codes = list_of(text, say("{name!r} for {variable!r}", name=name, variable=variable))
            (self.codes if name == "codes" else self.where).setdefault(variable, []).extend(codes)
        elif name == "statistic":
            self.statistics.append(value)
        elif name == "group":
            variable, group = _group(value)
            self.groups.setdefault(variable, []).append(group)
        elif name == "place":
            variable, zone = _named(
                value, say("'place' must be a variable and its place"), "age:rows"
            )
            self.places[variable] = _place(zone)
        elif name in self.single:
            raise QueryError(say("The parameter {name!r} is given twice; give it once.", name=name))
        else:
            self.single[name] = value

    @property
    def parts(self) -> bool:
        """Whether anything was said beside the parameters that stand once."""
        return bool(
            self.by or self.where or self.codes or self.groups or self.places or self.statistics
        )

    def axes(self) -> tuple[Axis, ...]:
        """The variables of the table with their choices, each at its place."""
        names = [variable for variable, _ in self.by]
        for what, named in (("codes", self.codes), ("group", self.groups)):
            for variable in named:
                if variable not in names:
                    raise QueryError(
                        say(
                            "{what!r} is about {variable!r}, which is not in the table; add by={variable}, or "
                            "leave {what!r} out.",
                            what=what,
                            variable=variable,
                        )
                    )
        axes = [
            Axis(
                variable,
                level,
                tuple(self.codes[variable]) if variable in self.codes else None,
                tuple(self.groups.get(variable, ())),
            )
            for variable, level in self.by
        ]
        if not self.places:
            return tuple(axes)
        ranked = [(self.places.get(a.variable, i), -i, a) for i, a in enumerate(axes)]
        return tuple(axis for *_, axis in sorted(ranked, key=lambda entry: entry[:2]))


def read(pairs: Iterable[tuple[str, str]], dataset: str) -> TableQuery:
    """The question that a query string poses to a dataset; every mistake is one clear sentence.

    >>> read([("by", "age:ten-year"), ("by", ""), ("where", "region:1")], "demo").to_mapping()["by"]
    [{'variable': 'age', 'level': 'ten-year'}]
    >>> read([("by", "sex,area")], "demo") == read([("by", "sex"), ("by", "area")], "demo")
    True
    """
    said = _Parameters()
    known = (*PARAMETERS, *CHOICES)
    for name, value in pairs:
        if not is_known(name):
            raise QueryError(
                say(
                    "There is no parameter {name!r}; {choices}.",
                    name=name,
                    choices=choices(name, known, len(known)),
                )
            )
        if value != "":
            said.take(name, value)
    single = said.single
    if "query" in single:
        if said.parts or len(single) > 1:
            raise QueryError(
                say("The parameter 'query' holds a whole question; leave out the others.")
            )
        return _from_json(single["query"], dataset)
    measure = single.get("measure")
    query = TableQuery(
        dataset,
        said.axes(),
        tuple(Filter(variable, tuple(codes)) for variable, codes in said.where.items()),
        None if said.statistics else measure,
        single.get("weight"),
        tuple(Statistic.parse(text, measure) for text in said.statistics),
    )
    totals = single.get("totals", "off")
    if totals not in _SWITCH:
        raise QueryError(say("'totals' must be 'on' or 'off', not {totals!r}.", totals=totals))
    return query.with_totals if _SWITCH[totals] else query


def is_known(name: str) -> bool:
    """Whether a parameter belongs to a question."""
    return name in (*PARAMETERS, *CHOICES)


def tidied(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parameters without the choices of variables that have left the table.

    A form that works without scripts still sends them. They may be dropped only where a person goes on
    looking at the form; anywhere else they are a mistake.
    """
    all_pairs = list(pairs)
    named = (one for name, value in all_pairs if name == "by" for one in value.split(","))
    names = {one.partition(":")[0] for one in named}
    selected = {
        value.partition(":")[::2] for name, value in all_pairs if name in ("where", "among")
    }
    grouped = {value.partition(":")[0] for name, value in all_pairs if name == "group" and value}
    return [
        (name, value)
        for name, value in all_pairs
        if (_about(name, value) is None and not _compares_what_left(name, value, names, selected))
        or (
            _about(name, value) in names
            and not (name == "codes" and _about(name, value) in grouped)
        )
    ]


def _about(name: str, value: str) -> str | None:
    """The variable of the table that a parameter says more about."""
    return value.partition(":")[0] if name in ("codes", "group", "place") else None


def _compares_what_left(
    name: str, value: str, names: set[str], selected: set[tuple[str, str]]
) -> bool:
    """Whether a statistic is a share within a variable that left the table, or a growth without two periods."""
    kind, _, rest = value.partition(":")
    other = rest.partition(":")[2]
    if name != "statistic":
        return False
    if kind == "growth" and "=" in other:
        period = other.partition("=")[::2]
        return period in selected or period[0] not in {variable for variable, _ in selected}
    return kind == "share" and other not in {"total", "row", "column", *names}


def write(query: TableQuery) -> str:
    """The query string of a question, the dataset left out; :func:`read` reads it back unchanged.

    >>> write(TableQuery("demo", (Axis("age", "ten-year"), Axis("sex"))).with_totals)
    'by=age:ten-year&by=sex&totals=on'
    >>> write(TableQuery("demo", (Axis("age", codes=("1", "2", "3", "7")),)))
    'by=age&codes=age:1..3,7'
    """
    if not _plain(query):
        whole = json.dumps(query.to_mapping(), ensure_ascii=False, separators=(",", ":"))
        return urlencode({"query": whole})
    pairs = [
        ("by", axis.variable if axis.level is None else f"{axis.variable}:{axis.level}")
        for axis in query.by
    ]
    for axis in query.by:
        if axis.codes is not None:
            pairs.append(("codes", f"{axis.variable}:{listed(axis.codes)}"))
        for group in axis.groups:
            label = escaped(group.label, "%=")
            pairs.append(("group", f"{axis.variable}:{label}={listed(group.members)}"))
    for item in query.where:
        if len(item.codes) <= _FEW:
            pairs += [("where", f"{item.variable}:{code}") for code in item.codes]
        else:
            pairs.append(("among", f"{item.variable}:{listed(item.codes)}"))
    if any(axis.total for axis in query.by):
        pairs.append(("totals", "on"))
    if query.measure is not None:
        pairs.append(("measure", query.measure))
    pairs += [("statistic", statistic.text) for statistic in query.statistics]
    if query.weight is not None:
        pairs.append(("weight", query.weight))
    return urlencode(pairs, safe=":,=")


def _plain(query: TableQuery) -> bool:
    """Whether the parameters can say the question."""
    totals = {axis.total for axis in query.by}
    groups = [group for axis in query.by for group in axis.groups]
    names = [axis.variable for axis in query.by] + [item.variable for item in query.where]
    texts = [
        *names,
        *(group.label for group in groups),
        *(axis.level for axis in query.by if axis.level is not None),
        *(code for axis in query.by for code in axis.codes or ()),
        *(code for group in groups for code in group.members),
        *(code for item in query.where for code in item.codes),
        *(name for name in (query.measure, query.weight) if name is not None),
    ]
    return (
        len(totals) < 2
        and all(texts)
        and all(group.members and not group.code for group in groups)
        and not any(":" in name for name in names)
        and all(_says(statistic) for statistic in query.statistics)
    )


def _says(statistic: Statistic) -> bool:
    """Whether the short form of a statistic says all of it."""
    try:
        return Statistic.parse(statistic.text) == statistic
    except QueryError:
        return False


def _axis(value: str) -> tuple[str, str | None]:
    # Names of variables hold no colon, so the first one ends the name.
    variable, colon, level = value.partition(":")
    if colon and (not variable or not level):
        raise QueryError(
            say(
                "'by' must be a variable, or a variable and its level such as age:ten-year, not "
                "{value!r}.",
                value=value,
            )
        )
    return variable, level if colon else None


def _named(value: str, what: str, such_as: str) -> tuple[str, str]:
    variable, colon, rest = value.partition(":")
    if not colon or not variable or not rest:
        raise QueryError(
            say(
                "{what}, such as {such_as}, not {value!r}.", what=what, such_as=such_as, value=value
            )
        )
    return variable, rest


def renamed(place: str) -> str:
    """A place by its name of today: until 0.1 layers were called wafers."""
    return "layers" if place == "wafers" else place


def _place(text: str) -> int:
    text = renamed(text)
    if text in PLACES:
        return PLACES.index(text)
    if len(text) < 4 and text.isascii() and text.isdecimal() and int(text):
        return int(text) - 1
    raise QueryError(
        say("There is no place {text!r}; {choices}.", text=text, choices=choices(text, PLACES))
    )


def _group(value: str) -> tuple[str, Group]:
    what = say("'group' must be a variable, a label and a list of codes")
    variable, rest = _named(value, what, "age:Young=1,2,3")
    label, equals, members = rest.partition("=")
    if not equals or not label or not members:
        raise QueryError(
            say("{what}, such as age:Young=1,2,3, not {value!r}.", what=what, value=value)
        )
    codes = list_of(
        members, say("The group {label!r} of {variable!r}", label=unquote(label), variable=variable)
    )
    return variable, Group(unquote(label), tuple(codes))


def _from_json(text: str, dataset: str) -> TableQuery:
    try:
        raw = read_json(text)
    except QueryError:
        raise
    except (ValueError, RecursionError):
        raise QueryError(say("The parameter 'query' is not valid JSON.")) from None
    if not isinstance(raw, dict):
        raise QueryError(say("The parameter 'query' must be a JSON object."))
    query = TableQuery.from_mapping({"dataset": dataset} | raw)
    if query.dataset != dataset:
        raise QueryError(
            say(
                "The parameter 'query' asks about {dataset!r}, but the address about {name!r}.",
                dataset=query.dataset,
                name=dataset,
            )
        )
    return query
