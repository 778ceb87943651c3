"""What takes time: making the demo, ingesting, serving. With progress, and safe to stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from lustrum.durable import write_whole
from lustrum.model import DatasetError, InputError
from lustrum.release import TableService
from lustrum.release.records import local_service
from lustrum.tabulate import FileSource, QuerySource, Source, Store, ingest, read_description

if TYPE_CHECKING:
    from lustrum.server import Settings

__all__ = ["ingest_source", "make_demo", "run_server"]

_STARTER = """\
# A cautious start. Every key: docs/reference/policy.md
dataset = "{name}"

[rules]
max_dimensions = 3
max_filters = 1
min_population = 1000
min_mean_cell_size = 5.0
max_small_share = 0.2
nested_only = true

[risk]
measure = "table-entropy"
parts = "true"
shared = "expected"
limit = 0.3

[protect]
method = "random-rounding"
base = 3

end = true
"""


def make_demo(data: Path, console: Console, persons: int = 1_500_000) -> None:
    """Make the demo data if they are missing, with a progress bar."""
    from lustrum.demo.setup import prepare

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    tasks: dict[str, int] = {}
    with bar:

        def told(task: str, done: float) -> None:
            if task not in tasks:
                tasks[task] = bar.add_task(task, total=1.0)
            bar.update(tasks[task], completed=done)  # type: ignore[arg-type]

        prepare(data, persons, told)


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
    local_service(data).check_replacement(dataset)
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
    path = local_service(data).policy_path(dataset.name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, _STARTER.format(name=dataset.name).encode())
        console.print(f"A cautious policy was written to {path}; read it before you serve.")


def run_server(
    data: Path,
    host: str,
    port: int,
    console: Console,
    *,
    settings: Settings | None = None,
    workers: int = 1,
    metrics_port: int | None = None,
    logs: str | None = None,
) -> None:
    """Serve until stopped."""
    from lustrum.server import serve

    service = TableService(data)
    if not service.names():
        raise DatasetError(
            f"There is nothing to serve in {data}; ingest a dataset, or start with --demo."
        )

    def ready(url: str) -> None:
        console.print(f"Lustrum serves {len(service.names())} datasets at {url}", highlight=False)

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
