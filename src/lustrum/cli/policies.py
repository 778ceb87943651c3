"""Policies on the terminal: checked, explained, tried on questions that were asked before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table as Grid
from rich.text import Text

from lustrum.model import Decision, InputError, TableQuery
from lustrum.policy import read_policy
from lustrum.policy.explain import explain, warnings
from lustrum.release import TableService
from lustrum.release.replay import Change, read_questions, replay

__all__ = ["check_policy", "try_policy"]

_MOST = 50


def check_policy(file: Path, console: Console) -> None:
    """Say that the file is valid, what it decides and what deserves a second look."""
    policy = read_policy(file)
    console.print(Text(f"{file} is valid."))
    for sentence in explain(policy):
        console.print(Text(f"  {sentence}"))
    for sentence in warnings(policy):
        console.print(Text(f"Note well: {sentence}", style="yellow"))


def try_policy(file: Path, questions: Path, data: Path, console: Console, progress: Console) -> int:
    """Replay questions under the policy in force and under the new one; how many would change."""
    policy, service = read_policy(file), TableService(data)
    asked = read_questions(questions)
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
    return f"risk {end.risk_after:.2f}, utility {end.utility:.3f}" + (
        f"; {' '.join(reason.text for reason in end.reasons)}" if end.reasons else ""
    )
