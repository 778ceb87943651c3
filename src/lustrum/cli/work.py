"""What takes time: making the demo, ingesting, serving. With progress, and safe to stop."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from lustrum.answer import TableService
from lustrum.cli.protect import progress_bars
from lustrum.durable import write_whole
from lustrum.local import local_service
from lustrum.model import DatasetError, InputError
from lustrum.policy import check_names
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy, sealed
from lustrum.protect.population.public import SEARCH
from lustrum.tabulate import (
    FileSource,
    QuerySource,
    Source,
    Store,
    draft_description,
    ingest,
    read_description,
)

if TYPE_CHECKING:
    from lustrum.server import Settings

__all__ = ["describe_file", "ingest_source", "make_demo", "run_server"]


def make_demo(data: Path, console: Console, persons: int = 1_500_000) -> None:
    """Make the demo data if they are missing, with a progress bar."""
    from lustrum.demo.setup import prepare

    with progress_bars(console) as report:
        prepare(data, persons, report)


def describe_file(file: Path, name: str | None, out: Path | None, console: Console) -> None:
    """Print the draft of a description, or write it to a new file."""
    text = draft_description(FileSource(file), name)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        with out.open("x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError:
        raise InputError(f"{out} is there already; name a new file.") from None
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}.") from None
    console.print(f"A draft was written to {out}; check and complete it.", highlight=False)
    console.print(f"Next: lustrum ingest {file} --description {out}", highlight=False)


def ingest_source(
    file: Path | None,
    description: Path | None,
    query: str | None,
    database: Path | None,
    data: Path,
    console: Console,
) -> None:
    """Ingest a file or a query, and write a cautious policy if the dataset has none."""
    if description is None:
        raise InputError("Say how the dataset is described: --description people.toml.")
    if (file is None) == (query is None):
        raise InputError("Name either a file or a --query for DuckDB.")
    dataset = read_description(description)
    service = local_service(data)
    service.check_replacement(dataset)
    path, policy = service.policy_path(dataset.name), preset("strict", dataset).encode()
    policy = sealed(policy, str(path))
    if not path.exists():
        check_names(parse_policy(policy, str(path)), dataset, "The strict policy to begin with")
    source: Source
    source = FileSource(file) if file is not None else QuerySource(query or "", database)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    with bar:
        task = bar.add_task(f"Ingesting {dataset.units}", total=None)
        rows = ingest(
            source,
            dataset,
            Store(data),
            lambda done, total: bar.update(task, completed=done, total=total),
        )
    console.print(f"{dataset.name}: {rows:,} {dataset.units} in {data}.", highlight=False)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, policy)
        console.print(f"A strict policy was written to {path}; read it before you serve.")
        console.print(
            f"Next: lustrum protect --dataset {dataset.name} --data {data}", highlight=False
        )


def run_server(
    data: Path | None,
    host: str,
    port: int,
    console: Console,
    *,
    bundles: Sequence[Path] = (),
    prepared: Sequence[Path] = (),
    state: Path | None = None,
    settings: Settings | None = None,
    workers: int = 1,
    metrics_port: int | None = None,
    logs: str | None = None,
    production: bool = False,
) -> None:
    """Serve until stopped; in production, sealed policies only."""
    from lustrum.log_lines import set_up
    from lustrum.server import serve

    if logs:
        set_up(logs)  # before the process that holds the records is started, which follows it
    if state is not None:
        state.mkdir(parents=True, exist_ok=True)
    service = TableService(
        data, bundles=bundles, prepared=prepared, folder=state, sealed_only=production
    )
    service.check_in_background()
    for name in service.names() if bundles else ():
        service.in_force(name)  # a damaged bundle is heard of now, not by the first visitor
    programmes = service.shelf.names()
    for name in programmes:
        service.prepared(name)  # the same people served in two ways are heard of now too
    if not service.names() and not programmes:
        raise DatasetError(
            f"There is nothing to serve in {data}; ingest a dataset, or start with --demo."
        )

    for name, search in service.other_searches().items():
        console.print(
            f"The bundle of {name!r} was made by search {search} of populations, this version has search "
            f"{SEARCH}: it is served as it is. 'lustrum protect' makes new numbers only where records changed.",
            highlight=False,
        )

    unavailable = service.unavailable()

    def ready(url: str) -> None:
        beside = f" and {len(programmes)} programmes of prepared tables" if programmes else ""
        all_of_them = len(service.names())
        served = all_of_them - len(unavailable)
        how_many = f"{served} of {all_of_them}" if unavailable else f"{served}"
        console.print(f"Lustrum serves {how_many} datasets{beside} at {url}", highlight=False)
        # After the address, which is what programs that start a server read first.
        for path in () if production else service.unsealed():
            console.print(
                f"Note well: {path} is not sealed, so that a line lost from it goes unnoticed; seal it with "
                f"'lustrum policy seal {path}'.",
                highlight=False,
            )
        for name, reason in unavailable.items():
            console.print(f"Note well: {name!r} is not available. {reason}", highlight=False)

    serve(
        service,
        host,
        port,
        ready=ready,
        settings=settings,
        workers=workers,
        metrics_port=metrics_port,
        logs=logs,
    )
