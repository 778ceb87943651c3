"""A certificate on the terminal: whether it holds, and what it proves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lustrum.audit.certificate import ProvenCell, Report, verify_file
from lustrum.readers.report import AuditedFile, AuditedValue, FileReport


def show_verification(
    file: Path,
    digest: str | None,
    console: Console,
    *,
    every: bool = False,
    json: Path | None = None,
) -> bool:
    """Check a certificate and say what came out; with ``every``, list all bounds it proves."""
    report = verify_file(file, digest)
    if json is not None:
        _report(file, report).write(json)
    if report.holds and every:
        console.print(_grid(report))
    console.print(Text(str(report)), soft_wrap=True)
    single = sum(p.low == p.high and p.low is not None for p in report.proven)
    if single:
        noun = "cell has" if single == 1 else "cells have"
        console.print(Text(f"{single} {noun} only one value left: disclosed to every reader."))
    return report.holds


def _report(file: Path, report: Report) -> FileReport:
    """The outcome for programs; ends are in the unit of the table."""
    unit = 10**report.decimals
    values = tuple(
        AuditedValue(
            cell=item.name,
            place="",
            low=None if item.low is None else float(item.low / unit),
            high=None if item.high is None else float(item.high / unit),
            sharp=item.low_sharp and item.high_sharp,
            finding="exact" if item.low is not None and item.low == item.high else "open",
        )
        for item in report.proven
    )
    return FileReport(
        command="verify",
        exit=0 if report.holds else 1,
        reason=str(report).partition("\n")[0],
        files=(AuditedFile(name=str(file), digest=report.digest, layout="none"),),
        hidden=len(values),
        open=sum(value.finding == "open" for value in values),
        values=values,
    )


def _grid(report: Report) -> Grid:
    grid = Grid(header_style="bold")
    grid.add_column("cell")
    for head in ("at least", "at most"):
        grid.add_column(head, justify="right")
    grid.add_column("")
    for item in report.proven:
        ends = (_number(end, report.decimals) for end in (item.low, item.high))
        grid.add_row(*map(Text, (item.name, *ends, _remark(item))))
    return grid


def _remark(item: ProvenCell) -> str:
    loose = [
        word for word, sharp in (("low", item.low_sharp), ("high", item.high_sharp)) if not sharp
    ]
    return f"not sharp: {', '.join(loose)}" if loose else ""


def _number(value: Fraction | None, decimals: int) -> str:
    """A value in the table's own unit.

    >>> _number(Fraction(1305), 1), _number(Fraction(27, 2), 0), _number(None, 0)
    ('130.5', '27/2', '-')
    """
    if value is None:
        return "-"
    if value.denominator > 1:
        return str(value / 10**decimals)
    if decimals == 0:
        return str(value.numerator)
    digits = f"{abs(value.numerator):0{decimals + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"
