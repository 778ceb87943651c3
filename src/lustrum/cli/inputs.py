"""The command line's applications, and the options that several commands share."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from lustrum.model import InputError

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
ledger_app = typer.Typer(help="The book of what left the house.", no_args_is_help=True)
app.add_typer(ledger_app, name="ledger")
token_app = typer.Typer(help="Tokens by which programs say who asks.", no_args_is_help=True)
app.add_typer(token_app, name="token")

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
