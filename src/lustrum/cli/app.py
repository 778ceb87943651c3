"""The commands, and one clear sentence for everything that goes wrong.

A command imports what it needs when it runs, so that ``lustrum --help`` comes at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lustrum._version import __version__
from lustrum.model import InputError, LustrumError

__all__ = ["app", "main"]

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
    help="The secret from which the perturbation of every table follows.", no_args_is_help=True
)
app.add_typer(secret_app, name="secret")

By = Annotated[str, typer.Option(help="Columns of codes, as 'area,job'; found if left out.")]
Values = Annotated[
    list[str] | None, typer.Option("--value", help="A column of values; 'value' unless named.")
]
Total = Annotated[
    list[str] | None, typer.Option(help="The code of a total, as 'Total' or 'area=Total'.")
]
HierarchyFile = Annotated[
    list[str] | None,
    typer.Option(help="Subtotals of a dimension, as 'nace=nace.hrc' (or .csv, .toml)."),
]
NoTotals = Annotated[
    list[str] | None, typer.Option(help="A dimension that has no totals; 'all' for every one.")
]
Rest = Annotated[
    list[str] | None,
    typer.Option(help="A dimension whose total holds more codes than the files list."),
]
HiddenSymbol = Annotated[
    list[str] | None, typer.Option("--hidden", help="A further symbol for a hidden value.")
]

Data = Annotated[
    Path,
    typer.Option(envvar="LUSTRUM_DATA", help="Folder of datasets and policies.", show_default=True),
]
HERE = Path("lustrum-data")


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Say the version.")] = False,
) -> None:
    """Say the version, or go on to a command."""
    if version:
        typer.echo(f"lustrum {__version__}")
        raise typer.Exit


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
        str, typer.Option(help="Proxies whose word about the asker's address is taken.")
    ] = "",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(help="A name that the server answers to; .example.org for all below it."),
    ] = None,
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
    metrics_port: Annotated[
        int | None,
        typer.Option(help="Port for Prometheus, on this machine only.", min=1, max=65535),
    ] = None,
    logs: Annotated[
        str | None, typer.Option(help="Log lines of JSON from this level on: info, warning, error.")
    ] = None,
) -> None:
    """Serve tables: pages for people, an API for programs."""
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
        memory=memory,
        connections=connections,
        header_seconds=header_seconds,
        body_seconds=body_seconds,
        idle_seconds=idle_seconds,
        send_seconds=send_seconds,
    )
    if demo and bundle:
        raise InputError("--demo makes data of its own; leave it out to serve a --bundle.")
    if state is not None and not bundle:
        raise InputError("--state is for a --bundle; jobs of a data folder are kept in it.")
    if demo:
        work.make_demo(data, Console(stderr=True))
    work.run_server(
        None if bundle else data,
        host,
        port,
        Console(),
        bundles=bundle or (),
        state=state,
        settings=settings,
        workers=workers,
        metrics_port=metrics_port,
        logs=logs,
    )


@app.command()
def demo(
    data: Data = HERE,
    persons: Annotated[int, typer.Option(help="How many people to invent.", min=100)] = 1_500_000,
) -> None:
    """Invent the demo census and business register."""
    from lustrum.cli import work

    work.make_demo(data, Console(stderr=True), persons)


@app.command()
def protect(
    dataset: Annotated[str, typer.Option(help="Name of a dataset.")],
    data: Data = HERE,
    out: Annotated[
        Path | None, typer.Option(help="Where to write the bundle; in the data folder unless told.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="The policy; that of the data folder unless told.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Where to write the confidential report of the agency.")
    ] = None,
) -> None:
    """Make one protected population of a dataset, as a public bundle that can be served anywhere."""
    from lustrum.cli.protect import protect_dataset

    protect_dataset(dataset, data, Console(stderr=True), policy=policy, out=out, report=report)


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
    data: Data = HERE,
) -> None:
    """Check and encode a dataset; the one in force changes at the end or not at all."""
    from lustrum.cli import work

    work.ingest_source(file, description, query, database, data, Console(stderr=True))


@app.command()
def datasets(data: Data = HERE) -> None:
    """List the datasets that can be asked about."""
    from lustrum.release.records import local_service

    found = local_service(data).datasets()
    if not found:
        typer.echo(f"There is no dataset with a policy in {data}; try 'lustrum demo'.")
    for dataset in found:
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
    """Ask for a table; it comes protected, or a refusal says why. Exit code 3 is a refusal."""
    from lustrum.cli.question import read_question
    from lustrum.cli.show import show_decision
    from lustrum.model.plugins import load
    from lustrum.release.records import RecordsDesk, local_service

    if confidential and format_ != "text":
        raise InputError("--confidential is for the terminal; no file holds true figures.")
    writer = None if format_ == "text" else load("lustrum.formats", format_)()
    service = local_service(data)
    question = read_question(dataset, by, where or [], totals)
    decision = service.answer(question)
    if decision.release is not None and writer is not None:
        written = writer.write(decision.release)
        if isinstance(written, bytes):
            sys.stdout.buffer.write(written)
        else:
            sys.stdout.write(written)
        raise typer.Exit
    show_decision(
        decision, service.dataset(dataset), service.policy(dataset), Console(), explain=explain
    )
    if confidential and decision.release is not None:
        from lustrum.cli.show import show_true_figures

        show_true_figures(decision, RecordsDesk(data), service.policy(dataset), Console())
    if decision.release is None:
        raise typer.Exit(3)


@app.command()
def audit(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Published tables, CSV or Parquet; RESPONSE=FILE where relations are given."
        ),
    ],
    rounded: Annotated[
        int | None, typer.Option(help="All cells were rounded on their own to this base.", min=2)
    ] = None,
    how: Annotated[
        str, typer.Option(help="Rounded to an 'adjacent' multiple (at random) or the 'nearest'.")
    ] = "adjacent",
    narrow: Annotated[int, typer.Option(help="List cells with so few values left.", min=2)] = 5,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after so long; bounds stay true.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with the tables coloured.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the proof of every bound, for 'lustrum verify'.")
    ] = None,
    relation: Annotated[
        list[str] | None,
        typer.Option(help="Between responses, as 'turnover = domestic + export'."),
    ] = None,
    truth: Annotated[
        list[Path] | None,
        typer.Option(help="The true tables, in the order of the files; never printed."),
    ] = None,
    protect: Annotated[
        str | None,
        typer.Option(help="How far from the truth a range must reach, as '10%' or '5'."),
    ] = None,
    by: By = "",
    value: Values = None,
    total: Total = None,
    hierarchy: HierarchyFile = None,
    no_totals: NoTotals = None,
    rest: Rest = None,
    hidden: HiddenSymbol = None,
) -> None:
    """Say what a reader of these files can work out.

    Totals and subtotals are those that are named, or recognised by their names or numbers; the report
    says which. A dimension without any is an error, unless --no-totals says so.

    Exit code 3: a cell is exactly disclosed, or known more closely than its protection allows.
    """
    from lustrum.cli.audit import audit_files
    from lustrum.cli.table_options import FileOptions

    if how not in ("adjacent", "nearest"):
        raise InputError(f"--how is 'adjacent' or 'nearest', not {how!r}.")
    safe = audit_files(
        files,
        Console(),
        rounded=rounded,
        how="nearest" if how == "nearest" else "adjacent",
        narrow=narrow,
        seconds=seconds,
        html=html,
        certificate=certificate,
        relations=relation or (),
        truth=truth or (),
        protect=protect,
        options=FileOptions(
            values=value or (),
            by=by,
            total=total or (),
            hierarchy=hierarchy or (),
            no_totals=no_totals or (),
            rest=rest or (),
            hidden=hidden or (),
        ),
    )
    if not safe:
        raise typer.Exit(3)


@app.command()
def suppress(
    file: Annotated[Path, typer.Argument(help="A confidential table with totals, CSV or Parquet.")],
    rule: Annotated[
        list[str] | None,
        typer.Option(help="p=10, pq=10,50, nk=2,85 or threshold=3; several mean any of them."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the protected table here (.csv or .parquet).")
    ] = None,
    ranges: Annotated[
        Path | None, typer.Option(help="Write what a reader can work out of each cell (.csv).")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Write a picture of the pattern (.svg or .html).")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the proof of the ranges of primary cells.")
    ] = None,
    cost: Annotated[
        str, typer.Option(help="value, count, frequency, unity, distance or box-cox.")
    ] = "value",
    power: Annotated[float, typer.Option(help="The power of the cost box-cox.")] = 0.5,
    algorithm: Annotated[str, typer.Option(help="How to search; auto chooses.")] = "auto",
    work: Annotated[
        int | None, typer.Option(help="Most steps of the search; the result stays safe.", min=0)
    ] = None,
    attacker: Annotated[
        str, typer.Option(help="Whom to protect from: outsider, singletons or holdings.")
    ] = "outsider",
    unions: Annotated[
        bool, typer.Option("--unions", help="Judge sums of suppressed cells by the rule too.")
    ] = False,
    keep: Annotated[
        str, typer.Option(help="Always publish: nothing, grand-total or totals.")
    ] = "nothing",
    zeros: Annotated[
        bool, typer.Option("--zeros", help="Empty cells may be suppressed too.")
    ] = False,
    frozen: Annotated[
        list[str] | None, typer.Option(help="Cells that must be published, as 'area=n,job=a'.")
    ] = None,
    never: Annotated[
        list[str] | None, typer.Option(help="Cells that must not be published.")
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="The protected table of the last period, to stay near it.")
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="State intervals instead of blanks.")
    ] = False,
    plain_status: Annotated[
        bool, typer.Option("--plain-status", help="Do not tell why a cell is suppressed.")
    ] = False,
    by: By = "",
    value: Values = None,
    total: Total = None,
    hierarchy: HierarchyFile = None,
    no_totals: NoTotals = None,
    rest: Rest = None,
) -> None:
    """Suppress sensitive cells and as few others as protect them; the result is audited.

    Columns: codes, 'value', 'n' contributors, largest contributions 'x1', 'x2', ... and holdings 'h1', ...
    Exit code 3: some cell cannot be protected; then nothing is written.
    """
    from lustrum.cli.suppress import SuppressFiles, suppress_file
    from lustrum.cli.table_options import FileOptions

    method = {
        "cost": cost,
        "power": power,
        "algorithm": algorithm,
        "work": work,
        "attacker": attacker,
        "unions": unions,
        "keep": keep,
        "zeros": zeros,
        "partial": partial,
    }
    safe = suppress_file(
        file,
        Console(),
        rule or (),
        method,
        SuppressFiles(out, ranges, picture, certificate, plain_status),
        frozen=frozen or (),
        never=never or (),
        previous=previous,
        options=FileOptions(
            values=value or (),
            by=by,
            total=total or (),
            hierarchy=hierarchy or (),
            no_totals=no_totals or (),
            rest=rest or (),
        ),
    )
    if not safe:
        raise typer.Exit(3)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A certificate (JSON).")],
    digest: Annotated[
        str | None, typer.Option(help="The digest that its knowledge must have.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List all bounds that it proves.")] = False,
) -> None:
    """Check a certificate in exact arithmetic, without a solver. Exit code 1: it does not hold."""
    from lustrum.cli.verify import show_verification

    if not show_verification(file, digest, Console(), every=list_):
        raise typer.Exit(1)


@app.command("map")
def map_(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="True tables (CSV or Parquet), or saved questions (JSON)."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A method, with values to try, as 'random-rounding:base=3,5'; by default a set that fits."
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
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures.", min=0)] = 0,
    no_totals: Annotated[
        list[str] | None,
        typer.Option(help="A dimension that has no total; '' for all dimensions."),
    ] = None,
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

    if page:
        open_page(files or [], data, policy, port, no_totals or [], Console())
        return
    chosen = draw_map(
        files or [],
        Console(),
        methods=method or [],
        measures=[*(risk or []), *(utility or [])],
        attackers=attacker or [],
        limit=limit,
        draws=draws,
        seed=seed,
        no_totals=no_totals or [],
        chart=chart,
        report=report,
        table=table,
        cache=cache,
        data=data,
    )
    if not chosen:
        raise typer.Exit(3)


@app.command()
def study(
    name: Annotated[
        str, typer.Argument(help="cell-entropy, sample-tables, markov, table-server or maps.")
    ],
    markdown: Annotated[bool, typer.Option("--markdown", help="Print it as Markdown.")] = False,
    figures: Annotated[
        Path | None, typer.Option(help="Also draw its figures into this folder, as SVG.")
    ] = None,
) -> None:
    """Compute a paper's figures again and print them beside the printed ones."""
    from lustrum.cli.studies import as_markdown, show_study, with_progress

    result = with_progress(name, Console(stderr=True))
    pictures = {}
    if figures is not None:
        from lustrum.study.figures import CAPTIONS, write_figures

        for path in write_figures(result, figures):
            typer.echo(f"drew {path}", err=True)
            pictures[f"{figures.name}/{path.name}"] = CAPTIONS[path.stem]
    if markdown:
        sys.stdout.write(as_markdown(result, pictures))
    else:
        show_study(result, Console())
    if not result.reproduced:
        raise typer.Exit(1)


