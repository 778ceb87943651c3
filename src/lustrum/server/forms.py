"""A question for a table as a query string, and back.

One form serves the page, the API and saved links::

    by=age:ten-year&by=sex&where=region:1&totals=on

==========  =====================================================================================
``by``      a variable, or ``variable:level``; once for each variable of the table, rows first
``where``   who is counted, as ``variable:code``; repeated for one variable, any of its codes counts
``totals``  ``on`` adds a total to every variable; ``off``, like nothing, adds none
``measure`` a numeric column to sum instead of counting
``weight``  a column of weights to count or sum with
``query``   the JSON form of the whole question, for what the others cannot say (own groups, chosen
            codes, totals on some variables only); it stands alone
==========  =====================================================================================

A parameter without a value counts as absent, since that is what a form sends for a list that was left
alone. A parameter that is not known is a mistake: to ignore it would answer another question.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from lustrum.model import QueryError, TableQuery
from lustrum.model.errors import choices

__all__ = ["PARAMETERS", "read", "write"]

PARAMETERS = ("by", "where", "totals", "measure", "weight", "query")
_SWITCH = {"on": True, "off": False}


def read(pairs: Iterable[tuple[str, str]], dataset: str) -> TableQuery:
    """The question that a query string poses to a dataset; every mistake is one clear sentence.

    >>> read([("by", "age:ten-year"), ("by", ""), ("where", "region:1")], "demo").to_mapping()["by"]
    [{'variable': 'age', 'level': 'ten-year'}]
    """
    by: list[object] = []
    where: dict[str, list[str]] = {}
    single: dict[str, str] = {}
    for name, value in pairs:
        if name not in PARAMETERS:
            raise QueryError(f"There is no parameter {name!r}; {choices(name, PARAMETERS)}.")
        if value == "":
            continue
        if name == "by":
            by.append(_axis(value))
        elif name == "where":
            variable, code = _condition(value)
            where.setdefault(variable, []).append(code)
        elif name in single:
            raise QueryError(f"The parameter {name!r} stands twice; once is right.")
        else:
            single[name] = value
    if "query" in single:
        if by or where or len(single) > 1:
            raise QueryError("The parameter 'query' holds a whole question; leave out the others.")
        return _from_json(single["query"], dataset)
    raw: dict[str, Any] = {"dataset": dataset, "by": by, "where": where}
    if "totals" in single:
        if single["totals"] not in _SWITCH:
            raise QueryError(f"'totals' must be 'on' or 'off', not {single['totals']!r}.")
        raw["totals"] = _SWITCH[single["totals"]]
    raw |= {key: single[key] for key in ("measure", "weight") if key in single}
    return TableQuery.from_mapping(raw)


def write(query: TableQuery) -> str:
    """The query string of a question, the dataset left out; :func:`read` reads it back unchanged.

    >>> from lustrum.model import Axis
    >>> write(TableQuery("demo", (Axis("age", "ten-year"), Axis("sex"))).with_totals)
    'by=age:ten-year&by=sex&totals=on'
    """
    totals = [axis.total for axis in query.by]
    if not all(axis.complete for axis in query.by) or (any(totals) and not all(totals)):
        whole = json.dumps(query.to_mapping(), ensure_ascii=False, separators=(",", ":"))
        return urlencode({"query": whole})
    pairs = [
        ("by", axis.variable if axis.level is None else f"{axis.variable}:{axis.level}")
        for axis in query.by
    ]
    pairs += [("where", f"{item.variable}:{code}") for item in query.where for code in item.codes]
    if any(totals):
        pairs.append(("totals", "on"))
    if query.measure is not None:
        pairs.append(("measure", query.measure))
    if query.weight is not None:
        pairs.append(("weight", query.weight))
    return urlencode(pairs, safe=":")


def _axis(value: str) -> object:
    # Names of variables hold no colon, so the first one ends the name.
    variable, colon, level = value.partition(":")
    if not colon:
        return variable
    if not variable or not level:
        raise QueryError(
            f"'by' must be a variable, or a variable and its level such as age:ten-year, not {value!r}."
        )
    return {"variable": variable, "level": level}


def _condition(value: str) -> tuple[str, str]:
    variable, colon, code = value.partition(":")
    if not colon or not variable or not code:
        raise QueryError(
            f"'where' must be a variable and its code, such as region:1, not {value!r}."
        )
    return variable, code


def _from_json(text: str, dataset: str) -> TableQuery:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise QueryError("The parameter 'query' is not valid JSON.") from None
    if not isinstance(raw, dict):
        raise QueryError("The parameter 'query' must be a JSON object.")
    query = TableQuery.from_mapping({"dataset": dataset} | raw)
    if query.dataset != dataset:
        raise QueryError(
            f"The parameter 'query' asks about {query.dataset!r}, but the address about {dataset!r}."
        )
    return query
