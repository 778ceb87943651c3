"""Care for a data folder: health, backups, a new secret, an upgrade."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from lustrum.local import local_service
from lustrum.local.service import health
from lustrum.model import InputError
from lustrum.tabulate import Store
from lustrum.tabulate.store.backup import back_up, restore
from lustrum.tabulate.store.renewal import rotate, upgrade
from lustrum.tabulate.store.secret_files import NEXT

RISKS = (
    "A new secret gives every record a new key, so every table is perturbed a second time. Readers who kept "
    "earlier tables can compare the two: the more often a number is perturbed anew, the closer they come to "
    "the true one. Rotate only if the old secret is lost or known to others, and make a backup first."
)


def rotate_secret(data: Path, console: Console, *, yes: bool) -> None:
    """Say what a rotation risks, ask, and rotate."""
    store = Store(data)
    if not store.names():
        raise InputError(f"There is no dataset in {data}, so there is no secret to rotate.")
    console.print(Text(RISKS))
    if (data / NEXT).exists():
        console.print(Text("An earlier rotation was stopped; it goes on where it stopped."))
    if not yes and not typer.confirm("Rotate the secret now?"):
        raise InputError("Nothing was changed.")
    changed = rotate(store, lambda name: console.print(Text(f"  new keys for {name} ...")))
    console.print(Text(f"{len(changed)} datasets have new keys; back up {data} now."))


def upgrade_folder(data: Path, console: Console) -> bool:
    """Upgrade datasets, and say what cannot be served and what to do; gives whether everything can be."""
    store = Store(data)
    done = upgrade(store)
    for name in done:
        console.print(Text(f"{name} was brought to the present format."))
    service = local_service(data)
    try:
        not_served = service.not_served()
        for name, why in not_served.items():
            console.print(Text(f"{name} cannot be served: {why}", style="bold red"))
        served = [name for name in service.names() if name not in not_served]
    finally:
        service.close()
    if not done:
        console.print(Text("All records are of the present format."))
    console.print(Text(f"{len(served)} of {len(served) + len(not_served)} datasets can be served."))
    return not not_served


def show_health(data: Path, console: Console) -> bool:
    """Say what was looked at and what to do; gives whether nothing stops answers."""
    styles = {"good": "green", "note": "yellow", "bad": "bold red"}
    findings = list(health(data))
    for finding in findings:
        line = Text(f"{finding.grade:>4}", style=styles[finding.grade])
        console.print(line.append(f"  {finding.about}: {finding.sentence}", style="default"))
    bad = sum(finding.grade == "bad" for finding in findings)
    notes = sum(finding.grade == "note" for finding in findings)
    console.print(Text(f"{bad} faults that stop answers, {notes} notes."))
    return bad == 0


def back_up_folder(data: Path, target: Path, console: Console) -> None:
    """Back up, and say what to do with the backup."""
    files = back_up(data, target, lambda name: console.print(Text(f"  {name} ...")))
    console.print(
        Text(
            f"{files} files are in {target}, the secret among them: keep it as closed as {data} itself, on "
            "another machine, and try 'lustrum restore' into a new folder from time to time."
        )
    )


def restore_folder(source: Path, data: Path, console: Console) -> None:
    files = restore(source, data)
    console.print(Text(f"{files} files were restored to {data}; 'lustrum doctor' looks at them."))
