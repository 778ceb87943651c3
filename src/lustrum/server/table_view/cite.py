"""How to cite a table, and how to ask for it from a program."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from lustrum.model import Axis, Statistic, TableQuery
from lustrum.model.text import say

_BIBTEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


@dataclass(frozen=True)
class Citation:
    """A citation as a line of text and as an entry for BibTeX."""

    text: str
    bibtex: str


@dataclass(frozen=True)
class Calls:
    """The question of a table in three languages of programs."""

    curl: str
    python: str
    r: str


def citation(
    title: str, publisher: str, key: str, asked: date, address: str, day: str = ""
) -> Citation:
    """Cite a table: what it is, whose it is, when it was asked for and where it can be asked for again.

    ``day`` is the date as the language of the page writes it.

    >>> citation("Age", "Census", "census-1a", date(2026, 4, 1), "https://stats.example/t").text
    'Census: Age. Table asked for on 2026-04-01, https://stats.example/t'
    """
    text = say(
        "{publisher}: {title}. Table asked for on {date}, {address}",
        publisher=publisher,
        title=title,
        date=day or asked.isoformat(),
        address=address,
    )
    entry = {
        "author": "{" + publisher.translate(_BIBTEX) + "}",
        "title": title.translate(_BIBTEX),
        "year": str(asked.year),
        "url": address,
        "urldate": asked.isoformat(),
    }
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in entry.items())
    return Citation(text, f"@misc{{{key},\n{lines}}}")


def calls(query: TableQuery, host: str, api: str) -> Calls:
    """The calls that ask the server at ``host`` for a table; ``api`` is the address of the answer there."""
    return Calls(f"curl {shlex.quote(host + api)}", _python(query, host), _r(host + api))


def _python(query: TableQuery, host: str) -> str:
    totals = {axis.total for axis in query.by}
    together = len(totals) == 1
    arguments = [_quoted(query.dataset), f"by={_literal([_by(a, together) for a in query.by])}"]
    if query.where:
        arguments.append(f"where={_literal({f.variable: list(f.codes) for f in query.where})}")
    if totals == {True}:
        arguments.append("totals=True")
    if query.measure is not None:
        arguments.append(f"measure={_quoted(query.measure)}")
    if query.statistics:
        arguments.append(f"statistics={_literal([_statistic(s) for s in query.statistics])}")
    if query.weight is not None:
        arguments.append(f"weight={_quoted(query.weight)}")
    inside = "".join(f"    {argument},\n" for argument in arguments)
    return (
        "from lustrum.client import Client\n\n"
        f"client = Client({_quoted(host)})\n"
        f"answer = client.table(\n{inside})\n"
        "for cell in answer.cells():\n"
        "    print(*cell.labels.values(), cell.value)"
    )


def _statistic(statistic: Statistic) -> Any:
    return statistic.text if statistic.decimals is None else statistic.to_mapping()


def _by(axis: Axis, together: bool) -> Any:
    said: dict[str, Any] = {"variable": axis.variable}
    if axis.level is not None:
        said["level"] = axis.level
    if axis.codes is not None:
        said["codes"] = list(axis.codes)
    if axis.groups:
        said["groups"] = [
            {"label": g.label, "members": list(g.members)} | ({"code": g.code} if g.code else {})
            for g in axis.groups
        ]
    if axis.total and not together:
        said["total"] = True
    if len(said) == 1:
        return axis.variable
    return f"{axis.variable}:{axis.level}" if set(said) == {"variable", "level"} else said


def _r(address: str) -> str:
    return (
        "library(httr2)\n\n"
        f"answer <- request({_quoted(address)}) |>\n"
        "  req_perform() |>\n"
        "  resp_body_json(simplifyVector = TRUE)\n"
        "answer$table$value"
    )


def _literal(value: Any) -> str:
    """A value as Python writes it, with the quotation marks that people write."""
    if isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(k)}: {_literal(v)}" for k, v in value.items()) + "}"
    return "[" + ", ".join(_literal(v) for v in value) + "]"


def _quoted(text: str) -> str:
    # Python and R both read the strings of JSON.
    return json.dumps(text, ensure_ascii=False)
