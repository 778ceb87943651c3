"""`lustrum budget`: what releases with a proof cost, what is left, and what a plan would buy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lustrum.cli.inputs import HERE, Data, budget_app

Population = Annotated[str, typer.Argument(help="The word by which descriptions name the people.")]
Rho = Annotated[str, typer.Argument(help="A cost, such as 2.56 or 64/25.")]
Because = Annotated[str, typer.Option(help="Who decided it, and why; it stands in the ledger.")]


@budget_app.command("limit")
def limit(population: Population, rho: Rho, because: Because, data: Data = HERE) -> None:
    """State what all releases of these people may cost together."""
    from lustrum.publish.budget import BudgetLedger, exact_rho

    BudgetLedger(data, population).set_limit(exact_rho(rho), because)
    show(population, data)


@budget_app.command("state")
def state(
    population: Population,
    rho: Rho,
    because: Because,
    head: Annotated[
        list[str] | None,
        typer.Option(help="The 'ledger' that the report of a release states which it covers."),
    ] = None,
    data: Data = HERE,
) -> None:
    """State a cost that the ledger does not hold, such as that of a release after a backup."""
    from lustrum.publish.budget import BudgetLedger, exact_rho

    BudgetLedger(data, population).state_spent(exact_rho(rho), because, head or ())
    show(population, data)


@budget_app.command("show")
def show(population: Population, data: Data = HERE) -> None:
    """What was spent, and what is left."""
    from lustrum.publish.budget import BudgetLedger

    ledger = BudgetLedger(data, population)
    for entry in ledger.entries():
        what = {"limit": "limit", "spent": "charge", "stated": "stated"}.get(entry.what)
        if what is not None:
            typer.echo(f"{what:8} rho {float(entry.rho):<8g} {entry.dataset or entry.said}")
    typer.echo(
        f"{population}: rho {float(ledger.spent):g} of {float(ledger.limit):g} is spent, "
        f"{float(ledger.left):g} is left. Neighbours are two datasets of the same size in which one person has "
        "another record; a household of k people is protected at k * k times that."
    )


@budget_app.command("plan")
def plan(
    description: Annotated[Path, typer.Argument(help="The description of a dataset, a TOML file.")],
    policy: Annotated[
        Path | None,
        typer.Option(help="The policy whose counts and sums are planned; counts alone without."),
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(help="What all releases may cost together, in place of what the policy asks."),
    ] = None,
    releases: Annotated[
        int, typer.Option(min=1, help="Among how many releases it is divided.")
    ] = 1,
    people: Annotated[
        int | None, typer.Option(min=1, help="How many people the file holds, a public number.")
    ] = None,
    levels: Annotated[
        bool, typer.Option("--levels", help="Print tables at coarser levels, too.")
    ] = False,
) -> None:
    """Print the typical error of every table before anything is spent; the records are not looked at."""
    from lustrum.policy import read_policy
    from lustrum.publish.budget import exact_rho
    from lustrum.publish.planned import PlannedReleases
    from lustrum.tabulate import read_description

    dataset = read_description(description)
    planned = PlannedReleases.of(
        dataset,
        None if policy is None else read_policy(policy),
        rho=None if rho is None else exact_rho(rho),
        releases=releases,
        people=people,
    )
    typer.echo(
        f"rho {float(planned.rho):g} a release, for one person's record that is replaced by another."
    )
    at = "" if levels else ", at the finest codes"
    for measure in (None, *planned.clipped):
        what = "of a count" if measure is None else f"of a sum of {measure}"
        unit = "" if measure is None else f", in {dataset.measure(measure).unit or 'its unit'}"
        typer.echo(f"Typical error {what} in the linear estimate{at}{unit}:")
        for table in planned.tables:
            if table.measure == measure and (levels or table.finest):
                typer.echo(f"{table.error:12,.2f}  {' x '.join(table.shown)}")
        if measure is not None:
            typer.echo(
                f"{planned.clipped[measure]:12,.2f}  contributions that were clipped, in number"
            )
    if planned.few is not None:
        typer.echo(f"Note well: {planned.few}")
