"""Datasets and questions: serve, demo, protect, ingest, keys, datasets, table."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lustrum.cli.inputs import HERE, Data, app, need_server
from lustrum.model import InputError

SETTINGS_FILE = "server.toml"


_served = partial(typer.Option, rich_help_panel="What is served")
_network = partial(typer.Option, rich_help_panel="Network")
_operation = partial(typer.Option, rich_help_panel="Operation")

_SETTINGS: dict[str, tuple[type, str]] = {
    "reader_header": (str, "Header in which a trusted proxy names the reader."),
    "roles_header": (str, "Header with the roles that it vouches for."),
    "group_header": (str, "Header with the group that the reader counts with."),
    "rate": (str, "Most tables an address may ask for; '' for no limit."),
    "concurrency": (int, "Tables counted at once in a process; 0: one a processor."),
    "patience": (float, "Seconds that a question waits for its turn."),
    "seconds": (float, "Longest that a table may take while somebody waits."),
    "background_cells": (int, "Larger tables are made in the background."),
    "background_seconds": (float, "Longest that a table may take in the background."),
    "keep_hours": (float, "How long tables made in the background are kept."),
    "memory": (int, "Most memory for a question, in MiB; 0: by the machine."),
    "connections": (int, "Connections of a process at the same time."),
    "header_seconds": (float, "Longest that the headers of a request may take."),
    "body_seconds": (float, "Longest that the body of a request may take."),
    "idle_seconds": (float, "How long a connection stays open between two requests."),
    "send_seconds": (float, "Longest that a client may take to read an answer."),
    "records_seconds": (float, "Longest silence of the process that holds the records."),
    "answers_memory": (int, "MiB of answers from bundles kept in memory; 0: none at all."),
    "answers_disk": (int, "MiB of answers from bundles kept on disk; 0: none."),
}
"""Settings of a server that belong into its file, and are still taken as options, which win over the file."""


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Add a hidden option for each of them to a command that takes them by name."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, typer.Option(help=text, hidden=True)],
        )
        for name, (kind, text) in _SETTINGS.items()
    ]
    command.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    command.__annotations__ |= {parameter.name: parameter.annotation for parameter in added}
    return command


@app.command()
@_with_settings
def serve(
    data: Data = HERE,
    demo: Annotated[
        bool,
        _served(
            "--demo", help="Put the demo's public bundles into the data folder if they are missing."
        ),
    ] = False,
    bundle: Annotated[
        list[Path] | None,
        _served(help="Serve this public bundle, without any data folder; several if repeated."),
    ] = None,
    prepared: Annotated[
        list[Path] | None,
        _served(help="Serve this public folder of prepared tables, without any data folder."),
    ] = None,
    state: Annotated[
        Path | None, _served(help="With --bundle: a folder to keep jobs in between two starts.")
    ] = None,
    production: Annotated[
        bool, _served("--production", help="Follow sealed policies only.")
    ] = False,
    host: Annotated[str, _network(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, _network(help="Port to listen on.", min=0, max=65535)] = 8000,
    allowed_host: Annotated[
        list[str] | None,
        _network(help="A name that the server answers to; .example.org for all below it."),
    ] = None,
    trusted_proxies: Annotated[
        str | None, _network(help="Proxies that may state the address of a client.")
    ] = None,
    other_sites: Annotated[
        str | None,
        _network(
            help="What pages of other sites may show in frames and read by the API: tables of public bundles "
            "(`bundles`, the default), `none` or `all`."
        ),
    ] = None,
    workers: Annotated[
        int, _operation(help="Processes that share the work; all give the same answers.", min=1)
    ] = 1,
    settings: Annotated[
        Path | None,
        _operation(
            help="File of limits on rate, time, memory and connections; by default server.toml in "
            "the data folder, if there is one."
        ),
    ] = None,
    metrics_port: Annotated[
        int | None, _operation(help="Port for Prometheus.", min=1, max=65535)
    ] = None,
    metrics_host: Annotated[
        str, _operation(help="Address for Prometheus; by default for this machine only.")
    ] = "127.0.0.1",
    logs: Annotated[
        str | None, _operation(help="Log lines of JSON from this level on: info, warning, error.")
    ] = None,
    **limits: str | float | None,
) -> None:
    """Serve tables: pages for people, an API for programs."""
    need_server("lustrum serve")
    from lustrum.cli import work
    from lustrum.server import Settings

    if logs not in (None, "debug", "info", "warning", "error"):
        raise InputError(f"--logs is 'info', 'warning' or 'error', not {logs!r}.")
    alone = bool(bundle or prepared)
    if demo and alone:
        raise InputError("--demo makes data of its own; leave it out to serve public folders.")
    if state is not None and not alone:
        raise InputError("--state is for public folders; jobs of a data folder are kept in it.")
    if settings is None and not alone and (data / SETTINGS_FILE).is_file():
        settings = data / SETTINGS_FILE
    given: dict[str, object] = {
        "allowed_host": ",".join(allowed_host) if allowed_host else None,
        "trusted_proxies": trusted_proxies,
        "other_sites": other_sites,
        **limits,
    }
    chosen = Settings.from_file(settings, **{k: v for k, v in given.items() if v is not None})
    made = work.demo_in(data, Console(stderr=True, markup=False)) if demo else nullcontext()
    with made:
        work.run_server(
            None if alone else data,
            host,
            port,
            Console(markup=False),
            bundles=bundle or (),
            prepared=prepared or (),
            state=state,
            settings=chosen,
            workers=workers,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
            logs=logs,
            production=production,
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
    measure_again: Annotated[
        bool,
        typer.Option(
            "--measure-again",
            help="For a population with a proof: pay for new noisy tables, in place of those that stand.",
        ),
    ] = False,
    processes: Annotated[
        int, typer.Option(help="How many processes work on the blocks of the description.", min=1)
    ] = 1,
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
        measure_again=measure_again,
        processes=processes,
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
    file: Annotated[
        str | None,
        typer.Argument(
            help="A .csv, .tsv or .parquet file; or Parquet in a folder, a pattern or an object store."
        ),
    ] = None,
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
    file: Annotated[
        Path | None, typer.Option(help="Write the keys to this .csv or .parquet file instead.")
    ] = None,
    data: Data = HERE,
) -> None:
    """Make the keys of records that stay in a database, once."""
    from lustrum.cli import work

    console = Console(stderr=True, markup=False)
    work.make_record_keys(description, connection, reader, file, data, console)


@app.command("check-engine")
def check_engine(
    description: Annotated[
        Path, typer.Option("--description", "-d", help="The dataset's description (TOML).")
    ],
    connection: Annotated[Path, typer.Option(help="A connection (TOML) to a table of records.")],
    questions: Annotated[int, typer.Option(min=1, help="How many questions are asked.")] = 40,
) -> None:
    """Ask a database and a copy of its records the same questions; it ends with 3 where answers differ."""
    from lustrum.cli import work

    console = Console(stderr=True, markup=False)
    if not work.check_database(description, connection, questions, console):
        raise typer.Exit(3)


@app.command()
def datasets(data: Data = HERE) -> None:
    """List the datasets that can be asked about."""
    from lustrum.local import local_service

    service = local_service(data)
    not_served = service.not_served()
    if not service.names():
        typer.echo(f"There is no dataset with a policy in {data}; try 'lustrum demo'.")
    for name, why in not_served.items():
        typer.echo(f"{name}: not available. {why}", err=True)
    for dataset in (service.dataset(name) for name in service.names() if name not in not_served):
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
        str,
        typer.Option(
            "--format", help="text, or the name of a format, such as csv, json-stat or xlsx."
        ),
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
    from lustrum.cli.terminal.show import read_question, show_decision
    from lustrum.local import local_service
    from lustrum.model.plugins import load
    from lustrum.publish.records import LocalRecordsService

    if confidential and format_ != "text":
        raise InputError("--confidential is for the terminal; no file holds true figures.")
    writer = None if format_ == "text" else load("lustrum.formats", format_)()
    service = local_service(data)
    question = read_question(
        dataset, by, where or [], totals, measure=measure, statistics=statistic or [], weight=weight
    )
    snapshot = service.snapshot(dataset)
    decision = snapshot.answer(question)
    if snapshot.counted_together:
        from lustrum.answer.ledger import ReleaseLedger

        ReleaseLedger(data).looked(question, snapshot, decision)
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