@app.command()
def plugins(
    name: Annotated[
        str | None, typer.Argument(help="A method, rule or measure whose parameters to show.")
    ] = None,
) -> None:
    """List what is installed: engines, methods, rules, measures, formats; or the parameters of one."""
    from lustrum.model.errors import choices
    from lustrum.model.parameters import parameters_of
    from lustrum.model.plugins import load, names

    groups = ("engines", "methods", "rules", "risks", "utilities", "formats")
    if name is None:
        for group in groups:
            typer.echo(f"{group}: {', '.join(names(f'lustrum.{group}'))}")
        return
    found = [group for group in groups if name in names(f"lustrum.{group}")]
    if not found:
        known = [n for group in groups for n in names(f"lustrum.{group}")]
        raise InputError(
            f"There is nothing installed by the name {name!r}; {choices(name, known)}."
        )
    kind = load(f"lustrum.{found[0]}", name)
    for one in parameters_of(kind) if hasattr(kind, "to_mapping") else ():
        typer.echo(f"{one.name}: {one.kind}; default {one.default}. {one.text}")


@policy_app.command("check")
def policy_check(
    file: Annotated[Path, typer.Argument(help="A policy file (TOML).")], data: Data = HERE
) -> None:
    """Check a policy file, also against its dataset, and say in sentences what it decides."""
    from lustrum.cli.policies import check_policy

    check_policy(file, data, Console())


