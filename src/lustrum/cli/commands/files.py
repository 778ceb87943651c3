"""Tables in files: audit, suppress, verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer
from rich.console import Console
from typer.core import TyperCommand

from lustrum.cli import without_collection
from lustrum.cli.inputs import app


@app.command()
def audit(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Published files: CSV and SDMX-CSV (also .gz), XLSX, JSON-stat, Parquet, PX or .tab."
        ),
    ],
    layout: Annotated[
        list[Path] | None,
        typer.Option(
            help="What everything in the files is (TOML): one for all, or one for each file."
        ),
    ] = None,
    propose: Annotated[
        Path | None, typer.Option(help="Write a proposed layout of the file here, with reasons.")
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write the report for programs here.")] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with the findings and the roles to choose.")
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write the proof of the bounds of readers, for 'lustrum verify'."),
    ] = None,
    truth: Annotated[
        list[Path] | None, typer.Option(help="The true tables, for --protect; never printed.")
    ] = None,
    contributions: Annotated[
        Path | None,
        typer.Option(help="Who contributes what to which cell; then contributors are judged too."),
    ] = None,
    coalition: Annotated[
        int, typer.Option(help="How many contributors or holdings may work together.", min=1)
    ] = 1,
    protect: Annotated[
        str | None, typer.Option(help="How far from the truth a range must reach, as '10%' or '5'.")
    ] = None,
    close: Annotated[
        float,
        typer.Option(
            help="A sum that is known to within this many percent counts as disclosed.",
            min=0,
            max=100,
        ),
    ] = 1.0,
    narrow: Annotated[
        int, typer.Option(help="List cells with at most this many values left.", min=2)
    ] = 5,
    seconds: Annotated[
        float | None, typer.Option(help="Stop after this many seconds; bounds stay valid.")
    ] = None,
    equations_only: Annotated[
        bool,
        typer.Option(
            "--equations-only", help="Find only the cells that sums alone disclose; quick."
        ),
    ] = False,
) -> None:
    """Say what a reader of these files can work out, and whether everything in them has a role.

    Exit code 0: everything has a role, by evidence or by the layout, and nothing hidden is disclosed. Exit
    code 3: something is. Exit code 4: roles are open; the report asks about them.
    """
    with without_collection():
        from lustrum.cli.audit import audit_files

    outcome = audit_files(
        files,
        Console(markup=False),
        layouts=layout or (),
        proposal=propose,
        json=json,
        html=html,
        certificate=certificate,
        truth=truth or (),
        contributions=contributions,
        coalition=coalition,
        protect=protect,
        close=close,
        narrow=narrow,
        seconds=seconds,
        equations_only=equations_only,
    )
    if outcome:
        raise typer.Exit(outcome)


@app.command()
def clean(
    file: Annotated[
        Path, typer.Argument(help="A workbook (.xlsx), Parquet file or JSON-stat dataset.")
    ],
    out: Annotated[Path, typer.Option(help="The copy to write.")],
) -> None:
    """Write a copy of a file with its visible values only: no comments, formulas, hidden rows or metadata."""
    from lustrum.model import InputError
    from lustrum.readers.container import clean_file

    if out.exists():
        raise InputError(f"{out} exists already; name another file.")
    console = Console(markup=False)
    for part in clean_file(file, out):
        console.print(f"Left out: {part}.")
    console.print(f"The values are in {out}.")


class _WithoutMoved(TyperCommand):
    """Options that stand in a layout now say so."""

    MOVED: ClassVar[dict[str, str]] = {
        **{f"--{key}": f'{key} = "..." under [suppress]' for key in ("cost", "algorithm", "keep")},
        **{f"--{key}": f"{key} = true under [suppress]" for key in ("unions", "zeros", "partial", "reasons")},
        **{f"--{key}": f'{key} = ["area=n,job=a"] under [suppress]' for key in ("frozen", "never")},
        **{f"--{key}": f"{key} = 1 under [suppress]" for key in ("power", "decimals")},
        "--counts": 'kind = "counts" (or say --kind counts)',
        "--value": 'turnover = { role = "value" } under [tables.columns]',
        "--by": 'area = { role = "code" } under [tables.columns]',
        "--contributors": 'firms = { role = "contributors" } under [tables.columns]',
        "--largest": 'first = { role = "contribution" } under [tables.columns]',
        "--holdings": 'owner = { role = "holding" } under [tables.columns]',
        "--total": 'totals.Total = ["n", "s"] under [dimensions.area]',
        "--rest": 'totals.Total = ["n", "s", "others"] under [dimensions.area]',
        "--no-totals": 'independent = ["n", "s"] under [dimensions.area]',
    }  # fmt: skip

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that stands in a layout now."""
        from lustrum.model import InputError

        for word in args:
            name = word.partition("=")[0]
            if name in self.MOVED:
                raise InputError(
                    f"{name} stands in a layout now: write {self.MOVED[name]}, and name the file with --layout."
                )
        return super().parse_args(ctx, args)


