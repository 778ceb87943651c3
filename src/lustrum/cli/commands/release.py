"""From a choice among methods to prepared tables: map, release, and what releases cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lustrum.cli.inputs import HERE, Data, NoTotals, app, budget_app


@app.command("map")
def map_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="True tables (CSV or Parquet), or saved questions (JSON)."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A method, with values to try, as 'random-rounding:base=3,5', or a span to search, as "
            "'base=2..20'; by default a set that fits. Suppression is quick unless its algorithm is named."
        ),
    ] = None,
    risk: Annotated[
        list[str] | None, typer.Option(help="A risk measure; the first is on the map.")
    ] = None,
    utility: Annotated[
        list[str] | None, typer.Option(help="A utility measure; the first is on the map.")
    ] = None,
    attacker: Annotated[
        list[str] | None, typer.Option(help="Against whom cells are judged: outsider, insider.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option(help="Largest risk allowed; the best method under it is chosen.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws of each random method.", min=1)] = 10,
    trials: Annotated[
        int, typer.Option(help="Settings tried where spans are searched.", min=1)
    ] = 48,
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures.", min=0)] = 0,
    no_totals: NoTotals = None,
    chart: Annotated[
        Path | None, typer.Option(help="Draw the map: .png, .svg, .html or .json.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report for a board: .html or .pdf.")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="Write the points as CSV.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Keep measured draws here, to go on after a stop.")
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Open a page for maps, on this machine only.")
    ] = False,
    port: Annotated[int, typer.Option(help="Port of the page.", min=0, max=65535)] = 8001,
    policy: Annotated[Path, typer.Option(help="Where the page writes the chosen method.")] = Path(
        "policy-from-map.toml"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder of datasets, for saved questions.")
    ] = None,
) -> None:
    """Compare methods on one map of risk against utility. Exit code 3: none is under the limit.

    The figures are made from true counts: they are for the agency, not for publication.
    """
    from lustrum.cli.maps import draw_map, open_page

    without = sorted("" if name == "all" else name for name in set(no_totals or ()))
    if page:
        open_page(files or [], data, policy, port, without, Console(markup=False))
        return
    chosen = draw_map(
        files or [],
        Console(markup=False),
        methods=method or [],
        measures=[*(risk or []), *(utility or [])],
        attackers=attacker or [],
        limit=limit,
        draws=draws,
        trials=trials,
        seed=seed,
        no_totals=without,
        chart=chart,
        report=report,
        table=table,
        cache=cache,
        data=data,
    )
    if not chosen:
        raise typer.Exit(3)


@app.command()
def release(
    file: Annotated[Path, typer.Argument(help="A programme of prepared tables (TOML).")],
    data: Data = HERE,
    out: Annotated[
        Path | None,
        typer.Option(help="The public folder; by default prepared/NAME in the data folder."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="The agency's own file; by default reports/NAME.json in the data folder."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the file against its data; write nothing.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Processors to use; by default all.", min=1)
    ] = None,
) -> None:
    """Make the prepared tables of a programme: protect, audit, prove and write them in one run.

    The same file and records give the same bytes. Nothing is written before all tables are safe.
    """
    from lustrum.cli.work import release_tables

    release_tables(
        file, data, Console(markup=False), out=out, trace=trace, check=check, workers=workers
    )


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
    from lustrum.publish.budget import PlannedReleases, exact_rho
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