@policy_app.command("seal")
def policy_seal(file: Annotated[Path, typer.Argument(help="A policy file (TOML).")]) -> None:
    """Write the digest of a policy file as its last line, so that no change goes unnoticed."""
    from lustrum.cli.policies import seal_policy

    seal_policy(file, Console())


@policy_app.command("preset")
def policy_preset(
    name: Annotated[str, typer.Argument(help="strict, keyed-rounding or cell-key.")],
    dataset: Annotated[str, typer.Option(help="The dataset that it is for.")] = "*",
) -> None:
    """Print a policy to begin with, for one of the ways to protect tables."""
    from lustrum.policy.presets import preset

    sys.stdout.write(preset(name, dataset))


@policy_app.command("try")
def policy_try(
    file: Annotated[Path, typer.Argument(help="A policy file (TOML).")],
    questions: Annotated[
        Path, typer.Argument(help="Questions, one on each line as JSON, or a log of the server.")
    ],
    data: Data = HERE,
) -> None:
    """Replay questions under a new policy and show what would change. Exit code 3: something would."""
    from lustrum.cli.policies import try_policy

    if try_policy(file, questions, data, Console(), Console(stderr=True)):
        raise typer.Exit(3)


@secret_app.command("rotate")
def secret_rotate(
    data: Data = HERE,
    yes: Annotated[
        bool, typer.Option("--yes", help="Go on without asking: you know what it risks.")
    ] = False,
) -> None:
    """Give all datasets record keys of a new secret. Every table is then perturbed a second time."""
    from lustrum.cli.upkeep import rotate_secret

    rotate_secret(data, Console(), yes=yes)


@app.command()
def doctor(data: Data = HERE) -> None:
    """Check a data folder and say what to do. Exit code 3: something stops answers."""
    from lustrum.cli.upkeep import show_health

    if not show_health(data, Console()):
        raise typer.Exit(3)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="A new folder for the backup.")],
    data: Data = HERE,
) -> None:
    """Copy a data folder, checked byte by byte, while it is served."""
    from lustrum.cli.upkeep import back_up_folder

    back_up_folder(data, target, Console())


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="The folder of the backup.")],
    data: Data = HERE,
) -> None:
    """Put a backup into an empty folder, whole or not at all."""
    from lustrum.cli.upkeep import restore_folder

    restore_folder(source, data, Console())


@app.command()
def upgrade(data: Data = HERE) -> None:
    """Bring datasets written by an earlier version of Lustrum to the present format."""
    from lustrum.cli.upkeep import upgrade_folder

    upgrade_folder(data, Console())


def main() -> None:
    """Run a command; every error that was foreseen is one sentence on standard error."""
    try:
        app()
    except LustrumError as error:
        typer.echo(f"lustrum: {error}", err=True)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        typer.echo("lustrum: stopped; nothing half-done was kept.", err=True)
        raise SystemExit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