@app.command(cls=_WithoutMoved)
def suppress(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A confidential table with totals (CSV, Parquet, XLSX or JSON-stat); several are protected "
            "together."
        ),
    ],
    rule: Annotated[
        list[str] | None,
        typer.Option(help="p=10, pq=10,50, nk=2,85 or threshold=3; several mean any of them."),
    ] = None,
    layout: Annotated[
        list[Path] | None,
        typer.Option(
            help="What the columns and codes are, and how to suppress (TOML): one for all, or one for each."
        ),
    ] = None,
    kind: Annotated[
        Literal["counts", "sums"] | None,
        typer.Option(help="What the values are, where no contributors stand beside them."),
    ] = None,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(help="Subtotals of a dimension, as 'nace=nace.hrc' (or .csv, .toml)."),
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
        Path | None, typer.Option(help="Write the proof of the ranges of all suppressed cells.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write the report for programs here; it is confidential.")
    ] = None,
    attacker: Annotated[
        str | None,
        typer.Option(
            help="Whom to protect from: insiders (the default), outsider, singletons, holdings, or pairs of "
            "insiders."
        ),
    ] = None,
    work: Annotated[
        int | None, typer.Option(help="Most steps of the search; the result stays safe.", min=0)
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
    data: Annotated[
        Path | None,
        typer.Option(help="The data folder in whose book of releases the tables are entered."),
    ] = None,
) -> None:
    """Suppress sensitive cells and as few others as protect them; the result is audited.

    Columns: codes, 'value', 'n' contributors, largest contributions 'x1', 'x2', ... and holdings 'h1', ...;
    a layout names others. Exit code 3: some cell cannot be protected; then nothing is written. Exit code
    4: nobody can say whether the tables are safe together; nothing is written either.
    """
    with without_collection():
        from lustrum.cli.suppress import SuppressWords, suppress_files
        from lustrum.publish.suppression.files import SuppressFiles

    given = {"rule": tuple(rule or ()) or None, "attacker": attacker, "work": work}
    words = SuppressWords(
        layouts=layout or (),
        hierarchies=hierarchy or (),
        kind=kind,
        previous=previous,
        waivers=waivers,
        settings={key: value for key, value in given.items() if value is not None},
        data=data,
    )
    files_written = SuppressFiles(out, ranges, picture, certificate, changes, json)
    if not suppress_files(files, Console(markup=False), words, files_written):
        raise typer.Exit(3)


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A certificate (JSON).")],
    digest: Annotated[
        str | None, typer.Option(help="The digest that its knowledge must have.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List all bounds that it proves.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the report for programs here.")] = None,
) -> None:
    """Check a certificate in exact arithmetic, without a solver. Exit code 1: it does not hold."""
    from lustrum.cli.audit import show_verification

    if not show_verification(file, digest, Console(markup=False), every=list_, json=json):
        raise typer.Exit(1)
