"""Audit published files: what can a reader of all of them work out?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from lustrum.audit import PublishedTable
from lustrum.audit.certificate import certify
from lustrum.audit.report import AuditedCell, AuditReport, audit_tables, known_and_places
from lustrum.cli.audit_files import levels_of, responses_of, text_of
from lustrum.cli.audit_page import number, page
from lustrum.formats.sheet import read_sheet, releases_of
from lustrum.model import InputError, Release

__all__ = ["audit_files"]

How = Literal["adjacent", "nearest"]


def audit_files(
    files: Sequence[Path],
    console: Console,
    *,
    rounded: int | None,
    how: How,
    narrow: int,
    seconds: float | None,
    html: Path | None,
    certificate: Path | None,
    relations: Sequence[str] = (),
    truth: Sequence[Path] = (),
    protect: str | None = None,
) -> bool:
    """Audit files and print the report; gives whether nothing is disclosed or too narrow."""
    names, files = responses_of(files, relations)
    texts = [text_of(file) for file in files]
    releases = releases_of([read_sheet(t, str(f)) for t, f in zip(texts, files, strict=True)])
    seen = [_seen(release, rounded, how) for release in releases]
    levels = levels_of(texts, releases, truth, protect, rounded=rounded is not None)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task("Auditing", total=None)
        report = audit_tables(
            seen, responses=names, relations=relations, protection=levels, seconds=seconds
        )
    _show(report, narrow, console)
    if html is not None:
        html.write_text(page(report, releases, [str(f) for f in files], narrow), encoding="utf-8")
        console.print(Text(f"The picture is in {html}."))
    if certificate is not None:
        known, places = known_and_places(seen, names, relations)
        cells = [places[c.table].start + _offset(seen[c.table], c.position) for c in report.cells]
        certify(known, list(dict.fromkeys(cells))).write(certificate)
        console.print(Text(f"The proof is in {certificate}; check it with 'lustrum verify'."))
    return not report.disclosed and not report.unprotected


def _seen(release: Release, rounded: int | None, how: How) -> PublishedTable:
    if rounded is None:
        return PublishedTable.exact(
            release.axes, release.published, ~release.shown, decimals=release.decimals
        )
    if not release.shown.all():
        raise InputError(
            "A rounded table must show every cell; audit tables with suppressed cells without "
            "--rounded."
        )
    base = rounded * 10**release.decimals
    return PublishedTable.rounded(
        release.axes, release.published, base, how, decimals=release.decimals
    )


def _show(report: AuditReport, narrow: int, console: Console) -> None:
    console.print(Text(str(report)))
    _list("Exactly disclosed", report.disclosed, report.decimals, console)
    _list("Within the protection interval", report.unprotected, report.decimals, console)
    _list(f"At most {narrow} values left", report.narrow(narrow), report.decimals, console)


def _list(title: str, cells: Sequence[AuditedCell], decimals: int, console: Console) -> None:
    if not cells:
        return
    grid = Grid(title=title, title_justify="left", header_style="bold")
    for head in ("cell", "at least", "at most", "risk", "follows from"):
        grid.add_column(
            head, justify="right" if head in ("at least", "at most", "risk") else "left"
        )
    for cell in cells[:50]:
        ends = (number(cell.low, decimals), number(cell.high, decimals))
        risk = "exact" if cell.disclosed else f"{cell.risk:.3f}"
        grid.add_row(*map(Text, (cell.name, *ends, risk, "; ".join(cell.follows))))
    console.print(grid)
    if len(cells) > 50:
        console.print(Text(f"… and {len(cells) - 50} more."))


def _offset(seen: PublishedTable, position: tuple[int, ...]) -> int:
    flat = 0
    for size, place in zip(seen.layout.shape, position, strict=True):
        flat = flat * size + place
    return flat
