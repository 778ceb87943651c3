"""Suppress cells of confidential tables and write what may be published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from lustrum.arrays import Mask
from lustrum.cli.inputs.table_options import FileOptions
from lustrum.cli.suppression.files import SuppressFiles, Written, write_files
from lustrum.cli.suppression.inputs import (
    cells_of_all,
    previous_masks,
    rule_for,
    same_names,
    taken_as_counts,
)
from lustrum.cli.suppression.report import show_changes, show_report
from lustrum.formats.table_files import TableFile, confidential_table, read_table, recognise
from lustrum.model import InputError, Table
from lustrum.protect.suppression import (
    Pattern,
    PatternChanges,
    Suppression,
    SuppressionProblem,
    explain_changes,
    linked_patterns,
    linked_problem,
)
from lustrum.publish.programme.source import read_waivers
from lustrum.sensitivity import Background
from lustrum.tabulate.keys import text_identity

__all__ = ["suppress_files"]


def suppress_files(
    paths: Sequence[Path],
    console: Console,
    rules: Sequence[str],
    method: dict[str, Any],
    files: SuppressFiles,
    *,
    frozen: Sequence[str] = (),
    never: Sequence[str] = (),
    previous: Path | None = None,
    waivers: Path | None = None,
    options: FileOptions,
    counts: bool = False,
) -> bool:
    """Suppress cells of tables together, print the report and write the files; gives whether it is safe."""
    files.check(paths, previous)
    background = read_waivers(waivers)
    reads = [read_table(path, options.columns(), options.hidden) for path in paths]
    found = recognise(reads, options.said())
    for sentence in (*found.sentences(), *(said for read in reads for said in _ignored(read))):
        console.print(Text(sentence))
    # A holding has the same number in every file, and in the list of waivers.
    tables = [confidential_table(read, found, holding_number=text_identity) for read in reads]
    for read, table in zip(reads, tables, strict=True):
        if rules and read.count is None and not read.largest:
            console.print(Text(taken_as_counts(read, table, said=counts)))
        if waivers is not None and not read.holdings:
            raise InputError(
                f"{read.source}: waivers name holdings, and there is no column of holdings; name it with "
                "--holdings."
            )
    specs = [
        Suppression(rule=rule_for(rules, read, table), **method)
        for read, table in zip(reads, tables, strict=True)
    ]
    named = same_names(reads, method["attacker"])
    kept, hidden = (
        cells_of_all(tables, words, option)
        for words, option in ((frozen, "--frozen"), (never, "--never"))
    )
    before = None if previous is None else previous_masks(paths, tables, previous, options)
    for path, mask in zip(paths, before or (), strict=False):
        if mask is None:
            console.print(Text(f"{path.name} has no table of the last period."))
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("Suppressing", total=None)

        def tell(what: str, cost: float, bound: float) -> None:
            bar.update(task, description=f"{what}: cost {cost:,.0f}, at least {bound:,.0f}")

        patterns = _patterns(specs, tables, background, kept, hidden, before, named, tell)
        show_report(tables, patterns, paths, console, specs[0].cost == "value")
        changes = None
        if before is not None:
            bar.update(task, description="comparing with the last period")
            problem = _problem(specs, tables, background, kept, hidden, named)
            changes = _changes(problem, tables, patterns, before)
            show_changes(problem, patterns[0], changes, tables, paths, console)
        if not patterns[0].safe:
            for cell in patterns[0].unprotectable:
                console.print(Text(str(cell)))
            console.print(Text("Nothing was written: the pattern does not protect every cell."))
            return False
        made = [
            Written(
                path,
                table,
                spec.judge(table, background),
                pattern,
                spec.release(table, pattern, background),
            )
            for path, table, spec, pattern in zip(paths, tables, specs, patterns, strict=True)
        ]
        write_files(
            made,
            files,
            changes,
            lambda words: console.print(Text(words)),
            lambda words: bar.update(task, description=words),
        )
    return True


def _patterns(
    specs: Sequence[Suppression],
    tables: Sequence[Table],
    background: Background,
    frozen: Sequence[Mask | None],
    never: Sequence[Mask | None],
    before: Sequence[Mask | None] | None,
    named: bool,
    tell: Any,
) -> tuple[Pattern, ...]:
    if len(tables) > 1:
        return linked_patterns(
            specs,
            tables,
            background,
            frozen=frozen,
            never=never,
            previous=before or (),
            named=named,
            progress=tell,
        )
    one = specs[0].pattern(
        tables[0],
        background=background,
        frozen=frozen[0],
        never=never[0],
        previous=None if before is None else before[0],
        progress=tell,
    )
    return (one,)


def _problem(
    specs: Sequence[Suppression],
    tables: Sequence[Table],
    background: Background,
    frozen: Sequence[Mask | None],
    never: Sequence[Mask | None],
    named: bool,
) -> SuppressionProblem:
    if len(tables) > 1:
        return linked_problem(specs, tables, background, frozen=frozen, never=never, named=named)
    return specs[0].held(specs[0].problem(tables[0], background), frozen[0], never[0])


def _changes(
    problem: SuppressionProblem,
    tables: Sequence[Table],
    patterns: Sequence[Pattern],
    before: Sequence[Mask | None],
) -> PatternChanges:
    old = np.concatenate(
        [
            np.zeros(table.values.size, dtype=np.bool_) if mask is None else mask.ravel()
            for table, mask in zip(tables, before, strict=True)
        ]
    )
    return explain_changes(problem, np.concatenate([one.suppressed for one in patterns]), old)


def _ignored(file: TableFile) -> list[str]:
    return [f"Columns not used: {', '.join(file.ignored)}."] if file.ignored else []
