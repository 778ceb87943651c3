"""From a choice among methods to prepared tables: map, release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lustrum.cli.inputs import HERE, Data, NoTotals, app


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
