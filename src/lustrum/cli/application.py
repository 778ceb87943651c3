"""The commands, and one clear sentence for everything that goes wrong.

A command imports what it needs when it runs, so that ``lustrum --help`` comes at once.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lustrum._version import __version__

from lustrum.cli.commands import service  # isort: skip - the order of the list of commands
from lustrum.cli.commands import files  # isort: skip
from lustrum.cli.commands import release  # isort: skip
from lustrum.cli.commands import agency  # isort: skip
from lustrum.cli.commands import ledger  # isort: skip
from lustrum.cli.inputs import app
from lustrum.model import LustrumError
from lustrum.model.errors import NotJudgedError

__all__ = ["COMMANDS", "app", "main"]

_INTERRUPTED = 130  # what typer ends with after Ctrl-C
COMMANDS = (service, files, release, agency, ledger)
"""The modules whose commands the application has; importing them adds the commands, in this order."""


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Say the version.")] = False,
) -> None:
    """Say the version, or go on to a command."""
    if version:
        typer.echo(f"lustrum {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command; every error that was foreseen is one sentence on standard error."""
    try:
        app()
    except NotJudgedError as error:
        typer.echo(f"lustrum: not judged: {error}", err=True)
        raise SystemExit(4) from None
    except LustrumError as error:
        typer.echo(f"lustrum: {error}", err=True)
        raise SystemExit(1) from None
    except (KeyboardInterrupt, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code != _INTERRUPTED:
            raise
        typer.echo("lustrum: stopped; nothing half-done was kept.", err=True)
        raise SystemExit(_INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
