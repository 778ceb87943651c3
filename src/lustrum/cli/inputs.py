"""The command line's applications, and the options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from lustrum.model import Axis, Filter, InputError, QueryError, Statistic, TableQuery
from lustrum.sensitivity import AnyOf, Rule, read_rule

app = typer.Typer(
    help="Let people build their own tables without giving away anybody's secret.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
policy_app = typer.Typer(
    help="Policies: what an agency decides about a dataset.", no_args_is_help=True
)
app.add_typer(policy_app, name="policy")
secret_app = typer.Typer(
    help="The secret behind the perturbation of every table.", no_args_is_help=True
)
app.add_typer(secret_app, name="secret")
budget_app = typer.Typer(
    help="The budget of a population: what releases with a proof may cost.", no_args_is_help=True
)
app.add_typer(budget_app, name="budget")

NoTotals = Annotated[
    list[str] | None,
    typer.Option(help="A dimension that has no totals; 'all' for every dimension."),
]

Data = Annotated[
    Path,
    typer.Option(envvar="LUSTRUM_DATA", help="Folder of datasets and policies.", show_default=True),
]
HERE = Path("lustrum-data")


# Packages that only some commands need.


SERVER = ("babel", "fastapi", "jinja2", "limits", "prometheus_client", "uvicorn")
"""The extra ``server``."""


def need_server(what: str) -> None:
    """One sentence where the packages of a web server are not installed."""
    for name in SERVER:
        try:
            import_module(name)
        except ImportError:
            raise InputError(
                f"{what} needs a web server, and the package {name!r} is missing; install them with: "
                "pip install 'lustrum[server]'."
            ) from None


# A question in the words of the command line: ``--by age:ten-year,sex --where region=1``.


def read_question(
    dataset: str,
    by: str,
    where: Sequence[str],
    totals: bool = False,
    *,
    measure: str | None = None,
    statistics: Sequence[str] = (),
    weight: str | None = None,
) -> TableQuery:
    """The query that these words stand for; ``measure`` is that of each statistic which names none.

    >>> read_question("demo", "age:ten-year,sex", ["region=1"]).to_mapping()["by"]
    [{'variable': 'age', 'level': 'ten-year'}, 'sex']
    """
    axes = []
    for word in (part.strip() for part in by.split(",")):
        name, _, level = word.partition(":")
        if not name:
            raise QueryError(f"--by {by!r}: a variable's name is missing; write --by age,sex.")
        axes.append(Axis(name, level or None, total=totals))
    filters = []
    for word in where:
        name, equals, codes = word.partition("=")
        if not equals or not name or not codes:
            raise QueryError(f"--where {word!r}: write --where variable=code, such as region=1.")
        filters.append(Filter(name.strip(), tuple(code.strip() for code in codes.split(","))))
    return TableQuery(
        dataset,
        tuple(axes),
        tuple(filters),
        None if statistics else measure,
        weight,
        tuple(Statistic.parse(text, measure) for text in statistics),
    )


# Sensitivity rules in the words of the command line.


_SHORT: dict[str, tuple[str, tuple[str, ...]]] = {
    "p": ("p-percent", ("p", "coalition")),
    "pq": ("prior-posterior", ("p", "q")),
    "nk": ("dominance", ("n", "k")),
    "dominance": ("dominance", ("n", "k")),
    "threshold": ("threshold", ("minimum", "margin")),
}


def rule_of(rule_texts: Sequence[str]) -> Rule:
    """A rule from words such as ``p=10``, ``pq=10,50``, ``nk=2,85`` or ``threshold=3``; several mean any.

    The second number of a threshold is the margin of sums, in percent of the cell.

    >>> rule_of(["p=10"]), rule_of(["nk=2,85"]).to_mapping()["k"]
    (PPercent(p=10, coalition=1, weights='expanded'), 85)
    """
    rules = [_one(word) for word in rule_texts]
    return rules[0] if len(rules) == 1 else AnyOf(*rules)


def _one(word: str) -> Rule:
    name, equals, rest = word.partition("=")
    if not equals or name not in _SHORT:
        raise InputError(
            f"--rule is p=10, pq=10,50, nk=2,85 or threshold=3, not {word!r}; give it several times for "
            "several rules."
        )
    kind, fields = _SHORT[name]
    given = rest.split(",")
    if len(given) > len(fields):
        raise InputError(
            f"--rule {name} has at most {len(fields)} numbers, as in {_example(name)}."
        )
    mapping: dict[str, Any] = {"rule": kind}
    for field, text in zip(fields, given, strict=False):
        mapping[field] = _number(text, word)
    return read_rule(mapping)


def _number(text: str, word: str) -> int | float:
    try:
        number = float(text)
    except ValueError:
        raise InputError(f"--rule {word!r} needs numbers after '='.") from None
    return int(number) if number == int(number) else number


def _example(name: str) -> str:
    return {"p": "p=10", "pq": "pq=10,50", "threshold": "threshold=3"}.get(name, "nk=2,85")
