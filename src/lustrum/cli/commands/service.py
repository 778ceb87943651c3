"""Datasets and questions: serve, demo, protect, ingest, keys, datasets, table."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lustrum.cli.inputs.options import (
    HERE,
    Data,
    app,
)
from lustrum.model import InputError


@app.command()
def serve(
    data: Data = HERE,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=0, max=65535)] = 8000,
    demo: Annotated[
        bool, typer.Option("--demo", help="Make the demo data if they are missing.")
    ] = False,
    bundle: Annotated[
        list[Path] | None,
        typer.Option(
            help="Serve this public bundle, without any data folder; several if repeated."
        ),
    ] = None,
    prepared: Annotated[
        list[Path] | None,
        typer.Option(help="Serve this public folder of prepared tables, without any data folder."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="With --bundle: a folder to keep jobs in between two starts."),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes that share the work; all give the same answers.", min=1)
    ] = 1,
    rate: Annotated[
        str, typer.Option(help="Most tables an address may ask for; '' for no limit.")
    ] = "300/minute",
    concurrency: Annotated[
        int, typer.Option(help="Tables counted at once in a process; 0: one a processor.", min=0)
    ] = 0,
    patience: Annotated[
        float, typer.Option(help="Seconds that a question waits for its turn.")
    ] = 20.0,
    seconds: Annotated[
        float, typer.Option(help="Longest that a table may take while somebody waits.")
    ] = 30.0,
    background_cells: Annotated[
        int, typer.Option(help="Larger tables are made in the background.", min=0)
    ] = 50_000,
    background_seconds: Annotated[
        float, typer.Option(help="Longest that a table may take in the background.")
    ] = 600.0,
    keep_hours: Annotated[
        float, typer.Option(help="How long tables made in the background are kept.")
    ] = 24.0,
    trusted_proxies: Annotated[
        str, typer.Option(help="Proxies that may state the address of a client.")
    ] = "",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="A name that the server answers to; .example.org for all below it."),
    ] = None,
    cors: Annotated[
        bool,
        typer.Option(
            "--cors",
            help="Let pages of other sites read the API in the browsers of their visitors.",
        ),
    ] = False,
    memory: Annotated[
        int, typer.Option(help="Most memory for a question, in MiB; 0: by the machine.", min=0)
    ] = 0,
    connections: Annotated[
        int, typer.Option(help="Connections of a process at the same time.", min=1)
    ] = 1000,
    header_seconds: Annotated[
        float, typer.Option(help="Longest that the headers of a request may take.")
    ] = 10.0,
    body_seconds: Annotated[
        float, typer.Option(help="Longest that the body of a request may take.")
    ] = 20.0,
    idle_seconds: Annotated[
        float, typer.Option(help="How long a connection stays open between two requests.")
    ] = 5.0,
    send_seconds: Annotated[
        float, typer.Option(help="Longest that a client may take to read an answer.")
    ] = 30.0,
    records_seconds: Annotated[
        float,
        typer.Option(help="Longest silence of the process that holds the records."),
    ] = 15.0,
    answers_memory: Annotated[
        int, typer.Option(help="MiB of answers from bundles kept in memory; 0: none at all.", min=0)
    ] = 64,
    answers_disk: Annotated[
        int, typer.Option(help="MiB of answers from bundles kept on disk; 0: none.", min=0)
    ] = 256,
    metrics_port: Annotated[
        int | None,
        typer.Option(help="Port for Prometheus, on this machine only.", min=1, max=65535),
    ] = None,
    logs: Annotated[
        str | None, typer.Option(help="Log lines of JSON from this level on: info, warning, error.")
    ] = None,
    production: Annotated[
        bool, typer.Option("--production", help="Follow sealed policies only.")
    ] = False,
) -> None:
    """Serve tables: pages for people, an API for programs."""
    from lustrum.cli.inputs.extras import need_server

    need_server("lustrum serve")
    from lustrum.cli import work
    from lustrum.server import Settings

    if logs not in (None, "debug", "info", "warning", "error"):
        raise InputError(f"--logs is 'info', 'warning' or 'error', not {logs!r}.")
    settings = Settings(
        rate=rate,
        concurrency=concurrency,
        patience=patience,
        seconds=seconds,
        background_cells=background_cells,
        background_seconds=background_seconds,
        keep_hours=keep_hours,
        trusted_proxies=trusted_proxies,
        allowed_host=",".join(allowed_host or ()),
        cors=cors,
        memory=memory,
        connections=connections,
        header_seconds=header_seconds,
        body_seconds=body_seconds,
        idle_seconds=idle_seconds,
        send_seconds=send_seconds,
        records_seconds=records_seconds,
        answers_memory=answers_memory,
        answers_disk=answers_disk,
    )
    alone = bool(bundle or prepared)
    if demo and alone:
        raise InputError("--demo makes data of its own; leave it out to serve public folders.")
    if state is not None and not alone:
        raise InputError("--state is for public folders; jobs of a data folder are kept in it.")
    with ExitStack() as open_:
        coming = open_.enter_context(work.demo_beside(data)) if demo else []
        work.run_server(
            None if alone else data,
            host,
            port,
            Console(markup=False),
            bundles=bundle or (),
            prepared=prepared or (),
            state=state,
            settings=settings,
            workers=workers,
            metrics_port=metrics_port,
            logs=logs,
            production=production,
            coming=coming,
        )


@app.command()
def demo(
    data: Data = HERE,
    persons: Annotated[int, typer.Option(help="How many people to invent.", min=100)] = 1_500_000,
) -> None:
    """Make the demo data: a census, a business register and a survey, all invented."""
    from lustrum.cli import work

    work.make_demo(data, Console(stderr=True, markup=False), persons)


@app.command()
def protect(
    dataset: Annotated[str, typer.Option(help="Name of a dataset.")],
    data: Data = HERE,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the bundle; by default in the data folder.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="The policy; by default the one in the data folder.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="The agency's own folder, for the confidential report.")
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(
            help="The memory of an earlier release of the same people; by default that of the bundle."
        ),
    ] = None,
    never_published: Annotated[
        bool,
        typer.Option(
            "--never-published",
            help="No earlier release of these people was published: draw all numbers anew.",
        ),
    ] = False,
    new_series: Annotated[
        bool,
        typer.Option(
            "--new-series",
            help="Readers may know which records changed: continue the last release without hiding that.",
        ),
    ] = False,
) -> None:
    """Make one protected population of a dataset, as a public bundle that can be served anywhere.

    Where a bundle is replaced, cells keep their numbers or are drawn again by key, so that nobody sees which
    records changed. The agency's own folder holds the
    confidential report, and the memory from which a later release starts.
    """
    from lustrum.cli.protect import protect_dataset

    protect_dataset(
        dataset,
        data,
        Console(stderr=True, markup=False),
        policy=policy,
        out=out,
        report=report,
        previous=previous,
        never_published=never_published,
        new_series=new_series,
    )


@app.command()
def describe(
    file: Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the dataset; by default that of the file.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the draft to this new file instead of printing it.")
    ] = None,
) -> None:
    """Draft the description of a dataset from its columns, for you to check and complete."""
    from lustrum.cli import work

    work.describe_file(file, name, out, Console(stderr=True, markup=False))


@app.command()
def ingest(
    file: Annotated[Path | None, typer.Argument(help="A .csv, .tsv or .parquet file.")] = None,
    description: Annotated[
        Path | None, typer.Option("--description", "-d", help="The dataset's description (TOML).")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="A query for DuckDB, instead of a file.")
    ] = None,
    database: Annotated[Path | None, typer.Option(help="A DuckDB file for the query.")] = None,
    connection: Annotated[
        Path | None, typer.Option(help="A connection (TOML) to a table that stays where it is.")
    ] = None,
    data: Data = HERE,
) -> None:
    """Check and encode a dataset. It replaces an earlier version at the end, or not at all."""
    from lustrum.cli import work

    work.ingest_source(
        file, description, query, database, connection, data, Console(stderr=True, markup=False)
    )


@app.command()
def keys(
    description: Annotated[
        Path, typer.Option("--description", "-d", help="The dataset's description (TOML).")
    ],
    connection: Annotated[
        Path, typer.Option(help="A connection (TOML) whose role may make the table of keys.")
    ],
    reader: Annotated[
        str | None, typer.Option(help="The role of PostgreSQL that may read the keys.")
    ] = None,
    data: Data = HERE,
) -> None:
    """Make the keys of records that stay in a database, once."""
    from lustrum.cli import work

    work.make_record_keys(description, connection, reader, data, Console(stderr=True, markup=False))


@app.command()
def datasets(data: Data = HERE) -> None:
    """List the datasets that can be asked about."""
    from lustrum.local import local_service

    published = local_service(data).datasets()
    if not published:
        typer.echo(f"There is no dataset with a policy in {data}; try 'lustrum demo'.")
    for dataset in published:
        typer.echo(f"{dataset.name}: {dataset.title}")
        for variable in dataset.variables:
            levels = "".join(f", {variable.name}:{level.name}" for level in variable.levels)
            typer.echo(f"  {variable.name} ({variable.label}, {len(variable.codes)} codes){levels}")


@app.command()
def table(
    dataset: Annotated[str, typer.Option(help="Name of a dataset.")],
    by: Annotated[
        str, typer.Option(help="Variables that span the table: age,sex or age:ten-year,sex.")
    ],
    where: Annotated[
        list[str] | None, typer.Option(help="Who is counted: region=1 or region=1,2.")
    ] = None,
    totals: Annotated[
        bool, typer.Option("--totals", help="Add a total along every variable.")
    ] = False,
    measure: Annotated[
        str | None, typer.Option(help="The measure to sum, and of statistics that name none.")
    ] = None,
    statistic: Annotated[
        list[str] | None,
        typer.Option(
            help="What the cells show: count, mean:turnover, share:count:total; repeat it."
        ),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="A weight to count or sum with.")] = None,
    format_: Annotated[
        str, typer.Option("--format", help="text, or one of the formats: csv, json-stat, xlsx.")
    ] = "text",
    explain: Annotated[bool, typer.Option("--explain", help="Say what each step decided.")] = False,
    confidential: Annotated[
        bool,
        typer.Option(
            "--confidential", help="Add true figures, for the agency alone: do not pass on."
        ),
    ] = False,
    data: Data = HERE,
) -> None:
    """Ask for a protected table. A refusal says why and ends with exit code 3."""
    from lustrum.cli.inputs.question import read_question
    from lustrum.cli.terminal.show import show_decision
    from lustrum.local import local_service
    from lustrum.model.plugins import load
    from lustrum.publish.records import LocalRecordsService

    if confidential and format_ != "text":
        raise InputError("--confidential is for the terminal; no file holds true figures.")
    writer = None if format_ == "text" else load("lustrum.formats", format_)()
    service = local_service(data)
    question = read_question(
        dataset,
        by,
        where or [],
        totals,
        measure=measure,
        statistics=statistic or [],
        weight=weight,
    )
    decision = service.answer(question)
    if decision.release is not None and writer is not None:
        written = writer.write(decision.release)
        if isinstance(written, bytes):
            sys.stdout.buffer.write(written)
        else:
            sys.stdout.write(written)
        raise typer.Exit
    show_decision(
        decision,
        service.dataset(dataset),
        service.policy(dataset),
        Console(markup=False),
        explain=explain,
    )
    if confidential and decision.release is not None:
        from lustrum.cli.terminal.show import show_true_figures

        show_true_figures(
            decision, LocalRecordsService(data), service.policy(dataset), Console(markup=False)
        )
    if decision.release is None:
        raise typer.Exit(3)
