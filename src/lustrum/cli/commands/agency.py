"""Studies, plug-ins, policies, secrets and the care of a data folder."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lustrum.cli.inputs import HERE, Data, app, need_server, policy_app, secret_app
from lustrum.model import InputError


@app.command()
def agency(
    data: Data = HERE,
    port: Annotated[int, typer.Option(help="Port of the pages.", min=0, max=65535)] = 8001,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            help="The port on which the public server counts questions (its --metrics-port).",
            min=1,
            max=65535,
        ),
    ] = None,
    policy: Annotated[Path, typer.Option(help="Where a map writes the chosen method.")] = Path(
        "policy-from-map.toml"
    ),
    files: Annotated[
        list[Path] | None,
        typer.Option(help="A folder below which files to import may be named; repeat it."),
    ] = None,
    socket: Annotated[
        Path | None,
        typer.Option(help="Listen on this file, for a proxy of the same user, and on no port."),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    address: Annotated[
        bool, typer.Option("--address", help="Print a new address of the pages that run.")
    ] = False,
) -> None:
    """Open the agency's own pages, on this machine only: datasets, policies, import, reports, usage, maps."""
    need_server("lustrum agency")
    from lustrum.agency import serve_agency
    from lustrum.agency.door import kept_addresses
    from lustrum.cli.maps import say_address

    if address:
        found = kept_addresses(data)
        if not found:
            raise InputError(f"No pages of the agency run over {data}; start 'lustrum agency'.")
        for line in found:
            typer.echo(line)
        return
    serve_agency(
        port=port,
        data=data,
        policy=policy,
        metrics_port=metrics_port,
        files=files or (),
        socket_file=socket,
        browser=not no_browser,
        ready=partial(say_address, Console(markup=False), "The agency's pages are", data),
    )


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="What a session wrote for its checker.")],
    port: Annotated[
        int, typer.Option(help="Port of the page; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Only say whether every file and line is what was written."),
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
) -> None:
    """Check the outputs of a researcher's session: risks, comments, approve or refuse."""
    from lustrum.checking import CheckerFolder

    if verify:
        decided = CheckerFolder(folder).decisions()
        typer.echo(f"Every file and line is what was written; {len(decided)} outputs are decided.")
        return
    need_server("lustrum check")
    from lustrum.agency import create_check_app, serve_pages
    from lustrum.cli.maps import say_address

    serve_pages(
        lambda keys: create_check_app(folder, keys=keys),
        port=port,
        browser=not no_browser,
        ready=partial(say_address, Console(markup=False), "The outputs are", None),
    )


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
    from lustrum.cli.terminal.studies import as_markdown, show_study, with_progress

    result = with_progress(name, Console(stderr=True, markup=False))
    pictures = {}
    if figures is not None:
        from lustrum.study.figures import CAPTIONS, write_figures

        for path in write_figures(result, figures):
            typer.echo(f"drew {path}", err=True)
            pictures[f"{figures.name}/{path.name}"] = CAPTIONS[path.stem]
    if markdown:
        sys.stdout.write(as_markdown(result, pictures))
    else:
        show_study(result, Console(markup=False))
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
    matching = [group for group in groups if name in names(f"lustrum.{group}")]
    if not matching:
        known = [n for group in groups for n in names(f"lustrum.{group}")]
        raise InputError(
            f"There is nothing installed by the name {name!r}; {choices(name, known)}."
        )
    kind = load(f"lustrum.{matching[0]}", name)
    for one in parameters_of(kind) if hasattr(kind, "to_mapping") else ():
        typer.echo(f"{one.name}: {one.kind}; default {one.default}. {one.text}")


@policy_app.command("check")
def policy_check(
    file: Annotated[Path, typer.Argument(help="A policy file (TOML).")], data: Data = HERE
) -> None:
    """Check a policy file, also against its dataset, and say in sentences what it decides."""
    from lustrum.cli.upkeep import check_policy

    check_policy(file, data, Console(markup=False))


@policy_app.command("seal")
def policy_seal(file: Annotated[Path, typer.Argument(help="A policy file (TOML).")]) -> None:
    """Write the digest of a policy file as its last line, so that no change goes unnoticed."""
    from lustrum.cli.upkeep import seal_policy

    seal_policy(file, Console(markup=False))


@policy_app.command("preset")
def policy_preset(
    name: Annotated[str, typer.Argument(help="strict, keyed-rounding or cell-key.")],
    dataset: Annotated[str, typer.Option(help="The dataset that it is for.")] = "*",
    data: Data = HERE,
) -> None:
    """Print a sealed policy to begin with, fitted to the dataset if the data folder holds it."""
    from lustrum.local import local_service
    from lustrum.policy.presets import preset
    from lustrum.policy.read import sealed

    service = local_service(data)
    known = dataset in service.described()
    text = preset(name, service.description(dataset) if known else dataset)
    sys.stdout.write(sealed(text.encode(), f"The preset {name!r}").decode())
    sys.stderr.write("It is sealed: after a change, run 'lustrum policy seal FILE'.\n")


@policy_app.command("try")
def policy_try(
    file: Annotated[Path, typer.Argument(help="A policy file (TOML).")],
    questions: Annotated[
        Path, typer.Argument(help="Questions, one on each line as JSON, or a log of the server.")
    ],
    data: Data = HERE,
) -> None:
    """Replay questions under a new policy and show what would change. Exit code 3: something would."""
    from lustrum.cli.upkeep import try_policy

    if try_policy(file, questions, data, Console(markup=False), Console(stderr=True, markup=False)):
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

    rotate_secret(data, Console(markup=False), yes=yes)


@app.command()
def doctor(data: Data = HERE) -> None:
    """Check a data folder and say what to do. Exit code 3: something stops answers."""
    from lustrum.cli.upkeep import show_health

    if not show_health(data, Console(markup=False)):
        raise typer.Exit(3)


@app.command()
def backup(
    target: Annotated[Path, typer.Argument(help="A new folder for the backup.")], data: Data = HERE
) -> None:
    """Copy a data folder, checked byte by byte, while it is served."""
    from lustrum.cli.upkeep import back_up_folder

    back_up_folder(data, target, Console(markup=False))


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="The folder of the backup.")], data: Data = HERE
) -> None:
    """Put a backup into an empty folder, whole or not at all."""
    from lustrum.cli.upkeep import restore_folder

    restore_folder(source, data, Console(markup=False))


@app.command()
def upgrade(data: Data = HERE) -> None:
    """Bring datasets of an earlier version to the present format. Exit code 3: something cannot be served."""
    from lustrum.cli.upkeep import upgrade_folder

    if not upgrade_folder(data, Console(markup=False)):
        raise typer.Exit(3)
