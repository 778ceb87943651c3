"""Care for a data folder: health, backups, a new secret, an upgrade, and policies checked and tried."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table as Grid
from rich.text import Text

from lustrum.answer.replay import Change, read_questions, replay
from lustrum.ledger.acts import record_seal
from lustrum.local import local_service
from lustrum.local.service import health
from lustrum.model import Decision, InputError, PolicyError, TableQuery
from lustrum.policy import check_names, read_policy
from lustrum.policy.explain import explain, warnings
from lustrum.policy.read import sealed
from lustrum.runtime.durable import write_whole
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


_MOST = 50


def check_policy(file: Path, data: Path, console: Console) -> None:
    """Say that the file is valid, what it decides and what deserves a second look.

    The names of variables are checked against the dataset where the folder holds it; a policy for any dataset
    is checked against the one that the file is named after.
    """
    policy, service = read_policy(file), local_service(data)
    name = file.stem if policy.dataset == "*" else policy.dataset
    known = name in service.described()
    if known:
        check_names(policy, service.description(name), str(file))
    console.print(Text(f"{file} is valid."))
    if not known:
        sentence = f"{data} holds no dataset {name!r}: names of variables were not checked."
        console.print(Text(f"Note well: {sentence}", style="yellow"))
    for sentence in explain(policy):
        console.print(Text(f"  {sentence}"))
    for sentence in warnings(policy):
        console.print(Text(f"Note well: {sentence}", style="yellow"))


def seal_policy(file: Path, console: Console) -> None:
    """Write the digest of a valid policy file as its last line."""
    try:
        raw = sealed(file.read_bytes(), str(file))
        record_seal(file, raw)
        write_whole(file, raw, file.stat().st_mode & 0o777)
    except OSError as error:
        raise PolicyError(f"{file} cannot be sealed: {error.strerror}.") from None
    console.print(Text(f"{file} is sealed: any change to it is refused until it is sealed again."))


def try_policy(file: Path, questions: Path, data: Path, console: Console, progress: Console) -> int:
    """Replay questions under the policy in force and under the new one; how many would change."""
    policy, service = read_policy(file), local_service(data)
    asked = read_questions(questions)
    for name in sorted({query.dataset for query in asked} & set(service.described())):
        if policy.dataset in ("*", name):
            check_names(policy, service.description(name), str(file))
    if policy.dataset != "*":
        asked = [query for query in asked if query.dataset == policy.dataset]
        if not asked:
            raise InputError(f"{questions} holds no question about {policy.dataset!r}.")
    changes = list(
        track(
            replay(service, policy, asked),
            total=len(asked),
            description="Asking",
            console=progress,
            transient=True,
        )
    )
    kinds = Counter(change.kind for change in changes)
    console.print(Text(f"{len(changes):,} questions under the policy in force and under {file}:"))
    for kind, number in kinds.most_common():
        console.print(Text(f"  {number:>6,} {kind}"))
    different = [change for change in changes if change.kind != "same"]
    if different:
        console.print(_listed(different[:_MOST]))
    if len(different) > _MOST:
        console.print(Text(f"... and {len(different) - _MOST:,} more."))
    return len(different)


def _listed(changes: list[Change]) -> Grid:
    grid = Grid(header_style="bold")
    for name in ("question", "what changes", "now", "then"):
        grid.add_column(name)
    for change in changes:
        grid.add_row(
            Text(_question(change.query)),
            Text(change.kind),
            Text(_ended(change.now)),
            Text(_ended(change.then)),
        )
    return grid


def _question(query: TableQuery) -> str:
    by = " x ".join(a.variable if a.level is None else f"{a.variable}:{a.level}" for a in query.by)
    where = ", ".join(f"{f.variable}={','.join(f.codes)}" for f in query.where)
    return f"{query.dataset}: {by}" + (f" where {where}" if where else "")


def _ended(end: Decision | str) -> str:
    if isinstance(end, str):
        return end
    if end.release is None:
        return " ".join(reason.text for reason in end.reasons)
    figures = [("risk", end.risk_after), ("utility", end.utility)]
    said = ", ".join(f"{name} {value:.3f}" for name, value in figures if value is not None)
    return "; ".join(part for part in (said, *(reason.text for reason in end.reasons)) if part)
