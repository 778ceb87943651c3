"""What takes time: making the demo, ingesting, serving. With progress, and safe to stop."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from rich.table import Table as Grid
from rich.text import Text

from lustrum.answer import TableService
from lustrum.answer.readers import Reader, reading_as
from lustrum.ledger.acts import record_act, record_seal
from lustrum.model import Dataset, DatasetError, InputError
from lustrum.model.errors import NotMadeError, NotReadyError
from lustrum.policy import check_names
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy, sealed
from lustrum.protect.population.public import SEARCH
from lustrum.public.bundle.files import bundle_name
from lustrum.runtime.data_folder import PREPARED, REPORTS
from lustrum.runtime.durable import write_whole

if TYPE_CHECKING:
    from lustrum.server import Settings
    from lustrum.tabulate import Source

# What opens records is imported by those who need it: a server of bundles starts without.


_LINE = (
    1_000_000  # records between two lines of a log, and ten times as many from ten times as many on
)


def make_demo(data: Path, console: Console, persons: int = 1_500_000) -> None:
    """Make the demo data if they are missing, with a progress bar."""
    from lustrum.cli.protect import progress_bars
    from lustrum.demo.setup import prepare

    with progress_bars(console) as report:
        prepare(data, persons, report)


@contextmanager
def demo_in(data: Path, console: Console) -> Iterator[None]:
    """Put the demo's bundles into a folder; those that its records or policies ask for otherwise are made.

    That takes minutes. Where there is one to serve, a process makes the others beside, and ends with the block.
    """
    from lustrum.demo.draws import NAMES
    from lustrum.demo.setup import place

    left = place(data)
    if len(left) == len(NAMES):
        make_demo(data, console)
    if not 0 < len(left) < len(NAMES):
        yield
        return
    console.print(f"Being made, and served soon: {', '.join(left)}.", highlight=False)
    words = [sys.executable, "-m", "lustrum", "demo", "--data", str(data)]
    with subprocess.Popen(words) as maker:
        try:
            yield
        finally:
            maker.terminate()


def describe_file(file: Path, name: str | None, out: Path | None, console: Console) -> None:
    """Print the draft of a description, or write it to a new file."""
    from lustrum.tabulate import FileSource, draft_description

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


def make_record_keys(
    description: Path,
    connection: Path,
    reader: str | None,
    file: Path | None,
    data: Path,
    console: Console,
) -> None:
    from lustrum.tabulate import Store, read_description
    from lustrum.tabulate.remote import read_connection, write_keys

    dataset, where = read_description(description), read_connection(connection)
    with console.status(f"Making keys of {dataset.units}") as shown:
        rows, readers = write_keys(
            Store(data),
            dataset,
            where,
            reader,
            lambda made: shown.update(f"Making keys of {dataset.units}: {made:,}"),
            file,
        )
    if file is not None and where.keys is None:
        readers += " Load it into a table, and name the table in the connection ('keys')."
    console.print(
        f"{file or where.keys} holds the keys of {rows:,} {dataset.units}. {readers}".strip(),
        highlight=False,
    )
    reading = f"CONNECTION-OF-{reader.upper()}.toml" if reader else connection
    console.print(
        f"Next: lustrum ingest --description {description} --connection {reading} --data {data}",
        highlight=False,
    )


def check_database(description: Path, connection: Path, questions: int, console: Console) -> bool:
    """Say what a database answers otherwise than a copy of its records does, and whether that is nothing."""
    from lustrum.tabulate import read_description
    from lustrum.tabulate.remote import BACKENDS, check_engine, read_connection

    dataset, where = read_description(description), read_connection(connection)
    with console.status("Reading a copy") as shown:
        check = check_engine(
            where,
            dataset,
            questions,
            lambda asked: shown.update(f"Asking both: {asked} of {questions + 1}"),
        )
    for question, wrong in check.different:
        console.print(f"{question}: {wrong}", highlight=False)
    answered = check.asked - len(check.different)
    console.print(
        f"{BACKENDS[where.backend]} answered {answered} of {check.asked} questions as a copy does.",
        highlight=False,
    )
    return check.conforms


def ingest_source(
    file: str | None,
    description: Path | None,
    query: str | None,
    database: Path | None,
    connection: Path | None,
    data: Path,
    console: Console,
) -> None:
    """Ingest a file or a query, or connect to a table, and write a cautious policy if the dataset has none."""
    from lustrum.local import local_service
    from lustrum.tabulate import Store, read_description
    from lustrum.tabulate.remote import connect, read_connection

    if description is None:
        raise InputError("Say how the dataset is described: --description people.toml.")
    if sum(given is not None for given in (file, query, connection)) != 1:
        raise InputError("Name either a file, a --query for DuckDB, or a --connection to a table.")
    dataset = read_description(description)
    service = local_service(data)
    service.check_replacement(dataset)
    path, policy = service.policy_path(dataset.name), preset("strict", dataset).encode()
    policy = sealed(policy, str(path))
    if not path.exists():
        check_names(parse_policy(policy, str(path)), dataset, "The strict policy to begin with")
    if connection is not None:
        with console.status(f"Checking {dataset.units}"):
            rows = connect(Store(data), dataset, read_connection(connection))
        console.print(
            f"{dataset.name}: {rows:,} {dataset.units}, which stay where they are.", highlight=False
        )
    else:
        _copy(file, query, database, dataset, data, console)
    record_act(data, "import", dataset.name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        record_seal(path, policy)
        write_whole(path, policy)
        console.print(f"A strict policy was written to {path}; read it before you serve.")
        console.print(
            f"Next: lustrum protect --dataset {dataset.name} --data {data}", highlight=False
        )


def _copy(
    file: str | None,
    query: str | None,
    database: Path | None,
    dataset: Dataset,
    data: Path,
    console: Console,
) -> None:
    from lustrum.tabulate import FileSource, ParquetFiles, QuerySource, Store, ingest
    from lustrum.tabulate.parquet import is_many

    source: Source
    if file is None:
        source = QuerySource(query or "", database)
    else:
        source = ParquetFiles(file) if is_many(file) else FileSource(Path(file))
    with _counted(f"Ingesting {dataset.units}", console) as report:
        rows = ingest(source, dataset, Store(data), report)
    console.print(f"{dataset.name}: {rows:,} {dataset.units} in {data}.", highlight=False)


@contextmanager
def _counted(what: str, console: Console) -> Iterator[Callable[[int, int | None], None]]:
    """Progress by records: a bar on a terminal; in a log, a line whenever enough more are done."""
    if console.is_interactive:
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        with bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    said = 0

    def line(done: int, total: int | None) -> None:
        nonlocal said
        step = _LINE if done < 10 * _LINE else 10 * _LINE
        if done // step > said // step:
            said = done
            of_all = "" if total is None else f" of {total:,}"
            console.print(f"{what}: {done:,}{of_all}.", highlight=False, soft_wrap=True)

    yield line


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
    metrics_host: str = "127.0.0.1",
    logs: str | None = None,
    production: bool = False,
) -> None:
    """Serve until stopped; in production, sealed policies only."""
    from lustrum.runtime.log_lines import set_up
    from lustrum.server import Settings, serve

    settings = settings or Settings()
    if logs:
        set_up(logs)  # before the process that holds the records is started, which follows it
    if state is not None:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
    service = TableService(
        data,
        bundles=bundles,
        prepared=prepared,
        folder=state,
        sealed_only=production,
        silence=settings.records_seconds,
    )
    service.check_in_background()
    for path in bundles:
        # A damaged bundle that was named is heard of now, not by the first visitor.
        service.snapshot(bundle_name(path))
    programmes = service.prepared_folders.names()
    for name in programmes:
        service.prepared(name)  # the same people served in two ways are heard of now too
    with reading_as(Reader(role="staff")):
        all_names = service.names()
    if not all_names and not programmes:
        raise DatasetError(
            f"There is nothing to serve in {data}; ingest a dataset, or start with --demo."
        )

    for name, search in service.other_searches().items():
        console.print(
            f"The bundle of {name!r} was made by search {search} of populations, this version has search "
            f"{SEARCH}: it is served as it is. 'lustrum protect' makes new numbers only where records changed.",
            highlight=False,
        )

    not_served = service.not_served()
    opening = [
        name
        for name, why in not_served.items()
        if isinstance(why, NotReadyError) and not isinstance(why, NotMadeError)
    ]
    unavailable = {name: why for name, why in not_served.items() if name not in opening}

    def ready(url: str) -> None:
        beside = f" and {len(programmes)} programmes of prepared tables" if programmes else ""
        all_of_them = len(all_names)
        served = all_of_them - len(not_served)
        how_many = f"{served} of {all_of_them}" if served < all_of_them else f"{served}"
        noun = "dataset" if all_of_them == 1 else "datasets"
        console.print(f"Lustrum serves {how_many} {noun}{beside} at {url}", highlight=False)
        # After the address, which is what programs that start a server read first.
        if unavailable and served:
            there = ", ".join(name for name in all_names if name not in not_served)
            console.print(f"Served: {there}.", highlight=False)
        if opening:
            said = ", ".join(opening)
            console.print(f"Still being opened, and served soon: {said}.", highlight=False)
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
        metrics_host=metrics_host,
        logs=logs,
    )


# `lustrum release`: the tables of a yearly programme, protected together, in one run.


def release_tables(
    file: Path,
    data: Path,
    console: Console,
    *,
    out: Path | None = None,
    trace: Path | None = None,
    check: bool = False,
    workers: int | None = None,
) -> None:
    """Check a programme, or make it; by default into the data folder, with the trace beside the records."""
    from lustrum.cli.protect import progress_bars
    from lustrum.publish.bundles.people import opened, require_unanswered
    from lustrum.publish.programme.read import read_programme
    from lustrum.publish.programme.run import check_programme, run_programme
    from lustrum.tabulate import Store, read_description

    programme = read_programme(file)
    source = programme.source
    people = None
    if data.is_dir() and source.dataset is not None:
        people = opened(Store(data), source.dataset).dataset
    elif source.description is not None:
        people = read_description(source.description)

    def require_none() -> None:
        if data.is_dir() and people is not None:
            require_unanswered(Store(data), people)

    require_none()
    if check:
        for sentence in check_programme(programme, data):
            console.print(Text(sentence))
        console.print(Text(f"{file} is ready: run it without --check."))
        return
    out_folder = out or data / PREPARED / programme.name
    trace_path = trace or data / REPORTS / f"{programme.name}.json"

    def enter(digest: str) -> None:
        if data.is_dir():  # a programme may count a file of records instead
            record_act(
                data,
                "release",
                programme.name,
                digest,
                policy=file.read_bytes(),
                dataset=source.dataset or programme.name,
                population="" if people is None else people.population or "",
            )
            require_none()  # from the line on there are no more answers

    with progress_bars(Console(stderr=True, markup=False)) as progress:
        release = run_programme(
            programme,
            data,
            out_folder,
            trace_path,
            workers=workers,
            progress=progress,
            accept=enter,
        )
    grid = Grid(header_style="bold")
    grid.add_column("table")
    for head in ("cells", "not shown"):
        grid.add_column(head, justify="right")
    for label, cells, hidden in release.tables:
        grid.add_row(Text(label), f"{cells:,}", f"{hidden:,}")
    console.print(grid)
    console.print(f"{out_folder} may be published: digest {release.digest}.", highlight=False)
    console.print(f"{trace_path} is confidential: it holds true values.", highlight=False)
