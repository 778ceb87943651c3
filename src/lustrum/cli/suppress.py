"""`lustrum suppress`: confidential tables in files, protected together, and what may be published of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from lustrum.cli.inputs.rule_words import rule_of
from lustrum.cli.inputs.table_options import FileOptions
from lustrum.cli.terminal.suppression import show_changes, show_report
from lustrum.model import InputError
from lustrum.model.keys import text_identity
from lustrum.protect.suppression import Pattern, Suppression
from lustrum.protect.suppression.method import attacker_of
from lustrum.publish.suppression.files import SuppressFiles, write_files, write_tables
from lustrum.publish.suppression.inputs import (
    cells_of_all,
    previous_masks,
    rule_for,
    same_names,
    taken_as_counts,
)
from lustrum.publish.suppression.long_search import StoppableSearch
from lustrum.publish.suppression.read_back import audit_of_files
from lustrum.publish.suppression.report import suppression_report
from lustrum.publish.suppression.tables import TablesTogether
from lustrum.publish.waivers import read_waivers
from lustrum.readers import TableFile, confidential_table, read_table, recognise

_MOST_SHORT = 20


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
    columns = options.columns()
    reads = [read_table(path, columns, options.hidden) for path in paths]
    if options.decimals is not None:
        reads = [read.rounded(options.decimals) for read in reads]
    recognition = recognise(reads, options.said())
    for sentence in (
        *recognition.sentences(),
        *(said for read in reads for said in _ignored(read)),
    ):
        console.print(Text(sentence))
    # A holding has the same number in every file, and in the list of waivers.
    tables = [confidential_table(read, recognition, holding_number=text_identity) for read in reads]
    for table in tables:
        if "assumed" in table.provenance:
            console.print(Text(str(table.provenance["assumed"])))
    for read, table in zip(reads, tables, strict=True):
        if rules and read.count is None and not read.largest:
            console.print(Text(taken_as_counts(read, table, said=counts)))
        if waivers is not None and not read.holdings:
            raise InputError(
                f"{read.source}: waivers name holdings, and there is no column of holdings; name it with "
                "--holdings."
            )
    rule = rule_of(rules) if rules else None
    specs = [
        Suppression(rule=rule_for(rule, read, table), **method)
        for read, table in zip(reads, tables, strict=True)
    ]
    named = same_names(reads, attacker_of(method["attacker"], tables))
    frozen_cells, hidden = (
        cells_of_all(tables, text, option)
        for text, option in ((frozen, "--frozen"), (never, "--never"))
    )
    before = (
        None
        if previous is None
        else previous_masks(paths, tables, previous, columns, options.hidden)
    )
    for path, mask in zip(paths, before or (), strict=False):
        if mask is None:
            console.print(Text(f"{path.name} has no table of the last period."))
    together = TablesTogether(specs, tables, background, frozen_cells, hidden, named, before)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True, markup=False),
        transient=True,
    )
    with bar:
        task = bar.add_task("Suppressing", total=None)

        search = StoppableSearch(
            lambda text: bar.update(task, description=text),
            lambda text: console.print(Text(text)),
        )
        with search.listening():
            patterns = together.patterns(search.tell)
        if search.stopped:
            console.print(
                Text("The search was stopped; this is the best pattern that it had found.")
            )
        show_report(tables, patterns, paths, console, specs[0].cost == "value")
        console.print(Text(_attackers(patterns, specs)))
        if files.json is not None:
            suppression_report(paths, tables, patterns, safe=patterns[0].safe).write(files.json)
        changes = None
        if before is not None:
            bar.update(task, description="comparing with the last period")
            problem = together.problem()
            changes = together.changes(problem, patterns)
            show_changes(problem, patterns[0], changes, tables, paths, console)
        if not patterns[0].safe:
            for cell in patterns[0].unprotectable:
                console.print(Text(str(cell)))
            console.print(Text("Nothing was written: the pattern does not protect every cell."))
            return False
        protected = together.protected(paths, patterns)

        def line(text: str) -> None:
            console.print(Text(text))

        def judge(drafts: Sequence[Path]) -> bool:
            bar.update(task, description="reading the files back")
            attacked = together.attacked()
            audit = audit_of_files(drafts, protected, attacked)
            for cell, _ in () if audit is None else audit.short[:_MOST_SHORT]:
                line(
                    f"What would be written leaves {attacked.name(cell)} without enough protection."
                )
            return audit is None or audit.safe

        if not write_tables(protected, files, judge, line):
            if files.json is not None:
                suppression_report(paths, tables, patterns, safe=False).write(files.json)
            line("Nothing was written: the files would not protect every cell.")
            return False
        if files.out is not None:
            line("The files were read back: they show what was audited, and nothing else.")
        write_files(
            protected, files, changes, line, lambda text: bar.update(task, description=text)
        )
    return True


def _attackers(patterns: Sequence[Pattern], specs: Sequence[Suppression]) -> str:
    """One line on who was assumed to attack."""
    audited = patterns[0].audited
    number = 0 if audited is None else audited.attackers
    told = (
        "told which cells are sensitive"
        if specs[0].reasons
        else "not told which cells are sensitive"
    )
    if specs[0].attacker == "outsider":
        insiders = "no contributors, as asked for"
    elif number == 0:
        insiders = "no contributors, since the files show none that knows a cell or a part of one"
    elif specs[0].attacker == "pairs":
        insiders = f"{number:,} contributors and pairs of contributors, with what they know"
    elif number > 1:
        insiders = f"each of {number:,} contributors, with what it knows"
    else:
        insiders = "1 contributor, with what it knows"
    return f"Assumed attackers: outsiders who know the method and the rule, {told}; {insiders}."


def _ignored(file: TableFile) -> list[str]:
    return [f"Columns not used: {', '.join(file.ignored)}."] if file.ignored else []
