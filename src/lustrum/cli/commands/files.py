"""Tables in files: audit, suppress, verify."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lustrum.cli.importing import without_collection
from lustrum.cli.inputs.options import (
    By,
    HiddenSymbol,
    HierarchyFile,
    NoTotals,
    Rest,
    Total,
    Values,
    app,
)
from lustrum.model import InputError


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
    narrow: Annotated[
        int, typer.Option(help="List cells with at most this many values left.", min=2)
    ] = 5,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds; bounds stay valid.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page that colours cells by what can be worked out.")
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
    equations_only: Annotated[
        bool,
        typer.Option(
            "--equations-only", help="Find only the cells that sums alone disclose; quick."
        ),
    ] = False,
    by: By = "",
    value: Values = None,
    total: Total = None,
    hierarchy: HierarchyFile = None,
    no_totals: NoTotals = None,
    rest: Rest = None,
    hidden: HiddenSymbol = None,
    status_codes: Annotated[
        str,
        typer.Option(
            help="The code list of status letters: confidentiality or observation (SDMX)."
        ),
    ] = "",
    beside: Annotated[
        list[str] | None,
        typer.Option(help="A column of numbers that tell nothing about hidden cells."),
    ] = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            help="What a status letter or a mark behind numbers means: A=shown, N=hidden, z=0, a=1..4."
        ),
    ] = None,
    status_column: Annotated[str, typer.Option(help="The column of status letters.")] = "",
    formula: Annotated[
        list[str] | None,
        typer.Option(
            help="How a column follows from values, as 'share = 100 * value / value[Total]' or "
            "'lower <= value <= upper'."
        ),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(help="The rule that readers know, as threshold=3, for counts with letters."),
    ] = "",
    zeros_shown: Annotated[
        bool, typer.Option("--zeros-shown", help="Zeros are shown: a hidden count is at least 1.")
    ] = False,
    signed: Annotated[
        bool, typer.Option("--signed", help="Hidden values may be negative.")
    ] = False,
    off_by_rounding: Annotated[
        bool,
        typer.Option(
            "--off-by-rounding",
            help="Every number was rounded to its last digit, so that sums may be off.",
        ),
    ] = False,
    decimals: Annotated[
        int | None, typer.Option(help="Round the numbers of the files to so many decimals.", min=0)
    ] = None,
    thousands: Annotated[
        str, typer.Option(help="What separates thousands: , . ' space or none.")
    ] = "",
    wide: Annotated[
        str, typer.Option(help="The name of a variable whose codes are the names of columns.")
    ] = "",
    flat: Annotated[
        list[str] | None,
        typer.Option(help="A dimension whose codes begin alike by coincidence."),
    ] = None,
    alias: Annotated[
        list[str] | None,
        typer.Option(help="Two names of one variable in different files, as 'area=geo'."),
    ] = None,
    unrelated: Annotated[
        bool,
        typer.Option("--unrelated", help="Columns of values have nothing to do with each other."),
    ] = False,
    notes_read: Annotated[
        bool,
        typer.Option(
            "--notes-read",
            help="Lines above and below the table say nothing more about hidden values.",
        ),
    ] = False,
    close: Annotated[
        float,
        typer.Option(help="A hidden value known to within so many percent is disclosed.", min=0),
    ] = 1.0,
) -> None:
    """Say what a reader of these files can work out.

    Totals and subtotals are those that are named, or recognised by their names, codes or numbers; the report
    says which. What cannot be understood is said with the option that settles it.

    Exit code 3: a cell is exactly disclosed, or known more closely than its protection allows. Exit code 4:
    something in the files could not be understood, so that nobody may call them safe.
    """
    with without_collection():
        from lustrum.cli.audit import audit_files
        from lustrum.cli.inputs.table_options import FileOptions

    if how not in ("adjacent", "nearest"):
        raise InputError(f"--how is 'adjacent' or 'nearest', not {how!r}.")
    outcome = audit_files(
        files,
        Console(markup=False),
        rounded=rounded,
        how="nearest" if how == "nearest" else "adjacent",
        narrow=narrow,
        seconds=seconds,
        html=html,
        certificate=certificate,
        relations=relation or (),
        truth=truth or (),
        protect=protect,
        equations_only=equations_only,
        options=replace(
            FileOptions.of(value, by, total, hierarchy, no_totals, rest, hidden),
            status_codes=status_codes,
            beside=beside or (),
            status=status or (),
            status_column=status_column,
            formula=formula or (),
            rule=rule,
            zeros_shown=zeros_shown,
            signed=signed,
            off_by_rounding=off_by_rounding,
            decimals=decimals,
            thousands=thousands,
            wide=wide,
            flat=flat or (),
            alias=alias or (),
            notes_read=notes_read,
        ),
        unrelated=unrelated,
        close=close,
    )
    if outcome:
        raise typer.Exit(int(outcome))


@app.command()
def suppress(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A confidential table with totals, CSV or Parquet; several are protected together."
        ),
    ],
    rule: Annotated[
        list[str] | None,
        typer.Option(help="p=10, pq=10,50, nk=2,85 or threshold=3; several mean any of them."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the protected table here (.csv, .parquet or .xlsx); a folder for several tables."
        ),
    ] = None,
    ranges: Annotated[
        Path | None, typer.Option(help="Write what a reader can work out about each cell (.csv).")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Write a picture of the pattern (.svg or .html).")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write the proof of the ranges of primary cells.")
    ] = None,
    cost: Annotated[
        str,
        typer.Option(
            help="What a cell costs: value, count, frequency, unity, distance or box-cox."
        ),
    ] = "value",
    power: Annotated[float, typer.Option(help="The power of the cost box-cox.")] = 0.5,
    algorithm: Annotated[
        str,
        typer.Option(help="auto, exact, quick or boxes."),
    ] = "auto",
    work: Annotated[
        int | None, typer.Option(help="Most steps of the search; the result stays safe.", min=0)
    ] = None,
    attacker: Annotated[
        str,
        typer.Option(
            help="Whom to protect from: insiders, outsider, singletons, holdings, or pairs of insiders."
        ),
    ] = "insiders",
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
        Path | None,
        typer.Option(
            help="The protected table of the last period, to stay near it; a folder for several tables."
        ),
    ] = None,
    changes: Annotated[
        Path | None,
        typer.Option(help="Write what changed against the last period, and why (.csv)."),
    ] = None,
    waivers: Annotated[
        Path | None,
        typer.Option(
            help="Holdings that gave a waiver, one on each line; they need no protection."
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="State intervals instead of blanks.")
    ] = False,
    reasons: Annotated[
        bool,
        typer.Option(
            "--reasons",
            help="State why each cell is suppressed, and protect from readers who use that.",
        ),
    ] = False,
    by: By = "",
    value: Values = None,
    contributors: Annotated[
        str, typer.Option(help="The column with the number of contributors; 'n' unless named.")
    ] = "",
    largest: Annotated[
        str,
        typer.Option(
            help="Columns of the largest contributions, as 'first,second'; 'x1', 'x2', ... unless named."
        ),
    ] = "",
    holdings: Annotated[
        str, typer.Option(help="Columns of the holdings behind them; 'h1', 'h2', ... unless named.")
    ] = "",
    counts: Annotated[
        bool, typer.Option("--counts", help="The values are counts of contributors.")
    ] = False,
    decimals: Annotated[
        int | None, typer.Option(help="Round the numbers of the files to so many decimals.", min=0)
    ] = None,
    total: Total = None,
    hierarchy: HierarchyFile = None,
    no_totals: NoTotals = None,
    rest: Rest = None,
) -> None:
    """Suppress sensitive cells and as few others as protect them; the result is audited.

    Columns: codes, 'value', 'n' contributors, largest contributions 'x1', 'x2', ... and holdings 'h1', ...
    Exit code 3: some cell cannot be protected; then nothing is written. Exit code 4: nobody can say whether
    the tables are safe together; nothing is written either.
    """
    with without_collection():
        from lustrum.cli.inputs.table_options import FileOptions
        from lustrum.cli.suppress import suppress_files
        from lustrum.publish.suppression.files import SuppressFiles

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
        "reasons": reasons,
    }
    safe = suppress_files(
        files,
        Console(markup=False),
        rule or (),
        method,
        SuppressFiles(out, ranges, picture, certificate, changes),
        frozen=frozen or (),
        never=never or (),
        previous=previous,
        waivers=waivers,
        options=replace(
            FileOptions.of(value, by, total, hierarchy, no_totals, rest),
            contributors=contributors,
            largest=largest,
            holdings=holdings,
            decimals=decimals,
        ),
        counts=counts,
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
    from lustrum.cli.terminal.verify import show_verification

    if not show_verification(file, digest, Console(markup=False), every=list_):
        raise typer.Exit(1)
